/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/lead/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/pod_merge.h"
#include "jobs/spec/spec_words.h"
#include "launcher/job/plan.h"
#include "launcher/job/role_env.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define RADIX 8
#define KILL_AFTER_MS 5000
#define ORPHAN_WAIT_MS 60000 /* for the next launcher, where this one is lost */

/* command and args of the container, as the kubelet would run them. */
static int make_argv(const struct ranks_facts *facts, const struct spec_role *role,
                     struct strlist *argv, size_t *ret_expand, struct drarun_error *err)
{
    *ret_expand = spec_words_add(role, facts->args, argv);
    if (argv->failed)
        return error_set(err, ENOMEM, "out of memory");
    if (argv->count == 0)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "spec.template.spec.containers[0].command is missing");
    return 0;
}

static int add_workers(const struct ranks_facts *facts, struct ranks *ranks,
                       struct drarun_error *err)
{
    for (uint32_t i = 0; i < facts->spec->workers; i++) {
        const struct pod_state *worker = &facts->workers[i];
        bool v6 = worker->ip && strchr(worker->ip, ':');
        if (!worker->ip)
            return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EINVAL,
                              "worker %u: pod %s runs without an IP address", i, worker->name);
        strlist_addf(&ranks->addresses, "%s%s%s:%u", v6 ? "[" : "", worker->ip, v6 ? "]" : "",
                     pod_merge_agent_port(facts->spec, i));
        strlist_add(&ranks->hosts, worker->ip);
        strlist_add(&ranks->names, worker->name);
        strlist_add(&ranks->nodes, worker->node ? worker->node : "?");
    }
    bool failed = ranks->addresses.failed || ranks->names.failed || ranks->nodes.failed ||
                  ranks->hosts.failed;
    return failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* A program for each role, in the order of the roles. */
static int add_programs(const struct ranks_facts *facts, struct ranks *r, struct drarun_error *err)
{
    const struct job_spec *spec = facts->spec;
    r->programs = calloc(spec->role_count, sizeof *r->programs);
    r->argvs = calloc(spec->role_count, sizeof *r->argvs);
    int rc = r->programs && r->argvs ? 0 : error_set(err, ENOMEM, "out of memory");
    while (rc == 0 && r->count < spec->role_count) {
        const struct spec_role *role = &spec->roles[r->count];
        struct request_program *program = &r->programs[r->count];
        struct strlist *argv = &r->argvs[r->count++];
        rc = make_argv(facts, role, argv, &program->expand, err);
        if (rc < 0)
            break;
        bool mpirun = spec->launch == SPEC_LAUNCH_MPIRUN;
        uint32_t each =
            request_count_ranks(role, mpirun, argv->items, facts->gpus[role - spec->roles]);
        uint32_t limit = mpirun ? role->ranks_per_worker : each; /* of which mpirun is told */
        program->argv = argv->items;
        program->argc = argv->count;
        program->workers = role->workers;
        program->slots = role->slots;
        r->role_ranks[r->count - 1] = role->workers * each;
        /* a user's own mpirun runs once, whatever it starts */
        program->ranks = mpirun ? 1 : role->workers * each;
        r->request.per_worker = r->count == 1 || r->request.per_worker == limit ? limit : 0;
        rc = role_env_add(spec, role, strlist_items(&r->hosts), &program->env, err);
    }
    return rc == 0 ? role_env_tell(spec, strlist_items(&r->hosts), err) : rc;
}

int ranks_build(const struct ranks_facts *facts, const struct request_pods *pods,
                struct ranks *ret_ranks, struct drarun_error *err)
{
    struct ranks *r = ret_ranks;
    *r = (struct ranks){.pods = *pods};
    int rc = add_workers(facts, r, err);
    if (rc == 0)
        rc = add_programs(facts, r, err);
    if (rc == 0)
        rc = job_plan_look_for(facts->spec, &r->look_for, &r->scripts, err);
    if (rc < 0) {
        ranks_done(r);
        return rc;
    }
    r->pods.workers = facts->spec->workers;
    r->pods.look_for = &r->look_for;
    r->pods.scripts = &r->scripts;
    r->pods.on_host = request_is_on_host(facts->spec);
    r->pods.open_nics = facts->spec->fabric >= SPEC_FABRIC_OPEN;
    r->pods.addresses = (const char *const *)r->addresses.items;
    r->pods.pods = (const char *const *)r->names.items;
    r->pods.nodes = (const char *const *)r->nodes.items;
    if (claims_wanted(facts->spec) && facts->spec->claims == SPEC_CLAIMS_DIRECT)
        r->pods.claims = r->pods.pods; /* each is called as its pod */
    r->pods.grace_ms = request_grace_ms(facts->spec);
    uint32_t per_worker = r->request.per_worker;
    r->request = (struct job_request){
        .programs = r->programs,
        .program_count = r->count,
        .per_worker = per_worker,
        .orphan_wait_ms = ORPHAN_WAIT_MS,
        .radix = RADIX,
        .oversubscribe = facts->spec->oversubscribe,
        .bind = facts->spec->bind,
        .report_bindings = facts->spec->report_bindings,
        .own_worlds = facts->spec->own_worlds,
        .pods = &r->pods,
        .launch_env = facts->spec->launch == SPEC_LAUNCH_ENV,
        .launch_mpirun = facts->spec->launch == SPEC_LAUNCH_MPIRUN,
        .kill_after_ms = KILL_AFTER_MS,
        .hang_after_ms = facts->spec->on_hang == SPEC_FALLBACK_FAIL ? facts->spec->hang_after : 0,
        .start_timeout_ms = facts->spec->timeouts.start,
        .agent_timeout_ms = facts->spec->timeouts.agent,
        .timeout_of_spec = true,
        .warn_signo = facts->spec->timeouts.signal,
        .warn_before_ms = facts->spec->timeouts.signal_before,
    };
    request_decide_failure(&r->request, facts->spec);
    request_decide_success(&r->request, facts->spec);
    return 0;
}

void ranks_done(struct ranks *r)
{
    for (size_t i = 0; r->argvs && r->programs && i < r->count; i++) {
        strlist_done(&r->argvs[i]);
        strlist_done(&r->programs[i].env);
    }
    free(r->argvs);
    free(r->programs);
    strlist_done(&r->addresses);
    strlist_done(&r->hosts);
    strlist_done(&r->names);
    strlist_done(&r->nodes);
    strlist_done(&r->look_for);
    strlist_done(&r->scripts);
}
