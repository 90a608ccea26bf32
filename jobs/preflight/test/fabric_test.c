/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "jobs/preflight/fabric.h"
#include "lib/base/cleanup.h"

/* A worker whose second device has two ports that carry data, and whose third one is down. */
struct rig {
    struct topo_port ports[2];
    struct plan_nic nics[3];
    struct plan_left_nic left[2];
    struct profile profile;
    struct plan_worker worker;
};

static void set_up(struct rig *m)
{
    *m = (struct rig){
        .ports = {{.number = 1}, {.number = 2}},
        .nics =
            {{.found = {.ibdev = "mlx5_0", .device.pci = 0x100}},
             {.found = {.ibdev = "mlx5_1", .device.pci = 0x200, .data_ports = 3, .port_count = 2}},
             {.found = {.ibdev = "mlx5_3", .device.pci = 0x400}}},
        .left = {{.ibdev = "mlx5_2", .device.pci = 0x300, .use = NIC_USE_DOWN, .claimed = true},
                 {.ibdev = "mlx5_4", .device.pci = 0x500, .use = NIC_USE_UPLINK, .claimed = true}},
        .profile = {.data = PROFILE_RDMA}};
    m->nics[1].found.ports = m->ports;
    m->worker = (struct plan_worker){
        .nics = m->nics, .nic_count = 3, .left = m->left, .left_count = 2, .profile = &m->profile};
}

/* In the order of PCI addresses; what is down keeps its place, what never carries data has none. */
static void rails(void **state)
{
    struct rig m;
    cleanup_free struct fabric_rail *list = NULL;
    cleanup_free struct fabric_rail *none = NULL;
    size_t count = 0;
    (void)state;
    set_up(&m);
    assert_int_equal(fabric_rails(&m.worker, &list, &count), 0);
    assert_int_equal(count, 5);
    static const char *const devices[] = {"mlx5_0", "mlx5_1", "mlx5_1", "mlx5_2", "mlx5_3"};
    for (size_t i = 0; i < count; i++)
        assert_string_equal(fabric_device(&list[i]), devices[i]);
    assert_int_equal(list[2].port->number, 2);
    assert_true(list[3].left && !list[3].nic);
    m.profile.data = PROFILE_NETDEV;
    assert_int_equal(fabric_rails(&m.worker, &none, &count), 0);
    assert_int_equal(count, 0);
}

static json_t *noted(void)
{
    struct rig m;
    set_up(&m);
    struct plan_worker workers[3] = {m.worker, m.worker, m.worker};
    workers[1].left_count = 0;
    const struct plan plan = {.workers = workers, .worker_count = 3};
    struct fabric *fabric = fabric_new(&plan);
    assert_non_null(fabric);
    fabric_note(fabric, 1, "mlx5_1", 2, true, "LINK_DOWN", "no link");
    fabric_note(fabric, 1, "mlx5_1", 2, false, "NIC_UNTRIED", "who knows"); /* stays failed */
    fabric_note(fabric, 2, "mlx5_1", 0, false, "NIC_UNTRIED", "no answer");
    fabric_note(fabric, 2, "mlx5_4", 1, true, "LINK_DOWN", "no rail of the job");
    json_t *json = fabric_json(fabric, NULL);
    fabric_free(fabric);
    assert_non_null(json);
    return json;
}

static void the_value(void **state)
{
    (void)state;
    CLEANUP(json_decrefp) json_t *json = noted();
    CLEANUP(json_decrefp)
    json_t *expected = json_pack(
        "{s:{s:i, s:i, s:i, s:i, s:i, s:[s, s, s], s:["
        "{s:i, s:s, s:i, s:s, s:s, s:s}, {s:i, s:s, s:i, s:s, s:s, s:s}, "
        "{s:i, s:s, s:s, s:s, s:s}]}, s:n}",
        "opened", "workers", 3, "rails", 5, "good", 11, "failed", 1, "unknown", 2, "matrix",
        ".....", "..x.-", ".??..", "broken", "worker", 1, "device", "mlx5_1", "port", 2, "result",
        "failed", "code", "LINK_DOWN", "why", "no link", "worker", 1, "device", "mlx5_1", "port", 2,
        "result", "unknown", "code", "NIC_UNTRIED", "why", "who knows", "worker", 2, "device",
        "mlx5_1", "result", "unknown", "code", "NIC_UNTRIED", "why", "no answer", "reach");
    if (!json_equal(json, expected))
        fail_msg("%s", json_dumps(json, JSON_INDENT(1)));
    assert_int_equal(fabric_workers(json), 3);
    assert_int_equal(fabric_rail_count(json), 5);
    assert_int_equal(fabric_state(json, 1, 2), FABRIC_FAILED);
    assert_int_equal(fabric_state(json, 2, 1), FABRIC_UNKNOWN);
    json_object_set_new(json, "reach", json_pack("{s:[s, s]}", "matrix", "x....", "..x.."));
    assert_int_equal(fabric_state(json, 0, 0), FABRIC_UNREACHED);
    json_object_set_new(json, "reach", json_null());
    assert_int_equal(fabric_state(json, 1, 4), FABRIC_NONE);
    assert_int_equal(fabric_state(json, 0, 0), FABRIC_GOOD);
    assert_int_equal(fabric_state(json, 7, 0), FABRIC_NONE);
    assert_false(fabric_is_good(json));
}

