/* SPDX-License-Identifier: Apache-2.0 */
/* What drarun-cluster has of cluster_api.h. */
#include "launcher/programs/cluster_api.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/manifests/objects.h"
#include "jobs/manifests/render.h"
#include "jobs/status/reason.h"
#include "launcher/cluster/alloc/allocate.h"
#include "launcher/cluster/client/api_event.h"
#include "launcher/cluster/submit/cancel.h"
#include "launcher/cluster/client/cluster.h"
#include "launcher/cluster/controller/controller.h"
#include "launcher/cluster/show/doctor.h"
#include "launcher/cluster/submit/dry_run.h"
#include "launcher/cluster/show/exec.h"
#include "launcher/cluster/follow/through.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cluster/lead/lead.h"
#include "launcher/cluster/submit/name_profile.h"
#include "launcher/cluster/show/show.h"
#include "launcher/cluster/public/snapshot.h"
#include "launcher/cluster/submit/submit.h"
#include "launcher/programs/accept_run.h"
#include "launcher/programs/agent_image.h"
#include "launcher/programs/signals.h"
#include "launcher/files/spec_file.h"
#include "launcher/cli/verb.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/number.h"
#include "lib/doc/log_json.h"
#include "lib/wire/key_file.h"

#define LOOK_MS 10000

static int fail(const struct drarun_error *err)
{
    log_error("%s", err->text);
    return verb_exit_status(err);
}

/* For somebody who waits for it. */
static int open_cluster(const struct cluster_choice *choice, struct cluster *ret_cluster,
                        struct drarun_error *err)
{
    const struct kube_config_choice chosen = {
        .path = choice->kubeconfig, .context = choice->context, .namespace_ = choice->namespace};
    kube_end_without_memory();
    int rc = cluster_open(ret_cluster, &chosen, err);
    if (rc == -ENOENT)
        err->kind = DRARUN_ERR_USAGE; /* there is no such file, or no such context in it */
    if (rc == 0)
        cluster_tell_unanswered(ret_cluster);
    return rc;
}

/* ---- run ---- */

static int fail_run(const struct cluster_run *run, const struct drarun_error *err)
{
    if (run->ret_end) {
        run->ret_end->err = *err;
        run->ret_end->err.kind = verb_error_kind(err);
    }
    return fail(err);
}

static bool is_in_pod(const struct cluster *cluster)
{
    return getenv("KUBERNETES_SERVICE_HOST") &&
           strcmp(kube_config_name(cluster->config), "the pod's service account") == 0;
}

static bool is_led_here(const struct cluster *cluster, const struct cluster_run *run)
{
    return run->here || (is_in_pod(cluster) && !run->detach);
}

static void name_holder(bool pod, char *text, size_t size)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    if (pod)
        snprintf(text, size, "%s", host);
    else
        snprintf(text, size, "%s_%d", host, (int)getpid());
}

/* A pod of an earlier Job of that name may come to run beside this one's: what it led would be
 * followed by nobody, and go with its pod. */
static int check_own_pod(struct cluster *cluster, struct cluster_read *reading, const json_t *owner,
                         struct drarun_error *err)
{
    struct drarun_error local = {0};
    CLEANUP(json_decrefp) json_t *pod = NULL;
    int rc = cluster_read_end(cluster, reading, &pod, &local);
    if (rc < 0 && rc != -ENOENT)
        return error_kind(err, local.kind, local.code, "%s", local.text);
    const json_t *owners = json_object_get(json_object_get(pod, "metadata"), "ownerReferences");
    if (json_array_size(owners) == 0 || kube_is_owned_by(pod, kube_uid(owner)))
        return 0;
    return error_kind(
        err, DRARUN_ERR_CLUSTER, ESTALE,
        "pod %s is of an earlier Job %s, which was deleted: it does not lead this job",
        kube_name(pod), kube_name(owner));
}

