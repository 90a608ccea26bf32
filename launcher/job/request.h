/* SPDX-License-Identifier: Apache-2.0 */
/* A job whose ranks are started from here, as values: filled by the verb, read by the job engine.
 * Strings that are not in a strlist are borrowed from the command line. */
#ifndef DRARUN_LAUNCHER_REQUEST_H
#define DRARUN_LAUNCHER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "lib/wire/wire.pb-c.h"

/* struct job_request.stdin_rank, as in wire.proto's Launch. */
#define REQUEST_STDIN_NONE (-1)
#define REQUEST_STDIN_ALL (-2)

/* One program of the job. */
struct request_program {
    uint32_t ranks;     /* 0: not said */
    uint32_t workers;   /* its own, behind those of the programs before it: of every program or of
                         * none; 0: all programs share the workers */
    uint32_t slots;     /* as job_request.slots, of each of these; 0: not said */
    struct strlist env; /* "NAME=VALUE", or "NAME" for the launcher's own value */
    const char *wd;     /* NULL: not said */
    char *const *argv;  /* argc strings, not NULL-terminated */
    size_t argc;
    size_t expand; /* so many words, if there are, from the first, have $(NAME) replaced by
                    * the rank's variable (lib/base/expand.h) */
};

struct event_base;
struct job;
struct tls_key;
struct Drarun__Wire__Vitals; /* lib/wire/wire.pb-c.h */

/* Agents in pods of a cluster, all of which listen already. Everything is borrowed. */
struct request_pods {
    struct event_base *base; /* also carries what watches the pods */
    const struct tls_key *key;
    const char *uid;     /* of the job: part of names on its machines */
    uint32_t attempt;    /* from 1 */
    uint32_t generation; /* of the launcher: agents prefer a newer one */
    uint32_t workers;
    const char *const *addresses;   /* by worker: IP:PORT */
    const char *const *dials;       /* the same from here; NULL: they can be dialled as they are */
    const struct strlist *look_for; /* paths for the agents' inspections; NULL: none */
    const struct strlist *scripts;  /* of vendors, for the same; NULL: none */
    bool open_nics;                 /* they are to open their NICs for these */
    bool on_host;                   /* hostNetwork: other jobs use the same ports */
    const char *const *pods;        /* their names by worker, and the names of their nodes */
    const char *const *nodes;       /* each may be NULL with entry */
    const uint32_t *rank_order;     /* workers in the order of their ranks; NULL: by number */
    const char *const *claims;      /* their names; NULL: none, or not known */
    int64_t total_ms; /* spec.timeouts.total, of which job_request.timeout_ms is the rest */
    int64_t grace_ms; /* that ranks have when the cluster takes one of the pods away */
    /* Every agent has said hello: what they hold is judged, and the environment is made of it
     * (job_inspection, job_launch). A refusal ends the job. May be NULL. */
    int (*prepare)(void *arg, struct job *job, struct drarun_error *err);
    /* Nothing is wrong with what they hold, and their NICs reach each other where they are to: the
     * ranks are launched next. An error ends the job in their place. May be NULL. */
    int (*checked)(void *arg, const struct job *job, struct drarun_error *err);
    /* An answer to job_ask_vitals; borrowed. May be NULL. */
    void (*vitals)(void *arg, uint32_t worker, const struct Drarun__Wire__Vitals *vitals);
    void (*started)(void *arg); /* the ranks have been started; may be NULL */
    /* Another controller made them (docs/design/029-entry.md): no cluster tells how they end, their
     * agents are of our own release, and are told the job's status. */
    bool entry;
    bool kept; /* an allocation's (launcher/alloc/kept.h): no cluster tells how they end, either */
    /* The same: this is the last try of several, which together last so long; 0: it is not. They
     * are told of its end also when not all of them have come. */
    int64_t all_tries_ms;
    void *arg;
};

struct job_request {
    struct request_program *programs;
    size_t program_count;
    struct strlist env_all;   /* as request_program.env, of every program, which may change it */
    const char *inherit;      /* of our variables: "all", "none", "list"; NULL: not said */
    const char *inherit_list; /* "A,B" */

    const char *hosts, *hostfile; /* as mpirun's -H and --hostfile (hosts.h); NULL: not said */
    const char *hosts_shown;      /* the option, as it was typed */
    uint32_t per_host;            /* mpirun's -N; 0: not said */
    char *chosen_agents;          /* owned: what hosts_use made of agents */

