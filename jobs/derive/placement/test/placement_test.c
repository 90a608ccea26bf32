/* SPDX-License-Identifier: Apache-2.0 */
/* Rules D5 and D7 of docs/design/017-derivation-rules.md: the numbers of the ranks, and the CPUs of
 * each GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/derive/placement/placement.h"
#include "lib/base/cleanup.h"

#define WORKERS 3
#define GPUS 4

/* ---- ranks ---- */

static const struct ranks_row {
    const char *says;
    enum plan_ranks ranks;
    uint32_t gpus[WORKERS], plugin[WORKERS];
    uint32_t order[WORKERS]; /* all 0: by number */
    bool per_pod;
    uint32_t first[WORKERS], world_size, each;
    bool shared;
} ranks_table[] = {
    {"one a GPU", PLAN_RANKS_AUTO, {2, 4, 1}, {0}, {0}, false, {0, 2, 6}, 7},
    {"GPUs of a device plugin count",
     PLAN_RANKS_AUTO,
     {2, 0, 0},
     {0, 2, 2},
     {0},
     false,
     {0, 2, 4},
     6},
    {"one a pod where one has no GPU", PLAN_RANKS_AUTO, {2, 0, 2}, {0}, {0}, true, {0, 1, 2}, 3},
    {"one a pod", PLAN_RANKS_POD, {4, 4, 4}, {0}, {0}, true, {0, 1, 2}, 3},
    {"in an order", PLAN_RANKS_AUTO, {1, 2, 3}, {0}, {2, 0, 1}, false, {3, 4, 0}, 6},
    {"as many as GPUs", PLAN_RANKS_AUTO, {2, 2, 2}, {0}, {0}, false, {0, 2, 4}, 6, 2, false},
    {"more than GPUs", PLAN_RANKS_AUTO, {2, 2, 2}, {0}, {0}, false, {0, 4, 8}, 12, 4, true},
    {"fewer than GPUs", PLAN_RANKS_AUTO, {4, 4, 4}, {0}, {2, 0, 1}, false, {2, 4, 0}, 6, 2, true},
    {"several without GPUs", PLAN_RANKS_AUTO, {0}, {0}, {0}, false, {0, 16, 32}, 48, 16, true},
    {"one without GPUs", PLAN_RANKS_AUTO, {0}, {0}, {0}, true, {0, 1, 2}, 3, 1, false},
};

static void check_ranks(const struct ranks_row *row)
{
    const struct plan_worker_input workers[WORKERS] = {{0}};
    struct device gpus[GPUS] = {{.numa = -1}, {.numa = -1}, {.numa = -1}, {.numa = -1}};
    struct inventory inventories[WORKERS] = {{0}};
    struct devices devices[WORKERS] = {{0}};
    bool ordered = row->order[0] + row->order[1] + row->order[2] > 0;
    const struct plan_input input = {.ranks = row->ranks,
                                     .ranks_each = row->each,
                                     .workers = workers,
                                     .worker_count = WORKERS,
                                     .rank_order = ordered ? row->order : NULL};
    struct plan_notes notes = {0};
    struct placement placement;
    for (size_t w = 0; w < WORKERS; w++) {
        devices[w] = (struct devices){.gpus = gpus, .gpu_count = row->gpus[w]};
        inventories[w].plugin_gpus = row->plugin[w];
    }
    assert_int_equal(placement_make(&input, inventories, devices, &notes, &placement, NULL), 0);
    if (placement.per_pod != row->per_pod || placement.shared != row->shared ||
        placement.world_size != row->world_size)
        fail_msg("%s: %u ranks", row->says, placement.world_size);
    for (size_t w = 0; w < WORKERS; w++)
        if (placement.workers[w].first_rank != row->first[w])
            fail_msg("%s: worker %zu begins at %u", row->says, w, placement.workers[w].first_rank);
    placement_done(&placement);
    plan_notes_done(&notes);
}

static void ranks(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ranks_table); i++)
        check_ranks(&ranks_table[i]);
}

/* ---- CPUs ---- */

