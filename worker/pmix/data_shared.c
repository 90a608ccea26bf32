/* SPDX-License-Identifier: Apache-2.0 */
/* Names that other jobs of the user may know: the launcher has them (docs/design/037-spawn.md). */
#include <stdlib.h>
#include <string.h>

#include "lib/base/unconst.h"
#include "worker/pmix/host_private.h"

struct shared_round *shared_round_new(struct pmix_host *host, size_t most,
                                      void (*done)(struct shared_round *round), void *arg)
{
    struct shared_round *round = calloc(1, sizeof *round + most * sizeof round->names[0]);
    if (round) {
        round->host = host;
        round->open = 1; /* until shared_round_end */
        round->done = done;
        round->arg = arg;
    }
    return round;
}

static void close_one(struct shared_round *round)
{
    if (--round->open > 0)
        return;
    if (round->done)
        round->done(round);
    for (size_t i = 0; i < round->count; i++) {
        free(round->names[i].key);
        buf_done(&round->names[i].value);
    }
    free(round);
}

bool shared_round_ask(struct shared_round *round, int action, const char *key, const void *value,
                      size_t length)
{
    struct shared_name *name = &round->names[round->count++];
    Drarun__Wire__NameRequest request = DRARUN__WIRE__NAME_REQUEST__INIT;
    *name = (struct shared_name){.round = round, .key = strdup(key), .answer = SHARED_UNKNOWN};
    request.action = action;
    request.pmix = true;
    request.service = unconst(key);
    request.value.data = unconst(value);
    request.value.len = length;
    if (!name->key)
        return false;
    if (!round->host->owner.name)
        return true;
    round->open++;
    round->host->owner.name(round->host->owner.arg, &request, name);
    return true;
}

void shared_round_end(struct shared_round *round)
{
    close_one(round);
}

void pmix_host_named(void *token, const Drarun__Wire__NameReply *reply)
{
    struct shared_name *name = token;
    if (reply) {
        name->answer = reply->good ? SHARED_YES : SHARED_NO;
        buf_add(&name->value, reply->value.data, reply->value.len);
    }
    if (name->value.failed)
        name->answer = SHARED_UNKNOWN;
    close_one(name->round);
}
