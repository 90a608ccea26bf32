/* SPDX-License-Identifier: Apache-2.0 */
/* What is used of libnccl.so.2, found at run time, so that nothing of NVIDIA is needed to build or
 * to start. Prototypes, enums and the id's size are those of nccl.h 2.32.3; a test holds them
 * against that header and that library. */
#ifndef DRARUN_BENCH_NCCL_API_H
#define DRARUN_BENCH_NCCL_API_H

#include <stdbool.h>
#include <stddef.h>

#include "drarun/error.h"

#define NCCL_OLDEST 21000 /* bfloat16, the average, sends within groups */
#define NCCL_ID_BYTES 128
#define NCCL_STAND_IN "drarun_stand_in"

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct {
    char internal[NCCL_ID_BYTES];
} ncclUniqueId;

enum {
    NCCL_SUCCESS = 0,
    NCCL_IN_PROGRESS = 7,
    NCCL_HOST_IMMEDIATE = 1,
    NCCL_SYMMETRIC = 1, /* NCCL_WIN_COLL_SYMMETRIC */
};

/* CALL(result, name, parameters): types and operations are enums of C, thus ints. */
#define NCCL_CALLS(CALL)                                                                           \
    CALL(int, ncclGetVersion, (int *version))                                                      \
    CALL(int, ncclGetUniqueId, (ncclUniqueId * id))                                                \
    CALL(int, ncclCommInitRank, (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank))         \
    CALL(int, ncclCommDestroy, (ncclComm_t comm))                                                  \
    CALL(int, ncclCommGetAsyncError, (ncclComm_t comm, int *result))                               \
    CALL(const char *, ncclGetErrorString, (int result))                                           \
    CALL(int, ncclAllReduce,                                                                       \
         (const void *send, void *recv, size_t count, int type, int op, ncclComm_t comm,           \
          cudaStream_t stream))                                                                    \
    CALL(int, ncclAllGather,                                                                       \
         (const void *send, void *recv, size_t count, int type, ncclComm_t comm,                   \
          cudaStream_t stream))                                                                    \
    CALL(int, ncclReduceScatter,                                                                   \
         (const void *send, void *recv, size_t count, int type, int op, ncclComm_t comm,           \
          cudaStream_t stream))                                                                    \
    CALL(int, ncclBroadcast,                                                                       \
         (const void *send, void *recv, size_t count, int type, int root, ncclComm_t comm,         \
          cudaStream_t stream))                                                                    \
    CALL(int, ncclReduce,                                                                          \
         (const void *send, void *recv, size_t count, int type, int op, int root, ncclComm_t comm, \
          cudaStream_t stream))                                                                    \
    CALL(int, ncclSend,                                                                            \
         (const void *send, size_t count, int type, int peer, ncclComm_t comm,                     \
          cudaStream_t stream))                                                                    \
    CALL(int, ncclRecv,                                                                            \
         (void *recv, size_t count, int type, int peer, ncclComm_t comm, cudaStream_t stream))     \
    CALL(int, ncclGroupStart, (void))                                                              \
    CALL(int, ncclGroupEnd, (void))

/* Newer ones, NULL in a library that has them not. */
#define NCCL_NEWER_CALLS(CALL)                                                                     \
    CALL(int, ncclAlltoAll,                                                                        \
         (const void *send, void *recv, size_t count, int type, ncclComm_t comm,                   \
          cudaStream_t stream))                                                                    \
    CALL(int, ncclGather,                                                                          \
         (const void *send, void *recv, size_t count, int type, int root, ncclComm_t comm,         \
          cudaStream_t stream))                                                                    \
    CALL(int, ncclScatter,                                                                         \
         (const void *send, void *recv, size_t count, int type, int root, ncclComm_t comm,         \
          cudaStream_t stream))                                                                    \
    CALL(const char *, ncclGetLastError, (ncclComm_t comm))                                        \
    CALL(int, ncclRedOpCreatePreMulSum,                                                            \
         (int *op, void *scalar, int type, int residence, ncclComm_t comm))                        \
    CALL(int, ncclRedOpDestroy, (int op, ncclComm_t comm))                                         \
    CALL(int, ncclMemAlloc, (void **memory, size_t bytes))                                         \
    CALL(int, ncclMemFree, (void *memory))                                                         \
    CALL(int, ncclCommRegister,                                                                    \
         (const ncclComm_t comm, void *memory, size_t bytes, void **handle))                       \
    CALL(int, ncclCommDeregister, (const ncclComm_t comm, void *handle))                           \
    CALL(int, ncclCommWindowRegister,                                                              \
         (ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window, int flags))           \
    CALL(int, ncclCommWindowDeregister, (ncclComm_t comm, ncclWindow_t window))

#define NCCL_MEMBER(result, name, parameters) result(*name) parameters;
struct nccl_api {
    int version;   /* 23203 */
    bool stand_in; /* it exports NCCL_STAND_IN: a test's, whose times say nothing */
    // NOLINTBEGIN(misc-misplaced-const): as nccl.h declares them
    NCCL_CALLS(NCCL_MEMBER)
    NCCL_NEWER_CALLS(NCCL_MEMBER)
    // NOLINTEND(misc-misplaced-const)
};

/* Opens the library; it stays open. -ENOENT when there is none, -ENOSYS when it lacks a call,
 * -EPROTO when it is older than NCCL_OLDEST. */
int nccl_api_open(struct nccl_api *ret, struct drarun_error *err);

/* "2.32.3" */
void nccl_version_text(int version, char *ret, size_t size);

#endif
