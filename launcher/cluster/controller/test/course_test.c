/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a job whose objects were made. What a look asks for and writes is the test's,
 * which notes it. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/cluster/controller/sight.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/test/quoted_json.h"
#include "lib/base/timestamp.h"

#define ENDED "2026-11-30T12:00:00Z"

static struct {
    struct buf text;
    int64_t now_ms;       /* since ENDED */
    const char *document; /* of its launcher; NULL: it has none */
    bool unread;          /* that cannot be read */
    bool gone;            /* the launcher's Job is, when it is asked for */
    int pods;             /* that remain, or were left; or -errno */
    bool waits;           /* for them */
    const char *starting;
    struct drarun_error end; /* of a launcher that does not start */
    struct sight_answer launchers;
    int refusal; /* of what is written or deleted */
} world;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    buf_printf(&world.text, "%s%s", world.text.len ? "; " : "", text);
}

int64_t __wrap_controller_now(const struct controller *c);
int64_t __wrap_controller_now(const struct controller *c)
{
    int64_t ended = 0;
    (void)c;
    assert_true(timestamp_parse(ENDED, &ended));
    return ended + world.now_ms;
}

void __wrap_sight_again(const struct sight *s, int64_t ms);
void __wrap_sight_again(const struct sight *s, int64_t ms)
{
    (void)s;
    note("again %" PRId64, ms);
}

int64_t __wrap_sight_pause_ms(struct sight *s);
int64_t __wrap_sight_pause_ms(struct sight *s)
{
    (void)s;
    return 1234;
}

void __wrap_sight_await_end(struct sight *s);
void __wrap_sight_await_end(struct sight *s)
{
    (void)s;
    note("await");
}

void __wrap_sight_delete(struct sight *s, const struct kube_target *target, const char *uid,
                         sight_written_fn fn);
void __wrap_sight_delete(struct sight *s, const struct kube_target *target, const char *uid,
                         sight_written_fn fn)
{
    struct drarun_error err = {0};
    note("delete %s %s/%s %s", target->resource->plural, target->namespace_, target->name, uid);
    error_set(&err, world.refusal, "refused");
    fn(s, world.refusal ? &err : NULL);
}

static const char *stage_name(enum drajob_stage stage)
{
    return stage == DRAJOB_LED          ? "led"
           : stage == DRAJOB_LOST       ? "lost"
           : stage == DRAJOB_SUSPENDED  ? "suspended"
           : stage == DRAJOB_SUSPENDING ? "suspending"
                                        : "another";
}

void __wrap_sight_tell(struct sight *s, const struct drajob_input *said, sight_told_fn told);
void __wrap_sight_tell(struct sight *s, const struct drajob_input *said, sight_told_fn told)
{
    (void)s, (void)told;
    assert_string_equal(said->launcher, "j");
    assert_int_equal(said->written_ms, 77);
    note("tell %s%s", stage_name(said->stage), said->doc ? " with a document" : "");
    if (said->reason)
        note("%s %s %d", said->reason, said->result, said->exit);
    if (said->text)
        note("%s", said->text);
    if (said->silence)
        note("silent: %s", said->silence);
}

void __wrap_sight_tell_stage(struct sight *s, enum drajob_stage stage, const char *reason,
                             const char *text, sight_told_fn told);
void __wrap_sight_tell_stage(struct sight *s, enum drajob_stage stage, const char *reason,
                             const char *text, sight_told_fn told)
{
    (void)s, (void)reason, (void)text, (void)told;
    note("tell %s", stage_name(stage));
}

void __wrap_sight_write_status(struct sight *s, json_t *status_take, sight_written_fn fn);
void __wrap_sight_write_status(struct sight *s, json_t *status_take, sight_written_fn fn)
{
    struct drarun_error err = {0};
    json_decref(status_take);
    note("write");
    error_set(&err, world.refusal, "refused");
    fn(s, world.refusal ? &err : NULL);
}

void __wrap_sight_write_again(const struct sight *s, const struct drarun_error *err);
void __wrap_sight_write_again(const struct sight *s, const struct drarun_error *err)
{
    (void)s;
    note("write again %d", err->code);
}

bool __wrap_sight_has_spec(struct sight *s);
bool __wrap_sight_has_spec(struct sight *s)
{
    (void)s;
    return true;
}

bool __wrap_sight_find_document(struct sight *s, const char *launcher, json_t **ret_doc);
bool __wrap_sight_find_document(struct sight *s, const char *launcher, json_t **ret_doc)
{
    (void)s, (void)launcher;
    note("document");
    if (world.unread)
        return false;
    if (world.document)
        *ret_doc = quoted_json(world.document, 0);
    return true;
}

