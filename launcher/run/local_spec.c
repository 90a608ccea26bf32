/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/run/local_spec.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/derive/variables/inspector.h"
#include "jobs/spec/spec_words.h"
#include "launcher/job/role_env.h"
#include "launcher/files/spec_file.h"
#include "launcher/cli/verb.h"
#include "launcher/programs/remote.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/doc/load.h"

struct local_spec {
    struct drarun_spec *file;
    struct strlist *argvs; /* by role */
    struct strlist hosts;  /* by worker */
    const char *
        *off; /* by role: why NCCL's inspector stays off; NULL: it does not, or nobody wants it */
};

void local_spec_free(struct local_spec *spec)
{
    if (!spec)
        return;
    for (uint32_t r = 0; spec->argvs && r < spec->file->job.role_count; r++)
        strlist_done(&spec->argvs[r]);
    free(spec->argvs);
    free(spec->off);
    strlist_done(&spec->hosts);
    drarun_spec_free(spec->file);
    free(spec);
}

/* ---- NCCL's inspector ---- */

/* As its files are collected in a cluster, but that nothing is derived here. Why it stays off, or
 * NULL. */
static const char *add_inspector(struct job_request *request, struct strlist *env)
{
    CLEANUP(strlist_done) struct strlist paths = STRLIST_INIT;
    const char *library = NULL;
    inspector_paths(env->items, &paths);
    for (size_t i = 0; i < paths.count && !library; i++)
        library = access(paths.items[i], R_OK) == 0 ? paths.items[i] : NULL;
    env->failed |= paths.failed;
    if (!library)
        return "its library is not on this machine; build it from NCCL's "
               "plugins/profiler/inspector into /usr/local/lib, or give its path: nccl: {env: "
               "{NCCL_PROFILER_PLUGIN: /PATH}}";
    if (!env_get(env, INSPECTOR_FOLDER) && !request_reports_to_file(request))
        return "no folder is set for its files; give --report FILE, or set a folder: nccl: {env: "
               "{" INSPECTOR_FOLDER ": /PATH}}";
    if (!env_get(env, INSPECTOR_FOLDER))
        request->collect_env = INSPECTOR_FOLDER;
    inspector_env(library, env);
    return NULL;
}

static void tell_inspector(const struct local_spec *own)
{
    const struct job_spec *spec = &own->file->job;
    for (uint32_t r = 0; r < spec->role_count; r++)
        if (own->off[r])
            log_note("%s%s%sNCCL's inspector is off: %s", spec_has_roles(spec) ? "role " : "",
                     spec_has_roles(spec) ? spec->roles[r].name : "",
                     spec_has_roles(spec) ? ": " : "", own->off[r]);
}

/* ---- variables that come from objects of a cluster ---- */

typedef bool (*lacks_fn)(const struct spec_role *role, const char *what);

static bool lacks_variable(const struct spec_role *role, const char *name)
{
    size_t i;
    json_t *each;
    json_array_foreach(json_object_get(spec_role_container(role), "env"), i, each)
    {
        const char *own = json_string_value(json_object_get(each, "name"));
        if (own && strcmp(own, name) == 0 && json_object_get(each, "valueFrom"))
            return true;
    }
    return false;
}

/* "ConfigMap settings"; "" for what is no source. */
static void add_source(const json_t *entry, struct buf *out)
{
    static const struct {
        const char *key, *kind;
    } sources[] = {{"configMapRef", "ConfigMap"}, {"secretRef", "Secret"}};
    buf_add(out, "", 0);
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        const json_t *source = json_object_get(entry, sources[i].key);
        const char *name = json_string_value(json_object_get(source, "name"));
        if (name)
            buf_printf(out, "%s %s", sources[i].kind, name);
    }
}

static bool lacks_source(const struct spec_role *role, const char *source)
{
    size_t i;
    json_t *each;
    json_array_foreach(json_object_get(spec_role_container(role), "envFrom"), i, each)
    {
        CLEANUP(buf_done) struct buf own = BUF_INIT;
        add_source(each, &own);
        if (own.data && strcmp(own.data, source) == 0)
            return true;
    }
    return false;
}

/* "roles a, b: "; "" for a job without roles. */
static void add_roles(const struct job_spec *spec, lacks_fn lacks, const char *what,
                      struct buf *out)
{
    uint32_t count = 0, said = 0;
    for (uint32_t r = 0; spec_has_roles(spec) && r < spec->role_count; r++)
        count += lacks(&spec->roles[r], what);
    for (uint32_t r = 0; count > 0 && r < spec->role_count; r++)
        if (lacks(&spec->roles[r], what))
            buf_printf(out, "%s%s",
                       said++ > 0  ? ", "
                       : count > 1 ? "roles "
                                   : "role ",
                       spec->roles[r].name);
    buf_add_str(out, count > 0 ? ": " : "");
}

