/* SPDX-License-Identifier: Apache-2.0 */
/* What other controllers give their pods, or do for them by an annotation: where a job can give it
 * too, it does; elsewhere a remark says what a program that counts on it has instead. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "jobs/import/parts.h"
#include "jobs/ranks/shell_script.h"
#include "lib/base/nearest.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"

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

/* What Kueue writes into pods and templates that it manages, and what tells it of groups of Pods. A
 * worker with them would be one of a group that does not exist, and never be let in. What asks for
 * a topology is not among them. */
static const char of_kueue[] =
    "managed podset tas workload workload-slice-name prebuilt-workload-name multikueue-origin "
    "pod-group-name pod-group-total-count pod-group-fast-admission pod-group-serving "
    "pod-group-max-not-ready-count pod-group-pod-index pod-group-pod-index-label "
    "pod-suspending-parent role-hash retriable-in-group is-group-workload was-podgroup";

/* Variables of their pods, and what each rank has instead (docs/design/005-rank-environment.md). */
enum foreign { FOREIGN_INDEX = 1, FOREIGN_SIZE, FOREIGN_LEADER };
static const struct {
    const char *name;
    enum foreign kind;
    const char *ours;
} variables[] = {
    {"JOB_COMPLETION_INDEX", FOREIGN_INDEX, "NODE_RANK"},
    {"LWS_LEADER_ADDRESS", FOREIGN_LEADER, "MASTER_ADDR"},
    {"LWS_GROUP_SIZE", FOREIGN_SIZE, "NNODES"},
    {"LWS_WORKER_INDEX", FOREIGN_INDEX, "NODE_RANK"},
};

/* Labels and annotations that say which of the pods it is, and ours: a queue's workers are pods of
 * an Indexed Job. */
static const char indices[] = "batch.kubernetes.io/job-completion-index apps.kubernetes.io/"
                              "pod-index leaderworkerset.sigs.k8s.io/worker-index "
                              "training.kubeflow.org/replica-index replica-index";
#define WORKER_LABEL "drarun.dev/worker"
#define JOB_INDEX "batch.kubernetes.io/job-completion-index"

/* Whose words they are. Containers beside the ranks' have no variables of ranks. */
enum place { PLACE_RANKS = 1, PLACE_BESIDE, PLACE_BEFORE };

static const char *index_key(const struct import_controller *of)
{
    return of->queued ? JOB_INDEX : WORKER_LABEL;
}

static json_t *index_field(const struct import_controller *of)
{
    return json_sprintf("metadata.%s['%s']", of->queued ? "annotations" : "labels", index_key(of));
}

bool import_is_kueues(const char *name)
{
    return strncmp(name, IMPORT_KUEUE, strlen(IMPORT_KUEUE)) == 0;
}

static bool is_set_by_kueue(const char *key)
{
    return import_is_kueues(key) && words_has(of_kueue, key + strlen(IMPORT_KUEUE));
}

bool import_is_foreign(const char *key)
{
    if (is_set_by_kueue(key))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(domains); i++)
        if (strncmp(key, domains[i], strlen(domains[i])) == 0)
            return true;
    return words_index(names, key, strlen(key)) >= 0;
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

/* The Job controller's own: as labels of a template another Job's are refused, and a Job adopts
 * pods by them. */
static bool is_of_jobs(const char *key)
{
    return strncmp(key, "batch.kubernetes.io/", strlen("batch.kubernetes.io/")) == 0 ||
           words_index("job-name controller-uid", key, strlen(key)) >= 0;
}

/* Does a field of the pod's containers and volumes read the label or annotation? */
static bool is_read(json_t *value, const char *key)
{
    const char *name = NULL;
    json_t *inner = NULL;
    char own[320];
    bool found = false;
    size_t i;
    json_array_foreach(value, i, inner)
    {
        found |= is_read(inner, key);
    }
    json_object_foreach(value, name, inner)
    {
        const char *path = json_string_value(inner);
        found |= path && strcmp(name, "fieldPath") == 0 && read_key(path, own, sizeof own) &&
                 strcmp(own, key) == 0;
        found |= is_read(inner, key);
    }
    return found;
}

bool import_is_written(const char *key, const json_t *pod)
{
    static const char group[] = "scheduling.x-k8s.io/pod-group"; /* which its author gives */
    if (!import_is_foreign(key) || strncmp(key, group, strlen(group)) == 0)
        return false;
    return is_of_jobs(key) || is_set_by_kueue(key) || words_index(indices, key, strlen(key)) >= 0 ||
           !is_read(unconst(pod), key);
}

/* A queue's job is an Indexed Job, which gives its pods an index. */
static bool is_given(bool queued, const char *key)
{
    return queued && (strcmp(key, "JOB_COMPLETION_INDEX") == 0 ||
                      strcmp(key, "batch.kubernetes.io/job-completion-index") == 0);
}

static bool has_own(const json_t *template, const char *key)
{
    const json_t *metadata = json_object_get(template, "metadata");
    return json_object_get(json_object_get(metadata, "labels"), key) ||
           json_object_get(json_object_get(metadata, "annotations"), key);
}

