/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/claims.h"
#include "jobs/preflight/preflight.h"
#include "lib/base/cleanup.h"

/* A worker as it should be: two NICs, two GPUs; %s is put before the last brace. */
static const char good[] =
    "{\"probe\": {\"visibleGpus\": 2}, "
    "\"limits\": {\"memlock\": 65536, \"ipcLock\": true, \"uid\": 0, \"shm\": 17179869184, "
    "\"shmInMemory\": true}, "
    "\"verbs\": [{\"device\": \"mlx5_0\", \"path\": \"/dev/infiniband/uverbs0\", \"opens\": true, "
    "\"ports\": [{\"number\": 1, \"state\": \"ACTIVE\", \"active\": true, \"gids\": 4}]}, "
    "{\"device\": \"mlx5_1\", \"path\": \"/dev/infiniband/uverbs1\", \"opens\": true, "
    "\"ports\": [{\"number\": 1, \"state\": \"ACTIVE\", \"active\": true, \"gids\": 4}]}], "
    "\"gpuNodes\": [{\"path\": \"/dev/nvidia0\", \"opens\": true}, "
    "{\"path\": \"/dev/nvidia1\", \"opens\": true}], "
    "\"narrow\": [], \"netdevs\": [{\"name\": \"eth0\", \"up\": true}, {\"name\": \"net1\", "
    "\"up\": "
    "true, \"addresses\": [\"fe80::1\", \"10.0.0.7\"]}], "
    "\"session\": {\"dir\": \"/tmp\", \"free\": 1073741824}, "
    "\"versions\": {\"drarun\": \"0.1\", \"pmix\": \"5.0.7\"}}";

#define WORKERS 3

/* A port of RoCE with one GID. */
#define ROCE(type, address)                                                                        \
    "{\"number\": 1, \"state\": \"ACTIVE\", \"active\": true, \"linkLayer\": \"Ethernet\", "       \
    "\"gids\": 1, \"gidTable\": [{\"index\": 3, \"address\": \"" address "\", \"type\": \"" type   \
    "\", \"netdev\": \"net1\"}]}"

struct setting {
    struct job_spec spec;
    struct spec_role role; /* its only one */
    struct preflight_worker workers[WORKERS];
    json_t *documents[WORKERS];
    char pods[WORKERS][16];
};

static void set_up(struct setting *s)
{
    *s = (struct setting){.spec = {.workers = WORKERS,
                                   .role_count = 1,
                                   .network = SPEC_NETWORK_RDMA,
                                   .fabric = SPEC_FABRIC_OPEN},
                          .role = {.workers = WORKERS,
                                   .gpus = {.count = 2},
                                   .nics = {.count = 2},
                                   .align = SPEC_ALIGN_PREFERRED}};
    s->spec.roles = &s->role;
    for (int i = 0; i < WORKERS; i++) {
        s->documents[i] = json_loads(good, 0, NULL);
        assert_non_null(s->documents[i]);
        snprintf(s->pods[i], sizeof s->pods[i], "job-w-%d", i);
        s->workers[i] = (struct preflight_worker){s->pods[i], "node-7", s->documents[i]};
    }
}

static void tear_down(struct setting *s)
{
    for (int i = 0; i < WORKERS; i++)
        json_decref(s->documents[i]);
}

/* The value at a path of keys and indices, "verbs.1.opens", is replaced. */
static void put(json_t *document, const char *path, const char *value)
{
    char copy[64], *rest = copy;
    snprintf(copy, sizeof copy, "%s", path);
    json_t *at = document, *made = json_loads(value, JSON_DECODE_ANY, NULL);
    assert_non_null(made);
    char *key = strsep(&rest, ".");
    for (; rest; key = strsep(&rest, "."))
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(key)) : json_object_get(at, key);
    assert_int_equal(json_is_array(at) ? json_array_set_new(at, (size_t)atoi(key), made)
                                       : json_object_set_new(at, key, made),
                     0);
}

static struct preflight check(struct setting *s, const struct plan *plan)
{
    struct preflight_input in = {&s->spec, plan, s->workers, WORKERS, NULL};
    struct preflight result = {0};
    struct drarun_error err = {0};
    if (preflight_check(&in, &result, &err) < 0)
        fail_msg("%s", err.text);
    return result;
}

