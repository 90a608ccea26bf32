/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/pod.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/number.h"
#include "lib/base/unconst.h"
#include "lib/doc/log_json.h"

static int take_number(const char *name, int64_t *ret_value, struct drarun_error *err)
{
    const char *text = getenv(name);
    return text ? number_parse(name, text, 0, UINT32_MAX, ret_value, err) : 0;
}

/* For the log alone: too long a one is none. */
static void take_text(const char *name, char *text, size_t size)
{
    const char *value = getenv(name);
    if (value && strlen(value) < size)
        memcpy(text, value, strlen(value) + 1);
    unsetenv(name);
}

int pod_take(struct pod *ret_pod, struct drarun_error *err)
{
    struct pod pod = {.worker = -1, .attempt = -1};
    const char *job = getenv("DRARUN_JOB");
    if (job && strlen(job) >= sizeof pod.job)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "DRARUN_JOB: expected a uid of at most %zu characters, got %zu",
                          sizeof pod.job - 1, strlen(job));
    snprintf(pod.job, sizeof pod.job, "%s", job ? job : "");
    int rc = take_number("DRARUN_ATTEMPT", &pod.attempt, err);
    if (rc == 0)
        rc = take_number(getenv("DRARUN_WORKER") ? "DRARUN_WORKER" : "JOB_COMPLETION_INDEX",
                         &pod.worker, err);
    if (rc < 0)
        return rc;
    take_text("DRARUN_JOB_NAME", pod.name, sizeof pod.name);
    take_text("DRARUN_NODE", pod.node, sizeof pod.node);
    unsetenv("DRARUN_JOB");
    unsetenv("DRARUN_ATTEMPT");
    unsetenv("DRARUN_WORKER");
    *ret_pod = pod;
    return 0;
}

static void on_log(void *arg, const struct log_line *line)
{
    const struct pod *pod = arg;
    const struct log_json who = {
        .job = pod->name[0] ? pod->name : NULL,
        .attempt = pod->attempt,
        .about = {.of_worker = pod->worker >= 0,
                  .worker = pod->worker >= 0 ? (uint32_t)pod->worker : 0,
                  .node = pod->node[0] ? pod->node : NULL},
    };
    log_json_write(&who, line);
}

void pod_log(const struct pod *pod)
{
    log_divert(on_log, unconst(pod));
}

static void describe(const char *job, int64_t attempt, int64_t worker, char *text, size_t size)
{
    char of_attempt[32] = "", who[32] = "a worker";
    if (attempt >= 0)
        snprintf(of_attempt, sizeof of_attempt, ", attempt %" PRId64, attempt);
    if (worker >= 0)
        snprintf(who, sizeof who, "worker %" PRId64, worker);
    snprintf(text, size, "%s of job %.64s%s", who, job[0] ? job : "(unknown)", of_attempt);
}

/* A kept pod's jobs are called after the allocation, with a word of their own behind a dot. */
static bool is_own_job(const struct pod *pod, const char *job)
{
    size_t length = strlen(pod->job);
    if (!pod->job[0] || strcmp(pod->job, job) == 0)
        return true;
    return pod->kept && strncmp(job, pod->job, length) == 0 && job[length] == '.';
}

int pod_check(const struct pod *pod, const Drarun__Wire__Hello *hello, struct drarun_error *err)
{
    bool launcher = hello->role == DRARUN__WIRE__ROLE__ROLE_LAUNCHER;
    char own[160], wanted[160];
    if (is_own_job(pod, hello->job) && (pod->attempt < 0 || pod->attempt == hello->attempt) &&
        (!launcher || pod->worker < 0 || pod->worker == hello->worker))
        return 0;
    describe(pod->job, pod->attempt, pod->worker, own, sizeof own);
    describe(hello->job, hello->attempt, launcher ? (int64_t)hello->worker : -1, wanted,
             sizeof wanted);
    return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EPERM, "this is %s; the caller wants %s", own,
                      wanted);
}

void pod_tell_end(const char *text)
{
    /* corev1.TerminationMessagePathDefault: a file that the kubelet mounts */
    int fd = open("/dev/termination-log", O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    fd_write_all(fd, text, strlen(text));
    close(fd);
}
