/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that talk to a cluster. Local jobs must not pay for libcurl and OpenSSL, so only a
 * third program has this code: drarun-cluster (launcher/cluster), which drarun executes in its
 * place. */
#ifndef DRARUN_LAUNCHER_CLUSTER_API_H
#define DRARUN_LAUNCHER_CLUSTER_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/options.h"
#include "lib/base/strlist.h"

/* Which cluster; the meaning is that of kubectl's options. NULL: not given. */
struct cluster_choice {
    const char *kubeconfig, *context, *namespace;
};

/* Options of a verb, whose struct must have a member `struct cluster_choice cluster`. */
#define CLUSTER_OPTIONS(type)                                                                      \
    {.name = "namespace",                                                                          \
     .letter = 'n',                                                                                \
     .value = "NAME",                                                                              \
     .group = "Cluster, as with kubectl",                                                          \
     .kind = OPTION_TEXT,                                                                          \
     .offset = offsetof(type, cluster.namespace),                                                  \
     .help = "namespace of the job (default: the context's)"},                                     \
        {.name = "context",                                                                        \
         .value = "NAME",                                                                          \
         .group = "Cluster, as with kubectl",                                                      \
         .kind = OPTION_TEXT,                                                                      \
         .offset = offsetof(type, cluster.context),                                                \
         .help = "context of the kubeconfig (default: the current one)"},                          \
    {                                                                                              \
        .name = "kubeconfig", .value = "FILE", .choices = "FILE",                                  \
        .group = "Cluster, as with kubectl", .kind = OPTION_TEXT,                                  \
        .offset = offsetof(type, cluster.kubeconfig),                                              \
        .help = "default: $KUBECONFIG, else ~/.kube/config, else\nthe pod's service account"       \
    }

/* of_group, to: group and applies of the options; at: the offset of a struct cluster_choice, or of
 * the image. */
#define CLUSTER_CONTEXT_OPTIONS(of_group, to, at)                                                  \
    {.name = "context",                                                                            \
     .value = "NAME",                                                                              \
     .group = of_group,                                                                            \
     .applies = to,                                                                                \
     .kind = OPTION_TEXT,                                                                          \
     .offset = (at) + offsetof(struct cluster_choice, context),                                    \
     .help = "context of the kubeconfig (default: the current one)"},                              \
    {                                                                                              \
        .name = "kubeconfig", .value = "FILE", .choices = "FILE", .group = of_group,               \
        .applies = to, .kind = OPTION_TEXT,                                                        \
        .offset = (at) + offsetof(struct cluster_choice, kubeconfig),                              \
        .help = "default: $KUBECONFIG, else ~/.kube/config"                                        \
    }

#define CLUSTER_IMAGE_OPTION(of_group, to, at)                                                     \
    {                                                                                              \
        .name = "image", .value = "IMAGE", .group = of_group, .applies = to, .kind = OPTION_TEXT,  \
        .offset = at,                                                                              \
        .help = "image of agent and launcher (default: $DRARUN_IMAGE,\nelse that of this release)" \
    }

struct drarun_spec;
struct sink_reader;

/* How a run has ended, for callers that are programs. */
struct cluster_end {
    /* Why it came to no end of a job that is known: something of the cluster, of the launcher, its
     * Lease and its log, or of the spec, and nothing of the job's workers. Code 0: report tells. */
    struct drarun_error err;
    json_t *report; /* {"status", "cause"} as in docs/design/006-ends.md, maybe with more; a
                     * new reference; NULL: there is no end of a job, or no memory */
};

/* All borrowed. */
struct cluster_run {
    struct cluster_choice cluster;
    const char *file;           /* the job spec; NULL with job and spec */
    const char *job;            /* for the launcher in its pod: the job that it runs */
    struct drarun_spec *spec;   /* as the file's, and changed as this says; NULL: the file */
    const char *name;           /* replaces the spec's; NULL: does not */
    const char *image;          /* of drarun, as agent_image takes it */
    const struct strlist *args; /* replace the command's arguments; NULL or empty: do not */
    uint32_t workers;           /* replaces the spec's; 0: does not */
    bool report_bindings;       /* as if the spec said so */
    bool here;                  /* launch from this process, without a launcher Job */
    bool detach;                /* submit: do not follow */
    bool dry_run;               /* submit: let the server check the objects, and create none */
    bool replace;               /* delete an ended job with that name first */
    bool by_program;            /* not by a user: only the first signal that ends it counts */
    int format;                 /* submit: enum verb_format of the output */
    bool label, quiet, json;
    const char *report_path;
    /* Of the ranks' standard output, before it is written (launcher/streams/sink.h); NULL: none. */
    const struct sink_reader *reader;
    /* After the run: {"job": the document as it was given, "status": the status document
     * (jobs/status/status_doc.h), if there is one and it can be read}; a new reference. NULL: not
     * wanted. */
    json_t **ret_kept;
    /* Zeroed before. Everything was logged all the same, and findings in a file only that. NULL:
     * not wanted. */
    struct cluster_end *ret_end;
};

