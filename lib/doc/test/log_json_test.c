/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <jansson.h>
#include "lib/base/cleanup.h"
#include "lib/base/timestamp.h"
#include "lib/doc/log_json.h"

struct kept {
    struct log_json who;
    struct buf out;
};

static void on_line(void *arg, const struct log_line *line)
{
    struct kept *kept = arg;
    log_json_line(&kept->who, line, &kept->out);
}

/* The line that say() logs, less its time, written as `expected` is. */
static void check(const struct log_json *who, void (*say)(void), const char *expected)
{
    struct kept kept = {.who = *who, .out = BUF_INIT};
    int64_t when = 0;
    log_setup("drarun", LOG_NORMAL);
    log_divert(on_line, &kept);
    say();
    log_divert(NULL, NULL);
    assert_non_null(kept.out.data);
    assert_int_equal(kept.out.data[kept.out.len - 1], '\n');
    CLEANUP(json_decrefp) json_t *object = json_loadb(kept.out.data, kept.out.len, 0, NULL);
    CLEANUP(json_decrefp) json_t *wanted = json_loads(expected, 0, NULL);
    assert_non_null(wanted);
    const char *time = json_string_value(json_object_get(object, "time"));
    assert_true(timestamp_parse(time, &when) && when > 0);
    json_object_del(object, "time");
    if (!json_equal(object, wanted))
        fail_msg("%s", kept.out.data);
    buf_done(&kept.out);
}

static void say_plain(void)
{
    log_note("nothing \"special\"");
}

static void say_about(void)
{
    const struct log_about about = {.of_worker = true,
                                    .of_rank = true,
                                    .worker = 3,
                                    .rank = 7,
                                    .claim = "job-w-3",
                                    .node = "node-b"};
    log_about(&about, LOG_QUIET, "two\nlines");
}

static void say_binary(void)
{
    log_error("\xff\xfe");
}

static void test_fields_that_are_known(void **state)
{
    static const struct log_json nobody;
    static const struct log_json launcher = {.job = "job", .attempt = 2};
    static const struct log_json agent = {
        .job = "job", .attempt = 1, .about = {.of_worker = true, .worker = 0, .node = "node-a"}};
    (void)state;
    check(&nobody, say_plain, "{\"level\":\"note\",\"text\":\"nothing \\\"special\\\"\"}");
    check(&launcher, say_about,
          "{\"level\":\"error\",\"job\":\"job\",\"attempt\":2,\"worker\":3,\"rank\":7,"
          "\"claim\":\"job-w-3\",\"node\":\"node-b\",\"text\":\"two\\n  lines\"}");
    check(&agent, say_plain,
          "{\"level\":\"note\",\"job\":\"job\",\"attempt\":1,\"worker\":0,\"node\":\"node-a\","
          "\"text\":\"nothing \\\"special\\\"\"}");
    check(&nobody, say_binary, "{\"level\":\"error\",\"text\":\"??\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields_that_are_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
