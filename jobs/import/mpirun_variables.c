/* SPDX-License-Identifier: Apache-2.0 */
/* The variables that mpirun hands on. */
#include <string.h>

#include "jobs/foreign/options.h"
#include "jobs/import/mpirun.h"
#include "jobs/spec/spec_words.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"
#include "lib/doc/value.h"

/* Frameworks of Open MPI's own launcher: nothing of the ranks reads them. */
static const char launcher_mca[] =
    "routed plm oob ess odls rmaps ras grpcomm rml iof state errmgr filem orte prte rtc schizo";

/* The one that the launcher hands on takes the place of the container's own, of several the last
 * one, which counts. */
static void set_entry(json_t *container, json_t *entry)
{
    json_t *env = json_object_get(container, "env");
    const char *name = json_string_value(json_object_get(entry, "name"));
    if (!env) {
        env = json_array();
        json_object_set_new(container, "env", env);
    }
    for (size_t i = json_array_size(env); i-- > 0;) {
        const char *other = value_text(json_array_get(env, i), "name");
        if (other && name && strcmp(other, name) == 0) {
            json_array_set(env, i, entry);
            return;
        }
    }
    json_array_append(env, entry);
}

static void set_env(json_t *container, const char *name, const char *value)
{
    json_t *entry = json_pack("{s:s, s:o}", "name", name, "value", spec_words_literal(value));
    set_entry(container, entry);
    json_decref(entry);
}

/* As a variable of the container: what is derived goes, what steers NCCL moves to nccl.env. */
void mpirun_take_variable(const struct mpirun *m, const char *name, const char *value)
{
    switch (import_variable(name, value)) {
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

void mpirun_take_mca(const struct mpirun *m, const char *key, const char *value)
{
    char framework[64], name[128];
    snprintf(framework, sizeof framework, "%.*s", (int)strcspn(key, "_"), key);
    if (words_has(launcher_mca, framework)) {
        reader_fail(m->node, "mpirun --mca %s %s: a parameter of mpirun's own daemons, not needed",
                    key, value);
        return;
    }
    snprintf(name, sizeof name, "OMPI_MCA_%s", key);
    set_env(m->container, name, value);
    reader_fail(m->node, "mpirun --mca %s %s is now the variable %s", key, value, name);
}

bool mpirun_is_of_launcher(const struct launcher_variable *v)
{
    json_t *from = json_object_get(v->entry, "valueFrom");
    const char *field = value_text(json_object_get(from, "fieldRef"), "fieldPath");
    return (field && strcmp(field, "metadata.namespace") != 0) ||
           json_object_get(from, "resourceFieldRef");
}

/* A variable of the launcher that reaches the ranks. */
void mpirun_hand_on(struct mpirun *m, struct launcher_variable *v)
{
    v->is_used = true;
    if (v->value && strncmp(v->name, "OMPI_MCA_", strlen("OMPI_MCA_")) == 0) {
        char framework[64];
        const char *key = v->name + strlen("OMPI_MCA_");
        snprintf(framework, sizeof framework, "%.*s", (int)strcspn(key, "_"), key);
        if (words_has(launcher_mca, framework))
            reader_fail(m->node, "the launcher's %s is left out: mpirun's own daemons read it",
                        v->name);
        else
            set_env(m->container, v->name, v->value);
    } else if (v->entry) {
        if (mpirun_is_of_launcher(v))
            reader_fail(m->node, "the launcher's %s is left out: it describes the launcher's pod",
                        v->name);
        else
            set_entry(m->container, v->entry);
    } else if (v->value) {
        mpirun_take_variable(m, v->name, v->value);
    } else if (v->worth == SHELL_KEPT && v->is_own) {
        m->needs_shell = true;
        strlist_addf(&m->lines, "export %s", v->name);
    } else if (import_variable(v->name, NULL) == IMPORT_VARIABLE_OTHER) {
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

void mpirun_hand_on_name(struct mpirun *m, const char *name)
{
    size_t length = strlen(name), found = 0;
    bool is_prefix = length > 0 && name[length - 1] == '*';
    for (size_t i = 0; i < m->env.count; i++) {
        struct launcher_variable *v = &m->env.list[i];
        bool is_gone = !v->is_own && !v->is_exported; /* env -u, env -i */
        if (is_gone ||
            (is_prefix ? strncmp(v->name, name, length - 1) != 0 : strcmp(v->name, name) != 0))
            continue;
        mpirun_hand_on(m, v);
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
void mpirun_hand_on_rest(struct mpirun *m)
{
    struct buf lost = BUF_INIT;
    for (size_t i = 0; i < m->env.count; i++) {
        struct launcher_variable *v = &m->env.list[i];
        bool is_parameter =
            strncmp(v->name, "OMPI_MCA_", strlen("OMPI_MCA_")) == 0 && !(m->prefer & FOREIGN_HYDRA);
        if (v->is_exported && !v->is_used && (m->inherits || is_parameter))
            mpirun_hand_on(m, v);
        else if (!v->is_used && (v->is_exported || !v->is_own))
            buf_printf(&lost, "%s%s", lost.len ? ", " : "", v->name);
    }
    if (m->inherits)
        hand_on_sources(m);
    m->env.failed |= lost.failed;
    if (lost.len)
        reader_fail(m->node,
                    "the launcher's variables %.300s are left out: %s does not hand them on",
                    lost.data, m->name);
    if (json_array_size(m->env.sources) > 0)
        reader_fail(m->node, "the launcher's envFrom is left out: %s does not hand it on", m->name);
    buf_done(&lost);
}
