/* SPDX-License-Identifier: Apache-2.0 */
/* What is used of the CUDA runtime, found at run time. Prototypes are those of
 * cuda_runtime_api.h 12.9; none of them changed between 11 and 13. */
#ifndef DRARUN_BENCH_CUDA_API_H
#define DRARUN_BENCH_CUDA_API_H

#include "benchmarks/bench/nccl_api.h"

enum {
    CUDA_SUCCESS = 0,
    CUDA_OLD_DRIVER = 35, /* cudaErrorInsufficientDriver; also without any */
    CUDA_NO_DEVICE = 100,
    CUDA_NOT_READY = 600,
    CUDA_COPY_ANY = 4, /* cudaMemcpyDefault */
    CUDA_STREAM_NON_BLOCKING = 1,
};

typedef struct CUevent_st *cudaEvent_t;

#define CUDA_CALLS(CALL)                                                                           \
    CALL(int, cudaGetDeviceCount, (int *count))                                                    \
    CALL(int, cudaSetDevice, (int device))                                                         \
    CALL(int, cudaGetDeviceProperties, (void *properties, int device))                             \
    CALL(int, cudaDeviceGetPCIBusId, (char *text, int length, int device))                         \
    CALL(int, cudaRuntimeGetVersion, (int *version))                                               \
    CALL(const char *, cudaGetErrorString, (int error))                                            \
    CALL(int, cudaMemGetInfo, (size_t * free, size_t * total))                                     \
    CALL(int, cudaMalloc, (void **memory, size_t bytes))                                           \
    CALL(int, cudaFree, (void *memory))                                                            \
    CALL(int, cudaMemcpyAsync,                                                                     \
         (void *to, const void *from, size_t bytes, int kind, cudaStream_t stream))                \
    CALL(int, cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags))                  \
    CALL(int, cudaStreamDestroy, (cudaStream_t stream))                                            \
    CALL(int, cudaStreamQuery, (cudaStream_t stream))                                              \
    CALL(int, cudaStreamSynchronize, (cudaStream_t stream))                                        \
    CALL(int, cudaEventCreate, (cudaEvent_t * event))                                              \
    CALL(int, cudaEventRecord, (cudaEvent_t event, cudaStream_t stream))                           \
    CALL(int, cudaEventElapsedTime, (float *milliseconds, cudaEvent_t from, cudaEvent_t to))       \
    CALL(int, cudaEventDestroy, (cudaEvent_t event))

struct cuda_api {
    int version; /* 12090 */
    int devices; /* that this process sees, at least 1 */
    CUDA_CALLS(NCCL_MEMBER)
};

/* The newest runtime that the driver takes; it stays open. -ENOENT without a runtime, -ENODEV
 * without a driver or a device. */
int cuda_api_open(struct cuda_api *ret, struct drarun_error *err);

/* The device's name, as "NVIDIA H100 80GB HBM3"; "" when it cannot be had. */
void cuda_device_name(const struct cuda_api *cuda, int device, char *ret, size_t size);

#endif