static void tell_document_refused(struct cluster *cluster, const char *job, const char *holder,
                                  const json_t *owner, const struct drarun_error *err)
{
    CLEANUP(json_decrefp)
    json_t *about = json_pack("{s:s, s:s, s:s, s:s, s:s}", "apiVersion", "batch/v1", "kind", "Job",
                              "name", job, "namespace", cluster->namespace, "uid", kube_uid(owner));
    const struct api_event event = {.about = about,
                                    .job = job,
                                    .reason = reason_name(REASON_DOCUMENT_REFUSED),
                                    .message = err->text,
                                    .warning = true,
                                    .controller = "drarun.dev/launcher",
                                    .instance = holder};
    if (about)
        api_event_write_last(cluster, &event);
}

/* A Job that an earlier release has made does not tell the number of workers. */
static int check_workers(const json_t *map, const struct job_spec *spec, struct drarun_error *err)
{
    char workers[16];
    const char *made_with = getenv(OBJECT_DOCUMENT_WORKERS);
    snprintf(workers, sizeof workers, "%u", spec->workers);
    if (!made_with || strcmp(made_with, workers) == 0)
        return 0;
    return error_kind(err, DRARUN_ERR_SPEC, EBADMSG,
                      "ConfigMap %s is not the document that Job %s was made with: it has %s "
                      "workers, expected %s (" OBJECT_DOCUMENT_WORKERS
                      " of the Job's pods); nothing was made: delete the job, find out who may "
                      "write the ConfigMap, and submit it again",
                      kube_name(map), spec->name, workers, made_with);
}

/* Without this, an account that may write ConfigMaps could create pods through the launcher. */
static int check_document(const json_t *map, const struct job_spec *spec, struct drarun_error *err)
{
    char digest[OBJECT_DIGEST_SIZE];
    const char *made_with = getenv(OBJECT_DOCUMENT);
    int rc = object_document_digest(spec->document, digest, err);
    if (rc == 0 && made_with && strcmp(made_with, digest) == 0)
        return check_workers(map, spec, err);
    if (rc < 0)
        return rc;
    return error_kind(err, DRARUN_ERR_SPEC, EBADMSG,
                      "ConfigMap %s is not the document that Job %s was made with: its digest is "
                      "%s, expected %s (DRARUN_DOCUMENT of the Job's pods); nothing was made: "
                      "delete the job, find out who may write the ConfigMap, and submit it again",
                      kube_name(map), spec->name, digest, made_with ? made_with : "none");
}

/* The document of the launcher's own Job; one that it was not made with is refused. */
static int read_document(struct cluster *cluster, const char *job, const char *holder,
                         const json_t *owner, struct job_spec *ret_spec, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *map = NULL;
    int rc = job_map_await(cluster, job, cluster->namespace, kube_uid(owner), &map, err);
    if (rc < 0)
        return rc;
    rc = job_map_spec(map, ret_spec, err);
    if (rc == 0 && (rc = check_document(map, ret_spec, err)) < 0)
        job_spec_done(ret_spec);
    if (rc < 0)
        tell_document_refused(cluster, job, holder, owner, err);
    return rc;
}

/* The kubelet puts it into the pod's status, where those find it who cannot read its log, or read
 * it no more. */
static void tell_kubelet(const struct drarun_error *err)
{
    cleanup_close int fd = open("/dev/termination-log", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, err->text, strlen(err->text)) < 0)
        log_verbose("/dev/termination-log: %s", strerror(errno));
}

