/* SPDX-License-Identifier: Apache-2.0 */
/* A job spec as values (docs/design/009-job-spec.md): what spec_read makes of a DraJob document,
 * with every default filled in. Read-only after that, from any thread. Pure. */
#ifndef DRARUN_JOBS_SPEC_H
#define DRARUN_JOBS_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/profiles/machine.h"
#include "jobs/spec/failure_policy.h"
#include "lib/base/strlist.h"
#include "lib/doc/fields.h"

#define SPEC_API_VERSION "drarun.dev/v1alpha1"
#define SPEC_KIND "DraJob"
/* What spec.managedBy is when it is left out: drarun's own controller. */
#define SPEC_CONTROLLER "drarun.dev/drajob-controller"
#define SPEC_MANAGER_MAX 63 /* bytes, as spec.managedBy of a Job of Kubernetes */
#define SPEC_WORKERS_MAX 10000
#define SPEC_NAME_MAX 55          /* of a job: NAME-channel and NAME-w-9999 are DNS labels */
#define SPEC_DEVICES_MAX 128      /* of a kind for one worker: a ResourceSlice has no more */
#define SPEC_GRACE_MAX_S 31536000 /* a year: the API server takes any, and it is counted with */
/* drarun-bench as it comes with the agent, for the first container's command: such a job's pods get
 * it, whatever their image has */
#define SPEC_BENCH "/.drarun/bin/drarun-bench"
#define SPEC_CONTAINER "worker"    /* the container's name in a template made of the short form */
#define SPEC_PLACEHOLDER "PROGRAM" /* alone in command: the ranks' program is still to be given */
#define SPEC_ROLE "worker"         /* the role's name in a document without roles */
#define SPEC_ROLES_MAX 16
#define SPEC_ROLE_NAME_MAX 40

enum spec_align { SPEC_ALIGN_REQUIRED = 1, SPEC_ALIGN_PREFERRED, SPEC_ALIGN_NONE };
enum spec_claims { SPEC_CLAIMS_DIRECT = 1, SPEC_CLAIMS_TEMPLATE };
enum spec_network { SPEC_NETWORK_RDMA = 1, SPEC_NETWORK_ANY };
enum spec_fallback { SPEC_FALLBACK_REPORT = 1, SPEC_FALLBACK_FAIL };
enum spec_launch { SPEC_LAUNCH_PMIX = 1, SPEC_LAUNCH_ENV, SPEC_LAUNCH_MPIRUN };
enum spec_transport { SPEC_TRANSPORT_AUTO = 1, SPEC_TRANSPORT_TCP, SPEC_TRANSPORT_RDMA };
enum spec_gang { SPEC_GANG_AUTO = 1, SPEC_GANG_NEVER };
enum spec_spread { SPEC_SPREAD_NODE = 1, SPEC_SPREAD_NONE };
/* Each does what the one before does. */
enum spec_fabric { SPEC_FABRIC_OFF = 1, SPEC_FABRIC_OPEN, SPEC_FABRIC_REACH };
enum spec_hca_list { SPEC_HCA_AUTO = 1, SPEC_HCA_ALWAYS, SPEC_HCA_NEVER };

#define SPEC_CHOICES_MAX 8 /* as Kubernetes allows */
#define SPEC_SHARED_MAX 8
#define SPEC_CPU_CLASS "dra.cpu"        /* of dra-driver-cpu */
#define SPEC_CPU_CAPACITY "dra.cpu/cpu" /* likewise: of a group of CPUs */

/* One of several kinds of devices, in the order in which they are wanted. What devices of the kind
 * must be holds for each. */
struct spec_choice {
    const char *class; /* DeviceClass */
    const char *profile;
    struct strlist selectors;
    json_t *capacity;    /* as of spec_devices, beside that */
    json_t *tolerations; /* an array, or NULL */
};