struct cluster_job { /* a verb on one job */
    struct cluster_choice cluster;
    const char *job;   /* NULL: list all; status: the only one */
    char *const *jobs; /* cancel: job_count names; the first is job */
    size_t job_count;
    const char *selector; /* labels, as kubectl's -l; NULL: all */
    bool json;            /* format is VERB_JSON or VERB_YAML: a document, not text */
    int format;           /* enum verb_format */
    bool watch, follow, all, all_namespaces, timestamps, verbose;
    int32_t rank;       /* logs: only of this rank; -1: of all */
    int64_t tail;       /* logs: lines from the end; negative: all */
    int64_t since_ms;   /* logs: only lines of the last since_ms; 0: all */
    int64_t timeout_ms; /* wait; 0: none */
};

struct cluster_exec {
    struct cluster_choice cluster;
    const char *job;
    uint32_t rank;
    char *const *argv; /* empty: a shell */
    int input;         /* a descriptor, with tty of a terminal; -1: the command gets none */
    bool tty;
};

struct cluster_controller {
    struct cluster_choice cluster;
    const char *image, *log;
    const char *heartbeat; /* a file; NULL: none */
    uint32_t metrics_port; /* 0: none */
    int64_t ttl_ms;        /* until ended jobs without a TTL of their own are deleted; 0: never */
    bool all_namespaces, verbose;
};

struct cluster_alloc { /* all borrowed */
    struct cluster_choice cluster;
    const char *file;         /* the job spec; NULL with spec */
    struct drarun_spec *spec; /* as the file's, and changed as this says; NULL: the file */
    const char *name, *image;
    uint32_t workers;      /* replaces the spec's; 0: does not */
    const char *through;   /* how agents are reached: "auto", "direct", "api"; NULL: auto */
    int64_t lost_after_ms; /* the pods are deleted after so long without us; 0: the default */
    char *const *argv;     /* runs instead of a shell; empty: a shell */
    /* If set, no shell runs: the call returns when the workers are up and checked, or fail. Gets
     * the job's status document, if it can be read; a new reference. NULL: not wanted. */
    json_t **ret_status;
};

struct accept_order;
struct cluster_kind;
struct findings;

/* As `drarun run` in a cluster. Returns the exit status, and has logged its errors. */
typedef int (*cluster_run_fn)(const struct cluster_run *run);

/* Functions that return an exit status have logged their errors. */
struct cluster_api {
    /* Reads objects as they are now (launcher/cluster/public/snapshot.h). ret_minor: the minor
     * version of Kubernetes, 0 if it is not known; NULL: not wanted. 0 or -errno. */
    int (*read)(const struct cluster_choice *choice, const struct cluster_kind *kinds, size_t count,
                unsigned *ret_minor, struct drarun_error *err);
    /* Checks the cluster and appends its findings (doctor/findings.h): 0 or -errno. */
    int (*doctor)(const struct cluster_choice *choice, struct findings *findings,
                  struct drarun_error *err);
    cluster_run_fn run;
    int (*list)(const struct cluster_job *job);
    int (*status)(const struct cluster_job *job);
    int (*describe)(const struct cluster_job *job);
    int (*logs)(const struct cluster_job *job);
    int (*wait)(const struct cluster_job *job);
    int (*cancel)(const struct cluster_job *job);
    int (*exec)(const struct cluster_exec *exec);
    int (*controller)(const struct cluster_controller *controller);
    int (*accept)(const struct cluster_choice *choice, const struct accept_order *order);
    int (*alloc)(const struct cluster_alloc *alloc);
};

/* NULL in drarun and drarun-remote. */
const struct cluster_api *cluster_api(void);

/* Executes drarun-cluster in place of this process, with the same arguments. If that fails, logs
 * why and returns the exit status. */
int cluster_become(char *const argv[]);

#endif
