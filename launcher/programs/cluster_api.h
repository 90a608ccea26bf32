/* SPDX-License-Identifier: Apache-2.0 */
/* What talks to a cluster. The local job must not pay for libcurl and OpenSSL, so only a third
 * program, drarun-cluster, holds this code (launcher/cluster); drarun gives place to it. */
#ifndef DRARUN_LAUNCHER_CLUSTER_API_H
#define DRARUN_LAUNCHER_CLUSTER_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/options.h"
#include "lib/base/strlist.h"

/* Which cluster, as kubectl's options of these names. NULL: not said. */
struct cluster_choice {
    const char *kubeconfig, *context, *namespace;
};

/* The options of a verb whose struct has the choice as a member called `cluster`. */
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

/* Everything borrowed. */
struct cluster_run {
    struct cluster_choice cluster;
    const char *file; /* the job spec; NULL with job */
    const char *job;  /* the launcher in its pod: of which job */
    const char *name; /* in place of the spec's */
    const char *image;
    struct strlist args; /* in place of the command's arguments; empty: the spec's */
    uint32_t workers;    /* in place of the spec's; 0: the spec's */
    bool here;           /* launch from this process, without a launcher Job */
    bool detach;         /* submit: do not follow */
    bool dry_run;        /* submit: ask the server about the objects, and make none */
    bool replace;        /* a job of that name that has ended is deleted first */
    int format;          /* submit: enum verb_format of what is printed */
    bool label, quiet, json;
    const char *report_path;
    int copy_fd;      /* gets what goes to standard output, too; 0: none */
    const char *hide; /* lines that begin so go to the copy alone; NULL: none */
    /* The job as the cluster keeps it, where it can be read after the run: {"job": the document as
     * it was given, "status": that of jobs/status/status_doc.h}; a new reference. NULL: not wanted.
     */
    json_t **ret_kept;
};

struct cluster_job { /* a verb on one job */
    struct cluster_choice cluster;
    const char *job;   /* NULL: list all; status: the only one */
    char *const *jobs; /* cancel: all names, of which job is the first; job_count of them */
    size_t job_count;
    const char *selector; /* labels, as kubectl's -l; NULL: all */
    bool json;            /* format is VERB_JSON or VERB_YAML: a document, not text */
    int format;           /* enum verb_format */
    bool watch, follow, all, all_namespaces, timestamps, verbose;
    int32_t rank;       /* logs: of this one alone; -1: of all */
    int64_t tail;       /* logs: lines from the end; negative: all */
    int64_t since_ms;   /* logs: no older lines; 0: all */
    int64_t timeout_ms; /* wait; 0: none */
};

struct cluster_exec {
    struct cluster_choice cluster;
    const char *job;
    uint32_t rank;
    char *const *argv; /* empty: a shell */
    bool input, tty;
};

struct cluster_controller {
    struct cluster_choice cluster;
    const char *image, *log;
    const char *heartbeat; /* a file; NULL: none */
    uint32_t metrics_port; /* 0: none */
    int64_t ttl_ms;        /* of ended jobs whose spec has none; 0: they stay */
    bool all_namespaces, verbose;
};

struct cluster_alloc { /* borrowed */
    struct cluster_choice cluster;
    const char *file; /* the job spec */
    const char *name, *image;
    uint32_t workers;      /* in place of the spec's; 0: the spec's */
    const char *through;   /* "auto", "direct", "api": how agents are reached; NULL: auto */
    int64_t lost_after_ms; /* without us the pods are taken away; 0: the default */
    char *const *argv;     /* in place of a shell; empty: a shell */
    /* No shell: it is over when the workers are up and checked, or cannot be. The job's status
     * document of then, where it can be read; a new reference. NULL: not wanted. */
    json_t **ret_status;
};

struct accept_order;
struct cluster_kind;
struct findings;

/* Each returns the exit status, having said everything. */
struct cluster_api {
    /* Objects as they are now (cluster/snapshot.h), and the minor version of Kubernetes (NULL: not
     * wanted), 0 where it is not known: 0 or -errno. */
    int (*read)(const struct cluster_choice *choice, const struct cluster_kind *kinds, size_t count,
                unsigned *ret_minor, struct drarun_error *err);
    /* Appends what a look at the cluster finds (doctor/findings.h): 0 or -errno. */
    int (*doctor)(const struct cluster_choice *choice, struct findings *findings,
                  struct drarun_error *err);
    int (*run)(const struct cluster_run *run);
    int (*list)(const struct cluster_job *job);
    int (*status)(const struct cluster_job *job);
    int (*describe)(const struct cluster_job *job);
    int (*logs)(const struct cluster_job *job);
    int (*wait)(const struct cluster_job *job);
    int (*cancel)(const struct cluster_job *job);
    int (*exec)(const struct cluster_exec *exec);
    int (*controller)(const struct cluster_controller *controller);
    int (*accept)(const struct accept_order *order);
    int (*alloc)(const struct cluster_alloc *alloc);
};

/* NULL in drarun and drarun-remote. */
const struct cluster_api *cluster_api(void);

/* Replaces this process by drarun-cluster with the same arguments; logs why not, and returns the
 * exit status then. */
int cluster_become(char *const argv[]);

#endif
