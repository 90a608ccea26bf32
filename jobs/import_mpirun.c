/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher of an MPIJob: what stands behind mpirun is the ranks' program. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/import_parts.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"

/* mpirun's options by how many words follow them; what is in none of the lists has none. Open
 * MPI's, MPICH's and Intel MPI's. */
static const char one_more[] =
    "np n c N ppn npernode map-by rank-by bind-to x prefix hostfile machinefile H host wdir wd "
    "output-filename path pernode-list rf rankfile mca-file timeout iface f hosts launcher "
    "bootstrap rr-list tune am";
static const char two_more[] = "mca gmca genv env pmca prtemca";

/* Frameworks of Open MPI's own launcher: nothing of the ranks reads them. */
static const char launcher_mca[] =
    "routed plm oob ess odls rmaps ras grpcomm rml iof state errmgr filem orte rtc schizo";

static const char *bare(const char *option)
{
    return option + 1 + (option[1] == '-');
}

static bool is_in(const char *words, const char *text)
{
    return words_index(words, text, strlen(text)) >= 0;
}

/* Where options go: the first container of the template, and the job's spec. */
struct target {
    json_t *container, *spec;
    uint64_t ranks;
};

static void set_env(json_t *container, const char *name, const char *value)
{
    json_t *env = json_object_get(container, "env");
    if (!env) {
        env = json_array();
        json_object_set_new(container, "env", env);
    }
    json_array_append_new(env, json_pack("{s:s, s:s}", "name", name, "value", value));
}

/* As a variable of the container: what is derived goes, what steers NCCL moves to nccl.env. */
static void take_variable(const struct reader_node *node, const char *name, const char *value,
                          const struct target *to)
{
    switch (import_variable(name)) {
    case IMPORT_VARIABLE_DERIVED:
        reader_fail(node,
                    "mpirun's %s=%s is left out: it is derived from what the worker holds; "
                    "nccl.env would set it all the same",
                    name, value);
        return;
    case IMPORT_VARIABLE_OWN:
        reader_fail(node, "mpirun's %s=%s is left out: each rank gets its own", name, value);
        return;
    case IMPORT_VARIABLE_OTHER:
        break;
    }
    if (strncmp(name, "NCCL_", strlen("NCCL_")) != 0) {
        set_env(to->container, name, value);
        return;
    }
    import_nccl_variable(node, name, value, to->spec);
}

/* -x NAME=VALUE. */
static void take_x(const struct reader_node *node, const char *text, const struct target *to)
{
    const char *equals = strchr(text, '=');
    if (!equals) {
        reader_fail(node, "mpirun -x %s: the launcher's own value; give it in the template's env",
                    text);
        return;
    }
    cleanup_free char *name = strndup(text, (size_t)(equals - text));
    if (name)
        take_variable(node, name, equals + 1, to);
}

static void take_mca(const struct reader_node *node, const char *key, const char *value,
                     json_t *container)
{
    char framework[64], name[128];
    snprintf(framework, sizeof framework, "%.*s", (int)strcspn(key, "_"), key);
    if (is_in(launcher_mca, framework)) {
        reader_fail(node, "mpirun --mca %s %s: a parameter of mpirun's own daemons, not needed",
                    key, value);
        return;
    }
    snprintf(name, sizeof name, "OMPI_MCA_%s", key);
    set_env(container, name, value);
    reader_fail(node, "mpirun --mca %s %s is now the variable %s", key, value, name);
}

static void take_one(const struct reader_node *node, const char *option, const char *value,
                     const struct target *to)
{
    const char *name = bare(option);
    if (strcmp(name, "x") == 0)
        take_x(node, value, to);
    else if (is_in("np n c", name) && strtoull(value, NULL, 10) != to->ranks)
        reader_fail(node, "mpirun %s %s: all %" PRIu64 " ranks run, workers x ranksPerWorker",
                    option, value, to->ranks);
    else if (is_in("hostfile machinefile f H host hosts", name))
        reader_fail(node, "mpirun %s %s: no hostfile; drarun knows its workers", option, value);
    else if (strcmp(name, "bind-to") == 0)
        reader_fail(node,
                    "mpirun %s %s: ranks are bound near their GPUs; drarun run --bind changes "
                    "it",
                    option, value);
    else if (!is_in("np n c", name))
        reader_fail(node, "mpirun %s %s: not carried over, not needed", option, value);
}

