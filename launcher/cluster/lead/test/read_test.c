/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the cluster once the workers are up. The cluster is the test's: each turn of the
 * loop brings what it has for the questions that are open. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/cluster/lead/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/test/quoted_json.h"
#include "lib/kube/list.h"

static struct {
    struct buf text;
    kube_call_fn fn; /* of the claims that were asked for */
    void *arg;
    const char *claims; /* that come; NULL: they are refused */
    struct cluster_read *domain;
    const char *object; /* the ComputeDomain; NULL: it is refused */
    bool unread;        /* the facts are being read */
    bool stops;         /* a signal comes meanwhile */
    struct lead *lead;
    struct pod_state workers[2];
    json_t *labels;        /* of nodes; NULL: not known */
    struct slices *slices; /* likewise */
    const char *board;     /* the workers' claims */
} world;

static void note(const char *text)
{
    buf_printf(&world.text, "%s%s", world.text.len ? "; " : "", text);
}

int __wrap_kube_list(struct kube_client *client, const struct kube_target *target,
                     const struct kube_select *select, kube_call_fn fn, void *arg,
                     struct kube_listing **ret_listing, struct drarun_error *err);
int __wrap_kube_list(struct kube_client *client, const struct kube_target *target,
                     const struct kube_select *select, kube_call_fn fn, void *arg,
                     struct kube_listing **ret_listing, struct drarun_error *err)
{
    (void)client, (void)select, (void)err;
    assert_string_equal(target->resource->plural, "resourceclaims");
    assert_string_equal(target->namespace_, "team");
    assert_string_equal(target->resource->version, "v1beta2");
    note("claims");
    world.fn = fn;
    world.arg = arg;
    *ret_listing = (struct kube_listing *)&world;
    return 0;
}

void __wrap_kube_list_cancel(struct kube_listing *listing);
void __wrap_kube_list_cancel(struct kube_listing *listing)
{
    if (listing)
        note("cancel");
}

int __wrap_cluster_read_start(struct cluster *cluster, const struct kube_target *target,
                              struct cluster_read *read, struct drarun_error *err);
int __wrap_cluster_read_start(struct cluster *cluster, const struct kube_target *target,
                              struct cluster_read *read, struct drarun_error *err)
{
    (void)cluster, (void)err;
    assert_ptr_equal(target->resource, &kube_compute_domains);
    assert_string_equal(target->namespace_, "team");
    note(target->name);
    world.domain = read;
    read->call = (struct kube_call *)&world;
    return 0;
}

void __wrap_kube_call_cancel(struct kube_call *call);
void __wrap_kube_call_cancel(struct kube_call *call)
{
    if (call)
        note("cancel");
}

void __wrap_cluster_turn(struct cluster *cluster, int64_t ms);
void __wrap_cluster_turn(struct cluster *cluster, int64_t ms)
{
    struct drarun_error err = {0};
    struct kube_answer answer = {.status = 200};
    (void)cluster;
    assert_int_equal(ms, KUBE_CALL_MS);
    note("turn");
    if (world.stops) {
        world.lead->stop.signo = 15;
        return;
    }
    if (world.fn) {
        CLEANUP(json_decrefp) json_t *body = world.claims ? quoted_json(world.claims, 0) : NULL;
        kube_call_fn fn = world.fn;
        world.fn = NULL;
        answer.body = body;
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, EACCES, "403");
        fn(&answer, body ? NULL : &err, world.arg);
    }
    if (world.domain) {
        world.domain->call = NULL;
        if (world.object)
            world.domain->body = quoted_json(world.object, 0);
        else
            error_set(&world.domain->err, ENOENT, "404");
        world.domain = NULL;
    }
    world.unread = false;
}

void __wrap_lead_look_for_shell(struct lead *lead);
void __wrap_lead_look_for_shell(struct lead *lead)
{
    (void)lead;
}

bool __wrap_facts_are_read(const struct facts *facts);
bool __wrap_facts_are_read(const struct facts *facts)
{
    (void)facts;
    return !world.unread;
}

int __wrap_facts_read_again(struct facts *facts, struct drarun_error *err);
int __wrap_facts_read_again(struct facts *facts, struct drarun_error *err)
{
    (void)facts, (void)err;
    note("again");
    world.unread = true;
    return 0;
}

