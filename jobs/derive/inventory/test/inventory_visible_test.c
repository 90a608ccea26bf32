/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of claims of which nothing but names is known: the pod's own view takes their place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "jobs/derive/plan.h"

#define GPU(pci) "{\"pci\": \"" pci "\", \"uuid\": \"GPU-" pci "\"}"
#define NIC(pci)                                                                                   \
    "{\"pci\": \"" pci "\", \"port\": 1, \"linkLayer\": \"InfiniBand\", \"speedMbps\": 400000}"
#define RESULT(request, driver, device)                                                            \
    "{\"request\": \"" request "\", \"driver\": \"" driver                                         \
    "\", \"pool\": \"n\", \"device\": \"" device "\"}"

static const char two_of_each[] =
    "[{\"kind\": \"ResourceClaim\", \"metadata\": {\"name\": \"c\"}, \"status\": {\"allocation\": "
    "{\"devices\": {\"results\": [" RESULT("gpu-0", "gpu.nvidia.com", "a") ", " RESULT(
        "gpu-1", "gpu.nvidia.com",
        "b") ", " RESULT("nic-0", "dra.net",
                         "c") ", " RESULT("nic-1", "dra.net",
                                          "d") "]}}, \"devices\": [{\"driver\": \"dra.net\", "
                                               "\"pool\": "
                                               "\"n\", \"device\": \"c\", \"networkData\": "
                                               "{\"interfaceName\": \"eth1\"}}]}}]";

struct fixture {
    json_t *claims, *probe;
    struct profiles profiles;
    struct plan plan;
};

static const char a_nic[] =
    "[{\"kind\": \"ResourceClaim\", \"metadata\": {\"name\": \"c\"}, \"status\": {\"allocation\": "
    "{\"devices\": {\"results\": [" RESULT("nic-0", "dra.net", "c") "]}}}}]";

static void build_of(struct fixture *f, const char *claims, bool no_gpus, const char *probe,
                     enum spec_network network)
{
    f->claims = json_loads(claims, 0, NULL);
    f->probe = json_loads(probe, 0, NULL);
    assert_non_null(f->claims);
    assert_non_null(f->probe);
    assert_int_equal(profiles_builtin(&f->profiles, NULL), 0);
    const struct plan_worker_input worker = {
        .pod = "w-0", .node = "n", .claims = f->claims, .probe = f->probe};
    const struct plan_input input = {.network = network,
                                     .slices_unknown = true,
                                     .no_gpus = no_gpus,
                                     .profiles = &f->profiles,
                                     .workers = &worker,
                                     .worker_count = 1};
    struct drarun_error err = {0};
    if (plan_build(&input, &f->plan, &err) < 0)
        fail_msg("%s", err.text);
}

static void build(struct fixture *f, const char *probe, enum spec_network network)
{
    build_of(f, two_of_each, false, probe, network);
}

static void done(struct fixture *f)
{
    plan_done(&f->plan);
    profiles_done(&f->profiles);
    json_decref(f->claims);
    json_decref(f->probe);
}

static void test_what_the_pod_shows(void **state)
{
    struct fixture f;
    (void)state;
    build(&f,
          "{\"visibleGpus\": 2, \"gpus\": [" GPU("0000:1b:00.0") ", " GPU(
              "0000:43:00.0") "], "
                              "\"visibleIbdevs\": [\"mlx5_0\", \"mlx5_3\"], \"ibdevs\": "
                              "{\"mlx5_0\": " NIC("0000:18:00.0") ", \"mlx5_3\": " NIC(
                                  "0000:40:00.0") "}}",
          SPEC_NETWORK_RDMA);
    const struct plan_worker *worker = &f.plan.workers[0];
    assert_int_equal(f.plan.refusal.code, WARNING_NONE);
    assert_int_equal(worker->gpu_count, 2);
    assert_int_equal(worker->nic_count, 2);
    assert_string_equal(worker->nics[1].found.ibdev, "mlx5_3");
    assert_int_equal(f.plan.world_size, 2);
    const struct plan_var *list = plan_vars_find(&worker->env, "NCCL_IB_HCA");
    assert_non_null(list);
    assert_string_equal(list->value, "=mlx5_0:1,mlx5_3:1");
    done(&f);
}

/* Two of its three GPUs are the pod's: which is not known, and none is paired. */
static void test_more_gpus_than_claimed(void **state)
{
    struct fixture f;
    (void)state;
    build(&f,
          "{\"visibleGpus\": 3, \"gpus\": [" GPU("0000:1b:00.0") ", " GPU("0000:43:00.0") ", " GPU(
              "0000:52:00.0") "], "
                              "\"visibleIbdevs\": [], \"ibdevs\": {}}",
          SPEC_NETWORK_ANY);
    assert_int_equal(f.plan.workers[0].gpu_count, 0);
    assert_int_equal(f.plan.workers[0].plugin_gpus, 2);
    assert_int_equal(f.plan.world_size, 2);
    assert_true(warnings_have(&f.plan.warnings, WARN_GPUS_UNKNOWN, WORKER_NONE));
    assert_false(warnings_have(&f.plan.warnings, WARN_GPUS_BY_DEVICE_PLUGIN, WORKER_NONE));
    done(&f);
}

