/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time: unaffected by steps of the wall clock. */
#ifndef DRARUN_BASE_CLOCK_H
#define DRARUN_BASE_CLOCK_H

#include <stdint.h>
#include <sys/time.h>
#include <time.h>

static inline int64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static inline int64_t clock_ms(void)
{
    return clock_us() / 1000;
}

static inline struct timeval timeval_from_ms(int64_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
}

#endif
