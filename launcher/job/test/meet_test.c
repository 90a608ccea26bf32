/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/job/meet.h"
#include "lib/base/cleanup.h"
#include "lib/base/sha256.h"
#include "lib/base/unconst.h"

#define JOBS 3

/* A launcher with one agent. */
struct side {
    struct user_names *user;
    struct meets *meets;
    unsigned answers, failures;
    int code;
    struct buf parts, why; /* of the last answer: the parts, with "/" after each */
};

struct fixture {
    char base[64];
    struct side sides[JOBS];
};

static void on_met(void *arg, uint32_t worker, const Drarun__Wire__MeetReply *reply)
{
    struct side *side = arg;
    assert_int_equal(worker, 5);
    assert_int_equal(reply->id, 7);
    side->answers++;
    side->code = reply->code;
    buf_reset(&side->parts);
    buf_reset(&side->why);
    buf_printf(&side->why, "%s", reply->text);
    for (size_t i = 0; i < reply->n_parts; i++)
        buf_printf(&side->parts, "%.*s/", (int)reply->parts[i].len,
                   (const char *)reply->parts[i].data);
}

static void on_failed(void *arg, const struct drarun_error *err)
{
    struct side *side = arg;
    side->failures++;
    buf_reset(&side->why);
    buf_printf(&side->why, "%s", err->text);
}

static void open_side(struct fixture *f, unsigned i)
{
    char self[32];
    struct side *side = &f->sides[i];
    const struct meet_owner owner = {.met = on_met, .failed = on_failed, .arg = side};
    snprintf(self, sizeof self, "drarun.job%u.0", i);
    side->user = user_names_new();
    side->meets = meets_new(side->user, self, &owner);
    assert_int_equal(meets_announce(side->meets, NULL), 0);
}

static void close_side(struct fixture *f, unsigned i)
{
    struct side *side = &f->sides[i];
    meets_free(TAKE_PTR(side->meets));
    user_names_free(TAKE_PTR(side->user));
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->base, sizeof f->base, "/tmp/meet.XXXXXX");
    if (!mkdtemp(f->base))
        return -1;
    unsetenv("XDG_RUNTIME_DIR");
    setenv("TMPDIR", f->base, 1);
    for (unsigned i = 0; i < JOBS; i++)
        open_side(f, i);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < JOBS; i++) {
        close_side(f, i);
        buf_done(&f->sides[i].parts);
        buf_done(&f->sides[i].why);
    }
    int rc = rmdir(f->base); /* nothing is left */
    free(f);
    return rc;
}

/* The agent of that side enters, with others by their numbers, as in "12". */
static void enter(struct fixture *f, unsigned i, Drarun__Wire__MeetKind kind, const char *key,
                  const char *others)
{
    Drarun__Wire__MeetRequest request = DRARUN__WIRE__MEET_REQUEST__INIT;
    const struct drarun_error nothing = {0};
    char names[4][64], part[16], *list[4];
    request.n_nspaces = strlen(others);
    for (size_t k = 0; k < request.n_nspaces; k++) {
        snprintf(names[k], sizeof names[k], "drarun.job%c.0.s1.secret", others[k]);
        list[k] = names[k];
    }
    snprintf(part, sizeof part, "part %u", i);
    request.id = 7;
    request.key = unconst(key);
    request.kind = kind;
    request.nspaces = list;
    request.part.data = (uint8_t *)part;
    request.part.len = strlen(part);
    meets_ask(f->sides[i].meets, 5, "5.0", &request, &nothing);
}

static void look(struct fixture *f)
{
    for (unsigned i = 0; i < JOBS; i++)
        if (f->sides[i].meets)
            meets_look(f->sides[i].meets);
}

static void assert_met(const struct side *side, unsigned answers, const char *parts)
{
    assert_int_equal(side->answers, answers);
    assert_int_equal(side->code, 0);
    assert_string_equal(side->parts.data, parts);
}

#define CONNECT DRARUN__WIRE__MEET_KIND__MEET_CONNECT
#define LEAVE DRARUN__WIRE__MEET_KIND__MEET_LEAVE

static void connect_two(struct fixture *f)
{
    enter(f, 0, CONNECT, "c", "1");
    enter(f, 1, CONNECT, "c", "0");
    look(f);
}

static void test_two_jobs(void **state)
{
    struct fixture *f = *state;
    enter(f, 0, CONNECT, "a", "1");
    assert_int_equal(f->sides[0].answers, 0);
    assert_true(meets_await(f->sides[0].meets));
    look(f);
    assert_int_equal(f->sides[0].answers, 0);
    enter(f, 1, CONNECT, "b", "0"); /* another one */
    look(f);
    assert_int_equal(f->sides[0].answers + f->sides[1].answers, 0);
    enter(f, 1, CONNECT, "a", "0");
    assert_met(&f->sides[1], 1, "part 0/");
    look(f);
    assert_met(&f->sides[0], 1, "part 1/");
}

static void test_three_jobs(void **state)
{
    struct fixture *f = *state;
    enter(f, 0, CONNECT, "a", "12");
    enter(f, 1, CONNECT, "a", "2202"); /* two namespaces of a job are one part */
    look(f);
    assert_int_equal(f->sides[0].answers + f->sides[1].answers, 0);
    enter(f, 2, CONNECT, "a", "10");
    assert_met(&f->sides[2], 1, "part 1/part 0/");
    close_side(f, 2); /* its part outlives it */
    look(f);
    assert_met(&f->sides[0], 1, "part 1/part 2/");
    assert_met(&f->sides[1], 1, "part 2/part 0/");
    open_side(f, 2);
}

