/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of machines that only show themselves: a probe and an instance type, no claims. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/derive/plan.h"
#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"

#define IB_NIC(name, pci)                                                                          \
    "\"" name "\": {\"pci\": \"" pci "\", \"linkLayer\": \"InfiniBand\", \"root\": \"r\", "        \
    "\"numa\": 0, \"speedMbps\": 400000}"
#define TWO_NICS IB_NIC("mlx5_0", "0000:31:00.0") ", " IB_NIC("mlx5_1", "0000:32:00.0")
#define GPU "{\"pci\": \"0000:11:00.0\", \"root\": \"r\", \"numa\": 0, \"uuid\": \"GPU-0\"}"
#define PROBE "{\"gpus\": [" GPU "], \"visibleGpus\": 1, \"ibdevs\": {" TWO_NICS "}}"

struct row {
    const char *says;
    const char *type; /* of the instance; NULL: no label */
    const char *probe;
    const char *user;    /* NAME=VALUE or NULL */
    const char *version; /* NULL: the newest */
    const char *name;    /* of the variable that is looked at */
    const char *value;   /* NULL: it is not set */
    const char *rule;    /* NULL: not looked at */
};

static const struct row table[] = {
    {"exact names and ports, in PCI order", NULL, PROBE, NULL, NULL, "NCCL_IB_HCA",
     "=mlx5_0:1,mlx5_1:1", "hca-list"},
    {"the user's list", NULL, PROBE, "NCCL_IB_HCA=mlx5", NULL, "NCCL_IB_HCA", "mlx5", "user"},
    {"a user's value may hold an equals sign", NULL, PROBE, "NCCL_IB_HCA==mlx5_1", NULL,
     "NCCL_IB_HCA", "=mlx5_1", "user"},
    {"a user's empty value is a value", NULL, PROBE, "NCCL_NET=", NULL, "NCCL_NET", "", "user"},
    {"what is not NAME=VALUE is passed over", NULL, PROBE, "=x", NULL, "", NULL, NULL},
    {"a vendor's variable", "a4-highgpu-8g", PROBE, NULL, NULL, "NCCL_IB_TC", "52", "gke-a4"},
    {"without the profile it is unset", NULL, PROBE, NULL, NULL, "NCCL_IB_TC", NULL, NULL},
    {"by version, before", "a4x-highgpu-4g", PROBE, NULL, "2.29.1", "NCCL_NET_GDR_LEVEL", "PIX",
     "gke-a4x"},
    {"by version, from", "a4x-highgpu-4g", PROBE, NULL, "2.29.2", "NCCL_NET_GDR_LEVEL", NULL, NULL},
    {"by version, within", "Standard_ND128isr_GB200_v6", PROBE, NULL, "2.26.6", "NCCL_NET_GDR_C2C",
     "1", "azure-gb"},
    {"by version, without", "Standard_ND128isr_GB200_v6", PROBE, NULL, "2.27.3", "NCCL_NET_GDR_C2C",
     NULL, NULL},
    {"by instance type", "BM.GPU4.8", PROBE, NULL, NULL, "NCCL_IB_QPS_PER_CONNECTION", "4",
     "oci-roce"},
    {"by another", "BM.GPU.H200.8", PROBE, NULL, NULL, "NCCL_IB_QPS_PER_CONNECTION", NULL, NULL},
    {"not by instance type", "BM.GPU.GB200.4", PROBE, NULL, NULL, "NCCL_IB_TC", NULL, NULL},
    {"a later row of one name wins", "BM.GPU.GB200.4", PROBE, NULL, NULL, "NCCL_NET_PLUGIN", "sys",
     "oci-gb200"},
    {"placeholders", NULL, PROBE, NULL, NULL, "NCCL_SOCKET_IFNAME", "=net1", "common"},
    {"a placeholder within a text", "a3-megagpu-8g",
     "{\"gpus\": [" GPU "], \"ibdevs\": {" TWO_NICS "}}", NULL, NULL, "NCCL_TUNER_CONFIG_PATH",
     "/usr/local/nvidia/lib64/a3plus_tuner_config.textproto", "gke-tcpxo"},
    {"the directory that the pod shows", "a3-megagpu-8g",
     "{\"gpus\": [" GPU "], \"ibdevs\": {" TWO_NICS "}, \"files\": {"
     "\"/usr/local/tcpxo/lib64/a3plus_tuner_config.textproto\": true}}",
     NULL, NULL, "NCCL_TUNER_CONFIG_PATH", "/usr/local/tcpxo/lib64/a3plus_tuner_config.textproto",
     "gke-tcpxo"},
    {"the folder that is mounted", "a3-megagpu-8g",
     "{\"gpus\": [" GPU "], \"ibdevs\": {" TWO_NICS "}, \"files\": {"
     "\"/dev/aperture_devices\": true}}",
     NULL, NULL, "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY", "/dev/aperture_devices", "gke-tcpxo"},
    {"a folder that is not mounted", "a3-megagpu-8g",
     "{\"gpus\": [" GPU "], \"ibdevs\": {" TWO_NICS "}, \"files\": {}}", NULL, NULL,
     "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY", NULL, NULL},
    {"a file that is not there", "a4-highgpu-8g",
     "{\"gpus\": [" GPU "], \"ibdevs\": {" TWO_NICS "}, \"files\": {}}", NULL, NULL,
     "NCCL_TUNER_CONFIG_PATH", NULL, NULL},
    {"no channel on a chip-to-chip machine", "Standard_ND128isr_GB200_v6", PROBE, NULL, NULL,
     "NCCL_MNNVL_ENABLE", "0", "mnnvl"},
    {"nothing of the kind elsewhere", NULL, PROBE, NULL, NULL, "NCCL_MNNVL_ENABLE", NULL, NULL},
    {"a chip-to-chip machine by its product", NULL,
     "{\"gpus\": [{\"pci\": \"0008:01:00.0\", \"uuid\": \"GPU-0\", \"product\": \"NVIDIA "
     "GB200\"}], "
     "\"ibdevs\": {" TWO_NICS "}}",
     NULL, NULL, "NCCL_MNNVL_ENABLE", "0", "mnnvl"},
    {"MPI stays on TCP beside GPUs", NULL, PROBE, NULL, NULL, "UCX_NET_DEVICES", "net1", "common"},
    {"a rank's place", NULL, PROBE, NULL, NULL, "LOCAL_WORLD_SIZE", "1", "rank"},
    {"a rank's GPUs", NULL, PROBE, NULL, NULL, "CUDA_VISIBLE_DEVICES", "0", "cuda-devices"},
    {"and keeps what UCX has for GPUs' memory", NULL, PROBE, NULL, NULL, "UCX_TLS", NULL, NULL},
};

