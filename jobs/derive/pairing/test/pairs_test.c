/* SPDX-License-Identifier: Apache-2.0 */
/* How near a GPU and a NIC are, by the first fact that tells it (rule D4 of
 * docs/design/017-derivation-rules.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "jobs/derive/pairing/pairs.h"
#include "lib/base/cleanup.h"

#define GPU ((uint64_t)1 << 8) /* 0000:01:00.0 */
#define NIC ((uint64_t)2 << 8) /* 0000:02:00.0 */
#define SEEN(path) "{\"0000:01:00.0\": {\"0000:02:00.0\": \"" path "\"}}"

static const struct row {
    const char *says;
    const char *gpu_root, *nic_root;
    int32_t gpu_numa, nic_numa;
    bool nested;
    const char *seen; /* the probe's paths; NULL: none */
    const char *file; /* NCCL_TOPO_FILE, which has the pair; NULL: it is not set */
    int32_t rail;     /* by GKE's names, and the GPU is its node's first; -1: they tell nothing */
    enum nccl_path path;
    enum pair_fact fact;
    bool node;
} table[] = {
    {"one root", "r", "r", 0, 0, false, NULL, NULL, -1, NCCL_PATH_PIX, PAIR_BY_ROOT, false},
    {"one root, nested", "r", "r", 0, 0, true, NULL, NULL, -1, NCCL_PATH_PXB, PAIR_BY_ROOT, false},
    {"one NUMA node", "r", "s", 1, 1, false, NULL, NULL, -1, NCCL_PATH_PHB, PAIR_BY_NUMA, false},
    {"two", "r", "s", 0, 1, false, NULL, NULL, -1, NCCL_PATH_SYS, PAIR_BY_NUMA, false},
    {"unknown", NULL, NULL, -1, -1, false, NULL, NULL, -1, NCCL_PATH_SYS, PAIR_BY_NUMA, false},
    {"sysfs before roots", "r", "r", 0, 0, false, SEEN("SYS"), NULL, -1, NCCL_PATH_SYS,
     PAIR_BY_SYSFS, false},
    {"PIX in sysfs", NULL, NULL, 0, 1, false, SEEN("PIX"), NULL, -1, NCCL_PATH_PIX, PAIR_BY_SYSFS,
     false},
    {"PXB in sysfs", NULL, NULL, 0, 1, false, SEEN("PXB"), NULL, -1, NCCL_PATH_PXB, PAIR_BY_SYSFS,
     false},
    {"PHB in sysfs", NULL, NULL, 0, 1, false, SEEN("PHB"), NULL, -1, NCCL_PATH_PHB, PAIR_BY_SYSFS,
     false},
    {"P2C in sysfs", NULL, NULL, 0, 1, false, SEEN("P2C"), NULL, -1, NCCL_PATH_PHB, PAIR_BY_SYSFS,
     false},
    {"SYS in sysfs", NULL, NULL, 0, 1, false, SEEN("SYS"), NULL, -1, NCCL_PATH_SYS, PAIR_BY_SYSFS,
     false},
    {"no class in sysfs", "r", "r", 0, 1, false, SEEN("LOC"), NULL, -1, NCCL_PATH_PIX, PAIR_BY_ROOT,
     false},
    {"two bridges", NULL, NULL, 0, 0, false, SEEN("NODE"), NULL, -1, NCCL_PATH_PHB, PAIR_BY_SYSFS,
     true},
    {"a file before sysfs", NULL, NULL, 0, 1, false, SEEN("SYS"), "/topo.xml", -1, NCCL_PATH_PIX,
     PAIR_BY_FILE, false},
    {"no file is read", NULL, NULL, 0, 1, false, SEEN("SYS"), "", -1, NCCL_PATH_SYS, PAIR_BY_SYSFS,
     false},
    {"beside it, by name", NULL, NULL, -1, -1, false, NULL, NULL, 1, NCCL_PATH_PIX, PAIR_BY_NAMES,
     false},
    {"in its half", NULL, NULL, -1, -1, false, NULL, NULL, 3, NCCL_PATH_PHB, PAIR_BY_NAMES, false},
    {"in the other", NULL, NULL, -1, -1, false, NULL, NULL, 4, NCCL_PATH_SYS, PAIR_BY_NAMES, false},
    {"a root before names", "r", "r", 0, 0, false, NULL, NULL, 4, NCCL_PATH_PIX, PAIR_BY_ROOT,
     false},
};