static void no_findings(struct setting *s)
{
    struct preflight result = check(s, NULL);
    struct drarun_error err = {0};
    for (size_t i = 0; i < result.count; i++)
        fail_msg("%s: %s", result.list[i].where, result.list[i].text);
    assert_int_equal(preflight_result(&result, &err), 0);
    preflight_done(&result);
}

static void all_is_well(void **state)
{
    (void)state;
    struct setting s;
    set_up(&s);
    no_findings(&s);
    tear_down(&s);
}

/* Each change to worker 1 gives one finding, with these words. */
static const struct row {
    const char *path, *value;
    enum preflight_code code;
    bool refusal;
    const char *text, *cure;
} table[] = {
    {"verbs.1.opens", "false", PREFLIGHT_VERBS_CLOSED, true,
     "it cannot open /dev/infiniband/uverbs1 of its NIC mlx5_1: ", "deviceNodes"},
    {"verbs.0.ports.0.active", "false", PREFLIGHT_LINK_DOWN, true,
     "the link of its NIC mlx5_0, port 1, is ACTIVE", "subnet manager"},
    {"verbs.0.ports.0.gids", "0", PREFLIGHT_NO_GID, true, "its NIC mlx5_0, port 1, has no GID",
     "address"},
    {"verbs.0.ports.0.gidsElsewhere", "4", PREFLIGHT_NO_GID, true,
     "its NIC mlx5_0, port 1, has no GID for an interface that is in the pod",
     "interface in the pod"},
    {"verbs.0.ports.0", ROCE("RoCE v2", "10.0.0.8"), PREFLIGHT_NO_GID, true,
     "its NIC mlx5_0, port 1, has no GID for the address 10.0.0.7 of its interface net1",
     "down and up"},
    {"verbs.0.ports.0", ROCE("RoCE v1", "10.0.0.7"), PREFLIGHT_NO_GID, true,
     "its NIC mlx5_0, port 1, has the address 10.0.0.7 of its interface net1 as RoCE v1 alone, not "
     "as "
     "RoCE v2",
     "firmware"},
    {"verbs.1.steps", "{\"cq\": {\"done\": false, \"why\": \"Input/output error\"}}",
     PREFLIGHT_NIC_QUEUES, true,
     "it cannot make a completion queue on its NIC mlx5_1: Input/output error", "kernel's log"},
    {"verbs.1.steps",
     "{\"cq\": {\"done\": true}, \"qp\": {\"done\": false, \"why\": \"Cannot allocate memory\"}, "
     "\"memory\": {\"done\": false, \"why\": \"Cannot allocate memory\"}}",
     PREFLIGHT_NIC_QUEUES, true,
     "it cannot make a queue pair on its NIC mlx5_1: Cannot allocate memory", "kernel's log"},
    {"verbs.1.steps", "{\"memory\": {\"done\": false, \"why\": \"Cannot allocate memory\"}}",
     PREFLIGHT_NIC_MEMORY, true,
     "it cannot register 64 MiB of memory with its NIC mlx5_1: Cannot allocate memory",
     "limit on locked memory"},
    {"verbs.1.steps", "{\"qp\": {\"done\": null, \"why\": \"no provider makes them\"}}",
     PREFLIGHT_NIC_UNTRIED, false,
     "it is not known whether it can make a queue pair on its NIC mlx5_1: no provider makes them",
     "ibv_devinfo"},
    {"verbs.1.inferred", "\"opening it: no answer within 30 s\"", PREFLIGHT_NIC_UNTRIED, false,
     "its NIC mlx5_1 is known from sysfs only: opening it: no answer within 30 s", "ibv_devinfo"},
    {"narrow",
     "[{\"pci\": \"0000:8f:00.0\", \"kind\": \"GPU\", \"lanes\": 8, \"maxLanes\": 16, "
     "\"mts\": 32000, \"maxMts\": 32000}]",
     PREFLIGHT_LINK_NARROW, false,
     "the PCIe link of its GPU 0000:8f:00.0 has 8 of 16 lanes at 32 of 32 GT/s", "lspci"},
    {"limits.ipcLock", "false", PREFLIGHT_MEMLOCK, true,
     "it may lock 64 KiB of memory, and RDMA must lock the memory that it transfers",
     "add the capability IPC_LOCK to the container"},
    {"limits.shm", "67108864", PREFLIGHT_SHM, true, "its /dev/shm has 64 MiB, for 2 ranks",
     "emptyDir with medium Memory"},
    {"limits.shm", "536870912", PREFLIGHT_SHM, false, "its /dev/shm has only 512 MiB, for 2 ranks",
     "emptyDir"},
    {"limits.shmInMemory", "false", PREFLIGHT_SHM, false, "its /dev/shm is not in memory",
     "emptyDir"},
    {"probe.visibleGpus", "1", PREFLIGHT_GPU_MISSING, true, "it sees 1 of 2 GPUs", "CDI"},
    {"gpuNodes.0", "{\"path\": \"/dev/nvidia0\", \"opens\": false, \"why\": \"Permission denied\"}",
     PREFLIGHT_GPU_CLOSED, true, "it may not open /dev/nvidia0: Permission denied", "user"},
    {"session.dir", "\"\"", PREFLIGHT_SESSION, true,
     "it can write neither $TMPDIR, /tmp, /dev/shm nor /run", "emptyDir at /tmp"},
    {"session.free", "4096", PREFLIGHT_SESSION, true, "/tmp has 4 KiB left", "make room"},
    {"versions.pmix", "\"5.0.3\"", PREFLIGHT_VERSIONS, true,
     "its agent has libpmix 5.0.3, worker 0's has 5.0.7", "one image"},
    {"versions.drarun", "\"0.2\"", PREFLIGHT_VERSIONS, false,
     "its agent has drarun 0.2, worker 0's has 0.1", "one image"},
};