/* The launcher in its pod. */
static int lead_in_pod(struct cluster *cluster, const struct cluster_run *run)
{
    const struct kube_target target = {
        .resource = &kube_jobs, .namespace_ = cluster->namespace, .name = run->job};
    CLEANUP(cluster_read_drop) struct cluster_read reading = {0}, own = {0};
    CLEANUP(json_decrefp) json_t *owner = NULL;
    struct drarun_error err = {0};
    struct job_spec spec;
    struct tls_key key;
    char holder[300];
    const char *keep = getenv("DRARUN_KEEP");
    int64_t keep_s = 0;
    kube_client_tell_unanswered(cluster->client, NULL, NULL); /* nobody waits at a pod */
    name_holder(true, holder, sizeof holder);
    const struct kube_target pod = {
        .resource = &kube_pods, .namespace_ = cluster->namespace, .name = holder};
    if (key_env_take("DRARUN_KEY", &key, &err) < 0 ||
        (keep && number_parse("DRARUN_KEEP", keep, 1, UINT32_MAX, &keep_s, &err) < 0) ||
        cluster_read_start(cluster, &target, &reading, &err) < 0 ||
        cluster_read_start(cluster, &pod, &own, &err) < 0 || cluster_discover(cluster, &err) < 0 ||
        cluster_read_end(cluster, &reading, &owner, &err) < 0 ||
        check_own_pod(cluster, &own, owner, &err) < 0 ||
        read_document(cluster, run->job, holder, owner, &spec, &err) < 0) {
        log_error("%s", err.text);
        if (is_in_pod(cluster))
            tell_kubelet(&err);
        return error_exit_status(err.kind); /* the Job judges its pods by it */
    }
    const struct lead_options options = {
        .spec = &spec,
        .namespace = cluster->namespace,
        .image = run->image,
        .holder = holder,
        .owner_uid = kube_uid(owner),
        .key = &key,
        .secret = getenv("DRARUN_SECRET"),
        .args = run->args,
        .keep_s = (uint32_t)keep_s,
        .framed = true,
        .metrics_port = cluster->metrics_port ? cluster->metrics_port : RENDER_METRICS_PORT,
    };
    int status = lead_run(cluster, &options);
    explicit_bzero(&key, sizeof key);
    job_spec_done(&spec);
    if (status == LEAD_LEFT) /* the Job makes another pod */
        return 128 + SIGTERM;
    return status > 128 ? 1 : status; /* what is above says that the launcher was killed */
}

static int lead_here(struct cluster *cluster, const struct cluster_run *run,
                     const struct job_spec *spec, const char *namespace, json_t **ret_document)
{
    char holder[300];
    name_holder(false, holder, sizeof holder);
    const struct lead_options options = {
        .spec = spec,
        .namespace = namespace,
        .image = run->image,
        .holder = holder,
        .args = run->args,
        .here = true,
        .label = run->label,
        .quiet = run->quiet,
        .json = run->json,
        .reader = run->reader,
        .report_path = run->report_path,
        .ret_document = ret_document,
        .ret_end = run->ret_end,
    };
    int status = lead_run(cluster, &options);
    return status == LEAD_LEFT ? error_exit_status(DRARUN_ERR_INFRASTRUCTURE) : status;
}

/* ---- submitting ---- */

/* What a signal cannot undo at once: half of the job's objects are made. */
struct submitting {
    const struct cluster *cluster;
    const char *job;
    bool by_program; /* as in struct cluster_run */
    struct signals *signals;
    int signo; /* the first that came; 0: none */
};

static void on_signal_meanwhile(void *arg, int signo)
{
    struct submitting *s = arg;
    if (signo == SIGTSTP)
        raise(SIGSTOP);
    if (signo != SIGINT && signo != SIGTERM && signo != SIGHUP && signo != SIGQUIT)
        return;
    if (s->signo && s->by_program)
        return;
    bool none_made = kube_client_now(s->cluster->client) == 0; /* it has not answered at all */
    if (none_made && !s->signo)
        log_note("%s was not submitted: the API server has not answered", s->job);
    if (none_made || s->signo) {
        signals_restore(s->signals);
        raise(signo);
    }
    s->signo = signo;
    log_note(
        "%s is being submitted and will then be cancelled; interrupt again to leave it at once",
        s->job);
}

