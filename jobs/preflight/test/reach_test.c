/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/preflight/preflight.h"
#include "jobs/preflight/reach.h"
#include "lib/base/cleanup.h"

#define LINES_MAX 64

/* What was sent, in order. */
struct sent {
    struct {
        uint32_t worker;
        json_t *line;
    } list[LINES_MAX];
    size_t count;
};

static void on_send(void *arg, uint32_t worker, const char *line)
{
    struct sent *sent = arg;
    assert_true(sent->count < LINES_MAX);
    sent->list[sent->count].worker = worker;
    sent->list[sent->count].line = json_loads(line, 0, NULL);
    assert_non_null(sent->list[sent->count++].line);
}

static void forget(struct sent *sent)
{
    for (size_t i = 0; i < sent->count; i++)
        json_decref(sent->list[i].line);
    sent->count = 0;
}

/* Workers with two rails each, or as many as `rails` says of the last one. */
static struct reach *begun(uint32_t workers, uint32_t rails_of_last, const uint32_t *order,
                           struct sent *sent)
{
    *sent = (struct sent){0};
    struct reach *reach = reach_new(workers, order, 7, 2000, on_send, sent);
    assert_non_null(reach);
    for (uint32_t w = 0; w < workers; w++)
        for (uint32_t r = 0; r < (w + 1 < workers ? 2 : rails_of_last); r++) {
            char device[32], address[32];
            snprintf(device, sizeof device, "mlx5_%u", r);
            snprintf(address, sizeof address, "10.0.%u.%u", r, w + 1);
            assert_int_equal(reach_add_rail(reach, w, device, 1, 3, address, NULL), 0);
        }
    assert_int_equal(reach_begin(reach), 0);
    return reach;
}

static void take(struct reach *reach, uint32_t worker, const char *line)
{
    struct drarun_error err = {0};
    if (reach_take(reach, worker, line, &err) < 0)
        fail_msg("worker %u, %s: %s", worker, line, err.text);
}

static void opens(struct reach *reach, uint32_t worker, uint32_t rail)
{
    char line[128];
    snprintf(line, sizeof line, "{\"rail\": %u, \"in\": {\"qp\": %u}, \"out\": {\"qp\": %u}}", rail,
             100 * worker + 10 * rail, 100 * worker + 10 * rail + 1);
    take(reach, worker, line);
}

static void done(struct reach *reach, uint32_t worker, uint32_t rail, const char *what)
{
    char line[64];
    snprintf(line, sizeof line, "{\"rail\": %u, \"%s\": true}", rail, what);
    take(reach, worker, line);
}

static void fails(struct reach *reach, uint32_t worker, uint32_t rail, const char *what,
                  const char *fault, const char *why)
{
    char line[192];
    snprintf(line, sizeof line,
             "{\"rail\": %u, \"%s\": false, \"fault\": \"%s\", \"code\": 5, \"why\": \"%s\"}", rail,
             what, fault, why);
    take(reach, worker, line);
}

static const struct reach_pair *pair_at(const struct reach *reach, uint32_t from, uint32_t rail)
{
    for (size_t i = 0; i < reach_pair_count(reach); i++) {
        const struct reach_pair *pair = reach_pair_at(reach, i);
        if (pair->from == from && pair->rail == rail)
            return pair;
    }
    fail_msg("no pair %u %u", from, rail);
    return NULL;
}

static json_int_t number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static void open_all(struct reach *reach, uint32_t workers)
{
    for (uint32_t w = 0; w < workers; w++)
        for (uint32_t r = 0; r < 2; r++)
            opens(reach, w, r);
}

static void reach_all_of(struct reach *reach, uint32_t from, uint32_t rail)
{
    done(reach, pair_at(reach, from, rail)->to, rail, "accepted");
    done(reach, from, rail, "wrote");
    done(reach, pair_at(reach, from, rail)->to, rail, "saw");
}

