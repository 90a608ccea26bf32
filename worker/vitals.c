/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/vitals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 16u
#define PROCESSES_MAX 512u

struct walk {
    struct vitals *vitals;
    uint64_t most_us; /* of the busiest process */
    unsigned seen;
};

static int read_proc(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, size - 1, file) : 0;
    text[n] = '\0';
    if (file)
        fclose(file);
    return (int)n;
}

/* proc(5): the name may hold spaces and brackets; utime and stime are fields 14 and 15. */
static void look(pid_t pid, struct walk *walk)
{
    char text[1024];
    unsigned long long user = 0, kernel = 0;
    char state = '?';
    if (read_proc(pid, "stat", text, sizeof text) <= 0)
        return;
    const char *open = strchr(text, '('), *after = strrchr(text, ')');
    if (!open || !after ||
        sscanf(after + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &state, &user,
               &kernel) != 3)
        return;
    uint64_t us = (user + kernel) * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
    walk->vitals->cpu_us += us;
    if (walk->vitals->pid && us < walk->most_us)
        return;
    walk->most_us = us;
    walk->vitals->pid = pid;
    walk->vitals->state = state;
    snprintf(walk->vitals->name, sizeof walk->vitals->name, "%.*s", (int)(after - open - 1),
             open + 1);
}

static void visit(pid_t pid, struct walk *walk, unsigned depth)
{
    char name[48], text[4096];
    if (depth > DEPTH_MAX || walk->seen++ > PROCESSES_MAX)
        return;
    look(pid, walk);
    snprintf(name, sizeof name, "task/%d/children", (int)pid);
    if (read_proc(pid, name, text, sizeof text) <= 0)
        return;
    for (char *at = text, *end; *at; at = end) {
        long child = strtol(at, &end, 10);
        if (end == at || child <= 0)
            return;
        if (*end == '\0')
            return; /* perhaps a number that was cut off */
        visit((pid_t)child, walk, depth + 1);
        end += *end == ' ';
    }
}

uint64_t vitals_cpu_us(pid_t root)
{
    struct vitals vitals = {0};
    struct walk walk = {.vitals = &vitals};
    visit(root, &walk, 0);
    return vitals.cpu_us;
}

void vitals_read(pid_t root, struct vitals *ret_vitals)
{
    struct vitals vitals = {0};
    struct walk walk = {.vitals = &vitals};
    visit(root, &walk, 0);
    if (vitals.pid) {
        read_proc(vitals.pid, "wchan", vitals.wchan, sizeof vitals.wchan);
        if (strcmp(vitals.wchan, "0") == 0)
            vitals.wchan[0] = '\0';
        read_proc(vitals.pid, "stack", vitals.stack, sizeof vitals.stack);
    }
    *ret_vitals = vitals;
}
