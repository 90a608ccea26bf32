/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/strlist.h"
#include "launcher/job/user_names.h"

/* A request of an agent that waits: a lookup for a name, or a value for one lookup until nobody
 * else's is there any more. */
struct name_wait {
    struct name_wait *next;
    uint32_t worker;
    uint64_t id;
    char *service;
    bool lookup;
    char job[USER_NAMES_JOB_SIZE]; /* lookup: the one that is to publish it; "": any */
    struct buf value;              /* else */
};

struct job_names {
    struct event_base *base;
    struct job_names_owner owner;
    struct strlist services, ports; /* of PMI-1, side by side */
    struct user_names *user;
    struct meets *meets;
    struct name_wait *waits;       /* in the order of their requests */
    struct buf service, found;     /* of the last request */
    char job[USER_NAMES_JOB_SIZE]; /* the same */
    bool told[2];                  /* that other jobs do not see them; by curable */
};

struct job_names *job_names_new(struct event_base *base, const char *self,
                                const struct job_names_owner *owner,
                                const struct meet_owner *meet_owner)
{
    struct job_names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    names->base = base;
    names->owner = *owner;
    names->user = user_names_new();
    names->meets = names->user ? meets_new(names->user, self, meet_owner) : NULL;
    if (names->meets)
        return names;
    job_names_free(names);
    return NULL;
}

static void remove_wait(struct name_wait **at)
{
    struct name_wait *gone = *at;
    *at = gone->next;
    free(gone->service);
    buf_done(&gone->value);
    free(gone);
}

void job_names_free(struct job_names *names)
{
    if (!names)
        return;
    while (names->waits)
        remove_wait(&names->waits);
    meets_free(names->meets);
    user_names_free(names->user);
    strlist_done(&names->services);
    strlist_done(&names->ports);
    buf_done(&names->service);
    buf_done(&names->found);
    free(names);
}

void job_names_leave(struct job_names *names)
{
    user_names_leave(names->user);
}

/* ---- other jobs of the user ---- */

/* Once: the names are there for the job's own ranks all the same. A user can do something about a
 * directory that is not his own; a pod may have no place where files can be made. quiet: other jobs
 * need not be meant, as when a rank waits for another one that it has started. */
static void tell_alone(struct job_names *names, const struct drarun_error *err, bool quiet)
{
    bool curable = !quiet && (err->code == EPERM || err->code == EDQUOT);
    if (!names->told[curable])
        log_about(NULL, curable ? LOG_NORMAL : LOG_VERBOSE,
                  "published names are not shared with other jobs: %s", err->text);
    names->told[curable] = true;
}

/* -EEXIST: another job has it. Another error: it is this job's, but other jobs cannot see it. */
static int share(struct job_names *names, const char *service, const void *value, size_t length,
                 bool once)
{
    struct drarun_error err = {0};
    int rc = length > JOB_NAMES_VALUE_MAX
                 ? error_set(&err, EMSGSIZE, "a name's value has %zu bytes, the limit is %u",
                             length, JOB_NAMES_VALUE_MAX)
                 : user_names_publish(names->user, service, value, length, once, NULL, &err);
    if (rc < 0 && rc != -EEXIST)
        tell_alone(names, &err, once);
    return rc;
}

static bool find_service(struct job_names *names, const char *service)
{
    struct drarun_error err = {0};
    int rc = user_names_lookup(service, &names->found, names->job, &err);
    if (rc < 0 && rc != -ENOENT && rc != -EAGAIN)
        tell_alone(names, &err, false);
    return rc == 0;
}

static bool find_shared(struct job_names *names)
{
    return find_service(names, names->service.data);
}

/* ---- PMI-1 ---- */

static size_t find(const struct job_names *names, const char *service)
{
    size_t i = 0;
    while (i < names->services.count && strcmp(names->services.items[i], service) != 0)
        i++;
    return i;
}