/* Common, then the worker's own, then its first rank's. */
static const struct plan_var *find(const struct plan *plan, const char *name)
{
    const struct plan_worker *worker = &plan->workers[0];
    const struct plan_var *var = plan_vars_find(&plan->env, name);
    if (!var)
        var = plan_vars_find(&worker->env, name);
    return var || !worker->rank_env ? var : plan_vars_find(&worker->rank_env[0], name);
}

/* Of the rules in the table: the others are profiles. */
static enum plan_origin origin_of(const char *rule)
{
    static const struct {
        const char *rule;
        enum plan_origin origin;
    } origins[] = {{"user", PLAN_BY_USER},         {"common", PLAN_BY_COMMON},
                   {"hca-list", PLAN_BY_RULE},     {"mnnvl", PLAN_BY_RULE},
                   {"cuda-devices", PLAN_BY_RULE}, {"rank", PLAN_BY_PLACE}};
    for (size_t i = 0; i < ARRAY_LEN(origins); i++)
        if (strcmp(rule, origins[i].rule) == 0)
            return origins[i].origin;
    return PLAN_BY_PROFILE;
}

static void check(const struct row *row, const struct profiles *profiles)
{
    json_error_t where;
    json_t *probe = json_loads(row->probe, 0, &where);
    json_t *labels =
        row->type ? json_pack("{s:{s:s}}", "n", "node.kubernetes.io/instance-type", row->type)
                  : json_object();
    struct plan_worker_input worker = {.pod = "w", .node = "n", .probe = probe};
    char *user[] = {unconst(row->user), NULL};
    struct plan_input in = {.network = SPEC_NETWORK_RDMA,
                            .nccl_version = row->version,
                            .pod_interface = "net1",
                            .user_env = user,
                            .node_labels = labels,
                            .profiles = profiles,
                            .workers = &worker,
                            .worker_count = 1};
    struct plan plan;
    struct drarun_error err = {0};
    if (!probe)
        fail_msg("%s: %s at %d", row->says, where.text, where.position);
    if (plan_build(&in, &plan, &err) < 0)
        fail_msg("%s: %s", row->says, err.text);
    const struct plan_var *var = find(&plan, row->name);
    if ((var != NULL) != (row->value != NULL) || (var && strcmp(var->value, row->value) != 0))
        fail_msg("%s: expected %s=%s, got %s", row->says, row->name,
                 row->value ? row->value : "unset", var ? var->value : "unset");
    if (row->rule) {
        assert_string_equal(var->rule, row->rule);
        assert_int_equal(var->origin, origin_of(row->rule));
    }
    for (size_t i = 0; i < plan.env.count; i++) { /* --explain has something to say of each */
        assert_non_null(plan.env.list[i].reason);
        assert_true(plan.env.list[i].reason[0]);
        assert_non_null(plan.env.list[i].source);
        assert_non_null(plan.env.list[i].fact);
    }
    plan_done(&plan);
    json_decref(labels);
    json_decref(probe);
}

