/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmi1/host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "worker/pmi1/pmi1.h"

struct pmi1_rank {
    struct pmi1_host *host;
    uint32_t rank; /* in the job */
    int fd;        /* -1: not open */
    struct event *event;
    struct pmi1_conn *conn; /* made when the rank first speaks */
    bool told_connected, told_finalized;
    struct buf held; /* the answer to its init, while it waits for a debugger */
};

struct pmi1_host {
    struct event_base *base;
    const struct agent_job *job;
    const struct rank_group *group;
    struct coll *coll;
    struct topology *topology;
    const char *session_dir;
    struct pmi1_host_owner owner;
    struct pmi1_kvs *kvs;
    struct pmi1_rank *ranks; /* by index among the group's ranks here */
    uint32_t in_barrier;
    uint32_t again; /* that have begun again, and what they had put is still there */
    uint64_t barriers;
    bool released; /* nobody waits for a debugger any more */
};

/* Every agent puts these itself: nothing to send. */
static int put_first(struct pmi1_host *host)
{
    const struct rank_group *group = host->group;
    struct buf mapping = BUF_INIT, own = BUF_INIT;
    rankmap_pmi1_mapping(&group->map, &mapping);
    int rc = mapping.data && !mapping.failed ? 0 : -ENOMEM;
    /* with too many blocks for one value MPICH finds its nodes by host name */
    if (rc == 0 && mapping.len < PMI1_VALUE_SAFE)
        rc = pmi1_kvs_put(host->kvs, "PMI_process_mapping", mapping.data);
    buf_done(&mapping);
    for (size_t i = 0; rc == 0 && group->wire && i < group->wire->n_preput; i++) {
        char *entry = group->wire->preput[i];
        char *equals = strchr(entry, '=');
        if (!equals)
            continue;
        *equals = '\0';
        rc = pmi1_kvs_put(host->kvs, entry, equals + 1);
        *equals = '=';
    }
    pmi1_kvs_take_new(host->kvs, &own);
    buf_done(&own);
    pmi1_kvs_begin(host->kvs); /* the ranks' */
    return rc;
}

struct pmi1_host *pmi1_host_new(struct event_base *base, const struct agent_job *job,
                                const struct rank_group *group, struct coll *coll,
                                struct topology *topology, const char *session_dir,
                                const struct pmi1_host_owner *owner, struct drarun_error *err)
{
    struct pmi1_host *host = calloc(1, sizeof *host);
    if (host)
        *host = (struct pmi1_host){.base = base,
                                   .job = job,
                                   .group = group,
                                   .coll = coll,
                                   .topology = topology,
                                   .session_dir = session_dir,
                                   .owner = *owner};
    if (host) {
        host->kvs = pmi1_kvs_new(group->kvs);
        host->ranks = calloc(group->local_count + 1, sizeof *host->ranks);
    }
    for (uint32_t i = 0; host && host->ranks && i < group->local_count; i++)
        host->ranks[i] =
            (struct pmi1_rank){.host = host, .rank = job->local[group->local_first + i], .fd = -1};
    int rc = host && host->kvs && host->ranks ? put_first(host) : -ENOMEM;
    if (rc < 0) {
        error_set(err, -rc, "PMI-1 server: %s", strerror(-rc));
        pmi1_host_free(host);
        return NULL;
    }
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
    for (uint32_t i = 0; host->ranks && i < host->group->local_count; i++) {
        if (host->ranks[i].fd >= 0)
            close_rank(&host->ranks[i]);
        pmi1_conn_free(host->ranks[i].conn);
        buf_done(&host->ranks[i].held);
    }
    pmi1_kvs_free(host->kvs);
    free(host->ranks);
    free(host);
}

/* MPICH's ranks do not notice that their connection was closed. */
static void fail_without_memory(struct pmi1_rank *rank)
{
    struct drarun_error err = {0};
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ENOMEM,
               "PMI-1: out of memory for an answer to rank %u", rank->rank);
    close_rank(rank);
    rank->host->owner.failed(rank->host->owner.arg, &err);
}

/* A rank waits for each answer, so a socket buffer always has room for one. */
static void answer(struct pmi1_rank *rank, const struct buf *out)
{
    if (out->failed && rank->fd >= 0)
        fail_without_memory(rank);
    if (out->len == 0 || rank->fd < 0)
        return;
    ssize_t n = send(rank->fd, out->data, out->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n != (ssize_t)out->len)
        close_rank(rank);
}

