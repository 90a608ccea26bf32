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
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/job/names.h"
#include "launcher/job/user_names.h"
#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"

/* A launcher whose agents ask, and another job. */
struct fixture {
    char base[64];
    struct event_base *events;
    struct job_names *names;
    struct user_names *other;
    char job[USER_NAMES_JOB_SIZE]; /* of the other one */
    unsigned answers;
    bool good, ended; /* the last one */
    char value[16];
};

static void on_found(void *arg, uint32_t worker, const Drarun__Wire__NameReply *reply)
{
    struct fixture *f = arg;
    assert_int_equal(worker, 3);
    f->answers++;
    f->good = reply->good;
    f->ended = reply->ended;
    snprintf(f->value, sizeof f->value, "%.*s", (int)reply->value.len,
             reply->value.data ? (const char *)reply->value.data : "");
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const struct job_names_owner owner = {.found = on_found, .arg = f};
    const struct meet_owner meet = {0};
    snprintf(f->base, sizeof f->base, "/tmp/names.XXXXXX");
    if (!mkdtemp(f->base))
        return -1;
    unsetenv("XDG_RUNTIME_DIR");
    setenv("TMPDIR", f->base, 1);
    f->events = event_base_new();
    f->names = job_names_new(f->events, "drarun.this.0", &owner, &meet);
    f->other = user_names_new();
    snprintf(f->job, sizeof f->job, "%s", user_names_job(f->other, NULL));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    job_names_free(f->names);
    user_names_free(f->other);
    event_base_free(f->events);
    int rc = rmdir(f->base); /* nothing is left */
    free(f);
    return rc;
}

/* An agent looks a name up, which it gets from on_found, perhaps at once. */
static void await_name(struct fixture *f, uint64_t id, const char *job)
{
    Drarun__Wire__NameRequest request = DRARUN__WIRE__NAME_REQUEST__INIT;
    Drarun__Wire__NameReply reply = DRARUN__WIRE__NAME_REPLY__INIT;
    request.id = id;
    request.pmix = true;
    request.action = DRARUN__WIRE__NAME_ACTION__NAME_LOOKUP;
    request.service = unconst("port:accept");
    request.wait = true;
    request.job = unconst(job);
    assert_false(job_names_ask(f->names, 3, "5.0", &request, &reply));
}

static void publish(struct fixture *f)
{
    assert_int_equal(user_names_publish(f->other, "pmix 5.0 port:accept", "1", 1, true, NULL, NULL),
                     0);
}

static void see_changes(struct fixture *f)
{
    event_base_loop(f->events, EVLOOP_NONBLOCK);
}

static void assert_ended(const struct fixture *f)
{
    assert_int_equal(f->answers, 1);
    assert_false(f->good);
    assert_true(f->ended);
}

static void test_name_that_comes(void **state)
{
    struct fixture *f = *state;
    await_name(f, 1, f->job);
    assert_int_equal(f->answers, 0);
    publish(f);
    see_changes(f);
    assert_int_equal(f->answers, 1);
    assert_true(f->good);
    assert_string_equal(f->value, "1");
}

static void test_name_that_is_there(void **state)
{
    struct fixture *f = *state;
    publish(f);
    await_name(f, 1, f->job);
    assert_int_equal(f->answers, 1);
    assert_true(f->good);
}

static void test_job_that_ends(void **state)
{
    struct fixture *f = *state;
    await_name(f, 1, f->job);
    see_changes(f);
    assert_int_equal(f->answers, 0);
    user_names_free(TAKE_PTR(f->other));
    see_changes(f);
    assert_ended(f);
}

/* It has taken its file with it. */
static void test_job_that_has_ended(void **state)
{
    struct fixture *f = *state;
    user_names_free(TAKE_PTR(f->other));
    await_name(f, 1, f->job);
    assert_ended(f);
}

/* Its file is there, and nobody holds the lock. */
static void test_job_that_was_killed(void **state)
{
    struct fixture *f = *state;
    char path[256];
    await_name(f, 1, ""); /* so that what is left is not swept below */
    snprintf(path, sizeof path, "%s/drarun-%u/job-0123456789abcdef", f->base, geteuid());
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    await_name(f, 2, "0123456789abcdef");
    assert_ended(f);
    assert_int_equal(unlink(path), 0);
}

/* That a job cannot be asked does not mean that any other one may answer. */
static void test_no_descriptor_is_left(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, now;
    await_name(f, 1, ""); /* the directory is watched */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(STDERR_FILENO);
    close(next);
    now = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    await_name(f, 2, f->job);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(f->answers, 0);
    user_names_free(TAKE_PTR(f->other));
    see_changes(f);
    assert_ended(f);
}

static void test_any_job(void **state)
{
    struct fixture *f = *state;
    await_name(f, 1, "");
    user_names_free(TAKE_PTR(f->other));
    see_changes(f);
    assert_int_equal(f->answers, 0);
    f->other = user_names_new();
    publish(f);
    see_changes(f);
    assert_int_equal(f->answers, 1);
    assert_true(f->good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_name_that_comes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_name_that_is_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_job_that_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_job_that_has_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_job_that_was_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_descriptor_is_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_any_job, set_up, tear_down),
    };
    umask(022); /* what is made is ours alone, whatever umask the caller has */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
