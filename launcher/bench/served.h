/* SPDX-License-Identifier: Apache-2.0 */
/* Where a cluster's GPUs and NICs come from, for who has named no DeviceClass: by claim where a
 * class of a known driver has devices, else by a device plugin, as nodes say what they have to
 * allocate; and which profile all of these nodes are of. Pure. */
#ifndef DRARUN_LAUNCHER_BENCH_SERVED_H
#define DRARUN_LAUNCHER_BENCH_SERVED_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"

#define SERVED_NAME 254 /* of a class or an extended resource, with its NUL */

struct served_source { /* of one kind; both "": not found */
    char class[SERVED_NAME], resource[SERVED_NAME];
    char selector[128]; /* which devices of the class; "": all */
};

struct served {
    struct served_source gpus, nics;
    char profile[64]; /* "": not known, or nodes differ */
    char why[192];    /* how the profile was recognised */
};

struct served_objects { /* arrays */
    json_t *classes, *slices, *nodes;
};

/* -EINVAL, kind SPEC: a kind that is wanted is not served, or several classes serve it; the text
 * says what there is and which option chooses. */
int served_find(const struct served_objects *objects, bool want_gpus, bool want_nics,
                struct served *ret_served, struct drarun_error *err);

#endif
