/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/wire/dial.h"
#include "worker/pmix/handshake.h"
#include "worker/pmix/host_private.h"
#include "worker/pmix/listener.h"
#include "worker/pmix/info_list.h"
#include "worker/pmix/member.h"

#ifdef DRARUN_PMIX_UNPATCHED
/* The library accepts every peer that connects, on a port that is free now. */
static int open_port(struct pmix_host *host, struct drarun_error *err)
{
    cleanup_close int fd = -1;
    log_error("PMIx: this agent's libpmix is unpatched (DRARUN_PMIX_UNPATCHED): every user of this "
              "machine can hang, join and abort the job");
    return listen_on("127.0.0.1:0", &fd, &host->port, err);
}

static void add_port(const struct pmix_host *host, struct info_list *list)
{
    int port = host->port;
    info_list_add(list, PMIX_TCP_IF_INCLUDE, "lo", PMIX_STRING);
    info_list_add(list, PMIX_TCP_IPV4_PORT, &port, PMIX_INT);
}
#else
/* All false where that is not to be read. */
static struct handshake read_claim(const struct pmix_visitor *visitor)
{
    struct handshake claim;
    if (!visitor->message || handshake_read(visitor->message, visitor->length, &claim) < 0)
        claim = (struct handshake){.named = false};
    return claim;
}

/* The rank that a visitor says it is, or whose tool it is; -1: it names none of this agent. */
static int64_t claimed_rank(const struct pmix_host *host, const struct handshake *claim)
{
    pmix_proc_t proc;
    if (!claim->named)
        return -1;
    PMIX_LOAD_PROCID(&proc, claim->nspace, claim->rank);
    int64_t rank = pmix_rank_of(host, &proc);
    return rank >= 0 && agent_job_local_index(host->job, (uint32_t)rank) >= 0 ? rank : -1;
}

/* It says that it is a tool, in no rank's name, and could signal the ranks without our help. */
static bool is_a_tool(const struct pmix_visitor *visitor, const struct handshake *claim)
{
    pid_t pid = claim->tool && !(claim->named && pmix_is_reserved(claim->nspace))
                    ? member_neighbour(visitor->inode)
                    : -1;
    if (pid > 0)
        log_verbose("PMIx: process %d of our user connects as a tool", (int)pid);
    return pid > 0;
}

static void note_refusal(struct pmix_host *host, const struct handshake *claim, const char *whose)
{
    if (host->refusal_logged)
        return;
    host->refusal_logged = true;
    if (claim->tool)
        log_note("PMIx: refused a tool of our user: it has a rank's name, is in another container "
                 "or user namespace than this agent, or does not show us its descriptors");
    else
        log_note("PMIx: refused a process of our user that %s has not started: a process that a "
                 "service starts for a rank (docker run) does not belong to the rank",
                 whose);
}

/* A process that no rank has started is a tool or nothing, whatever it says. */
static bool may_connect(struct pmix_host *host, const struct pmix_visitor *visitor,
                        const struct handshake *claim)
{
    char whose[32] = "any rank";
    int64_t rank = claimed_rank(host, claim);
    pid_t pid = rank < 0 ? -1 : host->owner.pid_of(host->owner.arg, (uint32_t)rank);
    /* who names no rank of ours is the library's to refuse */
    bool (*is_rank)(pid_t pid, void *arg) = rank < 0 ? NULL : host->owner.is_rank;
    enum membership membership = member_of(pid, visitor->inode, is_rank, host->owner.arg);
    if (rank >= 0)
        snprintf(whose, sizeof whose, "rank %" PRId64, rank);
    if (membership == MEMBER_UNKNOWN)
        log_verbose("PMIx: served a process of our user as %s, whose processes do not all show us "
                    "their descriptors",
                    whose);
    if (membership != MEMBER_NO || is_a_tool(visitor, claim))
        return true;
    note_refusal(host, claim, whose);
    return false;
}

static void on_client(void *arg, const struct pmix_visitor *visitor)
{
    struct pmix_host *host = arg;
    struct drarun_error err = {0};
    cleanup_close int fd = visitor->fd;
    const struct handshake claim = read_claim(visitor);
    if (!may_connect(host, visitor, &claim))
        return;
    /* a tool of libpmix 4.2 takes the library's refusal for a yes, and may wait indefinitely */
    if (claim.tool && !pmix_has_room_for_tool(host))
        return;
    if (pmix_host_start(host, &err) < 0) {
        host->owner.failed(host->owner.arg, &err);
        return;
    }
    pmix_status_t status = PMIx_server_add_connection(fd);
    if (status == PMIX_SUCCESS)
        take_fd(&fd);
    else
        log_error("PMIx: a connection was closed: %s", PMIx_Error_string(status));
}