/* whose: by name, which roles lack it. */
static int tell_lacking(const struct strlist *names, const struct strlist *whose)
{
    for (size_t i = 0; i < names->count; i++) {
        CLEANUP(buf_done) struct buf list = BUF_INIT;
        size_t before = 0, count = 0;
        while (before < i && strcmp(whose->items[before], whose->items[i]) != 0)
            before++;
        if (before < i) /* with that one */
            continue;
        for (size_t k = i; k < names->count; k++)
            if (strcmp(whose->items[k], whose->items[i]) == 0)
                buf_printf(&list, "%s%s", count++ > 0 ? ", " : "", names->items[k]);
        if (list.failed)
            return -ENOMEM;
        if (count > 1)
            log_note("%sthe variables %s come from objects of a cluster: they are not set here",
                     whose->items[i], list.data);
        else
            log_note("%sthe variable %s comes from an object of a cluster: it is not set here",
                     whose->items[i], list.data);
    }
    return 0;
}

static int tell_variables(const struct job_spec *spec, struct drarun_error *err)
{
    CLEANUP(strlist_done) struct strlist names = STRLIST_INIT;
    CLEANUP(strlist_done) struct strlist whose = STRLIST_INIT;
    for (uint32_t r = 0; r < spec->role_count; r++) {
        size_t i;
        json_t *each;
        json_array_foreach(json_object_get(spec_role_container(&spec->roles[r]), "env"), i, each)
        {
            CLEANUP(buf_done) struct buf text = BUF_INIT;
            const char *name = json_string_value(json_object_get(each, "name"));
            if (!name || !lacks_variable(&spec->roles[r], name) || strlist_has(&names, name))
                continue;
            add_roles(spec, lacks_variable, name, &text);
            strlist_add(&names, name);
            strlist_add(&whose, text.data);
            whose.failed |= text.failed;
        }
    }
    bool failed = names.failed || whose.failed;
    return failed || tell_lacking(&names, &whose) < 0 ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* A line for each object that gives all that it has. */
static int tell_sources(const struct job_spec *spec, struct drarun_error *err)
{
    CLEANUP(strlist_done) struct strlist told = STRLIST_INIT;
    for (uint32_t r = 0; r < spec->role_count; r++) {
        size_t i;
        json_t *each;
        json_array_foreach(json_object_get(spec_role_container(&spec->roles[r]), "envFrom"), i,
                           each)
        {
            CLEANUP(buf_done) struct buf source = BUF_INIT, whose = BUF_INIT;
            add_source(each, &source);
            if (!source.failed && (source.len == 0 || strlist_has(&told, source.data)))
                continue;
            add_roles(spec, lacks_source, source.data ? source.data : "", &whose);
            strlist_add(&told, source.data ? source.data : "");
            if (source.failed || whose.failed || told.failed)
                return error_set(err, ENOMEM, "out of memory");
            log_note("%sthe variables of %s come from an object of a cluster: they are not set "
                     "here",
                     whose.data, source.data);
        }
    }
    return 0;
}

/* given: what the command line says for all ranks. */
static int fill_program(struct local_spec *own, struct run_line *line,
                        const struct request_program *given, uint32_t r, struct drarun_error *err)
{
    struct job_request *request = &line->request;
    const struct job_spec *spec = &own->file->job;
    const struct spec_role *role = &spec->roles[r];
    struct request_program *program = &request->programs[r];
    struct strlist *argv = &own->argvs[r];
    program->expand = spec_words_add(role, &line->args, argv);
    spec_words_env(role, &program->env);
    if (role->nccl_env.count > 0)
        strlist_add_all(&program->env, role->nccl_env.items);
    if (request->env_all.count > 0)
        strlist_add_all(&program->env, request->env_all.items);
    if (given->env.count > 0)
        strlist_add_all(&program->env, given->env.items);
    if (role->nccl_inspector)
        own->off[r] = add_inspector(request, &program->env);
    int rc = role_env_add(spec, role, strlist_items(&own->hosts), &program->env, err);
    if (rc == 0 && (argv->failed || argv->count == 0 || program->env.failed))
        rc = error_set(err, ENOMEM, "out of memory");
    program->argv = argv->items;
    program->argc = argv->count;
    program->wd = given->wd
                      ? given->wd
                      : json_string_value(json_object_get(spec_role_container(role), "workingDir"));
    program->workers = role->workers;
    program->slots = role->slots;
    program->ranks =
        spec->launch == SPEC_LAUNCH_MPIRUN
            ? 1
            : role->workers * request_count_ranks(role, false, program->argv, role->gpus.count);
    return rc;
}

static void fill_request(const struct job_spec *spec, struct job_request *request)
{
    request->workers = spec->workers;
    if (!request->bind)
        request->bind = spec->bind;
    request->oversubscribe |= spec->oversubscribe;
    request->report_bindings |= spec->report_bindings;
    request->own_worlds = spec->own_worlds;
    request->launch_env = spec->launch == SPEC_LAUNCH_ENV;
    request->launch_mpirun = spec->launch == SPEC_LAUNCH_MPIRUN;
    if (request->launch_mpirun)
        request->per_worker = spec->roles[0].ranks_per_worker;
    if (request->timeout_ms == 0) {
        request->timeout_ms = spec->timeouts.total;
        request->timeout_of_spec = true;
    }
    if (request->agent_timeout_ms == 0)
        request->agent_timeout_ms = spec->timeouts.agent;
    if (request->warn_signo == 0) {
        request->warn_signo = spec->timeouts.signal;
        request->warn_before_ms = spec->timeouts.signal_before;
        request->signal_of_spec = true;
    }
    if (request->hang_after_ms == 0 && spec->on_hang == SPEC_FALLBACK_FAIL)
        request->hang_after_ms = spec->hang_after;
    request_decide_failure(request, spec);
    request_decide_success(request, spec);
}

static int fill(struct local_spec *own, struct run_line *line, const struct request_program *given,
                struct drarun_error *err)
{
    struct job_request *request = &line->request;
    assert(own->file);
    const struct job_spec *spec = &own->file->job;
    request->programs = calloc(spec->role_count, sizeof *request->programs);
    own->argvs = calloc(spec->role_count, sizeof *own->argvs);
    own->off = calloc(spec->role_count, sizeof *own->off);
    for (uint32_t i = 0; i < spec->workers; i++)
        strlist_add(&own->hosts, "127.0.0.1");
    if (!request->programs || !own->argvs || !own->off || own->hosts.failed)
        return error_set(err, ENOMEM, "out of memory");
    request->program_count = spec->role_count;
    int rc = 0;
    for (uint32_t r = 0; rc == 0 && r < spec->role_count; r++)
        rc = fill_program(own, line, given, r, err);
    if (rc == 0)
        fill_request(spec, request);
    return rc;
}

/* Standard input is the spec, which this program and one that it becomes each read. */
static int keep_input(struct job_request *request, struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    if (request->stdin_rank != REQUEST_STDIN_NONE && request->stdin_rank != 0)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "--stdin: standard input is already used for the job's spec: give the spec as a file");
    request->stdin_rank = REQUEST_STDIN_NONE;
    if (doc_read("-", NULL, &text, err) < 0)
        return -err->code;
    cleanup_close int fd = fd_of_data("job", text.data ? text.data : "", text.len);
    int rc = fd < 0 ? fd : dup2(fd, STDIN_FILENO) < 0 ? -errno : 0;
    return rc < 0 ? error_kind(err, DRARUN_ERR_INFRASTRUCTURE, -rc,
                               "<stdin>: the job cannot be kept in memory: %s", strerror(-rc))
                  : 0;
}

