/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <event2/event.h>

#include "jobs/spec/spec.h"
#include "launcher/job/identity.h"
#include "launcher/job/job.h"
#include "launcher/job/plan.h"
#include "launcher/programs/remote.h"
#include "launcher/job/report.h"
#include "launcher/job/request.h"
#include "launcher/streams/console.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/wire/key_file.h"
#include "lib/wire/tls.h"

#define RADIX 8
#define KILL_AFTER_MS 5000

struct check {
    const struct fabric_order *order;
    struct job_spec spec;
    bool have_spec;
    struct strlist names, numeric, look_for, scripts;
    const char **nodes; /* not known */
    struct plan_worker_input *workers;
    struct event_base *base;
    struct tls_key key;
    char uid[IDENTITY_UID_SIZE];
    json_t *fabric;
    bool checked;
};

static void check_done(struct check *c)
{
    if (c->have_spec)
        job_spec_done(&c->spec);
    strlist_done(&c->names);
    strlist_done(&c->numeric);
    strlist_done(&c->look_for);
    strlist_done(&c->scripts);
    free(c->nodes);
    free(c->workers);
    json_decref(c->fabric);
    if (c->base)
        event_base_free(c->base);
    explicit_bzero(&c->key, sizeof c->key);
}

/* ---- before ---- */

static int read_agents(struct check *c, struct drarun_error *err)
{
    cleanup_free char *list = strdup(c->order->agents);
    char *rest = list, *word;
    while ((word = strsep(&rest, ","))) {
        char numeric[REMOTE_ADDRESS_SIZE];
        if (remote_api()->resolve(word, numeric, err) < 0)
            return error_prefix(err, "--agents");
        strlist_add(&c->names, word);
        strlist_add(&c->numeric, numeric);
    }
    for (size_t i = 0; i < c->numeric.count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(c->numeric.items[i], c->numeric.items[k]) == 0)
                return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--agents: %s is named twice",
                                  c->names.items[i]);
    if (c->order->reach && c->names.count < 2)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--reach: one agent has no other whose NICs it could reach");
    return !list || c->names.failed || c->numeric.failed ? error_set(err, ENOMEM, "out of memory")
                                                         : 0;
}

static int make_spec(struct check *c, struct drarun_error *err)
{
    CLEANUP(json_decrefp)
    json_t *json = json_pack("{s:s, s:s, s:{s:s}, s:{s:i, s:i, s:s, s:[s], s:s, s:{s:s}}}",
                             "apiVersion", SPEC_API_VERSION, "kind", SPEC_KIND, "metadata", "name",
                             "fabric", "spec", "workers", (int)c->names.count, "ranksPerWorker", 1,
                             "image", "none", "command", "true", "network", "rdma", "preflight",
                             "fabric", c->order->reach ? "reach" : "open");
    cleanup_free char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    if (!text)
        return error_set(err, ENOMEM, "out of memory");
    int rc = spec_parse("drarun bench fabric", text, strlen(text), &c->spec, err);
    c->have_spec = rc == 0;
    return rc;
}

static int make(struct check *c, struct drarun_error *err)
{
    int rc = read_agents(c, err);
    if (rc == 0)
        rc = key_file_read(c->order->key_file, &c->key, err);
    if (rc == 0)
        rc = make_spec(c, err);
    if (rc == 0)
        rc = identity_make(c->uid, err);
    if (rc == 0)
        rc = job_plan_look_for(NULL, &c->look_for, &c->scripts, err);
    if (rc < 0)
        return rc;
    c->nodes = calloc(c->names.count + 1, sizeof *c->nodes);
    c->workers = calloc(c->names.count + 1, sizeof *c->workers);
    c->base = event_base_new();
    return c->nodes && c->workers && c->base ? 0 : error_set(err, ENOMEM, "out of memory");
}

/* ---- the check ---- */

static int on_prepare(void *arg, struct job *job, struct drarun_error *err)
{
    struct check *c = arg;
    for (size_t i = 0; i < c->names.count; i++)
        c->workers[i] = (struct plan_worker_input){.pod = c->names.items[i]};
    const struct job_plan_input input = {
        .spec = &c->spec, .workers = c->workers, .slices_unknown = true, .warn = true};
    return job_plan(job, &input, err);
}

static int on_checked(void *arg, const struct job *job, struct drarun_error *err)
{
    struct check *c = arg;
    (void)job;
    c->checked = true;
    return error_kind(err, DRARUN_ERR_INTERRUPTED, ECANCELED, "the NICs are checked");
}

static int run(struct check *c, int *ret_status, struct drarun_error *err)
{
    char *argv[] = {unconst("true")};
    struct request_program program = {.argv = argv, .argc = ARRAY_LEN(argv)};
    const struct request_pods pods = {
        .base = c->base,
        .key = &c->key,
        .uid = c->uid,
        .attempt = 1,
        .workers = (uint32_t)c->names.count,
        .addresses = strlist_items(&c->numeric),
        .look_for = &c->look_for,
        .scripts = &c->scripts,
        .open_nics = true,
        .pods = strlist_items(&c->names),
        .nodes = c->nodes,
        .prepare = on_prepare,
        .checked = on_checked,
        .kept = true,
        .arg = c,
    };
    CLEANUP(console_freep) struct console *console = console_new(&(struct console_options){0});
    if (!console)
        return error_set(err, ENOMEM, "out of memory");
    const struct job_request request = {
        .programs = &program,
        .program_count = 1,
        .per_worker = 1,
        .radix = RADIX,
        .bind = "none",
        .agents = c->order->agents,
        .pods = &pods,
        .kill_after_ms = KILL_AFTER_MS,
        .start_timeout_ms = c->order->start_timeout_ms,
    };
    struct job *job = job_new(&request, console, -1, NULL, err);
    if (!job)
        return -err->code;
    job_run(job);
    c->fabric = job_fabric(job);
    *ret_status = c->checked ? 0 : cause_status(job_cause(job));
    int rc = c->checked ? 0 : report_show(&request, job, err);
    job_free(job);
    return rc;
}

int fabric_check_agents(const struct fabric_order *order, int *ret_status, json_t **ret_fabric,
                        struct drarun_error *err)
{
    CLEANUP(check_done) struct check c = {.order = order};
    int rc = make(&c, err);
    if (rc == 0)
        rc = run(&c, ret_status, err);
    if (rc == 0)
        *ret_fabric = TAKE_PTR(c.fabric);
    return rc;
}
