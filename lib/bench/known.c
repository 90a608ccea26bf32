/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/doc/fields.h"

extern const unsigned char known_machines_yaml[]; /* known_machines.yaml, by the build */
extern const size_t known_machines_yaml_size;

/* ---- reading ---- */

struct seen_fields {
    const char *collective, *source;
    uint32_t nodes, gpus;
    int64_t bytes;
    double busbw, low, high;
    bool misaligned;
};

struct machine_fields {
    const char *name, *title, *gpu;
    uint32_t gpus, nics;
    double nic_gbit, nvlink_gbs;
    json_t *seen; /* borrowed */
};

static void read_positive(const struct reader_node *node, void *field)
{
    double value = json_number_value(node->value);
    if (!json_is_number(node->value) || !(value > 0) || value > 1e6)
        reader_expected(node, "a number above 0, at most 1000000");
    else
        *(double *)field = value;
}

static void read_list(const struct reader_node *node, void *field)
{
    if (reader_list(node, 0) == 0)
        *(json_t **)field = node->value;
}

#define TEXT(key, type, field)                                                                     \
    {                                                                                              \
        key, FIELD_TEXT, offsetof(struct type, field), 0, 0, NULL, NULL, NULL, NULL                \
    }
#define COUNT(key, type, field, min, max)                                                          \
    {                                                                                              \
        key, FIELD_COUNT, offsetof(struct type, field), min, max, NULL, NULL, NULL, NULL           \
    }
#define BY(key, type, field, read)                                                                 \
    {                                                                                              \
        key, FIELD_CALL, offsetof(struct type, field), 0, 0, NULL, NULL, NULL, read                \
    }

static const struct field seen_list[] = {
    TEXT("collective", seen_fields, collective),
    TEXT("source", seen_fields, source),
    COUNT("nodes", seen_fields, nodes, 1, 1000000),
    COUNT("gpus", seen_fields, gpus, 1, 1024),
    {"bytes", FIELD_INTEGER, offsetof(struct seen_fields, bytes), 1, INT64_MAX, NULL, NULL, NULL,
     NULL},
    BY("busbw", seen_fields, busbw, read_positive),
    BY("low", seen_fields, low, read_positive),
    BY("high", seen_fields, high, read_positive),
    {"misaligned", FIELD_BOOL, offsetof(struct seen_fields, misaligned), 0, 0, NULL, NULL, NULL,
     NULL},
};
static const struct field_table seen_table = {seen_list, sizeof seen_list / sizeof *seen_list};

static const struct field machine_list[] = {
    TEXT("name", machine_fields, name),
    TEXT("title", machine_fields, title),
    TEXT("gpu", machine_fields, gpu),
    COUNT("gpus", machine_fields, gpus, 1, 1024),
    COUNT("nics", machine_fields, nics, 0, 1024),
    BY("nicGbit", machine_fields, nic_gbit, read_positive),
    BY("nvlinkGBs", machine_fields, nvlink_gbs, read_positive),
    BY("seen", machine_fields, seen, read_list),
};

/* A machine may have NVLink between nodes, and a run on it none: without a channel (IMEX), or on
 * nodes of different domains. */
static bool explain_machine_key(const struct reader_node *machine, const char *key)
{
    if (strcmp(key, "nvlinkBetweenNodes") != 0)
        return false;
    reader_unknown_key(machine, key,
                       "has no effect: NCCL's log of a run shows whether its hosts are connected "
                       "by NVLink: take it out");
    return true;
}

static const struct field_table machine_table = {
    machine_list, sizeof machine_list / sizeof *machine_list, explain_machine_key};

static void take_seen(const struct reader_node *node, struct known_machine *machine)
{
    struct seen_fields f = {.bytes = (int64_t)8 << 30};
    struct result name = {0};
    if (!fields_read(&seen_table, node, &f))
        return;
    if (f.collective)
        result_name_collective(&name, f.collective);
    bool range = f.low > 0 && f.high >= f.low && !(f.busbw > 0);
    bool figure = f.busbw > 0 && !(f.low > 0) && !(f.high > 0);
    if (!name.collective[0] || !f.nodes || !f.gpus || !f.source || (!range && !figure)) {
        reader_fail(node, "expected collective, nodes, gpus, source, and busbw or low and high");
        return;
    }
    struct known_seen *to = &machine->seen[machine->seen_count++];
    *to = (struct known_seen){.nodes = f.nodes,
                              .gpus = f.gpus,
                              .bytes = (uint64_t)f.bytes,
                              .busbw = f.busbw,
                              .misaligned = f.misaligned,
                              .low = range ? f.low : (1 - KNOWN_TOLERANCE) * f.busbw,
                              .high = range ? f.high : (1 + KNOWN_TOLERANCE) * f.busbw};
    memcpy(to->collective, name.collective, sizeof to->collective);
    snprintf(to->source, sizeof to->source, "%s", f.source);
}

static int take_machine(const struct reader_node *node, struct known_machine *to)
{
    struct machine_fields f = {0};
    struct reader_node list;
    if (!fields_read(&machine_table, node, &f))
        return 0;
    if (!f.name || !f.gpu || !f.gpus)
        return reader_fail(node, "expected name, gpu and gpus");
    *to = (struct known_machine){
        .gpus = f.gpus, .nics = f.nics, .nic_gbit = f.nic_gbit, .nvlink_gbs = f.nvlink_gbs};
    snprintf(to->name, sizeof to->name, "%s", f.name);
    snprintf(to->title, sizeof to->title, "%s", f.title ? f.title : f.name);
    snprintf(to->gpu, sizeof to->gpu, "%s", f.gpu);
    size_t count = json_array_size(f.seen);
    if (!(to->seen = calloc(count + 1, sizeof *to->seen)))
        return -ENOMEM;
    for (size_t i = 0; i < count && reader_get(node, "seen", &list); i++) {
        struct reader_node item = reader_item(&list, i);
        take_seen(&item, to);
    }
    return 0;
}