static bool publish(struct job_names *names, const char *service, const char *port)
{
    if (find(names, service) < names->services.count || names->services.count >= JOB_NAMES_MAX ||
        names->services.failed || names->ports.failed ||
        share(names, names->service.data, port, strlen(port), false) == -EEXIST)
        return false;
    strlist_add(&names->services, service);
    strlist_add(&names->ports, port);
    return !names->services.failed && !names->ports.failed;
}

/* What goes into a line of PMI-1 has no end of one in it. */
static bool is_port(const struct buf *text)
{
    return text->len > 0 && strcspn(text->data, "\n ") == text->len;
}

static void ask_pmi1(struct job_names *names, const Drarun__Wire__NameRequest *request,
                     Drarun__Wire__NameReply *ret_reply)
{
    size_t at = find(names, request->service);
    bool there = at < names->services.count;
    switch (request->action) {
    case DRARUN__WIRE__NAME_ACTION__NAME_PUBLISH:
        ret_reply->good = publish(names, request->service, request->port);
        break;
    case DRARUN__WIRE__NAME_ACTION__NAME_LOOKUP:
        ret_reply->good = there || (find_shared(names) && is_port(&names->found));
        if (ret_reply->good)
            ret_reply->port = there ? names->ports.items[at] : names->found.data;
        break;
    case DRARUN__WIRE__NAME_ACTION__NAME_UNPUBLISH:
        ret_reply->good = there;
        if (there) {
            user_names_unpublish(names->user, names->service.data);
            strlist_remove(&names->services, at);
            strlist_remove(&names->ports, at);
        }
        break;
    default:
        ret_reply->good = false;
    }
}

/* ---- PMIx ---- */

static void put_found(struct job_names *names, Drarun__Wire__NameReply *ret_reply)
{
    const char *own = user_names_job(names->user, NULL);
    ret_reply->good = true;
    ret_reply->value.data = (uint8_t *)names->found.data;
    ret_reply->value.len = names->found.len;
    if (!own || strcmp(names->job, own) != 0)
        ret_reply->job = names->job;
}

static bool try_lookup(struct job_names *names, const struct name_wait *wait,
                       Drarun__Wire__NameReply *ret_reply)
{
    buf_reset(&names->found);
    if (find_service(names, wait->service))
        put_found(names, ret_reply);
    else if (wait->job[0] && !user_names_is_alive(names->user, wait->job))
        ret_reply->ended = true;
    else
        return false;
    return true;
}

static bool try_publish(struct job_names *names, const struct name_wait *wait,
                        Drarun__Wire__NameReply *ret_reply)
{
    if (user_names_is_taken(names->user, wait->service))
        return false;
    int rc = share(names, wait->service, wait->value.data, wait->value.len, true);
    ret_reply->good = true;
    ret_reply->alone = rc < 0;
    return rc != -EEXIST;
}

/* False: it waits on. */
static bool answer_wait(struct job_names *names, const struct name_wait *wait)
{
    Drarun__Wire__NameReply reply = DRARUN__WIRE__NAME_REPLY__INIT;
    if (!(wait->lookup ? try_lookup : try_publish)(names, wait, &reply))
        return false;
    reply.id = wait->id;
    names->owner.found(names->owner.arg, wait->worker, &reply);
    return true;
}

static void unwatch_if_idle(struct job_names *names)
{
    if (!names->waits && !meets_await(names->meets))
        user_names_unwatch(names->user);
}

static void on_change(void *arg)
{
    struct job_names *names = arg;
    struct name_wait **at = &names->waits;
    while (*at)
        if (answer_wait(names, *at))
            remove_wait(at);
        else
            at = &(*at)->next;
    meets_look(names->meets);
    unwatch_if_idle(names);
}

static int watch(struct job_names *names, struct drarun_error *err)
{
    if (!user_names_job(names->user, err))
        return -err->code;
    return user_names_watch(names->user, names->base, on_change, names, err);
}