/* The pods are counted from 0 twice, and workers once. */
static bool counts_twice(const char *key, const struct import_controller *of)
{
    return of->has_master && strstr(key, "replica-index");
}

static int check_count(const struct reader_node *variable, const char *key,
                       const struct import_controller *of, struct drarun_error *err)
{
    if (!counts_twice(key, of))
        return 0;
    return import_refuse_at(variable, err,
                            "the variable %s is from %s, which counts the Master and the Workers "
                            "each from 0, and workers of a job have one count: let the program "
                            "read NODE_RANK, which each rank has, and take the variable out",
                            import_text(variable, "name"), key);
}

/* A variable from another controller's label or annotation: ours, where it is the pod's number. */
static int take_source(const struct reader_node *variable, json_t *kept, const json_t *template,
                       enum place place, const struct import_controller *of,
                       struct drarun_error *err)
{
    struct reader_node from, field;
    const char *name = import_text(variable, "name");
    char key[320];
    if (!import_object(variable, "valueFrom", &from) || !import_object(&from, "fieldRef", &field) ||
        !read_key(import_text(&field, "fieldPath"), key, sizeof key) || !import_is_foreign(key) ||
        is_given(of->queued, key) || has_own(template, key))
        return 0;
    int rc = place == PLACE_RANKS ? check_count(variable, key, of, err) : 0;
    if (rc < 0)
        return rc;
    json_t *source = json_object_get(json_object_get(kept, "valueFrom"), "fieldRef");
    if (of->index_is_worker && words_index(indices, key, strlen(key)) >= 0 &&
        !counts_twice(key, of)) {
        json_object_set_new(source, "fieldPath", index_field(of));
        reader_fail(variable, "%s is now from %s, since %s is of another controller's pods", name,
                    index_key(of), key);
    } else {
        reader_fail(variable, "%s will be empty: %s is of another controller's pods", name, key);
    }
    return 0;
}

static bool has_name(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = strstr(text, name); at; at = strstr(at + length, name))
        if ((at == text || !shell_is_in_name(at[-1])) && !shell_is_in_name(at[length]))
            return true;
    return false;
}

static bool is_in_host(char c)
{
    return isalnum((unsigned char)c) || c == '-';
}

/* HOST-0.SERVICE; NULL: none. ret_length: its length. */
static const char *find_by_service(const char *text, const char *service, size_t *ret_length)
{
    char end[320];
    snprintf(end, sizeof end, ".%s", service);
    size_t length = strlen(end);
    for (const char *at = *service ? strstr(text, end) : NULL; at; at = strstr(at + length, end)) {
        const char *begin = at, *next = at + length;
        while (begin > text && is_in_host(begin[-1]))
            begin--;
        if (begin < at && isdigit((unsigned char)at[-1]) && !shell_is_in_name(*next) &&
            *next != '-') {
            *ret_length = (size_t)(next - begin);
            return begin;
        }
    }
    return NULL;
}

/* JOB-worker-0, to which a training operator gives a Service of that name. */
static const char *find_by_job(const char *text, const char *job, size_t *ret_length)
{
    static const char *const roles[] = {"-master-", "-worker-"};
    size_t length = strlen(job);
    for (const char *at = *job ? strstr(text, job) : NULL; at; at = strstr(at + 1, job))
        for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
            const char *number = at + length + strlen(roles[i]);
            if (strncmp(at + length, roles[i], strlen(roles[i])) != 0 ||
                (at > text && is_in_host(at[-1])))
                continue;
            size_t digits = strspn(number, "0123456789");
            if (digits == 0 || is_in_host(number[digits]))
                continue;
            *ret_length = (size_t)(number + digits - at);
            return at;
        }
    return NULL;
}

/* The name of a pod in DNS, which is a name of that controller's pods; NULL: none. */
static const char *find_host(const char *text, const struct import_controller *of,
                             size_t *ret_length)
{
    const char *host = find_by_service(text, of->service, ret_length);
    return host ? host : find_by_job(text, of->job, ret_length);
}

/* The variable that a controller gives its pods, where a job can give it too; NULL: it cannot. */
static json_t *make_variable(const char *name, enum foreign kind,
                             const struct import_controller *of)
{
    if (kind == FOREIGN_SIZE)
        return json_pack("{s:s, s:o}", "name", name, "value",
                         json_sprintf("%" JSON_INTEGER_FORMAT, of->workers));
    if (kind == FOREIGN_INDEX && of->index_is_worker)
        return json_pack("{s:s, s:{s:{s:o}}}", "name", name, "valueFrom", "fieldRef", "fieldPath",
                         index_field(of));
    return NULL;
}

/* In front: the others may name it. */
static void add_variable(json_t *container, json_t *variable_take)
{
    json_t *env = json_object_get(container, "env");
    if (!json_is_array(env)) {
        env = json_array();
        json_object_set_new(container, "env", env);
    }
    json_array_insert_new(env, 0, variable_take);
}

