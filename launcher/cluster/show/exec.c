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
#include "jobs/ranks/rankmap.h"
#include "jobs/status/status_doc.h"
#include "launcher/cluster/client/board.h"
#include "launcher/cluster/client/job_clock.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cluster/show/exec_status.h"
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

/* As the launcher has told it; NULL: by number, or it is no order. */
static uint32_t *read_order(const json_t *doc, uint32_t workers)
{
    const json_t *told = json_object_get(doc, "rankOrder");
    cleanup_free uint32_t *order = calloc(workers + 1u, sizeof *order);
    cleanup_free bool *seen = calloc(workers + 1u, sizeof *seen);
    size_t i;
    json_t *worker;
    if (!order || !seen || json_array_size(told) != workers)
        return NULL;
    json_array_foreach(told, i, worker)
    {
        json_int_t index = json_integer_value(worker);
        if (index < 0 || index >= workers || seen[index])
            return NULL;
        seen[index] = true;
        order[i] = (uint32_t)index;
    }
    return TAKE_PTR(order);
}

/* Any account that may write ConfigMaps of the namespace may have written it. */
static int read_sizes(const json_t *doc, const char *job, uint32_t *ret_ranks,
                      uint32_t *ret_workers, struct drarun_error *err)
{
    json_int_t ranks = json_integer_value(json_object_get(doc, "ranks"));
    json_int_t workers =
        json_integer_value(json_object_get(json_object_get(doc, "workers"), "count"));
    if (ranks < 1 || ranks > RANKMAP_RANKS_MAX || workers < 1 || workers > SPEC_WORKERS_MAX)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EPROTO,
                          "ConfigMap %s-status: expected 1 to %u ranks and 1 to %d workers in its "
                          "status.json, got %" JSON_INTEGER_FORMAT " and %" JSON_INTEGER_FORMAT,
                          job, RANKMAP_RANKS_MAX, SPEC_WORKERS_MAX, ranks, workers);
    *ret_ranks = (uint32_t)ranks;
    *ret_workers = (uint32_t)workers;
    return 0;
}

/* The ranks and workers of each role. A status without roles, or with roles that do not add up to
 * the job's numbers, is one part. */
static size_t read_parts(const json_t *doc, uint32_t ranks, uint32_t workers,
                         struct rank_part parts[SPEC_ROLES_MAX])
{
    const json_t *roles = json_object_get(doc, "roles");
    json_int_t ranks_left = ranks, workers_left = workers;
    size_t count = 0;
    for (; count < json_array_size(roles) && count < SPEC_ROLES_MAX; count++) {
        const json_t *role = json_array_get(roles, count);
        json_int_t own_ranks = json_integer_value(json_object_get(role, "ranks"));
        json_int_t own_workers = json_integer_value(json_object_get(role, "workers"));
        if (own_ranks < 1 || own_ranks > ranks_left || own_workers < 1 ||
            own_workers > workers_left)
            break;
        ranks_left -= own_ranks;
        workers_left -= own_workers;
        parts[count] = (struct rank_part){(uint32_t)own_ranks, (uint32_t)own_workers};
    }
    if (count > 0 && ranks_left == 0 && workers_left == 0)
        return count;
    parts[0] = (struct rank_part){ranks, workers};
    return 1;
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
    struct rankmap ranks;
    int rc = job_map_get(cluster, exec->job, cluster->namespace, &map, err);
    if (rc < 0)
        return rc;
    if (job_map_status(map, &doc, err) < 0 || !json_integer_value(json_object_get(doc, "ranks")))
        return error_kind(err, DRARUN_ERR_USAGE, EAGAIN, "the ranks of %s do not run yet",
                          exec->job);
    if (status_doc_exit(doc) >= 0)
        return has_ended(exec->job, doc, err);
    uint32_t count = 0, workers = 0;
    rc = read_sizes(doc, exec->job, &count, &workers, err);
    if (rc < 0)
        return rc;
    if (exec->rank >= count)
        return error_kind(err, DRARUN_ERR_USAGE, ENOENT, "%s has ranks 0 to %" PRIu32, exec->job,
                          count - 1);
    cleanup_free uint32_t *order = read_order(doc, workers);
    struct rank_part parts[SPEC_ROLES_MAX];
    size_t part_count = read_parts(doc, count, workers, parts);
    rc = rankmap_build_parts(parts, part_count, order, &ranks, err);
    if (rc < 0)
        return rc;
    uint32_t worker = rankmap_worker(&ranks, exec->rank);
    rankmap_done(&ranks);
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