/* The job's name is all that the caller gets of it. */
static int leave_submitted(struct cluster *cluster, const struct submitting *s,
                           const char *namespace, const char *uid, int format)
{
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    if (s->signo)
        return cancel_job(cluster, s->job, namespace, &err) < 0 ? fail(&err) : 128 + s->signo;
    if (format == VERB_JSON || format == VERB_YAML)
        verb_add_take(
            (enum verb_format)format,
            json_pack("{s:s, s:s, s:s}", "name", s->job, "namespace", namespace, "uid", uid), &out);
    else
        buf_printf(&out, "%s\n", s->job);
    log_note("drarun status %s, drarun logs -f %s, drarun wait %s, drarun cancel %s", s->job,
             s->job, s->job, s->job);
    return verb_write("submit", &out);
}

static int submit_and_follow(struct cluster *cluster, const struct cluster_run *run,
                             const struct job_spec *spec, const char *namespace)
{
    struct drarun_error err = {0};
    cleanup_free char *uid = NULL;
    struct follow_options options = {
        .job = spec->name,
        .namespace = namespace,
        .output = true,
        .cancel = true,
        .by_program = run->by_program,
        .label = run->label,
        .quiet = run->quiet,
        .rank = -1,
        .reader = run->reader,
        .ret_end = run->ret_end,
    };
    struct submitting submitting = {
        .cluster = cluster, .job = spec->name, .by_program = run->by_program};
    submitting.signals = signals_new(cluster->base, on_signal_meanwhile, &submitting, &err);
    int rc = submitting.signals ? submit_job(cluster, spec, namespace, run->image, &uid, &err)
                                : -err.code;
    if (rc == 0 && !run->detach) {
        options.uid = uid;
        options.signals = submitting.signals;
        options.signo = submitting.signo;
        return follow_job(cluster, &options);
    }
    int status = rc < 0 ? fail_run(run, &err)
                        : leave_submitted(cluster, &submitting, namespace, uid, run->format);
    signals_free(submitting.signals);
    return status;
}

static const char *namespace_of(const struct cluster *cluster, const struct cluster_run *run,
                                const struct job_spec *spec)
{
    return run->cluster.namespace ? run->cluster.namespace
           : spec->namespace      ? spec->namespace
                                  : cluster->namespace;
}

/* The job with its profile named, as it would be submitted. */
static int try_on_server(struct cluster *cluster, const struct cluster_run *run,
                         struct job_spec *spec, const char *namespace)
{
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    kube_client_limit_reads(cluster->client, LOOK_MS);
    int rc = cluster_discover(cluster, &err);
    if (rc == 0)
        rc = name_profile(cluster, spec, &err);
    if (rc == 0)
        rc = dry_run_job(cluster, spec, namespace, run->image, &out, &err);
    int status = verb_write("submit", &out);
    if (rc < 0)
        return fail(&err);
    log_note("the API server accepts the objects of job %s; none was created", spec->name);
    return status;
}

/* *ret_document: lead_options; untouched where another launcher leads. */
static int run_spec(struct cluster *cluster, const struct cluster_run *run, struct job_spec *spec,
                    json_t **ret_document)
{
    struct drarun_error err = {0};
    const char *namespace = namespace_of(cluster, run, spec);
    /* the document is what reaches the launcher */
    if ((run->name || run->workers) && spec_change(spec, run->name, run->workers, &err) < 0)
        return fail_run(run, &err);
    if (run->report_bindings && spec_report_bindings(spec, &err) < 0)
        return fail_run(run, &err);
    if (spec_need_own(spec, &err) < 0)
        return fail_run(run, &err);
    bool here = is_led_here(cluster, run);
    if (!here && run->args && run->args->count > 0 && spec_give_args(spec, run->args, &err) < 0)
        return fail_run(run, &err);
    if (!here && (run->json || run->report_path)) {
        error_kind(
            &err, DRARUN_ERR_USAGE, EINVAL,
            "--%s: the launcher writes the report, and it runs in the cluster: drarun status "
            "%s -o json shows it, or --here launches from this process",
            run->json ? "output json" : "report", spec->name);
        return fail_run(run, &err);
    }
    if (run->dry_run)
        return try_on_server(cluster, run, spec, namespace);
    if (run->replace && cancel_ended(cluster, spec->name, namespace, &err) < 0)
        return fail_run(run, &err);
    if (!here)
        return submit_and_follow(cluster, run, spec, namespace);
    if (cluster_discover(cluster, &err) < 0 || name_profile(cluster, spec, &err) < 0)
        return fail_run(run, &err);
    return lead_here(cluster, run, spec, namespace, ret_document);
}

