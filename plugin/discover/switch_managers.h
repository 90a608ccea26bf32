/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that look like NICs but manage a machine's NVLink switches: the boards of B200 and B300
 * have ports of ConnectX-7 for it, whose model is that of NICs. Only the vital product data tells
 * them (SW_MNG). NVIDIA's Fabric Manager needs them on the host, and no fabric is behind them. */
#ifndef DRARUN_PLUGIN_DISCOVER_SWITCH_MANAGERS_H
#define DRARUN_PLUGIN_DISCOVER_SWITCH_MANAGERS_H

#include "lib/base/strlist.h"

/* What was read, by address: a reading takes a tenth of a second of each function, and one that
 * fails may take as long. */
struct switch_managers {
    struct strlist managers, others;
    struct strlist failed; /* once for each reading; too often, and it is one of the others */
};

#define SWITCH_MANAGERS_INIT                                                                       \
    {                                                                                              \
        STRLIST_INIT, STRLIST_INIT, STRLIST_INIT                                                   \
    }

void switch_managers_done(struct switch_managers *known);

#endif
