/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into both programs of a comparison, so that MPI_Alloc_mem gives both the same memory: a
 * buffer each at the same addresses, on huge pages that were written. Where buffers lie, as to each
 * other and within a page, is otherwise what decides how long a call takes (an all_reduce of 16
 * KiB: 5 or 14 us), and differs by program and from size to size. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define BUFFERS 64
#define FIRST                                                                                      \
    ((uintptr_t)1                                                                                  \
     << 45) /* far below what the kernel gives by itself, and above programs and their heaps */
#define APART ((uintptr_t)1 << 32)
#define PAGE ((size_t)2 << 20)

static size_t mapped[BUFFERS];
static char taken[BUFFERS];

static char *address(int i)
{
    return (char *)(FIRST + (uintptr_t)i * APART);
}

static int grow(int i, size_t bytes)
{
    char *from = address(i) + mapped[i];
    size_t more = bytes - mapped[i];
    if (mmap(from, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
             -1, 0) != from)
        return MPI_ERR_NO_MEM;
    madvise(from, more, MADV_HUGEPAGE);
    memset(from, 0x3f, more);
    mapped[i] = bytes;
    return MPI_SUCCESS;
}

int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
    size_t bytes = ((size_t)size / PAGE + 1) * PAGE;
    int i = 0;
    (void)info;
    while (i < BUFFERS && taken[i])
        i++;
    if (size < 0 || bytes > APART || i == BUFFERS ||
        (bytes > mapped[i] && grow(i, bytes) != MPI_SUCCESS))
        return MPI_ERR_NO_MEM;
    taken[i] = 1;
    *(void **)baseptr = address(i);
    return MPI_SUCCESS;
}

/* What is given back keeps its pages for the next one. */
int MPI_Free_mem(void *base)
{
    if (base)
        taken[((uintptr_t)base - FIRST) / APART] = 0;
    return MPI_SUCCESS;
}
