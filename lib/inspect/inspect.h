/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker really holds, in one JSON document: the probe that plans are made of, and what the
 * preflight checks (docs/design/018-inspection.md has its shape). Reads sysfs, procfs and /dev and
 * opens device nodes without waiting; no thread of its own, nothing kept. */
#ifndef DRARUN_INSPECT_INSPECT_H
#define DRARUN_INSPECT_INSPECT_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "lib/topo/host.h"

struct inspect_options {
    const char *root;            /* a directory that stands for "/"; NULL: "/" itself */
    const struct strlist *files; /* absolute paths to look for; NULL: none */
    const char *session_dir;     /* where session directories can be made; NULL: nowhere */
    const char *build, *pmix;    /* versions; NULL: not said */
    char *const *environ;        /* of the container, "NAME=VALUE"; NULL: not said */
};

/* The whole document. -errno only for a root that cannot be opened and without memory. */
int inspect(const struct inspect_options *options, json_t **ret_document, struct drarun_error *err);

/* A variable by which users steer NCCL, UCX, libfabric, Open MPI or Gloo. */
bool inspect_steers(const char *entry);

/* Its member "probe" alone, without opening any device. */
int inspect_probe(const char *root, const struct strlist *files, json_t **ret_probe,
                  struct drarun_error *err);

#endif
