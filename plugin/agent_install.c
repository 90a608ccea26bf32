/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/agent_install.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/trusted.h"
#include "lib/base/unconst.h"
#include "lib/child/child.h"

#define VERSION_MS 10000

int program_install(const char *from, const char *to, struct drarun_error *err)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(to, '/');
    snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - to + 1) : 0, to);
    int rc = dir_make_trusted(parent, 0755, err);
    return rc < 0 || file_same(from, to) ? rc : file_copy(from, to, 0755, err);
}

struct asked {
    struct child *child;
    char offer[AGENT_OFFER_SIZE];
    struct drarun_error err;
};

/* "drarun-worker 0.1.0, protocol 1.0, libpmix 5.0.7" */
static void on_version(const struct child_end *end, const struct drarun_error *failure, void *arg)
{
    struct asked *asked = arg;
    const char *text = end->out->data ? end->out->data : "";
    unsigned major = 0;
    char pmix[40];
    const char *protocol = strstr(text, ", protocol ");
    asked->child = NULL;
    if (failure)
        asked->err = *failure;
    else if (!end->known || end->status != 0)
        error_set(&asked->err, EIO, "%s", *end->said ? end->said : "it does not tell its version");
    else if (!protocol || sscanf(protocol, ", protocol %u.%*u, libpmix %39s", &major, pmix) != 2 ||
             snprintf(asked->offer, sizeof asked->offer, "v%u-pmix-%s", major, pmix) < 0 ||
             !agent_offer_valid(asked->offer))
        error_set(&asked->err, EINVAL, "its version says no protocol and libpmix: %.80s", text);
}

static int ask(struct event_base *base, const char *program, struct asked *asked,
               struct drarun_error *err)
{
    char *argv[] = {unconst(program), unconst("--version"), NULL};
    char *env[] = {NULL};
    const struct child_program version = {.argv = argv, .env = env, .deadline_ms = VERSION_MS};
    int rc = child_start(base, &version, on_version, asked, &asked->child);
    if (rc < 0)
        return error_set(err, -rc, "%s: %s", program, strerror(-rc));
    while (asked->child && event_base_loop(base, EVLOOP_ONCE) == 0 && !event_base_got_break(base))
        ;
    if (asked->child) { /* a signal ends the plugin */
        child_free(TAKE_PTR(asked->child));
        return error_set(err, EINTR, "%s: ended before it told its version", program);
    }
    if (asked->err.code)
        return error_set(err, asked->err.code, "%s: %s", program, asked->err.text);
    return 0;
}

int program_check_place(const char *path, const char *option, struct drarun_error *err)
{
    struct statvfs fs;
    if (statvfs(path, &fs) < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    return fs.f_flag & ST_NOEXEC
               ? error_set(
                     err, ENOEXEC,
                     "%s is on a file system that is mounted noexec; give a folder on another "
                     "one (%s)",
                     path, option)
               : 0;
}

int agent_install(struct event_base *base, const char *from, const char *dir,
                  char ret_offer[AGENT_OFFER_SIZE], struct drarun_error *err)
{
    struct asked asked = {0};
    char path[512];
    int rc = ask(base, from, &asked, err);
    if (rc < 0)
        return rc;
    snprintf(path, sizeof path, "%s/%s/drarun-worker", dir, asked.offer);
    rc = program_install(from, path, err);
    if (rc == 0) /* another user who could write there would run code in all jobs' containers */
        rc = dir_check_own(dir, err);
    if (rc == 0) {
        *strrchr(path, '/') = '\0';
        rc = dir_check_own(path, err);
    }
    if (rc == 0)
        rc = program_check_place(path, "--agent-dir", err);
    if (rc == 0)
        memcpy(ret_offer, asked.offer, sizeof asked.offer);
    return rc;
}
