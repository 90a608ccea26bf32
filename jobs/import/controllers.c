/* SPDX-License-Identifier: Apache-2.0 */
/* What other controllers give their pods, or do for them by an annotation: a job has none of it,
 * and a program that counts on it would run on with an empty value. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "jobs/import/import.h"
#include "jobs/import/parts.h"
#include "lib/base/nearest.h"

#define EXCLUSIVE_TOPOLOGY "/exclusive-topology" /* of JobSet and LeaderWorkerSet */

/* Labels that controllers of jobs put on their pods. */
static const char *const domains[] = {
    "training.kubeflow.org/", "trainer.kubeflow.org/",         "jobset.sigs.k8s.io/",
    "batch.kubernetes.io/",   "leaderworkerset.sigs.k8s.io/",  "volcano.sh/",
    "batch.volcano.sh/",      "statefulset.kubernetes.io/",    "apps.kubernetes.io/",
    "kubeflow.org/",          "scheduling.x-k8s.io/pod-group",
};
static const char names[] =
    "job-name controller-uid controller-revision-hash pod-template-hash group-name job-role "
    "replica-type replica-index mpi-job-name mpi-job-role mpi_job_name mpi_role_type "
    "pytorch-job-name pytorch-replica-type";

/* Variables of their pods, and what each rank has instead (docs/design/005-rank-environment.md). */
static const struct {
    const char *name, *ours;
} variables[] = {
    {"JOB_COMPLETION_INDEX", "NODE_RANK"},
    {"LWS_LEADER_ADDRESS", "MASTER_ADDR"},
    {"LWS_GROUP_SIZE", "NNODES"},
    {"LWS_WORKER_INDEX", "NODE_RANK"},
};

bool import_is_foreign(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(domains); i++)
        if (strncmp(key, domains[i], strlen(domains[i])) == 0)
            return true;
    return words_index(names, key, strlen(key)) >= 0;
}

/* A queue's job is an Indexed Job, which gives its pods an index. */
static bool is_given(bool queued, const char *key)
{
    return queued && (strcmp(key, "JOB_COMPLETION_INDEX") == 0 ||
                      strcmp(key, "batch.kubernetes.io/job-completion-index") == 0);
}

/* The key of metadata.labels['KEY'] and metadata.annotations['KEY']; false: another field. */
static bool read_key(const char *path, char *key, size_t size)
{
    const char *begin = strchr(path, '\''), *end = strrchr(path, '\'');
    if (strncmp(path, "metadata.", strlen("metadata.")) != 0 || !begin || begin == end)
        return false;
    snprintf(key, size, "%.*s", (int)(end - begin - 1), begin + 1);
    return true;
}

static bool has_own(const json_t *template, const char *key)
{
    const json_t *metadata = json_object_get(template, "metadata");
    return json_object_get(json_object_get(metadata, "labels"), key) ||
           json_object_get(json_object_get(metadata, "annotations"), key);
}

static void explain_source(const struct reader_node *variable, const json_t *template, bool queued)
{
    struct reader_node from, field;
    char key[320];
    if (import_object(variable, "valueFrom", &from) && import_object(&from, "fieldRef", &field) &&
        read_key(import_text(&field, "fieldPath"), key, sizeof key) && import_is_foreign(key) &&
        !is_given(queued, key) && !has_own(template, key))
        reader_fail(variable, "%s will be empty: %s is of another controller's pods%s",
                    import_text(variable, "name"), key,
                    strstr(key, "index") ? "; NODE_RANK is the number of a rank's worker" : "");
}

static bool is_part_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool has_name(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = strstr(text, name); at; at = strstr(at + length, name))
        if ((at == text || !is_part_of_name(at[-1])) && !is_part_of_name(at[length]))
            return true;
    return false;
}

/* The name of a pod in DNS, HOST-0.SERVICE, which is a name of that controller's pods; NULL: none.
 * ret_length: its length. */
static const char *find_host(const char *text, const char *service, size_t *ret_length)
{
    char end[320];
    snprintf(end, sizeof end, ".%s", service);
    size_t length = strlen(end);
    for (const char *at = *service ? strstr(text, end) : NULL; at; at = strstr(at + length, end)) {
        const char *begin = at, *next = at + length;
        while (begin > text && (isalnum((unsigned char)begin[-1]) || begin[-1] == '-'))
            begin--;
        if (begin < at && isdigit((unsigned char)at[-1]) && !is_part_of_name(*next) &&
            *next != '-') {
            *ret_length = (size_t)(next - begin);
            return begin;
        }
    }
    return NULL;
}

static void explain_text(const struct reader_node *node, const struct import_controller *of)
{
    const char *text = json_string_value(node->value);
    size_t length = 0;
    const char *host = text ? find_host(text, of->service, &length) : NULL;
    if (host)
        reader_fail(node,
                    "%.*s is a pod of another controller, and no worker has this name in DNS: "
                    "each rank has that of rank 0's worker in MASTER_ADDR",
                    (int)length, host);
    for (size_t i = 0; text && i < ARRAY_LEN(variables); i++)
        if (has_name(text, variables[i].name) && !is_given(of->queued, variables[i].name))
            reader_fail(node,
                        "the program reads %s, which is of another controller's pods: each rank "
                        "has %s instead",
                        variables[i].name, variables[i].ours);
}

static void explain_sources(const struct reader_node *container, const json_t *template,
                            const struct import_controller *of)
{
    const json_t *copy = import_first_container(template);
    struct reader_node env;
    if (!reader_get(container, "env", &env) || !json_is_array(env.value))
        return;
    for (size_t i = 0; i < json_array_size(env.value); i++) {
        struct reader_node item = reader_item(&env, i);
        size_t k;
        const json_t *kept;
        json_array_foreach(json_object_get(copy, "env"), k, kept)
        {
            struct reader_node value;
            if (!json_is_object(item.value) || !json_equal(item.value, kept))
                continue;
            explain_source(&item, template, of->queued);
            if (reader_get(&item, "value", &value))
                explain_text(&value, of);
        }
    }
}

void import_explain_foreign(const struct reader_node *pod, const json_t *template,
                            const struct import_controller *of)
{
    static const char *const keys[] = {"command", "args"};
    const json_t *copy = import_first_container(template);
    struct reader_node containers, first, words;
    if (!reader_get(pod, "containers", &containers) || json_array_size(containers.value) == 0)
        return;
    first = reader_item(&containers, import_ranks_container(pod->value));
    if (!json_is_object(first.value))
        return;
    explain_sources(&first, template, of);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (!reader_get(&first, keys[i], &words) ||
            !json_equal(words.value, json_object_get(copy, keys[i])))
            continue; /* the program is another one now */
        for (size_t k = 0; k < json_array_size(words.value); k++) {
            struct reader_node word = reader_item(&words, k);
            explain_text(&word, of);
        }
    }
}

bool import_is_exclusive(const char *annotation)
{
    size_t n = strlen(annotation), end = strlen(EXCLUSIVE_TOPOLOGY);
    return n > end && strcmp(annotation + n - end, EXCLUSIVE_TOPOLOGY) == 0;
}