static void fail_barrier(struct pmi1_host *host, struct drarun_error *err)
{
    err->kind = DRARUN_ERR_INFRASTRUCTURE;
    error_prefix(err, "PMI-1 barrier");
    log_error("%s", err->text);
    host->owner.failed(host->owner.arg, err);
}

/* All ranks are in the barrier, and those here have begun again: nobody reads what was put before.
 */
static void forget_rounds(struct pmi1_host *host)
{
    if (host->again < host->group->local_count)
        return;
    host->again = 0;
    pmi1_kvs_forget(host->kvs);
    for (uint32_t i = 0; i < host->group->local_count; i++)
        pmi1_conn_forget(host->ranks[i].conn);
}

static void barrier_done(void *arg, int status, const void *data, size_t length, uint64_t context)
{
    struct pmi1_host *host = arg;
    struct drarun_error err = {0};
    (void)context;
    int rc = status == 0 ? pmi1_kvs_merge(host->kvs, data, length, &err)
                         : error_set(&err, -status, "%s", strerror(-status));
    if (rc < 0)
        fail_barrier(host, &err);
    forget_rounds(host);
    host->in_barrier = 0;
    for (uint32_t i = 0; i < host->group->local_count; i++) {
        struct pmi1_rank *rank = &host->ranks[i];
        struct buf out = BUF_INIT;
        if (!rank->conn || !pmi1_conn_in_barrier(rank->conn))
            continue;
        pmi1_barrier_out(rank->conn, &out);
        answer(rank, &out);
        buf_done(&out);
    }
}

bool pmi1_host_in_barrier(const struct pmi1_host *host)
{
    return host->in_barrier > 0 && host->in_barrier >= host->group->local_count;
}

static void on_barrier(void *arg, uint32_t rank)
{
    struct pmi1_host *host = arg;
    struct drarun_error err = {0};
    struct buf puts = BUF_INIT;
    const struct coll_range all = {host->group->first, host->group->map.ranks};
    char key[48];
    (void)rank;
    if (++host->in_barrier < host->group->local_count)
        return;
    pmi1_kvs_take_new(host->kvs, &puts);
    snprintf(key, sizeof key, "pmi1/%u#%llu", host->group->index,
             (unsigned long long)++host->barriers);
    int rc = puts.failed ? error_set(&err, ENOMEM, "out of memory")
                         : coll_enter(host->coll, key, &all, 1, 0, puts.data, puts.len,
                                      barrier_done, host, &err);
    if (rc < 0)
        fail_barrier(host, &err);
    buf_done(&puts);
}

/* From here to the connections' numbers: those in the group. */

static void on_abort(void *arg, uint32_t rank, int status, const char *text)
{
    struct pmi1_host *host = arg;
    host->owner.abort(host->owner.arg, host->group->first + rank, status, text);
}

static void on_spawn(void *arg, uint32_t rank, struct spawn_request *request)
{
    struct pmi1_host *host = arg;
    request->rank = host->group->first + rank;
    host->owner.spawn(host->owner.arg, request);
}

/* MPICH asks for the machine's topology as a file before it reads it itself. */
static const char *on_lookup(void *arg, const char *key)
{
    struct pmi1_host *host = arg;
    if (strcmp(key, "PMI_hwloc_xmlfile") != 0)
        return NULL;
    return topology_file(host->topology, host->session_dir);
}

static void on_name(void *arg, uint32_t rank, enum pmi1_name what, const char *service,
                    const char *port)
{
    struct pmi1_host *host = arg;
    host->owner.name(host->owner.arg, host->group->first + rank, what, service, port);
}

static void on_full(void *arg, uint32_t of_group)
{
    const struct pmi1_host *host = arg;
    uint32_t rank = host->group->first + of_group;
    const struct log_about about = {.of_rank = true, .rank = rank};
    log_about(&about, LOG_QUIET,
              "rank %u: PMI-1: it has put more than %u keys or %u bytes: the rest is rejected",
              rank, PMI1_RANK_KEYS_MAX, PMI1_RANK_BYTES_MAX);
}

static void on_again(void *arg, uint32_t rank)
{
    struct pmi1_host *host = arg;
    (void)rank;
    if (host->again++ == 0)
        pmi1_kvs_begin(host->kvs);
}

