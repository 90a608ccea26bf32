/* SPDX-License-Identifier: Apache-2.0 */
/* Worker 0 of a job without a launcher: until all are there, and what it asks of the job engine.
 * The engine, the name service, signals and time are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jobs/outcome/cause.h"
#include "launcher/entry/lead.h"
#include "launcher/job/job.h"
#include "launcher/job/plan.h"
#include "launcher/job/report.h"
#include "launcher/programs/remote.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/inspect/inspect.h"

#define AGENT 4242
#define START_MS 60000
#define PEERS 12

static struct calls {
    struct buf log, spec; /* spec: what was planned */
    int64_t now_ms;
    uint32_t unresolved; /* the last so many peers have no address */
    int64_t resolved_ms; /* from then on they have */
    int signo, pauses;   /* signo: comes in the first pause */
    bool agent_gone, hopeless, no_failure, no_job;
    int64_t round_ms;            /* so long runs a round that does not gather all */
    uint32_t rounds, gathers_at; /* the round in which all are there; 0: never */
    uint32_t shown, freed;
    int64_t last_limit_ms, last_all_tries_ms;
    uint32_t gpus, ibdevs;
    const struct job_request *request;
} calls;

static char job_value, cause_value;

static struct job *the_job(void)
{
    return (struct job *)(void *)&job_value;
}

/* ---- what it calls ---- */

static int resolve(const char *address, char numeric[REMOTE_ADDRESS_SIZE], struct drarun_error *err)
{
    unsigned int worker = (unsigned int)atoi(address + strlen("web-"));
    if (worker >= PEERS - calls.unresolved && calls.now_ms < calls.resolved_ms)
        return error_set(err, ENOENT, "web-%u is not known", worker);
    snprintf(numeric, REMOTE_ADDRESS_SIZE, "10.0.0.%u:7173", worker);
    return 0;
}

const struct remote_api *remote_api(void)
{
    static const struct remote_api api = {.resolve = resolve};
    return &api;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ret_now);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret_now)
{
    (void)id;
    *ret_now =
        (struct timespec){.tv_sec = calls.now_ms / 1000, .tv_nsec = calls.now_ms % 1000 * 1000000};
    return 0;
}

int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *time);
int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *time)
{
    (void)info;
    assert_true(sigismember(set, SIGTERM) && sigismember(set, SIGINT) && sigismember(set, SIGHUP));
    calls.now_ms += time->tv_sec * 1000 + time->tv_nsec / 1000000;
    calls.pauses++;
    return calls.signo ? calls.signo : -1;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    (void)status;
    (void)options;
    assert_int_equal(pid, AGENT);
    return calls.agent_gone ? pid : 0;
}

int __wrap_inspect_probe(const char *root, const struct strlist *look_for, json_t **ret_probe,
                         struct drarun_error *err);
int __wrap_inspect_probe(const char *root, const struct strlist *look_for, json_t **ret_probe,
                         struct drarun_error *err)
{
    (void)root;
    (void)err;
    assert_true(look_for->count > 0);
    *ret_probe = json_pack("{s:[], s:[]}", "gpus", "visibleIbdevs");
    for (uint32_t i = 0; i < calls.gpus; i++)
        json_array_append_new(json_object_get(*ret_probe, "gpus"), json_object());
    for (uint32_t i = 0; i < calls.ibdevs; i++)
        json_array_append_new(json_object_get(*ret_probe, "visibleIbdevs"), json_string("mlx5_0"));
    return 0;
}

struct job *__wrap_job_new(const struct job_request *request, struct console *console, int input,
                           char *const env[], struct drarun_error *err);
struct job *__wrap_job_new(const struct job_request *request, struct console *console, int input,
                           char *const env[], struct drarun_error *err)
{
    (void)env;
    sigset_t held;
    sigprocmask(SIG_BLOCK, NULL, &held);
    assert_false(sigismember(&held, SIGTERM)); /* the engine has them */
    assert_non_null(console);
    assert_int_equal(input, -1);
    if (calls.no_job) {
        error_kind(err, DRARUN_ERR_USAGE, EINVAL, "it contradicts itself");
        return NULL;
    }
    calls.request = request;
    calls.last_limit_ms = request->start_timeout_ms;
    calls.last_all_tries_ms = request->pods->all_tries_ms;
    assert_true(request->pods->entry);
    for (uint32_t i = 0; i < request->pods->workers; i++) {
        char address[32];
        snprintf(address, sizeof address, "10.0.0.%u:7173", i);
        assert_string_equal(request->pods->addresses[i], address);
    }
    return the_job();
}

int __wrap_job_plan(struct job *job, const struct job_plan_input *input, struct drarun_error *err);
int __wrap_job_plan(struct job *job, const struct job_plan_input *input, struct drarun_error *err)
{
    const struct spec_role *role = &input->spec->roles[0];
    (void)job;
    (void)err;
    assert_string_equal(input->workers[1].pod, "web-1:7173");
    assert_true(input->slices_unknown && !input->slices);
    buf_printf(&calls.spec, "%u workers, %u ranks each, %u gpus, %s%s", input->spec->workers,
               role->ranks_per_worker, role->gpus.count,
               input->spec->network == SPEC_NETWORK_RDMA ? "rdma" : "any",
               input->warn ? ", warns" : "");
    return 0;
}