/* Devices of one kind for each worker. Texts are owned by the spec. */
struct spec_devices {
    uint32_t count;              /* 0: none asked for, unless all */
    bool all;                    /* allocationMode All */
    const char *class;           /* DeviceClass; NULL: from a device plugin, or none asked for */
    const char *resource;        /* extended resource, as nvidia.com/gpu; NULL: claimed by class */
    struct strlist selectors;    /* CEL expressions, all of which must hold */
    const char *profile;         /* of MIG devices, as "1g.10gb", which is one of selectors; NULL */
    json_t *capacity;            /* of each device: names to quantities, texts; or NULL */
    struct strlist match;        /* further attributes that all devices of the kind must share */
    json_t *tolerations;         /* of taints of devices: an array, or NULL */
    struct spec_choice *choices; /* firstAvailable, choice_count of them; none: class */
    size_t choice_count;
    json_t *config;            /* opaque configuration: an object, or NULL */
    const char *config_driver; /* whose it is; NULL without config */
};

#define SPEC_AGENT_TIMEOUT_MIN_MS 5000
#define SPEC_AGENT_TIMEOUT_MAX_MS 600000

struct spec_timeouts { /* milliseconds */
    int64_t queue, nodes, allocation, image_pull, start, total;
    int64_t agent;         /* how long one may be silent; 0: not said */
    int64_t signal_before; /* total: then ranks get signal */
    int signal;            /* its number; 0: none */
};

/* Of the launcher's pod; NULL: drarun's own (jobs/manifests/objects.h). Passed through as they are.
 */
struct spec_launcher {
    json_t *resources, *node_selector, *annotations; /* objects */
    json_t *tolerations;                             /* an array */
    const char *priority_class;
};

/* Workers that are alike, as the document names them: what a role of `roles` says, or else what
 * stands at the top. A document without `roles` has one. */
struct spec_role {
    const char *name; /* SPEC_ROLE without `roles` */
    uint32_t workers;
    uint32_t first;            /* its first worker: they are numbered over all roles in order */
    uint32_t ranks_per_worker; /* 0: not said (spec_role_ranks) */
    uint32_t slots; /* ranks that a worker may have, with those that ranks start; 0: not said */
    struct spec_devices gpus, nics;
    uint32_t cpu_count;       /* CPUs that each worker claims; 0: none */
    struct spec_devices cpus; /* the groups of CPUs that they are of, one each of count, with the
                               * capacity that is asked of each; class NULL: none */
    struct strlist match;  /* attributes that all claimed GPUs, NICs and CPUs of a worker share */
    struct strlist shared; /* ResourceClaims of the user's that all workers of the role hold */
    enum spec_align align;
    enum spec_claims claims;  /* as devices has it; the job's are job_spec.claims */
    const char *nccl_profile; /* "auto" or a profile's name */
    struct machine machine;   /* of that profile, from the built-in table */
    enum spec_hca_list nccl_hca_list;
    const char *nccl_version; /* NULL: not said */
    bool nccl_inspector;      /* what NCCL measures of its collectives is kept */
    struct strlist nccl_env;  /* NAME=VALUE, the user's */
    json_t *template; /* the whole PodTemplateSpec, also where the short form was used; image and
                       * command of its first container are what the ranks run */
};

/* Whose end decides how a job with several roles ends. */
enum spec_success { SPEC_SUCCESS_ALL = 1, SPEC_SUCCESS_ROLE, SPEC_SUCCESS_RANK0 };

struct job_spec {
    const char *name;
    const char *generate_name; /* what the name begins with, where that is made; NULL: none */
    const char *namespace;     /* NULL: the context's */
    json_t *labels;            /* objects of texts for the job's objects, or NULL */
    json_t *annotations;
    struct spec_role *roles; /* role_count of them, at least one, by their first workers */
    uint32_t role_count;
    uint32_t workers; /* of all roles */
    enum spec_success success;
    uint32_t success_role;   /* which, with SPEC_SUCCESS_ROLE */
    bool own_worlds;         /* each role is an MPI_COMM_WORLD of its own */
    bool oversubscribe;      /* ranks may start more than there are slots */
    const char *bind;        /* as --bind (jobs/ranks/binding.h) */
    bool report_bindings;    /* as --report-bindings */
    enum spec_spread spread; /* 0: left out; jobs/spec/node_spread.h says what holds then */
    enum spec_claims claims;
    json_t *compute_domain; /* an object where wanted, else NULL */
    enum spec_network network;
    bool network_given; /* written, and not the default */
    enum spec_fallback on_tcp_fallback, on_preflight_warning;
    enum spec_fabric fabric; /* what the preflight does with NICs */
    enum spec_launch launch;
    enum spec_transport mpi_transport;
    struct spec_launcher launcher;
    struct spec_timeouts timeouts;
    int64_t hang_after; /* milliseconds; 0: never */
    enum spec_fallback on_hang;
    uint32_t restarts; /* attempts that count to no other number, beyond the first */
    struct failure_policy failure;
    int64_t ttl_after_finished; /* seconds; -1: keep */
    bool suspend;
    const char *managed_by;         /* the controller that runs the job */
    const char *queue;              /* Kueue's LocalQueue, or NULL */
    enum spec_gang gang_scheduling; /* by the cluster's scheduler */
    json_t *document; /* the whole with its apiVersion, kind and name, for what passes through */
};

