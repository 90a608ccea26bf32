/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/preflight/fabric.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/ranks/worker_ranges.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"

#define BROKEN_KEPT 64u /* in the value; the matrix has all */

/* ---- rails ---- */

static bool is_down(const struct plan_left_nic *left)
{
    return left->use == NIC_USE_DOWN && left->claimed;
}

static size_t add_nic(const struct inventory_nic *nic, struct fabric_rail *list)
{
    const struct topo_port *ports[DATA_NIC_PORTS_MAX];
    size_t count = inventory_nic_ports(nic, ports);
    list[0] = (struct fabric_rail){.nic = nic};
    for (size_t i = 0; i < count; i++)
        list[i] = (struct fabric_rail){.nic = nic, .port = ports[i]};
    return count ? count : 1;
}

int fabric_rails(const struct plan_worker *worker, struct fabric_rail **ret_rails,
                 size_t *ret_count)
{
    size_t most = worker->nic_count * DATA_NIC_PORTS_MAX + worker->left_count, count = 0;
    bool rdma = worker->profile && worker->profile->data == PROFILE_RDMA && worker->nic_count > 0;
    struct fabric_rail *list = calloc(most + 1, sizeof *list);
    if (!list)
        return -ENOMEM;
    for (size_t n = 0, l = 0; rdma && (n < worker->nic_count || l < worker->left_count);) {
        bool left = n == worker->nic_count ||
                    (l < worker->left_count &&
                     worker->left[l].device.pci < worker->nics[n].found.device.pci);
        if (!left)
            count += add_nic(&worker->nics[n++].found, &list[count]);
        else if (is_down(&worker->left[l++]))
            list[count++] = (struct fabric_rail){.left = &worker->left[l - 1]};
    }
    *ret_rails = list;
    *ret_count = count;
    return 0;
}

const char *fabric_device(const struct fabric_rail *rail)
{
    assert(rail->nic || rail->left);
    if (!rail->nic)
        return rail->left->ibdev;
    return rail->nic->ibdev ? rail->nic->ibdev : rail->nic->label;
}

/* ---- while NICs are checked ---- */

struct cell {
    char device[64];
    uint32_t port;
    char state;
};

struct row {
    struct cell *cells;
    size_t count;
};

struct fabric {
    struct row *rows;
    size_t count, rails;
    json_t *broken;
};

static int add_row(const struct plan_worker *worker, struct row *row)
{
    cleanup_free struct fabric_rail *rails = NULL;
    size_t count = 0;
    int rc = fabric_rails(worker, &rails, &count);
    if (rc == 0 && !(row->cells = calloc(count + 1, sizeof *row->cells)))
        rc = -ENOMEM;
    for (size_t r = 0; rc == 0 && r < count; r++) {
        struct cell *cell = &row->cells[row->count++];
        *cell =
            (struct cell){.port = rails[r].port ? rails[r].port->number : 1, .state = FABRIC_GOOD};
        snprintf(cell->device, sizeof cell->device, "%s", fabric_device(&rails[r]));
    }
    return rc;
}

struct fabric *fabric_new(const struct plan *plan)
{
    struct fabric *fabric = calloc(1, sizeof *fabric);
    int rc = 0;
    if (!fabric)
        return NULL;
    fabric->rows = calloc(plan->worker_count + 1, sizeof *fabric->rows);
    fabric->broken = json_array();
    fabric->count = fabric->rows ? plan->worker_count : 0;
    for (size_t w = 0; rc == 0 && w < fabric->count; w++) {
        rc = add_row(&plan->workers[w], &fabric->rows[w]);
        if (fabric->rows[w].count > fabric->rails)
            fabric->rails = fabric->rows[w].count;
    }
    if (rc == 0 && fabric->rows && fabric->broken)
        return fabric;
    fabric_free(fabric);
    return NULL;
}

void fabric_free(struct fabric *fabric)
{
    if (!fabric)
        return;
    for (size_t w = 0; w < fabric->count; w++)
        free(fabric->rows[w].cells);
    free(fabric->rows);
    json_decref(fabric->broken);
    free(fabric);
}

