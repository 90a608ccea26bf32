/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher of an MPIJob: what stands behind mpirun is the ranks' program, and the options and
 * the script before it say how many ranks there are and what they inherit. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/foreign_options.h"
#include "jobs/import_launcher.h"
#include "jobs/import_ranks.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"

#define INSTEAD                                                                                    \
    "give the ranks' program behind the file (drarun import FILE -- PROGRAM), or run the "         \
    "launcher's command as it is with launch: mpirun"

/* Frameworks of Open MPI's own launcher: nothing of the ranks reads them. */
static const char launcher_mca[] =
    "routed plm oob ess odls rmaps ras grpcomm rml iof state errmgr filem orte prte rtc schizo";

/* Programs that start their arguments as they are: how many words of their own they have, and
 * which of their options have a value. */
static const struct wrapper {
    const char *names;
    size_t words;
    const char *valued;
} wrappers[] = {
    {"exec time nohup command tini dumb-init setsid catchsegv", 0, ""},
    {"nice stdbuf", 0, "-n -i -o -e"},
    {"timeout", 1, "-k -s"},
    {"gosu su-exec", 1, ""},
};

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
                   ROLE_REFUSED,
};

static const struct {
    unsigned int from;
    const char *words;
    enum option_role role;
    const char *text; /* ROLE_REFUSED: why */
} roles[] = {
    {FOREIGN_MPI | FOREIGN_SRUN, "n np ntasks", ROLE_RANKS, NULL},
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
    {FOREIGN_MPI, "rankfile rf rankmap rr-list npersocket max-vm-size cpus-per-proc cpus-per-rank",
     ROLE_REFUSED, "places ranks in a way that a job of equal workers does not have"},
    {FOREIGN_SRUN, "ntasks-per-socket ntasks-per-core ntasks-per-gpu", ROLE_REFUSED,
     "places ranks in a way that a job of equal workers does not have"},
    {FOREIGN_MPI | FOREIGN_SRUN, "app configfile multi-prog het-group pack-group", ROLE_REFUSED,
     "starts several programs, and a job runs one"},
};

/* A word of the line: its text where that is known. */
struct field {
    char *text; /* NULL: not LITERAL */
    const char *raw;
    char *culprit;
    enum shell_worth worth;
};