    uint32_t workers;                /* agents on this machine; 0: not said */
    uint32_t per_worker;             /* most ranks of one worker; 0: not said */
    uint32_t radix;                  /* of the agents' tree */
    const char *agents;              /* HOST:PORT,... ; NULL: agents are started here */
    const struct request_pods *pods; /* NULL: no cluster */
    const char *key_file;
    const char *alloc; /* folder of an allocation (alloc.h); NULL: the variable tells */
    /* What an allocation says of the above, owned; the agents are of this machine. */
    char *alloc_agents, *alloc_key_file;
    struct strlist alloc_wds; /* of the programs, absolute: agents started elsewhere */
    struct kept *kept; /* the allocation is one of pods (kept.h), which `pods` names; kept_free */

    bool own_worlds;    /* each program is an MPI_COMM_WORLD of its own */
    bool launch_env;    /* environment alone, no PMIx */
    bool launch_mpirun; /* the program is mpirun, which starts the ranks through the agents */
    /* Ranks that a worker may have: mpirun is told so, and ranks may spawn so many; 0: not said for
     * all workers. */
    uint32_t slots;
    bool oversubscribe; /* ranks may spawn more */
    /* Ranks whose success is the job's, success_count of them from success_first; 0: all. */
    uint32_t success_first, success_count;
    const char *on_rank_failure; /* "end" or "continue"; NULL: not said */
    bool failure_of_spec;        /* the spec says so, and no option */
    const char *bind;            /* NULL: not said */
    uint32_t cores;              /* mpirun's slot:PE=N, which then makes it core:N; 0: not said */
    char bind_cores[16];
    Drarun__Wire__StopAt stop_at; /* where ranks wait for a debugger */
    bool report_bindings;
    int32_t stdin_rank; /* that gets the input of job_new */

    bool json;
    const char *report_path;
    const char *collect_env; /* static: what ranks leave in the folder that this variable names is
                              * kept beside the report, which is a file; NULL: nothing */

    int64_t timeout_ms;     /* 0: none */
    bool timeout_of_spec;   /* no option has set it */
    int warn_signo;         /* that ranks get before timeout_ms is over; 0: none */
    bool signal_of_spec;    /* no option has set it */
    int64_t warn_before_ms; /* so long before it */
    int64_t kill_after_ms;
    int64_t hang_after_ms;    /* 0: nobody looks */
    int64_t agent_timeout_ms; /* how long an agent may be silent; 0: not said */
    int64_t start_timeout_ms; /* 0: not said */
    int64_t orphan_wait_ms;   /* how long agents keep ranks without a launcher */
};

void request_done(struct job_request *request);

/* Kind DRARUN_ERR_USAGE: warn_signo would not come before the end. */
int request_check_warning(const struct job_request *request, struct drarun_error *err);

struct job_spec;
struct spec_role;
/* Whose success is the job's, of programs that are the spec's roles with their ranks. */
void request_decide_success(struct job_request *request, const struct job_spec *spec);
/* spec_role_ranks, with a note where only a line that a shell reads makes it one for several GPUs.
 */
uint32_t request_count_ranks(const struct spec_role *role, bool mpirun, char *const argv[],
                             uint32_t gpus);
/* What the spec says of ranks that fail, unless an option has. */
void request_decide_failure(struct job_request *request, const struct job_spec *spec);
/* For request_pods.grace_ms: what is left of the pods' own grace, so that the report of the end
 * still gets out. */
int64_t request_grace_ms(const struct job_spec *spec);
/* For request_pods.on_host: the pods of a role say hostNetwork. */
bool request_is_on_host(const struct job_spec *spec);

/* What says that a rank that fails does not end the job (cause_continue): static; NULL: it does. */
const char *request_continues(const struct job_request *request);
/* Slots that were said for a worker; 0: none. */
uint32_t request_slots(const struct job_request *request, uint32_t worker);
/* Slots were said for a worker, or that there may be more ranks than slots. */
bool request_may_spawn(const struct job_request *request);
/* A job of a cluster: its spec says what a command line says of others. */
bool request_is_of_spec(const struct job_request *request);

/* Its agents are other people's processes: started by hand, or in pods. */
bool request_is_elsewhere(const struct job_request *request);
/* Everything of the job is on this machine. */
bool request_is_here(const struct job_request *request);
/* The report goes to a file, beside which others can be put; a descriptor is none, nor is a pipe or
 * device, which are written to as they are. */
bool request_reports_to_file(const struct job_request *request);
/* An error if it is certain that the report cannot be written at the job's end. */
int request_check_report(const struct job_request *request, struct drarun_error *err);
/* The job needs agents that are dialled over TLS. */
bool request_is_remote(const struct job_request *request);

#endif
