/* SPDX-License-Identifier: Apache-2.0 */
/* What the pod that runs mpirun has: variables, scripts, and the rest, which gets a remark. Private
 * to jobs/import*. */
#ifndef DRARUN_JOBS_IMPORT_LAUNCHER_H
#define DRARUN_JOBS_IMPORT_LAUNCHER_H

#include "jobs/import/parts.h"
#include "jobs/ranks/shell_script.h"

struct launcher_variable {
    char *name, *value; /* value: NULL unless LITERAL */
    json_t *entry;      /* of an env list, where valueFrom gives the value; else NULL */
    enum shell_worth worth;
    bool is_exported;
    bool is_own; /* of the script, not of the manifest */
    bool is_used;
};

struct launcher_env {
    struct launcher_variable *list;
    size_t count, cap;
    bool failed;     /* an allocation: variables are missing */
    json_t *sources; /* entries of envFrom whose objects are not among the manifests */
};

void launcher_env_load(struct launcher_env *env, const struct import_objects *objects,
                       const struct reader_node *container);
void launcher_env_done(struct launcher_env *env);
struct launcher_variable *launcher_env_find(const struct launcher_env *env, const char *name);
/* value: NULL unless worth is LITERAL. NULL without memory. */
struct launcher_variable *launcher_env_set(struct launcher_env *env, const char *name,
                                           const char *value, enum shell_worth worth);
/* A shell_lookup_fn; context: a struct launcher_env. */
enum shell_worth launcher_env_look_up(void *context, const char *name, const char **ret_value);
/* As the kubelet has it: $(NAME) is the value of that variable where it is known. */
void launcher_env_expand(const struct launcher_env *env, const char *text, struct buf *out);

/* The text of a file that a ConfigMap among the manifests gives the container, or NULL with
 * *ret_map the name of a ConfigMap that would have it and is not there ("": none). Borrowed. */
const char *launcher_file(const struct import_objects *objects, const struct reader_node *pod,
                          const struct reader_node *container, const char *path,
                          const char **ret_map);

/* A remark on each thing of the launcher's pod that no worker gets. */
void launcher_explain(const struct reader_node *pod, const json_t *template);

#endif
