/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan has to say beside its values: codes (docs/design/011-derivation.md) with a worker and
 * words for people. A refusal is the one that ends the plan. */
#ifndef DRARUN_JOBS_WARNINGS_H
#define DRARUN_JOBS_WARNINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WARNING_CODES(X)                                                                           \
    X(NO_GPU)                                                                                      \
    X(NO_RDMA_NIC)                                                                                 \
    X(DEVICE_NOT_IN_SLICES)                                                                        \
    X(MIXED_PROFILES)                                                                              \
    X(MIG_SAME_PARENT)                                                                             \
    X(MISALIGNED_SYS)                                                                              \
    X(MISALIGNED_NODE)                                                                             \
    X(MISALIGNED_PHB)                                                                              \
    X(NIC_VIA_PXN)                                                                                 \
    X(NIC_UNUSED_P2P)                                                                              \
    X(FEWER_NICS_THAN_GPUS)                                                                        \
    X(MIXED_NIC_SPEED)                                                                             \
    X(RAIL_MISMATCH)                                                                               \
    X(UNEVEN_GPUS)                                                                                 \
    X(UNEVEN_NICS)                                                                                 \
    X(SAME_NODE_PODS)                                                                              \
    X(GDR_UNAVAILABLE)                                                                             \
    X(C2C_GDR_OFF)                                                                                 \
    X(NIC_NOT_RDMA)                                                                                \
    X(NIC_LEFT_OUT)                                                                                \
    X(NIC_NO_ADDRESS)                                                                              \
    X(NUMA_UNKNOWN)                                                                                \
    X(IBDEV_UNKNOWN)                                                                               \
    X(EXTRA_IB_DEVICES_VISIBLE)                                                                    \
    X(GID_INDEX_DIFFERS)                                                                           \
    X(PROFILE_FILE_MISSING)                                                                        \
    X(PROFILE_NOT_NAMED)                                                                           \
    X(VENDOR_SCRIPT_DIFFERS)                                                                       \
    X(VENDOR_SCRIPT_NOT_USED)                                                                      \
    X(GPUS_BY_DEVICE_PLUGIN)                                                                       \
    X(GPUS_UNKNOWN)                                                                                \
    X(GPU_VENDOR)                                                                                  \
    X(METADATA_NOT_USED)                                                                           \
    X(PROFILE_NEEDS_WHOLE_NODE)                                                                    \
    X(IMEX_CHANNEL_MISSING)                                                                        \
    X(IMEX_CLIQUE_MISMATCH)                                                                        \
    X(INSPECTOR_MISSING)                                                                           \
    X(MIG_NO_P2P)                                                                                  \
    X(USER_OVERRIDES_PROFILE)

enum warning_code {
    WARNING_NONE = 0,
#define WARNING_ENUM(name) WARN_##name,
    WARNING_CODES(WARNING_ENUM)
#undef WARNING_ENUM
        WARNING_COUNT,
};

#define WORKER_NONE (-1) /* of the whole job */

struct warning {
    enum warning_code code;
    int32_t worker;
    char *detail; /* owned */
};

struct warnings {
    struct warning *list;
    size_t count, cap;
    bool failed; /* out of memory: the list is incomplete */
};

const char *warning_name(enum warning_code code);
/* One sentence each without a full stop: what the code means, and what to do. NULL: of no code. */
const char *warning_meaning(enum warning_code code);
const char *warning_cure(enum warning_code code);
void warnings_add(struct warnings *warnings, enum warning_code code, int32_t worker,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* By name, worker, detail: the same plan always reads the same. */
void warnings_sort(struct warnings *warnings);
/* Each wording once, in the order of names and words. workers: "worker 3", "workers 0-7,9", or ""
 * where it is of the whole job; warning: the first one's. */
typedef void (*warning_fn)(const struct warning *warning, const char *workers, void *arg);
/* -ENOMEM. */
int warnings_each_wording(const struct warnings *warnings, warning_fn fn, void *arg);
bool warnings_have(const struct warnings *warnings, enum warning_code code, int32_t worker);
void warnings_done(struct warnings *warnings);

#endif