/* Options from words[i]; returns where the program begins. */
static size_t take_options(const struct reader_node *node, const struct strlist *words, size_t i,
                           const struct target *to)
{
    while (i < words->count && words->items[i][0] == '-' && words->items[i][1]) {
        const char *option = words->items[i], *name = bare(option);
        if (is_in(two_more, name) && i + 2 < words->count) {
            if (is_in("mca gmca pmca prtemca", name))
                take_mca(node, words->items[i + 1], words->items[i + 2], to->container);
            else
                take_variable(node, words->items[i + 1], words->items[i + 2], to);
            i += 3;
        } else if (is_in(one_more, name) && i + 1 < words->count) {
            take_one(node, option, words->items[i + 1], to);
            i += 2;
        } else {
            reader_fail(node, "mpirun %s: not carried over, not needed", option);
            i++;
        }
    }
    return i;
}

static bool take_words(const struct reader_node *node, const struct strlist *words,
                       const struct target *to)
{
    json_t *command = NULL;
    size_t i = 0;
    while (i < words->count) {
        const char *slash = strrchr(words->items[i], '/');
        const char *base = slash ? slash + 1 : words->items[i];
        i++;
        if (is_in("mpirun mpiexec mpiexec.hydra orterun prterun", base))
            break;
    }
    if (i >= words->count)
        return false;
    i = take_options(node, words, i, to);
    if (i >= words->count)
        return false;
    command = json_array();
    for (; i < words->count; i++)
        json_array_append_new(command, json_string(words->items[i]));
    json_object_set_new(to->container, "command", command);
    json_object_del(to->container, "args");
    return true;
}

/* Each simple command of a script; those that are not mpirun are the launcher's own. */
static bool take_script(const struct reader_node *node, const char *script, const struct target *to)
{
    bool found = false;
    while (*script) {
        struct strlist words = STRLIST_INIT;
        bool good = shell_words(&script, &words);
        bool is_run = good && !found && take_words(node, &words, to);
        if (good && !is_run && words.count > 0 && strcmp(words.items[0], "set") != 0)
            reader_fail(node,
                        "the launcher's \"%.60s%s\" is left out: there is no launcher pod's "
                        "script",
                        words.items[0], words.count > 1 ? " ..." : "");
        found |= is_run;
        strlist_done(&words);
        if (!good)
            return found;
    }
    return found;
}

bool import_mpirun(const struct reader_node *launcher, uint64_t ranks, json_t *template,
                   json_t *spec)
{
    const struct target to = {import_first_container(template), spec, ranks};
    struct reader_node containers, node;
    struct strlist words = STRLIST_INIT;
    bool found = false;
    if (!reader_get(launcher, "containers", &containers) || json_array_size(containers.value) == 0)
        return false;
    struct reader_node first = reader_item(&containers, 0);
    static const char *const keys[] = {"command", "args"};
    for (size_t k = 0; k < ARRAY_LEN(keys); k++)
        for (size_t i = 0; reader_get(&first, keys[k], &node) && i < json_array_size(node.value);
             i++) {
            const char *word = json_string_value(json_array_get(node.value, i));
            strlist_add(&words, word ? word : "");
        }
    const char *shell = words.count ? strrchr(words.items[0], '/') : NULL;
    shell = shell ? shell + 1 : words.count ? words.items[0] : "";
    if (!reader_get(&first, "args", &node) && !reader_get(&first, "command", &node))
        node = first;
    if (is_in("sh bash dash ash", shell) && words.count >= 3)
        found = take_script(&node, words.items[words.count - 1], &to);
    else
        found = take_words(&node, &words, &to);
    strlist_done(&words);
    return found;
}
