/* SPDX-License-Identifier: Apache-2.0 */
/* Published names, as a rank of worker 0 asks for them, with what the launcher is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/unconst.h"
#include "lib/wire/copy.h"
#include "worker/host/session.h"
#include "worker/pmix/host_private.h"

static struct rig {
    struct event_base *base;
    struct agent_job job;
    struct tree tree;
    struct coll *coll;
    struct topology *topology;
    char session[64];
    struct pmix_host *host;
    bool keeps; /* the launcher can keep names for other jobs */
    unsigned published, withdrawn;
    pmix_status_t status; /* that the rank got */
} rig;

static Drarun__Wire__Launch *make_launch(void)
{
    char argv0[] = "app", *argv[] = {argv0};
    Drarun__Wire__App app = DRARUN__WIRE__APP__INIT, *apps[] = {&app};
    Drarun__Wire__Block block = DRARUN__WIRE__BLOCK__INIT, *blocks[] = {&block};
    Drarun__Wire__Worker worker = DRARUN__WIRE__WORKER__INIT, *workers[] = {&worker};
    Drarun__Wire__Launch launch = DRARUN__WIRE__LAUNCH__INIT;
    app.argv = argv;
    app.n_argv = 1;
    block.count = 3;
    worker.host = unconst("nodex");
    launch.uid = unconst("data-store-test");
    launch.radix = 8;
    launch.apps = apps;
    launch.n_apps = 1;
    launch.blocks = blocks;
    launch.n_blocks = 1;
    launch.workers = workers;
    launch.n_workers = 1;
    launch.mode = DRARUN__WIRE__LAUNCH_MODE__LAUNCH_PMIX;
    launch.session_dir = rig.session;
    launch.same_host = true;
    Drarun__Wire__Launch *copy = wire_copy(&launch.base);
    assert_non_null(copy);
    return copy;
}

static void on_failed(void *arg, const struct drarun_error *err)
{
    (void)arg;
    fail_msg("%s", err->text);
}

static void on_name(void *arg, Drarun__Wire__NameRequest *request, void *token)
{
    Drarun__Wire__NameReply reply = DRARUN__WIRE__NAME_REPLY__INIT;
    (void)arg;
    bool publish = request->action == DRARUN__WIRE__NAME_ACTION__NAME_PUBLISH;
    rig.published += publish;
    rig.withdrawn += request->action == DRARUN__WIRE__NAME_ACTION__NAME_UNPUBLISH;
    reply.good = request->action != DRARUN__WIRE__NAME_ACTION__NAME_LOOKUP;
    reply.alone = publish && !rig.keeps;
    pmix_host_named(token, &reply);
}

static void ignore_send(void *arg, uint32_t worker, const Drarun__Wire__Collective *message)
{
    (void)arg, (void)worker, (void)message;
}

static int set_up(void **state)
{
    struct drarun_error err = {0};
    struct pmix_host_owner owner = {.failed = on_failed, .name = on_name};
    (void)state;
    snprintf(rig.session, sizeof rig.session, "/tmp/data-store-test.%d", (int)getpid());
    if (mkdir(rig.session, 0700) < 0 || agent_job_init_take(&rig.job, make_launch(), &err) < 0)
        fail_msg("%s", err.text);
    rig.base = event_base_new();
    rig.tree = (struct tree){.self = 0, .size = 1, .radix = 8};
    rig.coll = coll_new(&rig.tree, &rig.job.map, ignore_send, NULL);
    rig.topology = topology_new();
    rig.host = pmix_host_new(rig.base, &rig.job, &rig.tree, rig.coll, rig.topology, rig.session,
                             &owner, &err);
    if (!rig.host || pmix_host_start(rig.host, &err) < 0)
        fail_msg("%s", err.text);
    return 0;
}

/* The host and its loop stay: the library's thread lives as long as the process. */
static int tear_down(void **state)
{
    (void)state;
    return session_remove(rig.session);
}

/* ---- the rank ---- */

static void on_answer(pmix_status_t status, void *cbdata)
{
    (void)cbdata;
    rig.status = status;
}

static struct upcall *request_new(enum upcall_kind kind, uint32_t rank)
{
    struct upcall *upcall = calloc(1, sizeof *upcall);
    assert_non_null(upcall);
    upcall->kind = kind;
    upcall->op_cb = on_answer;
    PMIX_LOAD_PROCID(&upcall->proc, rig.job.groups[0]->nspace, rank);
    rig.status = PMIX_ERROR;
    return upcall;
}

