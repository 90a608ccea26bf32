/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/chance.h"

#include <stdint.h>
#include <time.h>
#include <unistd.h>
#include <sys/random.h>

#define MANTISSA_BITS 53

/* Where a sandbox forbids getrandom(2): what two processes do not share (Fibonacci hashing). */
static uint64_t without_kernel(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_nsec ^ (uint64_t)getpid() << 32) * UINT64_C(0x9e3779b97f4a7c15);
}

double chance_draw(void)
{
    uint64_t bits;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits)
        bits = without_kernel();
    return (double)(bits >> (64 - MANTISSA_BITS)) / (double)(UINT64_C(1) << MANTISSA_BITS);
}
