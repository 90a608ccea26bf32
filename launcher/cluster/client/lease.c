/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/lease.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "launcher/cluster/client/lease_life.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/timestamp.h"
#include "lib/base/unconst.h"

#define LOOK_AGAIN_MS 1000 /* at a Lease that another one holds */
#define RENEWALS 5         /* in its life: who looks from outside sees soon that one is missing */

struct lease {
    struct cluster *cluster;
    struct lease_owner owner;
    char *holder;
    json_t *manifest; /* as it is created */
    json_t *object;   /* as the server last gave it */
    struct event *renew;
    struct kube_call *call;
    int64_t asked_ms, renewed_ms; /* when the last write was begun, and the last that was done */
    json_t *before;               /* lease_was_held: what it replaced; NULL: there was none */
    bool late;                    /* it is told that its life is over */
    uint32_t generation;
};

static int64_t life_ms(const struct lease *lease)
{
    return (lease->owner.life_s ? lease->owner.life_s : LEASE_S) * 1000;
}

/* For one that does not renew it, and a renewal that came late. */
static int64_t patience_ms(const struct lease *lease)
{
    return life_ms(lease) + 30000;
}

static const char *what(const struct lease *lease)
{
    return lease->owner.what ? lease->owner.what : "the job's Lease";
}

/* metav1.MicroTime takes six digits and no fewer. */
static void write_time(char text[TIMESTAMP_SIZE + 3])
{
    struct timeval now;
    gettimeofday(&now, NULL);
    timestamp_format((int64_t)now.tv_sec * 1000 + now.tv_usec / 1000, text, TIMESTAMP_SIZE);
    memcpy(text + strlen(text) - 1, "000Z", sizeof "000Z");
}

static struct kube_target target_of(const json_t *object)
{
    return (struct kube_target){
        .resource = &kube_leases, .namespace_ = kube_namespace(object), .name = kube_name(object)};
}

static json_t *spec_of(const json_t *object)
{
    return json_object_get(object, "spec");
}

static const char *holder_in(const json_t *object)
{
    const char *holder = json_string_value(json_object_get(spec_of(object), "holderIdentity"));
    return holder ? holder : "?";
}

static json_int_t transitions_of(const json_t *object)
{
    return json_integer_value(json_object_get(spec_of(object), "leaseTransitions"));
}

/* transitions: of the Lease before, or -1 when it is new or already ours. */
static int fill(struct lease *lease, json_t *object, int64_t transitions)
{
    char now[TIMESTAMP_SIZE + 3];
    write_time(now);
    lease->asked_ms = clock_ms();
    json_t *spec = spec_of(object);
    if (!spec && json_object_set_new(object, "spec", spec = json_object()) < 0)
        return -ENOMEM;
    int rc = json_object_set_new(spec, "holderIdentity", json_string(lease->holder));
    rc |= json_object_set_new(spec, "leaseDurationSeconds", json_integer(life_ms(lease) / 1000));
    rc |= json_object_set_new(spec, "renewTime", json_string(now));
    if (transitions >= 0) {
        rc |= json_object_set_new(spec, "acquireTime", json_string(now));
        rc |= json_object_set_new(spec, "leaseTransitions", json_integer(transitions));
    }
    return rc < 0 ? -ENOMEM : 0;
}

/* It counts from when the write was begun: others may have seen it soon after. */
static void took(struct lease *lease, json_t *object)
{
    json_decref(lease->object);
    lease->object = object;
    lease->renewed_ms = lease->asked_ms;
    if (lease->late)
        log_note("%s is renewed again", what(lease));
    lease->late = false;
    lease->generation = (uint32_t)transitions_of(object) + 1;
}

/* ---- renewing ---- */

static void lose(struct lease *lease, const struct drarun_error *why)
{
    struct drarun_error err = *why;
    err.kind = DRARUN_ERR_INFRASTRUCTURE;
    evtimer_del(lease->renew);
    error_prefix(&err, "%s is lost", what(lease));
    lease->owner.lost(lease->owner.arg, &err);
}

static void plan_renewal(struct lease *lease, int64_t ms)
{
    struct timeval after = timeval_from_ms(ms);
    evtimer_add(lease->renew, &after);
}

/* Of its life, short of what a slow clock, or loop, might make of the end. */
static int64_t rest_ms(const struct lease *lease)
{
    return lease->renewed_ms + life_ms(lease) * 14 / 15 - clock_ms();
}

/* For one try. The first renewal of a Lease that was long in coming has little left. */
static int64_t try_ms(const struct lease *lease)
{
    int64_t rest = rest_ms(lease), usual = life_ms(lease) / 6, least = life_ms(lease) / 15;
    if (!lease->owner.timed && rest > 0)
        return usual;
    return rest < least ? least : rest < usual ? rest : usual;
}