void __wrap_job_run(struct job *job);
void __wrap_job_run(struct job *job)
{
    const struct request_pods *pods = calls.request->pods;
    struct drarun_error err = {0};
    if (++calls.rounds != calls.gathers_at) {
        calls.now_ms += calls.round_ms;
        return;
    }
    assert_int_equal(pods->prepare(pods->arg, job, &err), 0);
    pods->started(pods->arg);
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
    (void)job;
    return (const struct cause *)(const void *)&cause_value;
}

bool __wrap_job_gathered(const struct job *job);
bool __wrap_job_gathered(const struct job *job)
{
    (void)job;
    return calls.rounds == calls.gathers_at;
}

bool __wrap_job_is_hopeless(const struct job *job);
bool __wrap_job_is_hopeless(const struct job *job)
{
    (void)job;
    return calls.hopeless;
}

enum cause_kind __wrap_cause_kind(const struct cause *cause);
enum cause_kind __wrap_cause_kind(const struct cause *cause)
{
    (void)cause;
    return calls.no_failure ? CAUSE_NONE : CAUSE_FAILURE;
}

int __wrap_cause_status(const struct cause *cause);
int __wrap_cause_status(const struct cause *cause)
{
    (void)cause;
    return calls.rounds == calls.gathers_at ? 3 : 70;
}

void __wrap_cause_explain(const struct cause *cause, bool color, struct buf *out);
void __wrap_cause_explain(const struct cause *cause, bool color, struct buf *out)
{
    (void)cause;
    (void)color;
    buf_add_str(out, "worker 1 is not reached");
}

int __wrap_report_show(const struct job_request *request, const struct job *job,
                       struct drarun_error *err);
int __wrap_report_show(const struct job_request *request, const struct job *job,
                       struct drarun_error *err)
{
    (void)err;
    assert_ptr_equal(request, calls.request);
    assert_ptr_equal(job, the_job());
    calls.shown++;
    return 0;
}

static void on_log(void *arg, const struct log_line *line)
{
    (void)arg;
    buf_add(&calls.log, line->text + line->prefix, line->length - line->prefix);
}

/* ---- the cases ---- */

static void set_up(void)
{
    buf_done(&calls.log);
    buf_done(&calls.spec);
    calls = (struct calls){.now_ms = 5000, .gathers_at = 1};
    log_setup("drarun", LOG_NORMAL);
    log_divert(on_log, NULL);
}

static int lead(const struct entry_options *options, uint32_t workers, int *ret_status,
                struct drarun_error *err)
{
    struct tls_key key = {{0}};
    struct rendezvous rendezvous = {.source = "--peers"};
    for (uint32_t i = 0; i < workers; i++)
        strlist_addf(&rendezvous.addresses, "web-%u:7173", i);
    const struct entry_lead in = {
        .options = options, .rendezvous = &rendezvous, .key = &key, .agent = AGENT};
    int rc = entry_lead(&in, ret_status, err);
    log_divert(NULL, NULL);
    strlist_done(&rendezvous.addresses);
    return rc;
}

static char *const program[] = {(char[]){"true"}, NULL};

static struct entry_options options_of(uint32_t per_worker)
{
    return (struct entry_options){
        .per_worker = per_worker, .start_timeout_ms = START_MS, .argv = program};
}

static void check_log(const char *expected)
{
    assert_string_equal(calls.log.data ? calls.log.data : "", expected);
}

