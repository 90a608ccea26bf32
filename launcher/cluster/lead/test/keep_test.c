/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the shell of an allocation is there. The clock and the API server are the test's. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "launcher/cluster/client/heartbeat.h"
#include "launcher/cluster/lead/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

#define BEGIN 5000000

static struct {
    int64_t now_ms;
    json_t *owner;       /* the launcher's Job, as the watch has it */
    int deaf;            /* errno of the watch; 0: none */
    const char *trouble; /* it cannot watch */
    kube_call_fn fn;     /* of the call that is under way, or NULL */
    void *arg;
    int calls, refusal;
    struct buf said;
} world;

int __wrap_clock_gettime(clockid_t id, struct timespec *ret_now);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret_now)
{
    (void)id;
    *ret_now =
        (struct timespec){.tv_sec = world.now_ms / 1000, .tv_nsec = world.now_ms % 1000 * 1000000};
    return 0;
}

const json_t *__wrap_board_owner(const struct board *board);
const json_t *__wrap_board_owner(const struct board *board)
{
    (void)board;
    return world.owner;
}

int __wrap_board_check(const struct board *board, struct drarun_error *err);
int __wrap_board_check(const struct board *board, struct drarun_error *err)
{
    (void)board, (void)err;
    return -world.deaf;
}

const char *__wrap_board_trouble(const struct board *board);
const char *__wrap_board_trouble(const struct board *board)
{
    (void)board;
    return world.trouble;
}

int __wrap_kube_get(struct kube_client *client, const struct kube_target *target, kube_call_fn fn,
                    void *arg, struct kube_call **ret_call, struct drarun_error *err);
int __wrap_kube_get(struct kube_client *client, const struct kube_target *target, kube_call_fn fn,
                    void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    (void)client;
    assert_ptr_equal(target->resource, &kube_jobs);
    assert_string_equal(target->namespace_, "team");
    assert_string_equal(target->name, "train");
    world.calls++;
    if (world.refusal)
        return error_set(err, world.refusal, "no");
    world.fn = fn;
    world.arg = arg;
    *ret_call = (struct kube_call *)&world;
    return 0;
}

static void on_line(void *arg, const struct log_line *line)
{
    (void)arg;
    if (line->level <= LOG_NORMAL)
        buf_add(&world.said, line->text + line->prefix, line->length - line->prefix);
}

static json_t *owner_with(const char *word)
{
    return word ? json_pack("{s:{s:{s:s}}}", "metadata", "annotations", HEARTBEAT_ANNOTATION, word)
                : json_pack("{s:{}}", "metadata");
}

static void hear(const char *word)
{
    json_decref(world.owner);
    world.owner = owner_with(word);
}

static void answer(const char *word, int code, unsigned tries)
{
    CLEANUP(json_decrefp) json_t *body = owner_with(word);
    struct drarun_error err = {0};
    const struct kube_answer got = {.status = 200, .body = code ? NULL : body, .tries = tries};
    kube_call_fn fn = world.fn;
    assert_non_null(fn);
    world.fn = NULL;
    error_set(&err, code, "no");
    fn(&got, code ? &err : NULL, world.arg);
}

struct made {
    struct job_spec spec;
    struct lead_options options;
    struct cluster cluster;
    struct lead lead;
};

/* Its shell was heard just now. */
static void made_init(struct made *m, uint32_t keep_s)
{
    *m = (struct made){.spec = {.name = "train"},
                       .options = {.namespace = "team", .keep_s = keep_s}};
    m->lead = (struct lead){.cluster = &m->cluster, .options = &m->options, .spec = &m->spec};
    memset(&world, 0, sizeof world);
    world.now_ms = BEGIN;
    hear("1");
    log_divert(on_line, NULL);
    lead_look_for_shell(&m->lead);
}

static void made_done(void)
{
    log_divert(NULL, NULL);
    json_decref(world.owner);
    buf_done(&world.said);
}

static void look(struct made *m, int64_t now_ms)
{
    world.now_ms = BEGIN + now_ms;
    lead_look_for_shell(&m->lead);
}

static void no_allocation_has_no_shell(void **state)
{
    struct made m;
    (void)state;
    made_init(&m, 0);
    assert_int_equal(m.lead.allocation.heard_ms, 0);
    look(&m, 100000000);
    assert_int_equal(world.calls, 0);
    assert_false(m.lead.stop.cancelled);
    made_done();
}

/* A word that has not changed says nothing. */
static void a_shell_that_is_heard(void **state)
{
    struct made m;
    (void)state;
    made_init(&m, 60);
    assert_int_equal(m.lead.allocation.heard_ms, BEGIN);
    look(&m, 15000);
    assert_int_equal(m.lead.allocation.heard_ms, BEGIN);
    hear("2");
    look(&m, 16000);
    assert_int_equal(m.lead.allocation.heard_ms, BEGIN + 16000);
    look(&m, 75999);
    assert_int_equal(world.calls, 0);
    look(&m, 76000);
    assert_int_equal(world.calls, 1);
    look(&m, 76001); /* it is asked already */
    assert_int_equal(world.calls, 1);
    assert_false(m.lead.stop.cancelled);
    made_done();
}

