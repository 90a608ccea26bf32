/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "launcher/cluster/client/loop_fd.h"
#include "launcher/cluster/public/public.h"
#include "lib/base/error.h"

static void put_line(void *arg, const struct log_line *line)
{
    const struct drarun_cluster *cluster = arg;
    char text[1024];
    size_t length = line->length - line->prefix;
    if (length > 0 && line->text[line->length - 1] == '\n')
        length--;
    snprintf(text, sizeof text, "%.*s", (int)length, line->text + line->prefix);
    cluster->log(cluster->arg, (enum drarun_loglevel)line->level, text);
}

int public_begin(struct public_call *call, struct drarun_cluster *cluster, struct drarun_error *err)
{
    sigset_t pipe, pending;
    if (cluster->pid != getpid())
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "the cluster was opened by process %d, of which this is a child: open "
                          "one here",
                          (int)cluster->pid);
    if (cluster->busy)
        return error_kind(err, DRARUN_ERR_USAGE, EBUSY,
                          "the cluster is in use: by a call of another thread, or by the call that "
                          "runs this callback");
    cluster->busy = true;
    *call = (struct public_call){.cluster = cluster,
                                 .scope = {.level = (enum log_level)cluster->level,
                                           .put = cluster->log ? put_line : NULL,
                                           .arg = cluster}};
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    call->pending = sigismember(&pending, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &call->mask);
    call->before = log_scope_set(&call->scope);
    call->numbers = c_numbers_begin();
    if (cluster->driver)
        event_add(cluster->driver, NULL);
    return 0;
}

void public_end(struct public_call *call)
{
    static const struct timespec now = {0};
    struct drarun_cluster *cluster = call->cluster;
    sigset_t pipe;
    if (cluster->driver && TAILQ_EMPTY(&cluster->followings))
        event_del(cluster->driver); /* the caller's loop may end when it has no events */
    if (cluster->door)
        loop_fd_arm(cluster->door);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    while (!call->pending && sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &call->mask, NULL);
    c_numbers_end(&call->numbers);
    log_scope_set(call->before);
    cluster->busy = false;
}
