/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/agent_way.h"
#include "jobs/manifests/render.h"
#include "jobs/spec/k8s_name.h"
#include "launcher/cluster/client/loop_fd.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/number.h"
#include "lib/base/unconst.h"
#include "lib/kube/discover.h"
#include "lib/kube/list.h"

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg; /* it has ended a turn of the loop */
}

int cluster_loop(struct cluster *cluster)
{
    if (!cluster->outer)
        return event_base_loop(cluster->base, EVLOOP_ONCE);
    loop_fd_arm(cluster->door);
    return event_base_loop(cluster->outer, EVLOOP_ONCE);
}

static int loop_ended(struct drarun_error *err)
{
    return error_set(err, EINVAL, "the event loop ended before an answer came");
}

int cluster_await(struct cluster *cluster, const bool *done, struct drarun_error *err)
{
    while (!*done)
        if (cluster_loop(cluster) != 0 && !*done)
            return loop_ended(err);
    return 0;
}

void cluster_turn(struct cluster *cluster, int64_t ms)
{
    struct timeval after = timeval_from_ms(ms > 0 ? ms : 0);
    evtimer_add(cluster->turn, &after);
    cluster_loop(cluster);
    evtimer_del(cluster->turn);
}

int cluster_open(struct cluster *cluster, const struct kube_config_choice *choice,
                 struct drarun_error *err)
{
    static const struct kube_config_choice none;
    *cluster = (struct cluster){.base = event_base_new()};
    cluster->turn = cluster->base ? evtimer_new(cluster->base, on_turn, NULL) : NULL;
    int rc = cluster->turn ? 0 : error_set(err, ENOMEM, "cannot make an event loop: out of memory");
    if (rc == 0)
        rc = kube_config_load(choice ? choice : &none, &cluster->config, err);
    if (rc == 0 && !k8s_is_label(kube_config_namespace(cluster->config)))
        rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                        "\"%s\" is not a namespace: expected a DNS label (a-z, 0-9 and inner -, "
                        "at most %d)",
                        kube_config_namespace(cluster->config), K8S_LABEL_MAX);
    if (rc == 0)
        rc = kube_client_new(cluster->base, cluster->config, &cluster->client, err);
    if (rc < 0) {
        cluster_close(cluster);
        return rc;
    }
    cluster->namespace = kube_config_namespace(cluster->config);
    return 0;
}

void cluster_close(struct cluster *cluster)
{
    kube_client_free(cluster->client);
    kube_config_free(cluster->config);
    if (cluster->turn)
        event_free(cluster->turn);
    if (cluster->base)
        event_base_free(cluster->base);
    *cluster = (struct cluster){0};
}

/* ---- one call ---- */

struct waited {
    struct cluster *cluster;
    bool done;
    int rc;
    json_t *body;
    struct strlist *warnings; /* added to, where it is not NULL */
    struct drarun_error *err;
};

static void on_answer(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct waited *w = arg;
    w->done = true;
    w->body = json_incref(unconst(answer->body));
    if (w->warnings)
        strlist_add_all(w->warnings, answer->warnings->items);
    if (err)
        w->rc = error_kind(w->err, err->kind, err->code, "%s", err->text);
}

/* rc: of the function that started the call. With -errno too w->body may be there. */
static int await(struct waited *w, int rc)
{
    if (rc == 0)
        rc = cluster_await(w->cluster, &w->done, w->err);
    return rc < 0 ? rc : w->rc;
}

static int wait_for(struct waited *w, int rc, json_t **ret_body)
{
    rc = await(w, rc);
    if (rc == 0 && ret_body)
        *ret_body = TAKE_PTR(w->body);
    json_decref(w->body);
    return rc;
}

int cluster_get(struct cluster *cluster, const struct kube_target *target, json_t **ret_body,
                struct drarun_error *err)
{
    struct waited w = {.cluster = cluster, .err = err};
    return wait_for(&w, kube_get(cluster->client, target, on_answer, &w, NULL, err), ret_body);
}