static void rows(void **unused)
{
    struct profiles profiles;
    (void)unused;
    assert_int_equal(profiles_builtin(&profiles, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        check(&table[i], &profiles);
    profiles_done(&profiles);
}

/* What a launcher must not do with profiles, held for all of them at once. */
static void what_no_profile_does(void **unused)
{
    static const char *const never[] = {
        "NCCL_SHM_DISABLE", "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE",     "NCCL_HOSTID",
        "NCCL_GRAPH_FILE",  "NCCL_DEBUG",       "NCCL_CHECKS_DISABLE", "NCCL_NUMA"};
    static const char *const tcpx_alone[] = {"NCCL_ALGO", "NCCL_PROTO", "NCCL_MIN_NCHANNELS"};
    struct profiles profiles;
    (void)unused;
    assert_int_equal(profiles_builtin(&profiles, NULL), 0);
    for (size_t p = 0; p < profiles.count; p++) {
        const struct profile *profile = &profiles.list[p];
        assert_true(profile->source[0]);
        size_t i;
        json_t *row;
        json_array_foreach(profile->variables, i, row)
        {
            const char *name = json_string_value(json_object_get(row, "name"));
            const char *value = json_string_value(json_object_get(row, "value"));
            assert_true(json_string_length(json_object_get(row, "reason")) > 0);
            for (size_t n = 0; n < ARRAY_LEN(never); n++)
                assert_string_not_equal(name, never[n]);
            for (size_t n = 0; n < ARRAY_LEN(tcpx_alone); n++)
                if (strncmp(profile->name, "gke-tcpx", strlen("gke-tcpx")) != 0)
                    assert_string_not_equal(name, tcpx_alone[n]);
            assert_false(strcmp(name, "NCCL_NVLS_ENABLE") == 0 && strcmp(value, "0") == 0);
            if (value[0] == '/' || strstr(value, "${directory}/")) /* it must be seen to be set */
                assert_true(json_is_true(json_object_get(row, "file")));
        }
    }
    profiles_done(&profiles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows),
                                       cmocka_unit_test(what_no_profile_does)};
    return cmocka_run_group_tests_name("ncclenv", tests, NULL, NULL);
}
