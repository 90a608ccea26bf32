/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/status/reason.h"

#include <ctype.h>

#define LAUNCHER REASON_OF_LAUNCHER
#define DRAJOB REASON_OF_DRAJOB
#define STATUS REASON_OF_STATUS

static const struct {
    const char *name;
    unsigned int places;
    bool warning;
    const char *meaning, *cure;
} reasons[REASON_COUNT] = {
    [REASON_NONE] = {.name = "None"},
    [REASON_WAITING] =
        {"Waiting", LAUNCHER, true,
         "workers wait for devices, a node or an image; the message names the worker and the "
         "reason",
         "drarun describe JOB shows each worker; drarun plan FILE shows what is short"},
    [REASON_RELEASED] = {"Released", LAUNCHER, true,
                         "not all workers could be placed; the devices of the others are released, "
                         "and the launcher tries again",
                         "wait, or ask for fewer workers; timeouts.allocation bounds the tries"},
    [REASON_STARTED] = {"Started", LAUNCHER, false, "the ranks run, or kept workers are up",
                        "nothing"},
    [REASON_SILENT] = {"Silent", LAUNCHER, true,
                       "no progress for hangAfter: no output, no network, no CPU time",
                       "read what each rank does in the message; onHang: fail in the spec ends "
                       "such a job"},
    [REASON_TCP_FALLBACK] =
        {"TcpFallback", LAUNCHER, true, "the job wants RDMA, and its data moves over TCP",
         "NCCL_DEBUG=INFO shows why; network: any allows TCP, onTcpFallback: fail ends the job"},
    [REASON_RESTARTED] = {"Restarted", LAUNCHER, true,
                          "an attempt failed, and the next one follows",
                          "read the cause in the message"},
    [REASON_DOCUMENT_REFUSED] =
        {"DocumentRefused", LAUNCHER, true,
         "the job in the ConfigMap is not the one that the launcher was made for; nothing starts",
         "look who has changed the ConfigMap, and submit the job again"},
    [REASON_CREATED] = {"Created", DRAJOB, false, "the controller has made the job's objects",
                        "nothing"},
    [REASON_RESUMED] = {"Resumed", DRAJOB, false, "the job is no longer suspended", "nothing"},
    [REASON_INVALID_SPEC] =
        {"InvalidSpec", DRAJOB | STATUS, true,
         "the spec was refused; the message names each wrong key",
         "correct the spec and apply it again: it may be changed while this reason stands"},
    [REASON_CANNOT_CREATE] =
        {"CannotCreate", DRAJOB | STATUS, true,
         "the API server refuses one of the job's objects: a quota, admission, a missing account",
         "do what the message says; the controller tries again within a minute"},
    [REASON_SUCCEEDED] = {"Succeeded", LAUNCHER | DRAJOB | STATUS, false,
                          "the job ended with status 0", "nothing"},
    [REASON_FAILED] = {"Failed", LAUNCHER | DRAJOB | STATUS, true,
                       "the job ended with another status than 0",
                       "read the cause in the message and drarun logs JOB"},
    [REASON_CANCELLED] = {"Cancelled", LAUNCHER | DRAJOB | STATUS, true, "somebody ended the job",
                          "nothing"},
    [REASON_ACCEPTED] = {"Accepted", STATUS, false,
                         "the spec is accepted, and the job's objects are being created",
                         "nothing"},
    [REASON_CHECKED] = {"Checked", STATUS, false, "the spec is accepted", "nothing"},
    [REASON_SUBMITTING] = {"Submitting", STATUS, false,
                           "drarun run or submit makes the job's objects",
                           "nothing; after a minute the controller takes the client for lost"},
    [REASON_NAME_IN_USE] = {"NameInUse", STATUS, true,
                            "objects of another job of that name are there",
                            "wait until they are gone, delete that job, or choose another name"},
    [REASON_SUSPENDED] = {"Suspended", DRAJOB | STATUS, false,
                          "spec.suspend is true, and the job holds no pods or claims",
                          "set spec.suspend to false to start it"},
    [REASON_SUSPENDING] = {"Suspending", STATUS, false,
                           "spec.suspend is true, and the job's pods and claims are being deleted",
                           "nothing"},
    [REASON_NOT_SUSPENDED] = {"NotSuspended", STATUS, false, "spec.suspend is false", "nothing"},
    [REASON_PENDING] = {"Pending", STATUS, false, "the launcher's pod has not reported yet",
                        "the message says why it does not start, if that lasts for 10 s; drarun "
                        "status JOB, or kubectl describe of the Job and of its pod, shows more"},
    [REASON_QUEUED] =
        {"Queued", STATUS, false,
         "a queue has not admitted the job yet, or a scheduling gate holds its pods",
         "look at the queue, as kubectl get workloads; timeouts.queue bounds the wait"},
    [REASON_PLACING] =
        {"Placing", STATUS, false, "workers wait for devices and nodes",
         "drarun describe JOB shows which; timeouts.nodes and allocation bound the wait"},
    [REASON_PULLING] = {"Pulling", STATUS, false, "workers have their nodes; images are pulled",
                        "look at the image name and the pull secret when it lasts; "
                        "timeouts.imagePull bounds the wait"},
    [REASON_STARTING] =
        {"Starting", STATUS, false, "the workers' agents start and are checked",
         "drarun describe JOB shows which agent is awaited; timeouts.start bounds the wait"},
    [REASON_RELEASING] = {"Releasing", STATUS, false,
                          "pods and claims of an attempt are given back before the next one",
                          "nothing"},
    [REASON_ALLOCATED] = {"Allocated", STATUS, false, "every worker has its devices and its node",
                          "nothing"},
    [REASON_RUNNING] = {"Running", STATUS, false, "the ranks run", "nothing"},
    [REASON_CLIENT_LOST] = {"ClientLost", STATUS, true,
                            "the client that was to make the job's objects has not made them, or "
                            "the launcher's Job is gone",
                            "delete the DraJob and submit it again"},
    [REASON_LAUNCHER_FAILED] =
        {"LauncherFailed", STATUS, true,
         "the launcher's Job failed, and the launcher had written no end",
         "the message says why; the Job and the workers are deleted 10 s later: mend the cause, "
         "delete the DraJob and apply it again"},
    [REASON_LAUNCHER_NOT_STARTED] =
        {"LauncherNotStarted", STATUS, true,
         "the launcher's pod has not started within the spec's timeouts, or cannot start",
         "the message says why; the Job and the workers are deleted 10 s later: mend the cause, "
         "delete the DraJob and apply it again"},
    [REASON_LAUNCHER_COMPLETED] =
        {"LauncherCompleted", STATUS, false,
         "the launcher's Job is complete, so all ranks have succeeded, and the launcher could not "
         "write that to its document",
         "nothing; where workers are left, the Job is deleted 10 s later, and they with it"},
    [REASON_LAUNCHER_SILENT] =
        {"LauncherSilent", DRAJOB | STATUS, true,
         "the launcher does not renew its Lease: its node is lost, cut off or overloaded",
         "look at the node that the message names: when it is back or its Node is deleted, another "
         "launcher takes over; drarun cancel JOB ends the job"},
    [REASON_JOB_DELETED] = {"JobDeleted", STATUS, true, "somebody deleted the launcher's Job",
                            "apply the DraJob again after deleting it"},
};

const char *reason_name(enum reason reason)
{
    return reasons[reason].name;
}

unsigned int reason_places(enum reason reason)
{
    return reasons[reason].places;
}

bool reason_is_warning(enum reason reason)
{
    return reasons[reason].warning;
}

const char *reason_meaning(enum reason reason)
{
    return reasons[reason].meaning;
}

const char *reason_cure(enum reason reason)
{
    return reasons[reason].cure;
}

void reason_of_words(const char *words, char *text, size_t size)
{
    bool upper = true;
    size_t n = 0;
    for (; words && *words && n < size - 1; words++) {
        if (isalnum((unsigned char)*words))
            text[n++] = (char)(upper ? toupper((unsigned char)*words) : *words);
        upper = !isalnum((unsigned char)*words);
    }
    text[n] = '\0';
}
