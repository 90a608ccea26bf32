/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of the job are as processes: each agent knows its own, and tools ask any one for
 * all of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/topo/cpus.h"
#include "lib/wire/copy.h"
#include "worker/pmix/host_private.h"

/* Agents answer from what they have in memory. */
#define SILENCE_MAX_MS 10000

static void add_executable(Drarun__Wire__Process *process)
{
    char path[32], target[4096];
    snprintf(path, sizeof path, "/proc/%u/exe", process->pid);
    ssize_t n = process->ended ? -1 : readlink(path, target, sizeof target - 1);
    if (n <= 0)
        return;
    target[n] = '\0';
    char *copy = strdup(target);
    if (copy)
        process->executable = copy;
}

static void add_cpus(const struct pmix_host *host, uint32_t index, Drarun__Wire__Process *process)
{
    struct buf text = BUF_INIT;
    if (index < host->cpus_count && host->cpus[index].count > 0)
        cpulist_format(host->cpus[index].ids, host->cpus[index].count, &text);
    char *copy = text.data && !text.failed ? strdup(text.data) : NULL;
    if (copy)
        process->cpus = copy;
    buf_done(&text);
}

static Drarun__Wire__Process *process_new(struct pmix_host *host, uint32_t index)
{
    Drarun__Wire__Process *process = malloc(sizeof *process);
    struct pmix_process found;
    if (!process)
        return NULL;
    drarun__wire__process__init(process);
    process->rank = host->job->local[index];
    host->owner.process(host->owner.arg, process->rank, &found);
    process->pid = (uint32_t)found.pid;
    process->ended = found.ended;
    process->connected = found.connected;
    process->code = found.code;
    if (found.pid > 0)
        add_executable(process);
    add_cpus(host, index, process);
    return process;
}

void pmix_processes_request(struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    Drarun__Wire__Routed reply = DRARUN__WIRE__ROUTED__INIT;
    Drarun__Wire__Processes none = DRARUN__WIRE__PROCESSES__INIT;
    Drarun__Wire__Processes *list = malloc(sizeof *list);
    if (list) {
        drarun__wire__processes__init(list);
        list->processes = calloc(host->job->local_count + 1, sizeof *list->processes);
    }
    for (uint32_t i = 0; list && list->processes && i < host->job->local_count; i++)
        if ((list->processes[list->n_processes] = process_new(host, i)))
            list->n_processes++;
    reply.destination = message->source;
    reply.id = message->id;
    reply.body_case = DRARUN__WIRE__ROUTED__BODY_PROCESSES;
    reply.processes = list ? list : &none;
    pmix_route(host, &reply);
    if (list)
        drarun__wire__processes__free_unpacked(list, NULL);
}

static void table_free(struct process_table *table)
{
    for (size_t i = 0; i < table->answer_count; i++)
        drarun__wire__processes__free_unpacked(table->answers[i], NULL);
    if (table->timer)
        event_free(table->timer);
    free(table->answers);
    free(table->asked);
    free(table);
}

static struct process_table *unlink_table(struct pmix_host *host, struct process_table *table)
{
    struct process_table **at = &host->tables;
    while (*at && *at != table)
        at = &(*at)->next;
    if (*at)
        *at = table->next;
    return table;
}

/* One agent has answered, or it is not worth waiting for another. */
static void answered(struct pmix_host *host, struct process_table *table)
{
    if (--table->awaited > 0)
        return;
    unlink_table(host, table);
    table->done(host, table->upcall, table);
    table_free(table);
}

void pmix_processes(struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    struct process_table *table = host->tables;
    while (table && table->id != message->id)
        table = table->next;
    if (!table || message->source >= host->job->map.workers || !table->asked[message->source])
        return;
    table->asked[message->source] = false;
    Drarun__Wire__Processes *answer = wire_copy(&message->processes->base);
    if (answer)
        table->answers[table->answer_count++] = answer;
    answered(host, table);
}

static void on_silence(evutil_socket_t fd, short what, void *arg)
{
    struct process_table *table = arg;
    const struct agent_job *job = table->host->job;
    struct buf silent = BUF_INIT;
    (void)fd, (void)what;
    for (uint32_t worker = 0; worker < job->map.workers; worker++)
        if (table->asked[worker])
            buf_printf(&silent, "%s%u (%s)", silent.len > 0 ? ", " : "", worker,
                       job->wire->workers[worker]->host);
    log_note("PMIx: a tool asked for the processes of all ranks; for %d s nothing came from the "
             "agent of worker %s: is it stopped, or an older drarun-worker?",
             SILENCE_MAX_MS / 1000, silent.data ? silent.data : "?");
    buf_done(&silent);
    unlink_table(table->host, table);
    upcall_answer(table->upcall, PMIX_ERR_TIMEOUT);
    table_free(table);
}

static struct process_table *table_new(struct pmix_host *host)
{
    struct timeval silence = timeval_from_ms(SILENCE_MAX_MS);
    struct process_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->host = host;
    table->id = ++host->next_id;
    table->answers = calloc(host->job->map.workers + 1, sizeof(*table->answers));
    table->asked = calloc(host->job->map.workers + 1, sizeof *table->asked);
    table->timer = evtimer_new(host->base, on_silence, table);
    if (table->answers && table->asked && table->timer && evtimer_add(table->timer, &silence) == 0)
        return table;
    table_free(table);
    return NULL;
}

void pmix_collect_processes(struct pmix_host *host, struct upcall *upcall, process_table_fn done)
{
    const struct rankmap *map = &host->job->map;
    struct process_table *table = table_new(host);
    if (!table) {
        upcall_answer(upcall, PMIX_ERR_NOMEM);
        return;
    }
    table->upcall = upcall;
    table->done = done;
    table->awaited = 1; /* until all are asked: this agent answers within */
    table->next = host->tables;
    host->tables = table;
    for (uint32_t worker = 0; worker < map->workers; worker++) {
        Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
        Drarun__Wire__ProcessesRequest request = DRARUN__WIRE__PROCESSES_REQUEST__INIT;
        if (map->local_sizes[worker] == 0)
            continue;
        table->awaited++;
        table->asked[worker] = true;
        message.destination = worker;
        message.id = table->id;
        message.body_case = DRARUN__WIRE__ROUTED__BODY_PROCESSES_REQUEST;
        message.processes_request = &request;
        pmix_route(host, &message);
    }
    answered(host, table);
}

const Drarun__Wire__Process *pmix_process_of(const struct process_table *table, uint32_t rank)
{
    for (size_t i = 0; i < table->answer_count; i++) {
        const Drarun__Wire__Processes *answer = table->answers[i];
        size_t from = 0, to = answer->n_processes; /* ascending ranks, as agents have them */
        while (from < to) {
            size_t middle = from + (to - from) / 2;
            if (answer->processes[middle]->rank < rank)
                from = middle + 1;
            else
                to = middle;
        }
        if (from < answer->n_processes && answer->processes[from]->rank == rank)
            return answer->processes[from];
    }
    return NULL;
}

void pmix_drop_tables(struct pmix_host *host)
{
    while (host->tables) {
        struct process_table *table = unlink_table(host, host->tables);
        upcall_answer(table->upcall, PMIX_ERR_UNREACH);
        table_free(table);
    }
}
