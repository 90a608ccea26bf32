/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA devices as the document's member `verbs` has them (docs/design/018-inspection.md). */
#ifndef DRARUN_INSPECT_VERBS_JSON_H
#define DRARUN_INSPECT_VERBS_JSON_H

#include <jansson.h>
#include "lib/topo/host.h"
#include "lib/verbs/nic_open.h"

/* One device. root stands for "/". open: what came of opening it through libibverbs, which has told
 * the facts in rdma then; NULL: nobody did, the facts are sysfs', and its node is opened here
 * without waiting. NULL: out of memory. */
json_t *verbs_json(const struct topo_rdma *rdma, int root, const struct nic_open *open);

/* Puts into the list `verbs` what a process told that opened the devices: lines of one such object
 * each, of any number of them. What it told nothing of keeps sysfs' facts, and gets `missing` as
 * the reason: "it has not ended within 30 s". -ENOMEM. */
int verbs_take(json_t *verbs, const char *lines, size_t length, const char *missing);

#endif
