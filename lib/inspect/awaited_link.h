/* SPDX-License-Identifier: Apache-2.0 */
/* Links that may still come up: a driver that moves a NIC into a pod closes it and opens it again,
 * and then its link trains, for seconds on fast ones. */
#ifndef DRARUN_INSPECT_AWAITED_LINK_H
#define DRARUN_INSPECT_AWAITED_LINK_H

#include <jansson.h>

/* The first RDMA device of the document (inspect) without an active port, whose interface is set up
 * in this network namespace, which is not the host's; NULL: there is none. The name belongs to the
 * document. root: as in inspect_options. Without a cable it looks the same. */
const char *inspect_awaited_link(const json_t *document, const char *root);

#endif
