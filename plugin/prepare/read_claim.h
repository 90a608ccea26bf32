/* SPDX-License-Identifier: Apache-2.0 */
/* The claim that one driver of this plugin has just read from the API server, for the other one:
 * the kubelet calls the drivers of a claim one after the other. It is handed on once, and not when
 * it is a second old; a driver's own calls read it each time, since the claim may have other
 * devices by then. (Prepare itself may wait 15 s with a claim for its devices.) Pure. */
#ifndef DRARUN_PLUGIN_PREPARE_READ_CLAIM_H
#define DRARUN_PLUGIN_PREPARE_READ_CLAIM_H

#include <jansson.h>
#include <stdint.h>

struct read_claim {     /* zero: none */
    json_t *claim;      /* NULL: none */
    const char *driver; /* who has read it */
    int64_t at_ms;
};

void read_claim_done(struct read_claim *read);
/* claim is borrowed, driver for read's life. */
void read_claim_put(struct read_claim *read, json_t *claim, const char *driver, int64_t now_ms);
/* A new reference; NULL: there is none of this name and UID for this driver. */
json_t *read_claim_take(struct read_claim *read, const char *namespace_, const char *name,
                        const char *uid, const char *driver, int64_t now_ms);

#endif