static void make(const struct plan_input *plan, const struct inventory *inventory,
                 const struct devices *devices, const struct profile *profile,
                 struct plan_notes *notes, struct pairs *ret_pairs)
{
    static const struct variables variables = {0};
    const struct pairs_input input = {.plan = plan,
                                      .inventory = inventory,
                                      .devices = devices,
                                      .profile = profile,
                                      .variables = &variables,
                                      .version = NCCL_VERSION_NEWEST};
    assert_int_equal(pairs_make(&input, notes, ret_pairs, NULL), 0);
}

static void check(const struct row *row)
{
    char text[64];
    snprintf(text, sizeof text, "NCCL_TOPO_FILE=%s", row->file ? row->file : "");
    char *user[] = {row->file ? text : NULL, NULL};
    json_t *paths = row->seen ? json_loads(row->seen, 0, NULL) : NULL;
    struct probe_pair pair = {GPU, NIC};
    struct device gpu = {.kind = DEVICE_GPU,
                         .name = "gpu",
                         .pci = GPU,
                         .root = row->gpu_root,
                         .numa = row->gpu_numa,
                         .index = 0};
    struct plan_nic nic = {.found = {.device = {.kind = DEVICE_NIC,
                                                .name = "nic",
                                                .pci = NIC,
                                                .root = row->nic_root,
                                                .numa = row->nic_numa},
                                     .label = "nic"},
                           .gbs = 50,
                           .named_rail = row->rail};
    const struct profile profile = {.name = "p", .gke_naming = row->rail >= 0};
    const struct plan_input plan = {.user_env = user};
    const struct inventory inventory = {
        .probe = {.paths = paths,
                  .pairs = &pair,
                  .pair_count = 1,
                  .visible_gpus = -1,
                  .nested_switch = row->nested ? PROBE_YES : PROBE_UNKNOWN}};
    const struct devices devices = {.gpus = &gpu, .gpu_count = 1, .nics = &nic, .nic_count = 1};
    struct plan_notes notes = {0};
    struct pairs pairs;
    make(&plan, &inventory, &devices, &profile, &notes, &pairs);
    if (pairs.model->classes[0][0] != row->path || pairs.model->facts[0][0] != row->fact ||
        pairs.model->nodes[0][0] != row->node)
        fail_msg("%s: class %s by fact %d", row->says,
                 nccl_path_name((enum nccl_path)pairs.model->classes[0][0]),
                 pairs.model->facts[0][0]);
    assert_int_equal(pairs.result->count[0], 1);
    assert_true(pairs.score > 0 && pairs.score <= 1);
    pairs_done(&pairs);
    plan_notes_done(&notes);
    json_decref(paths);
}

static void rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        check(&table[i]);
}

#define VENDORS "/vendor/topo.xml"
#define IS_THERE "{\"" VENDORS "\": true}"
#define IS_NOT "{\"" VENDORS "\": false}"

/* The sysfs of such machines, which are virtual, shows no switches. */
static const struct file_row {
    const char *says;
    const char *files; /* the probe's; NULL: the pod was not looked at */
    const char *user;  /* NCCL_TOPO_FILE; NULL: it is the profile's */
    enum nccl_path path;
} files[] = {
    {"before the pod is looked at", NULL, NULL, NCCL_PATH_PIX},
    {"in the pod", IS_THERE, NULL, NCCL_PATH_PIX},
    {"the user names it, too", IS_THERE, VENDORS, NCCL_PATH_PIX},
    {"the user names it, and it is not there", IS_NOT, VENDORS, NCCL_PATH_SYS},
    {"another one of the user's", IS_THERE, "/mine.xml", NCCL_PATH_SYS},
    {"none", IS_THERE, "", NCCL_PATH_SYS},
};

