/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of jobs/import/import.c. Private to jobs/import*. */
#ifndef DRARUN_JOBS_IMPORT_PARTS_H
#define DRARUN_JOBS_IMPORT_PARTS_H

#include <jansson.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "lib/doc/reader.h"

#define IMPORT_OBJECTS_MAX 256

struct import_objects { /* of all files, Lists opened */
    struct reader_node nodes[IMPORT_OBJECTS_MAX];
    struct reader_node lists[IMPORT_OBJECTS_MAX]; /* what `items` stand in */
    struct reader_node items[IMPORT_OBJECTS_MAX];
    size_t count, list_count;
};

#define IMPORT_NAME_ROOM 254 /* of a name in Kubernetes */

struct import_job { /* a ReplicatedJob, and the way to its pod template */
    struct reader_node item, outer, spec, template;
};

struct import_runtime {               /* of a TrainJob: its JobSet, and the way there */
    const struct reader_node *object; /* NULL: none */
    struct reader_node spec, template, set, jobs;
};

/* What is being built, and where from. */
struct import {
    struct reader *files;
    size_t file_count;
    struct import_objects *objects;
    const struct reader_node *workload;      /* of several Pods the first */
    struct strlist own;                      /* where Pods differ */
    char name[IMPORT_NAME_ROOM];             /* of the workload */
    const char *only;                        /* of import_options */
    struct reader_node spec;                 /* of the workload */
    struct reader_node a, b, c;              /* on the way to the template */
    struct reader_node template, pod;        /* the workers' */
    struct reader_node launcher_a, launcher; /* an MPIJob's launcher: template, pod */
    bool has_launcher;
    struct import_job jobs[2]; /* of a JobSet */
    struct import_runtime runtime;
    json_t *torchrun; /* its variables in each pod, as the operator sets them; NULL: none */
    json_t *job;      /* the new spec */
};

/* What an API server adds to metadata is no loss. */
#define IMPORT_ADDED                                                                               \
    "name generateName namespace creationTimestamp uid resourceVersion generation managedFields "  \
    "selfLink ownerReferences deletionTimestamp deletionGracePeriodSeconds "

/* Every document of a file, and what stands in Lists. */
int import_collect(struct reader *file, struct import_objects *objects, struct drarun_error *err);
/* The one workload of the objects, its name and its pod template; errors name file and line. */
int import_workload(struct import *im, struct drarun_error *err);

/* The member if it is an object. */
bool import_object(const struct reader_node *from, const char *key, struct reader_node *ret);
/* A whole number into the job's spec; what Job and a runPolicy share; keys that are left out, each
 * with its reason. */
void import_number(struct import *im, const struct reader_node *from, const char *key,
                   const char *as);
void import_policy(struct import *im, const struct reader_node *policy);
/* The time that a Job, a runPolicy or a TrainJob has: of several the shortest one counts. */
void import_deadline(struct import *im, const struct reader_node *policy);
/* A Job's podFailurePolicy. */
void import_pod_failures(struct import *im, const struct reader_node *job);
void import_leave_out(const struct reader_node *object, const char *const keys[][2], size_t count);

/* A remark on each key that is none of the words: left out, because of why. */
void import_rest(const struct reader_node *object, const char *known, const char *why);
/* Those of a Job's spec, a runPolicy, a pod template's metadata that nothing else reads. */
void import_rest_of_job(const struct reader_node *spec);
void import_rest_of_policy(const struct reader_node *policy);
void import_rest_of_template(const struct reader_node *template);
void import_rest_of_replicas(const struct reader_node *replicas); /* of a training operator */

bool import_runs_mpirun(const json_t *template); /* its first container */

/* The workers' template and number of such a workload (spec is found); errors name file and line.
 */
int import_open_jobset(struct import *im, struct drarun_error *err);
int import_open_lws(struct import *im, struct drarun_error *err);
int import_open_pytorch(struct import *im, struct drarun_error *err);
int import_open_trainjob(struct import *im, struct drarun_error *err);

