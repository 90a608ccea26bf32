/* SPDX-License-Identifier: Apache-2.0 */
/* The message that gives an agent the job: made once, when all is known that goes into it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/ranks/binding.h"
#include "launcher/job/private.h"
#include "launcher/job/master_port.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/wire/dial.h"

#define REACH_MS 10000        /* until agents started by hand are reached */
#define PREPARE_MS 30000      /* until an agent that was reached is prepared */
#define PREPARE_WORKER_MS 100 /* and this for each: on one machine they take turns */

/* Ranks of several worlds may listen on one machine. */
static bool is_taken(const struct launch_master *masters, uint32_t count, const char *address,
                     uint16_t port)
{
    for (uint32_t w = 0; w < count; w++)
        if (masters[w].port == port && strcmp(masters[w].address, address) == 0)
            return true;
    return false;
}

/* A pod has its ports for itself, unless it is in the host's network; machines are shared with
 * other jobs. */
static uint16_t pick_port(const struct job *job, uint32_t world, const struct agent *agent)
{
    const struct launch_master *own = &job->launch.masters[world];
    const struct request_pods *pods = job->request->pods;
    const char *outer = getenv("MASTER_PORT");
    bool alone = pods && !pods->on_host;
    bool here = !pods && (request_is_here(job->request) || agent->here);
    uint16_t port = MASTER_PORT_DEFAULT;
    if (!alone)
        port = here ? master_port_pick(outer) : master_port_draw(outer);
    while (is_taken(job->launch.masters, world, own->address, port))
        port = alone ? port + 1 : here ? master_port_pick(outer) : master_port_draw(outer);
    return port;
}

/* Where rank 0 of each world can listen. */
static int find_masters(struct job *job, struct drarun_error *err)
{
    job->launch.masters = calloc(job->worlds, sizeof *job->launch.masters);
    if (!job->launch.masters)
        return error_set(err, ENOMEM, "out of memory");
    for (uint32_t w = 0; w < job->worlds; w++) {
        uint16_t port = 0;
        struct launch_master *master = &job->launch.masters[w];
        uint32_t worker = rankmap_worker(&job->map, job->map.app_firsts[w]);
        const char *address = agent_outer_address(&job->agents[worker]);
        if (!address[0] ||
            address_split(address, master->address, sizeof master->address, &port, NULL) < 0)
            snprintf(master->address, sizeof master->address, "127.0.0.1");
        master->port = pick_port(job, w, &job->agents[worker]);
    }
    return 0;
}

static const char *host_of(const struct job *job, const struct agent *agent)
{
    return request_is_here(job->request) ? job->identity.hostname : agent->host;
}

/* A node's pods have its CPUs, or those that the kubelet gives each alone. An agent of an older
 * release does not say which its pod has, and counts as alone. */
static struct bind_place place_of(const struct job *job, const struct agent *agent)
{
    const struct request_pods *pods = job->request->pods;
    const char *node = pods && pods->nodes ? pods->nodes[agent->index] : NULL;
    return node && agent->cpu_list[0] ? (struct bind_place){node, agent->cpu_list}
                                      : (struct bind_place){host_of(job, agent), ""};
}

/* Its parent in the agents' tree dials it. An agent that listens on the loopback alone is reached
 * there from its own machine. */
static const char *tree_address(const struct job *job, const struct agent *agent)
{
    if (!agent->outer[0] || agent->index == 0)
        return agent_outer_address(agent);
    const struct agent *parent = &job->agents[(agent->index - 1) / job->request->radix];
    return parent->here ? agent->address : agent->outer;
}

