/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/cuda_compare.h"

#include <dlfcn.h>

#include "lib/base/cleanup.h"

#define THREADS 256u /* of a block */
#define BLOCKS 4096u /* at most: several for each multiprocessor of any GPU */

/* Each thread begins at its own byte and goes on by the number of threads. PTX ISA 6.0, the
 * driver's of CUDA 9, for compute capability 5.0; drivers compile it for each GPU since. */
static const char ptx[] = ".version 6.0\n"
                          ".target sm_50\n"
                          ".address_size 64\n"
                          ".visible .entry compare(.param .u64 a, .param .u64 b, .param .u64 bytes,"
                          " .param .u64 differ)\n"
                          "{\n"
                          "    .reg .pred %done, %differs;\n"
                          "    .reg .b16 %left, %right;\n"
                          "    .reg .b32 %block, %size, %thread, %one;\n"
                          "    .reg .b64 %a, %b, %bytes, %differ, %at, %step, %x, %y;\n"
                          "    ld.param.u64 %a, [a];\n"
                          "    ld.param.u64 %b, [b];\n"
                          "    ld.param.u64 %bytes, [bytes];\n"
                          "    ld.param.u64 %differ, [differ];\n"
                          "    cvta.to.global.u64 %a, %a;\n"
                          "    cvta.to.global.u64 %b, %b;\n"
                          "    cvta.to.global.u64 %differ, %differ;\n"
                          "    mov.u32 %one, 1;\n"
                          "    mov.u32 %size, %ntid.x;\n"
                          "    mov.u32 %block, %nctaid.x;\n"
                          "    mul.wide.u32 %step, %block, %size;\n"
                          "    mov.u32 %block, %ctaid.x;\n"
                          "    mul.wide.u32 %at, %block, %size;\n"
                          "    mov.u32 %thread, %tid.x;\n"
                          "    cvt.u64.u32 %x, %thread;\n"
                          "    add.u64 %at, %at, %x;\n"
                          "next:\n"
                          "    setp.ge.u64 %done, %at, %bytes;\n"
                          "    @%done bra end;\n"
                          "    add.u64 %x, %a, %at;\n"
                          "    add.u64 %y, %b, %at;\n"
                          "    ld.global.u8 %left, [%x];\n"
                          "    ld.global.u8 %right, [%y];\n"
                          "    setp.ne.u16 %differs, %left, %right;\n"
                          "    @%differs st.global.u32 [%differ], %one;\n"
                          "    add.u64 %at, %at, %step;\n"
                          "    bra next;\n"
                          "end:\n"
                          "    ret;\n"
                          "}\n";

/* Of the driver, cuda.h; the context is the one that the runtime made current. */
static struct {
    int (*cuModuleLoadData)(struct CUmod_st **module, const void *image);
    int (*cuModuleUnload)(struct CUmod_st *module);
    int (*cuModuleGetFunction)(struct CUfunc_st **function, struct CUmod_st *module,
                               const char *name);
    int (*cuLaunchKernel)(struct CUfunc_st *function, unsigned grid_x, unsigned grid_y,
                          unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, cudaStream_t stream, void **parameters,
                          void **extra);
} driver;

static bool find_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* as the runtime has it */
#define FIND(name) ((*(void **)&driver.name = dlsym(library, #name)) != NULL)
    return library && FIND(cuModuleLoadData) && FIND(cuModuleUnload) && FIND(cuModuleGetFunction) &&
           FIND(cuLaunchKernel);
}

void cuda_compare_open(const struct cuda_api *cuda, struct cuda_compare *ret)
{
    struct cuda_compare c = {.cuda = cuda};
    if (cuda->cudaMalloc((void **)&c.differ, sizeof *c.differ) == CUDA_SUCCESS && find_driver() &&
        driver.cuModuleLoadData(&c.module, ptx) == CUDA_SUCCESS &&
        driver.cuModuleGetFunction(&c.kernel, c.module, "compare") != CUDA_SUCCESS)
        c.kernel = NULL;
    *ret = c;
}

void cuda_compare_close(struct cuda_compare *c)
{
    if (c->module)
        driver.cuModuleUnload(c->module);
    if (c->differ)
        c->cuda->cudaFree(c->differ);
    *c = (struct cuda_compare){0};
}

bool cuda_compare_same(const struct cuda_compare *c, const void *a, const void *b, size_t bytes,
                       cudaStream_t stream)
{
    unsigned differ = 0, *word = c->differ;
    unsigned long long count = bytes;
    unsigned long long blocks = (count + THREADS - 1) / THREADS;
    void *parameters[] = {(void *)&a, (void *)&b, &count, &word};
    if (!c->kernel || bytes == 0)
        return c->kernel != NULL;
    return c->cuda->cudaMemcpyAsync(word, &differ, sizeof differ, CUDA_COPY_ANY, stream) ==
               CUDA_SUCCESS &&
           driver.cuLaunchKernel(c->kernel, blocks < BLOCKS ? (unsigned)blocks : BLOCKS, 1, 1,
                                 THREADS, 1, 1, 0, stream, parameters, NULL) == CUDA_SUCCESS &&
           c->cuda->cudaMemcpyAsync(&differ, word, sizeof differ, CUDA_COPY_ANY, stream) ==
               CUDA_SUCCESS &&
           c->cuda->cudaStreamSynchronize(stream) == CUDA_SUCCESS && differ == 0;
}