static void publish(const char *key)
{
    struct upcall *upcall = request_new(UPCALL_PUBLISH, 0);
    PMIX_INFO_CREATE(upcall->info, 1);
    assert_non_null(upcall->info);
    upcall->info_count = 1;
    PMIX_INFO_LOAD(&upcall->info[0], key, "port", PMIX_STRING);
    pmix_on_publish(rig.host, upcall);
    assert_int_equal(rig.status, PMIX_SUCCESS);
}

static void unpublish(const char *key)
{
    struct upcall *upcall = request_new(UPCALL_UNPUBLISH, 0);
    upcall->keys = calloc(2, sizeof *upcall->keys);
    assert_non_null(upcall->keys);
    upcall->keys[0] = strdup(key);
    pmix_on_unpublish(rig.host, upcall);
    assert_int_equal(rig.status, PMIX_SUCCESS);
}

/* For one look-up. */
static pmix_status_t publish_once(uint32_t rank, const char *key, const char *value)
{
    struct upcall *upcall = request_new(UPCALL_PUBLISH, rank);
    pmix_persistence_t once = PMIX_PERSIST_FIRST_READ;
    PMIX_INFO_CREATE(upcall->info, 2);
    assert_non_null(upcall->info);
    upcall->info_count = 2;
    PMIX_INFO_LOAD(&upcall->info[0], key, value, PMIX_STRING);
    PMIX_INFO_LOAD(&upcall->info[1], PMIX_PERSISTENCE, &once, PMIX_PERSIST);
    pmix_on_publish(rig.host, upcall);
    return rig.status;
}

static void on_found(pmix_status_t status, pmix_pdata_t data[], size_t count, void *cbdata)
{
    char *found = cbdata;
    const char *text = status == PMIX_SUCCESS && count == 1 ? data[0].value.data.string : "error";
    snprintf(found, 16, "%s", text);
}

/* found: what the look-up has found, or "error", once it is answered; "" until then. */
static void await_key(uint32_t rank, const char *key, int timeout_s, char found[16])
{
    struct upcall *upcall = request_new(UPCALL_LOOKUP, rank);
    upcall->op_cb = NULL;
    upcall->lookup_cb = on_found;
    upcall->cbdata = found;
    upcall->keys = calloc(2, sizeof *upcall->keys);
    assert_non_null(upcall->keys);
    upcall->keys[0] = strdup(key);
    PMIX_INFO_CREATE(upcall->info, 2);
    assert_non_null(upcall->info);
    upcall->info_count = 2;
    PMIX_INFO_LOAD(&upcall->info[0], PMIX_WAIT, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&upcall->info[1], PMIX_TIMEOUT, &timeout_s, PMIX_INT);
    found[0] = 0;
    pmix_on_lookup(rig.host, upcall);
}

/* Ranks 1 and 2 connect to a port of rank 0. */
static void each_caller_gets_its_answer(void **state)
{
    char zero[16], one[16], two[16];
    (void)state;
    assert_int_equal(publish_once(1, "port:connect", "one"), PMIX_SUCCESS);
    assert_int_equal(publish_once(2, "port:connect", "two"), PMIX_SUCCESS);
    assert_int_equal(publish_once(2, "port:connect", "again"), PMIX_ERR_DUPLICATE_KEY);
    await_key(2, "port:accept", 0, two);
    assert_int_equal(publish_once(0, "port:accept", "first"), PMIX_SUCCESS);
    assert_string_equal(two, "");
    await_key(0, "port:connect", 0, zero);
    assert_string_equal(zero, "one");
    assert_string_equal(two, "");
    assert_int_equal(publish_once(0, "port:accept", "second"), PMIX_SUCCESS);
    await_key(0, "port:connect", 0, zero);
    assert_string_equal(zero, "two");
    assert_string_equal(two, "second");
    await_key(1, "port:accept", 0, one); /* late */
    assert_string_equal(one, "first");
}

/* Rank 0 waits already when they come. */
static void the_first_caller_is_accepted(void **state)
{
    char zero[16], one[16], two[16];
    (void)state;
    assert_int_equal(publish_once(0, "port:accept", "zero"), PMIX_SUCCESS);
    await_key(0, "port:connect", 0, zero);
    assert_int_equal(publish_once(2, "port:connect", "two"), PMIX_SUCCESS);
    assert_string_equal(zero, "two");
    assert_int_equal(publish_once(1, "port:connect", "one"), PMIX_SUCCESS);
    await_key(1, "port:accept", 1, one);
    assert_string_equal(one, "");
    await_key(2, "port:accept", 0, two);
    assert_string_equal(two, "zero");
    while (!one[0]) /* rank 1 waits for 1 s */
        event_base_loop(rig.base, EVLOOP_ONCE);
    assert_string_equal(one, "error");
}

