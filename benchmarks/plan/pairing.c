/* SPDX-License-Identifier: Apache-2.0 */
/* pairing ROUNDS: microseconds of one assignment of 16 GPUs to 32 NICs over random machines, a line
 * a round. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "jobs/derive/pairing/pairing.h"

#define GPUS 16u
#define NICS 32u

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

int main(int argc, char *argv[])
{
    static uint8_t classes[PAIRING_MAX][PAIRING_MAX];
    uint32_t columns[PAIRING_MAX];
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    srandom(1);
    for (long i = 0; i < rounds; i++) {
        for (uint32_t g = 0; g < GPUS; g++)
            for (uint32_t n = 0; n < NICS; n++)
                classes[g][n] = (uint8_t)(random() % 4);
        double began = now_us();
        pairing_assign(GPUS, NICS, classes, columns);
        printf("%.3f\n", now_us() - began);
    }
    return 0;
}
