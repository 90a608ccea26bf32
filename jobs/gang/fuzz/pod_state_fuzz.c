/* SPDX-License-Identifier: Apache-2.0 */
/* {"pod": ..., "claim": ..., "events": [...]} of any shape, as tests/data/pods has them: what the
 * cluster gives must end in a state, a decision and a sentence. */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/gang/gang.h"
#include "jobs/gang/waiting.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW_MS INT64_C(1700000000000)

static void decide(const struct pod_state workers[2], const struct news *news)
{
    static const struct spec_timeouts timeouts = {.queue = 1000, .allocation = 1000};
    struct gang gang;
    struct gang_decision decision;
    gang_init(&gang, 1, NOW_MS);
    for (int64_t at = 0; at < 20000; at += 700) {
        struct gang_input input = {.now_ms = NOW_MS + at,
                                   .timeouts = &timeouts,
                                   .workers = workers,
                                   .count = 2,
                                   .inspected = 2,
                                   .steps = 2,
                                   .job = news};
        if (gang_decide(&gang, &input, &decision, NULL) < 0)
            __builtin_trap(); /* an event that the table does not have */
    }
}

static void explain(json_t *document, const struct pod_state workers[2], const struct news *news)
{
    const struct waiting_group group = {.name = "a-w",
                                        .object = json_object_get(document, "podGroup")};
    struct waiting_input input = {.now_ms = NOW_MS,
                                  .workers = workers,
                                  .count = 2,
                                  .worker_job = json_object_get(document, "job"),
                                  .job_news = news,
                                  .group = &group,
                                  .workload = json_object_get(document, "workload")};
    struct waiting waiting;
    struct buf text = BUF_INIT;
    if (waiting_build(&input, &waiting, NULL) < 0)
        return;
    waiting_line(&waiting, &text);
    json_decref(waiting_json(&waiting));
    buf_done(&text);
    waiting_done(&waiting);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct news news = {0};
    struct pod_state workers[2];
    size_t i;
    json_t *event, *document = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);
    json_array_foreach(json_object_get(document, "events"), i, event) news_add(&news, event);
    for (size_t w = 0; w < 2; w++)
        pod_state_read(json_object_get(document, w ? "pod" : "other"),
                       json_object_get(document, "claim"), true, &news, &workers[w]);
    decide(workers, &news);
    explain(document, workers, &news);
    news_done(&news);
    json_decref(document);
    return 0;
}