/* RDMA is asked for where the pod shows a GPU or an RDMA device; its ranks are as its GPUs. */
static void the_job_of_a_pod(void **state)
{
    static const struct {
        const char *network;
        uint32_t gpus, ibdevs, per_worker;
        const char *spec, *log;
    } rows[] = {
        {NULL, 0, 0, 0, "2 workers, 1 ranks each, 0 gpus, any", "2 ranks on 2 workers run\n"},
        {NULL, 0, 1, 4, "2 workers, 4 ranks each, 0 gpus, rdma", "8 ranks on 2 workers run\n"},
        {NULL, 8, 0, 0, "2 workers, 8 ranks each, 8 gpus, rdma, warns",
         "16 ranks on 2 workers run\n"},
        {"any", 8, 1, 8, "2 workers, 8 ranks each, 8 gpus, any, warns",
         "16 ranks on 2 workers run\n"},
        {"rdma", 0, 0, 1, "2 workers, 1 ranks each, 0 gpus, rdma", "2 ranks on 2 workers run\n"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        int status = -1;
        set_up();
        calls.gpus = rows[i].gpus;
        calls.ibdevs = rows[i].ibdevs;
        struct entry_options options = options_of(rows[i].per_worker);
        options.network = rows[i].network;
        if (lead(&options, 2, &status, &err) < 0)
            fail_msg("row %zu: %s", i, err.text);
        assert_int_equal(status, 3);
        assert_string_equal(calls.spec.data, rows[i].spec);
        check_log(rows[i].log);
        assert_int_equal(calls.shown, 1);
        assert_int_equal(calls.freed, 1);
    }
}

/* Names without an address are looked up again until --start-timeout; the message has the first
 * eight. */
static void names(void **state)
{
    struct drarun_error err = {0};
    const struct entry_options options = options_of(1);
    int status = -1;
    (void)state;
    set_up();
    calls.unresolved = 1;
    calls.resolved_ms = 5000 + START_MS - 1000;
    assert_int_equal(lead(&options, PEERS, &status, &err), 0);
    assert_int_equal(status, 3);
    check_log("waits for the others: worker 11: web-11 is not known\n12 ranks on 12 workers run\n");
    set_up();
    calls.unresolved = 10;
    calls.resolved_ms = INT64_MAX;
    assert_int_equal(lead(&options, PEERS, &status, &err), -EHOSTUNREACH);
    assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
    assert_string_equal(
        err.text,
        "not all peers have come within 60 s (--start-timeout): worker 2: web-2 is not known; "
        "worker 3: web-3 is not known; worker 4: web-4 is not known; worker 5: web-5 is not known; "
        "worker 6: web-6 is not known; worker 7: web-7 is not known; worker 8: web-8 is not known; "
        "worker 9: web-9 is not known; and 2 more: do their pods run, and is the headless Service "
        "there?");
    assert_int_equal(calls.rounds, 0);
}

/* Rounds of 20 s until --start-timeout; the last one tells all agents how long was tried. */
static void rounds(void **state)
{
    struct drarun_error err = {0};
    const struct entry_options options = options_of(1);
    int status = -1;
    (void)state;
    set_up();
    calls.round_ms = 20000;
    calls.gathers_at = 2;
    assert_int_equal(lead(&options, 2, &status, &err), 0);
    assert_int_equal(status, 3);
    assert_int_equal(calls.last_limit_ms, 20000);
    assert_int_equal(calls.last_all_tries_ms, 0);
    check_log("waits for the others: worker 1 is not reached\n2 ranks on 2 workers run\n");
    assert_int_equal(calls.shown, 1);
    assert_int_equal(calls.freed, 2);
    set_up();
    calls.round_ms = 20000;
    calls.gathers_at = 0;
    assert_int_equal(lead(&options, 2, &status, &err), 0);
    assert_int_equal(status, 70);
    assert_int_equal(calls.rounds, 3);
    assert_int_equal(calls.last_limit_ms, 60000 - 2 * 20500);
    assert_int_equal(calls.last_all_tries_ms, START_MS);
    assert_int_equal(calls.shown, 1);
    check_log("waits for the others: worker 1 is not reached\n");
}

/* What another try cannot mend, or the user ends, ends it at once. */
static void one_round(void **state)
{
    (void)state;
    for (int user = 0; user < 2; user++) {
        struct drarun_error err = {0};
        const struct entry_options options = options_of(1);
        int status = -1;
        set_up();
        calls.gathers_at = 0;
        calls.hopeless = !user;
        calls.no_failure = user;
        assert_int_equal(lead(&options, 2, &status, &err), 0);
        assert_int_equal(status, 70);
        assert_int_equal(calls.rounds, 1);
        assert_int_equal(calls.shown, 1);
        check_log("");
    }
}

static void ends_of_the_wait(void **state)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct drarun_error err = {0};
    const struct entry_options options = options_of(1);
    int status = -1;
    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(signals); i++) { /* before and between rounds */
        set_up();
        calls.unresolved = i % 2 ? 1 : 0;
        calls.resolved_ms = INT64_MAX;
        calls.gathers_at = 0;
        calls.signo = signals[i / 2];
        assert_int_equal(lead(&options, PEERS, &status, &err), 0);
        assert_int_equal(status, 128 + signals[i / 2]);
        assert_int_equal(calls.rounds, i % 2 ? 0 : 1);
        assert_int_equal(calls.pauses, 1);
    }
    set_up();
    calls.gathers_at = 0;
    calls.agent_gone = true;
    status = -1;
    assert_int_equal(lead(&options, 2, &status, &err), -ECHILD);
    assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
    assert_string_equal(err.text, "our own drarun-worker has ended");
    set_up();
    calls.no_job = true;
    assert_int_equal(lead(&options, 2, &status, &err), -EINVAL);
    assert_string_equal(err.text, "it contradicts itself");
    assert_int_equal(status, -1);
}

static int forget(void **state)
{
    (void)state;
    buf_done(&calls.log);
    buf_done(&calls.spec);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_job_of_a_pod), cmocka_unit_test(names),
        cmocka_unit_test(rounds),           cmocka_unit_test(one_round),
        cmocka_unit_test(ends_of_the_wait),
    };
    return cmocka_run_group_tests_name("launcher/entry/lead", tests, NULL, forget);
}
