/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/alloc/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/alloc/folder.h"
#include "launcher/alloc/kept.h"
#include "launcher/job/local_agent.h"
#include "launcher/programs/agent_program.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

#define AGENTS_FILE "agents"
#define KEY_FILE "key"
#define LIST_MAX (1u << 20)
#define END_MS 3000

struct alloc {
    char folder[PATH_MAX - 32];
    int owner; /* folder_make's */
    struct local_agents local;
    char program[PATH_MAX];
    uint32_t count;
    pid_t *agents; /* 0: ended */
};

const char *alloc_folder(const struct alloc *alloc)
{
    return alloc->folder;
}

/* ---- making ---- */

static int write_file(const struct alloc *a, const char *name, const void *data, size_t length,
                      struct drarun_error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", a->folder, name);
    return file_replace(path, data, length, 0600, FILE_AFTER_ANYTHING, err);
}

static int start_agents(struct alloc *a, const struct tls_key *key, struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf list = BUF_INIT;
    for (uint32_t i = 0; i < a->count; i++) {
        uint16_t port = 0;
        int rc = local_agent_keep(&a->local, key, &a->agents[i], &port, err);
        if (rc < 0)
            return error_prefix(err, "worker %u", i);
        buf_printf(&list, "%s127.0.0.1:%u", i ? "," : "", port);
    }
    if (list.failed)
        return error_set(err, ENOMEM, "out of memory");
    return write_file(a, AGENTS_FILE, list.data, list.len, err);
}

static int make(struct alloc *a, struct drarun_error *err)
{
    struct tls_key key;
    a->agents = calloc(a->count, sizeof *a->agents);
    if (!a->agents)
        return error_set(err, ENOMEM, "out of memory");
    int rc = program_find_agent(a->program, err);
    if (rc == 0)
        rc = folder_make(a->folder, sizeof a->folder, &a->owner, err);
    if (rc < 0)
        return rc;
    a->local.program = a->program;
    local_agent_raise_limit(&a->local);
    if (getrandom(key.bytes, sizeof key.bytes, 0) != (ssize_t)sizeof key.bytes)
        return error_set(err, errno, "getrandom: %s", strerror(errno));
    rc = write_file(a, KEY_FILE, key.bytes, sizeof key.bytes, err);
    if (rc == 0)
        rc = start_agents(a, &key, err);
    explicit_bzero(&key, sizeof key);
    return rc;
}

struct alloc *alloc_new(uint32_t workers, struct drarun_error *err)
{
    struct alloc *a = calloc(1, sizeof *a);
    if (!a) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    a->count = workers;
    a->owner = -1;
    if (make(a, err) < 0) {
        alloc_free(a);
        return NULL;
    }
    return a;
}

/* ---- ending ---- */

int64_t alloc_reaped(struct alloc *a, pid_t pid)
{
    for (uint32_t i = 0; a->agents && i < a->count; i++)
        if (a->agents[i] == pid) {
            a->agents[i] = 0;
            return i;
        }
    return -1;
}

static bool signal_all(const struct alloc *a, int signo)
{
    bool any = false;
    for (uint32_t i = 0; a->agents && i < a->count; i++)
        any |= a->agents[i] > 0 && kill(a->agents[i], signo) == 0;
    return any;
}

static void reap(struct alloc *a, int options)
{
    for (uint32_t i = 0; a->agents && i < a->count; i++)
        if (a->agents[i] > 0 && waitpid(a->agents[i], NULL, options) != 0)
            a->agents[i] = 0;
}

void alloc_free(struct alloc *a)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    if (!a)
        return;
    int64_t until = clock_ms() + END_MS;
    for (signal_all(a, SIGTERM); signal_all(a, 0) && clock_ms() < until; reap(a, WNOHANG))
        nanosleep(&pause, NULL);
    signal_all(a, SIGKILL);
    reap(a, 0);
    if (a->folder[0])
        tree_remove(AT_FDCWD, a->folder);
    close_fd(&a->owner);
    free(a->agents);
    free(a);
}

/* ---- using ---- */

static const char *folder_of(const struct job_request *request)
{
    const char *folder = request->alloc ? request->alloc : getenv(ALLOC_VARIABLE);
    return folder && folder[0] && !request->agents && !request->workers ? folder : NULL;
}

bool alloc_is_of_pods(const struct job_request *request)
{
    const char *folder = folder_of(request);
    return folder && kept_is_there(folder);
}

/* The agents have the folder in which the allocation was made, and ranks here have ours. */
static int use_own_wd(struct job_request *request, struct drarun_error *err)
{
    cleanup_free char *own = getcwd(NULL, 0);
    struct strlist *wds = &request->alloc_wds;
    if (!own)
        return error_set(err, errno, "the working directory is not known: %s", strerror(errno));
    for (size_t i = 0; i < request->program_count; i++) {
        struct request_program *program = &request->programs[i];
        if (program->wd && program->wd[0] == '/')
            continue;
        if (program->wd)
            strlist_addf(wds, "%s/%s", own, program->wd);
        else
            strlist_add(wds, own);
        if (wds->failed)
            return error_set(err, ENOMEM, "out of memory");
        program->wd = wds->items[wds->count - 1];
    }
    return 0;
}

static int use_agents(const char *folder, struct job_request *request, struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf list = BUF_INIT;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, AGENTS_FILE);
    int rc = file_read(AT_FDCWD, path, LIST_MAX, &list, err);
    if (rc < 0)
        return error_kind(err, DRARUN_ERR_USAGE, -rc,
                          "%s %s is no allocation, or one that has ended (%s): leave its shell, or "
                          "unset " ALLOC_VARIABLE,
                          request->alloc ? "--alloc" : ALLOC_VARIABLE, folder, strerror(-rc));
    snprintf(path, sizeof path, "%s/%s", folder, KEY_FILE);
    request->alloc_agents = buf_take(&list);
    request->alloc_key_file = strdup(path);
    if (!request->alloc_agents || !request->alloc_key_file)
        return error_set(err, ENOMEM, "out of memory");
    request->agents = request->alloc_agents;
    request->key_file = request->alloc_key_file;
    return use_own_wd(request, err);
}

int alloc_use(struct job_request *request, int *ret_turn, struct drarun_error *err)
{
    const char *folder = folder_of(request);
    cleanup_close int turn = -1;
    if (!folder)
        return 0;
    bool pods = kept_is_there(folder);
    if (folder_is_left(folder))
        return error_kind(
            err, DRARUN_ERR_USAGE, ESRCH,
            "the allocation %s has ended, since its drarun alloc was killed: leave its "
            "shell, or unset " ALLOC_VARIABLE,
            folder);
    int rc =
        folder_enter(folder, pods ? "begin another allocation" : "use --workers N", &turn, err);
    if (rc == 0)
        rc = pods ? kept_use(folder, request, err) : use_agents(folder, request, err);
    if (rc == 0)
        *ret_turn = take_fd(&turn);
    return rc;
}
