/* SPDX-License-Identifier: Apache-2.0 */
/* libdrarun in a program of one's own: is the job right, would it find room, and which environment
 * belongs to the devices of this machine? */
#include <stdio.h>
#include <stdlib.h>

#include <drarun/drarun.h>

static int fail(const char *what, const struct drarun_error *err)
{
    fprintf(stderr, "embed: %s: %s (%s)\n", what, err->text, drarun_error_kind_name(err->kind));
    return drarun_exit_status(err->kind);
}

static int show_findings(const struct drarun_findings *findings)
{
    for (size_t i = 0; i < drarun_findings_count(findings); i++) {
        const struct drarun_finding *finding = drarun_findings_at(findings, i);
        fprintf(stderr, "embed: line %u, %s\n  %s\n", finding->line,
                finding->path[0] ? finding->path : "the document", finding->text);
    }
    return drarun_exit_status(DRARUN_ERR_SPEC);
}

static int show_plan(const struct drarun_spec *spec, const char *slices)
{
    struct drarun_plan_options options = drarun_plan_options_init();
    struct drarun_error err = {0};
    struct drarun_plan *plan = NULL;
    const char *const files[] = {slices, NULL};
    int status = 0;
    options.slices = files;
    if (drarun_plan_build(spec, &options, &plan, &err) < 0)
        return fail("plan", &err);
    char *text = drarun_plan_text(plan, 0);
    fputs(text ? text : "out of memory\n", stdout);
    drarun_free(text);
    if (drarun_plan_verdict(plan, &err) < 0)
        status = fail("plan", &err);
    drarun_plan_free(plan);
    return status;
}

static int show_job(const char *file, const char *slices)
{
    struct drarun_error err = {0};
    struct drarun_spec *spec = NULL;
    struct drarun_findings *findings = NULL;
    int status = 0;
    if (drarun_spec_load(file, NULL, &spec, &findings, &err) < 0) {
        status = findings ? show_findings(findings) : fail(file, &err);
        drarun_findings_free(findings);
        return status;
    }
    char *summary = drarun_spec_summary(spec);
    printf("%s: %s\n", file, summary ? summary : "out of memory");
    drarun_free(summary);
    if (slices)
        status = show_plan(spec, slices);
    drarun_spec_free(spec);
    return status;
}

/* As a worker would before it makes its communicator: what it holds decides, not what was planned.
 */
static int set_environment(void)
{
    struct drarun_env_options options = drarun_env_options_init();
    struct drarun_error err = {0};
    struct drarun_env *env = NULL;
    const struct drarun_variable *variable;
    options.network = "any"; /* "rdma" refuses a machine without it */
    if (drarun_env_derive(&options, &env, &err) < 0)
        return fail("environment", &err);
    printf("%s: %s\n", drarun_env_profile(env), drarun_env_summary(env));
    for (size_t i = 0; (variable = drarun_env_at(env, i)); i++) {
        printf("  %s=%s\n    %s\n", variable->name, variable->value, variable->reason);
        if (!variable->prepend)
            setenv(variable->name, variable->value, 1);
    }
    drarun_env_free(env);
    return 0;
}

int main(int argc, char *argv[])
{
    if (argc > 3) {
        fprintf(stderr, "usage: embed [JOB.yaml [SLICES.json]]\n");
        return 64;
    }
    int status = argc > 1 ? show_job(argv[1], argc > 2 ? argv[2] : NULL) : 0;
    return status ? status : set_environment();
}