static void add_wait(struct job_names *names, struct name_wait *wait)
{
    struct name_wait **at = &names->waits;
    while (*at)
        at = &(*at)->next;
    *at = wait;
    if (answer_wait(names, wait)) /* since the watch began, or the job has ended before */
        remove_wait(at);
}

/* False: it is not known what other jobs have, and nothing is to be awaited. */
static bool await(struct job_names *names, uint32_t worker,
                  const Drarun__Wire__NameRequest *request)
{
    struct drarun_error err = {0};
    if (watch(names, &err) < 0) {
        tell_alone(names, &err, true);
        return false;
    }
    struct name_wait *wait = calloc(1, sizeof *wait);
    if (!wait)
        return false;
    *wait = (struct name_wait){.worker = worker, .id = request->id};
    wait->service = strdup(names->service.data);
    wait->lookup = request->action == DRARUN__WIRE__NAME_ACTION__NAME_LOOKUP;
    snprintf(wait->job, sizeof wait->job, "%s", request->job);
    buf_add(&wait->value, request->value.data, request->value.len);
    if (!wait->service || wait->value.failed) {
        remove_wait(&wait);
        return false;
    }
    add_wait(names, wait);
    return true;
}

static void forget_wait(struct job_names *names, uint32_t worker, uint64_t id)
{
    for (struct name_wait **at = &names->waits; *at; at = &(*at)->next)
        if ((*at)->worker == worker && (*at)->id == id) {
            remove_wait(at);
            return;
        }
}

static bool ask_pmix(struct job_names *names, uint32_t worker,
                     const Drarun__Wire__NameRequest *request, Drarun__Wire__NameReply *ret_reply)
{
    struct drarun_error err = {0};
    int rc;
    switch (request->action) {
    case DRARUN__WIRE__NAME_ACTION__NAME_PUBLISH:
        if (meets_announce(names->meets, &err) < 0)
            tell_alone(names, &err, request->once);
        rc = share(names, names->service.data, request->value.data, request->value.len,
                   request->once);
        if (rc == -EEXIST && request->wait && await(names, worker, request))
            return false;
        ret_reply->good = rc != -EEXIST;
        ret_reply->alone = rc < 0;
        return true;
    case DRARUN__WIRE__NAME_ACTION__NAME_LOOKUP:
        if (request->wait)
            return !await(names, worker, request);
        if (find_shared(names))
            put_found(names, ret_reply);
        return true;
    case DRARUN__WIRE__NAME_ACTION__NAME_UNPUBLISH:
        user_names_unpublish(names->user, names->service.data);
        ret_reply->good = true;
        return true;
    case DRARUN__WIRE__NAME_ACTION__NAME_FORGET:
        forget_wait(names, worker, request->id);
        return false;
    default:
        return true;
    }
}

bool job_names_ask(struct job_names *names, uint32_t worker, const char *pmix,
                   const Drarun__Wire__NameRequest *request, Drarun__Wire__NameReply *ret_reply)
{
    buf_reset(&names->service);
    buf_reset(&names->found);
    ret_reply->id = request->id;
    if (request->pmix)
        buf_printf(&names->service, "pmix %s %s", pmix, request->service);
    else
        buf_printf(&names->service, "pmi1 %s", request->service);
    if (names->service.failed) {
        log_error("out of memory for the name %s of a rank", request->service);
        return true;
    }
    if (request->pmix)
        return ask_pmix(names, worker, request, ret_reply);
    ask_pmi1(names, request, ret_reply);
    return true;
}

void job_names_meet(struct job_names *names, uint32_t worker, const char *pmix,
                    const Drarun__Wire__MeetRequest *request)
{
    struct drarun_error unseen = {0};
    watch(names, &unseen); /* before other jobs learn of this one, so that no answer is missed */
    meets_ask(names->meets, worker, pmix, request, &unseen);
    unwatch_if_idle(names);
}
