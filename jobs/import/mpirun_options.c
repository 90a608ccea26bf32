/* SPDX-License-Identifier: Apache-2.0 */
/* mpirun's options, and those of its like. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/foreign/options.h"
#include "jobs/import/mpirun.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"
#include "lib/base/unconst.h"

enum option_role { /* what becomes of an option; 0: nothing, which a remark says */
                   ROLE_RANKS = 1,
                   ROLE_EACH,     /* ranks of each node */
                   ROLE_EACH_ONE, /* one */
                   ROLE_NODES,
                   ROLE_MAP_BY,
                   ROLE_PPR,
                   ROLE_BY_NODE,
                   ROLE_EXCEED,
                   ROLE_HOSTS,
                   ROLE_HOSTFILE,
                   ROLE_BIND,
                   ROLE_X,
                   ROLE_VARIABLE,
                   ROLE_MCA,
                   ROLE_DIRECTORY,
                   ROLE_INHERIT_ALL,
                   ROLE_INHERIT_LIST,
                   ROLE_INHERIT_NONE,
                   ROLE_PATH,
                   ROLE_PREFIX,
                   ROLE_TIMEOUT,
                   ROLE_REFUSED,
};

static const struct {
    unsigned int from;
    const char *words;
    enum option_role role;
    const char *text; /* ROLE_REFUSED: why */
} roles[] = {
    {FOREIGN_MPI | FOREIGN_SRUN, "n np ntasks", ROLE_RANKS, NULL},
    {FOREIGN_HOROVOD, "np num-proc", ROLE_RANKS, NULL},
    {FOREIGN_MPIRUN, "c", ROLE_RANKS, NULL},
    {FOREIGN_MPI, "ppn npernode perhost grr", ROLE_EACH, NULL},
    {FOREIGN_MPIRUN, "N", ROLE_EACH, NULL},
    {FOREIGN_SRUN, "ntasks-per-node tasks-per-node", ROLE_EACH, NULL},
    {FOREIGN_MPI, "pernode rr", ROLE_EACH_ONE, NULL},
    {FOREIGN_SRUN, "N nodes", ROLE_NODES, NULL},
    {FOREIGN_MPI, "map-by", ROLE_MAP_BY, NULL},
    {FOREIGN_SRUN, "m distribution", ROLE_MAP_BY, NULL},
    {FOREIGN_MPIRUN, "ppr", ROLE_PPR, NULL},
    {FOREIGN_MPIRUN, "bynode", ROLE_BY_NODE, NULL},
    {FOREIGN_MPIRUN | FOREIGN_SRUN, "oversubscribe overcommit O", ROLE_EXCEED, NULL},
    {FOREIGN_MPI, "H host hosts hostlist machine machines machinelist", ROLE_HOSTS, NULL},
    {FOREIGN_SRUN, "w nodelist", ROLE_HOSTS, NULL},
    {FOREIGN_HOROVOD, "H hosts", ROLE_HOSTS, NULL},
    {FOREIGN_MPI | FOREIGN_HOROVOD, "hostfile machinefile default-hostfile f", ROLE_HOSTFILE, NULL},
    {FOREIGN_MPI, "bind-to", ROLE_BIND, NULL},
    {FOREIGN_MPIRUN, "x set-env", ROLE_X, NULL},
    {FOREIGN_HYDRA, "env genv", ROLE_VARIABLE, NULL},
    {FOREIGN_MPIRUN, "mca gmca omca gomca prtemca", ROLE_MCA, NULL},
    {FOREIGN_MPI | FOREIGN_SRUN, "wdir wd gwdir D chdir", ROLE_DIRECTORY, NULL},
    {FOREIGN_HYDRA, "genvall envall", ROLE_INHERIT_ALL, NULL},
    {FOREIGN_HYDRA, "genvlist envlist", ROLE_INHERIT_LIST, NULL},
    {FOREIGN_HYDRA, "genvnone envnone", ROLE_INHERIT_NONE, NULL},
    {FOREIGN_SRUN, "export", ROLE_INHERIT_LIST, NULL},
    {FOREIGN_MPI, "path gpath", ROLE_PATH, NULL},
    {FOREIGN_MPIRUN, "prefix", ROLE_PREFIX, NULL},
    {FOREIGN_MPIRUN, "timeout", ROLE_TIMEOUT, NULL},
    {FOREIGN_MPI, "rankfile rf rankmap rr-list npersocket max-vm-size cpus-per-proc cpus-per-rank",
     ROLE_REFUSED, "places ranks in a way that a job of equal workers does not have"},
    {FOREIGN_SRUN, "ntasks-per-socket ntasks-per-core ntasks-per-gpu", ROLE_REFUSED,
     "places ranks in a way that a job of equal workers does not have"},
    {FOREIGN_MPI | FOREIGN_SRUN, "app configfile multi-prog het-group pack-group", ROLE_REFUSED,
     "starts several programs, and a job runs one"},
    {FOREIGN_HOROVOD, "gloo jsrun", ROLE_REFUSED,
     "starts ranks that meet without MPI, and drarun serves MPI's ranks: Horovod must have MPI "
     "(horovodrun --check-build)"},
    {FOREIGN_HOROVOD,
     "min-np min-num-proc max-np max-num-proc slots-per-host slots elastic-timeout reset-limit "
     "host-discovery-script blacklist-cooldown-range",
     ROLE_REFUSED, "is for elastic jobs, and this job has a fixed number of ranks"},
    {FOREIGN_HOROVOD, "config-file mpi-args", ROLE_REFUSED,
     "has options that are not read here: write them as mpirun's or horovodrun's own"},
    {FOREIGN_HOROVOD, "fusion-threshold-mb", ROLE_REFUSED,
     "is the variable HOROVOD_FUSION_THRESHOLD in bytes: set that in its place"},
};

