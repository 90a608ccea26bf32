/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/ranks/binding.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/number.h"

/* ---- the policy ---- */

/* One set between semicolons, which may not be empty. */
static int parse_set(const char *text, size_t length, uint32_t **ret_ids, size_t *ret_count,
                     struct drarun_error *err)
{
    cleanup_free char *part = strndup(text, length);
    if (!part)
        return error_set(err, ENOMEM, "binding: out of memory");
    if (length == 0 || strchr(part, '\n'))
        return error_set(err, EINVAL, "a CPU list has an empty part");
    return cpulist_parse(part, ret_ids, ret_count, err);
}

static int check_list(const char *list, struct drarun_error *err)
{
    for (const char *p = list;; p++) {
        cleanup_free uint32_t *ids = NULL;
        size_t count = 0, length = strcspn(p, ";");
        int rc = parse_set(p, length, &ids, &count, err);
        if (rc < 0)
            return rc;
        p += length;
        if (*p == '\0')
            return 0;
    }
}

int bind_parse(const char *text, struct bind_policy *ret_policy, struct drarun_error *err)
{
    static const struct {
        const char *name;
        enum bind_kind kind;
    } names[] = {{"none", BIND_NONE}, {"core", BIND_CORE}, {"numa", BIND_NUMA}};
    int64_t cores = 1;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(text, names[i].name) == 0) {
            *ret_policy = (struct bind_policy){.kind = names[i].kind, .cores = 1};
            return 0;
        }
    struct drarun_error own = {0};
    if (strncmp(text, "core:", 5) == 0) {
        int bad = number_parse("binding core:N", text + 5, 1, CPUS_MAX, &cores, &own);
        if (bad < 0)
            return error_kind(err, DRARUN_ERR_USAGE, -bad, "%s", own.text);
        *ret_policy = (struct bind_policy){.kind = BIND_CORE, .cores = (uint32_t)cores};
        return 0;
    }
    int rc = check_list(text, &own);
    if (rc < 0 && isalpha((unsigned char)text[0]) &&
        !strpbrk(text, ",;")) /* a word: what is wrong with it as a list is no help */
        return error_kind(err, DRARUN_ERR_USAGE, -rc,
                          "binding \"%s\": expected none, core, core:N, numa or CPUs such as "
                          "\"0-3;4-7\"",
                          text);
    if (rc < 0)
        return error_kind(err, DRARUN_ERR_USAGE, -rc,
                          "binding \"%s\": expected none, core, core:N, numa or CPUs such as "
                          "\"0-3;4-7\": %s",
                          text, own.text);
    *ret_policy = (struct bind_policy){.kind = BIND_LIST, .list = text};
    return 0;
}

/* ---- choosing ---- */

/* From low, below high. */
static bool in_cores(const struct cpu *cpu, uint32_t low, uint32_t high)
{
    return cpu->core >= low && cpu->core < high;
}

