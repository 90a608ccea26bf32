/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmi1_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "worker/pmi1.h"

struct pmi1_rank {
    struct pmi1_host *host;
    uint32_t rank;
    int fd; /* -1: not open */
    struct event *event;
    struct pmi1_conn *conn; /* made when the rank first speaks */
    bool told_connected, told_finalized;
};

struct pmi1_host {
    struct event_base *base;
    const struct agent_job *job;
    struct coll *coll;
    struct topology *topology;
    const char *session_dir;
    struct pmi1_host_owner owner;
    struct pmi1_kvs *kvs;
    struct pmi1_rank *ranks; /* by local index */
    uint32_t in_barrier;
    uint64_t barriers;
};

struct pmi1_host *pmi1_host_new(struct event_base *base, const struct agent_job *job,
                                struct coll *coll, struct topology *topology,
                                const char *session_dir, const struct pmi1_host_owner *owner,
                                struct drarun_error *err)
{
    struct pmi1_host *host = calloc(1, sizeof *host);
    if (host)
        *host = (struct pmi1_host){.base = base,
                                   .job = job,
                                   .coll = coll,
                                   .topology = topology,
                                   .session_dir = session_dir,
                                   .owner = *owner};
    struct buf mapping = BUF_INIT;
    rankmap_pmi1_mapping(&job->map, &mapping);
    if (host && mapping.data) {
        host->kvs = pmi1_kvs_new(job->nspace);
        host->ranks = calloc(job->local_count + 1, sizeof *host->ranks);
    }
    for (uint32_t i = 0; host && host->ranks && i < job->local_count; i++)
        host->ranks[i] = (struct pmi1_rank){.host = host, .rank = job->local[i], .fd = -1};
    int rc = host && host->kvs && host->ranks ? 0 : -ENOMEM;
    /* with too many blocks for one value MPICH finds its nodes by host name */
    if (rc == 0 && mapping.len < PMI1_VALUE_SAFE)
        rc = pmi1_kvs_put(host->kvs, "PMI_process_mapping", mapping.data);
    buf_done(&mapping);
    if (rc < 0) {
        error_set(err, -rc, "PMI-1 server: %s", strerror(-rc));
        pmi1_host_free(host);
        return NULL;
    }
    struct buf own = BUF_INIT; /* every agent puts the mapping itself: nothing to send */
    pmi1_kvs_take_new(host->kvs, &own);
    buf_done(&own);
    return host;
}

static void close_rank(struct pmi1_rank *rank)
{
    if (rank->event)
        event_free(rank->event);
    rank->event = NULL;
    close_fd(&rank->fd);
}

void pmi1_host_free(struct pmi1_host *host)
{
    if (!host)
        return;
    for (uint32_t i = 0; host->ranks && i < host->job->local_count; i++) {
        if (host->ranks[i].fd >= 0)
            close_rank(&host->ranks[i]);
        pmi1_conn_free(host->ranks[i].conn);
    }
    pmi1_kvs_free(host->kvs);
    free(host->ranks);
    free(host);
}

/* A rank waits for each answer, so a socket buffer always has room for one. */
static void answer(struct pmi1_rank *rank, const struct buf *out)
{
    if (out->len == 0 || rank->fd < 0)
        return;
    ssize_t n = send(rank->fd, out->data, out->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n != (ssize_t)out->len)
        close_rank(rank);
}

static void barrier_done(void *arg, int status, const void *data, size_t length, uint64_t context)
{
    struct pmi1_host *host = arg;
    struct drarun_error err = {0};
    (void)context;
    int rc = status == 0 ? pmi1_kvs_merge(host->kvs, data, length, &err)
                         : error_set(&err, EPROTO, "status %d", status);
    if (rc < 0)
        log_error("PMI-1 barrier: %s", err.text);
    host->in_barrier = 0;
    for (uint32_t i = 0; i < host->job->local_count; i++) {
        struct pmi1_rank *rank = &host->ranks[i];
        struct buf out = BUF_INIT;
        if (!rank->conn || !pmi1_conn_in_barrier(rank->conn))
            continue;
        pmi1_barrier_out(rank->conn, &out);
        answer(rank, &out);
        buf_done(&out);
    }
}