int64_t __wrap_sight_document_written_ms(const struct sight *s);
int64_t __wrap_sight_document_written_ms(const struct sight *s)
{
    (void)s;
    return 77;
}

bool __wrap_sight_job_is_gone(struct sight *s, const char *uid);
bool __wrap_sight_job_is_gone(struct sight *s, const char *uid)
{
    (void)s;
    assert_string_equal(uid, "j");
    return world.gone;
}

const struct sight_answer *__wrap_sight_list_launchers(struct sight *s, const char *fields,
                                                       void (*trim)(json_t *pod));
const struct sight_answer *__wrap_sight_list_launchers(struct sight *s, const char *fields,
                                                       void (*trim)(json_t *pod))
{
    size_t i;
    json_t *pod;
    (void)s;
    assert_null(fields);
    json_array_foreach(json_object_get(world.launchers.body, "items"), i, pod) trim(pod);
    return world.waits ? NULL : &world.launchers;
}

static int count_pods(struct sight *s, const char *which, struct drarun_error *err)
{
    note("%s", which);
    s->waits = world.waits;
    return world.pods < 0 ? error_set(err, -world.pods, "no list") : world.pods;
}

int __wrap_sight_pods_remain(struct sight *s, struct drarun_error *err);
int __wrap_sight_pods_remain(struct sight *s, struct drarun_error *err)
{
    return count_pods(s, "remain", err);
}

int __wrap_sight_count_late_pods(struct sight *s, struct drarun_error *err);
int __wrap_sight_count_late_pods(struct sight *s, struct drarun_error *err)
{
    return count_pods(s, "late", err);
}

int __wrap_sight_count_left_pods(struct sight *s, struct drarun_error *err);
int __wrap_sight_count_left_pods(struct sight *s, struct drarun_error *err)
{
    return count_pods(s, "left", err);
}

const char *__wrap_starting_words(struct sight *s, struct buf *words, struct drarun_error *end);
const char *__wrap_starting_words(struct sight *s, struct buf *words, struct drarun_error *end)
{
    (void)s, (void)words;
    *end = world.end;
    return world.starting;
}

static void on_line(void *arg, const struct log_line *line)
{
    (void)arg;
    if (line->level <= LOG_NORMAL)
        note("log %.*s", (int)(line->length - line->prefix - 1), line->text + line->prefix);
}

static void is_done(const char *expected)
{
    assert_string_equal(world.text.data ? world.text.data : "", expected);
    buf_reset(&world.text);
}

/* ---- a look ---- */

struct made {
    struct controller_options options;
    struct controller c;
    struct sight s;
};

static void made_init(struct made *m, const char *object, const char *job)
{
    *m = (struct made){.c = {.late = json_object(),
                             .made = json_object(),
                             .silent = json_object(),
                             .going = json_object()}};
    m->c.options = &m->options;
    m->s = (struct sight){.c = &m->c,
                          .key = "team/train",
                          .namespace = "team",
                          .name = "train",
                          .object = quoted_json(object, 0),
                          .job = job ? quoted_json(job, 0) : NULL};
    m->s.own_job = job != NULL;
    buf_done(&world.text);
    memset(&world, 0, sizeof world);
    log_divert(on_line, NULL);
}

static void made_done(struct made *m)
{
    log_divert(NULL, NULL);
    json_decref(m->s.object);
    json_decref(m->s.job);
    json_decref(m->s.map);
    json_decref(m->c.late);
    json_decref(m->c.made);
    json_decref(m->c.silent);
    json_decref(m->c.going);
    json_decref(world.launchers.body);
    world.launchers.body = NULL;
    buf_done(&world.text);
}

#define OBJECT "{'metadata':{'uid':'o'},'spec':{}}"
#define SUSPENDED "{'metadata':{'uid':'o'},'spec':{'suspend':true}}"
#define JOB(more) "{'metadata':{'uid':'j'},'status':{" more "}}"
#define CONDITION(type, more) "'conditions':[{'type':'" type "','status':'True'" more "}]"
#define GOING "{'metadata':{'uid':'j','deletionTimestamp':'" ENDED "'}}"