static void check_file(const struct file_row *row)
{
    char text[64];
    snprintf(text, sizeof text, "NCCL_TOPO_FILE=%s", row->user ? row->user : "");
    char *user[] = {row->user ? text : NULL, NULL};
    CLEANUP(json_decrefp) json_t *paths = json_loads(SEEN("SYS"), 0, NULL);
    CLEANUP(json_decrefp) json_t *there = row->files ? json_loads(row->files, 0, NULL) : NULL;
    CLEANUP(json_decrefp)
    json_t *pairs_there = json_pack("[[s, s]]", "0000:01:00.0", "0000:02:00.0");
    CLEANUP(json_decrefp)
    json_t *variables_there = json_pack("[{s:s, s:s}]", "name", "NCCL_TOPO_FILE", "value", VENDORS);
    struct device gpu = {.kind = DEVICE_GPU, .name = "gpu", .pci = GPU, .index = 0};
    struct plan_nic nic = {
        .found = {.device = {.kind = DEVICE_NIC, .name = "nic", .pci = NIC, .numa = 1},
                  .label = "nic"},
        .gbs = 50,
        .named_rail = -1};
    struct plan_var var = {.name = "NCCL_TOPO_FILE", .value = VENDORS};
    const struct variables variables = {.env = {.list = &var, .count = 1}};
    const struct profile profile = {
        .name = "p", .numa_pairs = pairs_there, .variables = variables_there};
    const struct plan_input plan = {.user_env = user};
    const struct inventory inventory = {
        .probe = {
            .present = row->files != NULL, .files = there, .paths = paths, .visible_gpus = -1}};
    const struct devices devices = {.gpus = &gpu, .gpu_count = 1, .nics = &nic, .nic_count = 1};
    const struct pairs_input input = {.plan = &plan,
                                      .inventory = &inventory,
                                      .devices = &devices,
                                      .profile = &profile,
                                      .variables = &variables,
                                      .version = NCCL_VERSION_NEWEST};
    struct plan_notes notes = {0};
    struct pairs pairs;
    assert_int_equal(pairs_make(&input, &notes, &pairs, NULL), 0);
    if (pairs.model->classes[0][0] != row->path)
        fail_msg("%s: class %s", row->says,
                 nccl_path_name((enum nccl_path)pairs.model->classes[0][0]));
    assert_int_equal(pairs.model->facts[0][0],
                     row->path == NCCL_PATH_PIX ? PAIR_BY_FILE : PAIR_BY_SYSFS);
    pairs_done(&pairs);
    plan_notes_done(&notes);
}

/* Nobody reads it in the pod: its vendor's pairs are known. */
static void the_profiles_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        check_file(&files[i]);
}

static void nothing_to_pair(void **state)
{
    struct device gpu = {.kind = DEVICE_GPU, .name = "gpu"};
    const struct plan_input plan = {0};
    const struct inventory inventory = {0};
    const struct devices devices = {.gpus = &gpu, .gpu_count = 1};
    const struct profile profile = {.name = "p"};
    struct plan_notes notes = {0};
    struct pairs pairs;
    (void)state;
    make(&plan, &inventory, &devices, &profile, &notes, &pairs);
    assert_null(pairs.model);
    assert_null(pairs.result);
    assert_true(pairs.score < 0);
    assert_int_equal(notes.warnings.count, 0);
    pairs_done(&pairs);
    plan_notes_done(&notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(the_profiles_file),
        cmocka_unit_test(nothing_to_pair),
    };
    return cmocka_run_group_tests_name("pairs", tests, NULL, NULL);
}
