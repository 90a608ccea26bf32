/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/objects.h"
#include "launcher/cluster/submit/create.h"
#include "launcher/cluster/lead/private.h"
#include "launcher/cluster/lead/gates.h"
#include "lib/base/cleanup.h"
#include "lib/base/log.h"

bool lead_is_suspended(const struct lead *lead)
{
    return object_is_suspended(board_worker_job(lead->board));
}

/* Of the worker Job: the spec's, or one that the cluster has given it; NULL: none. */
static const char *queue_of(const struct lead *lead)
{
    const char *found = object_queue(board_worker_job(lead->board));
    return found ? found : lead->spec->queue;
}

void lead_name_suspender(const struct lead *lead, struct buf *out)
{
    const struct news_item *pending = news_get(board_job_news(lead->board), NEWS_QUEUED);
    const char *queue = queue_of(lead);
    if (!queue)
        return;
    buf_printf(out, "queue %s has not admitted it%s%s", queue, pending ? ": " : "",
               pending ? pending->text : "");
}

/* That the launcher's Job runs is what resumes a suspended job. */
int lead_let_go_on(struct lead *lead, struct drarun_error *err)
{
    if (lead->gang.phase != GANG_QUEUED || lead->options->here ||
        object_is_suspended(board_launcher_job(lead->board)))
        return 0;
    return resume_workers(lead->cluster, lead->spec, lead->options->namespace,
                          board_workers(lead->board, lead->render.attempt),
                          board_worker_job(lead->board), err);
}

bool lead_is_taken_back(const struct lead *lead, int rc, const struct drarun_error *err)
{
    bool by_its_pods = rc < 0 ? err->kind == DRARUN_ERR_INFRASTRUCTURE : lead->status != 0;
    bool queued = lead_is_suspended(lead) && queue_of(lead);
    return by_its_pods && queued && !lead_is_stopped(lead) && !lead->stop.cancelled;
}

/* With a new worker Job: in the old one a worker whose ranks were ended may count as completed. */
int lead_queue_again(struct lead *lead, struct drarun_error *err)
{
    log_note("queue %s has reclaimed the workers: the ranks start again when it admits them",
             queue_of(lead));
    return lead_next_attempt(lead, err);
}

void lead_give_back_suspended(struct lead *lead)
{
    struct drarun_error err = {0};
    if (lead->stop.lost.code || !object_is_suspended(board_launcher_job(lead->board)))
        return;
    log_note("the job is suspended: its workers are deleted");
    if (delete_workers(lead->cluster, lead->spec, lead->options->namespace, &err) < 0)
        log_error("%s", err.text);
    lead->render.attempt++;
    json_decref(TAKE_PTR(lead->attempt.report));
    json_decref(TAKE_PTR(lead->attempt.fabric));
    gang_init_next(&lead->gang, gang_seed(lead->owner_uid, lead->render.attempt), lead_now());
    lead->gang.ticking_since_ms = 0; /* nobody waits meanwhile: timeouts.queue is the next one's */
    lead_tell(lead, NULL);
}
