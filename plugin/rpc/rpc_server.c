/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/rpc/rpc_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <event2/listener.h>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "plugin/rpc/rpc_private.h"

struct listener {
    struct listener *next;
    struct evconnlistener *door;
    struct stat file; /* ours, as bound: another instance may have put its own there since */
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
};

static void on_accept(struct evconnlistener *door, evutil_socket_t fd, struct sockaddr *peer,
                      int length, void *arg)
{
    struct rpc_server *server = arg;
    struct drarun_error err = {0};
    (void)door;
    (void)peer;
    (void)length;
    if (server->conn_count >= RPC_CONNECTIONS_MAX) {
        log_note("more than %u connections: one is refused", RPC_CONNECTIONS_MAX);
        close(fd);
    } else if (rpc_conn_new_take(server, fd, &err) < 0) {
        log_error("%s", err.text);
    }
}

int rpc_server_new(struct event_base *base, const struct rpc_method *methods, size_t count,
                   void *arg, struct rpc_server **ret_server, struct drarun_error *err)
{
    struct rpc_server *server = calloc(1, sizeof *server);
    if (!server)
        return error_set(err, ENOMEM, "out of memory");
    server->base = base;
    server->methods = methods;
    server->method_count = count;
    server->arg = arg;
    *ret_server = server;
    return 0;
}

/* Only a socket is removed to make room. */
static int remove_old(const char *path, struct drarun_error *err)
{
    struct stat file;
    if (lstat(path, &file) < 0)
        return errno == ENOENT ? 0 : error_set(err, errno, "%s: %s", path, strerror(errno));
    if (!S_ISSOCK(file.st_mode))
        return error_set(err, EEXIST, "%s is there and is no socket", path);
    if (unlink(path) < 0 && errno != ENOENT)
        return error_set(err, errno, "remove %s: %s", path, strerror(errno));
    return 0;
}

static int bind_door(struct listener *l, struct drarun_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, l->path, sizeof address.sun_path);
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set(err, errno, "socket: %s", strerror(errno));
    if (fchmod(fd, 0600) < 0) /* decides the mode of the file that bind makes */
        return error_set(err, errno, "%s: %s", l->path, strerror(errno));
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || lstat(l->path, &l->file) < 0)
        return error_set(err, errno, "%s: %s", l->path, strerror(errno));
    if (listen(fd, 64) < 0)
        return error_set(err, errno, "listen on %s: %s", l->path, strerror(errno));
    return take_fd(&fd);
}

int rpc_server_listen(struct rpc_server *server, const char *path, struct drarun_error *err)
{
    cleanup_free struct listener *l = calloc(1, sizeof *l);
    if (!l)
        return error_set(err, ENOMEM, "out of memory");
    if (strlen(path) >= sizeof l->path)
        return error_set(err, ENAMETOOLONG, "%s: longer than the %zu bytes of a socket's path",
                         path, sizeof l->path - 1);
    memcpy(l->path, path, strlen(path) + 1);
    int rc = remove_old(path, err);
    int fd = rc < 0 ? rc : bind_door(l, err);
    if (fd < 0)
        return fd;
    l->door = evconnlistener_new(server->base, on_accept, server,
                                 LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, -1, fd);
    if (!l->door) {
        close(fd);
        return error_set(err, ENOMEM, "out of memory");
    }
    l->next = server->listeners;
    server->listeners = TAKE_PTR(l);
    return 0;
}

static void listener_free(struct listener *l)
{
    struct stat file;
    if (lstat(l->path, &file) == 0 && file.st_dev == l->file.st_dev &&
        file.st_ino == l->file.st_ino)
        unlink(l->path);
    evconnlistener_free(l->door);
    free(l);
}

void rpc_server_free(struct rpc_server *server)
{
    if (!server)
        return;
    for (struct listener *next, *l = server->listeners; l; l = next) {
        next = l->next;
        listener_free(l);
    }
    while (server->conns)
        rpc_conn_free(server->conns);
    free(server);
}