static void say_late(struct lease *lease, const struct drarun_error *why)
{
    if (lease->late || clock_ms() - lease->renewed_ms < life_ms(lease))
        return;
    lease->late = true;
    log_note("%s could not be renewed for %" PRId64 " s: %s; retrying, the job continues",
             what(lease), life_ms(lease) / 1000, why->text);
}

static void renew_again(struct lease *lease, int64_t ms, const struct drarun_error *why)
{
    if (lease_is_lost(why->code, lease->owner.timed, rest_ms(lease), life_ms(lease))) {
        lose(lease, why);
        return;
    }
    log_verbose("the Lease was not renewed: %s", why->text);
    say_late(lease, why);
    plan_renewal(lease, ms);
}

/* A proxy before the API server may say 404 too; it knows of no Lease. */
static struct drarun_error why_not(const struct kube_answer *answer, const struct drarun_error *err)
{
    struct drarun_error why = *err;
    if (why.code == ENOENT && strcmp(answer->reason, "NotFound") != 0)
        why.code = EIO;
    return why;
}

static void on_found(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct lease *lease = arg;
    struct drarun_error why = {0};
    lease->call = NULL;
    if (err) {
        why = why_not(answer, err);
        renew_again(lease, LOOK_AGAIN_MS, &why);
        return;
    }
    bool ours = strcmp(holder_in(answer->body), lease->holder) == 0 &&
                transitions_of(answer->body) == transitions_of(lease->object);
    if (!ours) {
        error_set(&why, EBUSY, "%s has taken it", holder_in(answer->body));
        lose(lease, &why);
        return;
    }
    json_decref(lease->object);
    lease->object = json_incref(unconst(answer->body));
    error_set(&why, EBUSY, "its last change was not known here");
    renew_again(lease, 0, &why);
}

/* An earlier renewal may have been done though its answer never came; else somebody took it. */
static void find_out(struct lease *lease)
{
    struct drarun_error err = {0};
    struct kube_target target = target_of(lease->object);
    int rc =
        kube_get_urgently(lease->cluster->client, &target, on_found, lease, &lease->call, &err);
    if (rc < 0)
        renew_again(lease, LOOK_AGAIN_MS, &err);
    else
        plan_renewal(lease, try_ms(lease)); /* which gives the question up */
}

static void on_renewed(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct lease *lease = arg;
    struct drarun_error why = err ? why_not(answer, err) : (struct drarun_error){0};
    lease->call = NULL;
    if (!err) {
        took(lease, json_incref(unconst(answer->body)));
        plan_renewal(lease, life_ms(lease) / RENEWALS);
    } else if (err->code == EBUSY) {
        find_out(lease);
    } else {
        renew_again(lease, LOOK_AGAIN_MS, &why);
    }
}

static void on_renew(evutil_socket_t fd, short what, void *arg)
{
    struct lease *lease = arg;
    /* beside pods that a slow webhook holds up, and as many that wait for those */
    const struct kube_write in_time = {.urgent = true, .timeout_ms = try_ms(lease)};
    struct drarun_error err = {0};
    CLEANUP(json_decrefp) json_t *object = json_deep_copy(lease->object);
    struct kube_target target = target_of(lease->object);
    (void)fd, (void)what;
    kube_call_cancel(TAKE_PTR(lease->call));
    if (!object || fill(lease, object, -1) < 0)
        error_set(&err, ENOMEM, "out of memory");
    else
        kube_replace(lease->cluster->client, &target, object, &in_time, on_renewed, lease,
                     &lease->call, &err);
    if (err.code)
        plan_renewal(lease, LOOK_AGAIN_MS);
}

/* ---- taking ---- */

/* Has the pod called so ended? A holder outside the cluster has no pod. */
static bool holder_is_gone(struct lease *lease, const char *holder)
{
    struct drarun_error err = {0};
    struct kube_target target = {
        .resource = &kube_pods, .namespace_ = kube_namespace(lease->object), .name = holder};
    CLEANUP(json_decrefp) json_t *pod = NULL;
    if (strchr(holder, '_')) /* HOST_PID of `run --here` */
        return false;
    int rc = cluster_get(lease->cluster, &target, &pod, &err);
    const char *phase = json_string_value(json_object_get(json_object_get(pod, "status"), "phase"));
    return rc == -ENOENT ||
           (phase && (strcmp(phase, "Failed") == 0 || strcmp(phase, "Succeeded") == 0));
}