static void add_broken(struct fabric *fabric, uint32_t worker, const char *device, uint32_t port,
                       bool failed, const char *code, const char *why)
{
    if (json_array_size(fabric->broken) < BROKEN_KEPT)
        json_array_append_new(fabric->broken,
                              json_pack("{s:i, s:s, s:o*, s:s, s:s, s:s}", "worker", (int)worker,
                                        "device", device, "port", port ? json_integer(port) : NULL,
                                        "result", failed ? "failed" : "unknown", "code", code,
                                        "why", why));
}

void fabric_note(struct fabric *fabric, uint32_t worker, const char *device, uint32_t port,
                 bool failed, const char *code, const char *why)
{
    struct row *row = worker < fabric->count ? &fabric->rows[worker] : NULL;
    bool found = false;
    for (size_t r = 0; row && r < row->count; r++) {
        struct cell *cell = &row->cells[r];
        if (strcmp(cell->device, device) != 0 || (port && cell->port != port))
            continue;
        found = true;
        if (cell->state != FABRIC_FAILED)
            cell->state = failed ? FABRIC_FAILED : FABRIC_UNKNOWN;
    }
    if (found)
        add_broken(fabric, worker, device, port, failed, code, why);
}

static size_t count_of(const struct fabric *fabric, char state)
{
    size_t count = 0;
    for (size_t w = 0; w < fabric->count; w++)
        for (size_t r = 0; r < fabric->rows[w].count; r++)
            count += fabric->rows[w].cells[r].state == state;
    return count;
}

static json_t *matrix_json(const struct fabric *fabric)
{
    json_t *matrix = json_array();
    cleanup_free char *word = calloc(1, fabric->rails + 1);
    for (size_t w = 0; word && w < fabric->count; w++) {
        const struct row *row = &fabric->rows[w];
        for (size_t r = 0; r < fabric->rails; r++)
            word[r] = r < row->count ? row->cells[r].state : FABRIC_NONE;
        json_array_append_new(matrix, json_string(word));
    }
    return matrix;
}

json_t *fabric_json(const struct fabric *fabric, const json_t *reach)
{
    if (fabric->rails == 0)
        return NULL;
    return json_pack("{s:{s:I, s:I, s:I, s:I, s:I, s:o, s:O}, s:O?}", "opened", "workers",
                     (json_int_t)fabric->count, "rails", (json_int_t)fabric->rails, "good",
                     (json_int_t)count_of(fabric, FABRIC_GOOD), "failed",
                     (json_int_t)count_of(fabric, FABRIC_FAILED), "unknown",
                     (json_int_t)count_of(fabric, FABRIC_UNKNOWN), "matrix", matrix_json(fabric),
                     "broken", fabric->broken, "reach", reach);
}

/* ---- reading the value ---- */

