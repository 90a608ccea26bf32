/* SPDX-License-Identifier: Apache-2.0 */
/* Files that ranks leave in a folder of the agent's, on their way to the launcher: after the last
 * rank, a piece at a time, the next one when the launcher has taken the last. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/wire/frame.h"
#include "worker/agent/private.h"

#define FOLDER "collected"
#define PIECE (256u * 1024)

struct agent_collect {
    char *path;
    DIR *list; /* NULL: not begun */
    int fd;    /* of the file under way */
    char name[NAME_MAX + 1];
    uint64_t sent;
    uint32_t files; /* begun */
    char piece[PIECE];
};

int agent_collect_open(struct agent *agent, struct drarun_error *err)
{
    if (!agent->job.wire->collect_env || !agent->job.wire->collect_env[0])
        return 0;
    struct agent_collect *c = calloc(1, sizeof *c);
    agent->collect = c;
    if (!c || asprintf(&c->path, "%s/" FOLDER, agent->session.dir) < 0)
        return error_set(err, ENOMEM, "out of memory");
    c->fd = -1;
    if (mkdir(c->path, 0700) < 0)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, errno, "cannot make %s: %s", c->path,
                          strerror(errno));
    return 0;
}

void agent_collect_env(const struct agent *agent, struct strlist *env)
{
    if (agent->collect)
        env_default(env, agent->job.wire->collect_env, agent->collect->path);
}

/* ---- sending ---- */

void agent_collect_free(struct agent *agent)
{
    struct agent_collect *c = TAKE_PTR(agent->collect);
    if (!c)
        return;
    if (c->list)
        closedir(c->list);
    if (c->path)
        close_fd(&c->fd);
    free(c->path);
    free(c);
}

static void skip(struct agent *agent, const char *name)
{
    char text[NAME_MAX + 200];
    snprintf(text, sizeof text, "%s is not collected: %s", name, strerror(errno));
    agent_send_note(agent, text);
}

/* False: there is no further file. What is no file is passed over: ranks of this user made it. */
static bool open_next(struct agent *agent, struct agent_collect *c)
{
    struct dirent *entry;
    struct stat status;
    while (c->fd < 0 && (entry = readdir(c->list))) {
        if (entry->d_name[0] == '.')
            continue;
        c->fd = openat(dirfd(c->list), entry->d_name,
                       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (c->fd < 0)
            skip(agent, entry->d_name);
        else if (fstat(c->fd, &status) < 0 || !S_ISREG(status.st_mode))
            close_fd(&c->fd);
        snprintf(c->name, sizeof c->name, "%s", entry->d_name);
    }
    return c->fd >= 0;
}

/* False: nothing is under way any more. */
static bool send_piece(struct agent *agent, struct agent_collect *c)
{
    Drarun__Wire__File message = DRARUN__WIRE__FILE__INIT;
    c->files += c->fd < 0;
    if (!open_next(agent, c))
        return false;
    bool full = c->files > WIRE_COLLECT_FILES_MAX;
    uint64_t left = full ? 0 : WIRE_COLLECT_MAX - c->sent;
    size_t room = left < PIECE ? (size_t)left : PIECE;
    ssize_t n = read(c->fd, c->piece, room);
    if (n < 0)
        skip(agent, c->name);
    message.name = c->name;
    message.data.data = (uint8_t *)c->piece;
    message.data.len = n > 0 ? (size_t)n : 0;
    c->sent += message.data.len;
    message.cut = full || c->sent == WIRE_COLLECT_MAX;
    if (n < (ssize_t)PIECE)
        close_fd(&c->fd);
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(FILE, file, &message);
    agent_send(agent, &envelope);
    return !message.cut;
}

bool agent_collect_begin(struct agent *agent)
{
    struct agent_collect *c = agent->collect;
    if (c && agent_has_launcher(agent)) {
        c->list = opendir(c->path);
        if (!c->list)
            skip(agent, c->path);
        else if (send_piece(agent, c))
            return true;
    }
    agent_collect_free(agent);
    return false;
}

bool agent_collect_taken(struct agent *agent)
{
    struct agent_collect *c = agent->collect;
    if (!c || !c->list)
        return false;
    if (send_piece(agent, c))
        return false;
    agent_collect_free(agent);
    return true;
}

bool agent_collect_drop(struct agent *agent)
{
    bool under_way = agent->collect && agent->collect->list;
    if (under_way)
        agent_collect_free(agent);
    return under_way;
}
