/* SPDX-License-Identifier: Apache-2.0 */
/* Job control (signals to ranks) and log requests. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "worker/pmix/host_private.h"

/* The signal that a directive stands for; 0 for directives that are no signals, or not to be. */
static int directive_signal(const pmix_info_t *info)
{
    if (PMIx_Info_true(info) == PMIX_BOOL_FALSE)
        return 0;
    if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_KILL))
        return SIGKILL;
    if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_TERMINATE))
        return SIGTERM;
    if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_PAUSE))
        return SIGSTOP;
    if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_RESUME))
        return SIGCONT;
    if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_SIGNAL) && info->value.type == PMIX_INT)
        return info->value.data.integer;
    return 0;
}

static void signal_local(struct pmix_host *host, const Drarun__Wire__Control *control)
{
    for (size_t i = 0; i < control->n_targets; i++)
        host->owner.signal(host->owner.arg, control->targets[i]->first, control->targets[i]->count,
                           control->signo);
}

/* A signal for ranks, as the message that carries it to all agents. */
struct order {
    Drarun__Wire__Control control;
    Drarun__Wire__Range *targets, **pointers;
};

static void order_done(struct order *order)
{
    free(order->targets);
    free(order->pointers);
}

static int order_init(struct order *order, int signo, const struct coll_range *ranges, size_t count)
{
    *order = (struct order){.control = DRARUN__WIRE__CONTROL__INIT,
                            .targets = calloc(count + 1, sizeof *order->targets),
                            .pointers = calloc(count + 1, sizeof(void *))};
    if (!order->targets || !order->pointers)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        drarun__wire__range__init(&order->targets[i]);
        order->targets[i].first = ranges[i].first;
        order->targets[i].count = ranges[i].count;
        order->pointers[i] = &order->targets[i];
    }
    order->control.signo = signo;
    order->control.n_targets = count;
    order->control.targets = order->pointers;
    return 0;
}

static void signal_everywhere(struct pmix_host *host, struct order *order)
{
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_CONTROL;
    message.control = &order->control;
    if (host->tree->size > 1)
        host->owner.route(host->owner.arg, &message, true);
    signal_local(host, &order->control);
}

/* No target: the asker's own group. */
static int find_targets(const struct pmix_host *host, const struct upcall *upcall,
                        struct coll_range **ret_ranges, size_t *ret_count)
{
    pmix_proc_t own = upcall->proc;
    own.rank = PMIX_RANK_WILDCARD;
    return upcall->proc_count > 0
               ? pmix_members(host, upcall->procs, upcall->proc_count, ret_ranges, ret_count)
               : pmix_members(host, &own, 1, ret_ranges, ret_count);
}

void pmix_on_job_control(struct pmix_host *host, struct upcall *upcall)
{
    cleanup_free struct coll_range *ranges = NULL;
    size_t count = 0;
    int signo = 0;
    for (size_t i = 0; i < upcall->info_count && signo == 0; i++)
        signo = directive_signal(&upcall->info[i]);
    CLEANUP(order_done) struct order order = {0};
    pmix_status_t status = PMIX_ERR_NOT_SUPPORTED;
    if (signo > 0 && signo < NSIG) {
        int rc = find_targets(host, upcall, &ranges, &count);
        status = rc == -ENOMEM ? PMIX_ERR_NOMEM : rc < 0 ? PMIX_ERR_BAD_PARAM : PMIX_SUCCESS;
    }
    if (status == PMIX_SUCCESS && order_init(&order, signo, ranges, count) < 0)
        status = PMIX_ERR_NOMEM;
    if (status == PMIX_ERR_NOMEM)
        log_error("PMIx: out of memory for a request of a rank");
    /* answered first: the asker may be among those that the signal ends */
    upcall_answer(upcall, status);
    if (status == PMIX_SUCCESS)
        signal_everywhere(host, &order);
}

void pmix_controlled(struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    int signo = message->control->signo;
    if (signo > 0 && signo < NSIG)
        signal_local(host, message->control);
}

/* Once for the agent: the status that the rank gets has no words. */
static void tell_refused(struct pmix_host *host, uint32_t rank)
{
    const struct log_about about = {.of_rank = true, .rank = rank};
    if (!host->log_refused)
        log_about(&about, LOG_QUIET,
                  "rank %u: PMIx: more of what it logs waits for its reader than drarun keeps: the "
                  "rest is rejected; PMIx_Log waits, PMIx_Log_nb does not",
                  rank);
    host->log_refused = true;
}

/* PMIX_ERR_NOT_SUPPORTED for what is no output. The upcall keeps the text until it was passed on.
 */
static pmix_status_t log_one(struct pmix_host *host, struct upcall *upcall, uint32_t rank,
                             const pmix_info_t *info)
{
    bool out = PMIX_CHECK_KEY(info, PMIX_LOG_STDOUT);
    bool text = info->value.type == PMIX_STRING && info->value.data.string;
    if (!text || (!out && !PMIX_CHECK_KEY(info, PMIX_LOG_STDERR)))
        return PMIX_ERR_NOT_SUPPORTED;
    upcall->open++;
    int rc = host->owner.log(host->owner.arg, rank, out ? 1 : 2, info->value.data.string, upcall);
    if (rc == 0)
        return PMIX_SUCCESS;
    upcall->open--;
    if (rc == -EDQUOT)
        tell_refused(host, rank);
    return rc == -EDQUOT ? PMIX_ERR_OUT_OF_RESOURCE : rc == -ENOMEM ? PMIX_ERR_NOMEM : PMIX_ERROR;
}

/* The rank waits for the answer, and so for room among the output (docs/design/008-output.md). */
void pmix_on_log(struct pmix_host *host, struct upcall *upcall)
{
    int64_t rank = pmix_rank_of(host, &upcall->proc);
    if (upcall->status != PMIX_SUCCESS) { /* what is to be logged lacks a part */
        upcall_answer(upcall, upcall->status);
        return;
    }
    upcall->open = 1; /* until all are on their way */
    upcall->status = PMIX_ERR_NOT_SUPPORTED;
    for (size_t i = 0; rank >= 0 && i < upcall->info_count; i++) {
        pmix_status_t status = log_one(host, upcall, (uint32_t)rank, &upcall->info[i]);
        if (status != PMIX_ERR_NOT_SUPPORTED &&
            (upcall->status == PMIX_ERR_NOT_SUPPORTED || upcall->status == PMIX_SUCCESS))
            upcall->status = status;
    }
    pmix_host_logged(upcall);
}

void pmix_host_logged(void *token)
{
    struct upcall *upcall = token;
    if (--upcall->open == 0)
        upcall_answer(upcall, upcall->status);
}