/* A ReplicatedJob of a JobSet: its pods, and the way to their template. */
int import_open_replicated(const struct reader_node *item, struct import_job *job,
                           json_int_t *ret_pods, struct drarun_error *err);
/* How the job of a JobSet (its spec) ends and starts again; the ReplicatedJobs are found. */
void import_take_set_policy(struct import *im, const struct reader_node *set);

/* The name of the workload's queue in Kueue; NULL: none. Borrowed. */
#define IMPORT_KUEUE "kueue.x-k8s.io/" /* what names of Kueue begin with */
#define IMPORT_QUEUE_LABEL IMPORT_KUEUE "queue-name"
json_t *import_queue(const struct import *im);

/* The text of a member, "" when it is none. */
const char *import_text(const struct reader_node *object, const char *key);

/* The object of that kind and name, or NULL. name NULL: any. */
const struct reader_node *import_find(const struct import_objects *o, const char *kind,
                                      const char *name);

const char *import_name(const struct reader_node *object); /* metadata.name, "" when none */
struct doc_place import_place(const struct reader_node *node);
bool import_is_pod(const struct reader_node *object);
/* An error at any value: its file and line. */
int import_refuse_at(const struct reader_node *node, struct drarun_error *err, const char *format,
                     ...) __attribute__((format(printf, 3, 4)));
/* The same at an object, and what it is. */
int import_refuse(const struct reader_node *object, struct drarun_error *err, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));

/* The labels or annotations (part) of metadata in kept, without those that controllers have set; a
 * remark names them. pod: what may read them, or NULL. */
void import_written(const struct reader_node *metadata, const char *part, const json_t *pod,
                    json_t *kept);
/* Takes out of our copy of a Pod's template what the cluster has set in the Pod that kubectl get
 * prints. */
void import_placed(const struct reader_node *object, const struct reader_node *pod,
                   json_t *template);

/* What stands in a container for sshd's sake goes from our copy, each with a remark. */
void import_sshd(const struct reader_node *container, json_t *copy);

/* The keys of sshd, which an operator would add to the pods: mounts of them go from our copy, and
 * init containers that prepare them, each with a remark. */
void import_keys(const struct reader_node *pod, json_t *template);

/* Whether two Pods, or templates, can be workers of one job; -EINVAL names the first difference
 * with its file and line; names: what messages call them. own: gets the paths that differ and may,
 * which no worker keeps ("spec.hostname"). */
int import_compare_pods(const struct reader_node *first, const struct reader_node *other,
                        const char *first_name, const char *other_name, struct strlist *own,
                        struct drarun_error *err);
void import_remove_own(const struct strlist *own, json_t *template);

/* Cuts name down to what both begin with, without a number or a dash at its end, unless that is
 * nothing. */
void import_common_name(char *name, const char *other);

struct import_affinity {
    const char *job;           /* its name in the manifest */
    bool queued;               /* workers are pods of an Indexed Job */
    const struct strlist *own; /* of import_compare_pods */
    const json_t *labels;      /* of the template, set by import_affinity */
};

/* Affinity and topology spread of template on labels of other controllers: now on drarun's own, or
 * left out, each with a remark. */
void import_affinity(struct import_affinity *a, const struct reader_node *pod, json_t *template);

/* devices and computeDomain of spec from the pod's claims; pod: the node of a PodTemplateSpec's
 * spec. template: our copy of the PodTemplateSpec, which loses them, and keeps those whose template
 * is not among the objects. */
void import_claims(const struct import_objects *o, const struct reader_node *pod, json_t *template,
                   json_t *spec);

/* A request of a claim, which item is, into devices and computeDomain of spec. */
void import_request(const struct import_objects *o, const struct reader_node *item, json_t *spec);
/* The key of devices under which a spec has what it asks for; NULL: none. */
const char *import_request_key(const struct import_objects *o, const struct reader_node *item);