static void one_thing_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct row *row = &table[i];
        struct setting s;
        set_up(&s);
        put(s.documents[1], row->path, row->value);
        struct preflight result = check(&s, NULL);
        if (result.count != 1)
            fail_msg("%s=%s: %zu findings", row->path, row->value, result.count);
        const struct preflight_finding *f = &result.list[0];
        assert_string_equal(preflight_name(f->code), preflight_name(row->code));
        assert_int_equal(f->refusal, row->refusal);
        assert_int_equal(f->worker, 1);
        assert_string_equal(f->where, "worker 1 (job-w-1 on node-7)");
        if (!strstr(f->text, row->text) || !strstr(f->cure, row->cure))
            fail_msg("got \"%s\": \"%s\"", f->text, f->cure);
        preflight_done(&result);
        tear_down(&s);
    }
}

static void warning_refuses_where_the_spec_says_so(void **state)
{
    (void)state;
    struct setting s;
    struct drarun_error err = {0};
    set_up(&s);
    s.spec.on_preflight_warning = SPEC_FALLBACK_FAIL;
    put(s.documents[1], "limits.shmInMemory", "false");
    struct preflight result = check(&s, NULL);
    assert_int_equal(result.refusals, 1);
    assert_int_equal(preflight_result(&result, &err), -EPERM);
    assert_non_null(strstr(err.text, "its /dev/shm is not in memory"));
    preflight_done(&result);
    tear_down(&s);
}

static void memlock_of_others_than_root(void **state)
{
    (void)state;
    struct setting s;
    set_up(&s);
    put(s.documents[1], "limits", "{\"memlock\": 8388608, \"ipcLock\": false, \"uid\": 1000}");
    struct preflight result = check(&s, NULL);
    assert_int_equal(result.count, 1);
    assert_non_null(strstr(result.list[0].cure, "IPC_LOCK has no effect"));
    preflight_done(&result);
    put(s.documents[1], "limits", "{\"memlock\": 268435456, \"ipcLock\": false}");
    result = check(&s, NULL);
    assert_int_equal(result.count, 1);
    assert_false(result.list[0].refusal);
    preflight_done(&result);
    put(s.documents[1], "limits", "{\"memlock\": -1, \"ipcLock\": false}");
    no_findings(&s);
    tear_down(&s);
}

/* What is not known is no reason. */
static void unknown_is_fine(void **state)
{
    (void)state;
    static const char *const members[] = {"limits", "session", "versions", "gpuNodes", "netdevs"};
    struct setting s;
    set_up(&s);
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        json_object_del(s.documents[2], members[i]);
    no_findings(&s);
    tear_down(&s);
}

static void without_rdma_nics_do_not_matter(void **state)
{
    (void)state;
    struct setting s;
    set_up(&s);
    s.spec.network = SPEC_NETWORK_ANY;
    put(s.documents[1], "verbs", "[]");
    put(s.documents[1], "limits.ipcLock", "false");
    no_findings(&s);
    tear_down(&s);
}