int local_spec_use(struct run_line *line, struct local_spec **ret_spec)
{
    CLEANUP(local_spec_freep) struct local_spec *own = calloc(1, sizeof *own);
    struct job_request *request = &line->request;
    struct request_program *given = request->programs;
    struct drarun_error err = {0};
    if (!own) {
        log_error("out of memory");
        return error_exit_status(DRARUN_ERR_NONE);
    }
    bool input = strcmp(line->cluster.file, "-") == 0;
    int rc = input ? keep_input(request, &err) : 0;
    int status =
        rc < 0 ? verb_fail(NULL, &err) : spec_file_load(line->cluster.file, NULL, &own->file);
    if (status != 0)
        return status;
    if (input)
        lseek(STDIN_FILENO, 0, SEEK_SET); /* for a program that this one becomes */
    request->programs = NULL;             /* those of the spec come in place of the given one */
    request->program_count = 0;
    if (request->workers > 0)
        rc = spec_change(&own->file->job, NULL, request->workers, &err);
    if (rc == 0 && own->file->job.workers > 1 && !remote_api())
        request->workers = own->file->job.workers; /* the program that this one becomes fills it */
    else if (rc == 0)
        rc = fill(own, line, given, &err);
    strlist_done(&given->env);
    free(given);
    if (rc < 0)
        return verb_fail(NULL, &err);
    *ret_spec = TAKE_PTR(own);
    return 0;
}

int local_spec_tell(const struct local_spec *spec, struct drarun_error *err)
{
    int rc = tell_variables(&spec->file->job, err);
    if (rc == 0)
        rc = tell_sources(&spec->file->job, err);
    tell_inspector(spec);
    return rc == 0 ? role_env_tell(&spec->file->job, strlist_items(&spec->hosts), err) : rc;
}