const struct slices *__wrap_facts_slices(const struct facts *facts);
const struct slices *__wrap_facts_slices(const struct facts *facts)
{
    (void)facts;
    return world.slices;
}

const json_t *__wrap_facts_node_labels(const struct facts *facts);
const json_t *__wrap_facts_node_labels(const struct facts *facts)
{
    (void)facts;
    return world.labels;
}

const struct pod_state *__wrap_board_workers(struct board *board, uint32_t attempt);
const struct pod_state *__wrap_board_workers(struct board *board, uint32_t attempt)
{
    (void)board, (void)attempt;
    return world.workers;
}

json_t *__wrap_board_claims(struct board *board, uint32_t attempt);
json_t *__wrap_board_claims(struct board *board, uint32_t attempt)
{
    (void)board, (void)attempt;
    return quoted_json(world.board, 0);
}

static void on_line(void *arg, const struct log_line *line)
{
    char text[512];
    (void)arg;
    snprintf(text, sizeof text, "log %.*s", (int)(line->length - line->prefix - 1),
             line->text + line->prefix);
    if (line->level <= LOG_NORMAL)
        note(text);
}

static void is_done(const char *expected)
{
    assert_string_equal(world.text.data ? world.text.data : "", expected);
    buf_reset(&world.text);
}

struct made {
    struct job_spec spec;
    struct lead_options options;
    struct cluster cluster;
    struct lead lead;
};

static void made_init(struct made *m, bool domain, bool facts)
{
    *m = (struct made){.spec = {.name = "train", .workers = 2},
                       .options = {.namespace = "team"},
                       .cluster = {.api = CLAIMS_API_V1BETA2}};
    m->spec.compute_domain = domain ? json_object() : NULL;
    m->lead = (struct lead){.cluster = &m->cluster, .options = &m->options, .spec = &m->spec};
    m->lead.facts = facts ? (struct facts *)m : NULL;
    memset(&world, 0, sizeof world);
    world.lead = &m->lead;
    world.claims = "{'items':[]}";
    world.board = "[[],[]]";
    world.workers[0] = (struct pod_state){.node = "n0"};
    world.workers[1] = (struct pod_state){.node = "n1"};
    log_divert(on_line, NULL);
}

static void made_done(struct made *m)
{
    log_divert(NULL, NULL);
    json_decref((json_t *)m->spec.compute_domain);
    json_decref(m->lead.domain.claims);
    json_decref(m->lead.domain.object);
    json_decref(world.labels);
    buf_done(&world.text);
}

/* A job without claims by name asks for nothing. */
static void jobs_that_ask_for_nothing(void **state)
{
    struct made m;
    struct drarun_error err = {0};
    (void)state;
    made_init(&m, false, false);
    assert_int_equal(lead_read(&m.lead, &err), 0);
    is_done("");
    made_done(&m);
    made_init(&m, false, true);
    assert_int_equal(lead_read(&m.lead, &err), 0);
    is_done("");
    made_done(&m);
}

/* NVIDIA's controller tells the cliques to whom Nodes are not shown. */
static void cliques_of_a_domain(void **state)
{
    struct made m;
    struct drarun_error err = {0};
    (void)state;
    made_init(&m, true, false);
    world.claims = "{'items':[{'metadata':{'name':'c'}}]}";
    world.object = "{'status':{'nodes':[]}}";
    assert_int_equal(lead_read(&m.lead, &err), 0);
    is_done("claims; turn; train-domain; turn");
    assert_int_equal(json_array_size(m.lead.domain.claims), 1);
    assert_non_null(json_object_get(m.lead.domain.object, "status"));
    made_done(&m);
    made_init(&m, true, true); /* Nodes may be read, and tell nothing */
    world.object = "{'status':{'nodes':[]}}";
    assert_int_equal(lead_read(&m.lead, &err), 0);
    is_done("claims; turn; train-domain; turn");
    made_done(&m);
    made_init(&m, true, true);
    world.labels = quoted_json("{'n0':{},'n1':{}}", 0);
    assert_int_equal(lead_read(&m.lead, &err), 0);
    is_done("claims; turn");
    assert_null(m.lead.domain.object);
    made_done(&m);
}

