/* SPDX-License-Identifier: Apache-2.0 */
/* What the check of a job's NICs found, as one value: which of them opened, and which reach the
 * next worker, by worker and rail (docs/design/038-open-nics.md). The status document, the report,
 * `drarun bench fabric` and the picture of a plan show it. Pure. */
#ifndef DRARUN_JOBS_FABRIC_H
#define DRARUN_JOBS_FABRIC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/derive/plan.h"
#include "lib/base/buf.h"

/* ---- rails ---- */

/* A rail of a worker: a port that carries data, or a claimed NIC whose link is down, which keeps
 * its place so that the workers' other rails stay opposite each other. */
struct fabric_rail {
    const struct inventory_nic *nic;  /* NULL: the link is down */
    const struct plan_left_nic *left; /* then */
    const struct topo_port *port;     /* NULL: not known */
};

/* In the order of PCI addresses, as the plan's NICs; none where the worker moves no data by RDMA.
 * Borrows from the worker; the list is malloc'ed. -ENOMEM. */
int fabric_rails(const struct plan_worker *worker, struct fabric_rail **ret_rails,
                 size_t *ret_count);
/* The rail's device in the pod. */
const char *fabric_device(const struct fabric_rail *rail);

/* ---- while NICs are checked ---- */

struct fabric;

/* Of the plan's rails, all of which are good until something is noted. NULL: no memory. */
struct fabric *fabric_new(const struct plan *plan);
void fabric_free(struct fabric *fabric);
/* What is wrong with a device, or one port of it (0: with all). failed: false where it is not known
 * whether something is. code: static. Devices that are no rail are passed over. */
void fabric_note(struct fabric *fabric, uint32_t worker, const char *device, uint32_t port,
                 bool failed, const char *code, const char *why);
/* reach: reach_json, borrowed; NULL: it was not tried. NULL: no memory, or no worker has a rail. */
json_t *fabric_json(const struct fabric *fabric, const json_t *reach);

/* ---- the value ---- */

/* {"opened": {workers, rails, good, failed, unknown, matrix, broken: [{worker, device, port,
 *   result, code, why}]}, "reach": reach_json, or null}
 * Each matrix has a word for each worker with a letter for each rail. */
#define FABRIC_GOOD '.'
#define FABRIC_FAILED 'x'
#define FABRIC_UNKNOWN '?'
#define FABRIC_NONE '-' /* the worker has no such rail */

/* A document of another's: the value itself, or a report or status document that holds it. A new
 * reference whose matrices are as above. -ENOENT: there is none; -EINVAL: it is no such value. */
int fabric_find(const json_t *document, json_t **ret_fabric, struct drarun_error *err);
uint32_t fabric_workers(const json_t *fabric);
uint32_t fabric_rail_count(const json_t *fabric);
/* Letters; FABRIC_NONE also beyond the matrix, and of reach where it was not tried. */
char fabric_opened(const json_t *fabric, uint32_t worker, uint32_t rail);
char fabric_reached(const json_t *fabric, uint32_t worker, uint32_t rail);
/* The worse of the two, FABRIC_UNREACHED for a NIC that is good and does not reach the next. */
#define FABRIC_UNREACHED '>'
char fabric_state(const json_t *fabric, uint32_t worker, uint32_t rail);
/* Nothing has failed, and nothing is unknown. */
bool fabric_is_good(const json_t *fabric);

/* For people. The line: "NICs: 8 opened; 7 of 8 reach the next worker, 1 does not (31 ms)". */
void fabric_line(const json_t *fabric, struct buf *out);
/* That, the matrix, in which workers of equal rows are one line, and what is wrong. */
void fabric_text(const json_t *fabric, struct buf *out);

#endif
