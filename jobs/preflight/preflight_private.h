/* SPDX-License-Identifier: Apache-2.0 */
/* Between preflight.c (what is told of the findings), finding.c and preflight_rules.c (what is
 * wrong when). */
#ifndef DRARUN_JOBS_PREFLIGHT_PRIVATE_H
#define DRARUN_JOBS_PREFLIGHT_PRIVATE_H

#include "jobs/preflight/preflight.h"

struct preflight_run {
    const struct preflight_input *in;
    struct preflight_finding *list; /* one for each worker; merged later */
    size_t count, cap;
    bool failed;
};

/* cure is static. */
void preflight_add(struct preflight_run *run, enum preflight_code code, bool refusal,
                   uint32_t worker, const char *cure, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

void preflight_finding_done(struct preflight_finding *finding);

void preflight_rules(struct preflight_run *run);
void preflight_reach_rules(struct preflight_run *run, const struct reach *reach);

#endif