static void domains_that_cannot_be_read(void **state)
{
    struct made m;
    struct drarun_error err = {0};
    (void)state;
    made_init(&m, true, false);
    assert_int_equal(lead_read(&m.lead, &err), 0);
    is_done("claims; turn; train-domain; turn; log NVLink cliques are not known, ranks are in the "
            "order of workers: 404");
    assert_null(m.lead.domain.object);
    made_done(&m);
}

/* Without them the ranks cannot be planned. */
static void claims_that_cannot_be_read(void **state)
{
    struct made m;
    struct drarun_error err = {0};
    (void)state;
    made_init(&m, true, false);
    world.claims = NULL;
    assert_int_equal(lead_read(&m.lead, &err), -EACCES);
    assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
    assert_string_equal(err.text, "the claims that the workers' pods name: 403");
    is_done("claims; turn");
    made_done(&m);
    made_init(&m, true, false);
    m.cluster.api = 0; /* which the cluster has not */
    world.object = "{}";
    assert_int_equal(lead_read(&m.lead, &err), 0);
    is_done("train-domain; turn");
    made_done(&m);
}

static void a_launcher_that_is_stopped(void **state)
{
    struct made m;
    struct drarun_error err = {0};
    (void)state;
    made_init(&m, true, false);
    world.stops = true;
    assert_int_equal(lead_read(&m.lead, &err), -EINTR);
    is_done("claims; turn; cancel");
    made_done(&m);
    made_init(&m, true, false);
    m.cluster.api = 0;
    world.stops = true;
    assert_int_equal(lead_read(&m.lead, &err), -EINTR);
    is_done("train-domain; turn; cancel");
    made_done(&m);
}

/* Facts are read again for nodes and devices that have come since, and only for those. */
static void nodes_that_have_come(void **state)
{
    static const struct {
        const char *labels, *second; /* NULL: not known */
        bool again;
    } rows[] = {
        {"{'n0':{},'n1':{}}", "n1", false}, {"{'n0':{}}", "n1", true}, {"{'n1':{}}", "n1", true},
        {"{'n0':{}}", NULL, false},         {NULL, "n1", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        struct drarun_error err = {0};
        made_init(&m, false, true);
        world.labels = rows[i].labels ? quoted_json(rows[i].labels, 0) : NULL;
        world.workers[1].node = rows[i].second;
        assert_int_equal(lead_read(&m.lead, &err), 0);
        is_done(rows[i].again ? "again; turn" : "");
        made_done(&m);
    }
}

#define RESULT(device)                                                                             \
    "{'metadata':{'name':'c','uid':'" device "'},'status':{'allocation':{'devices':{'results':["   \
    "{'request':'gpu','driver':'d.io','pool':'p','device':'" device "'}]}}}}"

static void devices_that_have_come(void **state)
{
    static const struct {
        const char *board;
        bool again;
    } rows[] = {
        {"[[" RESULT("g0") "],[" RESULT("g1") "]]", false},
        {"[[" RESULT("g0") "],[" RESULT("g2") "]]", true},
        {"[[" RESULT("g2") "],[" RESULT("g0") "]]", true},
        {"[[" RESULT("g0") "," RESULT("g2") "],[]]", true},
        {"[[],[]]", false},
        {"[[{'metadata':{'name':'c'}}],[]]", false}, /* the plan says what is wrong with it */
    };
    struct slices slices;
    struct drarun_error err = {0};
    CLEANUP(json_decrefp)
    json_t *list = quoted_json("[{'spec':{'driver':'d.io','nodeName':'n0','pool':{'name':'p',"
                               "'generation':1,'resourceSliceCount':1},'devices':[{'name':'g0'},"
                               "{'name':'g1'}]}}]",
                               0);
    (void)state;
    assert_int_equal(slices_read(list, &slices, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        made_init(&m, false, true);
        world.slices = &slices;
        world.board = rows[i].board;
        assert_int_equal(lead_read(&m.lead, &err), 0);
        is_done(rows[i].again ? "again; turn" : "");
        made_done(&m);
    }
    slices_done(&slices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_that_ask_for_nothing),   cmocka_unit_test(cliques_of_a_domain),
        cmocka_unit_test(domains_that_cannot_be_read), cmocka_unit_test(claims_that_cannot_be_read),
        cmocka_unit_test(a_launcher_that_is_stopped),  cmocka_unit_test(nodes_that_have_come),
        cmocka_unit_test(devices_that_have_come),
    };
    log_setup("t", LOG_NORMAL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
