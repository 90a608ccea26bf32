/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "launcher/streams/console.h"
#include "launcher/streams/test/std_pipes.h"
#include "lib/base/log.h"

struct bed {
    struct event_base *base;
    struct console *console;
    struct std_pipes pipes;
    char got[3][512]; /* what was read of them */
    size_t credit;
    int gone, failed;
};

static void on_credit(void *arg, uint32_t agent, size_t bytes)
{
    (void)agent;
    ((struct bed *)arg)->credit += bytes;
}

static void on_closed(void *arg, enum output_stream stream)
{
    (void)arg, (void)stream;
}

static void on_failed(void *arg, const struct drarun_error *err)
{
    (void)err;
    ((struct bed *)arg)->failed++;
}

static void on_idle(void *arg)
{
    (void)arg;
}

static void on_reader_gone(void *arg)
{
    ((struct bed *)arg)->gone++;
}

static void on_awaited(void *arg, struct buf *text)
{
    (void)arg, (void)text;
}

static int open_it(struct bed *b, struct drarun_error *err)
{
    const struct console_owner owner = {.credit = on_credit,
                                        .closed = on_closed,
                                        .failed = on_failed,
                                        .idle = on_idle,
                                        .reader_gone = on_reader_gone,
                                        .awaited = on_awaited,
                                        .arg = b};
    return console_open(b->console, b->base, 2, &owner, err);
}

static void begin(struct bed *b, const struct console_options *options)
{
    *b = (struct bed){.base = event_base_new(), .console = console_new(options)};
    std_pipes_begin(&b->pipes);
    std_pipes_put(&b->pipes, STDOUT_FILENO);
    std_pipes_put(&b->pipes, STDERR_FILENO);
}

static void take(struct bed *b)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        size_t at = strlen(b->got[fd]);
        ssize_t n = read(b->pipes.read_ends[fd], b->got[fd] + at, sizeof b->got[fd] - 1 - at);
        (void)n;
    }
}

static void done(struct bed *b)
{
    console_free(b->console);
    std_pipes_done(&b->pipes);
    event_base_free(b->base);
}

static void write_line(const struct bed *b)
{
    output_add(console_output(b->console), 0, 1, OUTPUT_STDOUT, "text\n", 5, false);
}

static void output_and_log(void **state)
{
    const struct console_options options = {.label = true};
    struct bed b;
    (void)state;
    begin(&b, &options);
    bool early = console_output(b.console) != NULL;
    int rc = open_it(&b, NULL);
    write_line(&b);
    console_mark(b.console); /* it is no pod's log */
    console_clear(b.console);
    log_note("first");
    take(&b);
    console_release_log(b.console);
    log_note("second");
    take(&b);
    done(&b);
    assert_false(early);
    assert_int_equal(rc, 0);
    assert_string_equal(b.got[STDOUT_FILENO], "[1] text\n");
    assert_string_equal(b.got[STDERR_FILENO], "drarun: first\ndrarun: second\n");
    assert_int_equal(b.credit, 5);
}

static void frames_for_a_program(void **state)
{
    const struct console_options options = {.frames = true};
    struct bed b;
    (void)state;
    begin(&b, &options);
    int rc = open_it(&b, NULL);
    console_mark(b.console);
    log_note("first");
    write_line(&b);
    take(&b);
    event_base_loop(b.base, EVLOOP_NONBLOCK);
    int early = b.gone;
    close_fd(&b.pipes.read_ends[STDOUT_FILENO]);
    for (int turn = 0; turn < 3; turn++)
        event_base_loop(b.base, EVLOOP_NONBLOCK);
    done(&b);
    assert_int_equal(rc, 0);
    assert_non_null(strstr(b.got[STDOUT_FILENO], "\"text\":\"first\"}\n[1] text\n"));
    assert_non_null(strstr(b.got[STDOUT_FILENO], "\"event\":\"log\""));
    assert_string_equal(b.got[STDERR_FILENO], "");
    assert_int_equal(early, 0);
    assert_int_equal(b.gone, 1); /* once */
}

/* Who counts the lines of a pod's log has counted them afterwards. */
static void lines_of_a_pod(void **state)
{
    struct framed framed = {.who.job = "train"};
    const struct console_options options = {.framed = &framed};
    struct bed b;
    (void)state;
    begin(&b, &options);
    open_it(&b, NULL);
    console_mark(b.console);
    log_note("first");
    write_line(&b);
    console_mark(b.console); /* not again so soon */
    take(&b);
    done(&b);
    assert_non_null(strstr(b.got[STDOUT_FILENO], "\"job\":\"train\""));
    assert_int_equal(framed.lines, 3);
}

static void folder_that_cannot_be_made(void **state)
{
    const struct console_options options = {.dir = "/proc/nowhere"};
    struct drarun_error err = {0};
    struct bed b;
    (void)state;
    begin(&b, &options);
    int rc = open_it(&b, &err);
    log_note("as before");
    take(&b);
    done(&b);
    assert_true(rc < 0);
    assert_non_null(strstr(err.text, "/proc/nowhere"));
    assert_string_equal(b.got[STDERR_FILENO], "drarun: as before\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_and_log),
        cmocka_unit_test(frames_for_a_program),
        cmocka_unit_test(lines_of_a_pod),
        cmocka_unit_test(folder_that_cannot_be_made),
    };
    log_setup("drarun", LOG_NORMAL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
