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

static void round_free(struct shared_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        free(round->names[i].key);
        free(round->names[i].job);
        buf_done(&round->names[i].value);
    }
    free(round);
}

static void close_one(struct shared_round *round)
{
    if (--round->open > 0)
        return;
    if (round->done)
        round->done(round);
    round_free(round);
}

/* False: out of memory, and nobody is asked. */
static bool ask(struct shared_round *round, Drarun__Wire__NameRequest *request)
{
    struct shared_name *name = &round->names[round->count++];
    *name =
        (struct shared_name){.round = round,
                             .key = strdup(request->service),
                             .publish = request->action == DRARUN__WIRE__NAME_ACTION__NAME_PUBLISH,
                             .answer = SHARED_UNKNOWN};
    request->pmix = true;
    if (!name->key)
        return false;
    if (!round->host->owner.name)
        return true;
    round->open++;
    round->host->owner.name(round->host->owner.arg, request, name);
    return true;
}

static bool publish(struct shared_round *round, const char *key, const struct buf *value, bool once,
                    bool wait)
{
    Drarun__Wire__NameRequest request = DRARUN__WIRE__NAME_REQUEST__INIT;
    request.action = DRARUN__WIRE__NAME_ACTION__NAME_PUBLISH;
    request.service = unconst(key);
    request.value.data = (uint8_t *)value->data;
    request.value.len = value->len;
    request.once = once;
    request.wait = wait;
    return ask(round, &request);
}

bool shared_round_publish(struct shared_round *round, const char *key, const struct buf *value,
                          bool once)
{
    return publish(round, key, value, once, false);
}

bool shared_round_queue(struct shared_round *round, const char *key, const struct buf *value)
{
    return publish(round, key, value, true, true);
}

bool shared_round_unpublish(struct shared_round *round, const char *key)
{
    Drarun__Wire__NameRequest request = DRARUN__WIRE__NAME_REQUEST__INIT;
    request.action = DRARUN__WIRE__NAME_ACTION__NAME_UNPUBLISH;
    request.service = unconst(key);
    return ask(round, &request);
}

bool shared_round_lookup(struct shared_round *round, const char *key, bool wait, const char *job)
{
    Drarun__Wire__NameRequest request = DRARUN__WIRE__NAME_REQUEST__INIT;
    request.action = DRARUN__WIRE__NAME_ACTION__NAME_LOOKUP;
    request.service = unconst(key);
    request.wait = wait;
    request.job = unconst(job);
    return ask(round, &request);
}

void shared_round_end(struct shared_round *round)
{
    close_one(round);
}

void shared_round_drop(struct shared_round *round)
{
    const struct pmix_host_owner *owner = &round->host->owner;
    for (size_t i = 0; i < round->count; i++)
        if (owner->forget_name && !round->names[i].answered)
            owner->forget_name(owner->arg, &round->names[i]);
    round_free(round);
}

static enum shared_answer answer_of(const struct shared_name *name,
                                    const Drarun__Wire__NameReply *reply)
{
    if (!reply->good)
        return reply->ended ? SHARED_NEVER : SHARED_NO;
    return name->publish && reply->alone ? SHARED_ALONE : SHARED_YES;
}

void pmix_host_named(void *token, const Drarun__Wire__NameReply *reply)
{
    struct shared_name *name = token;
    name->answered = true;
    if (reply) {
        name->answer = answer_of(name, reply);
        buf_add(&name->value, reply->value.data, reply->value.len);
        name->job = strdup(reply->job);
    }
    if (name->value.failed || (reply && !name->job))
        name->answer = SHARED_UNKNOWN;
    close_one(name->round);
}
