/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/plan.h"

#include <errno.h>
#include <stdlib.h>

#include "jobs/derive/variables/inspector.h"
#include "jobs/preflight/fabric.h"
#include "jobs/preflight/preflight.h"
#include "jobs/profiles/profiles.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

struct planning {
    struct preflight_worker *inspected;
    struct profiles profiles;
    struct plan *plans; /* planned of them, one for each role */
    struct plan all;    /* plan_join of them */
    bool have_profiles;
    uint32_t planned;
};

static void done(struct planning *p)
{
    plan_join_done(&p->all);
    for (uint32_t r = 0; r < p->planned; r++)
        plan_done(&p->plans[r]);
    free(p->plans);
    if (p->have_profiles)
        profiles_done(&p->profiles);
    free(p->inspected);
}

static int collect(const struct job *job, const struct job_plan_input *in, struct planning *p,
                   struct drarun_error *err)
{
    int rc = profiles_builtin(&p->profiles, err);
    p->have_profiles = rc == 0;
    p->inspected = calloc(in->spec->workers, sizeof *p->inspected);
    p->plans = calloc(in->spec->role_count, sizeof *p->plans);
    if (rc < 0)
        return rc;
    if (!p->inspected || !p->plans)
        return error_set(err, ENOMEM, "out of memory");
    for (uint32_t i = 0; i < in->spec->workers; i++) {
        const json_t *inspection = job_inspection(job, i);
        in->workers[i].probe = json_object_get(inspection, "probe");
        p->inspected[i] = (struct preflight_worker){
            .pod = in->workers[i].pod, .node = in->workers[i].node, .inspection = inspection};
    }
    return 0;
}

/* Beside the report, or where the user says. */
static bool inspector_has_place(const struct job *job, const struct spec_role *role)
{
    return job_reports_to_file(job) || env_get(&role->nccl_env, INSPECTOR_FOLDER);
}

/* Workers of one role are alike; those of two need not even be of one profile. */
static int build_role(const struct job *job, const struct job_plan_input *in, struct planning *p,
                      const struct spec_role *role, struct drarun_error *err)
{
    uint32_t index = (uint32_t)(role - in->spec->roles);
    struct plan_input input =
        plan_input_of(in->spec, role, job_argv_of_role(job, index, in->spec->role_count));
    input.inspector = role->nccl_inspector && inspector_has_place(job, role);
    if (role->nccl_inspector && !input.inspector)
        log_note("NCCL's inspector is off: its files would be lost with the pods; launch from here "
                 "with a report (--here --report FILE), or set a folder of a volume: nccl: {env: "
                 "{" INSPECTOR_FOLDER ": /PATH}}");
    input.slices = in->slices;
    input.slices_unknown = in->slices_unknown;
    input.node_labels = in->node_labels;
    input.profiles = &p->profiles;
    input.workers = in->workers + role->first;
    input.rank_order = in->rank_order; /* of a job with one role */
    input.worker_count = role->workers;
    int rc = plan_build(&input, &p->plans[p->planned], err);
    p->planned += rc == 0;
    return rc;
}

static int build(const struct job *job, const struct job_plan_input *in, struct planning *p,
                 struct drarun_error *err)
{
    int rc = 0;
    for (uint32_t r = 0; rc == 0 && r < in->spec->role_count; r++)
        rc = build_role(job, in, p, &in->spec->roles[r], err);
    if (rc == 0)
        rc = plan_join(p->plans, p->planned, &p->all, err);
    return rc < 0 ? error_prefix(err, "plan") : 0;
}

/* Every refusal and every warning is said; the first refusal is the job's end. */
static int check(const struct job_plan_input *in, const struct planning *p, struct fabric *fabric,
                 struct drarun_error *err)
{
    const struct preflight_input input = {
        .spec = in->spec,
        .plan = &p->all,
        .workers = p->inspected,
        .count = in->spec->workers,
        .fabric = fabric,
    };
    struct preflight preflight;
    int rc = preflight_check(&input, &preflight, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < preflight.count; i++) {
        struct buf line = BUF_INIT;
        preflight_line(&preflight.list[i], &line);
        if (line.data && (i > 0 || !preflight.list[i].refusal)) /* that one is the error */
            log_note("%s", line.data);
        buf_done(&line);
    }
    rc = preflight_result(&preflight, err);
    preflight_done(&preflight);
    return rc;
}