static void numbers_of_hcas(void **state)
{
    (void)state;
    struct setting s;
    struct drarun_error err = {0};
    set_up(&s);
    json_array_remove(json_object_get(s.documents[1], "verbs"), 1);
    s.spec.roles[0].nics.count = 1;
    struct preflight result = check(&s, NULL);
    assert_int_equal(result.count, 1);
    assert_string_equal(result.list[0].text, "the workers hold different numbers of RDMA devices: "
                                             "2 on worker 0 and 1 more, 1 on worker 1");
    assert_int_equal(preflight_result(&result, &err), -EPERM);
    assert_int_equal(err.kind, DRARUN_ERR_PREFLIGHT);
    assert_non_null(strstr(err.text, "worker 1 (job-w-1 on node-7): the workers hold"));
    preflight_done(&result);
    s.spec.roles[0].nics.count = 2;
    result = check(&s, NULL);
    assert_int_equal(result.refusals, 2);
    assert_string_equal(result.list[0].text, "it has 1 RDMA devices of 2 NICs");
    preflight_result(&result, &err);
    assert_non_null(strstr(err.text, "(and 1 more)"));
    preflight_done(&result);
    tear_down(&s);
}

static void the_same_of_many_is_one(void **state)
{
    (void)state;
    struct setting s;
    set_up(&s);
    for (int i = 0; i < WORKERS; i++)
        put(s.documents[i], "limits.ipcLock", "false");
    put(s.documents[2], "limits.shmInMemory", "false");
    struct preflight result = check(&s, NULL);
    assert_int_equal(result.count, 2);
    assert_int_equal(result.refusals, 1);
    assert_string_equal(result.list[0].where, "workers 0-2");
    assert_int_equal(result.list[0].others, 2);
    assert_string_equal(preflight_name(result.list[0].code), "MEMLOCK");
    preflight_done(&result);
    tear_down(&s);
}

static void says_nothing(void **state)
{
    (void)state;
    struct setting s;
    set_up(&s);
    s.workers[2].inspection = NULL;
    struct preflight result = check(&s, NULL);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.list[0].code, PREFLIGHT_NOT_INSPECTED);
    preflight_done(&result);
    tear_down(&s);
}

/* The plan says which NICs were claimed. */
static void claimed_nics(void **state)
{
    (void)state;
    struct setting s;
    struct profile profile = {.name = "rdma", .data = PROFILE_RDMA};
    struct plan_nic nics[2] = {{.found = {.label = "mlx5_0", .ibdev = "mlx5_0"}},
                               {.found = {.label = "gpu1rdma0", .ibdev = "mlx5_9"}}};
    struct plan_worker workers[WORKERS] = {{.nics = nics, .nic_count = 2, .profile = &profile},
                                           {.nics = nics, .nic_count = 1, .profile = &profile},
                                           {.nics = nics, .nic_count = 1, .profile = &profile}};
    struct plan plan = {.workers = workers, .worker_count = WORKERS};
    set_up(&s);
    put(s.documents[1], "verbs.1.opens", "false"); /* not one that it claimed */
    struct preflight result = check(&s, &plan);
    assert_int_equal(result.count, 1);
    assert_string_equal(result.list[0].where, "worker 0 (job-w-0 on node-7)");
    assert_string_equal(result.list[0].text,
                        "its claimed NIC gpu1rdma0 has no RDMA device in the pod");
    preflight_done(&result);
    profile.data = PROFILE_NETDEV;
    nics[0].found.device.pod_name = "eth0";
    nics[1].found.device.pod_name = "eth7";
    result = check(&s, &plan);
    assert_int_equal(result.count, 1);
    assert_string_equal(result.list[0].text,
                        "its claimed NIC gpu1rdma0 has no interface eth7 in the pod");
    preflight_done(&result);
    tear_down(&s);
}

/* The NIC, what may be locked, and the cure in one finding. */
static void memory_that_may_not_be_locked(void **state)
{
    (void)state;
    struct setting s;
    set_up(&s);
    put(s.documents[1], "limits.ipcLock", "false");
    put(s.documents[1], "verbs.0.steps",
        "{\"memory\": {\"done\": false, \"why\": \"Cannot allocate memory\"}}");
    struct preflight result = check(&s, NULL);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.list[0].code, PREFLIGHT_MEMLOCK);
    assert_true(result.list[0].refusal);
    assert_string_equal(result.list[0].text,
                        "it cannot register 64 MiB of memory with its NIC mlx5_0: Cannot allocate "
                        "memory; it may lock 64 KiB of memory");
    assert_non_null(strstr(result.list[0].cure, "add the capability IPC_LOCK"));
    preflight_done(&result);
    tear_down(&s);
}

