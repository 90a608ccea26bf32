/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod is told of the others by its environment and its command line: a line for each fact,
 * in the order of struct rendezvous_facts; an empty one is a fact that is not known. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/spec/rendezvous.h"
#include "lib/base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next line, or NULL for an empty one. */
static const char *line(char **rest)
{
    char *found = strsep(rest, "\n");
    return found && found[0] ? found : NULL;
}

static long number(char **rest)
{
    const char *text = line(rest);
    return text ? strtol(text, NULL, 10) : 0;
}

static void check(const struct rendezvous *found)
{
    if (!found->source || found->index >= found->addresses.count)
        abort();
    for (size_t i = 0; i < found->addresses.count; i++)
        if (!strchr(found->addresses.items[i], ':'))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *text = calloc(1, size + 1);
    struct rendezvous found;
    struct drarun_error err = {0};
    char *rest = text;
    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    struct rendezvous_facts facts = {.peers = line(&rest)};
    const char *index = line(&rest);
    facts.index = index ? (int32_t)strtol(index, NULL, 10) : -1;
    facts.workers = (uint16_t)number(&rest);
    facts.port = (uint16_t)number(&rest);
    facts.lws_leader = line(&rest);
    facts.lws_size = line(&rest);
    facts.lws_index = line(&rest);
    facts.completion_index = line(&rest);
    facts.hostname = line(&rest);
    facts.fqdn = line(&rest);
    if (rendezvous_find(&facts, &found, &err) == 0) {
        check(&found);
        rendezvous_done(&found);
    } else if (!err.text[0] || err.kind == DRARUN_ERR_NONE) {
        abort();
    }
    return 0;
}
