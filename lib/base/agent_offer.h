/* SPDX-License-Identifier: Apache-2.0 */
/* What a node plugin that brings the agent into containers says of it, and what a job's claim asks
 * for: the part of the agent's version that must be the same in all workers and the launcher
 * (lib/wire/hello.h), "v1-pmix-5.0.7". It is the value of an attribute of the plugin's devices, and
 * a folder's name on the node. docs/design/024-agent-by-claim.md. */
#ifndef DRARUN_BASE_AGENT_OFFER_H
#define DRARUN_BASE_AGENT_OFFER_H

#include <stdbool.h>
#include <string.h>

#define AGENT_OFFER_ATTRIBUTE "drarun.dev/agent"
#define AGENT_OFFER_SIZE 65 /* of an attribute: DeviceAttributeMaxValueLength, and its NUL */
#define AGENT_OFFER_KIND "WorkerAgent"
#define AGENT_OFFER_API "drarun.dev/v1alpha1"
/* where the agent is in a container */
#define AGENT_OFFER_PROGRAM "/.drarun/bin/drarun-worker"

static inline bool agent_offer_valid(const char *text)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
    size_t length = strlen(text);
    return text[0] == 'v' && length < AGENT_OFFER_SIZE && strspn(text, allowed) == length;
}

#endif
