/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/api/env.h"

#include <errno.h>
#include <string.h>

#include "jobs/derive/plan.h"
#include "launcher/files/api_options.h"
#include "launcher/api/text.h"
#include "launcher/plan/env_inputs.h"
#include "launcher/plan/env_print.h"
#include "lib/base/c_numbers.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

struct drarun_env {
    struct env_inputs inputs; /* from which the plan borrows */
    struct plan_worker_input worker;
    struct plan plan;
    struct drarun_variable *variables; /* which borrow from the plan */
    size_t count, room;
    struct strlist warnings;
    char *summary, *interface;
};

void drarun_env_free(struct drarun_env *env)
{
    if (!env)
        return;
    plan_done(&env->plan);
    env_inputs_done(&env->inputs);
    strlist_done(&env->warnings);
    free(env->variables);
    free(env->summary);
    free(env->interface);
    free(env);
}
DEFINE_CLEANUP(struct drarun_env, drarun_env_free)

/* ---- deriving ---- */

static int check(const struct drarun_env_options *o, struct drarun_error *err)
{
    if (o->claims && o->claims[0] && !(o->slices && o->slices[0]))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "claims need slices, which say what the devices are");
    if (o->network && strcmp(o->network, "rdma") != 0 && strcmp(o->network, "any") != 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "network: expected rdma or any, got \"%s\"", o->network);
    return 0;
}

static const char *const hca_lists[] = {"auto", "always", "never", NULL};
static const char *const transports[] = {"auto", "tcp", "rdma", NULL};

/* The word's number in the list, from 1 as in the spec's enums; 0 for NULL; -EINVAL. */
static int number_of(const char *option, const char *word, const char *const words[3],
                     struct drarun_error *err)
{
    for (int i = 0; word && words[i]; i++)
        if (strcmp(word, words[i]) == 0)
            return i + 1;
    return word ? error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: expected %s, %s or %s, got \"%s\"",
                             option, words[0], words[1], words[2], word)
                : 0;
}

static int build_plan(const struct drarun_env_options *o, struct drarun_env *env,
                      struct drarun_error *err)
{
    struct env_inputs *in = &env->inputs;
    int list = number_of("hca_list", o->hca_list, hca_lists, err);
    int transport = list < 0 ? list : number_of("mpi_transport", o->mpi_transport, transports, err);
    if (transport < 0 || plan_check_version(o->nccl_version, err) < 0)
        return -EINVAL;
    env->interface = o->pod_interface ? strdup(o->pod_interface) : NULL; /* the plan borrows it */
    env->worker = (struct plan_worker_input){
        .pod = in->pod, .node = in->node, .claims = in->claims, .probe = in->probe};
    const struct plan_input input = {
        .network = o->network && o->network[0] == 'a' ? SPEC_NETWORK_ANY : SPEC_NETWORK_RDMA,
        .tcp_will_do = o->network && o->network[0] == 'a',
        .ranks = PLAN_RANKS_POD,
        .mpi = (enum spec_transport)transport,
        .hca_list = (enum spec_hca_list)list,
        .profile = o->profile,
        .nccl_version = o->nccl_version,
        .pod_interface = env->interface,
        .user_env = in->user.items,
        .slices = &in->slices,
        .node_labels = in->labels,
        .profiles = &in->profiles,
        .workers = &env->worker,
        .worker_count = 1,
    };
    struct plan plan;
    if (o->pod_interface && !env->interface)
        return error_set(err, ENOMEM, "out of memory");
    int rc = plan_build(&input, &plan, err);
    if (rc == 0 && !plan.refusal.code && env_inputs_run_script(in, plan.profile, o->run_script)) {
        plan_done(&plan); /* which script it is, the first plan told */
        rc = plan_build(&input, &plan, err);
    }
    if (rc == 0)
        env->plan = plan;
    return rc;
}

static void add_variable(void *arg, const struct plan_var *var, bool prepend)
{
    struct drarun_env *env = arg;
    if (env->count < env->room)
        env->variables[env->count++] = (struct drarun_variable){
            .name = var->name,
            .value = var->value,
            .rule = var->rule ? var->rule : "",
            .fact = var->fact ? var->fact : "",
            .reason = var->reason ? var->reason : "",
            .source = var->source ? var->source : "",
            .prepend = prepend,
        };
}