static bool is_in(const char *words, const char *text)
{
    return words_index(words, text, strlen(text)) >= 0;
}

static const char *option_name(const char *option)
{
    return option + strspn(option, "-");
}

/* "ppr:2:node:pe=4", "node:PE=2", "slot". */
static int take_mapping(struct mpirun *m, const char *option, const char *text)
{
    static const char usual[] = "slot core hwthread numa socket package l1cache l2cache l3cache "
                                "block block:block user rr machine";
    char word[64];
    unsigned long long each = 0;
    const char *rest = text;
    if (strncmp(text, "ppr:", strlen("ppr:")) == 0)
        rest = text + strlen("ppr:");
    if (rest != text || strcmp(option_name(option), "ppr") == 0) {
        char *end = NULL;
        each = strtoull(rest, &end, 10);
        if (each == 0 || each > UINT32_MAX || *end != ':')
            return mpirun_refuse(m, "%s %s %s: expected ppr:N:node", m->name, option, text);
        rest = end + 1;
    }
    snprintf(word, sizeof word, "%.*s", (int)strcspn(rest, ":,"), rest);
    m->ranks.may_exceed |=
        strcasestr(rest, "oversubscribe") && !strcasestr(rest, "nooversubscribe");
    if (each > 0 && strcmp(word, "node") != 0)
        return mpirun_refuse(m,
                             "%s %s %s: the number of ranks on a node depends on its hardware; "
                             "give it by -np and ppr:N:node",
                             m->name, option, text);
    m->ranks_said = true;
    if (each > 0)
        m->ranks.each = each;
    else if (strcmp(word, "node") == 0 || strncmp(word, "cyclic", strlen("cyclic")) == 0)
        m->ranks.by_node = true;
    else if (*word && !is_in(usual, word))
        return mpirun_refuse(m, "%s %s %s: unknown placement; " MPIRUN_INSTEAD, m->name, option,
                             text);
    reader_fail(m->node, "%s %s %s: %s", m->name, option, text,
                m->ranks.by_node ? "ranks fill a worker before the next one, which changes their "
                                   "order, not their number on each"
                                 : "ranks fill a worker before the next one; drarun run --bind "
                                   "binds them to CPUs");
    return 0;
}