/* 1: ours; 0: somebody else has created it. */
static int create(struct lease *lease, struct drarun_error *err)
{
    json_t *made = NULL;
    CLEANUP(json_decrefp) json_t *object = json_deep_copy(lease->manifest);
    struct kube_target target = target_of(lease->manifest);
    if (!object || fill(lease, object, 0) < 0)
        return error_set(err, ENOMEM, "out of memory");
    int rc = cluster_create(lease->cluster, &target, object, &made, err);
    if (rc == 0)
        took(lease, made);
    return rc == -EEXIST ? 0 : rc < 0 ? rc : 1;
}

static json_t *owners_of(const json_t *object)
{
    return json_object_get(json_object_get(object, "metadata"), "ownerReferences");
}

/* An earlier job of the name left it, and the garbage collector has yet to delete it. */
static bool is_of_earlier_job(const struct lease *lease)
{
    const json_t *owner = json_array_get(owners_of(lease->manifest), 0);
    const char *uid = json_string_value(json_object_get(owner, "uid"));
    return uid && lease->object && !kube_is_owned_by(lease->object, uid);
}

/* With the owner of the earlier job the collector would delete it while we hold it. */
static int replace(struct lease *lease, struct drarun_error *err)
{
    json_t *made = NULL, *owners = owners_of(lease->manifest);
    CLEANUP(json_decrefp) json_t *object = json_deep_copy(lease->object);
    struct kube_target target = target_of(lease->object);
    CLEANUP(json_decrefp) json_t *before = json_incref(lease->object);
    int rc = object ? fill(lease, object, transitions_of(object) + 1) : -ENOMEM;
    if (rc == 0 && owners)
        rc = json_object_set(json_object_get(object, "metadata"), "ownerReferences", owners);
    if (rc < 0)
        return error_set(err, ENOMEM, "out of memory");
    rc = cluster_replace(lease->cluster, &target, object, &made, err);
    if (rc < 0)
        return rc;
    took(lease, made);
    json_decref(lease->before);
    lease->before = TAKE_PTR(before);
    return 0;
}

/* 1: ours; 0: not yet. */
static int try(struct lease *lease, const char **seen, int64_t *seen_ms, struct drarun_error *err)
{
    json_t *found = NULL;
    struct kube_target target = target_of(lease->manifest);
    int rc = cluster_get(lease->cluster, &target, &found, err);
    if (rc == -ENOENT)
        return create(lease, err);
    if (rc < 0)
        return rc;
    json_decref(lease->object);
    lease->object = found;
    const char *holder = json_string_value(json_object_get(spec_of(found), "holderIdentity"));
    const char *version = kube_resource_version(found);
    if (!*seen || strcmp(*seen, version) != 0) { /* it lives: by our clock alone */
        free(unconst(*seen));
        *seen = strdup(version);
        *seen_ms = clock_ms();
    }
    bool free_now = !holder || !holder[0] || strcmp(holder, lease->holder) == 0 ||
                    clock_ms() - *seen_ms >= life_ms(lease) || holder_is_gone(lease, holder);
    if (!free_now)
        return 0;
    rc = replace(lease, err);
    if (rc == -ENOENT)
        return create(lease, err);
    /* OwnerReferencesPermissionEnforcement takes another owner only of those who may delete it */
    bool awaits_collector = rc == -EACCES && is_of_earlier_job(lease);
    return rc == -EBUSY || awaits_collector ? 0 : rc < 0 ? rc : 1;
}

static bool is_stopped(const struct lease *lease)
{
    return lease->owner.stopped && lease->owner.stopped(lease->owner.arg);
}

static int give_up(const struct lease *lease, struct drarun_error *err)
{
    if (is_stopped(lease))
        return error_set(err, ECANCELED, "asked to end while another launcher holds %s",
                         what(lease));
    if (is_of_earlier_job(lease))
        return error_kind(err, DRARUN_ERR_CLUSTER, ETIMEDOUT,
                          "Lease %s of an earlier job still exists after %" PRId64
                          " s: the cluster's garbage collector has not deleted it; delete it, and "
                          "submit the job again",
                          kube_name(lease->object), patience_ms(lease) / 1000);
    return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EBUSY,
                      "another launcher (%s) still holds %s and renews it after %" PRId64
                      " s: it leads the job",
                      holder_in(lease->object), what(lease), patience_ms(lease) / 1000);
}

/* The API server is away: no connection, or one that cannot do its work. */
static bool is_outage(const struct drarun_error *err)
{
    return err->kind == DRARUN_ERR_INFRASTRUCTURE || kube_may_answer_later(err);
}

