/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/run/batch_hosts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/run/hosts.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/strlist.h"

#define FILE_MAX ((size_t)1 << 20)

/* A file has a host at the begin of each line; else each second word is one: "a 4 b 4". */
static const struct {
    const char *variable;
    bool file;
} systems[] = {
    {"PBS_NODEFILE", true},    /* PBS, Torque: a line for each slot */
    {"LSB_MCPU_HOSTS", false}, /* LSF */
    {"PE_HOSTFILE", true},     /* Grid Engine: host, slots, queue, CPUs */
};

static void add_once(struct strlist *hosts, const char *name)
{
    if (!strlist_has(hosts, name))
        strlist_add(hosts, name);
}

static void hosts_of_file(const char *path, struct strlist *hosts)
{
    static const char blanks[] = " \t\r";
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    char *rest = NULL;
    if (file_read_named(path, FILE_MAX, &text, NULL) < 0 || text.len == 0)
        return;
    for (char *line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        line += strspn(line, blanks);
        line[strcspn(line, blanks)] = '\0';
        if (*line && *line != '#')
            add_once(hosts, line);
    }
}

static void hosts_of_words(const char *text, struct strlist *hosts)
{
    cleanup_free char *copy = strdup(text);
    char *rest = NULL;
    bool host = true;
    for (char *word = copy ? strtok_r(copy, " ", &rest) : NULL; word;
         word = strtok_r(NULL, " ", &rest), host = !host)
        if (host)
            add_once(hosts, word);
}

uint32_t batch_hosts_count(const char **ret_variable)
{
    for (size_t i = 0; i < ARRAY_LEN(systems); i++) {
        CLEANUP(strlist_done) struct strlist hosts = STRLIST_INIT;
        const char *value = getenv(systems[i].variable);
        if (!value || !*value)
            continue;
        if (systems[i].file)
            hosts_of_file(value, &hosts);
        else
            hosts_of_words(value, &hosts);
        *ret_variable = systems[i].variable;
        if (hosts.count > 0)
            return (uint32_t)hosts.count;
    }
    return 0;
}

/* What runs on a node has its name as Slurm knows it, which need not be the host's. */
const char *batch_hosts_other(void)
{
    const char *count = getenv("SLURM_JOB_NUM_NODES"), *host = getenv("SLURM_JOB_NODELIST");
    if (!count || strcmp(count, "1") != 0 || !host || !*host || getenv("SLURMD_NODENAME"))
        return NULL;
    return hosts_is_here(host) ? NULL : host;
}
