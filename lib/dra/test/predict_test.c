/* SPDX-License-Identifier: Apache-2.0 */
/* Small clusters, and which devices the workers of a job get in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/dra/predict.h"
#include "lib/base/cleanup.h"

#define ROOT "resource.kubernetes.io/pcieRoot"

/* A node's GPUs and NICs; GPU i and NIC i share a root, with crossed the last NIC's is the first's.
 */
static json_t *node_slices(const char *node, int gpus, int nics, bool crossed)
{
    json_t *lists[2] = {json_array(), json_array()};
    int counts[2] = {gpus, nics};
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < counts[kind]; i++) {
            int root = kind == 1 && crossed ? 90 + i : i;
            json_t *attributes = json_pack("{s:{s:o}, s:{s:s}, s:{s:b}}", ROOT, "string",
                                           json_sprintf("pci0000:%02d", root), "type", "string",
                                           kind ? "nic" : "gpu", kind ? "rdma" : "ecc", "bool", 1);
            json_array_append_new(lists[kind],
                                  json_pack("{s:o, s:o}", "name",
                                            json_sprintf("%s-%d", kind ? "nic" : "gpu", i),
                                            "attributes", attributes));
        }
    const char *drivers[2] = {"gpu.nvidia.com", "dra.net"};
    json_t *all = json_array();
    for (int kind = 0; kind < 2; kind++)
        json_array_append_new(
            all, json_pack("{s:s, s:s, s:{s:o}, s:{s:s, s:s, s:{s:s, s:i, s:i}, s:o}}",
                           "apiVersion", "resource.k8s.io/v1", "kind", "ResourceSlice", "metadata",
                           "name", json_sprintf("%s-%s", node, drivers[kind]), "spec", "driver",
                           drivers[kind], "nodeName", node, "pool", "name", node, "generation", 1,
                           "resourceSliceCount", 1, "devices", lists[kind]));
    return all;
}

static void add_node(json_t *all, const char *node, int gpus, int nics, bool crossed)
{
    json_t *slices = node_slices(node, gpus, nics, crossed);
    json_array_extend(all, slices);
    json_decref(slices);
}

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    if (!json)
        fail_msg("%s: %s", error.text, text);
    return json;
}

/* count pairs gpu-I, nic-I of one root each. */
static json_t *pairs(int count, const char *selector)
{
    json_t *requests = json_array(), *constraints = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(requests,
                              json_pack("{s:o, s:{s:s}}", "name", json_sprintf("gpu-%d", i),
                                        "exactly", "deviceClassName", "gpu.nvidia.com"));
        json_array_append_new(requests,
                              json_pack("{s:o, s:{s:s, s:[{s:{s:s}}]}}", "name",
                                        json_sprintf("nic-%d", i), "exactly", "deviceClassName",
                                        "dranet", "selectors", "cel", "expression", selector));
        json_array_append_new(constraints,
                              json_pack("{s:[o, o], s:s}", "requests", json_sprintf("gpu-%d", i),
                                        json_sprintf("nic-%d", i), "matchAttribute", ROOT));
    }
    return json_pack("{s:{s:o, s:o}}", "devices", "requests", requests, "constraints", constraints);
}

#define RDMA "device.attributes['dra.net'].rdma == true"

static const char *device_of(const struct prediction *p, uint32_t worker, size_t result)
{
    const json_t *item = json_array_get(p->workers[worker].results, result);
    return json_string_value(json_object_get(item, "device"));
}

