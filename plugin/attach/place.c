/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <jansson.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

#define SIZE_MAX_BYTES ((size_t)4 << 10)
#define VERSION 1

int place_of(int ns, struct place *ret, struct drarun_error *err)
{
    CLEANUP(netlink_done) struct netlink n = {0};
    struct stat st;
    socklen_t size = sizeof ret->cookie;
    *ret = (struct place){.peer_ns = -1, .port = -1};
    if (fstat(ns, &st) < 0)
        return error_set(err, errno, "the network namespace: %s", strerror(errno));
    int rc = netlink_open(&n, ns, NETLINK_ROUTE, err);
    if (rc < 0)
        return rc;
    ret->device = st.st_dev;
    ret->inode = st.st_ino;
    if (getsockopt(nl_socket_get_fd(n.sock), SOL_SOCKET, SO_NETNS_COOKIE, &ret->cookie, &size) < 0)
        ret->cookie = 0; /* before Linux 5.14 */
    return 0;
}

bool place_same(const struct place *a, const struct place *b)
{
    return a->inode && a->inode == b->inode && a->device == b->device && a->cookie == b->cookie;
}

void place_take(struct place *place, const struct link *link, bool arrived)
{
    place->index = arrived ? link->index : 0;
    memcpy(place->kind, link->kind, sizeof place->kind);
    place->peer = link->peer;
    place->peer_ns = arrived ? link->peer_ns : -1;
}

bool place_fits(const struct place *place, const struct link *link)
{
    if (strcmp(place->kind, link->kind) != 0 || place->peer != link->peer)
        return false;
    return !place->index || (place->index == link->index && place->peer_ns == link->peer_ns);
}

/* ---- the file ---- */

static void path_of(const struct attach_order *order, char *path, size_t size)
{
    const char *slash = strrchr(order->path, '/');
    int folder = slash ? (int)(slash - order->path) + 1 : 0;
    snprintf(path, size, "%.*s%s.%s.place", folder, order->path, order->claim_uid, order->device);
}

void place_load(const struct attach_order *order, struct place *ret)
{
    char path[PATH_MAX + sizeof order->claim_uid + ATTACH_NAME_MAX];
    struct buf text = BUF_INIT;
    json_int_t version = 0, device = 0, inode = 0, cookie = 0;
    const char *kind = NULL;
    struct place place = {.port = -1};
    path_of(order, path, sizeof path);
    CLEANUP(json_decrefp)
    json_t *json = file_read(AT_FDCWD, path, SIZE_MAX_BYTES, &text, NULL) == 0 && text.data
                       ? json_loadb(text.data, text.len, 0, NULL)
                       : NULL;
    buf_done(&text);
    *ret = (struct place){.peer_ns = -1, .port = -1};
    if (!json ||
        json_unpack(json, "{s:I, s:I, s:I, s:I, s:i, s:s, s:i, s:i, s?:i}", "version", &version,
                    "device", &device, "inode", &inode, "cookie", &cookie, "index", &place.index,
                    "kind", &kind, "peer", &place.peer, "peerNs", &place.peer_ns, "port",
                    &place.port) < 0 ||
        version != VERSION)
        return;
    place.device = (uint64_t)device;
    place.inode = (uint64_t)inode;
    place.cookie = (uint64_t)cookie;
    snprintf(place.kind, sizeof place.kind, "%s", kind);
    *ret = place;
}

int place_save(const struct attach_order *order, const struct place *place,
               struct drarun_error *err)
{
    char path[PATH_MAX + sizeof order->claim_uid + ATTACH_NAME_MAX];
    CLEANUP(json_decrefp)
    json_t *json =
        json_pack("{s:i, s:I, s:I, s:I, s:i, s:s, s:i, s:i, s:i}", "version", VERSION, "device",
                  (json_int_t)place->device, "inode", (json_int_t)place->inode, "cookie",
                  (json_int_t)place->cookie, "index", place->index, "kind", place->kind, "peer",
                  place->peer, "peerNs", place->peer_ns, "port", place->port);
    cleanup_free char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    if (!text)
        return error_set(err, ENOMEM, "out of memory");
    path_of(order, path, sizeof path);
    return file_replace(path, text, strlen(text), 0600, FILE_AFTER_ANYTHING, err);
}
