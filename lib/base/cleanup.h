/* SPDX-License-Identifier: Apache-2.0 */
/* Scope cleanup: a value with one of these attributes is released when its scope ends, unless it
 * was handed over with TAKE_PTR or take_fd. */
#ifndef DRARUN_BASE_CLEANUP_H
#define DRARUN_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <dirent.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define cleanup_free CLEANUP(cleanup_freep)
#define cleanup_close CLEANUP(cleanup_closep)
#define cleanup_file CLEANUP(cleanup_fclosep)
#define cleanup_dir CLEANUP(cleanup_closedirp)

/* Hands the pointer over: yields its value and leaves NULL behind. */
#define TAKE_PTR(p)                                                                                \
    __extension__({                                                                                \
        __typeof__(p) take_ptr_ = (p);                                                             \
        (p) = NULL;                                                                                \
        take_ptr_;                                                                                 \
    })

/* Defines NAMEp(struct x **) for CLEANUP from a destructor that accepts NULL. */
#define DEFINE_CLEANUP(type, fn)                                                                   \
    static inline void fn##p(type **pointer)                                                       \
    {                                                                                              \
        if (*pointer)                                                                              \
            fn(*pointer);                                                                          \
    }

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline void cleanup_freep(void *pointer)
{
    free(*(void **)pointer);
}

static inline void cleanup_closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void cleanup_fclosep(FILE **file)
{
    if (*file)
        fclose(*file);
}

static inline void cleanup_closedirp(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

/* Hands the descriptor over: yields its value and leaves -1 behind. */
static inline int take_fd(int *fd)
{
    int value = *fd;
    *fd = -1;
    return value;
}

/* Closes *fd when it is open and leaves -1 behind. */
static inline void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

#endif
