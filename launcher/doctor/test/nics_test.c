/* SPDX-License-Identifier: Apache-2.0 */
/* What drarun doctor --nics says of devices. The machine is the test's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <event2/event.h>
#include <cmocka.h>

#include "launcher/doctor/nics.h"
#include "launcher/programs/agent_program.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/test/quoted_json.h"
#include "lib/inspect/inspect.h"
#include "lib/inspect/verbs_open.h"

static struct {
    const char *document; /* of the inspection */
    bool no_agent, opened;
    int inspected, read; /* errno; 0: it goes well */
    struct topo_host host;
} world;

int __wrap_inspect(const struct inspect_options *options, json_t **ret_document,
                   struct drarun_error *err);
int __wrap_inspect(const struct inspect_options *options, json_t **ret_document,
                   struct drarun_error *err)
{
    assert_null(options->root);
    if (world.inspected)
        return error_set(err, world.inspected, "no inspection");
    *ret_document = quoted_json(world.document, 0);
    return 0;
}

int __wrap_program_find_agent(char path[PATH_MAX], struct drarun_error *err);
int __wrap_program_find_agent(char path[PATH_MAX], struct drarun_error *err)
{
    snprintf(path, PATH_MAX, "/bin/drarun-worker");
    return world.no_agent ? error_set(err, ENOENT, "no drarun-worker") : 0;
}

/* It has told nothing but what stands in the document. */
int __wrap_verbs_open_start(struct event_base *base, const char *program, struct verbs_open *open);
int __wrap_verbs_open_start(struct event_base *base, const char *program, struct verbs_open *open)
{
    (void)base, (void)open;
    assert_string_equal(program, "/bin/drarun-worker");
    world.opened = true;
    return -1;
}

int __wrap_host_read(int root, struct topo_host *ret_host, struct drarun_error *err);
int __wrap_host_read(int root, struct topo_host *ret_host, struct drarun_error *err)
{
    assert_true(root >= 0);
    if (world.read)
        return error_set(err, world.read, "no host");
    *ret_host = world.host;
    return 0;
}

void __wrap_host_done(struct topo_host *host);
void __wrap_host_done(struct topo_host *host)
{
    (void)host;
}

/* The findings as "CHECK STATE: SEEN" lines, and "!" behind those with something to change. */
static void is_found(const char *expected)
{
    struct findings findings;
    struct drarun_error err = {0};
    json_t *verbs = NULL, *found;
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    size_t i;
    findings_init(&findings);
    assert_int_equal(nics_check(&findings, &verbs, &err), 0);
    json_array_foreach(findings.list, i, found)
        buf_printf(&text, "%s %s: %s%s\n", json_string_value(json_object_get(found, "check")),
                   json_string_value(json_object_get(found, "state")),
                   json_string_value(json_object_get(found, "seen")),
                   json_object_get(found, "change") ? "!" : "");
    assert_string_equal(text.data ? text.data : "", expected);
    assert_true(json_is_array(verbs));
    json_decref(verbs);
    findings_done(&findings);
}

#define DEVICE(ports, more) "{'verbs':[{'device':'mlx5_0','ports':[" ports "]" more "}]}"
#define STEPS(qp, memory) ",'steps':{'qp':{'done':" qp "},'memory':{'done':" memory "}}"

static void machines_without_devices(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    world.document = "{'verbs':[]}";
    is_found("nics ok: there is no RDMA device\n");
    assert_false(world.opened);
}