static void tell_host(const struct reader_node *node, const char *host, size_t length,
                      enum place place)
{
    static const char *const instead[] = {
        [PLACE_RANKS] = "each rank has that of rank 0's worker in MASTER_ADDR",
        [PLACE_BESIDE] = "this container does not find it",
        [PLACE_BEFORE] = "a worker whose init container waits for it never starts: take it out, "
                         "since ranks start when all workers are ready",
    };
    reader_fail(node, "%.*s is a pod of another controller, and no worker has this name in DNS: %s",
                (int)length, host, instead[place]);
}

static void tell_variable(const struct reader_node *node, const char *name, const char *ours,
                          bool is_given, enum place place)
{
    bool is_ranks = place == PLACE_RANKS;
    const char *said =
        !is_ranks  ? is_given ? "it is a variable of this container now" : "this container has none"
        : is_given ? "it is a variable of the job now; each rank has it as "
                   : "each rank has ";
    const char *end = !is_ranks ? "" : is_given ? ", too" : " instead";
    reader_fail(node, "the program reads %s, which another controller sets: %s%s%s", name, said,
                is_ranks ? ours : "", end);
}

static void take_text(const struct reader_node *node, json_t *container, enum place place,
                      const struct import_controller *of)
{
    const char *text = json_string_value(node->value);
    size_t length = 0;
    const char *host = text ? find_host(text, of, &length) : NULL;
    if (host)
        tell_host(node, host, length, place);
    for (size_t i = 0; text && i < ARRAY_LEN(variables); i++) {
        const char *name = variables[i].name;
        if (!has_name(text, name) || is_given(of->queued, name) ||
            value_find(json_object_get(container, "env"), "name", name))
            continue;
        json_t *own = make_variable(name, variables[i].kind, of);
        if (own)
            add_variable(container, own);
        tell_variable(node, name, variables[i].ours, own != NULL, place);
    }
}

static int take_variables(const struct reader_node *container, json_t *copy, const json_t *template,
                          enum place place, const struct import_controller *of,
                          struct drarun_error *err)
{
    int rc = 0;
    json_t *kept;
    struct reader_node env, value;
    size_t k;
    if (!reader_get(container, "env", &env) || !json_is_array(env.value))
        return 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(env.value); i++) {
        struct reader_node item = reader_item(&env, i);
        json_array_foreach(json_object_get(copy, "env"), k, kept)
        {
            if (!json_is_object(item.value) || !json_equal(item.value, kept))
                continue;
            rc = take_source(&item, kept, template, place, of, err);
            if (reader_get(&item, "value", &value))
                take_text(&value, copy, place, of);
            break;
        }
    }
    return rc;
}

static int take_container(const struct reader_node *container, json_t *copy, const json_t *template,
                          enum place place, const struct import_controller *of,
                          struct drarun_error *err)
{
    static const char *const keys[] = {"command", "args"};
    struct reader_node words;
    int rc = take_variables(container, copy, template, place, of, err);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(keys); i++) {
        if (!reader_get(container, keys[i], &words) ||
            !json_equal(words.value, json_object_get(copy, keys[i])))
            continue; /* the program is another one now */
        for (size_t k = 0; k < json_array_size(words.value); k++) {
            struct reader_node word = reader_item(&words, k);
            take_text(&word, copy, place, of);
        }
    }
    return rc;
}

int import_take_foreign(const struct reader_node *pod, json_t *template,
                        const struct import_controller *of, struct drarun_error *err)
{
    static const char *const lists[] = {"containers", "initContainers"};
    size_t ranks = import_ranks_container(pod->value);
    struct reader_node list;
    int rc = 0;
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        const json_t *copies = json_object_get(json_object_get(template, "spec"), lists[l]);
        size_t count = reader_get(pod, lists[l], &list) ? json_array_size(list.value) : 0;
        for (size_t i = 0; rc == 0 && i < count; i++) {
            struct reader_node item = reader_item(&list, i);
            bool is_ranks = l == 0 && i == ranks;
            if (!json_is_object(item.value))
                continue;
            json_t *copy = is_ranks ? import_first_container(template)
                                    : value_find(copies, "name", import_text(&item, "name"));
            enum place place = is_ranks ? PLACE_RANKS : l == 0 ? PLACE_BESIDE : PLACE_BEFORE;
            if (json_is_object(copy))
                rc = take_container(&item, copy, template, place, of, err);
        }
    }
    return rc;
}

bool import_leave_exclusive(const struct reader_node *annotations, const char *annotation)
{
    size_t n = strlen(annotation), end = strlen(EXCLUSIVE_TOPOLOGY);
    if (n <= end || strcmp(annotation + n - end, EXCLUSIVE_TOPOLOGY) != 0)
        return false;
    reader_fail_key(annotations, annotation,
                    "left out: a job has no such placement: a podAffinity by this topologyKey in "
                    "spec.template.spec.affinity keeps its workers together");
    return true;
}