/* A job whose status cannot be read has run all the same. */
static void read_kept(struct cluster *cluster, const struct cluster_run *run,
                      const struct job_spec *spec, json_t **ret_document)
{
    struct drarun_error err = {0};
    CLEANUP(json_decrefp) json_t *map = NULL;
    int rc = job_map_get(cluster, spec->name, namespace_of(cluster, run, spec), &map, &err);
    if (rc == 0)
        rc = job_map_status(map, ret_document, &err);
    if (rc < 0)
        log_note("the job's status cannot be saved: %s", err.text);
}

/* What was led from here has taken its ConfigMap along. */
static int run_and_keep(struct cluster *cluster, const struct cluster_run *run,
                        struct job_spec *spec)
{
    CLEANUP(json_decrefp) json_t *document = NULL;
    int status = run_spec(cluster, run, spec, &document);
    if (!run->ret_kept)
        return status;
    if (!is_led_here(cluster, run))
        read_kept(cluster, run, spec, &document);
    *run->ret_kept = json_pack("{s:O, s:O*}", "job", spec->document, "status", document);
    return status;
}

/* A first job often meets no cluster at all. */
static void offer_local(const struct cluster_run *run, struct drarun_error *err)
{
    struct drarun_error said = *err;
    bool named = run->cluster.kubeconfig || run->cluster.context;
    if (said.kind == DRARUN_ERR_USAGE && said.code == ENOENT && !named && run->file)
        error_kind(err, said.kind, said.code, "%s; drarun run --local %s runs its ranks here",
                   said.text, run->file);
}

static int run(const struct cluster_run *asked)
{
    struct cluster_run whole = *asked, *run = &whole;
    run->image = agent_image(run->image);
    struct cluster cluster;
    struct drarun_error err = {0};
    struct drarun_spec *own = NULL;
    int status = run->file ? spec_file_load(run->file, NULL, &own) : 0;
    struct drarun_spec *spec = own ? own : run->spec;
    if (status != 0)
        return status;
    if (open_cluster(&run->cluster, &cluster, &err) < 0) {
        offer_local(run, &err);
        status = fail_run(run, &err);
    } else {
        status = spec ? run_and_keep(&cluster, run, &spec->job) : lead_in_pod(&cluster, run);
        cluster_close(&cluster);
    }
    drarun_spec_free(own);
    return status;
}

/* ---- verbs on one job ---- */

/* read_ms: before a server that does not answer is given up; 0: as long as others are. */
static int with_limit(const struct cluster_job *job, int64_t read_ms,
                      int (*fn)(struct cluster *, const struct cluster_job *))
{
    struct cluster cluster;
    struct drarun_error err = {0};
    for (size_t i = 0; i < job->job_count; i++)
        if (job_name_check(job->jobs[i], &err) < 0)
            return fail(&err);
    if (open_cluster(&job->cluster, &cluster, &err) < 0)
        return fail(&err);
    if (read_ms)
        kube_client_limit_reads(cluster.client, read_ms);
    int status = fn(&cluster, job);
    if (status == error_exit_status(DRARUN_ERR_INFRASTRUCTURE) && !kube_client_now(cluster.client))
        status = error_exit_status(DRARUN_ERR_CLUSTER); /* no connection was lost: there was none */
    cluster_close(&cluster);
    return status;
}