/* Rank 1 did above. */
static void who_gives_up_is_not_accepted(void **state)
{
    char zero[16], two[16];
    (void)state;
    assert_int_equal(publish_once(0, "port:accept", "zero"), PMIX_SUCCESS);
    await_key(0, "port:connect", 0, zero);
    assert_string_equal(zero, "");
    assert_int_equal(publish_once(2, "port:connect", "two"), PMIX_SUCCESS);
    assert_string_equal(zero, "two");
    await_key(2, "port:accept", 0, two);
    assert_string_equal(two, "zero");
}

static void the_launcher_withdraws_what_it_keeps(void **state)
{
    (void)state;
    rig.keeps = true;
    publish("kept");
    assert_int_equal(rig.published, 1);
    unpublish("kept");
    assert_int_equal(rig.withdrawn, 1);
}

static void the_launcher_withdraws_nothing_that_it_could_not_keep(void **state)
{
    (void)state;
    rig.keeps = false;
    rig.published = rig.withdrawn = 0;
    publish("alone");
    assert_int_equal(rig.published, 1);
    unpublish("alone");
    assert_int_equal(rig.withdrawn, 0);
    publish("alone"); /* it is gone all the same */
}

/* An answer that nobody has fetched, and the next call of the same rank. */
static void a_name_is_withdrawn_with_all_its_values(void **state)
{
    char zero[16], one[16], two[16];
    (void)state;
    assert_int_equal(publish_once(1, "gone:connect", "one"), PMIX_SUCCESS);
    assert_int_equal(publish_once(0, "gone:accept", "answer"), PMIX_SUCCESS);
    await_key(0, "gone:connect", 0, zero);
    assert_string_equal(zero, "one");
    assert_int_equal(publish_once(0, "gone:accept", "call"), PMIX_SUCCESS);
    unpublish("gone:accept");
    await_key(1, "gone:accept", 1, one);
    await_key(2, "gone:accept", 1, two);
    while (!one[0] || !two[0]) /* 1 s */
        event_base_loop(rig.base, EVLOOP_ONCE);
    assert_string_equal(one, "error");
    assert_string_equal(two, "error");
}

/* For one of two keys; the seconds have another type than others give them. */
static void await_either(uint32_t rank, const char *one, const char *two, uint32_t timeout_s,
                         char found[16])
{
    struct upcall *upcall = request_new(UPCALL_LOOKUP, rank);
    int either = 1;
    upcall->op_cb = NULL;
    upcall->lookup_cb = on_found;
    upcall->cbdata = found;
    upcall->keys = calloc(3, sizeof *upcall->keys);
    assert_non_null(upcall->keys);
    upcall->keys[0] = strdup(one);
    upcall->keys[1] = strdup(two);
    PMIX_INFO_CREATE(upcall->info, 2);
    assert_non_null(upcall->info);
    upcall->info_count = 2;
    PMIX_INFO_LOAD(&upcall->info[0], PMIX_WAIT, &either, PMIX_INT);
    PMIX_INFO_LOAD(&upcall->info[1], PMIX_TIMEOUT, &timeout_s, PMIX_UINT32);
    found[0] = 0;
    pmix_on_lookup(rig.host, upcall);
}

static void a_look_up_waits_for_as_many_as_it_wants(void **state)
{
    char one[16], two[16];
    (void)state;
    await_either(1, "left", "right", 0, one);
    assert_string_equal(one, "");
    publish("right");
    assert_string_equal(one, "port");
    await_either(1, "right", "left", 0, one);
    assert_string_equal(one, "port");
    await_either(2, "never", "neither", 1, two);
    assert_string_equal(two, "");
    while (!two[0]) /* 1 s */
        event_base_loop(rig.base, EVLOOP_ONCE);
    assert_string_equal(two, "error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_launcher_withdraws_what_it_keeps),
        cmocka_unit_test(the_launcher_withdraws_nothing_that_it_could_not_keep),
        cmocka_unit_test(each_caller_gets_its_answer),
        cmocka_unit_test(the_first_caller_is_accepted),
        cmocka_unit_test(who_gives_up_is_not_accepted),
        cmocka_unit_test(a_name_is_withdrawn_with_all_its_values),
        cmocka_unit_test(a_look_up_waits_for_as_many_as_it_wants),
    };
    int failed = cmocka_run_group_tests(tests, set_up, tear_down);
    fflush(NULL);
    _exit(failed != 0); /* the library is not finalized: that can hang */
}