static void run(json_t *documents, json_t *claim, uint32_t workers, struct slices *slices,
                struct prediction *p)
{
    struct drarun_error err = {0};
    if (slices_read(documents, slices, &err) < 0 ||
        predict(claim, workers, &(struct predict_cluster){.slices = slices}, p, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(documents);
    json_decref(claim);
}

static void done(struct slices *slices, struct prediction *p)
{
    prediction_done(p);
    slices_done(slices);
}

static void workers_share_nodes_in_pairs(void **state)
{
    struct slices slices;
    struct prediction p;
    json_t *all = json_array();
    (void)state;
    add_node(all, "a", 4, 4, false);
    add_node(all, "b", 4, 4, false);
    run(all, pairs(2, RDMA), 3, &slices, &p);
    assert_int_equal(p.placed, 3);
    assert_null(p.shortage);
    assert_string_equal(p.workers[0].node, "a");
    assert_string_equal(p.workers[1].node, "a");
    assert_string_equal(p.workers[2].node, "b");
    const char *const wanted[] = {"gpu-2", "nic-2", "gpu-3", "nic-3"};
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(device_of(&p, 1, i), wanted[i]);
    done(&slices, &p);
}

/* One worker per node: what a node has left is nobody's, and sharing is told where it would do. */
static void workers_have_nodes_of_their_own(void **state)
{
    static const struct row {
        uint32_t workers, pairs;
        const char *off, *shortage;
    } rows[] = {
        {2, 1, "spread: none", NULL},
        {3, 1, "spread: none",
         "worker 2 of 3 has no node: 3 workers, one per node by spread; 2 nodes fit; elsewhere too "
         "few devices for request gpu-0 on 1 node; spread: none packs them"},
        {3, 1, NULL,
         "worker 2 of 3 has no node: 3 workers, one per node by spread; 2 nodes fit; elsewhere too "
         "few devices for request gpu-0 on 1 node"},
        {9, 1, "spread: none",
         "worker 2 of 9 has no node: 9 workers, one per node by spread; 2 nodes fit; elsewhere too "
         "few devices for request gpu-0 on 1 node"},
        {2, 5, "spread: none",
         "worker 0 of 2 has no node: too few devices for request gpu-0 on 1 node, too few devices "
         "for request gpu-4 on 2 nodes"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct predict_cluster cluster = {.spread_by = "spread", .spread_off = rows[i].off};
        struct slices slices;
        struct prediction p;
        json_t *all = json_array(), *claim = pairs((int)rows[i].pairs, RDMA);
        add_node(all, "a", 4, 4, false);
        add_node(all, "b", 4, 4, false);
        add_node(all, "c", 0, 4, false);
        cluster.slices = &slices;
        assert_int_equal(slices_read(all, &slices, NULL), 0);
        assert_int_equal(predict(claim, rows[i].workers, &cluster, &p, NULL), 0);
        assert_string_equal(p.shortage ? p.shortage : "-",
                            rows[i].shortage ? rows[i].shortage : "-");
        assert_int_equal(p.spread_short, rows[i].shortage && p.placed > 0);
        if (p.placed > 1) {
            assert_string_equal(p.workers[0].node, "a");
            assert_string_equal(p.workers[1].node, "b");
        }
        json_decref(all);
        json_decref(claim);
        done(&slices, &p);
    }
}

static void roots_that_never_match(void **state)
{
    struct slices slices;
    struct prediction p;
    json_t *all = json_array();
    (void)state;
    add_node(all, "a", 8, 8, true);
    run(all, pairs(8, RDMA), 1, &slices, &p);
    assert_int_equal(p.placed, 0);
    assert_non_null(strstr(p.shortage, "worker 0 of 1 has no node"));
    assert_non_null(strstr(p.shortage, ROOT));
    assert_non_null(strstr(p.shortage, "on 1 node"));
    done(&slices, &p);
}

static void no_room_left(void **state)
{
    struct slices slices;
    struct prediction p;
    json_t *all = json_array();
    (void)state;
    add_node(all, "a", 2, 2, false);
    add_node(all, "b", 1, 2, false);
    run(all, pairs(2, RDMA), 2, &slices, &p);
    assert_int_equal(p.placed, 1);
    assert_non_null(strstr(p.shortage, "worker 1 of 2"));
    assert_non_null(strstr(p.shortage, "are taken by earlier workers on 1 node"));
    assert_non_null(strstr(p.shortage, "too few devices for request gpu-1 on 1 node"));
    done(&slices, &p);
}

static json_t *held(const char *name, const char *pods, const char *results)
{
    char text[2000];
    snprintf(text, sizeof text,
             "{\"metadata\": {\"namespace\": \"b\", \"name\": \"%s\"}, \"status\": {"
             "\"reservedFor\": [%s], \"allocation\": {\"devices\": {\"results\": [%s]}}}}",
             name, pods, results);
    return parse(text);
}

#define HELD(driver, name)                                                                         \
    "{\"request\": \"r\", \"driver\": \"" driver "\", \"pool\": \"n0\", \"device\": \"" name "\"}"
#define POD(name) "{\"resource\": \"pods\", \"name\": \"" name "\"}"

/* A driver that no longer lets claims share a device: one that holds a part of it keeps it. */
static void a_share_of_a_device_that_is_whole_now(void **state)
{
    static const struct {
        const char *capacity, *consumed;
        uint32_t placed;
    } cases[] = {
        {"{\"memory\": {\"value\": \"80Gi\"}}", "{\"memory\": \"10Gi\"}", 0},
        {"{\"memory\": {\"value\": \"80Gi\"}}", "{\"memory\": \"0\"}", 1},
        {"{\"memory\": {\"value\": \"80Gi\"}}", "{\"cores\": \"10\"}", 1},
        {"{}", "{\"memory\": \"10Gi\"}", 1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct slices slices;
        struct prediction p;
        char text[256];
        json_t *all = json_array(), *claims = json_array();
        json_t *claim = parse("{\"devices\": {\"requests\": [{\"name\": \"gpu\", \"exactly\": "
                              "{\"deviceClassName\": \"gpu.nvidia.com\"}}]}}");
        add_node(all, "a", 1, 0, false);
        json_t *spec = json_object_get(json_array_get(all, 0), "spec");
        json_object_set_new(json_array_get(json_object_get(spec, "devices"), 0), "capacity",
                            parse(cases[i].capacity));
        snprintf(text, sizeof text,
                 "{\"driver\": \"gpu.nvidia.com\", \"pool\": \"a\", \"device\": \"gpu-0\", "
                 "\"shareID\": \"s\", \"consumedCapacity\": %s}",
                 cases[i].consumed);
        json_array_append_new(claims, held("other", "", text));
        assert_int_equal(slices_read(all, &slices, NULL), 0);
        struct predict_cluster cluster = {.slices = &slices, .claims = claims};
        assert_int_equal(predict(claim, 1, &cluster, &p, NULL), 0);
        assert_int_equal(p.placed, cases[i].placed);
        if (p.placed == 0)
            assert_non_null(strstr(p.shortage, "are used up on 1 node"));
        done(&slices, &p);
        json_decref(all);
        json_decref(claim);
        json_decref(claims);
    }
}

static void who_holds_what_is_wanted(void **state)
{
    (void)state;
    struct slices slices = {0};
    json_t *document = json_array(), *claims = json_array();
    add_node(document, "n0", 4, 4, false);
    assert_int_equal(slices_read(document, &slices, NULL), 0);
    json_array_append_new(claims, held("one", POD("p"), HELD("gpu.nvidia.com", "gpu-0")));
    json_array_append_new(claims, held("two", POD("q") ", " POD("r"),
                                       HELD("gpu.nvidia.com", "gpu-1") ", " HELD(
                                           "dra.net", "nic-1") ", " HELD("dra.net", "nic-9")));
    json_array_append_new(claims, held("three", "", HELD("dra.net", "nic-2")));
    json_array_append_new(claims, held("foreign", POD("s"), HELD("example.com", "x")));
    json_array_append_new(claims, parse("{\"metadata\": 1, \"status\": []}"));
    json_t *claim = pairs(1, "device.attributes[\"dra.net\"].rdma");
    struct predict_cluster cluster = {.slices = &slices, .claims = claims};
    char *all = predict_holders(claim, &cluster, 3);
    assert_string_equal(all, "b/two (2 devices on n0, pod q and 1 more), b/one (1 device on n0, "
                             "pod p), b/three (1 device on n0)");
    char *some = predict_holders(claim, &cluster, 1);
    assert_string_equal(some, "b/two (2 devices on n0, pod q and 1 more) and 2 other claims");
    cluster.claims = NULL;
    assert_null(predict_holders(claim, &cluster, 3));
    free(all);
    free(some);
    slices_done(&slices);
    json_decref(claim);
    json_decref(claims);
    json_decref(document);
}

static void terms_are_counted(void **state)
{
    struct slices slices;
    struct prediction p;
    json_t *all = json_array();
    (void)state;
    add_node(all, "a", 2, 2, false);
    run(all, pairs(1, RDMA " && device.attributes['dra.net'].type == 'other'"), 1, &slices, &p);
    assert_int_equal(p.placed, 0);
    assert_int_equal(p.need_count, 2);
    const struct predict_need *nic = &p.needs[1];
    assert_string_equal(nic->requests, "nic-0");
    assert_int_equal(nic->devices, 4);
    assert_int_equal(nic->admitted, 0);
    assert_int_equal(nic->term_count, 3);
    assert_string_equal(nic->terms[0].where, "class dranet");
    assert_int_equal(nic->terms[0].ruled_out, 2);
    assert_int_equal(nic->terms[1].ruled_out, 0);
    assert_int_equal(nic->terms[2].ruled_out, 2);
    assert_string_equal(nic->terms[2].text, "device.attributes['dra.net'].type == 'other'");
    done(&slices, &p);
}

/* Taints all devices of the slices. */
static void taint(json_t *all, const char *effect)
{
    size_t i, d;
    json_t *slice, *device;
    json_array_foreach(all, i, slice)
    {
        json_t *devices = json_object_get(json_object_get(slice, "spec"), "devices");
        json_array_foreach(devices, d, device)
            json_object_set_new(device, "taints",
                                json_pack("[{s:s, s:s, s:s}]", "key", "drarun.dev/link", "value",
                                          "down", "effect", effect));
    }
}

#define TOLERANT(toleration)                                                                       \
    "{\"devices\": {\"requests\": [{\"name\": \"x\", \"exactly\": {\"deviceClassName\": "          \
    "\"dranet\", "                                                                                 \
    "\"tolerations\": [" toleration "]}}]}}"

static uint32_t placed_with(const char *effect, const char *claim, size_t *ret_tainted)
{
    struct slices slices;
    struct prediction p;
    json_t *all = json_array();
    add_node(all, "a", 1, 2, false);
    taint(all, effect);
    run(all, parse(claim), 1, &slices, &p);
    uint32_t placed = p.placed;
    *ret_tainted = p.needs[0].tainted;
    if (p.needs[0].tainted)
        assert_string_equal(p.needs[0].taint, "drarun.dev/link");
    done(&slices, &p);
    return placed;
}

#define EACH(name, body) "[0,1,2,3,4,5,6,7,8,9].all(" name ", " body ")"

/* Of a class that a file has, which no API server has admitted: a device costs what the scheduler
 * would spend on it. */
static void class_that_costs_too_much(void **state)
{
    (void)state;
    struct slices slices;
    struct prediction p;
    struct drarun_error err = {0};
    json_t *all = json_array();
    add_node(all, "a", 1, 0, false);
    assert_int_equal(slices_read(all, &slices, NULL), 0);
    json_t *classes = json_pack(
        "[{s:{s:s}, s:{s:[{s:{s:s}}]}}]", "metadata", "name", "endless", "spec", "selectors", "cel",
        "expression",
        EACH("a", EACH("b", EACH("c", EACH("d", EACH("e", EACH("f", EACH("g", "a >= 0"))))))));
    json_t *claim = parse("{\"devices\": {\"requests\": [{\"name\": \"x\", \"exactly\": "
                          "{\"deviceClassName\": \"endless\"}}]}}");
    struct predict_cluster cluster = {.slices = &slices, .classes = classes};
    assert_true(predict(claim, 1, &cluster, &p, &err) < 0);
    assert_non_null(strstr(err.text, "costs more than the 1000000 units"));
    slices_done(&slices);
    json_decref(all);
    json_decref(classes);
    json_decref(claim);
}

static void taints_and_tolerations(void **state)
{
    static const struct {
        const char *effect, *claim;
        uint32_t placed;
        size_t tainted;
    } cases[] = {
        {"NoSchedule", TOLERANT(""), 0, 2},
        {"NoExecute", TOLERANT(""), 0, 2},
        {"None", TOLERANT(""), 1, 0},
        {"NoSchedule", TOLERANT("{\"operator\": \"Exists\"}"), 1, 0},
        {"NoSchedule", TOLERANT("{\"key\": \"drarun.dev/link\", \"operator\": \"Exists\"}"), 1, 0},
        {"NoSchedule", TOLERANT("{\"key\": \"drarun.dev/link\", \"value\": \"down\"}"), 1, 0},
        {"NoSchedule", TOLERANT("{\"key\": \"drarun.dev/link\", \"value\": \"up\"}"), 0, 2},
        {"NoExecute", TOLERANT("{\"operator\": \"Exists\", \"effect\": \"NoSchedule\"}"), 0, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t tainted = 0;
        assert_int_equal(placed_with(cases[i].effect, cases[i].claim, &tainted), cases[i].placed);
        assert_int_equal(tainted, cases[i].tainted);
    }
}

/* A rule without a selector matches no device, and one with an empty selector matches all. */
static void rules_that_taint(void **state)
{
    static const struct {
        const char *rule; /* of its spec, what stands before the taint */
        size_t tainted;
    } cases[] = {
        {"", 0},
        {"\"deviceSelector\": null, ", 0},
        {"\"deviceSelector\": {}, ", 2},
        {"\"deviceSelector\": {\"driver\": \"dra.net\"}, ", 2},
        {"\"deviceSelector\": {\"driver\": \"gpu.nvidia.com\"}, ", 0},
        {"\"deviceSelector\": {\"pool\": \"a\", \"device\": \"nic-1\"}, ", 1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct slices slices;
        struct prediction p;
        char text[256];
        json_t *all = json_array(), *claim = parse(TOLERANT(""));
        add_node(all, "a", 1, 2, false);
        snprintf(text, sizeof text,
                 "[{\"spec\": {%s\"taint\": {\"key\": \"x\", \"effect\": \"NoExecute\"}}}]",
                 cases[i].rule);
        json_t *rules = parse(text);
        assert_int_equal(slices_read(all, &slices, NULL), 0);
        struct predict_cluster cluster = {.slices = &slices, .taint_rules = rules};
        assert_int_equal(predict(claim, 1, &cluster, &p, NULL), 0);
        assert_int_equal(p.needs[0].tainted, cases[i].tainted);
        assert_int_equal(p.placed, cases[i].tainted < 2);
        done(&slices, &p);
        json_decref(all);
        json_decref(claim);
        json_decref(rules);
    }
}

static void alternatives_in_their_order(void **state)
{
    struct slices slices;
    struct prediction p;
    json_t *all = json_array();
    (void)state;
    add_node(all, "a", 2, 3, false);
    run(all,
        parse("{\"devices\": {\"requests\": [{\"name\": \"d\", \"firstAvailable\": ["
              "{\"name\": \"gpus\", \"deviceClassName\": \"gpu.nvidia.com\", \"count\": 3},"
              "{\"name\": \"nics\", \"deviceClassName\": \"dranet\", \"count\": 3}]}]}}"),
        1, &slices, &p);
    assert_int_equal(p.placed, 1);
    assert_int_equal(json_array_size(p.workers[0].results), 3);
    const json_t *item = json_array_get(p.workers[0].results, 0);
    assert_string_equal(json_string_value(json_object_get(item, "request")), "d/nics");
    done(&slices, &p);
}

static void all_of_a_node(void **state)
{
    struct slices slices;
    struct prediction p;
    json_t *all = json_array();
    (void)state;
    add_node(all, "a", 0, 3, false);
    run(all,
        parse("{\"devices\": {\"requests\": [{\"name\": \"nic\", \"exactly\": "
              "{\"deviceClassName\": \"dranet\", \"allocationMode\": \"All\"}}]}}"),
        2, &slices, &p);
    assert_int_equal(p.placed, 1);
    assert_int_equal(json_array_size(p.workers[0].results), 3);
    done(&slices, &p);
}

static void refused_of(const char *claim, const struct predict_cluster *known, const char *wanted)
{
    struct predict_cluster cluster = *known;
    struct drarun_error err = {0};
    struct slices slices;
    struct prediction p = {0};
    json_t *all = json_array(), *spec = parse(claim);
    add_node(all, "a", 1, 1, false);
    assert_int_equal(slices_read(all, &slices, &err), 0);
    cluster.slices = &slices;
    assert_true(predict(spec, 1, &cluster, &p, &err) < 0);
    if (!strstr(err.text, wanted))
        fail_msg("\"%s\" does not say \"%s\"", err.text, wanted);
    assert_int_equal(err.kind, DRARUN_ERR_SPEC);
    json_decref(all);
    json_decref(spec);
    slices_done(&slices);
}

static void refused(const char *claim, const char *wanted)
{
    refused_of(claim, &(struct predict_cluster){0}, wanted);
}

#define ONE(rest) "{\"devices\": {\"requests\": [{\"name\": \"x\", " rest "}]}}"

/* What a driver brings usually is no class that is there. */
static void classes_that_are_all(void **state)
{
    static const char claim[] = ONE("\"exactly\": {\"deviceClassName\": \"dranet\"}");
    json_t *classes =
        parse("[{\"metadata\": {\"name\": \"dranet.net\"}}, {\"metadata\": {\"name\": "
              "\"gpu.nvidia.com\"}}]");
    struct predict_cluster cluster = {.classes = classes, .classes_known = true};
    (void)state;
    refused_of(claim, &cluster,
               "the cluster has no DeviceClass dranet: install the driver that brings it, or name "
               "one that is there: dranet.net, gpu.nvidia.com");
    cluster.classes = NULL;
    refused_of(claim, &cluster, "that is there: there is none");
    json_decref(classes);
}

static void what_cannot_be_told(void **state)
{
    (void)state;
    refused(ONE("\"exactly\": {\"deviceClassName\": \"their.own\"}"), "no DeviceClass their.own");
    refused(ONE("\"exactly\": {\"deviceClassName\": \"dranet\", \"selectors\": [{\"cel\": "
                "{\"expression\": \"device.attributes['dra.net'].speed > 3\"}}]}"),
            "the scheduler gives up");
    refused(ONE("\"exactly\": {\"deviceClassName\": \"dranet\", \"selectors\": [{\"cel\": "
                "{\"expression\": \"1 +\"}}]}"),
            "request x: selector");
    refused(ONE("\"deviceClassName\": \"dranet\""), "expected exactly or firstAvailable");
    refused("{}", "1 to 32 requests");
}

static void a_thousand_nodes(void **state)
{
    struct slices slices;
    struct prediction p;
    json_t *all = json_array();
    char name[16];
    (void)state;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "node-%04d", i);
        add_node(all, name, 8, 8, false);
    }
    run(all, pairs(8, RDMA), 1000, &slices, &p);
    assert_int_equal(p.placed, 1000);
    done(&slices, &p);
}

/* The last NIC is below the root of the one before it, which takes trying the GPUs in every order.
 */
static void add_hard_node(json_t *all, const char *node)
{
    add_node(all, node, 8, 8, false);
    const json_t *nics = json_array_get(all, json_array_size(all) - 1);
    const json_t *devices = json_object_get(json_object_get(nics, "spec"), "devices");
    const json_t *seventh = json_object_get(json_array_get(devices, 6), "attributes");
    json_object_set(json_object_get(json_array_get(devices, 7), "attributes"), ROOT,
                    json_object_get(seventh, ROOT));
}

/* Processor time in seconds. */
static double predict_on_hard_nodes(int nodes, struct slices *slices, struct prediction *p)
{
    char name[16];
    json_t *all = json_array(), *claim = pairs(8, RDMA);
    for (int i = 0; i < nodes; i++) {
        snprintf(name, sizeof name, "node-%03d", i);
        add_hard_node(all, name);
    }
    if (nodes > 1)
        add_node(all, "node-150-good", 8, 8, false);
    assert_int_equal(slices_read(all, slices, NULL), 0);
    clock_t begin = clock();
    assert_int_equal(predict(claim, 2, &(struct predict_cluster){.slices = slices}, p, NULL), 0);
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    json_decref(all);
    json_decref(claim);
    return seconds;
}

/* What takes long is done once for the nodes that are alike, and no other is taken for one. */
static void hard_nodes_that_are_alike(void **state)
{
    struct slices slices;
    struct prediction p;
    (void)state;
    double one = predict_on_hard_nodes(1, &slices, &p);
    assert_int_equal(p.placed, 0);
    assert_non_null(strstr(p.shortage, "no free devices share " ROOT));
    done(&slices, &p);
    double many = predict_on_hard_nodes(300, &slices, &p);
    assert_int_equal(p.placed, 1);
    assert_string_equal(p.workers[0].node, "node-150-good");
    assert_non_null(strstr(p.shortage, "as the constraints want on 300 nodes"));
    done(&slices, &p);
    if (many > 50 * one)
        fail_msg("%.3f s of one node, %.3f s of 300", one, many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_share_nodes_in_pairs),
        cmocka_unit_test(workers_have_nodes_of_their_own),
        cmocka_unit_test(roots_that_never_match),
        cmocka_unit_test(no_room_left),
        cmocka_unit_test(class_that_costs_too_much),
        cmocka_unit_test(a_share_of_a_device_that_is_whole_now),
        cmocka_unit_test(who_holds_what_is_wanted),
        cmocka_unit_test(terms_are_counted),
        cmocka_unit_test(taints_and_tolerations),
        cmocka_unit_test(rules_that_taint),
        cmocka_unit_test(alternatives_in_their_order),
        cmocka_unit_test(all_of_a_node),
        cmocka_unit_test(classes_that_are_all),
        cmocka_unit_test(what_cannot_be_told),
        cmocka_unit_test(a_thousand_nodes),
        cmocka_unit_test(hard_nodes_that_are_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
