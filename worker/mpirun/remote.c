/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/mpirun/remote.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "jobs/ranks/rankenv.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/wire/acceptor.h"
#include "lib/wire/channel.h"
#include "lib/wire/copy.h"
#include "lib/wire/dial.h"

#define SOCKET_NAME "remote"
#define CLIENTS_MAX 4096u
#define EARLY_MAX (2 * CLIENTS_MAX) /* of each client a start, and that it was cancelled */

/* A drarun-rsh that waits for its program's end. */
struct client {
    LIST_ENTRY(client) entry;
    struct remote *remote;
    struct channel *channel;
    uint64_t id;
    uint32_t worker; /* that it asked */
    bool asked;      /* and its program has not ended */
    bool answered;   /* the end is on its way: it still acknowledges what came before */
};

/* What came for the server before this worker was told to start it: the launcher tells all workers
 * at once, and the program on worker 0 does not wait for the last of them. */
struct early {
    STAILQ_ENTRY(early) entry;
    Drarun__Wire__Routed *message;
};

struct remote {
    struct event_base *base;
    const struct agent_job *job;
    char *session_dir;
    remote_route_fn route;
    void *arg;
    struct acceptor *acceptor;
    uint64_t last_id;
    size_t client_count;
    LIST_HEAD(, client) clients;
    struct channel *server; /* NULL: this worker has none, or it has ended */
    bool begun;             /* the server has */
    bool over;              /* the program has ended: a server that begins now ends at once */
    STAILQ_HEAD(, early) early;
    size_t early_count;
};

/* ---- hosts ---- */

void remote_host_name(const Drarun__Wire__Launch *launch, uint32_t worker, char *text, size_t size)
{
    const Drarun__Wire__Worker *at = launch->workers[worker];
    uint16_t port = 0;
    /* several workers of one machine: names that no resolver knows, so that mpirun takes none but
     * its own for this machine */
    if (launch->same_host && worker > 0)
        snprintf(text, size, "drarun-w-%u", worker);
    else if (launch->same_host || !at->address[0] ||
             address_split(at->address, text, size, &port, NULL) < 0)
        snprintf(text, size, "%s", at->host);
}

int64_t remote_find_host(const Drarun__Wire__Launch *launch, const char *host)
{
    char name[256];
    const char *at = strchr(host, '@');
    host = at ? at + 1 : host;
    for (uint32_t w = 0; w < launch->n_workers; w++) {
        remote_host_name(launch, w, name, sizeof name);
        if (strcmp(name, host) == 0)
            return w;
    }
    for (uint32_t w = 0; w < launch->n_workers; w++)
        if (strcmp(launch->workers[w]->host, host) == 0)
            return w;
    return -1;
}

/* ---- clients ---- */

static void client_free(struct client *client)
{
    LIST_REMOVE(client, entry);
    client->remote->client_count--;
    channel_free(client->channel);
    free(client);
}

static void free_client(void *arg)
{
    client_free(arg);
}

static void send_to(struct channel *channel, Drarun__Wire__Routed *message)
{
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(ROUTED, routed, message);
    if (channel && channel_send(channel, &envelope) < 0)
        log_error("a message of a remote start was lost: out of memory");
}

static void refuse(struct client *client, const char *text)
{
    Drarun__Wire__RemoteExit body = DRARUN__WIRE__REMOTE_EXIT__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    body.code = 255; /* ssh's own */
    body.text = unconst(text);
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_EXIT;
    message.remote_exit = &body;
    send_to(client->channel, &message);
    client->asked = false;
    channel_on_drained(client->channel, free_client, client);
}

static void ask(struct client *client, Drarun__Wire__Routed *message)
{
    struct remote *remote = client->remote;
    char text[256];
    const char *host = message->remote_start->host;
    int64_t worker = remote_find_host(remote->job->wire, host);
    if (worker < 0) {
        snprintf(text, sizeof text,
                 "no worker of this job is called %.100s: use the names in $DRARUN_HOSTFILE", host);
        refuse(client, text);
        return;
    }
    if (worker == remote->job->worker) { /* the client itself is as near as anybody */
        send_to(client->channel, message);
        return;
    }
    client->worker = (uint32_t)worker;
    client->id = ++remote->last_id;
    client->asked = true;
    message->destination = client->worker;
    message->id = client->id;
    remote->route(remote->arg, message);
}