struct mpirun {
    struct import *im;
    const struct reader_node *node; /* of the remarks */
    const char *name;               /* as it was typed: "mpirun" */
    unsigned int from, prefer;      /* which launchers it may be, and is */
    bool inherits, inherits_said;   /* Hydra and srun: the launcher's variables */
    struct launcher_env env;
    struct import_ranks ranks;
    bool ranks_said;
    struct strlist shell; /* "/bin/bash", "-lc"; empty: no shell */
    struct strlist lines; /* of a script before the program, where one is needed */
    bool needs_shell;
    struct buf directory;
    struct field *fields;
    size_t count;
    json_t *container;
    struct drarun_error *err;
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_in(const char *words, const char *text)
{
    return words_index(words, text, strlen(text)) >= 0;
}

static const char *option_name(const char *option)
{
    return option + strspn(option, "-");
}

__attribute__((format(printf, 2, 3))) static int refuse(const struct mpirun *m, const char *format,
                                                        ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_kind(m->err, DRARUN_ERR_SPEC, EINVAL, "%s:%u: %s", doc_name(m->node->reader->doc),
                      import_place(m->node).line, text);
}

/* ---- variables of the ranks ---- */

/* The one that the launcher hands on takes the place of the container's own. */
static void set_entry(json_t *container, json_t *entry)
{
    json_t *env = json_object_get(container, "env"), *item = NULL;
    const char *name = json_string_value(json_object_get(entry, "name"));
    size_t i;
    if (!env) {
        env = json_array();
        json_object_set_new(container, "env", env);
    }
    json_array_foreach(env, i, item)
    {
        const char *other = json_string_value(json_object_get(item, "name"));
        if (other && name && strcmp(other, name) == 0) {
            json_array_set(env, i, entry);
            return;
        }
    }
    json_array_append(env, entry);
}

static void set_env(json_t *container, const char *name, const char *value)
{
    json_t *entry = json_pack("{s:s, s:s}", "name", name, "value", value);
    set_entry(container, entry);
    json_decref(entry);
}

/* As a variable of the container: what is derived goes, what steers NCCL moves to nccl.env. */
static void take_variable(const struct mpirun *m, const char *name, const char *value)
{
    switch (import_variable(name)) {
    case IMPORT_VARIABLE_DERIVED:
        reader_fail(m->node,
                    "%s's %s=%s is left out: it is derived from what the worker holds; "
                    "nccl.env would set it all the same",
                    m->name, name, value);
        return;
    case IMPORT_VARIABLE_OWN:
        reader_fail(m->node, "%s's %s=%s is left out: each rank gets its own", m->name, name,
                    value);
        return;
    case IMPORT_VARIABLE_OTHER:
        break;
    }
    if (strncmp(name, "NCCL_", strlen("NCCL_")) != 0)
        set_env(m->container, name, value);
    else
        import_nccl_variable(m->node, name, value, m->im->job);
}

static void take_mca(const struct mpirun *m, const char *key, const char *value)
{
    char framework[64], name[128];
    snprintf(framework, sizeof framework, "%.*s", (int)strcspn(key, "_"), key);
    if (is_in(launcher_mca, framework)) {
        reader_fail(m->node, "mpirun --mca %s %s: a parameter of mpirun's own daemons, not needed",
                    key, value);
        return;
    }
    snprintf(name, sizeof name, "OMPI_MCA_%s", key);
    set_env(m->container, name, value);
    reader_fail(m->node, "mpirun --mca %s %s is now the variable %s", key, value, name);
}

/* A variable of the launcher that reaches the ranks. */
static void hand_on(struct mpirun *m, struct launcher_variable *v)
{
    v->is_used = true;
    if (v->value && strncmp(v->name, "OMPI_MCA_", strlen("OMPI_MCA_")) == 0) {
        char framework[64];
        const char *key = v->name + strlen("OMPI_MCA_");
        snprintf(framework, sizeof framework, "%.*s", (int)strcspn(key, "_"), key);
        if (is_in(launcher_mca, framework))
            reader_fail(m->node, "the launcher's %s is left out: mpirun's own daemons read it",
                        v->name);
        else
            set_env(m->container, v->name, v->value);
    } else if (v->entry) {
        json_t *from = json_object_get(v->entry, "valueFrom");
        if (json_object_get(from, "fieldRef") || json_object_get(from, "resourceFieldRef"))
            reader_fail(m->node, "the launcher's %s is left out: it describes the launcher's pod",
                        v->name);
        else
            set_entry(m->container, v->entry);
    } else if (v->value) {
        take_variable(m, v->name, v->value);
    } else if (v->worth == SHELL_KEPT && v->is_own) {
        m->needs_shell = true;
        strlist_addf(&m->lines, "export %s", v->name);
    } else if (import_variable(v->name) == IMPORT_VARIABLE_OTHER) {
        reader_fail(m->node,
                    "the variable %s is left out: the launcher's script computes its value",
                    v->name);
    }
}

/* Variables of ConfigMaps and Secrets that are not at hand, all of them. */
static void hand_on_sources(struct mpirun *m)
{
    json_t *list = json_object_get(m->container, "envFrom");
    if (json_array_size(m->env.sources) == 0)
        return;
    if (!list) {
        list = json_array();
        json_object_set_new(m->container, "envFrom", list);
    }
    json_array_extend(list, m->env.sources);
    json_array_clear(m->env.sources);
    reader_fail(m->node, "the launcher's envFrom is the workers' too, with all of its variables");
}

static void hand_on_name(struct mpirun *m, const char *name)
{
    size_t length = strlen(name), found = 0;
    bool is_prefix = length > 0 && name[length - 1] == '*';
    for (size_t i = 0; i < m->env.count; i++) {
        struct launcher_variable *v = &m->env.list[i];
        if (is_prefix ? strncmp(v->name, name, length - 1) != 0 : strcmp(v->name, name) != 0)
            continue;
        hand_on(m, v);
        found++;
    }
    if (found == 0 && json_array_size(m->env.sources) > 0)
        hand_on_sources(m);
    else if (found == 0)
        reader_fail(m->node,
                    "%s -x %s: nothing in the manifest sets it for the launcher; ranks have what "
                    "their image says",
                    m->name, name);
}

/* What Hydra and srun hand on without being told; Open MPI: its own parameters alone. */
static void hand_on_rest(struct mpirun *m)
{
    struct buf lost = BUF_INIT;
    for (size_t i = 0; i < m->env.count; i++) {
        struct launcher_variable *v = &m->env.list[i];
        bool is_parameter =
            strncmp(v->name, "OMPI_MCA_", strlen("OMPI_MCA_")) == 0 && !(m->prefer & FOREIGN_HYDRA);
        if (v->is_exported && !v->is_used && (m->inherits || is_parameter))
            hand_on(m, v);
        else if (!v->is_used && (v->is_exported || !v->is_own))
            buf_printf(&lost, "%s%s", lost.len ? ", " : "", v->name);
    }
    if (m->inherits)
        hand_on_sources(m);
    if (lost.len)
        reader_fail(m->node,
                    "the launcher's variables %.300s are left out: %s does not hand them on",
                    lost.data, m->name);
    if (json_array_size(m->env.sources) > 0)
        reader_fail(m->node, "the launcher's envFrom is left out: %s does not hand it on", m->name);
    buf_done(&lost);
}

/* ---- words ---- */

static int add_field(struct mpirun *m, const char *text, const char *raw, const char *culprit,
                     enum shell_worth worth)
{
    struct field *more = realloc(m->fields, (m->count + 1) * sizeof *more);
    if (!more)
        return error_set(m->err, ENOMEM, "out of memory");
    m->fields = more;
    m->fields[m->count++] =
        (struct field){text ? strdup(text) : NULL, raw, culprit ? strdup(culprit) : NULL, worth};
    return 0;
}

static int expand_word(struct mpirun *m, const char *raw)
{
    struct strlist fields = STRLIST_INIT;
    struct buf culprit = BUF_INIT;
    enum shell_worth worth = shell_expand(raw, launcher_env_look_up, &m->env, &fields, &culprit);
    int rc = 0;
    if (worth != SHELL_LITERAL)
        rc = add_field(m, NULL, raw, culprit.data, worth);
    for (size_t i = 0; rc == 0 && i < fields.count; i++)
        rc = add_field(m, fields.items[i], raw, NULL, worth);
    strlist_done(&fields);
    buf_done(&culprit);
    return rc;
}

static int need_text(const struct mpirun *m, const char *option, const struct field *value,
                     const char **ret_text)
{
    if (!value->text)
        return refuse(m, "%s %s: the value %s is known to the launcher's shell alone; " INSTEAD,
                      m->name, option, value->culprit);
    *ret_text = value->text;
    return 0;
}

static int need_number(const struct mpirun *m, const char *option, const struct field *value,
                       uint64_t *ret_number)
{
    const char *text = NULL;
    char *end = NULL;
    int rc = need_text(m, option, value, &text);
    if (rc < 0)
        return rc;
    unsigned long long number = strtoull(text, &end, 10);
    if (!(*text >= '0' && *text <= '9') || *end || number == 0 || number > UINT32_MAX)
        return refuse(m, "%s %s %s: expected a number of at least 1", m->name, option, text);
    *ret_number = number;
    return 0;
}

/* ---- options ---- */

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
            return refuse(m, "%s %s %s: expected ppr:N:node", m->name, option, text);
        rest = end + 1;
    }
    snprintf(word, sizeof word, "%.*s", (int)strcspn(rest, ":,"), rest);
    m->ranks.may_exceed |=
        strcasestr(rest, "oversubscribe") && !strcasestr(rest, "nooversubscribe");
    if (each > 0 && strcmp(word, "node") != 0)
        return refuse(m,
                      "%s %s %s: how many ranks a node gets depends on its hardware; say it by "
                      "-np and ppr:N:node",
                      m->name, option, text);
    m->ranks_said = true;
    if (each > 0)
        m->ranks.each = each;
    else if (strcmp(word, "node") == 0 || strncmp(word, "cyclic", strlen("cyclic")) == 0)
        m->ranks.by_node = true;
    else if (*word && !is_in(usual, word))
        return refuse(m, "%s %s %s: such a placement is not known here; " INSTEAD, m->name, option,
                      text);
    reader_fail(m->node, "%s %s %s: %s", m->name, option, text,
                m->ranks.by_node ? "ranks fill a worker before the next one, which changes their "
                                   "order, not their number on each"
                                 : "the CPUs of ranks are theirs by drarun run --bind");
    return 0;
}

