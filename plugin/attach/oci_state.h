/* SPDX-License-Identifier: Apache-2.0 */
/* What a container runtime tells a hook on its standard input (OCI runtime-spec, State). */
#ifndef DRARUN_ATTACH_OCI_STATE_H
#define DRARUN_ATTACH_OCI_STATE_H

#include <limits.h>
#include <sys/types.h>
#include "drarun/error.h"

#define OCI_STATE_SIZE_MAX ((size_t)1 << 20) /* annotations are the runtime's to bound */

struct oci_state {
    pid_t pid;             /* of the container that is being created */
    char bundle[PATH_MAX]; /* its directory, absolute; "" where the runtime does not say */
};

/* Pure. */
int oci_state_parse(const char *text, size_t len, struct oci_state *ret, struct drarun_error *err);
/* The same from a descriptor, read to its end until a time of clock_ms(). */
int oci_state_read(int fd, int64_t until_ms, struct oci_state *ret, struct drarun_error *err);

#endif
