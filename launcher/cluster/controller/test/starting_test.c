/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a launcher that does not start, and for how long it is waited for. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/cluster/controller/sight.h"
#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"
#include "lib/base/timestamp.h"

#define CREATED "2026-11-30T12:00:00Z"
#define JOB(status)                                                                                \
    "{'metadata':{'uid':'j','creationTimestamp':'" CREATED "'},'status':{" status "}}"
#define STARTED "'startTime':'2026-11-30T12:00:00Z'"

static struct {
    int64_t now_ms;   /* since the Job was created */
    int64_t again_ms; /* the soonest look that was asked for; -1: none */
    struct sight_answer pods;
    bool waits, has_spec;
} world;

int64_t __wrap_controller_now(const struct controller *c);
int64_t __wrap_controller_now(const struct controller *c)
{
    int64_t created = 0;
    (void)c;
    assert_true(timestamp_parse(CREATED, &created));
    return created + world.now_ms;
}

void __wrap_sight_again(const struct sight *s, int64_t ms);
void __wrap_sight_again(const struct sight *s, int64_t ms)
{
    (void)s;
    if (world.again_ms < 0 || ms < world.again_ms)
        world.again_ms = ms;
}

bool __wrap_sight_has_spec(struct sight *s);
bool __wrap_sight_has_spec(struct sight *s)
{
    (void)s;
    return world.has_spec;
}

const struct sight_answer *__wrap_sight_list_launchers(struct sight *s, const char *fields,
                                                       void (*trim)(json_t *pod));
const struct sight_answer *__wrap_sight_list_launchers(struct sight *s, const char *fields,
                                                       void (*trim)(json_t *pod))
{
    size_t i;
    json_t *pod;
    (void)s;
    assert_string_equal(fields, "status.phase=Pending");
    json_array_foreach(json_object_get(world.pods.body, "items"), i, pod) trim(pod);
    return world.waits ? NULL : &world.pods;
}

struct row {
    const char *job;
    int64_t now_ms;
    const char *words; /* NULL: none */
    int64_t again_ms;
    int end;              /* errno; 0: it is waited for */
    const char *end_text; /* its begin */
    int64_t allocation, nodes, image_pull;
};

static void judge(const struct row *row, size_t number, const char *pods)
{
    CLEANUP(buf_done) struct buf words = BUF_INIT;
    struct drarun_error end = {0};
    struct controller c = {.limits = json_object()};
    struct sight s = {.c = &c, .job = quoted_json(row->job, 0)};
    snprintf(s.key, sizeof s.key, "a/x");
    s.spec.timeouts = (struct spec_timeouts){
        .allocation = row->allocation, .nodes = row->nodes, .image_pull = row->image_pull};
    world.now_ms = row->now_ms;
    world.again_ms = -1;
    world.pods = (struct sight_answer){.came = true, .body = quoted_json(pods, 0)};
    world.has_spec = true;
    const char *text = starting_words(&s, &words, &end);
    if ((!text) != (!row->words) || (text && strcmp(text, row->words) != 0))
        fail_msg("row %zu: %s", number, text ? text : "nothing");
    if (world.again_ms != row->again_ms)
        fail_msg("row %zu: again after %d", number, (int)world.again_ms);
    if (end.code != row->end ||
        (row->end_text && strncmp(end.text, row->end_text, strlen(row->end_text)) != 0))
        fail_msg("row %zu: %d %s", number, end.code, end.text);
    json_decref(s.job);
    json_decref(c.limits);
    json_decref(world.pods.body);
}

#define NO_POD                                                                                     \
    "the launcher has no pod: kubectl describe job shows what refuses it, such as a quota or Pod " \
    "Security"
#define NONE "it has no pod: kubectl get events shows what refused it"