static void what_is_said_of_a_device(void **state)
{
    static const struct {
        const char *document, *found;
    } rows[] = {
        {DEVICE("{'number':1,'state':'ACTIVE','active':true,'rateMbps':400000,'lanes':4,"
                "'laneSpeed':'NDR','mtu':4096,'lid':7}",
                STEPS("true", "true")),
         "ok: port 1 ACTIVE, 400 Gb/s (4X NDR), MTU 4096, LID 7; queues made, 64 MiB registered"},
        {DEVICE("{'number':2,'rateMbps':2500}", STEPS("true", "null")),
         "unknown: it is not known whether it can register 64 MiB of memory with its NIC mlx5_0: "
         "!"},
        {DEVICE("{'number':1,'state':'ACTIVE'},{'number':2,'state':'DOWN'}", ""),
         "ok: port 1 ACTIVE; port 2 DOWN; queues not tried, 64 MiB not tried"},
        {DEVICE("{'number':1,'state':'ACTIVE','gids':2,'linkLayer':'InfiniBand','gidTable':["
                "{'index':0,'address':'fe80::9'},{'index':3,'address':'fd00::1','type':'RoCE v2',"
                "'netdev':'eth0'}]}",
                ""),
         "ok: port 1 ACTIVE, GID 3 fd00::1 (RoCE v2, eth0); queues not tried, 64 MiB not tried"},
        {DEVICE("{'number':1,'state':'ACTIVE','gidTable':[{'index':1}]}", ""),
         "ok: port 1 ACTIVE, GID 1 ?; queues not tried, 64 MiB not tried"},
        {DEVICE("{'number':1,'state':'ACTIVE','gidTable':[{'index':0,'netdev':'eth0'}]}",
                ",'iwarp':true"),
         "ok: port 1 ACTIVE, iWARP over eth0; queues not tried, 64 MiB not tried"},
        {DEVICE("{'number':1,'state':'ACTIVE','gidTable':[{'index':0}]}", ",'iwarp':true"),
         "ok: port 1 ACTIVE, iWARP over ?; queues not tried, 64 MiB not tried"},
        {DEVICE("{'number':2,'rateMbps':2500}", ""),
         "ok: port 2 of unknown state, 2.5 Gb/s; queues not tried, 64 MiB not tried"},
        {DEVICE("", ""), "ok: ; queues not tried, 64 MiB not tried"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char expected[256];
        struct topo_rdma rdma = {.name = "mlx5_0", .usable = TOPO_YES};
        memset(&world, 0, sizeof world);
        world.document = rows[i].document;
        world.host = (struct topo_host){.rdmas = &rdma, .rdma_count = 1};
        snprintf(expected, sizeof expected,
                 "mlx5_0 %s\ngpudirect ok: there are not both NVIDIA GPUs and RDMA devices\n",
                 rows[i].found);
        is_found(expected);
        assert_true(world.opened);
    }
}

static void devices_that_are_not(void **state)
{
    struct topo_rdma rdmas[] = {{.name = "mlx5_0", .usable = TOPO_YES},
                                {.name = "mlx5_1", .uverbs = "uverbs1", .usable = TOPO_NO},
                                {.name = "mlx5_2", .usable = TOPO_UNKNOWN}};
    (void)state;
    memset(&world, 0, sizeof world);
    world.document = DEVICE("{'number':1,'state':'DOWN','active':false}", "");
    world.host = (struct topo_host){.rdmas = rdmas, .rdma_count = 3};
    is_found("mlx5_0 failed: the link of its NIC mlx5_0, port 1, is DOWN!\n"
             "mlx5_1 unknown: /dev/infiniband/uverbs1 is not here!\n"
             "gpudirect ok: there are not both NVIDIA GPUs and RDMA devices\n");
}

/* Then sysfs must do, and the finding says why. */
static void machines_without_the_agents_program(void **state)
{
    struct topo_rdma rdma = {.name = "mlx5_0", .usable = TOPO_YES};
    (void)state;
    memset(&world, 0, sizeof world);
    world.document = DEVICE("{'number':1,'state':'ACTIVE'}", "");
    world.host = (struct topo_host){.rdmas = &rdma, .rdma_count = 1};
    world.no_agent = true;
    is_found("mlx5_0 unknown: its NIC mlx5_0 is known from sysfs only: no drarun-worker!\n"
             "gpudirect ok: there are not both NVIDIA GPUs and RDMA devices\n");
    assert_false(world.opened);
}

static void machines_that_cannot_be_read(void **state)
{
    struct findings findings;
    struct drarun_error err = {0};
    json_t *verbs = NULL;
    (void)state;
    memset(&world, 0, sizeof world);
    world.document = "{'verbs':[]}";
    world.inspected = EACCES;
    findings_init(&findings);
    assert_int_equal(nics_check(&findings, &verbs, &err), -EACCES);
    assert_string_equal(err.text, "no inspection");
    world.inspected = 0;
    world.read = EIO;
    assert_int_equal(nics_check(&findings, &verbs, &err), -EIO);
    assert_string_equal(err.text, "no host");
    world.read = 0;
    findings.failed = true;
    assert_int_equal(nics_check(&findings, &verbs, &err), -ENOMEM);
    assert_null(verbs);
    findings_done(&findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_without_devices),
        cmocka_unit_test(what_is_said_of_a_device),
        cmocka_unit_test(devices_that_are_not),
        cmocka_unit_test(machines_without_the_agents_program),
        cmocka_unit_test(machines_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
