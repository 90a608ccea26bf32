/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of files for tests of readers: made below a fresh directory, gone with tree_drop. */
#ifndef DRARUN_TOPO_TEST_TREE_H
#define DRARUN_TOPO_TEST_TREE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"

struct tree {
    char name[64];
    int root;
};

static inline void tree_parents(int root, const char *path)
{
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *slash = strchr(copy, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdirat(root, copy, 0755);
        *slash = '/';
    }
}

static inline struct tree tree_new(void)
{
    struct tree tree = {"/tmp/topo_test.XXXXXX", -1};
    if (mkdtemp(tree.name))
        tree.root = open(tree.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree.root < 0)
        abort();
    return tree;
}

static inline void tree_file(const struct tree *tree, const char *path, const char *text)
{
    tree_parents(tree->root, path);
    int fd = openat(tree->root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
        abort();
    close(fd);
}

static inline void tree_link(const struct tree *tree, const char *path, const char *target)
{
    tree_parents(tree->root, path);
    if (symlinkat(target, tree->root, path) < 0)
        abort();
}

static inline void tree_dir(const struct tree *tree, const char *path)
{
    tree_parents(tree->root, path);
    mkdirat(tree->root, path, 0755);
}

static inline void tree_drop(struct tree *tree)
{
    close(tree->root);
    tree_remove(AT_FDCWD, tree->name);
}

#endif