/* Nobody can be heard without the API server. */
static void an_api_server_that_is_away(void **state)
{
    struct made m;
    (void)state;
    made_init(&m, 60);
    world.deaf = ETIMEDOUT;
    look(&m, 59000);
    assert_int_equal(m.lead.allocation.heard_ms, BEGIN + 59000);
    world.deaf = 0;
    world.trouble = "refused";
    look(&m, 70000);
    assert_int_equal(m.lead.allocation.heard_ms, BEGIN + 70000);
    world.trouble = NULL;
    world.refusal = ENOMEM; /* nor if it cannot be asked */
    look(&m, 130000);
    assert_int_equal(m.lead.allocation.heard_ms, BEGIN + 130000);
    assert_int_equal(world.calls, 1);
    made_done();
}

static void a_shell_that_is_silent(void **state)
{
    struct made m;
    (void)state;
    made_init(&m, 60);
    look(&m, 60000);
    answer("1", 0, 1);
    assert_true(m.lead.dirty);
    assert_int_equal(m.lead.allocation.silences, 1);
    /* the time of one more word */
    assert_int_equal(m.lead.allocation.heard_ms, BEGIN + 15000);
    look(&m, 74999);
    assert_int_equal(world.calls, 1);
    look(&m, 75000);
    assert_int_equal(world.calls, 2);
    assert_false(m.lead.stop.cancelled);
    answer("1", 0, 1);
    assert_int_equal(m.lead.allocation.silences, 2);
    look(&m, 75001);
    assert_int_equal(world.calls, 2);
    assert_true(m.lead.stop.cancelled);
    assert_false(m.lead.allocation.shell_ended);
    assert_int_equal(m.lead.stop.signo, SIGHUP);
    buf_add(&world.said, "", 1);
    assert_string_equal(
        world.said.data,
        "no heartbeat from the allocation's shell for 60 s: its workers are deleted\n");
    made_done();
}

/* What the watch did not bring, or an answer that came late, counts as a word. */
static void answers_that_are_a_word(void **state)
{
    static const struct {
        const char *word;
        int code;
        unsigned tries;
    } rows[] = {{"2", 0, 1}, {"1", 0, 2}, {"1", ETIMEDOUT, 1}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        made_init(&m, 60);
        look(&m, 60000);
        world.now_ms += 700;
        answer(rows[i].word, rows[i].code, rows[i].tries);
        assert_int_equal(m.lead.allocation.heard_ms, BEGIN + 60700);
        assert_int_equal(m.lead.allocation.silences, 0);
        assert_null(m.lead.allocation.asking);
        made_done();
    }
}

/* The same word again, which only the API server told, is none. */
static void a_word_that_was_told_before(void **state)
{
    struct made m;
    (void)state;
    made_init(&m, 60);
    look(&m, 60000);
    answer("2", 0, 1);
    look(&m, 120000);
    assert_int_equal(world.calls, 2);
    answer("2", 0, 1);
    assert_int_equal(m.lead.allocation.silences, 1);
    made_done();
}

static void a_shell_that_has_ended(void **state)
{
    struct made m;
    (void)state;
    made_init(&m, 60);
    hear(HEARTBEAT_ENDED);
    look(&m, 1);
    assert_true(m.lead.allocation.shell_ended);
    assert_false(m.lead.stop.cancelled);
    assert_int_equal(m.lead.stop.signo, SIGHUP);
    made_done();
    made_init(&m, 60);
    look(&m, 60000);
    answer(HEARTBEAT_ENDED, 0, 1);
    look(&m, 60001);
    assert_true(m.lead.allocation.shell_ended);
    assert_false(m.lead.stop.cancelled);
    made_done();
    made_init(&m, 60); /* of a launcher that ends anyway nothing is asked */
    m.lead.stop.signo = SIGTERM;
    hear(HEARTBEAT_ENDED);
    look(&m, 1);
    assert_false(m.lead.allocation.shell_ended);
    assert_int_equal(m.lead.stop.signo, SIGTERM);
    made_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_allocation_has_no_shell), cmocka_unit_test(a_shell_that_is_heard),
        cmocka_unit_test(an_api_server_that_is_away), cmocka_unit_test(a_shell_that_is_silent),
        cmocka_unit_test(answers_that_are_a_word),    cmocka_unit_test(a_word_that_was_told_before),
        cmocka_unit_test(a_shell_that_has_ended),
    };
    log_setup("t", LOG_NORMAL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
