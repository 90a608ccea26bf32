/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the launcher that holds a Lease may be alive, and whether it still holds it. Pure. */
#ifndef DRARUN_LAUNCHER_CLUSTER_LEASE_LIFE_H
#define DRARUN_LAUNCHER_CLUSTER_LEASE_LIFE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* When it last renewed the Lease, milliseconds since 1970; 0: never. The later of what it says
 * itself (spec.renewTime, by a clock that may be wrong) and of when the API server took it
 * (metadata.managedFields of manager "drarun"). */
int64_t lease_life_sign(const json_t *lease);
/* The same of a Lease that anybody may write: a renewTime that is still to come, of a clock that is
 * wrong or of nobody's, does not count if metadata.managedFields have any time. */
int64_t lease_last_write(const json_t *lease, int64_t now_ms);
/* By the API server's clock alone, where it says when it took the last renewal: a launcher whose
 * clock is fast would seem to live on. */
int64_t lease_renewed_ms(const json_t *lease);

/* Somebody else than holder took it at least least_ms ago, and renewed it less than most_ms ago. */
bool lease_is_held(const json_t *lease, const char *holder, int64_t now_ms, int64_t least_ms,
                   int64_t most_ms);

/* A renewal has failed with code. left_ms: of the Lease's life; life_ms: all of it. timed: what its
 * holder does is not fenced otherwise, so it stops before another one may begin. Else only what the
 * server says of the Lease ends it: that it is gone (who has taken it is read from it). While the
 * server is away nobody can take it. */
bool lease_is_lost(int code, bool timed, int64_t left_ms, int64_t life_ms);

#endif