static int with_cluster(const struct cluster_job *job,
                        int (*fn)(struct cluster *, const struct cluster_job *))
{
    return with_limit(job, 0, fn);
}

/* For those that only look. */
static int with_cluster_soon(const struct cluster_job *job,
                             int (*fn)(struct cluster *, const struct cluster_job *))
{
    return with_limit(job, LOOK_MS, fn);
}

static int list(const struct cluster_job *job)
{
    return with_cluster_soon(job, show_list);
}

static int status(const struct cluster_job *job)
{
    return with_cluster_soon(job, show_status);
}

static int describe(const struct cluster_job *job)
{
    return with_cluster_soon(job, show_describe);
}

/* To the end of the job, or of its log, also when it is suspended on the way. */
static int follow_through(struct cluster *cluster, const struct follow_options *options)
{
    return follow_in_foreground(cluster, options, follow_through_until_end);
}

static int follow_logs(struct cluster *cluster, const struct cluster_job *job)
{
    struct follow_options options = {
        .job = job->job,
        .namespace = cluster->namespace,
        .output = true,
        .quiet = !job->follow,
        .once = !job->follow,
        .rank = job->rank,
        .timestamps = job->timestamps,
        .last_ms = job->since_ms,
        .tail = job->tail < 0 ? 0 : (uint32_t)job->tail + 1,
    };
    return follow_through(cluster, &options);
}

static int logs(const struct cluster_job *job)
{
    return with_limit(job, job->follow ? 0 : LOOK_MS, follow_logs);
}

static int wait_for_end(struct cluster *cluster, const struct cluster_job *job)
{
    struct follow_options options = {
        .job = job->job,
        .namespace = cluster->namespace,
        .rank = -1,
        .timeout_ms = job->timeout_ms,
    };
    return follow_through(cluster, &options);
}

static int wait_job(const struct cluster_job *job)
{
    return with_cluster(job, wait_for_end);
}

/* Each as far as it can; the exit status is the first failure's. */
static int cancel_named(struct cluster *cluster, const char *name, int status)
{
    struct drarun_error err = {0};
    int failed = cancel_job(cluster, name, cluster->namespace, &err) < 0 ? fail(&err) : 0;
    return status ? status : failed;
}

static int cancel_all(struct cluster *cluster, const struct cluster_job *job)
{
    struct drarun_error err = {0};
    CLEANUP(json_decrefp) json_t *docs = json_array();
    int status = 0;
    if (show_read_docs(cluster, job, docs, &err) < 0)
        return fail(&err);
    for (size_t i = 0; i < json_array_size(docs); i++)
        status = cancel_named(
            cluster, json_string_value(json_object_get(json_array_get(docs, i), "name")), status);
    if (json_array_size(docs) == 0)
        log_note("there are no jobs in namespace %s", cluster->namespace);
    return status;
}

static int do_cancel(struct cluster *cluster, const struct cluster_job *job)
{
    int status = 0;
    if (job->all)
        return cancel_all(cluster, job);
    for (size_t i = 0; i < job->job_count; i++)
        status = cancel_named(cluster, job->jobs[i], status);
    return status;
}

static int cancel(const struct cluster_job *job)
{
    return with_cluster(job, do_cancel);
}

static int exec(const struct cluster_exec *exec)
{
    struct cluster cluster;
    struct drarun_error err = {0};
    if (job_name_check(exec->job, &err) < 0 || open_cluster(&exec->cluster, &cluster, &err) < 0)
        return fail(&err);
    int status = exec_beside(&cluster, exec);
    cluster_close(&cluster);
    return status;
}

static void on_log(void *arg, const struct log_line *line)
{
    static const struct log_json who;
    (void)arg;
    log_json_write(&who, line);
}

/* In a pod as objects, unless --log says otherwise. */
static void choose_log(const struct cluster_controller *how, bool pod)
{
    log_setup("drarun", how->verbose ? LOG_VERBOSE : LOG_NORMAL);
    if (how->log ? strcmp(how->log, "json") == 0 : pod)
        log_divert(on_log, NULL);
}

