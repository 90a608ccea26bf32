/* SPDX-License-Identifier: Apache-2.0 */
/* The agent through the worker's claim: where all nodes that a worker may run on have a node plugin
 * that brings it (lib/base/agent_offer.h), the claim asks for it, and the pod needs neither init
 * container nor volume. All workers come the same way, since a pod is written before its node is
 * known: docs/design/024-agent-by-claim.md. Pure. */
#ifndef DRARUN_JOBS_AGENT_CLAIM_H
#define DRARUN_JOBS_AGENT_CLAIM_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "jobs/manifests/claims.h"
#include "lib/dra/slices.h"
#include "lib/base/agent_offer.h"
#include "lib/base/buf.h"

struct agent_claim {
    char driver[64];              /* whose devices bring it: of ours, "nic.drarun.dev" */
    char agent[AGENT_OFFER_SIZE]; /* which one; "": it comes otherwise */
};

#define AGENT_CLAIM_TEXT_MAX (64 + AGENT_OFFER_SIZE)

/* "DRIVER=AGENT", as agent_claim_text writes it. Kind DRARUN_ERR_USAGE. */
int agent_claim_parse(const char *text, struct agent_claim *ret_claim, struct drarun_error *err);
void agent_claim_text(const struct agent_claim *claim, char ret_text[AGENT_CLAIM_TEXT_MAX]);

/* Whether a claim of this job can bring it: its workers are of one role, which has one, the pods'
 * first container alone lists it, since others would get what belongs to the agent, too, and it
 * wants no drarun-bench beside it. */
bool agent_claim_fits(const struct job_spec *spec);
/* The job names a class whose selectors name a driver of ours; without one nothing else need be
 * read. classes: DeviceClass objects. */
bool agent_claim_concerns(const struct job_spec *spec, const json_t *classes);

/* What all devices that the job's GPUs, or its NICs, may come from offer, of this major version of
 * the protocol. False: it comes otherwise, and why says so in a clause where a node offers one;
 * *why is "" where none does. */
bool agent_claim_find(const struct job_spec *spec, const struct slices *slices,
                      const json_t *classes, unsigned major, struct agent_claim *ret_claim,
                      struct buf *why);

/* Puts the wish into a claim's spec: a selector on the devices' attribute, so that no device of a
 * node without it is allocated, and the parameters. */
int agent_claim_add(const struct agent_claim *claim, const struct spec_role *role,
                    json_t *claim_spec, struct drarun_error *err);

#endif