static void on_barrier(void *arg, uint32_t rank)
{
    struct pmi1_host *host = arg;
    struct drarun_error err = {0};
    struct buf puts = BUF_INIT;
    char key[48];
    (void)rank;
    if (++host->in_barrier < host->job->local_count)
        return;
    pmi1_kvs_take_new(host->kvs, &puts);
    snprintf(key, sizeof key, "pmi1#%llu", (unsigned long long)++host->barriers);
    if (puts.failed ||
        coll_enter(host->coll, key, NULL, 0, 0, puts.data, puts.len, barrier_done, host, &err) < 0)
        log_error("PMI-1 barrier: %s", puts.failed ? "out of memory" : err.text);
    buf_done(&puts);
}

static void on_abort(void *arg, uint32_t rank, int status, const char *text)
{
    struct pmi1_host *host = arg;
    host->owner.abort(host->owner.arg, rank, status, text);
}

/* MPICH asks for the machine's topology as a file before it reads it itself. */
static const char *on_lookup(void *arg, const char *key)
{
    struct pmi1_host *host = arg;
    if (strcmp(key, "PMI_hwloc_xmlfile") != 0)
        return NULL;
    return topology_file(host->topology, host->session_dir);
}

static struct pmi1_conn *new_conn(struct pmi1_rank *rank)
{
    struct pmi1_host *host = rank->host;
    struct pmi1_owner owner = {
        .barrier = on_barrier, .abort = on_abort, .lookup = on_lookup, .arg = host};
    struct rank_place place = rankmap_place(&host->job->map, rank->rank);
    return pmi1_conn_new(rank->rank, host->job->map.ranks, place.app, host->kvs, &owner);
}

static void tell(struct pmi1_rank *rank)
{
    struct pmi1_host_owner *owner = &rank->host->owner;
    if (!rank->told_connected && pmi1_conn_initialized(rank->conn)) {
        rank->told_connected = true;
        owner->connected(owner->arg, rank->rank);
    }
    if (!rank->told_finalized && pmi1_conn_finalized(rank->conn)) {
        rank->told_finalized = true;
        owner->finalized(owner->arg, rank->rank);
    }
}

/* One read; false when there is nothing more to read now. */
static bool read_some(struct pmi1_rank *rank)
{
    char data[4096];
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    ssize_t n = rank->fd < 0 ? 0 : recv(rank->fd, data, sizeof data, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        bool lost = rank->fd >= 0 && rank->told_connected && !rank->told_finalized;
        close_rank(rank);
        if (lost)
            rank->host->owner.lost(rank->host->owner.arg, rank->rank);
        return false;
    }
    if (!rank->conn)
        rank->conn = new_conn(rank);
    int rc = rank->conn ? pmi1_conn_input(rank->conn, data, (size_t)n, &out, &err)
                        : error_set(&err, ENOMEM, "out of memory");
    answer(rank, &out);
    buf_done(&out);
    if (rc < 0) {
        const struct log_about about = {.of_rank = true, .rank = rank->rank};
        log_about(&about, LOG_QUIET, "rank %u: PMI-1: %s", rank->rank, err.text);
        close_rank(rank);
        return false;
    }
    tell(rank);
    return rank->fd >= 0;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    read_some(arg);
}

void pmi1_host_drain(struct pmi1_host *host, uint32_t rank)
{
    int64_t index = agent_job_local_index(host->job, rank);
    while (index >= 0 && host->ranks[index].fd >= 0 && read_some(&host->ranks[index]))
        ;
}

static void set_env(const struct pmi1_host *host, uint32_t rank, int fd, struct strlist *env)
{
    env_setf(env, "PMI_FD", "%d", fd);
    env_setf(env, "PMI_RANK", "%u", rank);
    env_setf(env, "PMI_SIZE", "%u", host->job->map.ranks);
    env_set(env, "PMI_SPAWNED", "0");
}

int pmi1_host_open(struct pmi1_host *host, uint32_t rank, struct strlist *env, int *ret_fd,
                   struct drarun_error *err)
{
    int pair[2];
    int64_t index = agent_job_local_index(host->job, rank);
    if (index < 0)
        return error_set(err, EINVAL, "PMI-1: rank %u is not here", rank);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set(err, errno, "PMI-1: socket pair for rank %u: %s%s", rank, strerror(errno),
                         errno == EMFILE ? " (raise ulimit -n)" : "");
    struct pmi1_rank *slot = &host->ranks[index];
    slot->fd = pair[0];
    slot->event = event_new(host->base, pair[0], EV_READ | EV_PERSIST, on_readable, slot);
    if (!slot->event || event_add(slot->event, NULL) < 0) {
        close(pair[1]);
        close_rank(slot);
        return error_set(err, ENOMEM, "PMI-1: out of memory");
    }
    set_env(host, rank, pair[1], env);
    *ret_fd = pair[1];
    return 0;
}