static int fill_workers(struct job *job, struct drarun_error *err)
{
    cleanup_free struct bind_place *places = calloc(job->count, sizeof *places);
    cleanup_free uint32_t *cpus = calloc(job->count, sizeof *cpus);
    if (!places || !cpus)
        return error_set(err, ENOMEM, "out of memory");
    for (uint32_t i = 0; i < job->count; i++)
        places[i] = place_of(job, &job->agents[i]);
    int rc = bind_number_cpus(places, job->count, cpus, err);
    for (uint32_t i = 0; rc == 0 && i < job->count; i++) {
        const struct agent *agent = &job->agents[i];
        launch_message_worker(job->launch.message, i, host_of(job, agent), tree_address(job, agent),
                              cpus[i]);
    }
    return rc;
}

static int make_launch(struct job *job, struct drarun_error *err)
{
    bool elsewhere = !request_is_here(job->request);
    if (!job->launch.masters && find_masters(job, err) < 0)
        return -err->code;
    struct launch_facts facts = {
        .request = job->request,
        .map = &job->map,
        .uid = job->identity.uid,
        .attempt = job->identity.attempt,
        .env = elsewhere && !job->request->inherit ? NULL : job->env,
        .stdin_rank = job->input.rank,
        .universe = job_spawn_universe(job),
        .hold = job->spawning.hold,
        .start = job->early,
        .here = !elsewhere,
        .files = &job->local.agents.files,
        .masters = job->launch.masters,
    };
    job->launch.message = launch_message_new(&facts, err);
    if (!job->launch.message)
        return -err->code;
    if (fill_workers(job, err) < 0) {
        launch_message_free(TAKE_PTR(job->launch.message));
        return -err->code;
    }
    if (job->request->collect_env)
        launch_message_collect(job->launch.message, job->request->collect_env);
    return 0;
}

struct launch_message *job_launch(struct job *job, struct drarun_error *err)
{
    return job->launch.message || make_launch(job, err) == 0 ? job->launch.message : NULL;
}

int job_use_plans(struct job *job, const struct plan *plans, size_t count, struct drarun_error *err)
{
    int rc = job->launch.message ? 0 : make_launch(job, err);
    if (rc == 0 && launch_message_plan(job->launch.message, plans, count) < 0)
        rc = error_set(err, ENOMEM, "out of memory");
    return rc;
}

char *const *job_argv_of_role(const struct job *job, uint32_t role, uint32_t role_count)
{
    const struct job_request *request = job->request;
    return request->program_count == role_count ? request->programs[role].argv : NULL;
}

bool job_reports_to_file(const struct job *job)
{
    return request_reports_to_file(job->request);
}

int job_use_files(struct job *job, const char *variable, struct drarun_error *err)
{
    job_files_free(job->files);
    job->files = job_files_new(job->request->report_path, job->count, err);
    if (!job->files)
        return -err->code;
    launch_message_collect(job->launch.message, variable);
    return 0;
}

json_t *job_left_files(const struct job *job)
{
    return job->files ? job_files_json(job->files) : NULL;
}

int64_t job_start_limit_ms(const struct job *job)
{
    if (job->request->start_timeout_ms > 0)
        return job->request->start_timeout_ms;
    if (request_is_elsewhere(job->request) && job->state == JOB_CONNECTING)
        return REACH_MS;
    return PREPARE_MS + (int64_t)job->count * PREPARE_WORKER_MS;
}

int agent_send_launch(struct agent *agent, struct drarun_error *err)
{
    struct job *job = agent->job;
    if (!agent->channel)
        return 0; /* it closed, and how its process ended will be known in a moment */
    if (!job_launch(job, err))
        return -err->code;
    Drarun__Wire__Envelope envelope;
    launch_message_for(job->launch.message, agent->index, agent->session_dir,
                       job_start_limit_ms(job), &envelope);
    int rc = channel_send(agent->channel, &envelope);
    agent->launched = rc == 0;
    if (rc == -EMSGSIZE)
        return error_kind(err, DRARUN_ERR_SPEC, EMSGSIZE,
                          "the job does not fit into one message (arguments and environment)");
    if (rc == -ENOMEM)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, ENOMEM,
                          "out of memory for the message that starts the job");
    return 0; /* its connection has ended, as above */
}
