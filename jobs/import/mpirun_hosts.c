/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts that mpirun is given, and their slots. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/foreign/options.h"
#include "jobs/import/mpirun.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

struct host {
    char name[256];
    uint64_t slots;
};

/* "a:4,b:4", "a,a,b,b": each host once with its slots, 1 unless it says more. Returns how many
 * hosts there are, -EINVAL where slots differ, or -ENOMEM; 0: no list. */
static int64_t count_hosts(const char *list, uint64_t *ret_slots)
{
    cleanup_free struct host *hosts = calloc(IMPORT_OBJECTS_MAX, sizeof *hosts);
    size_t count = 0;
    if (!hosts)
        return -ENOMEM;
    while (*list && count < IMPORT_OBJECTS_MAX) {
        size_t n = strcspn(list, ","), length = strcspn(list, ":,"), i = 0;
        struct host host = {.slots = 1};
        snprintf(host.name, sizeof host.name, "%.*s", (int)length, list);
        if (length < n)
            host.slots = strtoull(list + length + 1, NULL, 10);
        while (i < count && strcmp(hosts[i].name, host.name) != 0)
            i++;
        if (i < count)
            hosts[i].slots += host.slots;
        else
            hosts[count++] = host;
        list += n + (list[n] == ',');
    }
    for (size_t i = 0; i < count; i++)
        if (hosts[i].slots != hosts[0].slots)
            return -EINVAL;
    *ret_slots = count > 0 ? hosts[0].slots : 0;
    return (int64_t)count;
}

/* Hosts that are named are all workers, or too few; their slots take the place of those that the
 * operator writes. list: as count_hosts takes it, "": not known. */
static int use_hosts(struct mpirun *m, const char *option, const char *shown, const char *list)
{
    uint64_t slots = 0;
    int64_t hosts = count_hosts(list, &slots);
    m->hosts_said = true;
    if (hosts == -ENOMEM)
        return error_set(m->err, ENOMEM, "out of memory");
    if (hosts < 0)
        return mpirun_refuse(
            m,
            "%s %s %s: hosts have different numbers of slots, and the workers of a "
            "job have the same; " MPIRUN_INSTEAD,
            m->name, option, shown);
    if (hosts > 0 && (uint64_t)hosts < m->ranks.workers)
        return mpirun_refuse(m,
                             "%s %s %s: %" PRId64 " of %" PRIu64
                             " workers are named, and a job's workers all run ranks; set their "
                             "number to it",
                             m->name, option, shown, hosts, m->ranks.workers);
    if (slots > 0 && m->from != FOREIGN_SRUN) {
        m->ranks.slots = slots;
        m->ranks_said = true;
    }
    reader_fail(m->node, "%s %s %s: no hostfile; drarun knows its workers", m->name, option, shown);
    return 0;
}

int mpirun_take_hosts(struct mpirun *m, const char *option, const struct field *value)
{
    bool is_list = value->text && !strpbrk(value->text, "/[");
    const char *shown = value->text ? value->text : value->raw;
    if (!is_list && m->from != FOREIGN_SRUN) /* whose hosts have no slots */
        m->unknown_hosts = shown;
    return use_hosts(m, option, shown, is_list ? value->text : "");
}

/* "node-0 slots=8 max_slots=16", "node-0:8", "node-0", each on a line: as a list of hosts. */
static void list_hosts(const char *text, struct buf *out)
{
    buf_add(out, "", 0);
    while (*text) {
        size_t n = strcspn(text, "\n"), length = strcspn(text, "#\n");
        cleanup_free char *line = strndup(text, length);
        out->failed |= !line;
        for (char *c = line; c && *c; c++)
            *c = *c == '\t' ? ' ' : *c;
        size_t at = line ? strspn(line, " \r") : 0, name = line ? strcspn(line + at, " \r:") : 0;
        const char *slots = line ? strstr(line + at + name, " slots=") : NULL;
        unsigned long count = slots ? strtoul(slots + strlen(" slots="), NULL, 10)
                              : line && line[at + name] == ':'
                                  ? strtoul(line + at + name + 1, NULL, 10)
                                  : 1;
        if (name > 0)
            buf_printf(out, "%s%.*s:%lu", out->len ? "," : "", (int)name, line + at, count);
        text += n + (text[n] == '\n');
    }
}

int mpirun_take_hostfile(struct mpirun *m, const char *option, const struct field *value)
{
    const char *shown = value->text ? value->text : value->raw, *map = "";
    const char *text =
        value->text ? launcher_file(m->im->objects, m->pod, m->own, value->text, &map) : NULL;
    struct buf list = BUF_INIT;
    m->hosts_said = true;
    if (text)
        list_hosts(text, &list);
    else if (!m->has_hostfile || (strncmp(shown, "/etc/mpi/", strlen("/etc/mpi/")) != 0 &&
                                  !strstr(shown, "default_hostfile")))
        m->foreign_hosts = shown;
    int rc = list.failed ? error_set(m->err, ENOMEM, "out of memory")
                         : use_hosts(m, option, shown, list.data ? list.data : "");
    buf_done(&list);
    return rc;
}
