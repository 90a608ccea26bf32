/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/offer.h"

#include <stdio.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/wire/hello.h"

#define WITHOUT "the agent is delivered by a volume"

static void take(struct cluster *cluster, const struct agent_claim *found)
{
    char text[AGENT_CLAIM_TEXT_MAX];
    cluster->agent = *found;
    agent_claim_text(found, text);
    snprintf(cluster->agent_text, sizeof cluster->agent_text, CLUSTER_BY_CLAIM "%s", text);
    cluster->delivery = cluster->agent_text;
    log_verbose("the agent is delivered by the claims, as all nodes have it: %s", text);
}

static bool is_open(const struct cluster *cluster, const struct job_spec *spec)
{
    return !cluster->delivery && cluster->api && agent_claim_fits(spec);
}

bool offer_is_ready(const struct job_spec *spec, struct survey *survey)
{
    const json_t *classes;
    if (!is_open(survey->cluster, spec))
        return true;
    if (!survey_read(survey, SURVEY_CLASSES, false, WITHOUT))
        return false;
    classes = survey->items[SURVEY_CLASSES];
    return !classes || !agent_claim_concerns(spec, classes) ||
           survey_read(survey, SURVEY_SLICES, false, WITHOUT);
}

void offer_choose(const struct survey *survey, const struct job_spec *spec)
{
    struct agent_claim found;
    struct slices slices;
    struct buf why = BUF_INIT;
    json_t *classes = survey->items[SURVEY_CLASSES], *list = survey->items[SURVEY_SLICES];
    if (!is_open(survey->cluster, spec) || !classes || !agent_claim_concerns(spec, classes) ||
        !list || slices_read(list, &slices, NULL) < 0)
        return;
    if (agent_claim_find(spec, &slices, classes, WIRE_MAJOR, &found, &why))
        take(survey->cluster, &found);
    else if (why.len > 0)
        log_note("the agent is delivered by a volume: %s", why.data);
    slices_done(&slices);
    buf_done(&why);
}

void offer_look(struct cluster *cluster, const struct job_spec *spec)
{
    CLEANUP(survey_done) struct survey survey = {.cluster = cluster};
    while (!offer_is_ready(spec, &survey))
        cluster_turn(cluster, KUBE_CALL_MS);
    offer_choose(&survey, spec);
}
