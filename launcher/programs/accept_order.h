/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator wants tested. Everything borrowed. */
#ifndef DRARUN_LAUNCHER_ACCEPT_ORDER_H
#define DRARUN_LAUNCHER_ACCEPT_ORDER_H

#include "launcher/programs/cluster_api.h"
#include "lib/accept/accept.h"

struct accept_order {
    struct cluster_choice cluster;
    const char *file;           /* the job of one test */
    const char *selector;       /* of nodes, as kubectl's -l; NULL: all */
    const char *image;          /* of drarun, as agent_image takes it */
    const char *priority_class; /* "": none; NULL: ours, made where it is missing */
    const char *records;        /* directory; NULL: of the user's state */
    struct accept_options options;
    uint32_t parallel;  /* tests at a time */
    uint32_t tries;     /* of a test that is not run */
    int64_t timeout_ms; /* of one */
    const char *format; /* of the verdicts: text, json, junit or html; NULL: text */
    bool here, again, taint;
    cluster_run_fn run; /* runs the job of a test; accept_run sets it */
};

#endif
