/* SPDX-License-Identifier: Apache-2.0 */
/* What attempts and calls of a client tell its memory of refusals, and ask of it. */
#include "lib/base/clock.h"
#include "lib/kube/client_private.h"
#include "lib/kube/problem.h"

/* Not 429 and what the server fails at: its authorizer was perhaps not asked. */
static bool is_past_authorizer(int status)
{
    return status >= 200 && status < 500 && status != 401 && status != 403 && status != 429;
}

void client_note_answer(struct kube_client *client, const char *verb, const char *path, int status)
{
    if (is_past_authorizer(status))
        refusals_note_allowed(client->refusals, verb, path);
}

void client_note_loss(struct kube_client *client)
{
    refusals_note_loss(client->refusals, clock_ms());
}

bool client_refusal_passes(struct kube_client *client, const char *verb, const char *path,
                           int status, const json_t *problem)
{
    const struct refusal refusal = {
        .verb = verb, .path = path, .by_role = problem_is_by_role(status, problem)};
    return (status == 401 || status == 403) &&
           refusal_passes(client->refusals, &refusal, clock_ms());
}
