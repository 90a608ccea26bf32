/* SPDX-License-Identifier: Apache-2.0 */
/* The order of ranks where workers have NVLink between them: those of one clique (a node's label
 * nvidia.com/gpu.clique, cliqueID of the ComputeDomain's status) follow one another, so that rings
 * and trees over neighbouring ranks leave a clique as seldom as can be. Pure. */
#ifndef DRARUN_JOBS_CLIQUES_H
#define DRARUN_JOBS_CLIQUES_H

#include <jansson.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

/* cliques: by worker; NULL: it is in none that is known, and alone. *ret_order: the workers in the
 * order of their ranks, which the caller frees; NULL when that is by number already. Cliques come
 * in the order of their first workers. */
int cliques_order(const char *const *cliques, uint32_t workers, uint32_t **ret_order,
                  struct drarun_error *err);

/* For people: [{"clique", "workers": "0,2", "ranks": "0-7"}] in the order of ranks. order as above,
 * each: ranks of a worker; 0: not known, and nothing is said of them. JSON null where no worker is
 * in any; NULL without memory. */
json_t *cliques_json(const char *const *cliques, const uint32_t *order, uint32_t workers,
                     uint32_t each);

/* One line without its end: "NVLink: 0a.1: workers 0,2, ranks 0-7; ...". Nothing for what is no
 * such list. */
void cliques_line(const json_t *list, struct buf *out);

#endif
