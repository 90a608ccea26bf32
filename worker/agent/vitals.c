/* SPDX-License-Identifier: Apache-2.0 */
/* Answers what the launcher asks to tell a job that works from one that hangs. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/progress.h"
#include "lib/inspect/traffic.h"
#include "worker/agent/private.h"
#include "worker/host/vitals.h"

struct entry {
    Drarun__Wire__RankVitals wire;
    struct vitals vitals;
    struct progress_page page;
    char state[2];
};

bool agent_progress_path(const struct agent *agent, uint32_t rank, char *path, size_t size)
{
    return agent->session.shm_dir[0] &&
           snprintf(path, size, "%s/progress.%u", agent->session.shm_dir, rank) < (int)size;
}

static void fill(const struct agent *agent, struct entry *entry, uint32_t rank)
{
    char path[sizeof agent->session.shm_dir + 32];
    drarun__wire__rank_vitals__init(&entry->wire);
    entry->state[0] = entry->vitals.state;
    entry->wire.rank = rank;
    entry->wire.pid = (uint32_t)entry->vitals.pid;
    entry->wire.name = entry->vitals.name;
    entry->wire.state = entry->state;
    entry->wire.wchan = entry->vitals.wchan;
    entry->wire.stack = entry->vitals.stack;
    entry->wire.cpu_us = entry->vitals.cpu_us;
    if (!agent_progress_path(agent, rank, path, sizeof path) || !progress_read(path, &entry->page))
        return;
    entry->wire.step = entry->page.step;
    entry->wire.alone = entry->page.alone;
    entry->wire.what = entry->page.what;
}

static size_t look_at_ranks(const struct agent *agent, struct entry *entries,
                            Drarun__Wire__RankVitals **pointers, uint64_t *cpu_us)
{
    size_t count = 0, left = agent->ranks ? ranks_running(agent->ranks) : 0;
    for (uint32_t i = 0; left > 0 && i < agent->job.local_count; i++) {
        pid_t pid = ranks_pid(agent->ranks, agent->job.local[i]);
        if (pid <= 0)
            continue;
        left--;
        if (!entries) {
            *cpu_us += vitals_cpu_us(pid);
            continue;
        }
        vitals_read(pid, &entries[count].vitals);
        fill(agent, &entries[count], agent->job.local[i]);
        *cpu_us += entries[count].vitals.cpu_us;
        pointers[count] = &entries[count].wire;
        count++;
    }
    return count;
}

void agent_send_vitals(struct agent *agent, bool ranks)
{
    Drarun__Wire__Vitals message = DRARUN__WIRE__VITALS__INIT;
    struct traffic traffic;
    size_t most = agent->ranks ? ranks_running(agent->ranks) : 0;
    cleanup_free struct entry *entries = ranks && most ? calloc(most, sizeof *entries) : NULL;
    cleanup_free Drarun__Wire__RankVitals **pointers = calloc(most + 1, sizeof *pointers);
    if (!pointers)
        return; /* the launcher asks again */
    traffic_read(-1, &traffic);
    message.rdma_bytes = traffic.rdma;
    message.net_bytes = traffic.net;
    message.loop_bytes = traffic.loop;
    message.output_bytes = agent->output_bytes;
    message.n_ranks = look_at_ranks(agent, entries, pointers, &message.cpu_us);
    message.ranks = pointers;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(VITALS, vitals, &message);
    agent_send(agent, &envelope);
}
