/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "launcher/cluster/client/worker_cache.h"
#include "lib/base/cleanup.h"

#define MANY 1000

static struct spec_role role;
static struct job_spec spec;
static json_t *template_claims; /* by name */

static const json_t *find_claim(void *arg, const char *name)
{
    (void)arg;
    return json_object_get(template_claims, name);
}

static struct worker_cache *new_cache(enum spec_claims mode, uint32_t workers)
{
    static const struct worker_cache_claims claims = {.find = find_claim};
    struct worker_cache *cache = NULL;
    role = (struct spec_role){.workers = workers, .gpus = {.class = "gpu", .count = 1}};
    spec = (struct job_spec){
        .name = "job", .claims = mode, .workers = workers, .roles = &role, .role_count = 1};
    assert_int_equal(worker_cache_new(&spec, &claims, &cache, NULL), 0);
    return cache;
}

/* A running pod of that owner. */
static json_t *pod(const char *name, const char *owner, const char *attempt)
{
    json_t *made =
        json_pack("{s:{s:s, s:s, s:{s:s}, s:[{s:s}]}, s:{s:s, s:[{s:s}]}, "
                  "s:{s:s, s:[{s:s, s:{s:{s:s}}}], s:[{s:s, s:s}]}}",
                  "metadata", "name", name, "uid", name, "labels", "drarun.dev/attempt", attempt,
                  "ownerReferences", "uid", owner, "spec", "nodeName", "n1", "containers", "name",
                  "main", "status", "phase", "Running", "containerStatuses", "name", "main",
                  "state", "running", "startedAt", "2026-11-28T10:00:00Z", "resourceClaimStatuses",
                  "name", "devices", "resourceClaimName", "made-a");
    assert_non_null(made);
    return made;
}

static json_t *claim(const char *name, const char *owner, const char *attempt)
{
    json_t *made = json_pack("{s:{s:s, s:{s:s}, s:[{s:s}]}, s:{s:{s:{s:[]}}}}", "metadata", "name",
                             name, "labels", "drarun.dev/attempt", attempt, "ownerReferences",
                             "uid", owner, "status", "allocation", "devices", "results");
    assert_non_null(made);
    return made;
}

static void put(struct worker_cache *cache, enum worker_object kind, int64_t worker,
                json_t *object_take)
{
    worker_cache_put(cache, kind, worker, object_take);
    json_decref(object_take);
}

static void take_away(struct worker_cache *cache, enum worker_object kind, int64_t worker,
                      json_t *object_take)
{
    worker_cache_delete(cache, kind, worker, object_take);
    json_decref(object_take);
}

static bool count_one(uint32_t worker, const struct pod_state *state, void *arg)
{
    uint32_t *count = arg;
    (void)worker, (void)state;
    (*count)++;
    return true;
}

static uint32_t count_changed(struct worker_cache *cache)
{
    uint32_t count = 0;
    worker_cache_each_changed(cache, 1, count_one, &count);
    return count;
}

static void test_only_what_changes_is_read_again(void **state)
{
    CLEANUP(worker_cache_freep)
    struct worker_cache *cache = new_cache(SPEC_CLAIMS_DIRECT, MANY);
    char name[32];
    (void)state;
    assert_int_equal(count_changed(cache), MANY);
    assert_int_equal(count_changed(cache), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "job-w-%u", i);
        put(cache, WORKER_POD, i, pod(name, "owner", "1"));
        put(cache, WORKER_CLAIM, i, claim(name, "owner", "1"));
    }
    assert_int_equal(count_changed(cache), MANY);
    put(cache, WORKER_POD, 7, pod("job-w-7", "owner", "1"));
    put(cache, WORKER_POD, 7, pod("job-w-7", "owner", "1"));
    assert_int_equal(count_changed(cache), 1);
    const struct pod_state *states = worker_cache_states(cache, 1);
    assert_int_equal(states[7].phase, POD_RUNNING);
    assert_int_equal(states[7].claim, CLAIM_ALLOCATED);
    assert_string_equal(states[8].name, "job-w-8");
    assert_int_equal(worker_cache_count(cache, WORKER_POD), MANY);
    assert_int_equal(worker_cache_count(cache, WORKER_CLAIM), MANY);
    worker_cache_own(cache, "owner");
    assert_int_equal(count_changed(cache), MANY);
    worker_cache_own(cache, "owner");
    assert_int_equal(count_changed(cache), 0);
    assert_false(worker_cache_is_incomplete(cache));
}

