/* SPDX-License-Identifier: Apache-2.0 */
/* The check of agents' NICs without ranks: what it asks of the job engine, which is the test's, and
 * what it makes of how the job ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/outcome/cause.h"
#include "launcher/bench/fabric.h"
#include "launcher/job/job.h"
#include "launcher/job/plan.h"
#include "launcher/job/report.h"
#include "launcher/programs/remote.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/wire/tls.h"

#define START_MS 45000
#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/* ---- the name service and the job engine ---- */

static struct calls {
    bool no_job, unchecked, no_report, no_value;
    bool reach; /* asked for */
    int status; /* of the cause */
    unsigned int made, ran, freed, planned, shown;
    const struct job_request *request;
} calls;

/* The engine's values, which the check hands on and does not look into. */
static char job_value, cause_value;

static struct job *the_job(void)
{
    return (struct job *)(void *)&job_value;
}

static int resolve(const char *address, char numeric[REMOTE_ADDRESS_SIZE], struct drarun_error *err)
{
    const char *port = strchr(address, ':');
    if (strncmp(address, "node-", 5) != 0 || !port)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "no host is called \"%s\"", address);
    snprintf(numeric, REMOTE_ADDRESS_SIZE, "10.0.0.%c%s", address[5], port);
    return 0;
}

const struct remote_api *remote_api(void)
{
    static const struct remote_api api = {.resolve = resolve};
    return &api;
}

static void check_request(const struct job_request *request)
{
    const struct request_pods *pods = request->pods;
    assert_non_null(pods);
    assert_int_equal(request->start_timeout_ms, START_MS);
    assert_int_equal(pods->workers, 2);
    assert_string_equal(pods->addresses[0], "10.0.0.a:7000");
    assert_string_equal(pods->addresses[1], "10.0.0.b:7000");
    assert_string_equal(pods->pods[0], "node-a:7000");
    assert_string_equal(pods->pods[1], "node-b:7000");
    for (size_t i = 0; i < sizeof pods->key->bytes; i++)
        assert_int_equal(pods->key->bytes[i], i);
    assert_int_equal(strlen(pods->uid), 16);
    assert_true(pods->open_nics && pods->kept); /* no cluster tells how they end */
    assert_non_null(pods->prepare);
    assert_non_null(pods->checked);
    assert_true(pods->look_for->count > 0);
}

struct job *__wrap_job_new(const struct job_request *request, struct console *console, int input,
                           char *const env[], struct drarun_error *err);
struct job *__wrap_job_new(const struct job_request *request, struct console *console, int input,
                           char *const env[], struct drarun_error *err)
{
    (void)env;
    assert_non_null(console);
    assert_int_equal(input, -1);
    check_request(request);
    if (calls.no_job) {
        error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EMFILE, "too many open files");
        return NULL;
    }
    calls.request = request;
    calls.made++;
    return the_job();
}

int __wrap_job_plan(struct job *job, const struct job_plan_input *input, struct drarun_error *err);
int __wrap_job_plan(struct job *job, const struct job_plan_input *input, struct drarun_error *err)
{
    (void)err;
    assert_ptr_equal(job, the_job());
    assert_int_equal(input->spec->network, SPEC_NETWORK_RDMA);
    assert_int_equal(input->spec->fabric, calls.reach ? SPEC_FABRIC_REACH : SPEC_FABRIC_OPEN);
    assert_int_equal(input->spec->workers, 2);
    assert_string_equal(input->workers[0].pod, "node-a:7000");
    assert_string_equal(input->workers[1].pod, "node-b:7000");
    assert_true(input->slices_unknown && input->warn && !input->slices);
    calls.planned++;
    return 0;
}

/* All agents say hello, and their NICs are good unless `unchecked`; an error of checked ends the
 * job before a rank starts. */
void __wrap_job_run(struct job *job);
void __wrap_job_run(struct job *job)
{
    const struct request_pods *pods = calls.request->pods;
    struct drarun_error err = {0};
    assert_int_equal(pods->prepare(pods->arg, job, &err), 0);
    if (!calls.unchecked) {
        assert_int_equal(pods->checked(pods->arg, job, &err), -ECANCELED);
        assert_int_equal(err.kind, DRARUN_ERR_INTERRUPTED);
    }
    calls.ran++;
}

void __wrap_job_free(struct job *job);
void __wrap_job_free(struct job *job)
{
    assert_ptr_equal(job, the_job());
    calls.freed++;
}

const struct cause *__wrap_job_cause(const struct job *job);
const struct cause *__wrap_job_cause(const struct job *job)
{
    assert_ptr_equal(job, the_job());
    return (const struct cause *)(const void *)&cause_value;
}

int __wrap_cause_status(const struct cause *cause);
int __wrap_cause_status(const struct cause *cause)
{
    assert_ptr_equal(cause, &cause_value);
    return calls.status;
}

json_t *__wrap_job_fabric(const struct job *job);
json_t *__wrap_job_fabric(const struct job *job)
{
    assert_ptr_equal(job, the_job());
    return calls.no_value ? NULL : json_pack("{s:n}", "reach");
}

int __wrap_report_show(const struct job_request *request, const struct job *job,
                       struct drarun_error *err);