/* The address of the interface as RoCE v2 is all that is wanted; InfiniBand and iWARP need none. */
static void gids_that_will_do(void **state)
{
    (void)state;
    struct setting s;
    set_up(&s);
    put(s.documents[1], "verbs.0.ports.0", ROCE("RoCE v2", "10.0.0.7"));
    no_findings(&s);
    put(s.documents[1], "verbs.0.ports.0", ROCE("RoCE v2", "10.0.0.8"));
    put(s.documents[1], "verbs.0.ports.0.linkLayer", "\"InfiniBand\"");
    no_findings(&s);
    put(s.documents[1], "verbs.0.ports.0", ROCE("RoCE v1", "10.0.0.8"));
    put(s.documents[1], "verbs.0.iwarp", "true");
    no_findings(&s);
    tear_down(&s);
}

/* Its interface is another pod's; where the pod's are not known, it may be here. */
static void gids_of_others(void **state)
{
    (void)state;
    struct setting s;
    set_up(&s);
    put(s.documents[1], "verbs.0.ports.0", ROCE("RoCE v2", "10.0.0.7"));
    put(s.documents[1], "netdevs", "[{\"name\": \"eth0\"}]");
    struct preflight result = check(&s, NULL);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.list[0].code, PREFLIGHT_NO_GID);
    assert_string_equal(result.list[0].text,
                        "its NIC mlx5_0, port 1, has no GID for an interface that is in the pod");
    preflight_done(&result);
    put(s.documents[1], "verbs.0.iwarp", "true");
    result = check(&s, NULL);
    assert_int_equal(result.count, 1);
    assert_string_equal(result.list[0].text,
                        "the interface of its NIC mlx5_0, port 1, is not in the pod");
    preflight_done(&result);
    json_object_del(s.documents[1], "netdevs");
    no_findings(&s);
    tear_down(&s);
}

/* preflight.fabric: off asks for none of it. */
static void not_opened_where_not_wanted(void **state)
{
    (void)state;
    struct setting s;
    set_up(&s);
    s.spec.fabric = SPEC_FABRIC_OFF;
    put(s.documents[1], "verbs.1.inferred", "\"it was not opened\"");
    no_findings(&s);
    tear_down(&s);
}

/* A link that has trained lower than what the scheduler was told. */
static void speed_as_published(void **state)
{
    (void)state;
    struct setting s;
    struct profile profile = {.name = "rdma", .data = PROFILE_RDMA};
    json_t *attributes = json_loads("{\"drarun.dev/speed\": {\"int\": 400000}}", 0, NULL);
    struct slice_device slice = {.attributes = attributes};
    struct plan_nic nic = {
        .found = {.label = "mlx5_0", .ibdev = "mlx5_0", .device = {.slice = &slice}}};
    struct plan_worker workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        workers[i] = (struct plan_worker){.nics = &nic, .nic_count = 1, .profile = &profile};
    struct plan plan = {.workers = workers, .worker_count = WORKERS};
    set_up(&s);
    put(s.documents[0], "verbs.0.ports.0.rateMbps", "400000");
    put(s.documents[1], "verbs.0.ports.0.rateMbps", "200000");
    struct preflight result = check(&s, &plan);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.list[0].code, PREFLIGHT_LINK_SLOW);
    assert_true(result.list[0].refusal);
    assert_string_equal(result.list[0].where, "worker 1 (job-w-1 on node-7)");
    assert_string_equal(result.list[0].text, "its NIC mlx5_0, port 1, runs at 200 Gb/s, and its "
                                             "driver has published 400");
    preflight_done(&result);
    s.spec.network = SPEC_NETWORK_ANY; /* it would run without */
    result = check(&s, &plan);
    assert_int_equal(result.count, 1);
    assert_false(result.list[0].refusal);
    preflight_done(&result);
    json_decref(attributes);
    tear_down(&s);
}

#define NARROW(address)                                                                            \
    "[{\"pci\": \"" address "\", \"kind\": \"NIC\", \"lanes\": 8, \"maxLanes\": 16, "              \
    "\"mts\": 16000, \"maxMts\": 32000}]"

