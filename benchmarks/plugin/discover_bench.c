/* SPDX-License-Identifier: Apache-2.0 */
/* discover DIR [RUNS]: how long one reading of a node's devices takes, in milliseconds: the
 * fastest and the median of RUNS (default 200) in one process, the median of its CPU time, which
 * says more where the machine is busy, and how many devices were found. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/number.h"
#include "plugin/discover/discover.h"
#include "plugin/discover/select.h"

static int by_value(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static int64_t cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
    struct drarun_error err = {0};
    struct discover_config config;
    int64_t runs = 200;
    size_t found = 0;
    int root = argc > 1 ? open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (root < 0 || (argc > 2 && number_parse("RUNS", argv[2], 1, 1000000, &runs, &err) < 0)) {
        fprintf(stderr, "usage: discover DIR [RUNS]\n");
        return 64;
    }
    int64_t *us = calloc((size_t)runs, 2 * sizeof *us), *cpu = us ? us + runs : NULL;
    discover_config_default(&config);
    const struct discover_source source = {.root = root, .config = &config};
    for (int64_t i = 0; us && i < runs; i++) {
        struct node_devices devices;
        int64_t start = clock_us(), busy = cpu_us();
        if (discover(&source, &devices, &err) < 0 || select_devices(&config, &devices, &err) < 0) {
            fprintf(stderr, "%s\n", err.text);
            return 70;
        }
        us[i] = clock_us() - start;
        cpu[i] = cpu_us() - busy;
        found = devices.count;
        node_devices_done(&devices);
    }
    if (us) {
        qsort(us, (size_t)runs, sizeof *us, by_value);
        qsort(cpu, (size_t)runs, sizeof *cpu, by_value);
        size_t middle = (size_t)runs / 2;
        printf("%zu devices: fastest %.2f ms, median %.2f ms, CPU %.2f ms\n", found,
               (double)us[0] / 1000, (double)us[middle] / 1000, (double)cpu[middle] / 1000);
    }
    free(us);
    discover_config_done(&config);
    return us ? 0 : 70;
}
