/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/request.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/ranks/rankenv.h"
#include "jobs/spec/spec.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

#define REPORT_MS 2000 /* of a pod's grace, for the report of the end */

void request_done(struct job_request *request)
{
    for (size_t i = 0; i < request->program_count; i++)
        strlist_done(&request->programs[i].env);
    strlist_done(&request->env_all);
    free(request->programs);
    free(request->alloc_agents);
    free(request->alloc_key_file);
    strlist_done(&request->alloc_wds);
    free(request->chosen_agents);
    *request = (struct job_request){0};
}

void request_decide_success(struct job_request *request, const struct job_spec *spec)
{
    request->success_first = 0;
    request->success_count = spec->success == SPEC_SUCCESS_RANK0 ? 1 : 0;
    if (spec->success != SPEC_SUCCESS_ROLE)
        return;
    for (uint32_t r = 0; r < spec->success_role; r++)
        request->success_first += request->programs[r].ranks;
    request->success_count = request->programs[spec->success_role].ranks;
}

uint32_t request_count_ranks(const struct spec_role *role, bool mpirun, char *const argv[],
                             uint32_t gpus)
{
    uint32_t each = spec_role_ranks(role, mpirun, argv, gpus);
    bool chosen = role->ranks_per_worker > 0 || mpirun || rankenv_is_torchrun(argv);
    if (each < gpus && !chosen)
        log_note("one rank on each worker, not one for each of its %u GPUs: its command runs "
                 "torchrun, which starts the other processes; for another number set "
                 "ranksPerWorker or --ranks-per-worker",
                 gpus);
    return each;
}

void request_decide_failure(struct job_request *request, const struct job_spec *spec)
{
    if (request->on_rank_failure || spec->failure.on_rank_failure != FAILURE_OF_RANK_CONTINUE)
        return;
    request->on_rank_failure = "continue";
    request->failure_of_spec = true;
}

int64_t request_grace_ms(const struct job_spec *spec)
{
    int64_t ms = job_spec_grace_ms(spec);
    return ms > 2 * REPORT_MS ? ms - REPORT_MS : ms / 2;
}

bool request_is_on_host(const struct job_spec *spec)
{
    bool any = false;
    for (uint32_t r = 0; r < spec->role_count; r++)
        any |= json_is_true(json_object_get(spec_role_pod(&spec->roles[r]), "hostNetwork"));
    return any;
}

int request_check_warning(const struct job_request *request, struct drarun_error *err)
{
    double before_s = (double)request->warn_before_ms / 1000;
    if (request->warn_signo == 0)
        return 0;
    const char *name = sigabbrev_np(request->warn_signo);
    const char *signal = request->signal_of_spec ? "timeouts.signal" : "--signal";
    const char *timeout = request->timeout_of_spec ? "timeouts.total" : "--timeout";
    if (request->timeout_ms <= 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--signal %s@%gs: it is sent before --timeout TIME: give that, too", name,
                          before_s);
    if (request->warn_before_ms >= request->timeout_ms)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s %s@%gs: %s is %g s, so the signal cannot come %g s before it: give a "
                          "shorter time or a longer %s",
                          signal, name, before_s, timeout, (double)request->timeout_ms / 1000,
                          before_s, timeout);
    return 0;
}

const char *request_continues(const struct job_request *request)
{
    if (!request->on_rank_failure || strcmp(request->on_rank_failure, "continue") != 0)
        return NULL;
    return request->failure_of_spec ? "failurePolicy.onRankFailure: continue"
                                    : "--on-rank-failure continue";
}

uint32_t request_slots(const struct job_request *request, uint32_t worker)
{
    uint32_t first = 0;
    if (request->slots > 0)
        return request->slots;
    for (size_t i = 0; i < request->program_count; i++) {
        if (worker - first < request->programs[i].workers)
            return request->programs[i].slots;
        first += request->programs[i].workers;
    }
    return 0;
}

bool request_may_spawn(const struct job_request *request)
{
    bool said = request->slots > 0 || request->oversubscribe;
    for (size_t i = 0; i < request->program_count; i++)
        said |= request->programs[i].slots > 0;
    return said;
}

bool request_is_of_spec(const struct job_request *request)
{
    return request->pods && !request->pods->entry && !request->pods->kept;
}

bool request_is_elsewhere(const struct job_request *request)
{
    return request->agents || request->pods;
}

bool request_reports_to_file(const struct job_request *request)
{
    return request->report_path && file_is_plain(request->report_path);
}

int request_check_report(const struct job_request *request, struct drarun_error *err)
{
    const char *path = request->report_path;
    char folder[PATH_MAX] = ".";
    struct stat st;
    if (!path)
        return 0;
    if (!*path)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--report: expected a file, got \"\"");
    if (strcmp(path, "-") == 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--report -: expected a file: standard output is the ranks'; /dev/stdout "
                          "puts the report behind it, ./- is a file of that name");
    if (!request_reports_to_file(request))
        return access(path, W_OK) == 0
                   ? 0
                   : error_kind(err, DRARUN_ERR_INFRASTRUCTURE, errno,
                                "--report %s: it cannot be written to: %s", path, strerror(errno));
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EISDIR,
                          "--report %s: it is a directory; name a file in it", path);
    const char *slash = strrchr(path, '/');
    if (slash && snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path) >= PATH_MAX)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, ENAMETOOLONG, "--report %s: %s", path,
                          strerror(ENAMETOOLONG));
    if (access(folder, W_OK | X_OK) < 0)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, errno,
                          "--report %s: no file can be made in %s: %s", path, folder,
                          strerror(errno));
    return 0;
}

bool request_is_here(const struct job_request *request)
{
    return !request_is_elsewhere(request) || request->alloc_agents;
}

bool request_is_remote(const struct job_request *request)
{
    return request_is_elsewhere(request) || request->workers > 1;
}