/* A holder that has a pod is looked for in the Lease's namespace: only where it is in that. */
static bool is_beside_lease(const struct cluster *cluster)
{
    CLEANUP(kube_config_freep) struct kube_config *own = NULL;
    return is_in_pod(cluster) && kube_config_in_cluster(NULL, &own, NULL) == 0 &&
           strcmp(kube_config_namespace(own), cluster->namespace) == 0;
}

static int controller(const struct cluster_controller *how)
{
    struct cluster cluster;
    struct drarun_error err = {0};
    char holder[300];
    if (open_cluster(&how->cluster, &cluster, &err) < 0)
        return fail(&err);
    choose_log(how, is_in_pod(&cluster));
    name_holder(is_beside_lease(&cluster), holder, sizeof holder);
    const struct controller_options options = {
        .namespace = how->all_namespaces ? NULL : cluster.namespace,
        .lease_namespace = cluster.namespace,
        .image = how->image,
        .holder = holder,
        .heartbeat = how->heartbeat,
        .metrics_port = (uint16_t)how->metrics_port,
        .site_ttl_ms = how->ttl_ms,
    };
    int status = controller_run(&cluster, &options);
    log_divert(NULL, NULL);
    cluster_close(&cluster);
    return status;
}

static int alloc(const struct cluster_alloc *alloc)
{
    struct cluster cluster;
    struct drarun_error err = {0};
    struct drarun_spec *own = NULL;
    int status = alloc->spec ? 0 : spec_file_load_program(alloc->file, "true", &own);
    struct drarun_spec *spec = own ? own : alloc->spec;
    if (status != 0)
        return status;
    if (open_cluster(&alloc->cluster, &cluster, &err) < 0) {
        status = fail(&err);
    } else {
        status = allocate(&cluster, alloc, &spec->job);
        cluster_close(&cluster);
    }
    drarun_spec_free(own);
    return status;
}

static int test_nodes(const struct cluster_choice *choice, const struct accept_order *order)
{
    struct cluster cluster;
    struct drarun_error err = {0};
    if (open_cluster(choice, &cluster, &err) < 0)
        return fail(&err);
    int status = accept_run(&cluster, order, run);
    cluster_close(&cluster);
    return status;
}

static int read_objects(const struct cluster_choice *choice, const struct cluster_kind *kinds,
                        size_t count, unsigned *ret_minor, struct drarun_error *err)
{
    struct cluster cluster;
    int rc = open_cluster(choice, &cluster, err);
    if (rc < 0)
        return rc;
    kube_client_limit_reads(cluster.client, LOOK_MS);
    rc = cluster_discover(&cluster, err);
    if (rc == 0)
        rc = snapshot_read(&cluster, cluster.namespace, kinds, count, err);
    if (rc == 0 && ret_minor)
        *ret_minor = cluster.minor;
    cluster_close(&cluster);
    return rc;
}

static int look(const struct cluster_choice *choice, struct findings *findings,
                struct drarun_error *err)
{
    struct cluster cluster;
    int rc = open_cluster(choice, &cluster, err);
    if (rc < 0)
        return rc;
    kube_client_limit_reads(cluster.client, LOOK_MS);
    rc = doctor_look(&cluster, findings, err);
    cluster_close(&cluster);
    return rc;
}

const struct cluster_api *cluster_api(void)
{
    static const struct cluster_api api = {
        .read = read_objects,
        .doctor = look,
        .run = run,
        .list = list,
        .status = status,
        .describe = describe,
        .logs = logs,
        .wait = wait_job,
        .cancel = cancel,
        .exec = exec,
        .controller = controller,
        .accept = test_nodes,
        .alloc = alloc,
    };
    return &api;
}

int cluster_become(char *const argv[])
{
    (void)argv;
    log_error("internal error: this is drarun-cluster already");
    return 70;
}