/* What it finds of the NICs is the job's, also where it refuses it. */
static int check_all(struct job *job, const struct job_plan_input *in, const struct planning *p,
                     struct drarun_error *err)
{
    struct fabric *fabric = NULL;
    if (in->spec->fabric >= SPEC_FABRIC_OPEN && !(fabric = fabric_new(&p->all)))
        return error_set(err, ENOMEM, "out of memory");
    int rc = check(in, p, fabric, err);
    job_use_fabric_take(job, fabric);
    return rc;
}

/* One worker needs no name. */
static void say_warning(const struct warning *warning, const char *workers, void *arg)
{
    const struct plan *plan = arg;
    bool named = workers[0] && plan->worker_count > 1;
    log_note("%s%s%s: %s", named ? workers : "", named ? ": " : "", warning_name(warning->code),
             warning->detail);
}

static int say_warnings(struct plan *plan, struct drarun_error *err)
{
    return warnings_each_wording(&plan->warnings, say_warning, plan) < 0
               ? error_set(err, ENOMEM, "out of memory")
               : 0;
}

int job_plan_look_for(const struct job_spec *spec, struct strlist *paths, struct strlist *scripts,
                      struct drarun_error *err)
{
    struct profiles profiles;
    int rc = profiles_builtin(&profiles, err);
    if (rc < 0)
        return rc;
    profiles_files(&profiles, paths);
    profiles_scripts(&profiles, scripts);
    profiles_done(&profiles);
    for (uint32_t r = 0; spec && r < spec->role_count; r++)
        if (spec->roles[r].nccl_inspector)
            inspector_paths(spec->roles[r].nccl_env.items, paths);
    return paths->failed || scripts->failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* With the node, which is what has to be looked at. */
static int refused(const struct job_plan_input *in, const struct spec_role *role,
                   const struct warning *refusal, struct drarun_error *err)
{
    const char *code = warning_name(refusal->code);
    if (refusal->worker < 0 || (uint32_t)refusal->worker >= role->workers)
        return error_kind(err, DRARUN_ERR_PREFLIGHT, EINVAL, "refused: %s: %s", code,
                          refusal->detail);
    uint32_t index = role->first + (uint32_t)refusal->worker;
    const struct plan_worker_input *worker = &in->workers[index];
    return error_kind(err, DRARUN_ERR_PREFLIGHT, EINVAL, "refused: %s: worker %u (%s%s%s): %s",
                      code, index, worker->pod ? worker->pod : "no pod", worker->node ? " on " : "",
                      worker->node ? worker->node : "", refusal->detail);
}

static bool keeps_files(const struct spec_role *role, const struct plan *plan)
{
    bool on = plan_vars_find(&plan->env, INSPECTOR_ENABLE) != NULL;
    bool ours = role->nccl_inspector && !env_get(&role->nccl_env, INSPECTOR_FOLDER);
    return on && ours;
}

int job_plan(struct job *job, const struct job_plan_input *in, struct drarun_error *err)
{
    struct planning p = {0};
    int rc = collect(job, in, &p, err);
    if (rc == 0)
        rc = build(job, in, &p, err);
    for (uint32_t r = 0; rc == 0 && r < p.planned; r++)
        if (p.plans[r].refusal.code)
            rc = refused(in, &in->spec->roles[r], &p.plans[r].refusal, err);
    if (rc == 0) {
        if (in->warn)
            rc = say_warnings(&p.all, err);
        rc = rc < 0 ? rc : check_all(job, in, &p, err);
    }
    if (rc == 0)
        rc = job_use_plans(job, p.plans, p.planned, err);
    bool keep = false;
    for (uint32_t r = 0; r < p.planned; r++)
        keep |= keeps_files(&in->spec->roles[r], &p.plans[r]);
    if (rc == 0 && keep)
        rc = job_use_files(job, INSPECTOR_FOLDER, err);
    if (rc == 0 && in->spec->fabric == SPEC_FABRIC_REACH)
        rc = job_use_reach(job, in->spec, p.plans, p.planned, err);
    done(&p);
    return rc;
}
