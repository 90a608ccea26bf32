// SPDX-License-Identifier: Apache-2.0
// What the reader of NCCL's src/graph/xml.cc needs of NCCL's other headers, without CUDA: stands
// for core.h, nccl.h, debug.h, checks.h, alloc.h, os.h and nvmlwrap.h (tests/test_topo.py).
#pragma once
#include <algorithm>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NCCL_OS_LINUX 1
#define NCCL_OS_WINDOWS 0
enum ncclResult_t { ncclSuccess, ncclSystemError, ncclInternalError, ncclInvalidUsage };
enum { NCCL_GRAPH = 1, NCCL_ENV = 2, NCCL_NET = 4, NCCL_INIT = 8 };
#define WARN(...) (fprintf(stderr, "WARN "), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))
#define INFO(flags, ...)                                                                           \
    (fprintf(stderr, "INFO "), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))
#define TRACE(...)                                                                                 \
    do {                                                                                           \
    } while (0)
#define NCCLCHECK(call)                                                                            \
    do {                                                                                           \
        ncclResult_t shim_result = (call);                                                         \
        if (shim_result != ncclSuccess)                                                            \
            return shim_result;                                                                    \
    } while (0)
#define NCCLCHECKNOWARN(call, flags) NCCLCHECK(call)
#define NOWARN(call, flags)                                                                        \
    do {                                                                                           \
        call;                                                                                      \
    } while (0)

template <typename T> static ncclResult_t ncclCalloc(T **ret, size_t count)
{
    *ret = static_cast<T *>(calloc(count, sizeof(T)));
    return *ret ? ncclSuccess : ncclSystemError;
}

template <typename T> static ncclResult_t ncclRealloc(T **ret, size_t, size_t count)
{
    T *grown = static_cast<T *>(realloc(*ret, count * sizeof(T)));
    if (grown)
        *ret = grown;
    return grown ? ncclSuccess : ncclSystemError;
}
