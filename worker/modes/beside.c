/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/modes/beside.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/affinity.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/proctree.h"
#include "lib/base/strlist.h"

#define ENVIRONMENT_MAX ((size_t)8 << 20)

static int read_environment(pid_t pid, struct strlist *env)
{
    char path[64];
    struct buf text = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    int rc = file_read(AT_FDCWD, path, ENVIRONMENT_MAX, &text, NULL);
    for (size_t at = 0; rc == 0 && at < text.len; at += strlen(text.data + at) + 1)
        if (text.data[at])
            strlist_add(env, text.data + at);
    buf_done(&text);
    return rc < 0 ? rc : env->failed ? -ENOMEM : 0;
}

static bool is_of_rank(pid_t pid, const char *rank)
{
    struct strlist env = STRLIST_INIT;
    const char *own = read_environment(pid, &env) == 0 ? env_get(&env, "DRARUN_RANK") : NULL;
    bool is = own && strcmp(own, rank) == 0;
    strlist_done(&env);
    return is;
}

/* The rank itself is the process of it whose parent is none of it; 0: there is none. */
static pid_t find_rank(uint32_t rank)
{
    cleanup_dir DIR *proc = opendir("/proc");
    const struct dirent *entry;
    char text[16];
    snprintf(text, sizeof text, "%" PRIu32, rank);
    while (proc && (entry = readdir(proc))) {
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        if (pid > 0 && is_of_rank(pid, text) && !is_of_rank(proctree_parent(pid), text))
            return pid;
    }
    return 0;
}

static void take_place(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cwd", (int)pid);
    if (chdir(path) < 0)
        (void)!chdir("/");
    affinity_copy(pid);
}

int beside_exec(uint32_t rank, char *const argv[], struct drarun_error *err)
{
    char name[] = "sh", *const shell[] = {name, NULL};
    struct strlist env = STRLIST_INIT;
    pid_t pid = find_rank(rank);
    if (pid == 0 || read_environment(pid, &env) < 0) {
        strlist_done(&env);
        return error_kind(err, DRARUN_ERR_USAGE, ENOENT,
                          "rank %" PRIu32 " is not visible in this pod: it has not started, has "
                          "ended, or is another user's",
                          rank);
    }
    env_unset_prefix(&env, "PMIX_");
    env_unset_prefix(&env, "PMI_");
    take_place(pid);
    environ = env.items;
    char *const *words = argv[0] ? argv : shell;
    execvp(words[0], words);
    int rc = error_kind(err, errno == ENOENT ? DRARUN_ERR_NOT_FOUND : DRARUN_ERR_NOT_EXECUTABLE,
                        errno, "cannot execute %s: %s", words[0], strerror(errno));
    environ = NULL;
    strlist_done(&env);
    return rc;
}