static const struct cpus_row {
    const char *says;
    const char *numa_cpus[2], *cpuset;
    int32_t numa[GPUS]; /* of each GPU */
    const char *cpus[GPUS];
} cpus_table[] = {
    {"equal parts of the node",
     {"0-7", "8-15"},
     NULL,
     {0, 0, 1, 1},
     {"0-3", "4-7", "8-11", "12-15"}},
    {"of each range: the second threads of the same cores",
     {"0-3,8-11", "4-7,12-15"},
     NULL,
     {0, 0, 1, 1},
     {"0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"}},
    {"CPUs that are numbered in turns",
     {"0,2,4,6,8,10,12,14", "1,3,5,7,9,11,13,15"},
     NULL,
     {0, 0, 1, 1},
     {"0,2,8,10", "4,6,12,14", "1,3,9,11", "5,7,13,15"}},
    {"within the cpuset",
     {"0-7", "8-15"},
     "2-5,8-15",
     {0, 0, 1, 1},
     {"2-3", "4-5", "8-11", "12-15"}},
    {"the CPUs that the kubelet gives a pod alone, in equal parts",
     {"0-7,16-23", "8-15,24-31"},
     "0-1,8,12,16-17,24,28",
     {0, 0, 1, 1},
     {"0,16", "1,17", "8,24", "12,28"}},
    {"none of the node in the cpuset", {"0-7", "8-15"}, "0-3", {0, 1, 0, 1}, {"0-1", NULL, "2-3"}},
    {"cores here and there",
     {"0-7,16-23", "8-15,24-31"},
     "0,2,4-5,8,10,12-13,16,18,20-21,24,26,28-29",
     {0, 0, 1, 1},
     {"0,2,16,18", "4-5,20-21", "8,10,24,26", "12-13,28-29"}},
    {"one range of all threads, and a part of its cores",
     {"0-15", NULL},
     "0-3,8-11",
     {0, 0, 0, 0},
     {"0,8", "1,9", "2,10", "3,11"}},
    {"the same of cores here and there",
     {"0-15", NULL},
     "0,2,4-5,8,10,12-13",
     {0, 0, -1, -1},
     {"0,2,8,10", "4-5,12-13", NULL, NULL}},
    {"one range, and one range of it",
     {"0-15", NULL},
     "4-7",
     {0, 0, -1, -1},
     {"4-5", "6-7", NULL, NULL}},
    {"a core for each",
     {"0-7,16-23", NULL},
     "1,3-5,17,19-21",
     {0, 0, 0, 0},
     {"1,17", "3,19", "4,20", "5,21"}},
    {"five cores for four",
     {"0-7,16-23", NULL},
     "0,2,4,6-7,16,18,20,22-23",
     {0, 0, 0, 0},
     {"0,16", "2,18", "4,20", "6-7,22-23"}},
    {"cores whose threads are not all allowed",
     {"0-7,16-23", NULL},
     "0,2,5,17,21,23",
     {0, 0, 0, 0},
     {"0", "17", "2", "5,21,23"}},
    {"neighbours in turns",
     {"0,2,4,6,8,10,12,14", "1,3,5,7,9,11,13,15"},
     "0-3,8-11",
     {0, 0, 1, 1},
     {"0,8", "2,10", "1,9", "3,11"}},
    {"fewer cores than GPUs: a thread each",
     {"0-7,16-23", NULL},
     "3,5,19,21",
     {0, 0, 0, 0},
     {"3", "19", "5", "21"}},
    {"CPUs that are offline",
     {"0-2,4-7,16-23", "8-15,24-30"},
     NULL,
     {0, 0, 1, 1},
     {"0-1,4-5,16-19", "2,6-7,20-23", "8-11,24-27", "12-15,28-30"}},
    {"more GPUs than CPUs share them",
     {"0-1", NULL},
     NULL,
     {0, 0, 0, 0},
     {"0-1", "0-1", "0-1", "0-1"}},
    {"a cpuset that is no list", {"0-7", NULL}, "2-", {0, 0, -1, -1}, {"0-3", "4-7", NULL, NULL}},
    {"no list", {"0-7,", NULL}, NULL, {0, 0, 0, 0}, {NULL, NULL, NULL, NULL}},
    {"a node that is not known", {"0-7", NULL}, NULL, {0, -1, 1, 0}, {"0-3", NULL, NULL, "4-7"}},
};

static void check_cpus(const struct cpus_row *row)
{
    const struct plan_worker_input worker = {0};
    const struct plan_input input = {.workers = &worker, .worker_count = 1};
    struct device gpus[GPUS] = {0};
    struct inventory inventory = {.probe = {.cpuset = row->cpuset}};
    const struct devices devices = {.gpus = gpus, .gpu_count = GPUS};
    struct plan_notes notes = {0};
    struct placement placement;
    for (size_t n = 0; n < ARRAY_LEN(row->numa_cpus); n++)
        inventory.probe.numa_cpus[n] = row->numa_cpus[n];
    for (size_t g = 0; g < GPUS; g++)
        gpus[g].numa = row->numa[g];
    assert_int_equal(placement_make(&input, &inventory, &devices, &notes, &placement, NULL), 0);
    for (size_t g = 0; g < GPUS; g++) {
        const char *got = placement.workers[0].cpus[g], *want = row->cpus[g];
        if ((got == NULL) != (want == NULL) || (got && strcmp(got, want) != 0))
            fail_msg("%s: GPU %zu has %s", row->says, g, got ? got : "none");
    }
    placement_done(&placement);
    plan_notes_done(&notes);
}

static void cpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cpus_table); i++)
        check_cpus(&cpus_table[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks), cmocka_unit_test(cpus)};
    return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
