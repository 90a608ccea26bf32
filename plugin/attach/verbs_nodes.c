/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/verbs_nodes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/topo/root.h"
#include "plugin/attach/rdma.h"

#define DEVICES_MAX 1024 /* RDMA devices in a namespace; the kernel has no more verbs nodes */

/* ---- the directory ---- */

static bool same_file(int a, int b)
{
    struct stat one, other;
    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* runc and crun run the hook before the process makes its root "/"; one that did is asked there. */
static int open_root(pid_t pid, const char *root, int *ret_fd, struct drarun_error *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/root", (int)pid);
    cleanup_close int seen = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (seen < 0)
        return error_set(err, errno, "the container's process %d: %s: %s", (int)pid, path,
                         strerror(errno));
    cleanup_close int own = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (own < 0)
        return error_set(err, errno, "/: %s", strerror(errno));
    int fd =
        same_file(own, seen) ? root_open(seen, root, O_PATH | O_DIRECTORY, err) : take_fd(&seen);
    if (fd < 0)
        return error_prefix(err, "the container's root");
    *ret_fd = fd;
    return 0;
}

/* Below root; *ret_fd stays -1 where it is not there. */
static int open_below(int root, const char *path, int *ret_fd, struct drarun_error *err)
{
    struct drarun_error missing = {0};
    int fd = root_open(root, path, O_RDONLY | O_DIRECTORY, &missing);
    if (fd == -ENOENT || fd >= 0) {
        *ret_fd = fd >= 0 ? fd : -1;
        return 0;
    }
    return error_set(err, missing.code, "the container's /%s: %s", path, missing.text);
}

int verbs_nodes_open(pid_t pid, const char *root, const char *claim_uid, int ns,
                     struct verbs_nodes *ret, struct drarun_error *err)
{
    struct verbs_nodes nodes = {.dir = -1, .spares = -1, .ns = ns};
    cleanup_close int top = -1;
    int rc = open_root(pid, root, &top, err);
    snprintf(nodes.spares_name, sizeof nodes.spares_name, VERBS_SPARES_PREFIX "%.64s", claim_uid);
    rc = rc < 0 ? rc : open_below(top, VERBS_NODES_DIR + 1, &nodes.dir, err);
    if (rc == 0 && nodes.dir >= 0)
        rc = open_below(nodes.dir, nodes.spares_name, &nodes.spares, err);
    if (rc < 0) {
        verbs_nodes_done(&nodes);
        return rc;
    }
    *ret = nodes;
    return 0;
}

void verbs_nodes_done(struct verbs_nodes *nodes)
{
    close_fd(&nodes->dir);
    close_fd(&nodes->spares);
}

/* ---- the nodes ---- */

static bool is_node(int dir, const char *name, dev_t *ret_number)
{
    struct stat st;
    if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISCHR(st.st_mode))
        return false;
    *ret_number = st.st_rdev;
    return true;
}

static bool has(int dir, const struct rdma_node *node)
{
    dev_t number;
    return is_node(dir, node->name, &number) && number == node->number;
}

int verbs_nodes_ensure(struct verbs_nodes *nodes, const char *rdma, struct drarun_error *err)
{
    struct rdma_node node;
    dev_t number;
    int rc = rdma_verbs_node(nodes->ns, rdma, &node, err);
    if (rc <= 0 || has(nodes->dir, &node))
        return rc < 0 ? rc : 0;
    if (has(nodes->spares, &node)) {
        if (renameat(nodes->spares, node.name, nodes->dir, node.name) < 0)
            return error_set(err, errno, "the container's " VERBS_NODES_DIR "/%s: %s", node.name,
                             strerror(errno));
        return 0;
    }
    if (is_node(nodes->dir, node.name, &number))
        return error_set(err, ESTALE,
                         "RDMA device %s is " VERBS_NODES_DIR "/%s, number %u:%u, by now, and the "
                         "container was given %u:%u: delete the pod, so that its claim is prepared "
                         "again",
                         rdma, node.name, major(node.number), minor(node.number), major(number),
                         minor(number));
    return error_set(err, ESTALE,
                     "RDMA device %s is " VERBS_NODES_DIR "/%s, number %u:%u, by now, which the "
                     "container was not given: delete the pod, so that its claim is prepared again",
                     rdma, node.name, major(node.number), minor(node.number));
}

/* ---- what is left ---- */

static bool is_listed(const dev_t *numbers, int count, dev_t number)
{
    for (int i = 0; i < count; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

static int remove_stale(const struct verbs_nodes *nodes, const dev_t *numbers, int count,
                        struct drarun_error *err)
{
    int copy = openat(nodes->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *entry;
    if (!dir) {
        int code = errno;
        close_fd(&copy);
        return error_set(err, code, "the container's " VERBS_NODES_DIR ": %s", strerror(code));
    }
    while ((entry = readdir(dir))) {
        dev_t number;
        if (strncmp(entry->d_name, "uverbs", 6) != 0 ||
            !is_node(nodes->dir, entry->d_name, &number) || is_listed(numbers, count, number))
            continue;
        if (unlinkat(nodes->dir, entry->d_name, 0) < 0)
            return error_set(err, errno, "the container's " VERBS_NODES_DIR "/%s: %s",
                             entry->d_name, strerror(errno));
    }
    return 0;
}

/* The host's /dev, which a pod may have mounted. */
static bool is_hosts(int dir)
{
    struct stat host, here;
    return stat("/dev", &host) < 0 || fstat(dir, &here) < 0 || host.st_dev == here.st_dev;
}

/* Stale ones only where the edits made spare nodes: in exclusive mode. */
int verbs_nodes_clear(struct verbs_nodes *nodes, struct drarun_error *err)
{
    cleanup_free dev_t *numbers = calloc(DEVICES_MAX, sizeof *numbers);
    if (nodes->spares < 0)
        return 0;
    if (!numbers)
        return error_set(err, ENOMEM, "out of memory");
    int rc = is_hosts(nodes->dir) ? 0 : rdma_verbs_numbers(nodes->ns, numbers, DEVICES_MAX, err);
    if (rc > 0)
        rc = remove_stale(nodes, numbers, rc, err);
    if (rc < 0)
        return rc;
    rc = tree_remove(nodes->dir, nodes->spares_name);
    return rc < 0 ? error_set(err, -rc, "the container's " VERBS_NODES_DIR "/%s: %s",
                              nodes->spares_name, strerror(-rc))
                  : 0;
}
