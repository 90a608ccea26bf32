/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/lead/request.h"

#include <errno.h>
#include <string.h>

#include "jobs/ranks/rankenv.h"
#include "jobs/manifests/render.h"
#include "launcher/job/plan.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define RADIX 8
#define KILL_AFTER_MS 5000
#define ORPHAN_WAIT_MS 60000 /* for the next launcher, where this one is lost */
#define REPORT_MS 2000

static void add_texts(struct strlist *list, const json_t *texts)
{
    size_t i;
    json_t *text;
    json_array_foreach((json_t *)texts, i, text)
    {
        strlist_add(list, json_string_value(text));
    }
}

/* command and args of the container, as the kubelet would run them. */
static int make_argv(const struct ranks_facts *facts, struct strlist *argv,
                     struct drarun_error *err)
{
    const json_t *pod = json_object_get(facts->spec->template, "spec");
    const json_t *first = json_array_get(json_object_get(pod, "containers"), 0);
    add_texts(argv, json_object_get(first, "command"));
    if (facts->args && facts->args->count > 0)
        strlist_add_all(argv, facts->args->items);
    else
        add_texts(argv, json_object_get(first, "args"));
    if (argv->failed)
        return error_set(err, ENOMEM, "out of memory");
    if (argv->count == 0)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "spec.template.spec.containers[0].command is missing");
    return 0;
}

static bool is_host_network(const struct job_spec *spec)
{
    return json_is_true(json_object_get(json_object_get(spec->template, "spec"), "hostNetwork"));
}

static int add_workers(const struct ranks_facts *facts, struct ranks *ranks,
                       struct drarun_error *err)
{
    bool host = is_host_network(facts->spec);
    for (uint32_t i = 0; i < facts->spec->workers; i++) {
        const struct pod_state *worker = &facts->workers[i];
        bool v6 = worker->ip && strchr(worker->ip, ':');
        if (!worker->ip)
            return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EINVAL,
                              "worker %u: pod %s runs without an IP address", i, worker->name);
        strlist_addf(&ranks->addresses, "%s%s%s:%u", v6 ? "[" : "", worker->ip, v6 ? "]" : "",
                     RENDER_AGENT_PORT + (host ? i : 0));
        strlist_add(&ranks->names, worker->name);
        strlist_add(&ranks->nodes, worker->node ? worker->node : "?");
    }
    bool failed = ranks->addresses.failed || ranks->names.failed || ranks->nodes.failed;
    return failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* What is left of the pods' own, so that the report of the end still gets out. */
static int64_t grace_of_ranks(const struct job_spec *spec)
{
    int64_t ms = job_spec_grace_ms(spec);
    return ms > 2 * REPORT_MS ? ms - REPORT_MS : ms / 2;
}

static uint32_t ranks_per_worker(const struct ranks_facts *facts, const struct strlist *argv)
{
    bool starts_others =
        facts->spec->launch == SPEC_LAUNCH_MPIRUN ||
        (facts->spec->launch == SPEC_LAUNCH_ENV && rankenv_is_torchrun(argv->items));
    if (facts->spec->ranks_per_worker > 0)
        return facts->spec->ranks_per_worker;
    return starts_others || facts->gpus == 0 ? 1 : facts->gpus;
}

int ranks_build(const struct ranks_facts *facts, const struct request_pods *pods,
                struct ranks *ret_ranks, struct drarun_error *err)
{
    struct ranks *r = ret_ranks;
    *r = (struct ranks){.pods = *pods};
    int rc = make_argv(facts, &r->argv, err);
    if (rc == 0)
        rc = add_workers(facts, r, err);
    if (rc == 0)
        rc = job_plan_look_for(facts->spec, &r->look_for, &r->scripts, err);
    if (rc < 0) {
        ranks_done(r);
        return rc;
    }
    r->pods.workers = facts->spec->workers;
    r->pods.look_for = &r->look_for;
    r->pods.scripts = &r->scripts;
    r->pods.open_nics = facts->spec->fabric >= SPEC_FABRIC_OPEN;
    r->pods.addresses = (const char *const *)r->addresses.items;
    r->pods.pods = (const char *const *)r->names.items;
    r->pods.nodes = (const char *const *)r->nodes.items;
    if (claims_wanted(facts->spec) && facts->spec->claims == SPEC_CLAIMS_DIRECT)
        r->pods.claims = r->pods.pods; /* each is called as its pod */
    r->pods.grace_ms = grace_of_ranks(facts->spec);
    r->program = (struct request_program){.argv = r->argv.items, .argc = r->argv.count};
    r->request = (struct job_request){
        .programs = &r->program,
        .program_count = 1,
        .per_worker = ranks_per_worker(facts, &r->argv),
        .orphan_wait_ms = ORPHAN_WAIT_MS,
        .radix = RADIX,
        .bind = facts->spec->bind,
        .pods = &r->pods,
        .launch_env = facts->spec->launch == SPEC_LAUNCH_ENV,
        .launch_mpirun = facts->spec->launch == SPEC_LAUNCH_MPIRUN,
        .stdin_rank = REQUEST_STDIN_NONE,
        .kill_after_ms = KILL_AFTER_MS,
        .hang_after_ms = facts->spec->on_hang == SPEC_FALLBACK_FAIL ? facts->spec->hang_after : 0,
        .start_timeout_ms = facts->spec->timeouts.start,
    };
    return 0;
}

void ranks_done(struct ranks *r)
{
    strlist_done(&r->argv);
    strlist_done(&r->addresses);
    strlist_done(&r->names);
    strlist_done(&r->nodes);
    strlist_done(&r->look_for);
    strlist_done(&r->scripts);
}
