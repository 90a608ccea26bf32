/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a refusal (401, 403) may pass by itself: an API server that has just started refuses what
 * it allows until it has read its roles. The one place that decides this. Pure: time comes in as a
 * value. */
#ifndef DRARUN_KUBE_REFUSAL_H
#define DRARUN_KUBE_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/cleanup.h"

#define REFUSAL_PASSES_MS 30000 /* after the first one */
#define REFUSAL_LOST_MS 30000   /* a refusal that comes so late after a loss is not due to it */

struct refusals;

int refusals_new(struct refusals **ret_refusals, struct drarun_error *err);
void refusals_free(struct refusals *refusals);
DEFINE_CLEANUP(struct refusals, refusals_free)

/* verb: the HTTP method, or "WATCH". path: of the request, without its query. */
struct refusal {
    const char *verb, *path;
    bool by_role; /* the server names the verb that no role allows: not 401, quota or admission */
};

/* A connection to the server failed. */
void refusals_note_loss(struct refusals *refusals, int64_t now_ms);
/* The server allowed this verb on objects of this kind. */
void refusals_note_allowed(struct refusals *refusals, const char *verb, const char *path);
/* True for 30 s from the first refusal that follows a lost connection, or, by_role, that follows an
 * earlier success of the same verb on the same kind in the same namespace. */
bool refusal_passes(struct refusals *refusals, const struct refusal *refusal, int64_t now_ms);

#endif