static int list(struct drarun_env *env, struct drarun_error *err)
{
    const struct plan *plan = &env->plan;
    struct buf summary = BUF_INIT;
    for (size_t i = 0; i < plan->warnings.count; i++)
        strlist_addf(&env->warnings, "%s: %s", warning_name(plan->warnings.list[i].code),
                     plan->warnings.list[i].detail);
    if (env->warnings.failed)
        return error_set(err, ENOMEM, "out of memory");
    if (plan->refusal.code)
        return 0;
    env->room = plan->env.count + plan->workers[0].env.count + plan->prepend.count;
    env->variables = calloc(env->room + 1, sizeof *env->variables);
    if (env->variables)
        env_each(plan, add_variable, env);
    plan_worker_summary(&plan->workers[0], &summary);
    env->summary = text_take(&summary);
    return env->variables && env->summary ? 0 : error_set(err, ENOMEM, "out of memory");
}

int env_build(const struct drarun_env_options *options, struct drarun_env **ret_env,
              struct drarun_error *err)
{
    struct drarun_env_options o;
    CLEANUP(drarun_env_freep) struct drarun_env *env = calloc(1, sizeof *env);
    int rc =
        env ? api_options(options, &o, sizeof o, err) : error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        rc = check(&o, err);
    if (rc < 0)
        return rc;
    const struct env_sources sources = {.claims = o.claims,
                                        .slices = o.slices,
                                        .nodes = o.nodes,
                                        .pod = o.pod,
                                        .probe = o.probe,
                                        .root = o.root,
                                        .profiles = o.profiles};
    rc = env_inputs_read(&sources, &env->inputs, err);
    if (rc == 0)
        rc = build_plan(&o, env, err);
    if (rc == 0)
        rc = list(env, err);
    if (rc == 0)
        *ret_env = TAKE_PTR(env);
    return rc;
}

int env_refusal(const struct drarun_env *env, struct drarun_error *err)
{
    const struct warning *refusal = &env->plan.refusal;
    return refusal->code ? error_kind(err, DRARUN_ERR_SPEC, EINVAL, "refused: %s: %s",
                                      warning_name(refusal->code), refusal->detail)
                         : 0;
}

int drarun_env_derive(const struct drarun_env_options *options, struct drarun_env **ret_env,
                      struct drarun_error *err)
{
    C_NUMBERS;
    CLEANUP(drarun_env_freep) struct drarun_env *env = NULL;
    int rc = env_build(options, &env, err);
    if (rc == 0)
        rc = env_refusal(env, err);
    if (rc == 0)
        *ret_env = TAKE_PTR(env);
    return rc;
}

/* ---- what it says ---- */

size_t drarun_env_count(const struct drarun_env *env)
{
    return env->count;
}

const struct drarun_variable *drarun_env_at(const struct drarun_env *env, size_t index)
{
    return index < env->count ? &env->variables[index] : NULL;
}

const char *drarun_env_value(const struct drarun_env *env, const char *name)
{
    for (size_t i = 0; i < env->count; i++)
        if (strcmp(env->variables[i].name, name) == 0)
            return env->variables[i].value;
    return NULL;
}

const char *drarun_env_profile(const struct drarun_env *env)
{
    return env->plan.profile->name;
}

const char *drarun_env_profile_fact(const struct drarun_env *env)
{
    return env->plan.profile_fact;
}

const char *drarun_env_summary(const struct drarun_env *env)
{
    return env->summary;
}

const char *drarun_env_warning(const struct drarun_env *env, size_t index)
{
    return index < env->warnings.count ? env->warnings.items[index] : NULL;
}

char *drarun_env_text(const struct drarun_env *env, const char *format, int explain)
{
    C_NUMBERS;
    static const struct {
        const char *name;
        enum env_format format;
    } formats[] = {{"sh", ENV_SH}, {"docker", ENV_DOCKER}, {"nccl.conf", ENV_NCCL_CONF}};
    struct buf out = BUF_INIT;
    if (strcmp(format, "json") == 0)
        return text_of_json_take(plan_to_json(&env->plan, explain));
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (strcmp(format, formats[i].name) != 0)
            continue;
        env_print(&env->plan, formats[i].format, explain, &out);
        return text_take(&out);
    }
    return NULL;
}
