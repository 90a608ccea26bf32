/* SPDX-License-Identifier: Apache-2.0 */
/* Tools: programs that ask about the job and that no rank has started, such as pquery and parallel
 * debuggers. Who may be one is decided where connections are accepted (host.c). */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "worker/pmix/host_private.h"

/* The library keeps about 36 KiB of each as long as it runs. */
#define TOOLS_MAX 256u

bool pmix_is_reserved(const char *nspace)
{
    return strncmp(nspace, "drarun.", sizeof "drarun." - 1) == 0;
}

/* The name that the tool has given itself; the library puts it last, after what the tool sent. */
static bool own_name(const struct upcall *upcall, pmix_proc_t *ret)
{
    size_t n = upcall->info_count;
    if (n < 2 || !PMIX_CHECK_KEY(&upcall->info[n - 2], PMIX_NSPACE) ||
        !PMIX_CHECK_KEY(&upcall->info[n - 1], PMIX_RANK))
        return false;
    PMIX_LOAD_PROCID(ret, upcall->info[n - 2].value.data.string,
                     upcall->info[n - 1].value.data.rank);
    return true;
}

bool pmix_has_room_for_tool(struct pmix_host *host)
{
    if (host->tools < TOOLS_MAX)
        return true;
    if (!host->tools_refused)
        log_note("PMIx: this agent has served %u tools and accepts no more", TOOLS_MAX);
    host->tools_refused = true;
    return false;
}

void pmix_on_tool(struct pmix_host *host, struct upcall *upcall)
{
#ifdef DRARUN_PMIX_UNPATCHED
    (void)host, (void)own_name; /* nobody knows whose it is */
    upcall_answer(upcall, PMIX_ERR_NOT_SUPPORTED);
#else
    pmix_proc_t name = {.rank = 0};
    if (!pmix_has_room_for_tool(host)) {
        upcall_answer(upcall, PMIX_ERR_OUT_OF_RESOURCE);
        return;
    }
    host->tools++;
    if (!own_name(upcall, &name))
        /* the numbers tell tools apart: a job's name leaves them room */
        snprintf(name.nspace, sizeof name.nspace, "%.200s.tool.%u.%llu",
                 host->job->groups[0]->nspace, host->tree->self, (unsigned long long)host->tools);
    upcall_answer_tool(upcall, &name);
#endif
}

/* As libpmix has it in a process without PMIX_HOSTNAME: a name up to its first dot. */
static int host_name(char *name, size_t size)
{
    struct in_addr address;
    if (gethostname(name, size) < 0)
        return -1;
    name[size - 1] = '\0';
    char *dot = inet_pton(AF_INET, name, &address) == 1 ? NULL : strchr(name, '.');
    if (dot)
        *dot = '\0';
    return 0;
}

static void write_file(const struct pmix_host *host, const char *name, pid_t pid)
{
    char path[512];
    struct buf text = BUF_INIT;
    struct drarun_error err = {0};
    snprintf(path, sizeof path, "%s/pmix.%s.tool.%d", host->session_dir, name, (int)pid);
    /* as PMIx_server_init writes them (ptl_base_listener.c): address, release */
    buf_printf(&text, "%s.server.%u;tcp4://127.0.0.1:%u\nv%s\n", host->job->groups[0]->nspace,
               host->tree->self, host->port, DRARUN_PMIX_VERSION);
    if (text.failed || file_replace(path, text.data, text.len, 0600, FILE_AFTER_ANYTHING, &err) < 0)
        log_verbose("PMIx: tools cannot find this job: %s", err.text);
    buf_done(&text);
}

void pmix_host_announce(struct pmix_host *host)
{
#ifndef DRARUN_PMIX_UNPATCHED
    if (host->announced || host->retired)
        return;
    host->announced = true;
    char name[256];
    bool one_machine = host->job->wire->same_host;
    /* agents that share a machine are one job for its tools, and each could answer */
    if ((one_machine && host->tree->self > 0) || host_name(name, sizeof name) < 0)
        return;
    write_file(host, name, getpid());
    if (one_machine && getppid() > 1) /* what the user started, and sees: drarun */
        write_file(host, name, getppid());
#else
    (void)host, (void)write_file, (void)host_name;
#endif
}