int cluster_list(struct cluster *cluster, const struct kube_target *target,
                 const struct kube_select *select, json_t **ret_body, struct drarun_error *err)
{
    struct waited w = {.cluster = cluster, .err = err};
    int rc = kube_list(cluster->client, target, select, on_answer, &w, NULL, err);
    return wait_for(&w, rc, ret_body);
}

int cluster_create(struct cluster *cluster, const struct kube_target *target, const json_t *object,
                   json_t **ret_body, struct drarun_error *err)
{
    const struct kube_write again = {.repeat = true, .timeout_ms = cluster->create_ms};
    struct waited w = {.cluster = cluster, .err = err};
    int rc = kube_create(cluster->client, target, object, &again, on_answer, &w, NULL, err);
    return wait_for(&w, rc, ret_body);
}

int cluster_try_create(struct cluster *cluster, const struct kube_target *target,
                       const json_t *object, struct cluster_said *ret_said,
                       struct drarun_error *err)
{
    const struct kube_write dry = {
        .repeat = true, .dry_run = true, .timeout_ms = cluster->create_ms};
    struct waited w = {.cluster = cluster, .warnings = &ret_said->warnings, .err = err};
    *ret_said = (struct cluster_said){.warnings = STRLIST_INIT};
    int rc = kube_create(cluster->client, target, object, &dry, on_answer, &w, NULL, err);
    rc = await(&w, rc);
    ret_said->status = rc < 0 ? TAKE_PTR(w.body) : NULL;
    json_decref(w.body);
    return rc;
}

void cluster_said_done(struct cluster_said *said)
{
    json_decref(said->status);
    strlist_done(&said->warnings);
}

int cluster_replace(struct cluster *cluster, const struct kube_target *target, const json_t *object,
                    json_t **ret_body, struct drarun_error *err)
{
    struct waited w = {.cluster = cluster, .err = err};
    int rc = kube_replace(cluster->client, target, object, NULL, on_answer, &w, NULL, err);
    return wait_for(&w, rc, ret_body);
}

int cluster_merge_patch(struct cluster *cluster, const struct kube_target *target,
                        const json_t *patch, struct drarun_error *err)
{
    static const struct kube_write again = {.repeat = true};
    struct waited w = {.cluster = cluster, .err = err};
    int rc = kube_merge_patch(cluster->client, target, patch, &again, on_answer, &w, NULL, err);
    return wait_for(&w, rc, NULL);
}

static void on_unanswered(void *arg, const char *why)
{
    (void)arg;
    if (why)
        log_note("the API server does not answer, retrying: %s", why);
    else
        log_note("the API server answers again");
}

void cluster_tell_unanswered(struct cluster *cluster)
{
    kube_client_tell_unanswered(cluster->client, on_unanswered, NULL);
}

static int gone_is_fine(int rc, struct drarun_error *err)
{
    if (rc != -ENOENT)
        return rc;
    error_clear(err);
    return 0;
}

/* With all its tries. */
static struct kube_delete in_time(const struct cluster *cluster, const struct kube_delete *options)
{
    struct kube_delete own = options ? *options : (struct kube_delete){0};
    if (own.timeout_ms == 0)
        own.timeout_ms = cluster->delete_ms;
    return own;
}

int cluster_delete(struct cluster *cluster, const struct kube_target *target,
                   const struct kube_delete *options, struct drarun_error *err)
{
    struct drarun_error local = {0};
    struct waited w = {.cluster = cluster, .err = &local};
    const struct kube_delete own = in_time(cluster, options);
    int rc = kube_delete(cluster->client, target, &own, on_answer, &w, NULL, &local);
    rc = gone_is_fine(wait_for(&w, rc, NULL), &local);
    return rc < 0 ? error_kind(err, local.kind, local.code, "%s", local.text) : 0;
}

int cluster_delete_all(struct cluster *cluster, const struct kube_target *target,
                       const struct kube_select *select, const struct kube_delete *options,
                       struct drarun_error *err)
{
    struct waited w = {.cluster = cluster, .err = err};
    const struct kube_delete own = in_time(cluster, options);
    int rc = kube_delete_all(cluster->client, target, select, &own, on_answer, &w, NULL, err);
    return wait_for(&w, rc, NULL);
}