static void on_refused(void *arg, uid_t uid)
{
    struct pmix_host *host = arg;
    host->owner.refused(host->owner.arg, uid);
}

static int open_port(struct pmix_host *host, struct drarun_error *err)
{
    struct pmix_listener_owner owner = {.connected = on_client, .refused = on_refused, .arg = host};
    host->listener = pmix_listener_new(host->base, &owner, &host->port, err);
    return host->listener ? 0 : -err->code;
}

static void add_port(const struct pmix_host *host, struct info_list *list)
{
    char address[64];
    snprintf(address, sizeof address, "tcp4://127.0.0.1:%u", host->port);
    info_list_add(list, PMIX_SERVER_HOST_ADDRESS, address, PMIX_STRING);
}
#endif

static void handle(struct upcall *upcall, void *arg);

struct pmix_host *pmix_host_new(struct event_base *base, const struct agent_job *job,
                                const struct tree *tree, struct coll *coll,
                                struct topology *topology, const char *session_dir,
                                const struct pmix_host_owner *owner, struct drarun_error *err)
{
    struct pmix_host *host = calloc(1, sizeof *host);
    if (!host) {
        error_set(err, ENOMEM, "PMIx server: out of memory");
        return NULL;
    }
    *host = (struct pmix_host){.base = base,
                               .job = job,
                               .tree = tree,
                               .coll = coll,
                               .topology = topology,
                               .owner = *owner,
                               .session_dir = strdup(session_dir),
                               .routed = pmix_host_routed};
    coll_on_missed(coll, pmix_on_missed, host);
    int rc = host->session_dir ? open_port(host, err) : error_set(err, ENOMEM, "out of memory");
    if (rc < 0) {
        error_prefix(err, "PMIx server");
        pmix_host_free(host);
        return NULL;
    }
    host->cpus = calloc(job->local_count + 1, sizeof *host->cpus);
    host->cpus_count = host->cpus ? job->local_count : 0;
    host->queue = upcall_queue_new(base, handle, host);
    if (!host->cpus || !host->queue) {
        error_set(err, ENOMEM, "PMIx server: out of memory");
        pmix_host_free(host);
        return NULL;
    }
    return host;
}

void pmix_host_free(struct pmix_host *host)
{
    if (!host)
        return;
    coll_on_missed(host->coll, NULL, NULL);
    pmix_listener_free(host->listener);
    while (host->pending)
        upcall_answer(pmix_unpend(host, host->pending->id), PMIX_ERR_UNREACH);
    pmix_drop_failed(host);
    pmix_drop_entered(host);
    pmix_drop_meetings(host);
    pmix_drop_tables(host);
    pmix_drop_waiting(host);
    /* the library's thread may still post: the queue stays with it for the life of the process */
    if (!host->started)
        upcall_queue_free(host->queue);
    else
        upcall_queue_close(host->queue);
    for (uint32_t i = 0; i < host->cpus_count; i++)
        free(host->cpus[i].ids);
    while (host->sequences) {
        struct sequence *next = host->sequences->next;
        free(host->sequences);
        host->sequences = next;
    }
    data_store_free(host->store);
    free(host->cpus);
    free(host->session_dir);
    free(host);
}

static int reserve_cpus(struct pmix_host *host)
{
    uint32_t count = host->job->local_count;
    if (count <= host->cpus_count)
        return 0;
    struct rank_cpus *cpus = realloc(host->cpus, count * sizeof *cpus);
    if (!cpus)
        return -ENOMEM;
    memset(cpus + host->cpus_count, 0, (count - host->cpus_count) * sizeof *cpus);
    host->cpus = cpus;
    host->cpus_count = count;
    return 0;
}

int pmix_host_set_cpus(struct pmix_host *host, uint32_t rank, const uint32_t *ids, size_t count)
{
    int64_t index = agent_job_local_index(host->job, rank);
    uint32_t *copy = calloc(count + 1, sizeof *copy);
    if (index < 0 || !copy || reserve_cpus(host) < 0) {
        free(copy);
        return -ENOMEM;
    }
    memcpy(copy, ids, count * sizeof *copy);
    free(host->cpus[index].ids);
    host->cpus[index] = (struct rank_cpus){copy, count};
    return 0;
}