static void client_message(struct channel *channel, Drarun__Wire__Envelope *envelope, void *arg)
{
    struct client *client = arg;
    Drarun__Wire__Routed *message = envelope->routed;
    (void)channel;
    if (envelope->body_case != DRARUN__WIRE__ENVELOPE__BODY_ROUTED) {
        client_free(client);
        return;
    }
    bool fresh = !client->asked && !client->answered;
    if (message->body_case == DRARUN__WIRE__ROUTED__BODY_REMOTE_START && fresh) {
        ask(client, message);
    } else if (message->body_case == DRARUN__WIRE__ROUTED__BODY_REMOTE_ACK && client->asked) {
        message->destination = client->worker;
        message->id = client->id;
        client->remote->route(client->remote->arg, message);
    } else if (!client->answered) {
        client_free(client);
    }
}

/* mpirun has killed it, as it does with an ssh that takes too long. */
static void client_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct client *client = arg;
    Drarun__Wire__RemoteCancel body = DRARUN__WIRE__REMOTE_CANCEL__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    (void)channel, (void)err;
    message.destination = client->worker;
    message.id = client->id;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_CANCEL;
    message.remote_cancel = &body;
    if (client->asked)
        client->remote->route(client->remote->arg, &message);
    client_free(client);
}

static void on_accepted(int fd, void *arg)
{
    struct remote *remote = arg;
    struct client *client = calloc(1, sizeof *client);
    if (!client || remote->client_count >= CLIENTS_MAX) {
        free(client);
        close(fd);
        return;
    }
    client->remote = remote;
    LIST_INSERT_HEAD(&remote->clients, client, entry);
    remote->client_count++;
    client->channel = channel_new_take(remote->base, fd, client_message, client_closed, client);
    if (!client->channel)
        client_free(client);
}

/* ---- the server ---- */

static void server_message(struct channel *channel, Drarun__Wire__Envelope *envelope, void *arg)
{
    struct remote *remote = arg;
    (void)channel;
    if (envelope->body_case == DRARUN__WIRE__ENVELOPE__BODY_ROUTED)
        remote->route(remote->arg, envelope->routed);
}

static void server_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct remote *remote = arg;
    (void)channel, (void)err;
    channel_free(TAKE_PTR(remote->server));
}

/* False: there is no room for it. */
static bool hold(struct remote *remote, const Drarun__Wire__Routed *message)
{
    struct early *early = remote->early_count < EARLY_MAX ? malloc(sizeof *early) : NULL;
    if (early && !(early->message = wire_copy(&message->base)))
        free(TAKE_PTR(early));
    if (!early)
        return false;
    STAILQ_INSERT_TAIL(&remote->early, early, entry);
    remote->early_count++;
    return true;
}

/* to: NULL: they are dropped. */
static void release_early(struct remote *remote, struct channel *to)
{
    struct early *early;
    while ((early = STAILQ_FIRST(&remote->early))) {
        STAILQ_REMOVE_HEAD(&remote->early, entry);
        send_to(to, early->message);
        drarun__wire__routed__free_unpacked(early->message, NULL);
        free(early);
    }
    remote->early_count = 0;
}

int remote_server(struct remote *remote, char ***ret_argv, int *ret_fd, struct drarun_error *err)
{
    static char number[16];
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        return error_set(err, errno, "socketpair: %s", strerror(errno));
    cleanup_close int server = fds[1];
    char **argv = calloc(4, sizeof *argv);
    remote->server = channel_new_take(remote->base, fds[0], server_message, server_closed, remote);
    if (!argv || !remote->server) {
        free(argv);
        return error_set(err, ENOMEM, "out of memory");
    }
    remote->begun = true;
    release_early(remote, remote->server);
    if (remote->over)
        channel_free(TAKE_PTR(remote->server));
    snprintf(number, sizeof number, "%d", server);
    argv[0] = unconst("/proc/self/exe");
    argv[1] = unconst("--remote-serve");
    argv[2] = number;
    *ret_argv = argv;
    *ret_fd = take_fd(&server);
    return 0;
}

/* Of a request that this worker cannot serve. */
static void answer_gone(struct remote *remote, const Drarun__Wire__Routed *request)
{
    Drarun__Wire__RemoteExit body = DRARUN__WIRE__REMOTE_EXIT__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    body.code = 255;
    body.text = unconst("that worker is not up, or has ended already");
    message.destination = request->source;
    message.id = request->id;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_EXIT;
    message.remote_exit = &body;
    remote->route(remote->arg, &message);
}