static void test_nobody(void **state)
{
    struct fixture *f = *state;
    enter(f, 0, CONNECT, "a", "9");
    assert_int_equal(f->sides[0].answers, 1);
    assert_int_equal(f->sides[0].code, ENOENT);
    assert_non_null(strstr(f->sides[0].why.data, "drarun.job9.0.s1.secret"));
    assert_false(meets_await(f->sides[0].meets));
}

/* The others hear of it: a part whose status is PMIX_ERROR. */
static void test_one_cannot_take_part(void **state)
{
    struct fixture *f = *state;
    enter(f, 1, CONNECT, "a", "0");
    enter(f, 0, CONNECT, "a", "19");
    assert_int_equal(f->sides[0].code, ENOENT);
    look(f);
    assert_met(&f->sides[1], 1, "\x08\x01/");
}

/* Such as a spawned group that is released. */
static void test_own_ranks_that_have_ended(void **state)
{
    struct fixture *f = *state;
    enter(f, 0, CONNECT, "a", "0");
    assert_int_equal(f->sides[0].answers, 1);
    assert_int_equal(f->sides[0].code, ENOENT);
}

static void test_other_ends_first(void **state)
{
    struct fixture *f = *state;
    enter(f, 0, CONNECT, "a", "1");
    close_side(f, 1);
    look(f);
    assert_int_equal(f->sides[0].answers, 1);
    assert_int_equal(f->sides[0].code, ECONNRESET);
    assert_string_equal(f->sides[0].why.data, "job job1 has ended");
    assert_false(meets_await(f->sides[0].meets));
    open_side(f, 1);
}

/* The part that a side has published for another one, locked as by another process. */
static int hold_part(const struct fixture *f, unsigned from, unsigned to)
{
    char service[128], file[SHA256_TEXT_SIZE], path[256];
    snprintf(service, sizeof service, "part 5.0 a %s %s", user_names_job(f->sides[from].user, NULL),
             user_names_job(f->sides[to].user, NULL));
    sha256_text(service, strlen(service), file);
    snprintf(path, sizeof path, "%s/drarun-%u/%s", f->base, geteuid(), file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    return fd;
}

static void test_part_that_is_locked(void **state)
{
    struct fixture *f = *state;
    enter(f, 0, CONNECT, "a", "1");
    enter(f, 1, CONNECT, "a", "0");
    int held = hold_part(f, 1, 0);
    close_side(f, 1);
    look(f);
    assert_int_equal(f->sides[0].answers, 0);
    close(held);
    look(f);
    assert_met(&f->sides[0], 1, "part 1/");
    open_side(f, 1);
}

/* The job has no room for what is to tell the last one: it fails, so that nobody waits for it. */
static void test_one_cannot_be_told(void **state)
{
    struct fixture *f = *state;
    char name[16];
    for (unsigned i = 2; i < USER_NAMES_MAX; i++) { /* the job's own is there; one part fits */
        snprintf(name, sizeof name, "%u", i);
        assert_int_equal(user_names_publish(f->sides[0].user, name, "", 0, false, NULL, NULL), 0);
    }
    enter(f, 1, CONNECT, "a", "02");
    enter(f, 2, CONNECT, "a", "01");
    enter(f, 0, CONNECT, "a", "12");
    assert_int_equal(f->sides[0].code, EDQUOT);
    assert_int_equal(f->sides[0].failures, 1);
    close_side(f, 0);
    look(f);
    assert_int_equal(f->sides[1].answers + f->sides[2].answers, 2);
    assert_int_equal(f->sides[2].code, ECONNRESET);
    open_side(f, 0);
}

static void test_connected_jobs_end_together(void **state)
{
    struct fixture *f = *state;
    connect_two(f);
    assert_true(meets_await(f->sides[0].meets));
    look(f);
    assert_int_equal(f->sides[0].failures, 0);
    close_side(f, 1);
    look(f);
    look(f);
    assert_int_equal(f->sides[0].failures, 1);
    assert_int_equal(strncmp(f->sides[0].why.data, "job job1 has failed", 19), 0);
    assert_false(meets_await(f->sides[0].meets));
    open_side(f, 1);
}

static void test_good_end(void **state)
{
    struct fixture *f = *state;
    connect_two(f);
    user_names_leave(f->sides[1].user);
    close_side(f, 1);
    look(f);
    assert_int_equal(f->sides[0].failures, 0);
    assert_false(meets_await(f->sides[0].meets));
    open_side(f, 1);
}

/* Once for each time that they have connected. */
static void test_disconnected_jobs_end_alone(void **state)
{
    struct fixture *f = *state;
    connect_two(f);
    enter(f, 0, CONNECT, "d", "1");
    enter(f, 1, CONNECT, "d", "0");
    enter(f, 0, LEAVE, "l", "1");
    enter(f, 1, LEAVE, "l", "0");
    look(f);
    assert_true(meets_await(f->sides[0].meets));
    enter(f, 0, LEAVE, "m", "1");
    enter(f, 1, LEAVE, "m", "0");
    close_side(f, 1);
    look(f);
    assert_met(&f->sides[0], 4, "part 1/");
    assert_int_equal(f->sides[0].failures, 0);
    assert_false(meets_await(f->sides[0].meets));
    open_side(f, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_jobs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_three_jobs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_cannot_take_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_own_ranks_that_have_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_ends_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_part_that_is_locked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_cannot_be_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_connected_jobs_end_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_good_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_disconnected_jobs_end_alone, set_up, tear_down),
    };
    umask(022); /* what is made is ours alone, whatever umask the caller has */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