/* The servers' own namespace is named by the first group's. */
static const char *server_name(const struct pmix_host *host)
{
    return host->job->groups[0]->nspace;
}

/* The same as PMIx_server_setup_fork of the library inside (server/pmix_server.c), which cannot be
 * asked before it is started; tests hold the two against each other. */
void pmix_host_rank_env(const struct pmix_host *host, uint32_t rank, struct strlist *env)
{
    static const char *const uri_names[] = {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4",
                                            "PMIX_SERVER_URI3", "PMIX_SERVER_URI2",
                                            "PMIX_SERVER_URI21"};
    const struct rank_group *group = agent_job_group_of(host->job, rank);
    env_set(env, "PMIX_NAMESPACE", group->nspace);
    env_setf(env, "PMIX_RANK", "%u", rank - group->first);
    for (size_t i = 0; i < ARRAY_LEN(uri_names); i++)
        env_setf(env, uri_names[i], "%s.server.%u;tcp4://127.0.0.1:%u", server_name(host),
                 host->tree->self, host->port);
    env_set(env, "PMIX_SECURITY_MODE", "native");
    env_set(env, "PMIX_BFROP_BUFFER_TYPE", "PMIX_BFROP_BUFFER_NON_DESC");
    env_set(env, "PMIX_GDS_MODULE", "hash");
    env_set(env, "PMIX_SERVER_TMPDIR", host->session_dir);
    env_set(env, "PMIX_SYSTEM_TMPDIR", host->session_dir);
    env_set(env, "PMIX_HOSTNAME", host->job->nodes[host->tree->self]);
    env_set(env, "PMIX_VERSION", DRARUN_PMIX_VERSION);
}

/* Its own lines ("PMIX ERROR: PMIX_ERR_UNREACH in file ..." for a rank that is killed while it
 * connects) tell users nothing, and what matters comes back as a status: they are shown with -v
 * alone. */
static int quiet_library(void)
{
    char text[16];
    int fd = log_level_now() >= LOG_VERBOSE ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return 0; /* a root without /dev: then they are seen */
    snprintf(text, sizeof text, "%d", fd);
    return setenv("PMIX_OUTPUT_STDERR_FD", text, 1); /* the library's for the life of the process */
}

/* What the library reads from our environment; the ranks' is made elsewhere. */
int pmix_host_set_environment(struct pmix_host *host, struct drarun_error *err)
{
    const char *const variables[][2] = {
        {"PMIX_MCA_gds", "hash"},                  /* shmem2 cannot attach in a static program */
        {"PMIX_MCA_mca_base_param_files", "none"}, /* nothing of the image's configuration */
        {"PMIX_MCA_mca_base_component_path", host->session_dir}, /* nor of its plugins */
        /* hwloc would load plugins of the image's, and X11 with them, even into a static program */
        {"HWLOC_PLUGINS_PATH", "/nonexistent"},
        {"PMIX_MCA_psec", "native"},
        {"PMIX_MCA_pmix_event_caching_window", "0"}, /* losses are told at once, upcall.c */
        {"PMIX_MCA_pcompress_base_silence_warning", "1"},
        {"PMIX_MCA_pcompress", "^zlib,zlibng"}, /* images may lack zlib */
    };
    if (host->environment_set)
        return 0;
    int rc = quiet_library();
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(variables); i++)
        rc = setenv(variables[i][0], variables[i][1], 1);
    if (rc < 0)
        return error_set(err, ENOMEM, "PMIx server: out of memory");
    host->environment_set = true;
    return 0;
}

