/* SPDX-License-Identifier: Apache-2.0 */
/* The NCCL, UCX and MPI environment for the devices that this pod or machine really holds, or that
 * a pod whose claims are given would hold. */
#ifndef DRARUN_ENV_H
#define DRARUN_ENV_H

#include "drarun/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct drarun_env;

struct drarun_env_options {
    size_t size;               /* of this struct */
    const char *const *claims; /* files with the pod's ResourceClaims. NULL: look at this machine */
    const char *const *slices; /* files with ResourceSlices, which claims need */
    const char *const *nodes;  /* files with Nodes, whose labels tell the machine type */
    const char *pod;           /* which of the Pods among the claims. NULL: the only one */
    const char *probe;         /* file: what the pod shows, as JSON. NULL: look */
    const char *root;          /* a captured tree in place of / to look at. NULL: / */
    const char *network;       /* "rdma": refuse without it; "any": else sockets. NULL: rdma */
    const char *nccl_version;  /* of the program, "2.28.9". NULL: the newest known */
    const char *profile;       /* fabric profile. NULL: detected */
    const char *profiles;      /* file of the site's profiles, tried first. NULL: none */
    const char *pod_interface; /* of the pod's network. NULL: of its default route */
    /* 1: the vendor's script that some profiles have is run with /bin/sh, up to 5 s, in a fork of
     * this process, as the programs do it: what it sets counts. 0: it is not run, and
     * drarun_env_warning says so. */
    unsigned char run_script;
    const char
        *hca_list; /* NCCL_IB_HCA: "auto", as the profile says; "always"; "never". NULL: auto */
    const char *mpi_transport; /* "auto", "tcp", "rdma". NULL: auto */
};
DRARUN_DEFINE_INIT(drarun_env_options)

/* What this process' environment says for NCCL, UCX and MPI already is the user's, and stays. A
 * machine or pod for which there is no right environment (RDMA was asked for and is not there) is
 * an error of kind DRARUN_ERR_SPEC. Looking at a machine takes a few milliseconds. */
DRARUN_API int drarun_env_derive(const struct drarun_env_options *options,
                                 struct drarun_env **ret_env, struct drarun_error *err);
DRARUN_API void drarun_env_free(struct drarun_env *env);

struct drarun_variable { /* borrowed from the env; further members may come at the end */
    const char *name, *value;
    const char *rule;   /* its id, or the profile's name; "user": it was set already */
    const char *fact;   /* what was seen that made the rule hold */
    const char *reason; /* why the value is right */
    const char *source; /* where that is written, or "" */
    int prepend;        /* 1: a list (as LD_LIBRARY_PATH) before which the value goes with a ':' */
};
DRARUN_API size_t drarun_env_count(const struct drarun_env *env);
/* NULL beyond the last. */
DRARUN_API const struct drarun_variable *drarun_env_at(const struct drarun_env *env, size_t index);
/* NULL: not set. */
DRARUN_API const char *drarun_env_value(const struct drarun_env *env, const char *name);

/* Of the machine type that was found: "gke-a4"; and "8 GPUs, 8 NICs: 8 PIX, 400 GB/s of 400". */
DRARUN_API const char *drarun_env_profile(const struct drarun_env *env);
DRARUN_API const char *drarun_env_profile_fact(const struct drarun_env *env);
DRARUN_API const char *drarun_env_summary(const struct drarun_env *env);

/* "name: words". NULL beyond the last. */
DRARUN_API const char *drarun_env_warning(const struct drarun_env *env, size_t index);

/* As `drarun env` prints it. format: "sh" for eval, "json" the whole plan, "docker" for --env-file,
 * "nccl.conf". NULL: out of memory, or no such format. */
DRARUN_API char *drarun_env_text(const struct drarun_env *env, const char *format, int explain);

#ifdef __cplusplus
}
#endif
#endif