/* NAME=VALUE, or NAME of the launcher. */
static int take_x(struct mpirun *m, const char *option, const struct field *value)
{
    const char *raw = value->raw;
    assert(raw);
    if (!value->text) {
        const char *equals = strchr(raw, '=');
        if (value->worth == SHELL_COMPUTED || !equals || strspn(raw, "\"") > 0)
            return mpirun_refuse(
                m, "%s %s %s: only the launcher's shell knows the value %s; " MPIRUN_INSTEAD,
                m->name, option, raw, value->culprit);
        m->needs_shell = true; /* as LD_LIBRARY_PATH=/lib:$LD_LIBRARY_PATH */
        strlist_addf(&m->lines, "export %s", raw);
        return 0;
    }
    const char *equals = strchr(value->text, '=');
    cleanup_free char *name =
        strndup(value->text, equals ? (size_t)(equals - value->text) : strlen(value->text));
    if (!name)
        return error_set(m->err, ENOMEM, "out of memory");
    struct launcher_variable *v = launcher_env_find(&m->env, name);
    if (v && equals)
        v->is_used = true;
    if (equals)
        mpirun_take_variable(m, name, equals + 1);
    else
        mpirun_hand_on_name(m, name);
    return 0;
}

/* Hydra's NAME VALUE, or NAME=VALUE in one word (foreign_option_values). */
static int take_pair(struct mpirun *m, const char *option, const struct field values[2])
{
    const char *name = NULL, *value = NULL;
    int rc = mpirun_need_text(m, option, &values[0], &name);
    if (rc == 0 && values[1].raw)
        rc = mpirun_need_text(m, option, &values[1], &value);
    if (rc < 0)
        return rc;
    cleanup_free char *own = strndup(name, value ? strlen(name) : strcspn(name, "="));
    if (!own)
        return error_set(m->err, ENOMEM, "out of memory");
    mpirun_take_variable(m, own, value ? value : name + strlen(own) + 1);
    return 0;
}

static void join_directory(struct buf *directory, const char *path)
{
    if (*path == '/')
        buf_reset(directory);
    else if (directory->len > 0)
        buf_add_str(directory, "/");
    buf_add_str(directory, path);
}

static bool is_known_directory(const struct mpirun *m, const char *path)
{
    return *path == '/' || m->directory.len > 0;
}

void mpirun_change_directory(struct mpirun *m, const char *path)
{
    if (is_known_directory(m, path) && !m->needs_shell) {
        join_directory(&m->directory, path);
        return;
    }
    struct buf line = BUF_INIT;
    buf_add_str(&line, "cd ");
    shell_quote(path, &line);
    mpirun_add_line_take(m, &line);
    m->needs_shell = true;
}

static void set_inherited(struct mpirun *m, const char *text)
{
    m->inherits = false;
    m->inherits_said = true;
    for (const char *p = text; *p; p += strspn(p, ",")) {
        size_t n = strcspn(p, ",");
        cleanup_free char *name = strndup(p, n);
        const char *equals = name ? strchr(name, '=') : NULL;
        m->env.failed |= !name;
        if (!name || strcmp(name, "NONE") == 0) {
            /* none of them */
        } else if (strcmp(name, "ALL") == 0) {
            m->inherits = true;
        } else if (equals) {
            name[equals - name] = '\0';
            mpirun_take_variable(m, name, equals + 1);
        } else {
            mpirun_hand_on_name(m, name);
        }
        p += n;
    }
}

static int role_of(unsigned int from, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(roles); i++)
        if ((roles[i].from & from) && is_in(roles[i].words, name))
            return (int)i;
    return -1;
}