/* Hosts that are named are all workers, or too few. */
static int take_hosts(struct mpirun *m, const char *option, const struct field *value)
{
    uint64_t hosts = value->text && *value->text ? 1 : 0;
    bool is_list = hosts > 0 && !strchr(value->text, '/') && !strchr(value->text, '[');
    for (const char *p = is_list ? value->text : ""; *p; p++)
        hosts += *p == ',';
    if (is_list && hosts < m->ranks.workers)
        return refuse(m,
                      "%s %s %s: %" PRIu64 " of %" PRIu64
                      " workers are named, and a job's workers all run ranks; set their number to "
                      "it",
                      m->name, option, value->text, hosts, m->ranks.workers);
    reader_fail(m->node, "%s %s %s: no hostfile; drarun knows its workers", m->name, option,
                value->text ? value->text : value->raw);
    return 0;
}

/* NAME=VALUE, or NAME of the launcher. */
static int take_x(struct mpirun *m, const char *option, const struct field *value)
{
    const char *raw = value->raw;
    if (!value->text) {
        const char *equals = strchr(raw, '=');
        if (value->worth == SHELL_COMPUTED || !equals || strspn(raw, "\"") > 0)
            return refuse(m,
                          "%s %s %s: the value %s is known to the launcher's shell alone; " INSTEAD,
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
        take_variable(m, name, equals + 1);
    else
        hand_on_name(m, name);
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

static void change_directory(struct mpirun *m, const char *path)
{
    if (is_known_directory(m, path) && !m->needs_shell) {
        join_directory(&m->directory, path);
        return;
    }
    struct buf line = BUF_INIT;
    buf_add_str(&line, "cd ");
    shell_quote(path, &line);
    strlist_add(&m->lines, line.data ? line.data : "");
    buf_done(&line);
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
        if (!name || strcmp(name, "NONE") == 0) {
            /* none of them */
        } else if (strcmp(name, "ALL") == 0) {
            m->inherits = true;
        } else if (equals) {
            name[equals - name] = '\0';
            take_variable(m, name, equals + 1);
        } else {
            hand_on_name(m, name);
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

static int use_option(struct mpirun *m, const char *option, unsigned int from, const char *name,
                      const struct field values[2])
{
    const char *text = NULL, *second = NULL;
    int at = role_of(from, name), rc = 0;
    switch (at < 0 ? 0 : (int)roles[at].role) {
    case ROLE_RANKS:
        m->ranks_said = true;
        return need_number(m, option, &values[0], &m->ranks.ranks);
    case ROLE_EACH:
        m->ranks_said = true;
        return need_number(m, option, &values[0], &m->ranks.each);
    case ROLE_EACH_ONE:
        m->ranks_said = true;
        m->ranks.each = 1;
        return 0;
    case ROLE_NODES:
        m->ranks_said = true;
        return need_number(m, option, &values[0], &m->ranks.nodes);
    case ROLE_MAP_BY:
    case ROLE_PPR:
        rc = need_text(m, option, &values[0], &text);
        return rc < 0 ? rc : take_mapping(m, option, text);
    case ROLE_BY_NODE:
        return take_mapping(m, option, "node");
    case ROLE_EXCEED:
        m->ranks.may_exceed = true;
        return 0;
    case ROLE_HOSTS:
        return take_hosts(m, option, &values[0]);
    case ROLE_BIND:
        reader_fail(m->node,
                    "%s %s %s: ranks are bound near their GPUs; drarun run --bind changes it",
                    m->name, option, values[0].raw);
        return 0;
    case ROLE_X:
        return take_x(m, option, &values[0]);
    case ROLE_VARIABLE:
    case ROLE_MCA:
        rc = need_text(m, option, &values[0], &text);
        if (rc == 0)
            rc = need_text(m, option, &values[1], &second);
        if (rc == 0 && roles[at].role == ROLE_MCA)
            take_mca(m, text, second);
        else if (rc == 0)
            take_variable(m, text, second);
        return rc;
    case ROLE_DIRECTORY:
        rc = need_text(m, option, &values[0], &text);
        if (rc == 0)
            change_directory(m, text);
        return rc;
    case ROLE_INHERIT_ALL:
    case ROLE_INHERIT_NONE:
        m->inherits = roles[at].role == ROLE_INHERIT_ALL;
        m->inherits_said = true;
        return 0;
    case ROLE_INHERIT_LIST:
        rc = need_text(m, option, &values[0], &text);
        if (rc == 0)
            set_inherited(m, text);
        return rc;
    case ROLE_PATH:
        rc = need_text(m, option, &values[0], &text);
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
    case ROLE_REFUSED:
        return refuse(m, "%s %s %s; " INSTEAD, m->name, option, roles[at].text);
    default:
        reader_fail(m->node, "%s %s%s%s: not carried over, not needed", m->name, option,
                    values[0].raw ? " " : "", values[0].raw ? values[0].raw : "");
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

/* Options from fields[0] on; ret_used: how many fields they are. */
static int take_options(struct mpirun *m, size_t *ret_used)
{
    size_t i = 0;
    while (i < m->count) {
        const struct field *f = &m->fields[i];
        char name[64];
        const char *glued = NULL;
        struct field values[2] = {{0}};
        if (!f->text && (f->raw[0] == '$' || f->raw[0] == '`' || strncmp(f->raw, "\"$", 2) == 0) &&
            !strchr(f->raw, '/'))
            return refuse(
                m,
                "%s's words come from %s, which is known to the launcher's shell alone; " INSTEAD,
                m->name, f->culprit);
        if (!f->text || f->text[0] != '-' || !f->text[1])
            break;
        i++;
        if (strcmp(f->text, "--") == 0)
            break;
        const struct foreign_option *option = find_option(m, f->text, name, sizeof name, &glued);
        if (!option)
            return refuse(m,
                          "%s has no option %s that is known here, so it is not known where the "
                          "program begins; take it out, or " INSTEAD,
                          m->name, f->text);
        size_t given = 0;
        struct field first = {(char *)glued, glued, NULL, SHELL_LITERAL};
        if (glued)
            values[given++] = first;
        for (; given < option->values_after && i < m->count; given++)
            values[given] = m->fields[i++];
        if (given < option->values_after)
            break; /* and no program follows */
        int rc = use_option(m, f->text, option->from & m->from, name, values);
        if (rc < 0)
            return rc;
    }
    *ret_used = i;
    return 0;
}

/* ---- the program ---- */

/* Values of the manifest that a word needs where a shell on the worker expands it. */
static void give_values(struct mpirun *m, const char *raw)
{
    for (size_t i = 0; i < m->env.count; i++) {
        struct launcher_variable *v = &m->env.list[i];
        const char *at = raw;
        size_t n = strlen(v->name);
        bool has = false;
        while (!has && (at = strchr(at, '$'))) {
            at += at[1] == '{' || at[1] == '(' ? 2 : 1;
            has = strncmp(at, v->name, n) == 0 && (at[n] == '\0' || !strchr("_", at[n])) &&
                  !(at[n] >= '0' && at[n] <= '9') && !((at[n] | 32) >= 'a' && (at[n] | 32) <= 'z');
        }
        if (!has || v->is_own)
            continue;
        if (v->entry) {
            hand_on(m, v);
        } else if (v->value) {
            struct buf line = BUF_INIT;
            buf_printf(&line, "%s=", v->name);
            shell_quote(v->value, &line);
            strlist_add(&m->lines, line.data ? line.data : "");
            buf_done(&line);
        }
    }
}

static void add_word(const struct field *f, struct buf *line)
{
    buf_add_str(line, line->len ? " " : "exec ");
    if (f->text)
        shell_quote(f->text, line);
    else
        buf_add_str(line, f->raw);
}

static json_t *shell_command(struct mpirun *m, size_t first)
{
    struct buf script = BUF_INIT, line = BUF_INIT;
    json_t *command = json_array();
    for (size_t i = first; i < m->count; i++)
        add_word(&m->fields[i], &line);
    for (size_t i = 0; i < m->lines.count; i++)
        buf_printf(&script, "%s\n", m->lines.items[i]);
    buf_add_str(&script, line.data ? line.data : "");
    for (size_t i = 0; i < m->shell.count; i++)
        json_array_append_new(command, json_string(m->shell.items[i]));
    if (m->shell.count == 0) {
        json_array_append_new(command, json_string("sh"));
        json_array_append_new(command, json_string("-c"));
    }
    json_array_append_new(command, json_string(script.data ? script.data : ""));
    reader_fail(m->node, "the program stays in a shell, which each rank runs%s",
                m->lines.count ? ", behind the lines of the script that change what it inherits"
                               : ": its words have variables or patterns");
    buf_done(&script);
    buf_done(&line);
    return command;
}

static int take_program(struct mpirun *m, size_t first)
{
    json_t *command = NULL;
    for (size_t i = first; i < m->count; i++) {
        const struct field *f = &m->fields[i];
        if (f->text && strcmp(f->text, ":") == 0)
            return refuse(m,
                          "%s starts several programs, with \":\" between them, and a job runs one "
                          "on all of its ranks; " INSTEAD,
                          m->name);
        if (f->worth == SHELL_COMPUTED)
            return refuse(m,
                          "%s's program gets %s, which the launcher's shell computes, and ranks "
                          "would get other words; " INSTEAD,
                          m->name, f->culprit);
        m->needs_shell |= !f->text;
        give_values(m, f->text ? f->text : f->raw);
    }
    if (m->needs_shell)
        command = shell_command(m, first);
    else
        for (command = json_array(); first < m->count; first++)
            json_array_append_new(command, json_string(m->fields[first].text));
    json_object_set_new(m->container, "command", command);
    json_object_del(m->container, "args");
    return 0;
}

/* ---- ranks ---- */

static json_int_t default_each(const struct import *im)
{
    json_t *gpus = json_object_get(json_object_get(im->job, "devices"), "gpus");
    json_t *count = json_object_get(gpus, "count");
    return json_is_integer(count) ? json_integer_value(count) : 1;
}

static int take_ranks(struct mpirun *m)
{
    uint64_t workers = 0, each = 0;
    json_t *job = m->im->job;
    if (!m->ranks_said)
        return 0;
    m->ranks.may_exceed |= (m->prefer & FOREIGN_MPIRUN) == 0;
    m->ranks.by_node |= m->from == FOREIGN_SRUN; /* block: as many on each node */
    struct drarun_error reason = {0};
    if (import_spread(&m->ranks, &workers, &each, &reason) < 0)
        return refuse(m, "%s: %s; " INSTEAD, m->name, reason.text);
    if (workers != m->ranks.workers) {
        json_object_set_new(job, "workers", json_integer((json_int_t)workers));
        reader_fail(m->node,
                    "%s starts %" PRIu64 " ranks, all on %" PRIu64 " of %" PRIu64
                    " workers, the only ones that are left",
                    m->name, workers * each, workers, m->ranks.workers);
    }
    json_t *now = json_object_get(job, "ranksPerWorker");
    json_int_t before = now ? json_integer_value(now) : default_each(m->im);
    if (each > 0 && (json_int_t)each != before) {
        json_object_set_new(job, "ranksPerWorker", json_integer((json_int_t)each));
        reader_fail(m->node, "%s starts %" PRIu64 " ranks, so ranksPerWorker is %" PRIu64, m->name,
                    workers * each, each);
    }
    return 0;
}

/* ---- the line ---- */

static unsigned int known_launcher(const char *path)
{
    const char *name = base_name(path);
    if (is_in("mpirun mpiexec", name))
        return FOREIGN_MPI;
    if (is_in("orterun prterun mpirun.openmpi mpiexec.openmpi", name))
        return FOREIGN_MPIRUN;
    if (is_in("mpiexec.hydra mpirun.mpich mpiexec.mpich mpirun.hydra", name))
        return FOREIGN_HYDRA;
    return strcmp(name, "srun") == 0 ? FOREIGN_SRUN : 0;
}

static void find_launcher(struct mpirun *m, const char *path)
{
    const char *of_job = import_text(&m->im->spec, "mpiImplementation");
    unsigned int said = strcmp(of_job, "Intel") == 0   ? FOREIGN_INTEL
                        : strcmp(of_job, "MPICH") == 0 ? FOREIGN_MPICH
                                                       : FOREIGN_MPIRUN;
    m->from = known_launcher(path);
    m->prefer = m->from & said ? m->from & said : m->from;
}

/* Words behind the launcher's name. 1: a program was found. */
static int take_line(struct mpirun *m, const struct strlist *words, size_t first)
{
    size_t used = 0;
    int rc = 0;
    m->inherits = (m->prefer & FOREIGN_MPIRUN) == 0;
    for (size_t i = first; rc == 0 && i < words->count; i++)
        rc = expand_word(m, words->items[i]);
    if (rc == 0)
        rc = take_options(m, &used);
    if (rc < 0 || used >= m->count)
        return rc;
    if ((m->prefer & FOREIGN_MPIRUN) == 0 && !m->inherits_said && m->from == FOREIGN_MPI)
        m->inherits = true; /* an option told that it is Hydra */
    rc = take_ranks(m);
    if (rc == 0) {
        hand_on_rest(m);
        rc = take_program(m, used);
    }
    if (rc == 0 && m->directory.len > 0)
        json_object_set_new(m->container, "workingDir", json_string(m->directory.data));
    return rc < 0 ? rc : 1;
}

/* ---- scripts ---- */

static bool is_assignment(const char *word)
{
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return n > 0 && !(word[0] >= '0' && word[0] <= '9') && word[n] == '=';
}

/* NAME=VALUE of the script. */
static void assign(struct mpirun *m, const char *word, bool is_exported)
{
    const char *equals = strchr(word, '=');
    cleanup_free char *name = strndup(word, (size_t)(equals - word));
    struct strlist fields = STRLIST_INIT;
    struct buf quoted = BUF_INIT;
    enum shell_worth worth = SHELL_KEPT;
    /* a value is not split: the same as in double quotes, but for a list of bash */
    if (equals[1] != '(') {
        worth = shell_expand(equals + 1, launcher_env_look_up, &m->env, &fields, NULL);
        for (size_t i = 0; i < fields.count; i++)
            buf_printf(&quoted, "%s%s", i ? " " : "", fields.items[i]);
    }
    buf_add(&quoted, "", 0);
    struct launcher_variable *v =
        name ? launcher_env_set(&m->env, name, worth == SHELL_LITERAL ? quoted.data : NULL, worth)
             : NULL;
    if (v) {
        v->is_exported |= is_exported;
        v->is_own = true;
        v->is_used = false;
    }
    if (worth != SHELL_COMPUTED)
        strlist_add(&m->lines, word);
    buf_done(&quoted);
    strlist_done(&fields);
}

static void export_names(struct mpirun *m, const struct shell_command *command, size_t first)
{
    for (size_t i = first; i < command->words.count; i++) {
        const char *word = command->words.items[i];
        if (is_assignment(word)) {
            assign(m, word, true);
            continue;
        }
        struct launcher_variable *v = launcher_env_find(&m->env, word);
        if (v)
            v->is_exported = true;
    }
}

static void show_command(const struct shell_command *command, struct buf *out)
{
    buf_add(out, "", 0);
    for (size_t i = 0; i < command->words.count; i++)
        buf_printf(out, "%s%s", i ? " " : "", command->words.items[i]);
}

static void leave_out(struct mpirun *m, const struct shell_command *command, const char *why)
{
    struct buf text = BUF_INIT;
    show_command(command, &text);
    bool is_long = text.len > 60;
    if (text.len > 0)
        reader_fail(m->node, "the launcher's \"%.60s%s\" is left out: %s", text.data,
                    is_long ? " ..." : "", why);
    buf_done(&text);
}

/* A line that every rank's shell runs first. */
static void keep_line(struct mpirun *m, const struct shell_command *command)
{
    struct buf text = BUF_INIT;
    show_command(command, &text);
    strlist_add(&m->lines, text.data ? text.data : "");
    m->needs_shell = true;
    buf_done(&text);
}

/* What mpirun, and so the ranks, would inherit from a command before it. */
static void before_line(struct mpirun *m, const struct shell_command *command)
{
    static const char inherited[] = "ulimit source . umask module ml conda spack eval pushd shopt";
    const char *first = command->words.count ? command->words.items[0] : "";
    bool all_assign = command->words.count > 0;
    for (size_t i = 0; i < command->words.count; i++)
        all_assign &= is_assignment(command->words.items[i]);
    if (command->depth > 0) {
        leave_out(m, command, "there is no launcher pod's script");
    } else if (all_assign) {
        for (size_t i = 0; i < command->words.count; i++) {
            struct launcher_variable *v = NULL;
            cleanup_free char *name =
                strndup(command->words.items[i], strcspn(command->words.items[i], "="));
            v = name ? launcher_env_find(&m->env, name) : NULL;
            assign(m, command->words.items[i], v && v->is_exported);
        }
    } else if (is_in("export declare typeset readonly", first)) {
        export_names(m, command, 1);
    } else if (strcmp(first, "cd") == 0 && command->words.count == 2) {
        struct strlist fields = STRLIST_INIT;
        enum shell_worth worth =
            shell_expand(command->words.items[1], launcher_env_look_up, &m->env, &fields, NULL);
        if (worth == SHELL_LITERAL && fields.count == 1 && fields.items[0][0] != '-')
            change_directory(m, fields.items[0]);
        else
            keep_line(m, command);
        strlist_done(&fields);
    } else if (is_in("source .", first) && command->words.count > 1 &&
               strstr(command->words.items[1], "set_nccl_env")) {
        leave_out(m, command, "drarun runs that script itself where the image has it");
    } else if (is_in(inherited, first)) {
        keep_line(m, command);
    } else if (strcmp(first, "set") != 0) {
        leave_out(m, command, "there is no launcher pod's script");
    }
}

/* Past words that start the next one as it is; NULL: none of that kind. */
static size_t past_wrappers(struct mpirun *m, const struct strlist *words)
{
    size_t i = 0;
    for (bool more = true; more && i < words->count;) {
        const char *name = base_name(words->items[i]);
        more = false;
        if (is_assignment(words->items[i]) || strcmp(name, "env") == 0) {
            if (m && is_assignment(words->items[i]))
                assign(m, words->items[i], true);
            i++;
            more = true;
            continue;
        }
        for (size_t k = 0; k < ARRAY_LEN(wrappers); k++)
            if (is_in(wrappers[k].names, name)) {
                for (i++; i < words->count && words->items[i][0] == '-'; i++)
                    i += is_in(wrappers[k].valued, words->items[i]);
                i += wrappers[k].words;
                more = true;
                break;
            }
    }
    return i;
}

static bool is_run(const struct shell_command *command)
{
    size_t i = past_wrappers(NULL, &command->words);
    return i < command->words.count && known_launcher(command->words.items[i]) != 0;
}

static bool is_null(const struct shell_command *command)
{
    for (size_t i = 0; i < command->inputs.count; i++)
        if (!strstr(command->inputs.items[i], "/dev/null"))
            return false;
    return true;
}

/* Whether the run of a script happens, once, and with nothing on its input. */
static int check_run(const struct mpirun *m, const struct shell_script *script, size_t at)
{
    const struct shell_command *command = &script->commands[at];
    const struct shell_command *before = at > 0 ? command - 1 : NULL;
    if (command->depth > 0)
        return refuse(m,
                      "the launcher's script runs mpirun in a condition, a loop or a function: a "
                      "job runs its program once; " INSTEAD);
    if (command->join == SHELL_JOIN_OR ||
        (command->join == SHELL_JOIN_AND && before && before->words.count > 0 &&
         is_in("test [ [[", before->words.items[0])))
        return refuse(m, "the launcher's script runs mpirun on a condition, which a job does not "
                         "have; " INSTEAD);
    if (command->join == SHELL_JOIN_PIPE || !is_null(command))
        return refuse(m, "the launcher's script gives mpirun an input, and a job has none: let the "
                         "program open the file, or " INSTEAD);
    for (size_t i = 0; i < command->outputs.count; i++)
        reader_fail(m->node,
                    "mpirun's redirection \"%s\" is left out: what ranks print is the "
                    "job's log",
                    command->outputs.items[i]);
    return 0;
}

static int take_commands(struct mpirun *m, const struct shell_script *script)
{
    size_t at = 0;
    while (at < script->count && !is_run(&script->commands[at]))
        at++;
    if (at == script->count) {
        for (size_t i = 0; i < script->count; i++)
            leave_out(m, &script->commands[i], "there is no launcher pod's script");
        return 0;
    }
    const struct shell_command *run = &script->commands[at];
    find_launcher(m, run->words.items[past_wrappers(NULL, &run->words)]);
    m->name = base_name(run->words.items[past_wrappers(NULL, &run->words)]);
    int rc = check_run(m, script, at);
    for (size_t i = 0; rc == 0 && i < at; i++)
        before_line(m, &script->commands[i]);
    if (rc == 0)
        rc = take_line(m, &run->words, past_wrappers(m, &run->words) + 1);
    for (size_t i = at + 1; rc > 0 && i < script->count; i++)
        leave_out(
            m, &script->commands[i],
            is_run(&script->commands[i]) ? "a job runs one program; import this one as another job"
            : script->commands[i].join == SHELL_JOIN_PIPE ? "what ranks print is the job's log"
                                                          : "there is no launcher pod's script");
    return rc;
}

static int take_script(struct mpirun *m, const char *text)
{
    struct shell_script script;
    int rc = shell_parse(text, &script) ? take_commands(m, &script) : 0;
    shell_script_done(&script);
    return rc;
}

/* A command without a shell: its words are quoted, so that none of them is expanded. */
static int take_words(struct mpirun *m, const struct strlist *words)
{
    struct strlist quoted = STRLIST_INIT;
    size_t at = 0;
    int rc = 0;
    while (at < words->count && known_launcher(words->items[at]) == 0)
        at++;
    for (size_t i = 0; at < words->count && i < words->count; i++) {
        struct buf word = BUF_INIT;
        shell_quote(words->items[i], &word);
        strlist_add(&quoted, word.data ? word.data : "");
        buf_done(&word);
    }
    if (at < words->count && past_wrappers(NULL, words) < at)
        reader_fail(m->node, "\"%s\" before %s is left out: there is no launcher's pod",
                    words->items[0], words->items[at]);
    if (at < words->count) {
        find_launcher(m, words->items[at]);
        m->name = base_name(words->items[at]);
        for (size_t i = 0; i < at; i++)
            if (is_assignment(words->items[i]))
                assign(m, words->items[i], true);
        rc = take_line(m, &quoted, at + 1);
    }
    strlist_done(&quoted);
    return rc;
}

/* ---- the launcher's container ---- */

/* The script of "bash -lc SCRIPT ARG0 ARG1", whose arguments are $0, $1, ...; NULL: there is none.
 */
static const char *find_script(struct mpirun *m, const struct strlist *words, size_t at)
{
    bool has_c = false;
    strlist_add(&m->shell, words->items[at]);
    for (at++; at < words->count && strchr("-+", words->items[at][0]); at++) {
        const char *flags = words->items[at];
        strlist_add(&m->shell, flags);
        has_c |= flags[0] == '-' && flags[1] != '-' && strchr(flags, 'c');
        if (flags[1] != '-' && flags[strlen(flags) - 1] == 'o' && at + 1 < words->count)
            strlist_add(&m->shell, words->items[++at]);
    }
    if (!has_c || at >= words->count)
        return NULL;
    for (size_t i = at + 1; i < words->count; i++) {
        char name[16];
        snprintf(name, sizeof name, "%zu", i - at - 1);
        launcher_env_set(&m->env, name, words->items[i], SHELL_LITERAL);
    }
    return words->items[at];
}

/* A script that a ConfigMap holds: "bash /scripts/run.sh", "/scripts/run.sh". */
static int take_file(struct mpirun *m, const struct reader_node *pod,
                     const struct reader_node *container, const struct strlist *words, size_t at)
{
    const char *map = "";
    for (; at < words->count; at++) {
        const char *text = launcher_file(m->im->objects, pod, container, words->items[at], &map);
        if (!text && *map)
            reader_fail(m->node,
                        "the script %s is in the ConfigMap %s, which is not among these manifests: "
                        "import both together",
                        words->items[at], map);
        if (!text)
            continue;
        for (size_t i = at + 1; i < words->count; i++) {
            char name[16];
            snprintf(name, sizeof name, "%zu", i - at);
            launcher_env_set(&m->env, name, words->items[i], SHELL_LITERAL);
        }
        strlist_done(&m->shell);
        m->shell = (struct strlist)STRLIST_INIT;
        strlist_add(&m->shell, strstr(text, "bash") ? "bash" : "sh");
        strlist_add(&m->shell, "-c");
        return take_script(m, text);
    }
    return 0;
}

static int take_container(struct mpirun *m, const struct reader_node *pod,
                          const struct reader_node *container)
{
    static const char *const keys[] = {"command", "args"};
    struct strlist words = STRLIST_INIT;
    struct reader_node node;
    int rc = 0;
    for (size_t k = 0; k < ARRAY_LEN(keys); k++)
        for (size_t i = 0; reader_get(container, keys[k], &node) && i < json_array_size(node.value);
             i++) {
            const char *word = json_string_value(json_array_get(node.value, i));
            struct buf text = BUF_INIT;
            launcher_env_expand(&m->env, word ? word : "", &text);
            strlist_add(&words, text.data ? text.data : "");
            buf_done(&text);
        }
    size_t at = past_wrappers(NULL, &words);
    if (at < words.count && is_in("sh bash dash ash ksh zsh", base_name(words.items[at]))) {
        const char *script = find_script(m, &words, at);
        rc = script ? take_script(m, script) : take_file(m, pod, container, &words, at + 1);
    } else {
        rc = take_words(m, &words);
        if (rc == 0)
            rc = take_file(m, pod, container, &words, at);
    }
    strlist_done(&words);
    return rc;
}

int import_mpirun(struct import *im, json_t *template, struct drarun_error *err)
{
    struct reader_node containers, node;
    if (!reader_get(&im->launcher, "containers", &containers) ||
        json_array_size(containers.value) == 0)
        return 0;
    struct reader_node first = reader_item(&containers, 0);
    if (!json_is_object(first.value))
        return 0;
    if (!reader_get(&first, "args", &node) && !reader_get(&first, "command", &node))
        node = first;
    json_t *workers = json_object_get(im->job, "workers");
    json_t *slots = json_object_get(im->job, "ranksPerWorker");
    bool has_slots = strcmp(import_text(im->workload, "kind"), "MPIJob") == 0;
    struct mpirun m = {
        .im = im,
        .node = &node,
        .name = "mpirun",
        .container = import_first_container(template),
        .err = err,
        .ranks = {.workers = workers ? (uint64_t)json_integer_value(workers) : 1,
                  .slots = slots       ? (uint64_t)json_integer_value(slots)
                           : has_slots ? 1
                                       : 0},
    };
    if (m.ranks.workers == 0)
        m.ranks.workers = 1;
    launcher_env_load(&m.env, im->objects, &first);
    buf_add_str(&m.directory, import_text(&first, "workingDir"));
    int rc = take_container(&m, &im->launcher, &first);
    if (rc >= 0)
        launcher_explain(&im->launcher, template);
    for (size_t i = 0; i < m.count; i++) {
        free(m.fields[i].text);
        free(m.fields[i].culprit);
    }
    free(m.fields);
    buf_done(&m.directory);
    strlist_done(&m.shell);
    strlist_done(&m.lines);
    launcher_env_done(&m.env);
    return rc;
}