/* Each line at its time, to the right process, with the other's address; the receiver first. */
static void a_pair_from_begin_to_end(void **state)
{
    struct sent sent;
    (void)state;
    struct reach *reach = begun(2, 2, NULL, &sent);
    assert_int_equal(sent.count, 2);
    const json_t *rails = json_object_get(sent.list[1].line, "rails");
    assert_int_equal(json_array_size(rails), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(rails, 1), "device")),
                        "mlx5_1");
    assert_int_equal(number(json_array_get(rails, 1), "gid"), 3);
    forget(&sent);
    opens(reach, 0, 1);
    assert_int_equal(sent.count, 0);
    opens(reach, 1, 1);
    assert_int_equal(sent.count, 2); /* both directions */
    const json_t *accept = sent.list[1].line, *seed = json_object_get(accept, "seed");
    assert_int_equal(sent.list[1].worker, 1);
    assert_int_equal(number(json_object_get(accept, "accept"), "qp"), 11);
    done(reach, 1, 1, "accepted");
    assert_int_equal(sent.list[2].worker, 0);
    assert_int_equal(number(json_object_get(sent.list[2].line, "write"), "qp"), 110);
    assert_true(json_equal(seed, json_object_get(sent.list[2].line, "seed")));
    assert_false(json_equal(seed, json_object_get(sent.list[0].line, "seed")));
    done(reach, 0, 1, "wrote");
    assert_int_equal(pair_at(reach, 0, 1)->result, REACH_OPEN); /* the peer must see the data */
    done(reach, 1, 1, "saw");
    assert_int_equal(pair_at(reach, 0, 1)->result, REACH_REACHED);
    assert_false(reach_over(reach));
    forget(&sent);
    reach_free(reach);
}

static void all_is_well(void **state)
{
    struct sent sent;
    (void)state;
    struct reach *reach = begun(3, 2, NULL, &sent);
    open_all(reach, 3);
    for (uint32_t w = 0; w < 3; w++)
        for (uint32_t r = 0; r < 2; r++)
            reach_all_of(reach, w, r);
    assert_true(reach_over(reach));
    CLEANUP(json_decrefp) json_t *told = reach_json(reach, 12);
    json_t *expected = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:[s, s, s], s:[]}", "ms", 12,
                                 "workers", 3, "rails", 2, "pairs", 6, "reached", 6, "failed", 0,
                                 "unknown", 0, "matrix", "..", "..", "..", "broken");
    assert_true(json_equal(told, expected));
    json_decref(expected);
    forget(&sent);
    reach_free(reach);
}

/* The ring goes by ranks. */
static void rank_order(void **state)
{
    static const uint32_t order[] = {2, 0, 1};
    struct sent sent;
    (void)state;
    struct reach *reach = begun(3, 2, order, &sent);
    assert_int_equal(pair_at(reach, 2, 0)->to, 0);
    assert_int_equal(pair_at(reach, 0, 0)->to, 1);
    assert_int_equal(pair_at(reach, 1, 0)->to, 2);
    forget(&sent);
    reach_free(reach);
}