/* "NAME=VALUE", or NAME whose value is the option's. */
static int take_its_variable(struct mpirun *m, const struct foreign_option *found,
                             const char *option, const struct field *value)
{
    const char *equals = strchr(found->text, '='), *text = equals ? equals + 1 : NULL;
    cleanup_free char *name =
        strndup(found->text, equals ? (size_t)(equals - found->text) : strlen(found->text));
    int rc = equals ? 0 : mpirun_need_text(m, option, value, &text);
    if (rc == 0 && !name)
        rc = error_set(m->err, ENOMEM, "out of memory");
    if (rc == 0)
        mpirun_take_variable(m, name, text);
    return rc;
}

/* The shorter time where the workload has a deadline, too. */
void mpirun_take_seconds(const struct mpirun *m, const char *what, uint64_t seconds)
{
    json_t *timeouts = import_child(m->im->job, "timeouts");
    const char *total = json_string_value(json_object_get(timeouts, "total"));
    unsigned long long deadline = total ? strtoull(total, NULL, 10) : seconds;
    if (deadline < seconds) {
        reader_fail(m->node, "%s is left out: another limit ends the job after %llu s already",
                    what, deadline);
        return;
    }
    json_object_set_new(timeouts, "total", json_sprintf("%" PRIu64 "s", seconds));
    reader_fail(m->node,
                "%s is now timeouts.total, which counts from the start of the job, its pods' "
                "included",
                what);
}

static int take_timeout(struct mpirun *m, const char *option, const struct field *value)
{
    uint64_t seconds = 0;
    int rc = mpirun_need_number(m, option, value, &seconds);
    if (rc < 0)
        return rc;
    char what[64];
    snprintf(what, sizeof what, "%s %s %" PRIu64, m->name, option, seconds);
    mpirun_take_seconds(m, what, seconds);
    return 0;
}

/* What a job has for an option that is not carried over. */
static const char *instead_of(const struct foreign_option *found, const struct field *value)
{
    static const char files[] = "; what ranks print is the job's log: drarun run --output-dir DIR "
                                "also keeps a file for each rank, --label tags its lines";
    static const struct {
        const char *ours, *text;
    } list[] = {
        {"--on-rank-failure", "; failurePolicy: {onRankFailure: continue} lets ranks fail alone"},
        {"--timeout", "; timeouts: {total: TIME} ends the job after it"},
        {"--report-bindings", "; reportBindings: true reports where each rank runs"},
        {"--signal", "; timeouts: {total: TIME, signal: SIGUSR1} sends one before the end"},
        {"--output-dir", files},
        {"--output json prints the report; --output-dir", files},
        {"--output is the form of the report", files},
        {"ranks fill a worker before the next one",
         "; ranks are numbered worker after worker, which may change their order"},
    };
    bool is_so = found->way == FOREIGN_SO &&
                 (!found->values || (value->text && is_in(found->values, value->text)));
    for (size_t i = 0; !is_so && i < ARRAY_LEN(list); i++)
        if (strncmp(found->text, list[i].ours, strlen(list[i].ours)) == 0)
            return list[i].text;
    return ", not needed";
}