/* With a plan its devices count, and not all that the pod sees. */
static void devices_of_the_plan(void **state)
{
    static const struct {
        size_t gpus, unread; /* unread: those that the claim has and no slice describes */
        bool mig;
        const char *path, *value;
        const char *text; /* NULL: nothing is wrong */
    } rows[] = {
        {1, 0, false, "probe.visibleGpus", "1", NULL},
        {1, 0, false, "probe.visibleGpus", "0", "it sees 0 of 1 GPUs"},
        {1, 3, false, "probe.visibleGpus", "2", "it sees 2 of 3 GPUs"},
        {1, 3, false, "probe.visibleGpus", "3", NULL},
        {1, 0, true, "probe.visibleGpus", "0", NULL}, /* they are parts of GPUs */
        {0, 0, false, "probe.visibleGpus", "0", NULL},
        {1, 0, false, "gpuNodes.0",
         "{\"path\": \"/dev/nvidia0\", \"opens\": false, \"why\": \"x\"}",
         "it may not open /dev/nvidia0: x"},
        {0, 0, false, "gpuNodes.0",
         "{\"path\": \"/dev/nvidia0\", \"opens\": false, \"why\": \"x\"}", NULL},
        {1, 0, false, "narrow", NARROW("0000:8f:00.0"),
         "the PCIe link of its NIC 0000:8f:00.0 has 8 of 16 lanes at 16 of 32 GT/s"},
        {1, 0, false, "narrow", NARROW("0000:90:00.0"),
         "the PCIe link of its NIC 0000:90:00.0 has 8 of 16 lanes at 16 of 32 GT/s"},
        {1, 0, false, "narrow", NARROW("0000:91:00.0"), NULL},
        {0, 0, false, "narrow", NARROW("0000:8f:00.0"), NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct setting s;
        struct profile profile = {.name = "none", .data = PROFILE_NO_DATA};
        struct plan_gpu gpu = {.device = {.kind = rows[i].mig ? DEVICE_MIG : DEVICE_GPU,
                                          .pci = pci_parse("0000:8f:00.0")}};
        struct plan_nic nic = {.found = {.label = "mlx5_0",
                                         .ibdev = "mlx5_0",
                                         .device = {.pci = pci_parse("0000:90:00.0")}}};
        struct plan_worker workers[WORKERS];
        for (int w = 0; w < WORKERS; w++)
            workers[w] = (struct plan_worker){.gpus = &gpu,
                                              .gpu_count = rows[i].gpus,
                                              .unread_gpus = (uint32_t)rows[i].unread,
                                              .nics = &nic,
                                              .nic_count = 1,
                                              .profile = &profile};
        struct plan plan = {.workers = workers, .worker_count = WORKERS};
        set_up(&s);
        s.spec.network = SPEC_NETWORK_ANY;
        for (int w = 0; w < WORKERS; w++)
            put(s.documents[w], "probe.visibleGpus", "9");
        put(s.documents[1], rows[i].path, rows[i].value);
        struct preflight result = check(&s, &plan);
        if (result.count != (rows[i].text != NULL))
            fail_msg("row %zu: %zu findings, %s", i, result.count,
                     result.count ? result.list[0].text : "");
        if (rows[i].text)
            assert_string_equal(result.list[0].text, rows[i].text);
        preflight_done(&result);
        tear_down(&s);
    }
}

/* A card of two ports has a cable in one of them. */
static void one_port_of_two(void **state)
{
    (void)state;
    static const char ports[] = "[{\"number\": 1, \"state\": \"DOWN\", \"active\": false, "
                                "\"gids\": 0}, {\"number\": 2, \"state\": \"ACTIVE\", "
                                "\"active\": true, \"gids\": 1}]";
    struct setting s;
    set_up(&s);
    put(s.documents[1], "verbs.0.ports", ports);
    no_findings(&s);
    put(s.documents[1], "verbs.0.ports.1.gids", "0");
    struct preflight result = check(&s, NULL);
    assert_int_equal(result.count, 1);
    assert_string_equal(result.list[0].text, "its NIC mlx5_0, port 2, has no GID");
    preflight_done(&result);
    tear_down(&s);
}

/* The other port is another fabric's, or another tenant's. */
static void ports_that_carry_no_data(void **state)
{
    (void)state;
    static const char both[] = "[{\"number\": 1, \"state\": \"ACTIVE\", \"active\": true, "
                               "\"gids\": 0}, {\"number\": 2, \"state\": \"ACTIVE\", "
                               "\"active\": true, \"gids\": 1}]";
    struct setting s;
    struct profile profile = {.name = "rdma", .data = PROFILE_RDMA};
    struct topo_port ports[] = {{.number = 1}, {.number = 2}};
    struct plan_nic nic = {.found = {.label = "mlx5_0",
                                     .ibdev = "mlx5_0",
                                     .ports = ports,
                                     .port_count = 2,
                                     .data_ports = 1u << 1}};
    struct plan_worker workers[WORKERS];
    struct plan plan = {.workers = workers, .worker_count = WORKERS};
    for (size_t i = 0; i < WORKERS; i++)
        workers[i] = (struct plan_worker){.nics = &nic, .nic_count = 1, .profile = &profile};
    set_up(&s);
    for (size_t i = 0; i < WORKERS; i++)
        put(s.documents[i], "verbs.0.ports", both);
    struct preflight result = check(&s, &plan);
    assert_int_equal(result.count, 0);
    preflight_done(&result);
    put(s.documents[1], "verbs.0.ports.1.active", "false"); /* although port 1 is not */
    result = check(&s, &plan);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.list[0].code, PREFLIGHT_LINK_DOWN);
    assert_string_equal(result.list[0].text, "the link of its NIC mlx5_0, port 2, is ACTIVE");
    preflight_done(&result);
    tear_down(&s);
}