static bool in_numas(const struct cpu *cpu, uint32_t low, uint32_t high)
{
    return cpu->numa >= low && cpu->numa < high;
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static int select_cpus(const struct cpus *cpus,
                       bool (*match)(const struct cpu *, uint32_t, uint32_t), uint32_t low,
                       uint32_t high, uint32_t **ret_ids, size_t *ret_count,
                       struct drarun_error *err)
{
    uint32_t *ids = calloc(cpus->count + 1, sizeof *ids);
    size_t count = 0;
    if (!ids)
        return error_set(err, ENOMEM, "binding: out of memory");
    for (size_t i = 0; i < cpus->count; i++)
        if (match(&cpus->list[i], low, high))
            ids[count++] = cpus->list[i].id;
    qsort(ids, count, sizeof *ids, compare_ids);
    *ret_ids = ids;
    *ret_count = count;
    return 0;
}

static uint32_t numa_of_core(const struct cpus *cpus, uint32_t core)
{
    for (size_t i = 0; i < cpus->count; i++)
        if (cpus->list[i].core == core)
            return cpus->list[i].numa;
    return 0;
}

/* The core in this rank's even share of all cores; cores are numbered node by node. */
static uint32_t spread_core(const struct cpus *cpus, uint32_t local_rank, uint32_t local_size)
{
    return (uint32_t)((uint64_t)local_rank * cpus->cores / local_size);
}

/* Blocks of `size` cores that lie in one NUMA node: how many there are, and the first core of the
 * one with that number. */
static uint32_t count_blocks(const struct cpus *cpus, uint32_t size, uint32_t number,
                             uint32_t *ret_first)
{
    uint32_t blocks = 0, first = 0;
    for (size_t i = 0; i < cpus->count; i++) {
        const struct cpu *cpu = &cpus->list[i];
        if (i + 1 < cpus->count && cpu[1].numa == cpu->numa)
            continue;
        uint32_t here = (cpu->core + 1 - first) / size; /* the node's */
        if (number >= blocks && number - blocks < here)
            *ret_first = first + (number - blocks) * size;
        blocks += here;
        first = cpu->core + 1;
    }
    return blocks;
}

/* Where not all ranks find a block, but there are cores enough, some get cores of two nodes. */
static uint32_t first_core(const struct cpus *cpus, uint32_t size, uint32_t local_rank,
                           uint32_t local_size)
{
    uint32_t first = 0, blocks = count_blocks(cpus, size, 0, &first);
    uint32_t pieces = (uint32_t)cpus->cores / size; /* at least 1 */
    if (local_size > blocks && local_size <= pieces)
        return spread_core(cpus, local_rank, local_size);
    if (blocks == 0)
        return local_rank % pieces * size;
    count_blocks(cpus, size,
                 local_size > blocks ? local_rank % blocks
                                     : (uint32_t)((uint64_t)local_rank * blocks / local_size),
                 &first);
    return first;
}

static int bind_core(const struct cpus *cpus, uint32_t size, uint32_t local_rank,
                     uint32_t local_size, uint32_t **ret_ids, size_t *ret_count, bool *ret_shared,
                     struct drarun_error *err)
{
    if (size > cpus->cores)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "binding core:%u: ranks can use %zu core%s here: give a smaller number",
                          size, cpus->cores, cpus->cores == 1 ? "" : "s");
    *ret_shared = local_size > cpus->cores / size;
    uint32_t first = first_core(cpus, size, local_rank, local_size);
    return select_cpus(cpus, in_cores, first, first + size, ret_ids, ret_count, err);
}

static int bind_numa(const struct cpus *cpus, uint32_t local_rank, uint32_t local_size,
                     uint32_t **ret_ids, size_t *ret_count, bool *ret_shared,
                     struct drarun_error *err)
{
    *ret_shared = local_size > cpus->cores;
    uint32_t numa = numa_of_core(cpus, spread_core(cpus, local_rank, local_size));
    return select_cpus(cpus, in_numas, numa, numa + 1, ret_ids, ret_count, err);
}

/* ---- lists ---- */

static size_t count_sets(const char *list)
{
    size_t sets = 1;
    for (; *list; list++)
        sets += *list == ';';
    return sets;
}

static int fail_unusable(const struct cpus *cpus, uint32_t id, struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf list = BUF_INIT;
    cleanup_free uint32_t *ids = calloc(cpus->count + 1, sizeof *ids);
    for (size_t i = 0; ids && i < cpus->count; i++)
        ids[i] = cpus->list[i].id;
    if (ids) {
        qsort(ids, cpus->count, sizeof *ids, compare_ids);
        cpulist_format(ids, cpus->count, &list);
    }
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "binding: CPU %u cannot be used here; usable CPUs: %.200s", id,
                      list.data ? list.data : "not known");
}

static int check_usable(const struct cpus *cpus, uint32_t id, struct drarun_error *err)
{
    for (size_t i = 0; i < cpus->count; i++)
        if (cpus->list[i].id == id)
            return 0;
    return fail_unusable(cpus, id, err);
}

static int check_all_usable(const struct cpus *cpus, const uint32_t *ids, size_t count,
                            struct drarun_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = check_usable(cpus, ids[i], err);
    return rc;
}

