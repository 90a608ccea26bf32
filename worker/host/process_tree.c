/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/process_tree.h"

#include <stdio.h>
#include <stdlib.h>

#define DEPTH_MAX 16u
#define PROCESSES_MAX 512u

struct walk {
    bool (*look)(pid_t pid, void *arg);
    void *arg;
    unsigned seen;
};

int process_read(pid_t pid, const char *name, char *text, size_t size)
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

/* False: the walk is at its end. */
static bool visit(pid_t pid, struct walk *walk, unsigned depth)
{
    char name[48], text[4096];
    if (depth > DEPTH_MAX)
        return true;
    if (walk->seen++ >= PROCESSES_MAX || !walk->look(pid, walk->arg))
        return false;
    snprintf(name, sizeof name, "task/%d/children", (int)pid);
    if (process_read(pid, name, text, sizeof text) <= 0)
        return true;
    for (char *at = text, *end; *at; at = end) {
        long child = strtol(at, &end, 10);
        if (end == at || child <= 0)
            return true;
        if (*end == '\0')
            return true; /* perhaps a number that was cut off */
        if (!visit((pid_t)child, walk, depth + 1))
            return false;
        end += *end == ' ';
    }
    return true;
}

void process_tree_walk(pid_t root, bool (*look)(pid_t pid, void *arg), void *arg)
{
    struct walk walk = {.look = look, .arg = arg};
    visit(root, &walk, 0);
}