/* Each fault in its words, of the side that has it. */
static void faults(void **state)
{
    static const struct {
        const char *step, *fault;
        bool writer;
        const char *why;
    } rows[] = {
        {"accepted", "route", false, "worker 1 has no way to 10.0.1.1: the reason"},
        {"wrote", "route", true, "worker 0 has no way to 10.0.1.2: the reason"},
        {"wrote", "retry", true, "packets to 10.0.1.2 are not acknowledged: the reason"},
        {"wrote", "rnr", true, "the receiver was never ready: the reason"},
        {"wrote", "access", true, "the receiver refused the write: the reason"},
        {"wrote", "write", true, "the write failed: the reason"},
        {"saw", "data", false, "the data that arrived differ from those sent, the reason"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sent sent;
        struct reach *reach = begun(2, 2, NULL, &sent);
        open_all(reach, 2);
        if (strcmp(rows[i].step, "accepted") != 0)
            done(reach, 1, 1, "accepted");
        fails(reach, rows[i].writer ? 0 : 1, 1, rows[i].step, rows[i].fault, "the reason");
        assert_int_equal(pair_at(reach, 0, 1)->result, REACH_FAILED);
        assert_string_equal(pair_at(reach, 0, 1)->why, rows[i].why);
        assert_int_equal(pair_at(reach, 1, 1)->result, REACH_OPEN);
        assert_int_equal(pair_at(reach, 0, 0)->result, REACH_OPEN);
        forget(&sent);
        reach_free(reach);
    }
}

/* A device that cannot be opened breaks both of its pairs, and is told once. */
static void unopened(void **state)
{
    struct sent sent;
    (void)state;
    struct reach *reach = begun(3, 2, NULL, &sent);
    fails(reach, 1, 0, "open", "open", "Permission denied");
    assert_string_equal(pair_at(reach, 1, 0)->why,
                        "mlx5_0 of worker 1 cannot be used: Permission denied");
    assert_int_equal(pair_at(reach, 0, 0)->result, REACH_FAILED);
    assert_true(pair_at(reach, 0, 0)->echo && !pair_at(reach, 1, 0)->echo);
    assert_int_equal(pair_at(reach, 2, 0)->result, REACH_OPEN);
    forget(&sent);
    reach_free(reach);
}

/* The end of the time says what was waited for. */
static void expired(void **state)
{
    static const struct {
        unsigned steps;
        const char *why;
    } rows[] = {
        {0, "after 2 s worker 0 had not opened mlx5_1"},
        {1, "after 2 s worker 1 had not opened mlx5_1"},
        {2, "after 2 s worker 1 had not connected mlx5_1"},
        {3, "after 2 s worker 0 had not reported the result of its writes on mlx5_1"},
        {4, "after 2 s worker 1 had not seen the data on mlx5_1"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sent sent;
        struct reach *reach = begun(2, 2, NULL, &sent);
        for (unsigned step = 0; step < rows[i].steps; step++) {
            if (step < 2)
                opens(reach, step, 1);
            else
                done(reach, step == 3 ? 0 : 1, 1, step == 2 ? "accepted" : "wrote");
        }
        reach_expire(reach);
        assert_true(reach_over(reach));
        assert_int_equal(pair_at(reach, 0, 1)->result, REACH_UNKNOWN);
        assert_string_equal(pair_at(reach, 0, 1)->why, rows[i].why);
        done(reach, 1, 1, "saw"); /* too late */
        assert_int_equal(pair_at(reach, 0, 1)->result, REACH_UNKNOWN);
        forget(&sent);
        reach_free(reach);
    }
}

/* An agent of an older release, and one whose process ends. */
static void given_up(void **state)
{
    struct sent sent = {0};
    (void)state;
    struct reach *reach = reach_new(2, NULL, 7, 2000, on_send, &sent);
    for (uint32_t w = 0; w < 2; w++)
        assert_int_equal(reach_add_rail(reach, w, "mlx5_0", 1, 3, "", NULL), 0);
    reach_give_up(reach, 1, "it does not know how");
    assert_int_equal(reach_begin(reach), 0);
    assert_true(reach_over(reach));
    assert_int_equal(sent.count, 0); /* nothing that an older agent would not understand */
    assert_string_equal(pair_at(reach, 0, 0)->why, "worker 1: it does not know how");
    reach_free(reach);

    reach = begun(3, 2, NULL, &sent);
    open_all(reach, 3);
    reach_all_of(reach, 0, 0);
    reach_give_up(reach, 1, "its process ended with signal 11");
    assert_int_equal(pair_at(reach, 0, 0)->result, REACH_REACHED);
    assert_int_equal(pair_at(reach, 0, 1)->result, REACH_UNKNOWN);
    assert_int_equal(pair_at(reach, 1, 1)->result, REACH_UNKNOWN);
    assert_int_equal(pair_at(reach, 2, 0)->result, REACH_OPEN);
    forget(&sent);
    reach_free(reach);
}

/* Rails that the next worker does not have, and such as cannot be tried. */
static void untried(void **state)
{
    struct sent sent;
    (void)state;
    struct reach *reach = begun(2, 1, NULL, &sent);
    assert_int_equal(pair_at(reach, 0, 1)->result, REACH_UNKNOWN);
    assert_string_equal(pair_at(reach, 0, 1)->why, "worker 1 has 1 rails");
    opens(reach, 0, 0);
    opens(reach, 1, 0);
    opens(reach, 0, 1);
    reach_all_of(reach, 0, 0);
    reach_all_of(reach, 1, 0);
    assert_true(reach_over(reach));
    CLEANUP(json_decrefp) json_t *told = reach_json(reach, 1);
    const json_t *matrix = json_object_get(told, "matrix");
    assert_string_equal(json_string_value(json_array_get(matrix, 0)), ".?");
    assert_string_equal(json_string_value(json_array_get(matrix, 1)), ".-");
    forget(&sent);
    reach_free(reach);
}

/* What a process cannot say is no state of ours. */
static void nonsense(void **state)
{
    static const char *const lines[] = {"",
                                        "[]",
                                        "{\"rail\": 2, \"wrote\": true}",
                                        "{\"rail\": -1, \"saw\": true}",
                                        "{\"rail\": 0}",
                                        "{\"rail\": 0, \"wrote\": true}",
                                        "{\"rail\": 0, \"saw\": 1}",
                                        "{\"rail\": 0, \"in\": 7, \"out\": {}}",
                                        "{\"rail\": 0, \"open\": true}"};
    struct sent sent;
    struct drarun_error err = {0};
    (void)state;
    struct reach *reach = begun(2, 2, NULL, &sent);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        assert_int_equal(reach_take(reach, 0, lines[i], &err), -EPROTO);
    opens(reach, 0, 0);
    assert_int_equal(reach_take(reach, 0, "{\"rail\": 0, \"in\": {}, \"out\": {}}", &err), -EPROTO);
    forget(&sent);
    reach_free(reach);
}

/* Where libibverbs could not open a NIC the check of that NIC has told so, and nothing is tried. */
static void known_from_sysfs_only(void **state)
{
    struct sent sent = {0};
    struct preflight found;
    struct plan_nic nics[2] = {{.found = {.ibdev = "mlx5_0", .link_layer = "Ethernet", .gid = 3}},
                               {.found = {.ibdev = "mlx5_0", .link_layer = "Ethernet", .gid = 3}}};
    static const struct profile rdma = {.data = PROFILE_RDMA};
    struct plan_worker plan_workers[2] = {{.nics = &nics[0], .nic_count = 1, .profile = &rdma},
                                          {.nics = &nics[1], .nic_count = 1, .profile = &rdma}};
    const struct plan plan = {.workers = plan_workers, .worker_count = 2};
    CLEANUP(json_decrefp)
    json_t *told = json_pack("{s:[{s:s, s:s}]}", "verbs", "device", "mlx5_0", "inferred",
                             "libibverbs cannot list RDMA devices: Function not implemented");
    const json_t *inspections[2] = {NULL, told};
    static const struct preflight_worker workers[] = {{.pod = "w-0"}, {.pod = "w-1"}};
    const struct job_spec spec = {.workers = 2, .network = SPEC_NETWORK_RDMA};
    const struct preflight_input input = {.spec = &spec, .workers = workers, .count = 2};
    (void)state;
    struct reach *reach = reach_new(2, NULL, 7, 2000, on_send, &sent);
    assert_non_null(reach);
    assert_int_equal(reach_add_plan(reach, 0, 0, &plan, inspections), 0);
    assert_int_equal(reach_begin(reach), 0);
    assert_true(reach_over(reach));
    assert_int_equal(sent.count, 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(reach_pair_at(reach, i)->result, REACH_UNKNOWN);
        assert_string_equal(reach_pair_at(reach, i)->why,
                            "mlx5_0 of worker 1: it could not be opened");
    }
    assert_int_equal(preflight_reach(&input, reach, &found, NULL), 0);
    assert_int_equal(found.count, 0);
    preflight_done(&found);
    reach_free(reach);
}

/* A head without NICs, two workers with two rails, one of another role with one: those without the
 * rail are passed over, in the ring of each rail, but not one whose role has it. */
static void roles(void **state)
{
    static const struct profile rdma = {.data = PROFILE_RDMA};
    static struct plan_nic nics[2] = {{.found = {.ibdev = "mlx5_0", .link_layer = "InfiniBand"}},
                                      {.found = {.ibdev = "mlx5_1", .link_layer = "InfiniBand"}}};
    static struct plan_worker none[1] = {{.profile = &rdma}};
    static struct plan_worker two[2] = {{.nics = nics, .nic_count = 2, .profile = &rdma},
                                        {.nics = nics, .nic_count = 2, .profile = &rdma}};
    static struct plan_worker one[1] = {{.nics = nics, .nic_count = 1, .profile = &rdma}};
    static struct plan_worker lone[1] = {{.nics = nics, .nic_count = 2, .profile = &rdma}};
    static const struct {
        struct plan plans[3];
        const char *pairs; /* from>to.rail */
        const char *matrix[4];
    } cases[] = {
        {{{.workers = none, .worker_count = 1},
          {.workers = two, .worker_count = 2},
          {.workers = one, .worker_count = 1}},
         "1>2.0 1>2.1 2>3.0 2>1.1 3>1.0 ",
         {"--", "..", "..", ".-"}},
        /* nobody else has the second rail: it is no pair, and nothing that is not known */
        {{{.workers = one, .worker_count = 1},
          {.workers = lone, .worker_count = 1},
          {.workers = none, .worker_count = 1}},
         "0>1.0 1>0.0 ",
         {".-", ".-", "--"}},
    };
    static const json_t *const inspections[4];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sent sent = {0};
        struct buf pairs = BUF_INIT;
        uint32_t first = 0;
        for (uint32_t r = 0; r < 3; r++)
            first += (uint32_t)cases[i].plans[r].worker_count;
        struct reach *reach = reach_new(first, NULL, 7, 2000, on_send, &sent);
        assert_non_null(reach);
        first = 0;
        for (uint32_t r = 0; r < 3; first += (uint32_t)cases[i].plans[r++].worker_count)
            assert_int_equal(reach_add_plan(reach, first, r, &cases[i].plans[r], inspections), 0);
        assert_int_equal(reach_begin(reach), 0);
        for (size_t p = 0; p < reach_pair_count(reach); p++) {
            const struct reach_pair *pair = reach_pair_at(reach, p);
            buf_printf(&pairs, "%u>%u.%u ", pair->from, pair->to, pair->rail);
        }
        assert_string_equal(pairs.data, cases[i].pairs);
        buf_done(&pairs);
        for (size_t s = 0; s < sent.count; s++) /* each says all rails that it was given */
            for (uint32_t r = 0; r < json_array_size(json_object_get(sent.list[s].line, "rails"));
                 r++)
                if (json_object_get(sent.list[s].line, "limitMs"))
                    opens(reach, sent.list[s].worker, r);
        for (size_t p = 0; p < reach_pair_count(reach); p++)
            reach_all_of(reach, reach_pair_at(reach, p)->from, reach_pair_at(reach, p)->rail);
        assert_true(reach_over(reach));
        CLEANUP(json_decrefp) json_t *told = reach_json(reach, 1);
        assert_int_equal(number(told, "unknown"), 0);
        assert_int_equal(number(told, "reached"), number(told, "pairs"));
        for (uint32_t w = 0; w < first; w++)
            assert_string_equal(
                json_string_value(json_array_get(json_object_get(told, "matrix"), w)),
                cases[i].matrix[w]);
        forget(&sent);
        reach_free(reach);
    }
}

/* A worker with fewer rails than the others of its role is a finding, whichever worker is next. */
static void fewer_rails_in_a_role(void **state)
{
    static const struct profile rdma = {.data = PROFILE_RDMA};
    static struct plan_nic nics[2] = {{.found = {.ibdev = "mlx5_0", .link_layer = "InfiniBand"}},
                                      {.found = {.ibdev = "mlx5_1", .link_layer = "InfiniBand"}}};
    static struct plan_worker uneven[2] = {{.nics = nics, .nic_count = 2, .profile = &rdma},
                                           {.nics = nics, .nic_count = 1, .profile = &rdma}};
    static struct plan_worker other[1] = {{.nics = nics, .nic_count = 2, .profile = &rdma}};
    const struct plan plans[2] = {{.workers = uneven, .worker_count = 2},
                                  {.workers = other, .worker_count = 1}};
    static const json_t *const inspections[3];
    struct sent sent = {0};
    (void)state;
    struct reach *reach = reach_new(3, NULL, 7, 2000, on_send, &sent);
    assert_non_null(reach);
    assert_int_equal(reach_add_plan(reach, 0, 0, &plans[0], inspections), 0);
    assert_int_equal(reach_add_plan(reach, 2, 1, &plans[1], inspections), 0);
    assert_int_equal(reach_begin(reach), 0);
    assert_string_equal(pair_at(reach, 0, 1)->why, "worker 1 has 1 rails");
    assert_int_equal(pair_at(reach, 2, 1)->to, 0);
    assert_int_equal(pair_at(reach, 2, 1)->result, REACH_OPEN);
    /* the rail in which nobody writes to it cannot be opened: its own pair tells so */
    fails(reach, 2, 1, "open", "open", "Permission denied");
    assert_int_equal(pair_at(reach, 2, 1)->result, REACH_FAILED);
    assert_false(pair_at(reach, 2, 1)->echo);
    forget(&sent);
    reach_free(reach);
}

/* ---- the preflight's words ---- */

static struct preflight judged(struct reach *reach, enum spec_network network,
                               enum spec_fallback on_warning)
{
    static const struct preflight_worker workers[] = {
        {.pod = "w-0", .node = "a"}, {.pod = "w-1", .node = "b"}, {.pod = "w-2"}};
    const struct job_spec spec = {
        .workers = 3, .network = network, .on_preflight_warning = on_warning};
    const struct preflight_input input = {.spec = &spec, .workers = workers, .count = 3};
    struct preflight result;
    assert_int_equal(preflight_reach(&input, reach, &result, NULL), 0);
    return result;
}

static void judgement(void **state)
{
    struct sent sent;
    struct buf line = BUF_INIT;
    struct drarun_error err = {0};
    (void)state;
    struct reach *reach = begun(3, 2, NULL, &sent);
    open_all(reach, 3);
    for (uint32_t w = 0; w < 3; w++)
        reach_all_of(reach, w, 0);
    reach_all_of(reach, 2, 1);
    done(reach, 1, 1, "accepted");
    fails(reach, 0, 1, "wrote", "retry", "transport retry counter exceeded");
    reach_expire(reach);

    struct preflight found = judged(reach, SPEC_NETWORK_RDMA, SPEC_FALLBACK_REPORT);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.refusals, 1);
    assert_int_equal(found.list[0].code, PREFLIGHT_UNREACHED);
    assert_int_equal(found.list[1].code, PREFLIGHT_REACH_UNKNOWN);
    preflight_line(&found.list[0], &line);
    assert_non_null(strstr(line.data, "worker 0 (w-0 on a): its NIC mlx5_1 -> worker 1 (w-1 on b) "
                                      "mlx5_1: packets to 10.0.1.2 are not acknowledged: "
                                      "transport retry counter exceeded: do the rail's"));
    assert_non_null(strstr(found.list[1].text, "whether its NIC mlx5_1 reaches worker 2 (w-2) "
                                               "mlx5_1: after 2 s worker 2 had not connected"));
    assert_int_equal(preflight_result(&found, &err), -EPERM);
    assert_int_equal(err.kind, DRARUN_ERR_PREFLIGHT);
    preflight_done(&found);

    found = judged(reach, SPEC_NETWORK_ANY, SPEC_FALLBACK_REPORT);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.refusals, 0);
    preflight_done(&found);
    found = judged(reach, SPEC_NETWORK_RDMA, SPEC_FALLBACK_FAIL);
    assert_int_equal(found.refusals, 2);
    preflight_done(&found);
    buf_done(&line);
    forget(&sent);
    reach_free(reach);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_from_begin_to_end),
        cmocka_unit_test(all_is_well),
        cmocka_unit_test(rank_order),
        cmocka_unit_test(faults),
        cmocka_unit_test(unopened),
        cmocka_unit_test(expired),
        cmocka_unit_test(given_up),
        cmocka_unit_test(untried),
        cmocka_unit_test(nonsense),
        cmocka_unit_test(roles),
        cmocka_unit_test(fewer_rails_in_a_role),
        cmocka_unit_test(known_from_sysfs_only),
        cmocka_unit_test(judgement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