/* "a;b;c": the set of this rank's turn. */
static int bind_set(const char *list, size_t turn, const struct cpus *cpus, uint32_t **ret_ids,
                    size_t *ret_count, struct drarun_error *err)
{
    for (; turn > 0; turn--)
        list = strchr(list, ';') + 1;
    cleanup_free uint32_t *ids = NULL;
    size_t count = 0;
    int rc = parse_set(list, strcspn(list, ";"), &ids, &count, err);
    if (rc == 0)
        rc = check_all_usable(cpus, ids, count, err);
    if (rc < 0)
        return rc;
    *ret_ids = TAKE_PTR(ids);
    *ret_count = count;
    return 0;
}

/* The id at this place of a list, where a range counts as its ids, and how many there are. All of
 * them must be usable. */
static int find_id(const char *list, size_t place, const struct cpus *cpus, uint32_t *ret_id,
                   size_t *ret_count, struct drarun_error *err)
{
    size_t count = 0, length;
    for (const char *part = list;; part += length + 1) {
        cleanup_free uint32_t *ids = NULL;
        size_t more = 0;
        length = strcspn(part, ",");
        int rc = parse_set(part, length, &ids, &more, err);
        if (rc == 0)
            rc = check_all_usable(cpus, ids, more, err);
        if (rc < 0)
            return rc;
        if (place >= count && place - count < more)
            *ret_id = ids[place - count];
        count += more;
        if (part[length] == '\0')
            break;
    }
    *ret_count = count;
    return 0;
}

/* "4,0,2": each id is a set, in the order of the list. */
static int bind_one(const char *list, const struct cpus *cpus, uint32_t local_rank,
                    uint32_t local_size, uint32_t **ret_ids, size_t *ret_count, bool *ret_shared,
                    struct drarun_error *err)
{
    uint32_t id = 0;
    size_t count = 0;
    int rc = find_id(list, 0, cpus, &id, &count, err);
    if (rc < 0)
        return rc;
    assert(count > 0); /* parse_set refuses an empty part */
    rc = find_id(list, local_rank % count, cpus, &id, &count, err);
    if (rc < 0)
        return rc;
    uint32_t *ids = malloc(sizeof *ids);
    if (!ids)
        return error_set(err, ENOMEM, "binding: out of memory");
    *ids = id;
    *ret_ids = ids;
    *ret_count = 1;
    *ret_shared = local_size > count;
    return 0;
}

static int bind_list(const char *list, const struct cpus *cpus, uint32_t local_rank,
                     uint32_t local_size, uint32_t **ret_ids, size_t *ret_count, bool *ret_shared,
                     struct drarun_error *err)
{
    size_t sets = count_sets(list);
    if (sets == 1)
        return bind_one(list, cpus, local_rank, local_size, ret_ids, ret_count, ret_shared, err);
    *ret_shared = local_size > sets;
    return bind_set(list, local_rank % sets, cpus, ret_ids, ret_count, err);
}

int bind_cpus(const struct bind_policy *policy, const struct cpus *cpus, uint32_t local_rank,
              uint32_t local_size, uint32_t **ret_ids, size_t *ret_count, bool *ret_shared,
              struct drarun_error *err)
{
    uint32_t *ids = NULL;
    size_t count = 0;
    bool shared = false;
    int rc = 0;
    assert(policy->kind == BIND_NONE || (cpus->cores > 0 && local_rank < local_size));
    if (policy->kind == BIND_CORE)
        rc = bind_core(cpus, policy->cores, local_rank, local_size, &ids, &count, &shared, err);
    else if (policy->kind == BIND_NUMA)
        rc = bind_numa(cpus, local_rank, local_size, &ids, &count, &shared, err);
    else if (policy->kind == BIND_LIST)
        rc = bind_list(policy->list, cpus, local_rank, local_size, &ids, &count, &shared, err);
    if (rc < 0)
        return rc;
    *ret_ids = ids;
    *ret_count = count;
    *ret_shared = shared;
    return 0;
}

/* ---- what others leave ---- */

/* One of the sets of CPUs that ranks get. */
struct choice {
    uint32_t *ids; /* NULL: none yet */
    size_t count;
    uint64_t ranks, room; /* bound to it, and how many it is for */
};

static void choice_done(struct choice *choice)
{
    free(choice->ids);
}