/* Who waits without limit does so through an outage, too. As try. */
static int try_on(struct lease *lease, const char **seen, int64_t *seen_ms, bool *away,
                  struct drarun_error *err)
{
    struct drarun_error local = {0};
    int rc = try(lease, seen, seen_ms, &local);
    bool is_away = rc < 0 && lease->owner.patient && is_outage(&local);
    if (is_away && !*away)
        log_note("waiting for the API server: %s", local.text);
    *away = is_away;
    return rc < 0 && !is_away ? error_kind(err, local.kind, local.code, "%s", local.text)
           : is_away          ? 0
                              : rc;
}

static void say_wait(const struct lease *lease)
{
    if (is_of_earlier_job(lease))
        log_note("waiting up to %" PRId64 " s for Lease %s of an earlier job to go",
                 patience_ms(lease) / 1000, kube_name(lease->object));
    else if (lease->owner.patient)
        log_note("%s holds %s: waiting until it ends", holder_in(lease->object), what(lease));
    else
        log_note("another launcher (%s) holds %s: waiting up to %" PRId64 " s for its end",
                 holder_in(lease->object), what(lease), patience_ms(lease) / 1000);
}

static int wait_for_it(struct lease *lease, struct drarun_error *err)
{
    const char *seen = NULL;
    int64_t seen_ms = 0, deadline = clock_ms() + patience_ms(lease);
    bool said = false, away = false;
    int rc;
    while ((rc = try_on(lease, &seen, &seen_ms, &away, err)) == 0) {
        if (is_stopped(lease) || (!lease->owner.patient && clock_ms() >= deadline)) {
            rc = give_up(lease, err);
            break;
        }
        if (!said && !away)
            say_wait(lease);
        said |= !away;
        for (int64_t end = clock_ms() + LOOK_AGAIN_MS; clock_ms() < end && !is_stopped(lease);)
            cluster_turn(lease->cluster, end - clock_ms());
    }
    free(unconst(seen));
    return rc < 0 ? rc : 0;
}

int lease_take(struct cluster *cluster, const json_t *manifest, const char *holder,
               const struct lease_owner *owner, struct lease **ret_lease, struct drarun_error *err)
{
    CLEANUP(lease_freep) struct lease *lease = calloc(1, sizeof *lease);
    if (!lease)
        return error_set(err, ENOMEM, "out of memory");
    *lease = (struct lease){.cluster = cluster, .owner = *owner, .holder = strdup(holder)};
    lease->manifest = json_deep_copy(manifest);
    lease->renew = evtimer_new(cluster->base, on_renew, lease);
    if (!lease->holder || !lease->manifest || !lease->renew)
        return error_set(err, ENOMEM, "out of memory");
    int rc = create(lease, err);
    if (rc == 0)
        rc = wait_for_it(lease, err);
    if (rc < 0)
        return rc;
    plan_renewal(lease, rest_ms(lease) > life_ms(lease) / 2 ? life_ms(lease) / RENEWALS : 0);
    *ret_lease = TAKE_PTR(lease);
    return 0;
}

static int give_back(struct lease *lease, struct drarun_error *err)
{
    struct kube_target target = target_of(lease->object);
    json_object_set_new(spec_of(lease->object), "holderIdentity", json_string(""));
    return cluster_replace(lease->cluster, &target, lease->object, NULL, err);
}

void lease_give_back(struct lease *lease)
{
    struct drarun_error err = {0};
    json_t *found = NULL;
    struct kube_target target = target_of(lease->object);
    kube_call_cancel(TAKE_PTR(lease->call));
    evtimer_del(lease->renew);
    int rc = give_back(lease, &err);
    /* a renewal that was under way may have come first */
    if (rc == -EBUSY && cluster_get(lease->cluster, &target, &found, &err) == 0) {
        took(lease, found);
        rc = strcmp(holder_in(lease->object), lease->holder) == 0 ? give_back(lease, &err) : 0;
    }
    if (rc < 0)
        log_verbose("%s was not released: %s", what(lease), err.text);
}

void lease_free(struct lease *lease)
{
    if (!lease)
        return;
    kube_call_cancel(lease->call);
    if (lease->renew)
        event_free(lease->renew);
    json_decref(lease->manifest);
    json_decref(lease->object);
    json_decref(lease->before);
    free(lease->holder);
    free(lease);
}

bool lease_is_overdue(const struct lease *lease)
{
    return rest_ms(lease) <= 0;
}

bool lease_was_held(const struct lease *lease, int64_t now_ms, int64_t least_ms, int64_t most_ms)
{
    return lease->before && lease_is_held(lease->before, lease->holder, now_ms, least_ms, most_ms);
}

uint32_t lease_generation(const struct lease *lease)
{
    return lease->generation;
}