static void launchers_without_a_pod(void **state)
{
    static const struct row rows[] = {
        {JOB(""), 0, NULL, 10000, 0, NULL},
        {JOB(""), 9999, NULL, 1, 0, NULL},
        {JOB(""), 10000, NO_POD, 5000, 0, NULL},
        {JOB(""), 20000, NO_POD, 5000, 0, NULL},
        {JOB(""), 20004, NO_POD, 5001, 0, NULL},
        {JOB(""), 236000, NO_POD, 59000, 0, NULL},
        {JOB(""), 240000, NO_POD, 60000, 0, NULL},
        {JOB(""), 900000, NO_POD, 60000, 0, NULL},
        {JOB("'conditions':[{'type':'Suspended','status':'True'}]"), 1,
         "the launcher's Job is suspended: kubectl describe job shows which queue holds it", -1, 0,
         NULL},
        {JOB("'conditions':[{'type':'Suspended','status':'False'}]"), 1, NULL, 9999, 0, NULL},
        /* it has the time that a client would give it, which knows 10 s earlier */
        {JOB(STARTED), 30000, NO_POD, 7500, 0, NULL, 40000, 0, 0},
        {JOB(STARTED), 48000, NO_POD, 2000, 0, NULL, 40000, 0, 0},
        {JOB(STARTED), 49999, NO_POD, 1, 0, NULL, 40000, 0, 0},
        {JOB(STARTED), 50000, NO_POD, 12500, ETIME,
         "the launcher has not started within 40 s (timeouts.allocation): " NONE, 40000, 0, 0},
        {JOB(""), 50000, NO_POD, 12500, 0, NULL, 40000, 0, 0}, /* its controller is away */
        {JOB("'startTime':'2026-11-30T12:00:05Z'"), 54999, NO_POD, 1, 0, NULL, 40000, 0, 0},
        {JOB("'startTime':'2026-11-30T11:00:00Z'"), 49999, NO_POD, 1, 0, NULL, 40000, 0, 0},
        {JOB("'startTime':'2026-11-30T12:00:05Z'"), 55000, NO_POD, 13750, ETIME,
         "the launcher has not started within 40 s (timeouts.allocation): " NONE, 40000, 0, 0},
        /* for a pod that is not there no node is ordered */
        {JOB(STARTED), 50000, NO_POD, 12500, ETIME,
         "the launcher has not started within 40 s (timeouts.allocation): " NONE, 40000, 50000, 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        judge(&rows[i], i, "{'items':[]}");
}

#define POD(status)                                                                                \
    "{'items':[{'metadata':{'name':'x-abcde','labels':{'drarun.dev/job':'x'},"                     \
    "'ownerReferences':[{'uid':'j','controller':true}]},'spec':{'nodeName':'n0','containers':["    \
    "{'name':'launcher','image':'i'}]},'status':{'phase':'Pending','containerStatuses':["          \
    "{'name':'launcher','image':'i','state':{" status "}}]}}]}"
#define PULL "'waiting':{'reason':'ErrImagePull','message':'not found'}"
#define WITH_POD JOB(STARTED ",'active':1")

static void launchers_whose_pod_does_not_start(void **state)
{
    static const char pulling[] =
        "the launcher does not start: pod x-abcde on n0: image i of the launcher cannot be pulled";
    CLEANUP(buf_done) struct buf words = BUF_INIT;
    struct drarun_error end = {0};
    static const struct {
        const char *pods;
        int64_t now_ms, image_pull;
        bool said;
        int64_t again_ms;
        int end;
    } rows[] = {
        {"{'items':[]}", 20000, 0, false, 5000, 0}, {POD(PULL), 20000, 0, true, 5000, 0},
        {POD(PULL), 48000, 40000, true, 2000, 0},   {POD(PULL), 50000, 40000, true, 12500, ETIME},
        {POD(PULL), 900000, 0, true, 60000, 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct controller c = {.limits = json_object()};
        struct sight s = {.c = &c, .job = quoted_json(WITH_POD, 0)};
        snprintf(s.key, sizeof s.key, "a/x");
        s.spec.timeouts.image_pull = rows[i].image_pull;
        world.now_ms = rows[i].now_ms;
        world.again_ms = -1;
        world.has_spec = true;
        world.pods = (struct sight_answer){.came = true, .body = quoted_json(rows[i].pods, 0)};
        end = (struct drarun_error){0};
        buf_reset(&words);
        const char *text = starting_words(&s, &words, &end);
        bool said = text && strncmp(text, pulling, strlen(pulling)) == 0;
        if (said != rows[i].said || (!said && text && *text))
            fail_msg("row %zu: %s", i, text);
        assert_int_equal(world.again_ms, rows[i].again_ms);
        assert_int_equal(end.code, rows[i].end);
        json_decref(s.job);
        json_decref(c.limits);
        json_decref(world.pods.body);
    }
}

/* The spec is read once, and nothing is judged before. */
static void limits_that_are_not_known_yet(void **state)
{
    CLEANUP(buf_done) struct buf words = BUF_INIT;
    struct drarun_error end = {0};
    struct controller c = {.limits = json_object()};
    struct sight s = {.c = &c, .job = quoted_json(JOB(STARTED), 0)};
    (void)state;
    snprintf(s.key, sizeof s.key, "a/x");
    world.now_ms = 900000;
    world.has_spec = false;
    s.spec.timeouts.allocation = 1000;
    starting_words(&s, &words, &end);
    assert_int_equal(end.code, 0);
    assert_int_equal(json_object_size(c.limits), 0);
    world.has_spec = true;
    starting_words(&s, &words, &end);
    assert_int_equal(end.code, ETIME);
    world.has_spec = false; /* it is noted */
    s.spec.timeouts.allocation = 0;
    end.code = 0;
    starting_words(&s, &words, &end);
    assert_int_equal(end.code, ETIME);
    json_decref(s.job);
    json_decref(c.limits);
}

/* While their list is awaited nothing is said of them. */
static void pods_that_are_asked_for(void **state)
{
    CLEANUP(buf_done) struct buf words = BUF_INIT;
    struct drarun_error end = {0};
    struct controller c = {.limits = json_object()};
    struct sight s = {.c = &c, .job = quoted_json(WITH_POD, 0)};
    (void)state;
    world.waits = true;
    world.now_ms = 20000;
    world.again_ms = -1;
    world.pods = (struct sight_answer){0};
    assert_null(starting_words(&s, &words, &end));
    assert_int_equal(world.again_ms, -1);
    world.waits = false;
    json_decref(s.job);
    json_decref(c.limits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_without_a_pod),
        cmocka_unit_test(launchers_whose_pod_does_not_start),
        cmocka_unit_test(limits_that_are_not_known_yet),
        cmocka_unit_test(pods_that_are_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