/* Worker 0 has no server, and another worker's may be still to come. */
static void to_server(struct remote *remote, const Drarun__Wire__Routed *message)
{
    bool awaited = remote->job->worker != 0 && !remote->begun && !remote->over;
    if (awaited && hold(remote, message))
        return;
    if (remote->server)
        send_to(remote->server, unconst(message));
    else if (message->body_case == DRARUN__WIRE__ROUTED__BODY_REMOTE_START)
        answer_gone(remote, message);
}

static void to_client(struct remote *remote, const Drarun__Wire__Routed *message)
{
    struct client *client;
    LIST_FOREACH (client, &remote->clients, entry) {
        if (!client->asked || client->id != message->id)
            continue;
        send_to(client->channel, unconst(message));
        if (message->body_case == DRARUN__WIRE__ROUTED__BODY_REMOTE_EXIT) {
            client->asked = false;
            client->answered = true; /* it closes once it has read all */
        }
        return;
    }
}

bool remote_routed(struct remote *remote, const Drarun__Wire__Routed *message)
{
    switch (message->body_case) {
    case DRARUN__WIRE__ROUTED__BODY_REMOTE_START:
    case DRARUN__WIRE__ROUTED__BODY_REMOTE_ACK:
    case DRARUN__WIRE__ROUTED__BODY_REMOTE_CANCEL:
        to_server(remote, message);
        return true;
    case DRARUN__WIRE__ROUTED__BODY_REMOTE_OUTPUT:
    case DRARUN__WIRE__ROUTED__BODY_REMOTE_EXIT:
        to_client(remote, message);
        return true;
    case DRARUN__WIRE__ROUTED__BODY_REMOTE_END:
        remote_end(remote);
        return true;
    default:
        return false;
    }
}

void remote_end(struct remote *remote)
{
    remote->over = true;
    release_early(remote, NULL);
    channel_free(TAKE_PTR(remote->server)); /* it ends with its connection */
}

/* ---- the session directory ---- */

static int write_hosts(const struct remote *remote, const char *name, const char *format,
                       struct drarun_error *err)
{
    const Drarun__Wire__Launch *launch = remote->job->wire;
    struct buf text = BUF_INIT;
    char path[PATH_MAX], host[256], slots[16];
    snprintf(slots, sizeof slots, "%u", launch->slots ? launch->slots : 1);
    for (uint32_t w = 0; w < launch->n_workers; w++) {
        remote_host_name(launch, w, host, sizeof host);
        buf_printf(&text, "%s%s%s\n", host, format, slots);
    }
    snprintf(path, sizeof path, "%s/%s", remote->session_dir, name);
    int rc = text.failed ? error_set(err, ENOMEM, "out of memory")
                         : file_write_atomic(path, text.data, text.len, 0600, err);
    buf_done(&text);
    return rc;
}

/* Hydra takes the path of a program alone, so its name says what it is to do. */
static int link_client(const struct remote *remote, struct drarun_error *err)
{
    char self[PATH_MAX], path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return error_set(err, errno, "/proc/self/exe: %s", strerror(errno));
    self[n] = '\0';
    snprintf(path, sizeof path, "%s/drarun-rsh", remote->session_dir);
    return symlink(self, path) < 0 ? error_set(err, errno, "%s: %s", path, strerror(errno)) : 0;
}

static int open_socket(struct remote *remote, struct drarun_error *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n = snprintf(at.sun_path, sizeof at.sun_path, "%s/" SOCKET_NAME, remote->session_dir);
    if (n < 0 || (size_t)n >= sizeof at.sun_path)
        return error_set(err, ENAMETOOLONG, "%s: too long for a socket", remote->session_dir);
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 128) < 0)
        return error_set(err, errno, "%s: %s", at.sun_path, strerror(errno));
    const struct acceptor_owner owner = {.accepted = on_accepted, .arg = remote};
    remote->acceptor = acceptor_new_take(remote->base, take_fd(&fd), &owner, err);
    return remote->acceptor ? 0 : -err->code;
}