/* ---- a read beside others ---- */

static void on_read(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct cluster_read *read = arg;
    read->call = NULL;
    if (err)
        read->err = *err;
    else
        read->body = json_incref(unconst(answer->body));
}

int cluster_read_start(struct cluster *cluster, const struct kube_target *target,
                       struct cluster_read *read, struct drarun_error *err)
{
    *read = (struct cluster_read){0};
    return kube_get(cluster->client, target, on_read, read, &read->call, err);
}

int cluster_read_end(struct cluster *cluster, struct cluster_read *read, json_t **ret_body,
                     struct drarun_error *err)
{
    while (read->call)
        if (cluster_loop(cluster) != 0 && read->call)
            return loop_ended(err);
    if (read->err.code)
        return error_kind(err, read->err.kind, read->err.code, "%s", read->err.text);
    if (ret_body)
        *ret_body = TAKE_PTR(read->body);
    return 0;
}

void cluster_read_drop(struct cluster_read *read)
{
    kube_call_cancel(TAKE_PTR(read->call));
    json_decref(TAKE_PTR(read->body));
}

/* ---- what is served ---- */

static enum claims_api claims_served(const struct kube_served *served)
{
    static const enum claims_api apis[] = {CLAIMS_API_V1, CLAIMS_API_V1BETA2, CLAIMS_API_V1BETA1};
    for (size_t i = 0; i < ARRAY_LEN(apis); i++) {
        const char *version = strchr(claims_api_version(apis[i]), '/') + 1;
        if (kube_serves(served, "resource.k8s.io", version, "resourceclaims"))
            return apis[i];
    }
    return 0;
}

const char *cluster_claims_version(const struct cluster *cluster)
{
    return strchr(claims_api_version(cluster->api), '/') + 1;
}

/* They have versions of their own: v1 from 1.37, v1beta2 in 1.36, where it is on. */
static const char *taint_rules_served(const struct kube_served *served)
{
    static const char *const versions[] = {"v1", "v1beta2", "v1alpha3"};
    const struct kube_resource *rules = &kube_device_taint_rules;
    for (size_t i = 0; i < ARRAY_LEN(versions); i++)
        if (kube_serves(served, rules->group, versions[i], rules->plural))
            return versions[i];
    return NULL;
}

/* Asked for by the resource: the group's v1 is there for PriorityClass anyway. 1.35 had another way
 * to say it, which ended with 1.36. */
static void find_pod_groups(struct cluster *cluster, const struct kube_served *served)
{
    const struct kube_resource *groups = &kube_pod_groups;
    const char *any = kube_version_with(served, groups->group, groups->plural);
    size_t length = 0;
    const char *known = any ? kube_serves_one_of(served, groups->group, POD_GROUPS_VERSIONS,
                                                 groups->plural, &length)
                            : NULL;
    cleanup_free char *version = known ? strndup(known, length) : NULL;
    cluster->pod_groups = version ? pod_groups_version(version) : NULL;
    cluster->pod_groups_unknown = known ? NULL : any;
}

int cluster_need_claims(const struct cluster *cluster, struct drarun_error *err)
{
    if (cluster->api)
        return 0;
    return error_kind(err, DRARUN_ERR_CLUSTER, ENOTSUP,
                      "%s serves no resource.k8s.io: claims need Kubernetes 1.34 or later with "
                      "DynamicResourceAllocation",
                      kube_config_server(cluster->config));
}

/* Image volumes are served by every API server from 1.33, but pods may use them where the gate of
 * that name is on: by default from IMAGE_VOLUME_MINOR. */
static int ask_version(struct cluster *cluster, struct cluster_read *read, struct drarun_error *err)
{
    static const struct kube_request request = {.method = "GET", .path = "/version"};
    return kube_call_start(cluster->client, &request, on_read, read, &read->call, err);
}