static void test_whose_they_are(void **state)
{
    CLEANUP(worker_cache_freep) struct worker_cache *cache = new_cache(SPEC_CLAIMS_DIRECT, 2);
    (void)state;
    worker_cache_own(cache, "owner");
    put(cache, WORKER_POD, 0, pod("old", "other", "1"));
    put(cache, WORKER_POD, 1, pod("earlier", "owner", "1"));
    put(cache, WORKER_POD, 2, pod("beyond", "owner", "1"));
    put(cache, WORKER_POD, -1, pod("launcher", "owner", "1"));
    assert_int_equal(worker_cache_states(cache, 1)[0].phase, POD_ABSENT);
    assert_int_equal(worker_cache_states(cache, 1)[1].phase, POD_RUNNING);
    assert_int_equal(worker_cache_states(cache, 2)[1].phase, POD_ABSENT);
    assert_int_equal(worker_cache_count(cache, WORKER_POD), 2);
    CLEANUP(json_decrefp) json_t *moved = pod("earlier", "owner", "1");
    worker_cache_remove(cache, WORKER_POD, 1, moved);
    worker_cache_put(cache, WORKER_POD, 0, moved);
    assert_string_equal(worker_cache_states(cache, 1)[0].name, "earlier");
    assert_int_equal(worker_cache_states(cache, 1)[1].phase, POD_ABSENT);
    assert_false(worker_cache_states(cache, 1)[1].vanished);
    assert_int_equal(worker_cache_count(cache, WORKER_POD), 2);
}

/* The Job controller makes another pod while the first one goes. */
static void test_replaced_pod(void **state)
{
    CLEANUP(worker_cache_freep) struct worker_cache *cache = new_cache(SPEC_CLAIMS_TEMPLATE, 1);
    json_t *going = pod("a", "jobs", "1");
    (void)state;
    worker_cache_own(cache, "jobs");
    json_object_set_new(json_object_get(going, "metadata"), "deletionTimestamp",
                        json_string("2026-11-28T10:00:00Z"));
    put(cache, WORKER_POD, 0, json_incref(going));
    assert_string_equal(worker_cache_states(cache, 1)[0].name, "a");
    put(cache, WORKER_POD, 0, pod("b", "jobs", "1"));
    put(cache, WORKER_POD, 0, json_incref(going));
    assert_string_equal(worker_cache_states(cache, 1)[0].name, "b");
    take_away(cache, WORKER_POD, 0, pod("b", "jobs", "1"));
    assert_string_equal(worker_cache_states(cache, 1)[0].name, "a");
    take_away(cache, WORKER_POD, 0, going);
    assert_int_equal(worker_cache_states(cache, 1)[0].phase, POD_ABSENT);
    assert_int_equal(worker_cache_count(cache, WORKER_POD), 0);
}

static void test_vanished(void **state)
{
    CLEANUP(worker_cache_freep) struct worker_cache *cache = new_cache(SPEC_CLAIMS_DIRECT, 2);
    (void)state;
    worker_cache_own(cache, "owner");
    put(cache, WORKER_POD, 0, pod("job-w-0", "owner", "1"));
    put(cache, WORKER_CLAIM, 0, claim("job-w-0", "owner", "1"));
    assert_false(worker_cache_states(cache, 1)[0].vanished);
    take_away(cache, WORKER_CLAIM, 0, claim("job-w-0", "owner", "1"));
    assert_true(worker_cache_states(cache, 1)[0].vanished);
    assert_false(worker_cache_states(cache, 2)[0].vanished);
    put(cache, WORKER_CLAIM, 0, claim("job-w-0", "owner", "1"));
    assert_false(worker_cache_states(cache, 1)[0].vanished);
    take_away(cache, WORKER_POD, 1, pod("job-w-1", "owner", "1")); /* it was never seen */
    assert_true(worker_cache_states(cache, 1)[1].vanished);
    assert_false(worker_cache_states(cache, 1)[0].vanished);
}

