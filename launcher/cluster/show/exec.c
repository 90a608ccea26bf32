/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/show/exec.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "jobs/gang/pod_state.h"
#include "jobs/manifests/pod_merge.h"
#include "jobs/status/status_doc.h"
#include "launcher/cluster/client/board.h"
#include "launcher/cluster/client/job_clock.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cluster/show/exec_status.h"
#include "launcher/cluster/show/exec_worker.h"
#include "launcher/programs/signals.h"
#include "launcher/streams/input.h"
#include "launcher/streams/std_streams.h"
#include "launcher/cli/verb.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/kube/socket.h"

#define TURN_MS 60000

struct exec {
    const struct cluster_exec *options;
    struct kube_socket *socket;
    struct input *input;
    struct signals *signals;
    struct termios terminal; /* as it was */
    size_t underway;         /* bytes of input that have not left */
    struct std_streams *streams;
    bool raw, ended;
    bool left; /* by a signal: what is queued is not wanted */
    int status;
    struct drarun_error trouble;
};

/* ---- the terminal ---- */

static void set_raw(struct exec *e)
{
    struct termios raw;
    if (!e->options->tty || tcgetattr(e->options->input, &e->terminal) < 0)
        return;
    raw = e->terminal;
    cfmakeraw(&raw);
    e->raw = tcsetattr(e->options->input, TCSANOW, &raw) == 0;
}

static void send_size(struct exec *e)
{
    struct winsize size;
    char text[64];
    if (!e->options->tty || ioctl(e->options->input, TIOCGWINSZ, &size) < 0)
        return;
    int n = snprintf(text, sizeof text, "{\"Width\":%u,\"Height\":%u}", size.ws_col, size.ws_row);
    kube_socket_send(e->socket, KUBE_CHANNEL_RESIZE, text, (size_t)n);
}

static void on_signal(void *arg, int signo)
{
    struct exec *e = arg;
    if (signo == SIGWINCH && e->socket) {
        send_size(e);
    } else if (signo == SIGCONT && e->input) {
        input_look(e->input);
    } else if (signo == SIGTSTP) {
        raise(SIGSTOP);
    } else if (signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT) {
        e->status = 128 + signo; /* the command gets SIGHUP, or its end of file, from the kubelet */
        e->ended = e->left = true;
    }
}

/* ---- input ---- */

static void on_input(void *arg, const void *data, size_t length)
{
    struct exec *e = arg;
    if (length == 0) {
        if (kube_socket_close_channel(e->socket, KUBE_CHANNEL_STDIN) == -ENOTSUP)
            log_note("exec: this API server cannot forward the end of the input; use Kubernetes "
                     "1.30 or later");
        return;
    }
    if (kube_socket_send(e->socket, KUBE_CHANNEL_STDIN, data, length) == 0)
        e->underway += length;
}

static void on_drained(void *arg)
{
    struct exec *e = arg;
    if (e->input && e->underway > 0)
        input_passed(e->input, 0, e->underway);
    e->underway = 0;
}

/* ---- output and end ---- */

static void on_data(unsigned channel, const char *bytes, size_t length, void *arg)
{
    struct exec *e = arg;
    if (channel == KUBE_CHANNEL_STATUS) {
        e->status = exec_status_read(bytes, length, &e->trouble);
        e->ended = true;
    } else {
        std_streams_write(e->streams,
                          channel == KUBE_CHANNEL_STDERR ? STDERR_FILENO : STDOUT_FILENO, bytes,
                          length);
    }
}

static void on_full(void *arg, bool full)
{
    struct exec *e = arg;
    if (e->socket)
        kube_socket_pause(e->socket, full);
}

static void on_write_failed(void *arg, const struct drarun_error *err)
{
    struct exec *e = arg;
    e->status = -1;
    e->trouble = *err;
    e->ended = true;
}

static void on_opened(void *arg)
{
    struct exec *e = arg;
    set_raw(e);
    send_size(e);
    if (e->input)
        input_start(e->input);
}

static void on_ended(const struct drarun_error *err, void *arg)
{
    struct exec *e = arg;
    e->socket = NULL;
    if (e->ended)
        return;
    e->ended = true;
    e->status = -1;
    if (err)
        e->trouble = *err;
    else
        error_kind(&e->trouble, DRARUN_ERR_INFRASTRUCTURE, ECONNRESET,
                   "the connection ended before the command did");
}

/* ---- which pod ---- */

static int pod_of_worker(struct cluster *cluster, const char *job, uint32_t worker,
                         json_t **ret_pod, struct drarun_error *err)
{
    char selector[160];
    CLEANUP(json_decrefp) json_t *list = NULL;
    const struct kube_target target = {.resource = &kube_pods, .namespace_ = cluster->namespace};
    const struct kube_select select = {.labels = selector, .fields = "status.phase=Running"};
    size_t i;
    json_t *pod, *found = NULL;
    snprintf(selector, sizeof selector, "drarun.dev/job=%s", job);
    int rc = cluster_list(cluster, &target, &select, &list, err);
    if (rc < 0)
        return rc;
    json_array_foreach(json_object_get(list, "items"), i, pod)
    {
        if (board_worker_label(pod) == worker && (!found || kube_is_terminating(found)))
            found = pod; /* one of an earlier attempt may still be there */
    }
    *ret_pod = json_incref(found);
    if (found)
        return 0;
    return error_kind(err, DRARUN_ERR_USAGE, ENOENT,
                      "the pod of worker %" PRIu32 " of %s does not run", worker, job);
}