static struct pmi1_conn *new_conn(struct pmi1_rank *rank)
{
    struct pmi1_host *host = rank->host;
    struct pmi1_owner owner = {.barrier = on_barrier,
                               .abort = on_abort,
                               .lookup = on_lookup,
                               .spawn = on_spawn,
                               .name = on_name,
                               .full = on_full,
                               .again = on_again,
                               .arg = host};
    uint32_t number = rank->rank - host->group->first;
    struct rank_place place = rankmap_place(&host->group->map, number);
    return pmi1_conn_new(number, agent_job_universe(host->job), place.app, host->kvs, &owner);
}

static void tell(struct pmi1_rank *rank)
{
    struct pmi1_host_owner *owner = &rank->host->owner;
    if (rank->told_finalized && !pmi1_conn_finalized(rank->conn)) /* it has begun again */
        rank->told_connected = rank->told_finalized = false;
    if (!rank->told_connected && pmi1_conn_initialized(rank->conn)) {
        rank->told_connected = true;
        owner->connected(owner->arg, rank->rank);
    }
    if (!rank->told_finalized && pmi1_conn_finalized(rank->conn)) {
        rank->told_finalized = true;
        owner->finalized(owner->arg, rank->rank);
    }
}

/* It has just sent its first init, and may not have its answer yet. */
static bool must_wait(const struct pmi1_rank *rank)
{
    const struct pmi1_host *host = rank->host;
    return host->group->stop_at == DRARUN__WIRE__STOP_AT__STOP_AT_INIT && !host->released &&
           !rank->told_connected && pmi1_conn_initialized(rank->conn);
}

void pmi1_host_release(struct pmi1_host *host)
{
    host->released = true;
    for (uint32_t i = 0; i < host->group->local_count; i++) {
        answer(&host->ranks[i], &host->ranks[i].held);
        buf_done(&host->ranks[i].held);
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
    bool waits = rc == 0 && must_wait(rank);
    if (waits) {
        rank->held = out;
    } else {
        answer(rank, &out);
        buf_done(&out);
    }
    if (rc == -ENOMEM) {
        buf_done(&out);
        if (rank->fd >= 0)
            fail_without_memory(rank);
        return false;
    }
    if (rc < 0) {
        const struct log_about about = {.of_rank = true, .rank = rank->rank};
        log_about(&about, LOG_QUIET, "rank %u: PMI-1: %s", rank->rank, err.text);
        close_rank(rank);
        return false;
    }
    tell(rank);
    if (waits)
        rank->host->owner.waits(rank->host->owner.arg, rank->rank);
    return rank->fd >= 0;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    read_some(arg);
}

/* NULL: it is not here. */
static struct pmi1_rank *find_rank(const struct pmi1_host *host, uint32_t rank)
{
    int64_t index = agent_job_local_index(host->job, rank) - host->group->local_first;
    return index >= 0 && index < host->group->local_count ? &host->ranks[index] : NULL;
}

void pmi1_host_drain(struct pmi1_host *host, uint32_t number)
{
    struct pmi1_rank *rank = find_rank(host, number);
    while (rank && rank->fd >= 0 && read_some(rank))
        ;
}

void pmi1_host_spawned(struct pmi1_host *host, uint32_t number, bool good)
{
    struct pmi1_rank *rank = find_rank(host, number);
    struct buf out = BUF_INIT;
    if (!rank || !rank->conn)
        return;
    pmi1_spawned(rank->conn, good, &out);
    answer(rank, &out);
    buf_done(&out);
}

void pmi1_host_named(struct pmi1_host *host, uint32_t number, bool good, const char *port)
{
    struct pmi1_rank *rank = find_rank(host, number);
    struct buf out = BUF_INIT;
    if (!rank || !rank->conn)
        return;
    pmi1_named(rank->conn, good, port, &out);
    answer(rank, &out);
    buf_done(&out);
}

static void set_env(const struct pmi1_host *host, uint32_t rank, int fd, struct strlist *env)
{
    env_setf(env, "PMI_FD", "%d", fd);
    env_setf(env, "PMI_RANK", "%u", rank - host->group->first);
    env_setf(env, "PMI_SIZE", "%u", host->group->map.ranks);
    env_set(env, "PMI_SPAWNED", host->group->spawned ? "1" : "0");
}

int pmi1_host_open(struct pmi1_host *host, uint32_t rank, struct strlist *env, int *ret_fd,
                   struct drarun_error *err)
{
    int pair[2];
    struct pmi1_rank *slot = find_rank(host, rank);
    if (!slot)
        return error_set(err, EINVAL, "PMI-1: rank %u is not here", rank);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set(err, errno, "PMI-1: socket pair for rank %u: %s%s", rank, strerror(errno),
                         errno == EMFILE ? " (raise ulimit -n)" : "");
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