/* Reads the document (of a strict reader) with all its findings, which stay in the reader. A
 * document with none of apiVersion, kind, metadata and spec is a spec alone. default_name: for a
 * document without metadata.name (NULL: that is a finding). On failure the text of err is the first
 * finding's and ret_spec is untouched. The spec holds what it needs of the document. */
int spec_read(struct reader *reader, size_t document, const char *default_name,
              struct job_spec *ret_spec, struct drarun_error *err);

/* The same from text that holds one document; name as for doc_parse. */
int spec_parse(const char *name, const char *text, size_t len, struct job_spec *ret_spec,
               struct drarun_error *err);

/* What the spec's profile says of its machine is taken from here, not from the built-in table. */
int spec_use_profiles(struct job_spec *spec, const struct profiles *profiles,
                      struct drarun_error *err);

/* A job's name made of a file's: "/a/All_Reduce.yaml" gives all-reduce. */
void spec_default_name(const char *path, char *ret_name, size_t size);

void job_spec_done(struct job_spec *spec);
/* What the pods have to end, as the templates say or by the API's default, the longest of all
 * roles: 0 to SPEC_GRACE_MAX_S seconds, in milliseconds. */
int64_t job_spec_grace_ms(const struct job_spec *spec);

/* The document has `roles`: else it has one that has no name of its own. */
bool spec_has_roles(const struct job_spec *spec);
/* The role of a worker, which is below spec->workers. */
const struct spec_role *spec_role_of(const struct job_spec *spec, uint32_t worker);
/* For what can do with workers that are all alike alone: the only role. With several it is an error
 * that names `what` and the key, kind DRARUN_ERR_SPEC. */
int spec_only_role(const struct job_spec *spec, const char *what, const struct spec_role **ret_role,
                   struct drarun_error *err);
/* Kind DRARUN_ERR_SPEC: another controller than drarun's runs the job, and drarun makes nothing of
 * it. */
int spec_need_own(const struct job_spec *spec, struct drarun_error *err);
/* GPUs or NICs are asked for, claimed or of a device plugin. */
bool spec_role_has_devices(const struct spec_role *role);
bool spec_role_has_nics(const struct spec_role *role);
/* The pods name claims beside the one that is made for each worker: shared ones, or the template's.
 */
bool spec_role_names_claims(const struct spec_role *role);
/* The pod's spec in its template, and the container there that runs the ranks; borrowed, may be
 * NULL. */
const json_t *spec_role_pod(const struct spec_role *role);
const json_t *spec_role_container(const struct spec_role *role);
/* A word of that container's command or arguments names SPEC_BENCH. */
bool spec_role_wants_bench(const struct spec_role *role);
/* Its program is torchrun, or a shell's line that runs it: one process of each worker, which starts
 * the others there. */
bool spec_role_starts_torchrun(const struct spec_role *role);
/* The ranks of a worker with so many GPUs, of the program argv (NULL: the role's own): what
 * ranksPerWorker says, else one where the program starts others itself, as mpirun and torchrun do,
 * else one for each GPU. */
uint32_t spec_role_ranks(const struct spec_role *role, bool mpirun, char *const argv[],
                         uint32_t gpus);

/* The tables that spec_read reads by: for documentation and tests. */
extern const struct field_table spec_document_fields;
extern const struct field_table spec_role_fields; /* of an item of `roles` */

#endif