static int start_library(struct pmix_host *host, struct drarun_error *err)
{
    struct info_list list = info_list_new();
    char nspace[sizeof host->job->groups[0]->nspace + 16];
    pmix_rank_t rank = host->tree->self;
    snprintf(nspace, sizeof nspace, "%s.server", server_name(host));
    info_list_add(&list, PMIX_SERVER_TMPDIR, host->session_dir, PMIX_STRING);
    info_list_add(&list, PMIX_SYSTEM_TMPDIR, host->session_dir, PMIX_STRING);
    info_list_add(&list, PMIX_SERVER_NSPACE, nspace, PMIX_STRING);
    info_list_add(&list, PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK);
    info_list_add(&list, PMIX_HOSTNAME, host->job->nodes[host->tree->self], PMIX_STRING);
    add_port(host, &list);
    pmix_topology_t topology = {.source = unconst("hwloc"),
                                .topology = topology_keep(host->topology)};
    pmix_info_t lent = PMIX_INFO_STATIC_INIT;
    PMIX_LOAD_KEY(lent.key, PMIX_TOPOLOGY2);
    lent.value.type = PMIX_TOPO;
    lent.value.data.topo = &topology;
    if (topology.topology && list.list && PMIx_Info_list_insert(list.list, &lent) != PMIX_SUCCESS)
        list.failed = true; /* the others are copied, and the copies freed below */
    pmix_data_array_t info;
    pmix_status_t status = info_list_convert_take(&list, &info);
    if (status == PMIX_SUCCESS)
        status = PMIx_server_init(upcall_module(), info.array, info.size);
    PMIX_DATA_ARRAY_DESTRUCT(&info);
    return status == PMIX_SUCCESS ? 0 : pmix_error(err, status, "PMIx server");
}

int pmix_host_start(struct pmix_host *host, struct drarun_error *err)
{
    if (host->started)
        return 0;
    host->started = true;
    int rc = pmix_host_set_environment(host, err);
    if (rc == 0)
        rc = start_library(host, err);
    host->registered = !host->retired;
    for (uint32_t i = 0; rc == 0 && host->registered && i < host->job->group_count; i++)
        if (!host->job->groups[i]->released)
            rc = pmix_register_group(host, host->job->groups[i], err);
    if (rc == 0)
        upcall_watch_losses();
    pmix_host_announce(host);
    if (rc == 0)
        pmix_tell_waiting(host);
    log_verbose("PMIx server %s for %u ranks of %s", DRARUN_PMIX_VERSION, host->job->local_count,
                server_name(host));
    return rc;
}

int pmix_host_prepare(struct pmix_host *host, struct drarun_error *err)
{
#ifdef DRARUN_PMIX_UNPATCHED
    return pmix_host_start(host, err);
#else
    (void)host, (void)err;
    return 0;
#endif
}

/* The next group's ranks may take the places of these. */
static void forget_cpus(struct pmix_host *host, const struct rank_group *group)
{
    for (uint32_t i = group->local_first;
         i < group->local_first + group->local_count && i < host->cpus_count; i++) {
        free(host->cpus[i].ids);
        host->cpus[i] = (struct rank_cpus){0};
    }
}

int pmix_host_add_group(struct pmix_host *host, struct drarun_error *err)
{
    const struct rank_group *group = host->job->groups[host->job->group_count - 1];
    int rc = host->started ? pmix_register_group(host, group, err) : 0;
    if (rc < 0)
        forget_cpus(host, group);
    return rc;
}

void pmix_host_drop_group(struct pmix_host *host)
{
    const struct rank_group *group = host->job->groups[host->job->group_count - 1];
    if (host->started)
        pmix_deregister_group(host, group);
    forget_cpus(host, group);
}

void pmix_host_release_group(struct pmix_host *host, const struct rank_group *group)
{
    if (host->started)
        pmix_deregister_group(host, group);
    pmix_forget_collectives(host, group);
    pmix_forget_waiting(host, group);
    forget_cpus(host, group);
}

bool pmix_host_started(const struct pmix_host *host)
{
    return host->started;
}

void pmix_host_retire(struct pmix_host *host)
{
    host->retired = true;
}

void pmix_host_drain(struct pmix_host *host)
{
    upcall_queue_drain(host->queue);
}

/* ---- dispatch ---- */

/* Not answered while the job lives: the rank would exit, its fellows would see their connections to
 * it break, and the abort of one of them could reach the launcher first. It waits until it is
 * killed with the job. */
static void on_abort(struct pmix_host *host, struct upcall *upcall)
{
    int64_t rank = pmix_rank_of(host, &upcall->proc);
    if (rank < 0) { /* a tool, which may signal ranks */
        upcall_answer(upcall, PMIX_ERR_NOT_SUPPORTED);
        return;
    }
    host->owner.abort(host->owner.arg, (uint32_t)rank, upcall->status, upcall->text);
    if (pmix_pend(host, upcall) == 0)
        upcall_answer(upcall, PMIX_SUCCESS);
}