static int count_choices(const struct bind_policy *policy, const struct cpus *cpus,
                         uint32_t *ret_count, struct drarun_error *err)
{
    uint32_t unused = 0;
    size_t count = 0;
    int rc = 0;
    if (policy->kind == BIND_CORE) {
        count = count_blocks(cpus, policy->cores, 0, &unused);
        count = count > 0 ? count : cpus->cores / policy->cores;
    } else if (policy->kind == BIND_NUMA) {
        count = cpus->cores; /* the node of each */
    } else if (policy->kind == BIND_LIST) {
        count = count_sets(policy->list);
        if (count == 1)
            rc = find_id(policy->list, 0, cpus, &unused, &count, err);
    }
    *ret_count = count > 0 ? (uint32_t)count : 1; /* of too few cores bind_cpus says so */
    return rc;
}

static uint64_t count_cores(const struct cpus *cpus, const struct choice *choice)
{
    uint64_t cores = 0;
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < cpus->count; i++) {
        const struct cpu *cpu = &cpus->list[i];
        if (cpu->core == last ||
            !bsearch(&cpu->id, choice->ids, choice->count, sizeof cpu->id, compare_ids))
            continue;
        last = cpu->core;
        cores++;
    }
    return cores;
}

static void judge(const struct bind_policy *policy, const struct cpus *cpus, const uint32_t *used,
                  struct choice *choice)
{
    for (size_t i = 0; i < choice->count; i++)
        if (used[choice->ids[i]] > choice->ranks)
            choice->ranks = used[choice->ids[i]];
    choice->room = policy->kind == BIND_NUMA ? count_cores(cpus, choice) : 1;
}

int bind_free_cpus(const struct bind_policy *policy, const struct cpus *cpus, const uint32_t *used,
                   uint32_t **ret_ids, size_t *ret_count, bool *ret_shared,
                   struct drarun_error *err)
{
    CLEANUP(choice_done) struct choice best = {.room = 1};
    uint32_t choices = 0;
    int rc = count_choices(policy, cpus, &choices, err);
    for (uint32_t i = 0; rc == 0 && i < choices; i++) {
        CLEANUP(choice_done) struct choice choice = {0};
        bool shared = false;
        rc = bind_cpus(policy, cpus, i, choices, &choice.ids, &choice.count, &shared, err);
        if (rc == -EINVAL && (best.ids || i + 1 < choices)) { /* another set may be usable */
            error_clear(err);
            rc = 0;
            continue;
        }
        if (rc < 0 || choice.count == 0)
            break;
        judge(policy, cpus, used, &choice);
        if (best.ids && choice.ranks * best.room >= best.ranks * choice.room)
            continue;
        free(best.ids);
        best = choice;
        choice.ids = NULL;
    }
    if (rc < 0)
        return rc;
    *ret_ids = TAKE_PTR(best.ids);
    *ret_count = best.count;
    *ret_shared = best.ranks >= best.room;
    return 0;
}

/* ---- who shares CPUs ---- */

static bool has_same_cpus(const struct bind_place *a, const struct bind_place *b)
{
    return strcmp(a->machine, b->machine) == 0 && strcmp(a->cpus, b->cpus) == 0;
}

/* Those with the same CPUs side by side, in the order of the workers. */
static int compare_places(const void *a, const void *b)
{
    const struct bind_place *x = *(const struct bind_place *const *)a,
                            *y = *(const struct bind_place *const *)b;
    int order = strcmp(x->machine, y->machine);
    if (order == 0)
        order = strcmp(x->cpus, y->cpus);
    return order != 0 ? order : (x > y) - (x < y);
}

int bind_number_cpus(const struct bind_place *places, uint32_t count, uint32_t *ret_numbers,
                     struct drarun_error *err)
{
    cleanup_free const struct bind_place **sorted = calloc(count + 1u, sizeof *sorted);
    if (!sorted)
        return error_set(err, ENOMEM, "binding: out of memory");
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = &places[i];
    qsort(sorted, count, sizeof *sorted, compare_places);
    for (uint32_t i = 0, first = 0; i < count; i++) {
        if (!has_same_cpus(sorted[first], sorted[i]))
            first = i;
        ret_numbers[sorted[i] - places] = (uint32_t)(sorted[first] - places) + 1;
    }
    return 0;
}
