/* SPDX-License-Identifier: Apache-2.0 */
/* What `drarun env` derives from: files of a cluster, what the pod or a captured tree shows, the
 * shell's environment, and a vendor's script. */
#ifndef DRARUN_LAUNCHER_ENV_INPUTS_H
#define DRARUN_LAUNCHER_ENV_INPUTS_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "jobs/derive/plan.h"
#include "lib/base/strlist.h"
#include "lib/doc/doc.h"

struct env_sources {
    const char *const *claims, *const *slices, *const *nodes; /* files, NULL at the end; or NULL */
    const char *pod;      /* of several among the claims; NULL */
    const char *probe;    /* file; NULL: look at root */
    const char *root;     /* NULL: this machine's */
    const char *profiles; /* the site's file; NULL */
};

struct env_inputs {
    json_t *claims;  /* of the pod alone; NULL: none were given */
    const char *pod; /* borrowed from the file; NULL: not known */
    const char *node;
    json_t *labels; /* node name -> labels */
    json_t *probe;  /* NULL: nothing was looked at */
    struct slices slices;
    struct profiles profiles;
    struct strlist user; /* NAME=VALUE */
    /* what the above borrow from */
    json_t *slices_json, *nodes, *pods;
    struct doc *probe_file;
    bool looked;  /* the probe is of root */
    bool foreign; /* and root is not this machine's "/" */
};

/* *in is done with env_inputs_done also on failure. */
int env_inputs_read(const struct env_sources *sources, struct env_inputs *in,
                    struct drarun_error *err);
void env_inputs_done(struct env_inputs *inputs);

/* Runs the profile's script where the pod has it, and puts what came of it into the probe. A tree
 * that is not this machine's own has foreign code, and not every caller allows it: the probe then
 * says that it was not run. Returns true when the probe has changed. */
bool env_inputs_run_script(struct env_inputs *inputs, const struct profile *profile, bool allowed);

#endif