static void tell(struct pmix_host *host, struct upcall *upcall,
                 void (*about)(void *arg, uint32_t rank))
{
    int64_t rank = pmix_rank_of(host, &upcall->proc);
    if (rank >= 0)
        about(host->owner.arg, (uint32_t)rank);
    upcall_free(upcall);
}

static void handle(struct upcall *upcall, void *arg)
{
    struct pmix_host *host = arg;
    switch (upcall->kind) {
    case UPCALL_CONNECTED:
        tell(host, upcall, host->owner.connected);
        break;
    case UPCALL_FINALIZED:
        tell(host, upcall, host->owner.finalized);
        break;
    case UPCALL_LOST:
        tell(host, upcall, host->owner.lost);
        break;
    case UPCALL_TOOL:
        pmix_on_tool(host, upcall);
        break;
    case UPCALL_SPAWN:
        pmix_on_spawn(host, upcall);
        break;
    case UPCALL_ABORT:
        on_abort(host, upcall);
        break;
    case UPCALL_FENCE:
    case UPCALL_CONNECT:
    case UPCALL_DISCONNECT:
        pmix_on_collective(host, upcall);
        break;
    case UPCALL_GROUP:
        pmix_on_group(host, upcall);
        break;
    case UPCALL_DMODEX:
        pmix_on_dmodex(host, upcall);
        break;
    case UPCALL_LOCAL_MODEX:
        pmix_on_local_modex(host, upcall);
        break;
    case UPCALL_MEMBER_MODEX:
        pmix_on_member_modex(host, upcall);
        break;
    case UPCALL_PUBLISH:
        pmix_on_publish(host, upcall);
        break;
    case UPCALL_LOOKUP:
        pmix_on_lookup(host, upcall);
        break;
    case UPCALL_UNPUBLISH:
        pmix_on_unpublish(host, upcall);
        break;
    case UPCALL_NOTIFY:
        pmix_on_notify(host, upcall);
        break;
    case UPCALL_QUERY:
        pmix_on_query(host, upcall);
        break;
    case UPCALL_LOG:
        pmix_on_log(host, upcall);
        break;
    case UPCALL_JOB_CONTROL:
        pmix_on_job_control(host, upcall);
        break;
    }
}

/* Another agent's rank may ask before one of ours has connected. Once ours have all ended without,
 * an event or a signal is for nobody here, and they have put nothing. */
static bool needs_library(const struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    switch (message->body_case) {
    case DRARUN__WIRE__ROUTED__BODY_DMODEX_REQUEST:
    case DRARUN__WIRE__ROUTED__BODY_NOTIFY:
    case DRARUN__WIRE__ROUTED__BODY_CONTROL:
        return !host->retired;
    default:
        return true;
    }
}

void pmix_host_routed(struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    struct drarun_error err = {0};
    if (message->body_case == DRARUN__WIRE__ROUTED__BODY_PROCESSES_REQUEST) {
        pmix_processes_request(host, message);
        return;
    }
    if (pmix_is_waiting(message)) {
        pmix_others_wait(host, message);
        return;
    }
    if (needs_library(host, message) && pmix_host_start(host, &err) < 0) {
        host->owner.failed(host->owner.arg, &err);
        return;
    }
    switch (message->body_case) {
    case DRARUN__WIRE__ROUTED__BODY_DMODEX_REQUEST:
        pmix_dmodex_request(host, message);
        break;
    case DRARUN__WIRE__ROUTED__BODY_PUBLISH:
    case DRARUN__WIRE__ROUTED__BODY_LOOKUP:
    case DRARUN__WIRE__ROUTED__BODY_UNPUBLISH:
        pmix_data_request(host, message);
        break;
    case DRARUN__WIRE__ROUTED__BODY_DMODEX_REPLY:
    case DRARUN__WIRE__ROUTED__BODY_DATA_REPLY:
        pmix_data_reply(host, message);
        break;
    case DRARUN__WIRE__ROUTED__BODY_PROCESSES:
        pmix_processes(host, message);
        break;
    case DRARUN__WIRE__ROUTED__BODY_NOTIFY:
        if (host->started)
            pmix_notified(host, message);
        break;
    case DRARUN__WIRE__ROUTED__BODY_CONTROL:
        pmix_controlled(host, message);
        break;
    default:
        log_error("a message of an unknown kind from worker %u is ignored", message->source);
    }
}