enum import_variable { IMPORT_VARIABLE_OTHER, IMPORT_VARIABLE_DERIVED, IMPORT_VARIABLE_OWN };

/* Whether what a worker holds decides the variable, or each rank has its own. value: NULL where it
 * is not known. */
enum import_variable import_variable(const char *name, const char *value);

/* A remark on each probe that can end a worker and was made for a program that is replaced. */
void import_probes(const struct reader_node *pod, const json_t *template);

/* network: rdma where containers ask for NICs of a device plugin. */
void import_network(const struct reader_node *pod, json_t *spec);

/* devices.gpus from the limit of an extended resource; environment variables that are derived or
 * move to nccl.env. Works on the first container. */
void import_container(const struct import_objects *objects, const struct reader_node *pod,
                      json_t *template, json_t *spec);

/* Into nccl.env of spec; a switch of demonstrations gets a remark. */
void import_nccl_variable(const struct reader_node *node, const char *name, const char *value,
                          json_t *spec);

/* A label or annotation that another controller of jobs puts on its pods. */
bool import_is_foreign(const char *key);
bool import_is_kueues(const char *name); /* of a label, an annotation or a gate */
/* Whether it is of no use for a job: such a one which the pod (or NULL) does not read, or has with
 * another value here. */
bool import_is_written(const char *key, const json_t *pod);
/* An annotation by which its controller gives each group of pods a domain of its own: a remark.
 * False: it is another one. */
bool import_leave_exclusive(const struct reader_node *annotations, const char *annotation);
struct import_controller {
    bool queued;          /* workers are pods of an Indexed Job here, too */
    bool index_is_worker; /* its pods counted as workers do */
    bool has_master;      /* beside Workers, which it counted for themselves */
    json_int_t workers;
    const char *service; /* in which its pods had names in DNS; "": none */
    const char *job;     /* whose pods had JOB-worker-0 for a name in DNS; "": none */
};
/* What containers and init containers, where they are kept so, take from their controller (labels
 * and annotations of pods, variables, names in DNS): as the job's own, or a remark. -EINVAL, kind
 * SPEC: the ranks' container reads its number, and several pods have the same one. */
int import_take_foreign(const struct reader_node *pod, json_t *template,
                        const struct import_controller *of, struct drarun_error *err);

/* A remark where the kept command sources the fabric vendor's script. */
void import_vendor_script(const struct reader_node *pod, const json_t *template);

/* Adds the words of a container's command and args. */
void import_words(const json_t *container, struct strlist *words);
/* The program behind `drarun join` in its place, with what its options say; a remark where a
 * shell's line has it. *ret_joined: it was so. -EINVAL: it cannot be read. */
int import_take_join(struct import *im, json_t *template, bool *ret_joined,
                     struct drarun_error *err);

/* The first container's program: from the manifest, or PROGRAM where that only sleeps. */
void import_command(const struct reader_node *pod, json_t *template);

/* A remark on each thing that the workers' own command does, beside sshd, where a launcher's
 * program takes its place. template: with that program. */
void import_replaced(const struct reader_node *pod, const json_t *template);

/* What an MPIJob's launcher runs: the program behind mpirun becomes the command of the template's
 * first container; options and script before it decide ranks, variables and directory. 1: done; 0:
 * no mpirun with a program was found; -EINVAL where what it starts is no job of ours. */
int import_mpirun(struct import *im, json_t *template, struct drarun_error *err);

/* A variable for the torchrun in each pod. */
void import_torchrun(struct import *im, const char *name, json_t *value_take);
void import_add_torchrun(const struct import *im, json_t *template);

/* The object at key, made where there is none; borrowed. NULL: the holder is no object. */
json_t *import_child(json_t *object, const char *key);

json_t *import_first_container(const json_t *template);

/* Which of a pod's containers runs the ranks: the first, or the only one that asks for GPUs or
 * lists claims. Our copy of a template has it first. */
size_t import_ranks_container(const json_t *pod);

#endif