static void what_becomes_of_a_job(void **state)
{
    static const struct {
        const char *object, *job;
        bool map; /* the watch has its document */
        const char *document, *starting;
        bool unread, gone;
        const char *done;
    } rows[] = {
        {OBJECT, JOB(""), false, NULL, "waiting", false, false, "tell led; waiting"},
        {OBJECT, JOB(""), false, NULL, NULL, false, false, "tell led"},
        {OBJECT, JOB(""), true, "{'phase':'x'}", "waiting", false, false,
         "document; tell led with a document"},
        {OBJECT, JOB(""), true, "{'exit':0}", NULL, false, false,
         "document; tell led with a document"},
        {OBJECT, JOB(""), true, NULL, NULL, true, false, "document"},
        {OBJECT, JOB(CONDITION("Complete", "")), false, NULL, NULL, false, false,
         "document; tell lost; LauncherCompleted succeeded 0; all ranks have ended; their launcher "
         "could not write that to its document"},
        {OBJECT, JOB(CONDITION("Complete", "")), false, "{'exit':3}", NULL, false, false,
         "document; tell led with a document"},
        {OBJECT, JOB(CONDITION("Failed", ",'message':'too often'")), false, NULL, NULL, false,
         false, "document; tell lost; LauncherFailed failed 70; too often"},
        {OBJECT, JOB(CONDITION("Failed", "")), false, NULL, NULL, false, false,
         "document; tell lost; LauncherFailed failed 70; its launcher's Job failed"},
        {OBJECT, NULL, false, NULL, NULL, false, true,
         "tell lost; JobDeleted cancelled 130; its launcher's Job was deleted"},
        {OBJECT, NULL, false, NULL, NULL, false, false, ""},
        {OBJECT, GOING, false, NULL, NULL, false, true,
         "tell lost; JobDeleted cancelled 130; its launcher's Job was deleted"},
        {OBJECT, "{'metadata':{'uid':'other'}}", false, NULL, NULL, false, true,
         "tell lost; JobDeleted cancelled 130; its launcher's Job was deleted"},
        {SUSPENDED, JOB(CONDITION("Complete", "")), false, NULL, NULL, false, false,
         "document; tell lost; LauncherCompleted succeeded 0; all ranks have ended; their launcher "
         "could not write that to its document"},
        {SUSPENDED, JOB(CONDITION("Failed", "")), false, NULL, NULL, false, false,
         "document; delete jobs team/train j; again 500; tell suspending; await"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        made_init(&m, rows[i].object, rows[i].job);
        if (rows[i].map)
            m.s.map = quoted_json("{'metadata':{'ownerReferences':[{'uid':'j'}]}}", 0);
        world.document = rows[i].document;
        world.starting = rows[i].starting;
        world.unread = rows[i].unread;
        world.gone = rows[i].gone;
        course_follow(&m.s, "j");
        if (strcmp(world.text.data ? world.text.data : "", rows[i].done) != 0)
            fail_msg("row %zu: %s", i, world.text.data);
        made_done(&m);
    }
}

/* Why a launcher's Job failed the kubelet knows better than Kubernetes. */
static void words_of_a_launchers_pod(void **state)
{
    struct made m;
    (void)state;
    made_init(&m, OBJECT, JOB(CONDITION("Failed", ",'message':'too often'")));
    world.launchers.body = quoted_json(
        "{'items':[{'metadata':{'name':'train-x','labels':{'drarun.dev/job':'train'},"
        "'ownerReferences':[{'uid':'j','controller':true}]},'spec':{},'status':{"
        "'containerStatuses':[{'name':'mesh'},{'name':'launcher','state':{'terminated':{"
        "'exitCode':7,'reason':'Error','message':'no memory'}}}]}}]}",
        0);
    course_follow(&m.s, "j");
    is_done("document; tell lost; LauncherFailed failed 70; too often; pod train-x ended with "
            "status 7: no memory");
    world.waits = true; /* for that list */
    course_follow(&m.s, "j");
    is_done("document");
    made_done(&m);
}

static void launchers_that_do_not_start(void **state)
{
    struct made m;
    (void)state;
    made_init(&m, OBJECT, JOB(""));
    error_kind(&world.end, DRARUN_ERR_INFRASTRUCTURE, ETIME, "not within 40 s");
    course_follow(&m.s, "j");
    is_done("tell lost; LauncherNotStarted failed 70; not within 40 s");
    made_done(&m);
}

/* The last launcher is given up once it is over; one that has written since lives. */
static void launchers_that_are_silent(void **state)
{
    static const struct {
        const char *silent; /* in the book */
        const char *map;    /* the version of its document; NULL: it has none */
        bool over;
    } rows[] = {
        {"{'since':1,'text':'t','over':true}", NULL, true},
        {"{'since':1,'text':'t','over':false}", NULL, false},
        {"{'since':1,'text':'t','over':true,'map':'5'}", "5", true},
        {"{'since':1,'text':'t','over':true,'map':'5'}", "6", false},
        {"{'since':1,'text':'t','over':true}", "6", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        made_init(&m, OBJECT, JOB(""));
        json_object_set_new(m.c.silent, "team/train", quoted_json(rows[i].silent, 0));
        if (rows[i].map)
            m.s.map = json_pack("{s:{s:s}}", "metadata", "resourceVersion", rows[i].map);
        course_follow(&m.s, "j");
        is_done(rows[i].over ? "tell lost; LauncherLost failed 70; t; silent: t"
                             : "tell led; silent: t");
        made_done(&m);
    }
}

static void jobs_that_are_suspended(void **state)
{
    static const struct {
        const char *job;
        bool map, waits;
        int pods;
        const char *done;
    } rows[] = {
        {NULL, false, false, 0, "remain; tell suspended"},
        {NULL, false, false, 1, "remain; tell suspending; await"},
        {NULL, false, false, -EIO, "remain; tell suspending; await"},
        {NULL, false, true, 0, "remain"},
        {NULL, true, false, 0, "tell suspending; await"},
        {GOING, false, false, 0, "tell suspending; await"},
        {JOB(""), false, false, 0, "delete jobs team/train j; again 500; tell suspending; await"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        made_init(&m, SUSPENDED, rows[i].job);
        m.s.own_map = rows[i].map;
        world.pods = rows[i].pods;
        world.waits = rows[i].waits;
        json_object_set_new(m.c.going, "team/train", json_integer(500));
        course_suspend(&m.s);
        is_done(rows[i].done);
        bool unnoted = strcmp(rows[i].done, "remain; tell suspended") == 0;
        assert_int_equal(json_object_size(m.c.going), unnoted ? 0 : 1);
        made_done(&m);
    }
}

static void jobs_that_are_deleted(void **state)
{
    static const struct {
        int refusal;
        const char *done;
        bool made; /* it is remembered that we made it */
    } rows[] = {
        {0, "delete jobs team/train j; again 500", false},
        {EBUSY, "delete jobs team/train j; again 1234", true},
        {EACCES, "delete jobs team/train j; log team/train: refused; again 1234", true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        made_init(&m, OBJECT, JOB(""));
        json_object_set_new(m.c.made, "team/train", json_string("j"));
        world.refusal = rows[i].refusal;
        course_delete_job(&m.s);
        is_done(rows[i].done);
        assert_int_equal(json_object_size(m.c.made), rows[i].made);
        made_done(&m);
    }
}

/* ---- once it has ended ---- */

#define OVER(spec, reason)                                                                         \
    "{'metadata':{'uid':'o'},'spec':{" spec "},'status':{'phase':'Failed','reason':'" reason       \
    "','completionTime':'" ENDED "'}}"

/* Its Job goes 10 s after the end, where nobody leads it any more. */
static void jobs_of_lost_launchers(void **state)
{
    static const struct {
        const char *reason;
        bool own;
        int64_t now_ms;
        const char *done;
    } rows[] = {
        {"LauncherFailed", true, 9999, "again 1"},
        {"LauncherFailed", true, 10000, "delete jobs team/train j; again 500"},
        {"LauncherNotStarted", true, 10000, "delete jobs team/train j; again 500"},
        {"LauncherLost", true, 10000, "delete jobs team/train j; again 500"},
        {"LauncherLost", false, 10000, ""},
        {"RankFailed", true, 10000, ""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        char object[256];
        snprintf(object, sizeof object, OVER("", "%s"), rows[i].reason);
        made_init(&m, object, JOB(""));
        m.s.own_job = rows[i].own;
        world.now_ms = rows[i].now_ms;
        course_tidy(&m.s);
        is_done(rows[i].done);
        made_done(&m);
    }
}

/* One that has ended well goes only with workers that hold their devices. */
static void workers_that_were_left(void **state)
{
    static const struct {
        int64_t now_ms;
        int pods;
        bool waits;
        const char *done;
    } rows[] = {
        {9999, 1, false, "again 1"},
        {10000, 0, false, "left"},
        {10000, 1, true, "left"},
        {10000, 2, false,
         "left; log team/train: 2 pods were left when the job had ended: deleting its Job, and the "
         "pods with it; delete jobs team/train j; again 500"},
        {10000, -EIO, false,
         "left; log team/train: cannot look for pods that were left when the job had ended, "
         "retrying: no list; again 1234"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        made_init(&m, OVER("", "LauncherCompleted"), JOB(""));
        world.now_ms = rows[i].now_ms;
        world.pods = rows[i].pods;
        world.waits = rows[i].waits;
        course_tidy(&m.s);
        is_done(rows[i].done);
        made_done(&m);
    }
}

/* Pods that a call created after the end: it is looked for them later and later. */
static void workers_that_came_late(void **state)
{
    static const struct {
        int64_t after_ms, now_ms; /* 0: none are expected */
        int pods;
        const char *done;
        int64_t next_ms;
    } rows[] = {
        {0, 10000, 1, "", 0},
        {10000, 9999, 1, "again 1", 10000},
        {10000, 10000, 0, "late; again 10000", 20000},
        {10000, 10000, 1,
         "late; log team/train: 1 pods were created after the job ended: deleting its Job, and the "
         "pods with it; delete jobs team/train j; again 500",
         10000},
        {80000, 80000, 0, "late; again 80000", 160000},
        {119999, 160000, 0, "late; again 119999", 239998},
        {120000, 160000, 0, "late", 0},
        {160000, 160000, 0, "late", 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        made_init(&m, OVER("", "RankFailed"), JOB(""));
        if (rows[i].after_ms)
            json_object_set_new(m.c.late, "team/train", json_integer(rows[i].after_ms));
        world.now_ms = rows[i].now_ms;
        world.pods = rows[i].pods;
        course_tidy(&m.s);
        is_done(rows[i].done);
        assert_int_equal(json_integer_value(json_object_get(m.c.late, "team/train")),
                         rows[i].next_ms);
        made_done(&m);
    }
}

static void late_pods_are_expected(void **state)
{
    struct made m;
    (void)state;
    made_init(&m, OBJECT, NULL);
    course_await_late(&m.s);
    assert_int_equal(json_integer_value(json_object_get(m.c.late, "team/train")), 10000);
    made_done(&m);
}

/* The spec's time to live, else the site's. */
static void jobs_that_expire(void **state)
{
    static const struct {
        const char *spec;
        int64_t site_ms, now_ms;
        int refusal;
        const char *done;
        uint64_t expired;
    } rows[] = {
        {"", 0, 1000000, 0, "", 0},
        {"'ttlSecondsAfterFinished':60", 0, 60000, 0, "delete drajobs team/train o", 1},
        {"'ttlSecondsAfterFinished':60", 0, 59999, 0, "write", 0},
        {"'ttlSecondsAfterFinished':60", 0, 59999, ENOENT, "write", 0},
        {"'ttlSecondsAfterFinished':60", 0, 59999, EBUSY, "write; write again 16", 0},
        {"'ttlSecondsAfterFinished':60", 0, 59999, EACCES,
         "write; log team/train: cannot write the time of its deletion: refused; write again 13",
         0},
        {"", 30000, 30000, 0, "delete drajobs team/train o", 1},
        {"", 30000, 30000, EACCES,
         "delete drajobs team/train o; log team/train has expired and cannot be deleted: refused; "
         "again 1234",
         0},
        {"'ttlSecondsAfterFinished':60", 30000, 59999, 0, "write", 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        char object[256];
        snprintf(object, sizeof object, OVER("%s", "RankFailed"), rows[i].spec);
        made_init(&m, object, NULL);
        m.options.site_ttl_ms = rows[i].site_ms;
        world.now_ms = rows[i].now_ms;
        world.refusal = rows[i].refusal;
        course_tidy(&m.s);
        if (strcmp(world.text.data ? world.text.data : "", rows[i].done) != 0)
            fail_msg("row %zu: %s", i, world.text.data ? world.text.data : "");
        assert_int_equal(m.c.tally.expired, rows[i].expired);
        made_done(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_becomes_of_a_job),
        cmocka_unit_test(words_of_a_launchers_pod),
        cmocka_unit_test(launchers_that_do_not_start),
        cmocka_unit_test(launchers_that_are_silent),
        cmocka_unit_test(jobs_that_are_suspended),
        cmocka_unit_test(jobs_that_are_deleted),
        cmocka_unit_test(jobs_of_lost_launchers),
        cmocka_unit_test(workers_that_were_left),
        cmocka_unit_test(workers_that_came_late),
        cmocka_unit_test(late_pods_are_expected),
        cmocka_unit_test(jobs_that_expire),
    };
    log_setup("t", LOG_NORMAL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
