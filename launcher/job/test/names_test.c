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
    uint64_t id; /* the last one */
    bool good, ended, alone;
    char value[16];
    unsigned met, failures;
    int code; /* of the last collective */
};

/* What libevent can have. */
static enum { ENOUGH, NO_EVENT, NO_TIMER } memory;

static void *event_malloc(size_t size)
{
    return memory == NO_EVENT ? NULL : malloc(size);
}

static void *event_realloc(void *old, size_t size)
{
    return memory == NO_TIMER ? NULL : realloc(old, size);
}

static void on_found(void *arg, uint32_t worker, const Drarun__Wire__NameReply *reply)
{
    struct fixture *f = arg;
    assert_int_equal(worker, 3);
    f->answers++;
    f->id = reply->id;
    f->alone = reply->alone;
    f->good = reply->good;
    f->ended = reply->ended;
    snprintf(f->value, sizeof f->value, "%.*s", (int)reply->value.len,
             reply->value.data ? (const char *)reply->value.data : "");
}

static void on_met(void *arg, uint32_t worker, const Drarun__Wire__MeetReply *reply)
{
    struct fixture *f = arg;
    assert_int_equal(worker, 3);
    f->met++;
    f->code = reply->code;
}

static void on_failed(void *arg, const struct drarun_error *err)
{
    struct fixture *f = arg;
    (void)err;
    f->failures++;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const struct job_names_owner owner = {.found = on_found, .arg = f};
    const struct meet_owner meet = {.met = on_met, .failed = on_failed, .arg = f};
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

/* A value for one lookup, when no other is there: of an agent, which gets its answer at once if
 * true; or of the other job. */
static bool queue_value(struct fixture *f, uint64_t id, const char *value)
{
    Drarun__Wire__NameRequest request = DRARUN__WIRE__NAME_REQUEST__INIT;
    Drarun__Wire__NameReply reply = DRARUN__WIRE__NAME_REPLY__INIT;
    request.id = id;
    request.pmix = request.once = request.wait = true;
    request.action = DRARUN__WIRE__NAME_ACTION__NAME_PUBLISH;
    request.service = unconst("port:connect");
    request.value.data = (uint8_t *)unconst(value);
    request.value.len = strlen(value);
    bool answered = job_names_ask(f->names, 3, "5.0", &request, &reply);
    assert_int_equal(reply.good, answered);
    assert_false(reply.alone);
    return answered;
}

static void publish_call(struct fixture *f)
{
    assert_int_equal(
        user_names_publish(f->other, "pmix 5.0 port:connect", "other", 5, true, NULL, NULL), 0);
}

/* value: NULL: there is none. */
static void assert_call(const char *value)
{
    char job[USER_NAMES_JOB_SIZE];
    struct buf found = BUF_INIT;
    int rc = user_names_lookup("pmix 5.0 port:connect", &found, job, NULL);
    assert_int_equal(rc, value ? 0 : -ENOENT);
    if (value)
        assert_string_equal(found.data, value);
    buf_done(&found);
}

static struct timespec changed_last(const struct fixture *f)
{
    char path[128];
    struct stat st;
    snprintf(path, sizeof path, "%s/drarun-%u", f->base, geteuid());
    assert_int_equal(stat(path, &st), 0);
    return st.st_mtim;
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

/* An agent's ranks enter a collective with those of the other job. */
static void meet(struct fixture *f, const char *key)
{
    Drarun__Wire__MeetRequest request = DRARUN__WIRE__MEET_REQUEST__INIT;
    char *nspaces[] = {unconst("drarun.other.0.s1.secret")};
    request.key = unconst(key);
    request.kind = DRARUN__WIRE__MEET_KIND__MEET_CONNECT;
    request.n_nspaces = ARRAY_LEN(nspaces);
    request.nspaces = nspaces;
    job_names_meet(f->names, 3, "5.0", &request);
}

/* This job's name among the others, as they find it. */
static void own_job(char ret_job[USER_NAMES_JOB_SIZE])
{
    struct buf nothing = BUF_INIT;
    assert_int_equal(user_names_lookup("job drarun.this.0", &nothing, ret_job, NULL), 0);
    buf_done(&nothing);
}

/* The other job has been told that it fails. */
static void assert_told(const struct fixture *f, const char *key)
{
    char own[USER_NAMES_JOB_SIZE], job[USER_NAMES_JOB_SIZE], service[128];
    struct buf part = BUF_INIT;
    own_job(own);
    snprintf(service, sizeof service, "part 5.0 %s %s %s", key, own, f->job);
    assert_int_equal(user_names_lookup(service, &part, job, NULL), 0);
    assert_string_equal(part.data, "\x08\x01");
    buf_done(&part);
}

/* Nobody waits for what would not be seen, nor later on. */
static void test_other_jobs_cannot_be_watched(void **state)
{
    struct fixture *f = *state;
    char own[USER_NAMES_JOB_SIZE], service[128];
    assert_int_equal(user_names_publish(f->other, "job drarun.other.0", "", 0, false, NULL, NULL),
                     0);
    static const char *const keys[] = {[NO_EVENT] = "a", [NO_TIMER] = "b"};
    for (int lack = NO_EVENT; lack <= NO_TIMER; lack++) {
        memory = lack;
        meet(f, keys[lack]);
        memory = ENOUGH;
        assert_int_equal(f->met, lack);
        assert_int_equal(f->code, ENOMEM);
        assert_told(f, keys[lack]);
    }
    meet(f, "c");
    assert_int_equal(f->met, 2);
    own_job(own);
    snprintf(service, sizeof service, "part 5.0 c %s %s", f->job, own);
    assert_int_equal(user_names_publish(f->other, service, "1", 1, true, own, NULL), 0);
    see_changes(f);
    assert_int_equal(f->met, 3);
    assert_int_equal(f->code, 0);
    assert_int_equal(f->failures, 0);
}

static void test_value_that_finds_its_place(void **state)
{
    struct fixture *f = *state;
    assert_true(queue_value(f, 1, "one"));
    assert_call("one");
    assert_call(NULL);
}

/* Those who wait change nothing, of which each would hear. */
static void test_value_that_waits_for_its_place(void **state)
{
    struct fixture *f = *state;
    publish_call(f);
    assert_false(queue_value(f, 1, "one"));
    assert_false(queue_value(f, 2, "two"));
    see_changes(f);
    struct timespec before = changed_last(f);
    see_changes(f);
    see_changes(f);
    struct timespec now = changed_last(f);
    assert_memory_equal(&before, &now, sizeof now);
    assert_int_equal(f->answers, 0);
    assert_call("other");
    see_changes(f);
    assert_int_equal(f->answers, 1);
    assert_true(f->good && !f->alone && f->id == 1);
    assert_call("one");
    see_changes(f);
    assert_int_equal(f->answers, 2);
    assert_true(f->good && !f->alone && f->id == 2);
    assert_call("two");
}

static void test_place_of_a_job_that_has_ended(void **state)
{
    struct fixture *f = *state;
    publish_call(f);
    assert_false(queue_value(f, 1, "one"));
    user_names_free(TAKE_PTR(f->other));
    see_changes(f);
    assert_int_equal(f->answers, 1);
    assert_call("one");
}

static void test_value_that_is_given_up(void **state)
{
    struct fixture *f = *state;
    Drarun__Wire__NameRequest request = DRARUN__WIRE__NAME_REQUEST__INIT;
    Drarun__Wire__NameReply reply = DRARUN__WIRE__NAME_REPLY__INIT;
    publish_call(f);
    assert_false(queue_value(f, 1, "one"));
    request.id = 1;
    request.pmix = true;
    request.action = DRARUN__WIRE__NAME_ACTION__NAME_FORGET;
    assert_false(job_names_ask(f->names, 3, "5.0", &request, &reply));
    assert_call("other");
    see_changes(f);
    assert_int_equal(f->answers, 0);
    assert_call(NULL);
}

int main(void)
{
    event_set_mem_functions(event_malloc, event_realloc, free);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_name_that_comes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_name_that_is_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_job_that_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_job_that_has_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_job_that_was_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_descriptor_is_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_any_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_jobs_cannot_be_watched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_value_that_finds_its_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_value_that_waits_for_its_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_place_of_a_job_that_has_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_value_that_is_given_up, set_up, tear_down),
    };
    umask(022); /* what is made is ours alone, whatever umask the caller has */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
