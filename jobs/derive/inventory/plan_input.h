/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan is made from: claims, slices, probes and labels, and what the job wants. Every step
 * reads it; all is borrowed. Pure. */
#ifndef DRARUN_JOBS_PLAN_INPUT_H
#define DRARUN_JOBS_PLAN_INPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "jobs/spec/spec.h"
#include "lib/dra/slices.h"

struct profiles;

#define PLAN_WORKERS_MAX 100000u
#define PLAN_CLIQUE_LABEL "nvidia.com/gpu.clique"

enum plan_ranks {
    PLAN_RANKS_AUTO = 0, /* one per GPU; one per pod where there is none */
    PLAN_RANKS_GPU,      /* one per GPU: GPUs are asked for */
    PLAN_RANKS_POD,      /* one per pod, which drives all its GPUs */
};

struct plan_worker_input {
    const char *pod;
    const char *node;     /* NULL: the one its devices are on */
    const json_t *claims; /* array of ResourceClaims; NULL: none */
    const json_t *probe;  /* NULL: nothing was probed */
    const char *clique;   /* of NVLink; NULL: as its node's label says */
};

struct plan_input {
    enum spec_network network; /* 0: rdma */
    bool tcp_will_do;          /* network: any was asked for, and is not only the default */
    enum plan_ranks ranks;
    uint32_t ranks_each;         /* of a worker, where their number is known; 0: as ranks says */
    enum spec_transport mpi;     /* 0: auto */
    enum spec_hca_list hca_list; /* 0: auto */
    uint32_t plugin_gpus;        /* a worker's from a device plugin: in no claim */
    bool no_gpus;                /* GPUs were not asked for, whatever ranks says */
    const char *profile;         /* NULL or "auto": detect */
    const char *profile_fact;    /* how it was recognised; NULL: asked for */
    const char *nccl_version;    /* NULL: the newest that we know */
    const char *master_addr;     /* NULL: the first worker's pod */
    uint32_t master_port;        /* 0: 29500 */
    const char *pod_interface;   /* NULL: what the workers' probes say, else eth0 */
    bool inspector;              /* NCCL's own is wanted, and has a place for its files */
    char *const *user_env;       /* NAME=VALUE, NULL-terminated; NULL: none */
    const struct slices *slices;
    bool slices_unknown;       /* they may not be read: a pod's devices are those that it shows */
    const json_t *node_labels; /* node name -> labels; NULL: none are known */
    const struct profiles *profiles;
    const struct plan_worker_input *workers;
    size_t worker_count;
    const uint32_t *rank_order; /* workers in the order of their ranks; NULL: by number */
};

/* What a spec says of the plan of a role, whose workers alone it is about; the rest is the caller's
 * to fill in. argv: the program that starts in them; NULL: the spec's. Borrows from the spec. */
struct plan_input plan_input_of(const struct job_spec *spec, const struct spec_role *role,
                                char *const argv[]);

/* A label of a node; NULL: it has none, or none is known. */
const char *plan_input_label(const struct plan_input *input, const char *node, const char *key);
/* NULL where no label tells. */
const char *plan_input_instance_type(const struct plan_input *input, const char *node);

#endif