static int use_option(struct mpirun *m, const char *option, const struct foreign_option *found,
                      const char *name, const struct field values[2])
{
    const char *text = NULL, *second = NULL;
    int at = role_of(found->from & m->from, name), rc = 0;
    if (found->way == FOREIGN_SETS)
        return take_its_variable(m, found, option, &values[0]);
    switch (at < 0 ? 0 : (int)roles[at].role) {
    case ROLE_RANKS:
        m->ranks_said = true;
        return mpirun_need_number(m, option, &values[0], &m->ranks.ranks);
    case ROLE_EACH:
        m->ranks_said = true;
        return mpirun_need_number(m, option, &values[0], &m->ranks.each);
    case ROLE_EACH_ONE:
        m->ranks_said = true;
        m->ranks.each = 1;
        return 0;
    case ROLE_NODES:
        m->ranks_said = true;
        return mpirun_need_number(m, option, &values[0], &m->ranks.nodes);
    case ROLE_MAP_BY:
    case ROLE_PPR:
        rc = mpirun_need_text(m, option, &values[0], &text);
        return rc < 0 ? rc : take_mapping(m, option, text);
    case ROLE_BY_NODE:
        return take_mapping(m, option, "node");
    case ROLE_EXCEED:
        m->ranks.may_exceed = true;
        return 0;
    case ROLE_HOSTS:
        return mpirun_take_hosts(m, option, &values[0]);
    case ROLE_HOSTFILE:
        return mpirun_take_hostfile(m, option, &values[0]);
    case ROLE_BIND:
        reader_fail(m->node,
                    "%s %s %s: ranks are bound near their GPUs; drarun run --bind changes it",
                    m->name, option, values[0].raw);
        return 0;
    case ROLE_X:
        return take_x(m, option, &values[0]);
    case ROLE_VARIABLE:
        return take_pair(m, option, values);
    case ROLE_MCA:
        rc = mpirun_need_text(m, option, &values[0], &text);
        if (rc == 0)
            rc = mpirun_need_text(m, option, &values[1], &second);
        if (rc == 0)
            mpirun_take_mca(m, text, second);
        return rc;
    case ROLE_DIRECTORY:
        rc = mpirun_need_text(m, option, &values[0], &text);
        if (rc == 0)
            mpirun_change_directory(m, text);
        return rc;
    case ROLE_INHERIT_ALL:
    case ROLE_INHERIT_NONE:
        m->inherits = roles[at].role == ROLE_INHERIT_ALL;
        m->inherits_said = true;
        return 0;
    case ROLE_INHERIT_LIST:
        rc = mpirun_need_text(m, option, &values[0], &text);
        if (rc == 0)
            set_inherited(m, text);
        return rc;
    case ROLE_PATH:
        rc = mpirun_need_text(m, option, &values[0], &text);
        if (rc < 0)
            return rc;
        m->needs_shell = true;
        strlist_addf(&m->lines, "export PATH=%s:$PATH", text);
        return 0;
    case ROLE_PREFIX:
        reader_fail(m->node,
                    "%s %s %s: not carried over, nothing of mpirun is used; a program that finds "
                    "its MPI library by it alone needs LD_LIBRARY_PATH",
                    m->name, option, values[0].raw);
        return 0;
    case ROLE_TIMEOUT:
        return take_timeout(m, option, &values[0]);
    case ROLE_REFUSED:
        return mpirun_refuse(m, "%s %s %s; " MPIRUN_INSTEAD, m->name, option, roles[at].text);
    default:
        reader_fail(m->node, "%s %s%s%s: not carried over%s", m->name, option,
                    values[0].raw ? " " : "", values[0].raw ? values[0].raw : "",
                    instead_of(found, &values[0]));
        return 0;
    }
}

/* The entry for a word as it was typed; ret_name without dashes and value. What the launcher is
 * said to be decides first, then what another one knows. */
static const struct foreign_option *find_option(struct mpirun *m, const char *word, char *ret_name,
                                                size_t size, const char **ret_value)
{
    const char *name = option_name(word), *equals = strchr(name, '=');
    const struct foreign_option *found = NULL;
    snprintf(ret_name, size, "%.*s", equals ? (int)(equals - name) : (int)strlen(name), name);
    *ret_value = equals ? equals + 1 : NULL;
    for (int glued = 0; glued < 2; glued++) {
        found = foreign_option_named(m->prefer, ret_name);
        if (!found && (found = foreign_option_named(m->from, ret_name)))
            m->prefer = found->from & m->from; /* it is that launcher */
        if (found || word[1] == '-' || name[0] == '\0' || name[1] < '0' || name[1] > '9')
            break;
        snprintf(ret_name, size, "%c", name[0]); /* -n4 */
        *ret_value = name + 1;
    }
    return found;
}