struct remote *remote_new(struct event_base *base, const struct agent_job *job,
                          const char *session_dir, remote_route_fn route, void *arg,
                          struct drarun_error *err)
{
    struct remote *remote = calloc(1, sizeof *remote);
    if (!remote) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    *remote = (struct remote){.base = base, .job = job, .route = route, .arg = arg};
    LIST_INIT(&remote->clients);
    STAILQ_INIT(&remote->early);
    remote->session_dir = strdup(session_dir);
    int rc = remote->session_dir ? open_socket(remote, err) : error_set(err, ENOMEM, "no memory");
    if (rc == 0)
        rc = link_client(remote, err);
    if (rc == 0)
        rc = write_hosts(remote, "hosts", " slots=", err);
    if (rc == 0)
        rc = write_hosts(remote, "hosts.hydra", ":", err);
    if (rc < 0) {
        remote_free(remote);
        return NULL;
    }
    return remote;
}

void remote_free(struct remote *remote)
{
    if (!remote)
        return;
    while (!LIST_EMPTY(&remote->clients))
        client_free(LIST_FIRST(&remote->clients));
    release_early(remote, NULL);
    channel_free(remote->server);
    acceptor_free(remote->acceptor);
    free(remote->session_dir);
    free(remote);
}

/* ---- environment ---- */

/* The interface that others reach this worker at: hydra would else tell its proxies a host name,
 * which in a pod only the pod itself can resolve. */
static bool own_interface(const struct remote *remote, char *name, size_t size)
{
    const Drarun__Wire__Launch *launch = remote->job->wire;
    char own[256], text[INET6_ADDRSTRLEN];
    struct ifaddrs *list = NULL;
    bool found = false;
    remote_host_name(launch, remote->job->worker, own, sizeof own);
    if (launch->same_host || getifaddrs(&list) < 0)
        return false;
    for (struct ifaddrs *at = list; at && !found; at = at->ifa_next) {
        if (!at->ifa_addr ||
            (at->ifa_addr->sa_family != AF_INET && at->ifa_addr->sa_family != AF_INET6))
            continue;
        const void *address =
            at->ifa_addr->sa_family == AF_INET
                ? (const void *)&((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr
                : &((const struct sockaddr_in6 *)(const void *)at->ifa_addr)->sin6_addr;
        found = inet_ntop(at->ifa_addr->sa_family, address, text, sizeof text) &&
                strcmp(text, own) == 0;
        if (found)
            snprintf(name, size, "%s", at->ifa_name);
    }
    freeifaddrs(list);
    return found;
}

void remote_environment(const struct remote *remote, struct strlist *env)
{
    static const struct {
        const char *name, *below;
    } table[] = {
        {"DRARUN_REMOTE", "/" SOCKET_NAME},
        {"DRARUN_HOSTFILE", "/hosts"},
        /* Open MPI 4, whose daemons look for it too, where it has another path, and use none; Open
         * MPI 5 (PRRTE) */
        {"OMPI_MCA_plm_rsh_agent", "/drarun-rsh:/bin/sh"},
        {"OMPI_MCA_orte_default_hostfile", "/hosts"},
        {"PRTE_MCA_plm_ssh_agent", "/drarun-rsh"},
        {"PRTE_MCA_prte_default_hostfile", "/hosts"},
        /* MPICH, Intel MPI */
        {"HYDRA_LAUNCHER_EXEC", "/drarun-rsh"},
        {"HYDRA_HOST_FILE", "/hosts.hydra"},
        {"I_MPI_HYDRA_BOOTSTRAP_EXEC", "/drarun-rsh"},
        {"I_MPI_HYDRA_HOST_FILE", "/hosts.hydra"},
    };
    static const struct {
        const char *name, *value;
    } fixed[] = {
        /* daemons are started from worker 0 alone: paths differ between workers */
        {"OMPI_MCA_plm_rsh_no_tree_spawn", "1"},
        {"PRTE_MCA_plm_ssh_no_tree_spawn", "1"},
        {"HYDRA_LAUNCHER", "ssh"},
        {"I_MPI_HYDRA_BOOTSTRAP", "ssh"},
        /* containers often run as root, which is no danger there */
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"PRTE_ALLOW_RUN_AS_ROOT", "1"},
        {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    };
    char value[PATH_MAX], interface[64];
    if (own_interface(remote, interface, sizeof interface)) {
        rankenv_default(env, "HYDRA_IFACE", "%s", interface);
        rankenv_default(env, "I_MPI_HYDRA_IFACE", "%s", interface);
    }
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        snprintf(value, sizeof value, "%s%s", remote->session_dir, table[i].below);
        rankenv_default(env, table[i].name, "%s", value);
    }
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        rankenv_default(env, fixed[i].name, "%s", fixed[i].value);
}