static json_int_t number_at(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const json_t *opened_of(const json_t *fabric)
{
    return json_object_get(fabric, "opened");
}

static const json_t *reach_of(const json_t *fabric)
{
    return json_object_get(fabric, "reach");
}

static int check_matrix(const json_t *part, const char *name, struct drarun_error *err)
{
    const json_t *matrix = json_object_get(part, "matrix"), *first = json_array_get(matrix, 0);
    size_t i, rails = json_is_string(first) ? json_string_length(first) : 0;
    json_t *word;
    if (rails == 0)
        return error_set(err, EINVAL,
                         "%s.matrix: expected a list of words, one for each worker with a letter "
                         "for each rail%s",
                         name,
                         part && !matrix ? "; of a large job the status document has none, and "
                                           "the report has"
                                         : "");
    json_array_foreach(matrix, i, word)
    {
        const char *text = json_string_value(word);
        if (!text || strlen(text) != rails || strspn(text, ".x?-") != rails)
            return error_set(
                err, EINVAL,
                "%s.matrix[%zu]: expected a word of %zu letters of \".x?-\", got %.40s", name, i,
                rails, text ? text : "no text");
    }
    return 0;
}

int fabric_find(const json_t *document, json_t **ret_fabric, struct drarun_error *err)
{
    const json_t *inner = json_object_get(document, "fabric");
    const json_t *fabric = json_is_object(inner) ? inner : document;
    if (!json_is_object(opened_of(fabric)))
        return error_set(err, ENOENT,
                         "nothing is in it about NICs: expected a status document (drarun status "
                         "-o json) or a report (--report) of a job with network: rdma whose NICs "
                         "were opened");
    int rc = check_matrix(opened_of(fabric), "opened", err);
    if (rc == 0 && json_is_object(reach_of(fabric)))
        rc = check_matrix(reach_of(fabric), "reach", err);
    if (rc == 0)
        *ret_fabric = json_incref(unconst(fabric));
    return rc;
}

static const json_t *matrix_of(const json_t *part)
{
    return json_object_get(part, "matrix");
}

uint32_t fabric_workers(const json_t *fabric)
{
    return (uint32_t)json_array_size(matrix_of(opened_of(fabric)));
}

uint32_t fabric_rail_count(const json_t *fabric)
{
    return (uint32_t)json_string_length(json_array_get(matrix_of(opened_of(fabric)), 0));
}

static char letter(const json_t *part, uint32_t worker, uint32_t rail)
{
    const json_t *word = json_array_get(matrix_of(part), worker);
    return rail < json_string_length(word) ? json_string_value(word)[rail] : FABRIC_NONE;
}

char fabric_opened(const json_t *fabric, uint32_t worker, uint32_t rail)
{
    return letter(opened_of(fabric), worker, rail);
}

char fabric_reached(const json_t *fabric, uint32_t worker, uint32_t rail)
{
    return letter(reach_of(fabric), worker, rail);
}

char fabric_state(const json_t *fabric, uint32_t worker, uint32_t rail)
{
    char opened = fabric_opened(fabric, worker, rail);
    char reached = fabric_reached(fabric, worker, rail);
    if (opened == FABRIC_FAILED)
        return FABRIC_FAILED;
    if (reached == FABRIC_FAILED)
        return FABRIC_UNREACHED;
    return opened == FABRIC_UNKNOWN || reached == FABRIC_UNKNOWN ? FABRIC_UNKNOWN : opened;
}

bool fabric_is_good(const json_t *fabric)
{
    const json_t *opened = opened_of(fabric), *reach = reach_of(fabric);
    return number_at(opened, "failed") + number_at(opened, "unknown") + number_at(reach, "failed") +
               number_at(reach, "unknown") ==
           0;
}

/* ---- for people ---- */

#define TOLD_MAX 16u   /* lines of what is wrong */
#define RANGES_SHOWN 8 /* of workers in a row */
#define ROWS_SHOWN 32u

static void add_count(json_int_t count, const char *words, struct buf *out)
{
    if (count > 0)
        buf_printf(out, ", %" JSON_INTEGER_FORMAT " %s", count, words);
}

void fabric_line(const json_t *fabric, struct buf *out)
{
    const json_t *opened = opened_of(fabric), *reach = reach_of(fabric);
    buf_printf(out, "NICs: %" JSON_INTEGER_FORMAT " opened", number_at(opened, "good"));
    add_count(number_at(opened, "failed"), "failed", out);
    add_count(number_at(opened, "unknown"), "not known", out);
    if (!json_is_object(reach))
        return;
    buf_printf(out, "; %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " reach the next worker",
               number_at(reach, "reached"), number_at(reach, "pairs"));
    add_count(number_at(reach, "failed"), "failed", out);
    add_count(number_at(reach, "unknown"), "not known", out);
    buf_printf(out, " (%" JSON_INTEGER_FORMAT " ms)", number_at(reach, "ms"));
}

static const char *word_at(const json_t *part, size_t worker)
{
    const char *word = json_string_value(json_array_get(matrix_of(part), worker));
    return word ? word : "";
}

static bool same_row(const json_t *fabric, size_t a, size_t b)
{
    return strcmp(word_at(opened_of(fabric), a), word_at(opened_of(fabric), b)) == 0 &&
           strcmp(word_at(reach_of(fabric), a), word_at(reach_of(fabric), b)) == 0;
}

static void add_row_text(const json_t *fabric, size_t first, const char *workers, struct buf *out)
{
    int width = (int)fabric_rail_count(fabric);
    buf_printf(out, "  %-12s %-*s", workers, width > 6 ? width : 6,
               word_at(opened_of(fabric), first));
    if (json_is_object(reach_of(fabric)))
        buf_printf(out, "  %s", word_at(reach_of(fabric), first));
    buf_add_str(out, "\n");
}

/* The workers whose rows are as the first's, and which are marked as shown. */
static void add_alike(const json_t *fabric, uint32_t first, bool *shown, struct buf *out)
{
    struct buf text = BUF_INIT;
    uint32_t count = fabric_workers(fabric), alike = 0;
    cleanup_free uint32_t *workers = calloc(count, sizeof *workers);
    for (uint32_t w = first; workers && w < count; w++)
        if (!shown[w] && same_row(fabric, first, w)) {
            workers[alike++] = w;
            shown[w] = true;
        }
    worker_ranges(workers, alike, RANGES_SHOWN, &text);
    out->failed |= !workers || text.failed;
    add_row_text(fabric, first, text.data ? text.data : "?", out);
    buf_done(&text);
}

static void add_matrix(const json_t *fabric, struct buf *out)
{
    uint32_t count = fabric_workers(fabric), rows = 0, more = 0;
    int width = (int)fabric_rail_count(fabric);
    cleanup_free bool *shown = calloc(count + 1, sizeof *shown);
    if (!shown) {
        out->failed = true;
        return;
    }
    if (count == 0)
        return;
    buf_printf(out, "  %-12s %-*s%s\n", "WORKER", width > 6 ? width : 6, "OPENED",
               json_is_object(reach_of(fabric)) ? "  REACH" : "");
    for (uint32_t w = 0; w < count; w++) {
        if (shown[w])
            continue;
        if (rows++ < ROWS_SHOWN)
            add_alike(fabric, w, shown, out);
        else
            more++;
    }
    if (more > 0)
        buf_printf(out, "  and %u more workers\n", more);
    buf_add_str(out, "  (a letter for each rail: . good, x failed, ? not known, - none)\n");
}

static void add_port(const json_t *end, struct buf *out)
{
    json_int_t port = number_at(end, "port");
    buf_printf(out, "worker %" JSON_INTEGER_FORMAT " %s", number_at(end, "worker"),
               value_text_or(end, "device", "?"));
    if (port > 1)
        buf_printf(out, ", port %" JSON_INTEGER_FORMAT, port);
}

static void add_one(const json_t *broken, struct buf *out)
{
    const json_t *from = json_object_get(broken, "from"), *to = json_object_get(broken, "to");
    buf_add_str(out, "  ");
    add_port(from ? from : broken, out);
    if (to) {
        buf_add_str(out, " -> ");
        add_port(to, out);
    }
    buf_printf(out, ": %s%s\n",
               strcmp(value_text_or(broken, "result", ""), "unknown") == 0 ? "not known: " : "",
               value_text_or(broken, "why", "?"));
}

static void add_wrong(const json_t *part, struct buf *out)
{
    const json_t *broken = json_object_get(part, "broken");
    json_int_t all = number_at(part, "failed") + number_at(part, "unknown");
    size_t i, count = json_array_size(broken);
    for (i = 0; i < count && i < TOLD_MAX; i++)
        add_one(json_array_get(broken, i), out);
    if (i < count || (count == BROKEN_KEPT && all > (json_int_t)count))
        buf_printf(out, "  and more (%" JSON_INTEGER_FORMAT " rails in all)\n", all);
}

void fabric_text(const json_t *fabric, struct buf *out)
{
    fabric_line(fabric, out);
    buf_add_str(out, "\n");
    add_matrix(fabric, out);
    add_wrong(opened_of(fabric), out);
    add_wrong(reach_of(fabric), out);
}