/* The plan leaves out what is down; that it was claimed is not forgotten. */
static void claimed_nics_that_are_down(void **state)
{
    (void)state;
    struct setting s;
    struct profile profile = {.name = "rdma", .data = PROFILE_RDMA};
    struct plan_nic nics[1] = {{.found = {.label = "mlx5_0", .ibdev = "mlx5_0"}}};
    struct plan_left_nic left[1] = {{.ibdev = "mlx5_1", .use = NIC_USE_DOWN, .claimed = true}};
    struct plan_worker workers[WORKERS] = {
        {.nics = nics, .nic_count = 1, .profile = &profile},
        {.nics = nics, .nic_count = 1, .left = left, .left_count = 1, .profile = &profile},
        {.nics = nics, .nic_count = 1, .profile = &profile}};
    struct plan plan = {.workers = workers, .worker_count = WORKERS};
    set_up(&s);
    put(s.documents[1], "verbs.1.ports.0.active", "false");
    put(s.documents[1], "verbs.1.ports.0.state", "\"DOWN\"");
    struct preflight result = check(&s, &plan);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.list[0].code, PREFLIGHT_LINK_DOWN);
    assert_string_equal(result.list[0].text, "the link of its NIC mlx5_1, port 1, is DOWN");
    preflight_done(&result);
    left[0].claimed = false;
    result = check(&s, &plan);
    assert_int_equal(result.count, 0);
    preflight_done(&result);
    tear_down(&s);
}

static void alignment(void **state)
{
    (void)state;
    struct setting s;
    struct profile profile = {.name = "rdma", .data = PROFILE_RDMA};
    struct plan_worker workers[WORKERS] = {
        {.profile = &profile}, {.profile = &profile}, {.profile = &profile}};
    struct plan plan = {.workers = workers, .worker_count = WORKERS};
    set_up(&s);
    s.spec.roles[0].gpus.resource =
        "nvidia.com/gpu"; /* of a device plugin: no claim can pair them */
    s.spec.roles[0].nics.class = "dranet";
    s.spec.roles[0].align = SPEC_ALIGN_REQUIRED;
    assert_int_equal(claims_alignment(&s.spec.roles[0]), CLAIMS_ALIGNED_IN_POD);
    warnings_add(&plan.warnings, WARN_MISALIGNED_SYS, 2, "gpu-0 -> mlx5_0 crosses NUMA nodes");
    struct preflight result = check(&s, &plan);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.list[0].worker, 2);
    assert_string_equal(result.list[0].text,
                        "align: required, but gpu-0 -> mlx5_0 crosses NUMA nodes");
    preflight_done(&result);
    s.spec.roles[0].align = SPEC_ALIGN_PREFERRED;
    result = check(&s, &plan);
    assert_int_equal(result.count, 0);
    preflight_done(&result);
    /* the host bridge is near enough where there is no common root */
    s.spec.roles[0].align = SPEC_ALIGN_REQUIRED;
    warnings_add(&plan.warnings, WARN_MISALIGNED_PHB, 1, "gpu-0 -> mlx5_0 by the host bridge");
    result = check(&s, &plan);
    assert_int_equal(result.count, 2);
    preflight_done(&result);
    s.spec.roles[0].machine.no_root = "each device is alone in its domain";
    result = check(&s, &plan);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.list[0].worker, 2);
    preflight_done(&result);
    warnings_done(&plan.warnings);
    tear_down(&s);
}