/* A worker that moves no data by RDMA has no rail, and a job of such workers no value. */
static void no_rails(void **state)
{
    struct rig m;
    (void)state;
    set_up(&m);
    m.profile.data = PROFILE_NO_DATA;
    const struct plan plan = {.workers = &m.worker, .worker_count = 1};
    struct fabric *fabric = fabric_new(&plan);
    assert_non_null(fabric);
    assert_null(fabric_json(fabric, NULL));
    fabric_free(fabric);
}

static void for_people(void **state)
{
    static const char text[] =
        "{\"opened\": {\"good\": 9, \"failed\": 1, \"unknown\": 0, \"matrix\": [\"..\", \"..\", "
        "\".x\", \"..\", \"..\"], \"broken\": [{\"worker\": 2, \"device\": \"mlx5_1\", \"port\": "
        "1, \"result\": \"failed\", \"why\": \"the link is DOWN\"}]}, \"reach\": {\"ms\": 31, "
        "\"pairs\": 10, \"reached\": 8, \"failed\": 1, \"unknown\": 1, \"matrix\": [\"..\", "
        "\".x\", \".?\", \"..\", \"..\"], \"broken\": [{\"from\": {\"worker\": 1, \"device\": "
        "\"mlx5_1\", \"port\": 2}, \"to\": {\"worker\": 2, \"device\": \"mlx5_1\", \"port\": 1}, "
        "\"result\": \"failed\", \"why\": \"no way\"}, {\"from\": {\"worker\": 2, \"device\": "
        "\"mlx5_1\", \"port\": 1}, \"to\": {\"worker\": 3, \"device\": \"mlx5_1\", \"port\": 1}, "
        "\"result\": \"unknown\", \"why\": \"no answer\"}]}}";
    struct buf out = BUF_INIT;
    (void)state;
    CLEANUP(json_decrefp) json_t *fabric = json_loads(text, 0, NULL);
    assert_non_null(fabric);
    fabric_text(fabric, &out);
    assert_string_equal(
        out.data,
        "NICs: 9 opened, 1 failed; 8 of 10 reach the next worker, 1 failed, 1 not known (31 ms)\n"
        "  WORKER       OPENED  REACH\n"
        "  0,3-4        ..      ..\n"
        "  1            ..      .x\n"
        "  2            .x      .?\n"
        "  (a letter for each rail: . good, x failed, ? not known, - none)\n"
        "  worker 2 mlx5_1: the link is DOWN\n"
        "  worker 1 mlx5_1, port 2 -> worker 2 mlx5_1: no way\n"
        "  worker 2 mlx5_1 -> worker 3 mlx5_1: not known: no answer\n");
    buf_done(&out);
}

/* More rows than anybody reads. */
static void many_rows(void **state)
{
    struct buf out = BUF_INIT;
    (void)state;
    CLEANUP(json_decrefp) json_t *fabric = json_pack("{s:{s:[]}}", "opened", "matrix");
    json_t *matrix = json_object_get(json_object_get(fabric, "opened"), "matrix");
    for (unsigned w = 0; w < 64; w++) {
        char word[7] = "......";
        for (unsigned bit = 0; bit < 6; bit++)
            word[bit] = w & 1u << bit ? 'x' : '.';
        json_array_append_new(matrix, json_string(word));
    }
    fabric_text(fabric, &out);
    assert_non_null(strstr(out.data, "\n  31           xxxxx.\n  and 32 more workers\n"));
    buf_done(&out);
}

/* The value alone, a report or a status document; anything else is refused in words. */
static void finding(void **state)
{
    static const struct {
        const char *text;
        int rc;
        const char *error;
    } rows[] = {
        {"[]", -ENOENT, "expected a status document"},
        {"{\"status\": 0}", -ENOENT, "expected a status document"},
        {"{\"fabric\": null}", -ENOENT, "expected a status document"},
        {"{\"fabric\": {\"opened\": {\"good\": 8}}}", -EINVAL, "the report has"},
        {"{\"opened\": {\"matrix\": [\".\", \"..\"]}}", -EINVAL, "opened.matrix[1]: expected"},
        {"{\"opened\": {\"matrix\": [\".a\"]}}", -EINVAL, "got .a"},
        {"{\"opened\": {\"matrix\": [\".\"]}, \"reach\": {\"matrix\": [7]}}", -EINVAL,
         "reach.matrix: expected"},
    };
    (void)state;
    CLEANUP(json_decrefp) json_t *value = noted();
    CLEANUP(json_decrefp) json_t *report = json_pack("{s:O}", "fabric", value);
    json_t *found[2] = {NULL, NULL};
    assert_int_equal(fabric_find(value, &found[0], NULL), 0);
    assert_int_equal(fabric_find(report, &found[1], NULL), 0);
    assert_true(json_equal(found[0], value) && json_equal(found[1], value));
    json_decref(found[0]);
    json_decref(found[1]);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(json_decrefp) json_t *document = json_loads(rows[i].text, 0, NULL);
        struct drarun_error err = {0};
        json_t *none = NULL;
        assert_int_equal(fabric_find(document, &none, &err), rows[i].rc);
        if (!strstr(err.text, rows[i].error))
            fail_msg("%s: %s", rows[i].text, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rails),     cmocka_unit_test(the_value),  cmocka_unit_test(no_rails),
        cmocka_unit_test(many_rows), cmocka_unit_test(for_people), cmocka_unit_test(finding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