/* Two releases of the launcher may give an option different numbers of words. */
static bool is_ambiguous(const struct mpirun *m, const struct foreign_option *found,
                         const char *name)
{
    for (size_t i = 0; i < foreign_option_count; i++) {
        const struct foreign_option *other = &foreign_options[i];
        if ((other->from & m->prefer) && other->values_after != found->values_after &&
            is_in(other->words, name))
            return true;
    }
    return false;
}

static size_t count_values(const struct foreign_option *option, const struct field *first)
{
    return foreign_option_values(option, first->text ? first->text : first->raw);
}

int mpirun_take_options(struct mpirun *m, size_t *ret_used)
{
    size_t i = 0;
    while (i < m->count) {
        const struct field *f = &m->fields[i];
        char name[64];
        const char *glued = NULL;
        struct field values[2] = {{0}};
        if (!f->text && (f->raw[0] == '$' || f->raw[0] == '`' || strncmp(f->raw, "\"$", 2) == 0) &&
            !strchr(f->raw, '/'))
            return mpirun_refuse(
                m,
                "%s's words come from %s, which only the launcher's shell knows; " MPIRUN_INSTEAD,
                m->name, f->culprit);
        if (!f->text || f->text[0] != '-' || !f->text[1])
            break;
        i++;
        if (strcmp(f->text, "--") == 0)
            break;
        const struct foreign_option *option = find_option(m, f->text, name, sizeof name, &glued);
        if (!option)
            return mpirun_refuse(m,
                                 "%s has an unknown option %s, so drarun cannot tell where the "
                                 "program begins; remove the option, or " MPIRUN_INSTEAD,
                                 m->name, f->text);
        if (is_ambiguous(m, option, name))
            return mpirun_refuse(m,
                                 "%s %s has a value in one release of the launcher and none in "
                                 "another, so drarun cannot tell where the program begins; take it "
                                 "out, or " MPIRUN_INSTEAD,
                                 m->name, f->text);
        size_t given = 0;
        struct field first = {unconst(glued), glued, NULL, SHELL_LITERAL};
        if (glued)
            values[given++] = first;
        for (; given < count_values(option, &values[0]) && i < m->count; given++)
            values[given] = m->fields[i++];
        if (given < count_values(option, &values[0]))
            break; /* and no program follows */
        int rc = use_option(m, f->text, option, name, values);
        if (rc < 0)
            return rc;
    }
    *ret_used = i;
    return 0;
}

size_t mpirun_past_options(struct mpirun *m, size_t i, uint64_t *ret_ranks)
{
    *ret_ranks = 0;
    while (i < m->count && m->fields[i].text && m->fields[i].text[0] == '-') {
        char name[64];
        const char *value = NULL;
        const struct foreign_option *option =
            find_option(m, m->fields[i].text, name, sizeof name, &value);
        if (!option)
            return m->count;
        size_t words = option->values_after - (value && option->values_after ? 1u : 0u);
        if (!value && words > 0 && i + 1 < m->count)
            value = m->fields[i + 1].text;
        int at = role_of(option->from & m->from, name);
        if (at < 0 || roles[at].role != ROLE_RANKS)
            return m->count;
        *ret_ranks = value ? strtoull(value, NULL, 10) : 0;
        i += 1 + words;
    }
    return i;
}

size_t mpirun_find_program(struct mpirun *m, const struct strlist *words, size_t i)
{
    unsigned int prefer = m->prefer; /* of the line that is taken */
    while (i < words->count && words->items[i][0] == '-') {
        char name[64];
        const char *value = NULL;
        const struct foreign_option *option =
            find_option(m, words->items[i], name, sizeof name, &value);
        size_t glued = value && option && option->values_after ? 1 : 0;
        const char *first = value ? value : i + 1 < words->count ? words->items[i + 1] : NULL;
        i = option ? i + 1 + foreign_option_values(option, first) - glued : words->count;
    }
    m->prefer = prefer;
    return i < words->count ? i : words->count;
}