#define CALLED(pci, netdev)                                                                        \
    "{\"pci\": \"" pci "\", \"port\": 1, \"linkLayer\": \"Ethernet\", \"netdev\": " netdev "}"
#define THREE_NICS                                                                                 \
    "{\"ibdevs\": {\"mlx5_0\": " CALLED("0000:18:00.0", "null") ", \"mlx5_1\": " CALLED(           \
        "0000:40:00.0", "\"a\"") ", \"mlx5_2\": " CALLED("0000:4f:00.0", "\"b\"") "}}"
#define NIC_RESULT(device) RESULT("nic", "dra.net", device)
#define IN_POD(device, interface)                                                                  \
    "{\"driver\": \"dra.net\", \"pool\": \"n\", \"device\": \"" device                             \
    "\", \"networkData\": {\"interfaceName\": \"" interface "\"}}"

/* A privileged pod shows the NICs of its node: its own are those whose interfaces its claim's
 * status names. It has two shares of one of them. */
static void test_more_nics_than_claimed(void **state)
{
    static const char results[] = NIC_RESULT("c") ", " NIC_RESULT("d") ", " NIC_RESULT("c");
    static const char devices[] = IN_POD("c", "b") ", " IN_POD("d", "a");
    char two[2048];
    snprintf(two, sizeof two,
             "[{\"kind\": \"ResourceClaim\", \"metadata\": {\"name\": \"c\"}, \"status\": "
             "{\"allocation\": {\"devices\": {\"results\": [%s]}}, \"devices\": [%s]}}]",
             results, devices);
    struct fixture f;
    (void)state;
    build_of(&f, two, true, THREE_NICS, SPEC_NETWORK_RDMA);
    const struct plan_worker *worker = &f.plan.workers[0];
    assert_int_equal(f.plan.refusal.code, WARNING_NONE);
    assert_int_equal(worker->nic_count, 2);
    assert_int_equal(worker->unread_nics, 2);
    assert_string_equal(plan_vars_find(&worker->env, "NCCL_IB_HCA")->value, "=mlx5_1:1,mlx5_2:1");
    done(&f);
}

static void test_nics_that_are_not_there(void **state)
{
    struct fixture f;
    (void)state;
    build(&f, "{\"visibleGpus\": 0, \"gpus\": [], \"visibleIbdevs\": [], \"ibdevs\": {}}",
          SPEC_NETWORK_RDMA);
    assert_int_equal(f.plan.refusal.code, WARN_NO_GPU);
    assert_non_null(strstr(f.plan.refusal.detail, "none of the 2 GPUs"));
    done(&f);
    build(&f,
          "{\"visibleGpus\": 2, \"gpus\": [" GPU("0000:1b:00.0") ", " GPU(
              "0000:43:00.0") "], \"visibleIbdevs\": [], \"ibdevs\": {}}",
          SPEC_NETWORK_RDMA);
    assert_int_equal(f.plan.refusal.code, WARN_NO_RDMA_NIC);
    done(&f);
}

#define NODES_GPU(pci, more) "{\"pci\": \"" pci "\", \"numa\": 0, \"root\": \"pci0000:1a\"" more "}"
#define TWO_GPUS_AND_A_NIC(more)                                                                   \
    "{\"visibleGpus\": 2, \"gpus\": [" NODES_GPU("0000:1b:00.0", more) ", " NODES_GPU(             \
        "0000:43:00.0", more) "], \"visibleIbdevs\": [\"mlx5_0\"], \"ibdevs\": "                   \
                              "{\"mlx5_0\": " NIC("0000:18:00.0") "}}"

/* A node's GPUs, in a pod that has asked for a NIC alone: its own only where a file says so. */
static void test_gpus_of_the_node(void **state)
{
    struct fixture f;
    (void)state;
    build_of(&f, a_nic, true, TWO_GPUS_AND_A_NIC(""), SPEC_NETWORK_RDMA);
    assert_int_equal(f.plan.refusal.code, WARNING_NONE);
    assert_int_equal(f.plan.workers[0].gpu_count, 0);
    assert_int_equal(f.plan.workers[0].nic_count, 1);
    assert_int_equal(f.plan.warnings.count, 0);
    done(&f);
    build_of(&f, a_nic, true, TWO_GPUS_AND_A_NIC(", \"usable\": true"), SPEC_NETWORK_RDMA);
    assert_int_equal(f.plan.workers[0].gpu_count, 2);
    assert_true(warnings_have(&f.plan.warnings, WARN_FEWER_NICS_THAN_GPUS, 0));
    done(&f);
    build_of(&f, a_nic, false, TWO_GPUS_AND_A_NIC(""), SPEC_NETWORK_RDMA);
    assert_int_equal(f.plan.workers[0].gpu_count, 2);
    done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_pod_shows),
        cmocka_unit_test(test_more_gpus_than_claimed),
        cmocka_unit_test(test_more_nics_than_claimed),
        cmocka_unit_test(test_nics_that_are_not_there),
        cmocka_unit_test(test_gpus_of_the_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