static int take_version(struct cluster *cluster, struct cluster_read *read,
                        struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *version = NULL;
    int rc = cluster_read_end(cluster, read, &version, err);
    const char *minor = json_string_value(json_object_get(version, "minor")); /* "36", "30+" */
    cluster->minor = minor ? (unsigned)strtoul(minor, NULL, 10) : 0;
    cluster->image_volume = cluster->minor >= IMAGE_VOLUME_MINOR;
    return rc;
}

/* A runtime may be older than its API server. */
static int choose_delivery(struct cluster *cluster, struct drarun_error *err)
{
    const char *choice = getenv("DRARUN_AGENT");
    cluster->delivery = NULL; /* nor what the last job's claims were offered */
    cluster->agent = (struct agent_claim){0};
    if (!choice)
        return 0;
    cluster->delivery = choice;
    if (strncmp(choice, CLUSTER_BY_CLAIM, strlen(CLUSTER_BY_CLAIM)) == 0) {
        int rc = agent_claim_parse(choice + strlen(CLUSTER_BY_CLAIM), &cluster->agent, err);
        return rc < 0 ? error_prefix(err, "DRARUN_AGENT") : 0;
    }
    if (strcmp(choice, "volume") != 0 && strcmp(choice, "copy") != 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "DRARUN_AGENT: expected volume, copy or " CLUSTER_BY_CLAIM
                          "DRIVER=AGENT, got \"%.40s\"",
                          choice);
    cluster->image_volume = strcmp(choice, "volume") == 0;
    return 0;
}

static int choose_metrics(struct cluster *cluster, struct drarun_error *err)
{
    const char *choice = getenv("DRARUN_METRICS");
    int64_t port = RENDER_NO_METRICS;
    if (!choice)
        return 0;
    if (strcmp(choice, "off") != 0 &&
        number_parse("DRARUN_METRICS", choice, 1, UINT16_MAX, &port, NULL) < 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "DRARUN_METRICS: expected a port or off, got \"%.40s\"", choice);
    cluster->metrics_port = (int32_t)port;
    return 0;
}

static void on_served(const struct kube_served *served, const struct drarun_error *err, void *arg)
{
    struct cluster_question *question = arg;
    struct cluster *cluster = question->cluster;
    question->discovery = NULL;
    if (err) {
        question->err = *err;
        return;
    }
    cluster->api = claims_served(served);
    cluster->taint_rules = taint_rules_served(served);
    find_pod_groups(cluster, served);
    cluster->dra_jobs =
        kube_serves(served, kube_dra_jobs.group, kube_dra_jobs.version, kube_dra_jobs.plural);
}

int cluster_discover_start(struct cluster *cluster, struct cluster_question *question,
                           struct drarun_error *err)
{
    *question = (struct cluster_question){.cluster = cluster};
    int rc = ask_version(cluster, &question->version, err);
    return rc < 0 ? rc
                  : kube_discover(cluster->client, on_served, question, &question->discovery, err);
}

bool cluster_discover_is_answered(const struct cluster_question *question)
{
    return !question->discovery && (question->err.code || !question->version.call);
}

int cluster_discover_end(struct cluster_question *question, struct drarun_error *err)
{
    struct cluster *cluster = question->cluster;
    const struct drarun_error *refused = &question->err;
    while (question->discovery)
        if (cluster_loop(cluster) != 0 && question->discovery)
            return loop_ended(err);
    if (refused->code)
        return error_kind(err, refused->kind, refused->code, "%s", refused->text);
    int rc = take_version(cluster, &question->version, err);
    if (rc == 0)
        rc = choose_delivery(cluster, err);
    return rc < 0 ? rc : choose_metrics(cluster, err);
}

void cluster_discover_drop(struct cluster_question *question)
{
    kube_discover_cancel(TAKE_PTR(question->discovery));
    cluster_read_drop(&question->version);
}

int cluster_discover(struct cluster *cluster, struct drarun_error *err)
{
    CLEANUP(cluster_discover_drop) struct cluster_question question = {0};
    int rc = cluster_discover_start(cluster, &question, err);
    return rc < 0 ? rc : cluster_discover_end(&question, err);
}