int __wrap_report_show(const struct job_request *request, const struct job *job,
                       struct drarun_error *err)
{
    assert_ptr_equal(request, calls.request);
    assert_ptr_equal(job, the_job());
    calls.shown++;
    return calls.no_report ? error_set(err, ENOSPC, "the report: no space") : 0;
}

/* ---- the cases ---- */

static char key_file[64];

static int make_key(void **state)
{
    (void)state;
    snprintf(key_file, sizeof key_file, "/tmp/fabric_test.XXXXXX");
    int fd = mkstemp(key_file);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, KEY "\n", sizeof KEY), sizeof KEY);
    close(fd);
    return 0;
}

static int remove_key(void **state)
{
    (void)state;
    return unlink(key_file);
}

static int check(const char *agents, bool reach, int *ret_status, json_t **ret_fabric,
                 struct drarun_error *err)
{
    const struct fabric_order order = {
        .agents = agents, .key_file = key_file, .start_timeout_ms = START_MS, .reach = reach};
    calls.reach = reach;
    return fabric_check_agents(&order, ret_status, ret_fabric, err);
}

/* Success is the end by `checked`, of which nothing is said; any other end is said, and its status
 * is the program's. The value comes with both. */
static void ends(void **state)
{
    static const struct {
        bool reach, unchecked, no_value;
        int cause, status;
    } rows[] = {
        {.cause = 130},
        {.reach = true, .cause = 130},
        {.no_value = true, .cause = 130},
        {.unchecked = true, .cause = 71, .status = 71},
        {.reach = true, .unchecked = true, .cause = 130, .status = 130},
        {.unchecked = true, .no_value = true, .cause = 71, .status = 71},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        CLEANUP(json_decrefp) json_t *fabric = NULL;
        int status = -1;
        calls = (struct calls){
            .unchecked = rows[i].unchecked, .no_value = rows[i].no_value, .status = rows[i].cause};
        if (check("node-a:7000,node-b:7000", rows[i].reach, &status, &fabric, &err) < 0)
            fail_msg("row %zu: %s", i, err.text);
        assert_int_equal(status, rows[i].status);
        assert_int_equal(calls.shown, rows[i].unchecked);
        assert_int_equal(fabric != NULL, !rows[i].no_value);
        assert_int_equal(calls.planned, 1);
        assert_int_equal(calls.ran, 1);
        assert_int_equal(calls.freed, 1);
    }
}

/* The engine's and the report's errors are the caller's, without a value. */
static void engine_fails(void **state)
{
    struct drarun_error err = {0};
    json_t *fabric = NULL;
    int status = -1;
    (void)state;
    calls = (struct calls){.no_job = true};
    assert_int_equal(check("node-a:7000,node-b:7000", true, &status, &fabric, &err), -EMFILE);
    assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
    assert_string_equal(err.text, "too many open files");
    assert_int_equal(calls.freed, 0);
    calls = (struct calls){.unchecked = true, .no_report = true, .status = 71};
    assert_int_equal(check("node-a:7000,node-b:7000", true, &status, &fabric, &err), -ENOSPC);
    assert_string_equal(err.text, "the report: no space");
    assert_int_equal(calls.freed, 1);
    assert_null(fabric);
}

/* What is wrong with the command line is an error of usage, and no agent is dialled. */
static void refused(void **state)
{
    static const struct {
        const char *agents;
        bool reach;
        int code;
        const char *why;
    } rows[] = {
        {"node-a:7000,elsewhere", false, EINVAL, "--agents: no host is called \"elsewhere\""},
        {"", false, EINVAL, "--agents: no host is called \"\""},
        {"node-a:7000,", false, EINVAL, "--agents: no host is called \"\""},
        {"node-a:7000,node-b:7000,node-a:7000", false, EINVAL,
         "--agents: node-a:7000 is named twice"},
        {"node-a:7000,node-b:7000,node-a.cluster:7000", false, EINVAL,
         "--agents: node-a.cluster:7000 is named twice"}, /* another name of its address */
        {"node-a:7000", true, EINVAL, "--reach: one agent has no other whose NICs it could reach"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        json_t *fabric = NULL;
        int status = -1;
        calls = (struct calls){0};
        assert_int_equal(check(rows[i].agents, rows[i].reach, &status, &fabric, &err),
                         -rows[i].code);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
        assert_string_equal(err.text, rows[i].why);
        assert_int_equal(calls.made, 0);
        assert_null(fabric);
    }
}

static void key_refused(void **state)
{
    struct drarun_error err = {0};
    json_t *fabric = NULL;
    char why[256];
    int status = -1;
    (void)state;
    calls = (struct calls){0};
    assert_int_equal(chmod(key_file, 0644), 0);
    assert_int_equal(check("node-a:7000,node-b:7000", false, &status, &fabric, &err), -EPERM);
    snprintf(why, sizeof why, "key file %s: others may read it (mode 644); run chmod 600 %s",
             key_file, key_file);
    assert_string_equal(err.text, why);
    assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    assert_int_equal(calls.made, 0);
    assert_int_equal(chmod(key_file, 0600), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends),
        cmocka_unit_test(engine_fails),
        cmocka_unit_test(refused),
        cmocka_unit_test(key_refused),
    };
    return cmocka_run_group_tests_name("launcher/bench/fabric", tests, make_key, remove_key);
}
