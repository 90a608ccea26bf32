/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing two pieces of a GPU's memory there: the one thing here that needs a kernel. The kernel
 * is text in PTX, which the driver compiles for the GPU that it finds, so that none of NVIDIA's
 * compilers is needed. Of one thread. */
#ifndef DRARUN_BENCH_CUDA_COMPARE_H
#define DRARUN_BENCH_CUDA_COMPARE_H

#include "benchmarks/bench/cuda_api.h"

struct cuda_compare {
    const struct cuda_api *cuda; /* borrowed */
    struct CUmod_st *module;
    struct CUfunc_st *kernel; /* NULL: it can't be had */
    unsigned *differ;         /* one word of the device */
};

/* On the device that cudaSetDevice chose. Without a driver that takes the kernel nothing is had,
 * and cuda_compare_same is false from then on. */
void cuda_compare_open(const struct cuda_api *cuda, struct cuda_compare *ret);
void cuda_compare_close(struct cuda_compare *c);

/* Whether `bytes` at a and b, memory of the device at any address, are equal once the stream has
 * come here; false also where it can't tell. Waits. What fails on the GPU is what the stream's next
 * call answers. */
bool cuda_compare_same(const struct cuda_compare *c, const void *a, const void *b, size_t bytes,
                       cudaStream_t stream);

#endif
