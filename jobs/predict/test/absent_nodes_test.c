/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of nodes that do not exist yet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/predict/absent_nodes.h"
#include "lib/base/cleanup.h"

/* As cluster-autoscaler writes it (pkg/clusterstate/api/types.go); GKE has addresses for names. */
#define GROUP(name, target, most, scale_up)                                                        \
    "- name: " name "\n"                                                                           \
    "  health:\n"                                                                                  \
    "    status: Healthy\n"                                                                        \
    "    nodeCounts: {registered: {total: 0, ready: 0, notStarted: 0}, longUnregistered: 0}\n"     \
    "    cloudProviderTarget: " #target "\n"                                                       \
    "    minSize: 0\n"                                                                             \
    "    maxSize: " #most "\n"                                                                     \
    "    lastProbeTime: \"2026-11-25T08:19:44.088071148Z\"\n"                                      \
    "  scaleUp:\n"                                                                                 \
    "    status: " scale_up "\n"
#define STATUS(groups)                                                                             \
    "time: 2026-11-25 08:19:44.090873082 +0000 UTC\n"                                              \
    "autoscalerStatus: Running\n"                                                                  \
    "clusterWide:\n  health: {status: Healthy}\n"                                                  \
    "nodeGroups:\n" groups
#define BACKOFF                                                                                    \
    "Backoff\n    backoffInfo:\n      errorCode: QUOTA_EXCEEDED\n      errorMessage: no more"
#define POOL(name, more)                                                                           \
    "{\"apiVersion\": \"karpenter.sh/v1\", \"kind\": \"NodePool\", \"metadata\": "                 \
    "{\"name\": \"" name "\"}" more "}"
#define NONE_PUBLISHED                                                                             \
    "no node publishes devices of class gpu.nvidia.com: a pool that has no node yet publishes "    \
    "none"
#define UNKNOWN "; which devices they would have is not known"

static char class[] = "class gpu.nvidia.com", request[] = "request gpu-0", text[] = "a == b";

static const struct {
    const char *name;
    size_t of_class, of_request; /* of 8 devices: ruled out by which selector */
    const char *status;          /* of cluster-autoscaler; NULL: there is none */
    const char *pools;           /* NodePools; NULL: none */
    const char *words;           /* NULL: nothing is said */
} rows[] = {
    {"devices are there, and no autoscaler", 0, 8, NULL, NULL, NULL},
    {"none of the class", 8, 0, NULL, NULL, NONE_PUBLISHED},
    {"a pool at zero", 8, 0,
     STATUS(GROUP("https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/gke-a4",
                  0, 4, "NoActivity")),
     NULL, NONE_PUBLISHED "; cluster-autoscaler may add nodes to gke-a4 (0 of at most 4)" UNKNOWN},
    {"a pool that is not full", 0, 8, STATUS(GROUP("a4", 2, 4, BACKOFF)), NULL,
     "cluster-autoscaler may add nodes to a4 (2 of at most 4; in backoff: QUOTA_EXCEEDED)" UNKNOWN},
    {"all pools are full", 8, 0, STATUS(GROUP("a4", 4, 4, "NoActivity")), NULL, NULL},
    {"more pools than are named", 0, 8,
     STATUS(GROUP("a", 0, 1, "NoActivity") GROUP("b", 0, 1, "NoActivity")
                GROUP("c", 1, 1, "NoActivity") GROUP("d", 0, 1, "NoActivity")
                    GROUP("e", 0, 1, "NoActivity") GROUP("f", 0, 1, "NoActivity")),
     NULL,
     "cluster-autoscaler may add nodes to a (0 of at most 1), b (0 of at most 1), d (0 of at most "
     "1), e (0 of at most 1) and 1 more" UNKNOWN},
    {"an autoscaler that begins", 8, 0, "autoscalerStatus: Initializing\n", NULL, NONE_PUBLISHED},
    {"a status that is none", 8, 0, "nodeGroups: [", NULL, NONE_PUBLISHED},
    {"Karpenter", 0, 8, NULL, POOL("gpu", "") "," POOL("default", ""),
     "Karpenter may add nodes of its NodePools gpu, default (for claims only with "
     "--ignore-dra-requests=false)" UNKNOWN},
    {"pools of Karpenter that add none", 0, 8, NULL,
     POOL("fixed", ", \"spec\": {\"replicas\": 2}") "," POOL(
         "broken", ", \"status\": {\"conditions\": [{\"type\": \"Ready\", \"status\": "
                   "\"False\"}]}") ","
                                   "{\"apiVersion\": \"example.com/v1\", \"kind\": \"NodePool\", "
                                   "\"metadata\": {\"name\": "
                                   "\"other\"}}",
     NULL},
};

static void check(size_t i)
{
    struct predict_term terms[] = {
        {.where = class, .text = text, .ruled_out = rows[i].of_class},
        {.where = request, .text = text, .ruled_out = rows[i].of_request},
    };
    /* two kinds of requests of one class: it is named once */
    struct predict_need needs[] = {
        {.requests = request, .devices = 8, .terms = terms, .term_count = 2},
        {.requests = request, .devices = 8, .terms = terms, .term_count = 2},
    };
    const struct prediction prediction = {.needs = needs, .need_count = 2};
    CLEANUP(json_decrefp)
    json_t *maps = rows[i].status ? json_pack("[{s:{s:s}}, {s:{s:s}, s:{s:s}}]", "metadata", "name",
                                              "kube-root-ca.crt", "metadata", "name",
                                              AUTOSCALER_STATUS, "data", "status", rows[i].status)
                                  : NULL;
    CLEANUP(json_decrefp)
    json_t *pools = json_loads("[]", 0, NULL);
    char list[1024];
    if (rows[i].pools) {
        json_decref(pools);
        assert_true(snprintf(list, sizeof list, "[%s]", rows[i].pools) < (int)sizeof list);
        pools = json_loads(list, 0, NULL);
        assert_non_null(pools);
    }
    const struct absent_nodes known = {.config_maps = maps, .node_pools = pools};
    cleanup_free char *words = absent_nodes_words(&prediction, &known, true);
    if (strcmp(words ? words : "-", rows[i].words ? rows[i].words : "-") != 0)
        fail_msg("%s:\n%s\nexpected:\n%s", rows[i].name, words ? words : "nothing",
                 rows[i].words ? rows[i].words : "nothing");
    assert_int_equal(absent_nodes_lack_class(&prediction), rows[i].of_class == 8);
}

static void every_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