static int has_ended(const char *job, const json_t *doc, struct drarun_error *err)
{
    struct buf how = BUF_INIT;
    status_doc_end(doc, lead_now(), &how);
    int rc = error_kind(err, DRARUN_ERR_USAGE, ESRCH,
                        "job %s has ended: %s; drarun logs %s shows its output", job,
                        how.data ? how.data : "?", job);
    buf_done(&how);
    return rc;
}

static int find_pod(struct cluster *cluster, const struct cluster_exec *exec, json_t **ret_pod,
                    struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *map = NULL, *doc = NULL;
    int rc = job_map_get(cluster, exec->job, cluster->namespace, &map, err);
    if (rc < 0)
        return rc;
    if (job_map_status(map, &doc, err) < 0 || !json_integer_value(json_object_get(doc, "ranks")))
        return error_kind(err, DRARUN_ERR_USAGE, EAGAIN, "the ranks of %s do not run yet",
                          exec->job);
    if (status_doc_exit(doc) >= 0)
        return has_ended(exec->job, doc, err);
    uint32_t worker = 0;
    rc = exec_worker_of_rank(doc, exec->job, exec->rank, &worker, err);
    if (rc < 0)
        return rc;
    rc = pod_of_worker(cluster, exec->job, worker, ret_pod, err);
    return rc < 0 ? error_prefix(err, "rank %" PRIu32, exec->rank) : 0;
}

static const char *container_of(const json_t *pod)
{
    return json_string_value(json_object_get(pod_state_container(pod), "name"));
}

static int command_of(const struct cluster_exec *exec, struct strlist *command)
{
    strlist_add(command, POD_MERGE_AGENT_PROGRAM);
    strlist_add(command, "--beside");
    strlist_addf(command, "%" PRIu32, exec->rank);
    strlist_add(command, "--");
    strlist_add_all(command, exec->argv);
    return command->failed ? -ENOMEM : 0;
}

static int open_input(struct exec *e, struct cluster *cluster, struct drarun_error *err)
{
    const struct input_owner owner = {.data = on_input, .arg = e};
    if (e->options->input < 0)
        return 0;
    e->input = input_new(cluster->base, e->options->input, 1, &owner);
    return e->input ? 0 : error_set(err, ENOMEM, "out of memory");
}

static int start(struct exec *e, struct cluster *cluster, struct drarun_error *err)
{
    static const struct kube_socket_events events = {
        .opened = on_opened, .data = on_data, .drained = on_drained, .ended = on_ended};
    CLEANUP(json_decrefp) json_t *pod = NULL;
    struct strlist command = STRLIST_INIT;
    int rc = find_pod(cluster, e->options, &pod, err);
    if (rc == 0 && command_of(e->options, &command) < 0)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0 && !(e->signals = signals_new(cluster->base, on_signal, e, err)))
        rc = -err->code;
    if (rc == 0)
        rc = open_input(e, cluster, err);
    const struct kube_exec exec = {.namespace_ = cluster->namespace,
                                   .pod = kube_name(pod),
                                   .container = container_of(pod),
                                   .command = &command,
                                   .stdin_ = e->options->input >= 0,
                                   .tty = e->options->tty};
    if (rc == 0)
        rc = kube_exec_open(cluster->client, &exec, &events, e, &e->socket, err);
    strlist_done(&command);
    return rc;
}

/* The command has ended; a signal ends the waiting for a reader. */
static void write_rest(struct exec *e, struct cluster *cluster)
{
    kube_socket_free(TAKE_PTR(e->socket));
    input_free(TAKE_PTR(e->input));
    while (!e->left && !std_streams_is_idle(e->streams))
        cluster_turn(cluster, TURN_MS);
    if (e->left)
        std_streams_discard(e->streams);
}

static void run(struct exec *e, struct cluster *cluster)
{
    const struct std_streams_owner owner = {.full = on_full, .failed = on_write_failed, .arg = e};
    std_streams_set_owner(e->streams, &owner);
    if (start(e, cluster, &e->trouble) < 0)
        e->status = -1, e->ended = true;
    while (!e->ended)
        cluster_turn(cluster, TURN_MS);
    write_rest(e, cluster);
    if (e->raw)
        tcsetattr(e->options->input, TCSANOW, &e->terminal);
    signals_free(e->signals);
}

int exec_beside(struct cluster *cluster, const struct cluster_exec *options)
{
    struct exec e = {.options = options, .streams = std_streams_new(cluster->base, NULL)};
    if (e.streams)
        run(&e, cluster);
    else
        e.status = error_set(&e.trouble, ENOMEM, "out of memory");
    int status = e.status < 0 ? verb_exit_status(&e.trouble) : e.status;
    if (e.status < 0)
        log_error("exec: %s", e.trouble.text);
    std_streams_end(e.streams);
    return status;
}
