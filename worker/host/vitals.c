/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/vitals.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "worker/host/process_tree.h"

struct busiest {
    struct vitals *vitals;
    uint64_t us; /* of that process */
};

/* proc(5): the name may hold spaces and brackets; utime and stime are fields 14 and 15. */
static bool look(pid_t pid, void *arg)
{
    struct busiest *busiest = arg;
    struct vitals *vitals = busiest->vitals;
    char text[1024];
    unsigned long long user = 0, kernel = 0;
    char state = '?';
    if (process_read(pid, "stat", text, sizeof text) <= 0)
        return true;
    const char *open = strchr(text, '('), *after = strrchr(text, ')');
    if (!open || !after ||
        sscanf(after + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &state, &user,
               &kernel) != 3)
        return true;
    uint64_t us = (user + kernel) * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
    vitals->cpu_us += us;
    if (vitals->pid && us < busiest->us)
        return true;
    busiest->us = us;
    vitals->pid = pid;
    vitals->state = state;
    snprintf(vitals->name, sizeof vitals->name, "%.*s", (int)(after - open - 1), open + 1);
    return true;
}

uint64_t vitals_cpu_us(pid_t root)
{
    struct vitals vitals = {0};
    struct busiest busiest = {.vitals = &vitals};
    process_tree_walk(root, look, &busiest);
    return vitals.cpu_us;
}

void vitals_read(pid_t root, struct vitals *ret_vitals)
{
    struct vitals vitals = {0};
    struct busiest busiest = {.vitals = &vitals};
    process_tree_walk(root, look, &busiest);
    if (vitals.pid) {
        process_read(vitals.pid, "wchan", vitals.wchan, sizeof vitals.wchan);
        if (strcmp(vitals.wchan, "0") == 0)
            vitals.wchan[0] = '\0';
        process_read(vitals.pid, "stack", vitals.stack, sizeof vitals.stack);
    }
    *ret_vitals = vitals;
}