static void test_claims_of_a_template(void **state)
{
    CLEANUP(worker_cache_freep) struct worker_cache *cache = new_cache(SPEC_CLAIMS_TEMPLATE, 2);
    (void)state;
    template_claims = json_object();
    worker_cache_own(cache, "jobs");
    put(cache, WORKER_POD, 0, pod("a", "jobs", "1"));
    assert_int_equal(worker_cache_states(cache, 1)[0].claim, CLAIM_ABSENT);
    json_object_set_new(template_claims, "made-a", claim("made-a", "a", "1"));
    assert_int_equal(worker_cache_states(cache, 1)[0].claim, CLAIM_ABSENT);
    worker_cache_put(cache, WORKER_CLAIM, 0, json_object_get(template_claims, "made-a"));
    assert_int_equal(worker_cache_states(cache, 1)[0].claim, CLAIM_ALLOCATED);
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(worker_cache_claim(cache, 0, 1), "metadata"), "name")),
                        "made-a");
    json_object_del(template_claims, "made-a");
    take_away(cache, WORKER_CLAIM, 0, claim("made-a", "a", "1"));
    assert_true(worker_cache_states(cache, 1)[0].vanished);
    assert_null(worker_cache_claim(cache, 0, 1));
    take_away(cache, WORKER_POD, 0, pod("a", "jobs", "1"));
    assert_false(worker_cache_states(cache, 1)[0].vanished);
    json_decref(TAKE_PTR(template_claims));
}

static bool later(uint32_t worker, const struct pod_state *state, void *arg)
{
    count_one(worker, state, arg);
    return worker != 1;
}

static void test_who_is_not_done_is_told_again(void **state)
{
    CLEANUP(worker_cache_freep) struct worker_cache *cache = new_cache(SPEC_CLAIMS_DIRECT, 3);
    uint32_t count = 0;
    (void)state;
    worker_cache_each_changed(cache, 1, later, &count);
    assert_int_equal(count, 3);
    worker_cache_each_changed(cache, 1, later, &count);
    assert_int_equal(count, 4);
    put(cache, WORKER_POD, 1, pod("job-w-1", "owner", "1"));
    put(cache, WORKER_POD, 2, pod("job-w-2", "owner", "1"));
    worker_cache_each_changed(cache, 1, later, &count);
    assert_int_equal(count, 6);
    assert_int_equal(count_changed(cache), 1);
    assert_int_equal(count_changed(cache), 0);
}

static void test_events(void **state)
{
    CLEANUP(worker_cache_freep) struct worker_cache *cache = new_cache(SPEC_CLAIMS_DIRECT, 2);
    CLEANUP(json_decrefp)
    json_t *pulling =
        json_pack("{s:s, s:s, s:{s:s}, s:s}", "reason", "Pulling", "message", "Pulling image \"a\"",
                  "involvedObject", "uid", "job-w-1", "lastTimestamp", "2026-11-28T10:00:00Z");
    (void)state;
    put(cache, WORKER_POD, 1, pod("job-w-1", "owner", "1"));
    assert_int_equal(count_changed(cache), 2);
    assert_true(worker_cache_hear(cache, 1, pulling));
    assert_false(worker_cache_hear(cache, 2, pulling));
    assert_int_equal(count_changed(cache), 1);
    assert_non_null(news_get(worker_cache_states(cache, 1)[1].news, NEWS_PULLING));
}

#ifndef NDEBUG
static bool tell_the_cache(uint32_t worker, const struct pod_state *state, void *arg)
{
    (void)worker, (void)state;
    put(arg, WORKER_POD, 1, pod("job-w-1", "owner", "1"));
    return true;
}

/* As a callback that runs the loop would. */
static void test_who_is_told_of_changes_makes_none(void **state)
{
    CLEANUP(worker_cache_freep) struct worker_cache *cache = new_cache(SPEC_CLAIMS_DIRECT, 2);
    static const struct rlimit none;
    int status = 0;
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &none);
        if (freopen("/dev/null", "w", stderr))
            worker_cache_each_changed(cache, 1, tell_the_cache, cache);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_what_changes_is_read_again),
        cmocka_unit_test(test_whose_they_are),
        cmocka_unit_test(test_replaced_pod),
        cmocka_unit_test(test_vanished),
        cmocka_unit_test(test_claims_of_a_template),
        cmocka_unit_test(test_who_is_not_done_is_told_again),
#ifndef NDEBUG
        cmocka_unit_test(test_who_is_told_of_changes_makes_none),
#endif
        cmocka_unit_test(test_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