/* What is wrong with a NIC is noted by worker and rail, whether it ends the job or not. */
static void noted_by_rail(void **state)
{
    static const enum spec_network networks[] = {SPEC_NETWORK_RDMA, SPEC_NETWORK_ANY};
    static const struct profile profile = {.data = PROFILE_RDMA};
    struct plan_nic nics[3] = {{.found = {.label = "mlx5_0", .ibdev = "mlx5_0"}},
                               {.found = {.label = "mlx5_1", .ibdev = "mlx5_1"}},
                               {.found = {.label = "mlx5_7", .ibdev = "mlx5_7"}}};
    struct plan_worker workers[WORKERS] = {{.nics = nics, .nic_count = 2, .profile = &profile},
                                           {.nics = nics, .nic_count = 2, .profile = &profile},
                                           {.nics = &nics[1], .nic_count = 2, .profile = &profile}};
    const struct plan plan = {.workers = workers, .worker_count = WORKERS};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(networks); i++) {
        struct setting s;
        set_up(&s);
        s.spec.network = networks[i];
        put(s.documents[0], "verbs.1.inferred", "\"no answer\"");
        put(s.documents[1], "verbs.1.opens", "false");
        struct fabric *fabric = fabric_new(&plan);
        struct preflight_input in = {&s.spec, &plan, s.workers, WORKERS, fabric};
        struct preflight result = {0};
        assert_int_equal(preflight_check(&in, &result, NULL), 0);
        CLEANUP(json_decrefp) json_t *value = fabric_json(fabric, NULL);
        const json_t *matrix = json_object_get(json_object_get(value, "opened"), "matrix");
        assert_string_equal(json_string_value(json_array_get(matrix, 0)), ".?");
        assert_string_equal(json_string_value(json_array_get(matrix, 1)), ".x");
        assert_string_equal(json_string_value(json_array_get(matrix, 2)), ".x");
        const json_t *missing =
            json_array_get(json_object_get(json_object_get(value, "opened"), "broken"), 2);
        assert_string_equal(json_string_value(json_object_get(missing, "code")), "NIC_MISSING");
        assert_string_equal(json_string_value(json_object_get(missing, "device")), "mlx5_7");
        preflight_done(&result);
        fabric_free(fabric);
        tear_down(&s);
    }
}

static void test_every_code_has_its_words(void **state)
{
    (void)state;
    for (int i = PREFLIGHT_NONE + 1; i < PREFLIGHT_COUNT; i++) {
        assert_non_null(preflight_meaning((enum preflight_code)i));
        assert_non_null(preflight_cure((enum preflight_code)i));
    }
    assert_null(preflight_cure(PREFLIGHT_NONE));
    assert_null(preflight_meaning(PREFLIGHT_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_well),
        cmocka_unit_test(one_thing_wrong),
        cmocka_unit_test(warning_refuses_where_the_spec_says_so),
        cmocka_unit_test(memlock_of_others_than_root),
        cmocka_unit_test(unknown_is_fine),
        cmocka_unit_test(without_rdma_nics_do_not_matter),
        cmocka_unit_test(numbers_of_hcas),
        cmocka_unit_test(the_same_of_many_is_one),
        cmocka_unit_test(says_nothing),
        cmocka_unit_test(claimed_nics),
        cmocka_unit_test(memory_that_may_not_be_locked),
        cmocka_unit_test(gids_that_will_do),
        cmocka_unit_test(gids_of_others),
        cmocka_unit_test(not_opened_where_not_wanted),
        cmocka_unit_test(speed_as_published),
        cmocka_unit_test(devices_of_the_plan),
        cmocka_unit_test(one_port_of_two),
        cmocka_unit_test(ports_that_carry_no_data),
        cmocka_unit_test(claimed_nics_that_are_down),
        cmocka_unit_test(alignment),
        cmocka_unit_test(noted_by_rail),
        cmocka_unit_test(test_every_code_has_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
