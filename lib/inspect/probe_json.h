/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine, a pod or a captured tree shows, as the probe that a plan is derived from
 * (jobs/derive/inventory/probe.h, docs/design/011-derivation.md). */
#ifndef DRARUN_INSPECT_PROBE_JSON_H
#define DRARUN_INSPECT_PROBE_JSON_H

#include <jansson.h>
#include "lib/base/strlist.h"
#include "lib/topo/host.h"

/* root: the directory that stands for "/". files: the absolute paths to look for. The caller owns
 * the object; NULL: out of memory. */
json_t *probe_json(const struct topo_host *host, int root, const struct strlist *files);

#endif
