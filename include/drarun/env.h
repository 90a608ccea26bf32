/* SPDX-License-Identifier: Apache-2.0 */
/* The NCCL, UCX and MPI environment for the devices that this pod or machine really holds, or that
 * a pod with the given claims would hold. */
#ifndef DRARUN_ENV_H
#define DRARUN_ENV_H

#include "drarun/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct drarun_env;

struct drarun_env_options {
    size_t size;               /* of this struct */
    const char *const *claims; /* files with the pod's ResourceClaims. NULL: inspect this machine */
    const char *const *slices; /* files with ResourceSlices, required with claims */
    const char *const *nodes;  /* files with Nodes, whose labels give the machine type */
    const char *pod;           /* which Pod in the files of claims. NULL: the only one */
    const char *probe;         /* file: the pod's probed devices, as JSON. NULL: probe them */
    const char *root;          /* a captured tree to inspect instead of /. NULL: / */
    const char *network; /* "rdma": fail without RDMA; "any": fall back to sockets. NULL: rdma */
    const char *nccl_version;  /* the program's NCCL, such as "2.28.9". NULL: the newest known */
    const char *profile;       /* fabric profile. NULL: detected */
    const char *profiles;      /* file of the site's own profiles, tried first. NULL: none */
    const char *pod_interface; /* interface of the pod network. NULL: that of the default route */
    /* 1: if the profile has a vendor script, run it with /bin/sh in a fork of this process, for at
     * most 5 s, and use what it sets, as the programs do. 0: do not run it; drarun_env_warning says
     * so. */
    unsigned char run_script;
    const char *hca_list;      /* NCCL_IB_HCA: "auto", "always", "never". NULL: auto, by profile */
    const char *mpi_transport; /* "auto", "tcp", "rdma". NULL: auto */
};
DRARUN_DEFINE_INIT(drarun_env_options)

/* NCCL, UCX and MPI variables that are already set in this process's environment belong to the user
 * and are kept. If no correct environment exists for the machine or pod (RDMA was requested and is
 * missing), the error has kind DRARUN_ERR_SPEC. Inspecting a machine takes a few milliseconds. */
DRARUN_API int drarun_env_derive(const struct drarun_env_options *options,
                                 struct drarun_env **ret_env, struct drarun_error *err);
DRARUN_API void drarun_env_free(struct drarun_env *env);

struct drarun_variable { /* borrowed from the env; members may be added at the end */
    const char *name, *value;
    const char *rule;   /* the rule's id, or the profile's name; "user": it was already set */
    const char *fact;   /* the observation that made the rule apply */
    const char *reason; /* why the value is right */
    const char *source; /* the reference for the reason, or "" */
    int prepend;        /* 1: prepend the value, with a ':', to a list such as LD_LIBRARY_PATH */
};
DRARUN_API size_t drarun_env_count(const struct drarun_env *env);
/* Returns NULL past the last one. */
DRARUN_API const struct drarun_variable *drarun_env_at(const struct drarun_env *env, size_t index);
/* Returns NULL if the variable is not set. */
DRARUN_API const char *drarun_env_value(const struct drarun_env *env, const char *name);

/* The profile of the detected machine type, such as "gke-a4", the fact that identified it, and a
 * summary such as "8 GPUs, 8 NICs: 8 PIX, 400 GB/s of 400". */
DRARUN_API const char *drarun_env_profile(const struct drarun_env *env);
DRARUN_API const char *drarun_env_profile_fact(const struct drarun_env *env);
DRARUN_API const char *drarun_env_summary(const struct drarun_env *env);

/* "name: words". Returns NULL past the last one. */
DRARUN_API const char *drarun_env_warning(const struct drarun_env *env, size_t index);

/* Returns what `drarun env` prints. format: "sh" for eval, "json" for the whole plan, "docker" for
 * --env-file, or "nccl.conf". Returns NULL if out of memory or if the format is unknown. */
DRARUN_API char *drarun_env_text(const struct drarun_env *env, const char *format, int explain);

#ifdef __cplusplus
}
#endif
#endif