int known_read(struct known *known, const struct doc *doc, struct drarun_error *err)
{
    struct reader reader;
    struct reader_node list;
    int rc = 0;
    reader_init(&reader, doc, false);
    const struct reader_node root = reader_root(&reader, 0);
    if (reader_object(&root) == 0) {
        reader_known(&root, "machines");
        if (!reader_get(&root, "machines", &list))
            reader_fail(&root, "expected machines: a list");
        else if (reader_list(&list, 1) == 0) {
            size_t count = json_array_size(list.value);
            struct known_machine *more =
                reallocarray(known->list, known->count + count, sizeof *more);
            known->list = more ? more : known->list;
            rc = more ? 0 : -ENOMEM;
            for (size_t i = 0; rc == 0 && i < count; i++) {
                struct reader_node item = reader_item(&list, i);
                struct known_machine machine = {0};
                rc = take_machine(&item, &machine) == -ENOMEM ? -ENOMEM : 0;
                if (machine.name[0])
                    known->list[known->count++] = machine;
            }
        }
    }
    if (rc < 0)
        rc = error_set(err, ENOMEM, "out of memory");
    else
        rc = reader_result(&reader, err);
    reader_done(&reader);
    return rc;
}

int known_builtin(struct known *known, struct drarun_error *err)
{
    struct doc *doc = NULL;
    int rc = doc_parse("known_machines.yaml", (const char *)known_machines_yaml,
                       known_machines_yaml_size, DOC_FORMAT_YAML, NULL, &doc, err);
    rc = rc < 0 ? rc : known_read(known, doc, err);
    doc_free(doc);
    return rc;
}

void known_done(struct known *known)
{
    for (size_t i = 0; i < known->count; i++)
        free(known->list[i].seen);
    free(known->list);
    *known = (struct known){0};
}

/* ---- finding ---- */

static int compare_hosts(const void *a, const void *b)
{
    return strcmp(((const struct result_rank *)a)->host, ((const struct result_rank *)b)->host);
}

size_t known_ranks_of_host(const struct result *r)
{
    size_t most = 0, same = 0;
    struct result_rank *sorted = calloc(r->rank_count + 1, sizeof *sorted);
    if (!sorted)
        return 0;
    if (r->rank_count)
        memcpy(sorted, r->ranks, r->rank_count * sizeof *sorted);
    qsort(sorted, r->rank_count, sizeof *sorted, compare_hosts);
    for (size_t i = 0; i < r->rank_count; i++) {
        same = i > 0 && strcmp(sorted[i].host, sorted[i - 1].host) == 0 ? same + 1 : 1;
        most = same > most ? same : most;
    }
    free(sorted);
    return most;
}

static bool has_gpu(const struct known_machine *machine, const struct result *r)
{
    for (size_t i = 0; i < r->rank_count; i++)
        if (strcasecmp(r->ranks[i].model, machine->gpu) != 0)
            return false;
    return r->rank_count > 0;
}

const struct known_machine *known_find(const struct known *known, const char *name,
                                       const struct result *r)
{
    size_t of_host = known_ranks_of_host(r);
    for (size_t i = 0; i < known->count; i++) {
        const struct known_machine *machine = &known->list[i];
        if (name ? strcmp(machine->name, name) == 0
                 : has_gpu(machine, r) && of_host <= machine->gpus)
            return machine;
    }
    return NULL;
}

const struct known_machine *known_find_gpu(const struct known *known, const char *model,
                                           size_t ranks)
{
    for (size_t i = 0; known && i < known->count; i++)
        if (strcasecmp(model, known->list[i].gpu) == 0 && ranks <= known->list[i].gpus)
            return &known->list[i];
    return NULL;
}

static bool is_of(const struct known_seen *seen, const struct result *r)
{
    return strcmp(seen->collective, r->collective) == 0 && seen->nodes == result_hosts(r) &&
           seen->gpus == known_ranks_of_host(r) && result_groups(r) == 1;
}

const struct known_seen *known_misaligned_find(const struct known_machine *machine,
                                               const struct result *r)
{
    for (size_t i = 0; machine && i < machine->seen_count; i++) {
        const struct known_seen *seen = &machine->seen[i];
        double here = result_busbw_at(r, seen->bytes);
        if (seen->misaligned && is_of(seen, r) && here >= seen->low && here <= seen->high)
            return seen;
    }
    return NULL;
}

const struct known_seen *known_seen_find(const struct known_machine *machine,
                                         const struct result *r)
{
    const struct known_seen *any = NULL, *largest = NULL;
    for (size_t i = 0; machine && i < machine->seen_count; i++) {
        const struct known_seen *seen = &machine->seen[i];
        if (seen->misaligned || !is_of(seen, r))
            continue;
        any = any ? any : seen;
        if (result_busbw_at(r, seen->bytes) >= 0 && (!largest || seen->bytes > largest->bytes))
            largest = seen;
    }
    return largest ? largest : any;
}
