/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler says of a pod that has no node, in short. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/gang/waiting_private.h"
#include "jobs/spec/node_spread.h"
#include "lib/base/cleanup.h"

/* "0/4 nodes are available: 1 Insufficient cpu, 3 cannot allocate all claims. preemption: ..."
 * (pkg/scheduler/framework/types.go, FitError): the part behind the counts is the same for all. */
char *scheduler_words(const char *message)
{
    static const char *const ends[] = {
        " preemption: ", " pod group preemption: ", " still not schedulable", " no new claims to",
        " Preemption is not"};
    unsigned nodes;
    int used = 0;
    struct buf out = BUF_INIT;
    if (!message || !message[0])
        return NULL;
    size_t length = strlen(message);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        const char *end = strstr(message, ends[i]);
        if (end && (size_t)(end - message) < length)
            length = (size_t)(end - message);
    }
    while (length > 0 && strchr(". ,", message[length - 1]))
        length--;
    if (sscanf(message, "0/%u nodes are available: %n", &nodes, &used) == 1 && used > 0 &&
        (size_t)used < length)
        buf_printf(&out, "%u node%s: %.*s", nodes, nodes == 1 ? "" : "s", (int)length - used,
                   message + used);
    else
        buf_add(&out, message, length);
    char *words = out.failed ? NULL : buf_take(&out);
    buf_done(&out);
    return words;
}

/* Nodes that have a worker; of a gang that is placed at once no worker has a node yet, and the
 * message (pkg/scheduler/framework/plugins/interpodaffinity) counts them. */
char *spread_words(const struct pod_state *workers, uint32_t count, const char *message)
{
    static const char rule[] = " node(s) didn't match pod anti-affinity rules";
    const char *at = message ? strstr(message, rule) : NULL;
    struct buf out = BUF_INIT;
    unsigned long fit = 0;
    if (!at)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        fit += workers[i].node != NULL;
    while (at > message && at[-1] >= '0' && at[-1] <= '9')
        at--;
    if (fit == 0)
        fit = strtoul(at, NULL, 10);
    buf_printf(&out,
               "%u workers, one per node by " NODE_SPREAD_KEY "; %lu node%s fit%s; " NODE_SPREAD_KEY
               ": none lets them share nodes",
               count, fit, fit == 1 ? "" : "s", fit == 1 ? "s" : "");
    char *words = out.failed ? NULL : buf_take(&out);
    buf_done(&out);
    return words;
}
