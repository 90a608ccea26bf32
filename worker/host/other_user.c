/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/other_user.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "worker/host/process_tree.h"

struct search {
    uid_t uid;
    pid_t found;
};

/* proc(5): "Uid: real effective saved file-system", as the reader's user namespace has them. */
static bool look(pid_t pid, void *arg)
{
    struct search *search = arg;
    char text[2048];
    unsigned effective = 0;
    process_read(pid, "status", text, sizeof text);
    const char *line = strstr(text, "\nUid:");
    if (line && sscanf(line, "\nUid: %*u %u", &effective) == 1 && effective == search->uid)
        search->found = pid;
    return search->found <= 0;
}

static bool has_our_namespace(pid_t pid)
{
    char path[48], theirs[64] = "", ours[64] = "";
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    if (readlink(path, theirs, sizeof theirs - 1) < 0 ||
        readlink("/proc/self/ns/user", ours, sizeof ours - 1) < 0) {
        char map[2048], our_map[2048]; /* everybody may read these, and they differ where it does */
        process_read(pid, "uid_map", map, sizeof map);
        process_read(getpid(), "uid_map", our_map, sizeof our_map);
        return strcmp(map, our_map) == 0;
    }
    return strcmp(theirs, ours) == 0;
}

/* user_namespaces(7): lines of "inside outside count", the outside as the reader has it. */
static bool map_user(pid_t pid, uid_t outside, uid_t *ret_inside)
{
    char text[4096];
    unsigned first = 0, from = 0, count = 0;
    int used = 0;
    process_read(pid, "uid_map", text, sizeof text);
    for (const char *at = text; sscanf(at, " %u %u %u%n", &first, &from, &count, &used) == 3;
         at += used) {
        if (outside < from || outside - from >= count)
            continue;
        *ret_inside = first + (outside - from);
        return true;
    }
    return false;
}

bool other_user_explain(pid_t root, uid_t uid, struct buf *out)
{
    struct search search = {.uid = uid};
    uid_t inside = 0;
    unsigned ours = (unsigned)geteuid();
    process_tree_walk(root, look, &search);
    if (search.found <= 0)
        return false;
    if (has_our_namespace(search.found)) {
        buf_printf(out,
                   "its process %d runs as user %u, and only processes of user %u, who started the "
                   "job, may connect to PMIx: start the job as user %u (in a pod: "
                   "securityContext.runAsUser), not the program alone (su, gosu, setpriv)",
                   (int)search.found, (unsigned)uid, ours, (unsigned)uid);
        return true;
    }
    buf_printf(out, "its process %d is in another user namespace, as user ", (int)search.found);
    if (map_user(search.found, uid, &inside))
        buf_printf(out, "%u there, which is user %u here", (unsigned)inside, (unsigned)uid);
    else
        buf_printf(out, "%u of here", (unsigned)uid);
    buf_printf(out,
               ", and only processes of user %u, who started the job, may connect to PMIx: map "
               "user %u to the program's user in its uid_map (unshare --map-user, podman run "
               "--userns=keep-id)",
               ours, ours);
    return true;
}

bool other_users_may_search(struct other_users *users, uint32_t ranks, uid_t uid, int64_t now_ms)
{
    bool strange = users->strange_ms && users->strange == uid &&
                   now_ms - users->strange_ms < OTHER_USER_STRANGE_MS;
    if (strange || users->searches >= OTHER_USER_SEARCHES + 2 * ranks)
        return false;
    users->searches++;
    return true;
}

void other_users_note_strange(struct other_users *users, uid_t uid, int64_t now_ms)
{
    users->strange = uid;
    users->strange_ms = now_ms;
}
