/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow/pod.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/gang/gang.h"
#include "launcher/cluster/client/launcher_pod.h"

void follow_pod_done(struct follow_pod *chosen)
{
    free(chosen->name);
    news_done(&chosen->news);
    news_done(&chosen->job_news);
}

int follow_pod_judge(const struct follow_pod *chosen, const struct spec_timeouts *timeouts,
                     int64_t waited_ms, int64_t *ret_limit_ms, struct drarun_error *err)
{
    const json_t *pod = launcher_pod_find(chosen->pods, chosen->uid);
    struct pod_state state;
    pod_state_read(pod, NULL, false, &chosen->news, &state);
    *ret_limit_ms = 0;
    if (launcher_pod_has_begun(pod))
        return 0;
    return gang_judge_launcher(&state, timeouts, waited_ms, ret_limit_ms, err);
}

static bool is_of_job(const struct follow_pod *chosen, const struct follow_leader *leader,
                      const json_t *pod)
{
    bool leads = leader->pod && strcmp(kube_name(pod), leader->pod) == 0;
    return leads || !chosen->uid || kube_is_owned_by(pod, chosen->uid);
}

static bool is_alive(const json_t *pod)
{
    return pod && json_object_get(launcher_pod_state(pod), "running") && !kube_is_terminating(pod);
}

const json_t *follow_pod_find(const struct follow_pod *chosen, const char *name)
{
    return name ? kube_watch_find(chosen->pods, chosen->namespace, name) : NULL;
}

bool follow_pod_is_alive(const struct follow_pod *chosen, const char *name)
{
    return is_alive(follow_pod_find(chosen, name));
}

bool follow_pod_has_ended(const struct follow_pod *chosen, const char *name)
{
    return json_object_get(launcher_pod_state(follow_pod_find(chosen, name)), "terminated") != NULL;
}

const char *follow_pod_running(const struct follow_pod *chosen)
{
    const json_t *pod = launcher_pod_find(chosen->pods, chosen->uid);
    return is_alive(pod) ? kube_name(pod) : NULL;
}

/* NULL: nobody. */
static const char *who_leads(const struct follow_pod *chosen, const struct follow_leader *leader)
{
    bool leads = leader->pod && (leader->ended || is_alive(follow_pod_find(chosen, leader->pod)));
    return leads ? leader->pod : NULL;
}

static bool is_another(const struct follow_pod *chosen, const struct follow_leader *leader,
                       const json_t *pod)
{
    const char *lead = who_leads(chosen, leader);
    if (lead)
        return strcmp(kube_name(pod), lead) != 0;
    return chosen->name && strcmp(kube_name(pod), chosen->name) != 0 &&
           is_alive(follow_pod_find(chosen, chosen->name));
}

void follow_pod_hear(struct follow_pod *chosen, const json_t *event)
{
    struct news_subject subject = news_subject(event);
    if (!subject.kind || !subject.name)
        return;
    if (strcmp(subject.kind, "Job") == 0 && strcmp(subject.name, chosen->job) == 0)
        news_add(&chosen->job_news, event);
    else if (strcmp(subject.kind, "Pod") == 0 && launcher_pod_is_called(chosen->job, subject.name))
        news_add(&chosen->news, event);
}

/* Of the Job that is followed. */
static const struct news *job_news(const struct follow_pod *chosen)
{
    const struct news *news = &chosen->job_news;
    return chosen->uid ? news_about(news, chosen->uid) : news;
}

void follow_pod_waits(const struct follow_pod *chosen, struct waiting_launcher *ret_launcher)
{
    const json_t *pod = launcher_pod_find(chosen->pods, chosen->uid);
    *ret_launcher = (struct waiting_launcher){0};
    if (!kube_watch_synced(chosen->pods))
        return;
    waiting_of_launcher(pod, &chosen->news, job_news(chosen), ret_launcher);
}

struct succession {
    const struct follow_pod *chosen;
    const char *leader;
    bool runs; /* another one, which waits for the Lease */
};

static void look_for_successor(const json_t *pod, void *arg)
{
    struct succession *s = arg;
    bool ours =
        launcher_pod_is_one(pod) && (!s->chosen->uid || kube_is_owned_by(pod, s->chosen->uid));
    s->runs |= ours && is_alive(pod) && (!s->leader || strcmp(kube_name(pod), s->leader) != 0);
}

/* Since then: what refused an earlier launcher's pod may have passed. Events have seconds. */
static bool successor_is_refused(const struct follow_pod *chosen, const char *leader,
                                 int64_t renewed_ms)
{
    const struct news_item *refused = news_get(job_news(chosen), NEWS_CREATE_FAILED);
    struct succession s = {chosen, leader, false};
    if (!refused || refused->at_ms < renewed_ms / 1000 * 1000)
        return false;
    kube_watch_each(chosen->pods, look_for_successor, &s);
    return !s.runs;
}

void follow_pod_successor(const struct follow_pod *chosen, const char *leader, int64_t renewed_ms,
                          struct waiting_launcher *ret_launcher)
{
    const json_t *pod = launcher_pod_coming(chosen->pods, chosen->uid);
    *ret_launcher = (struct waiting_launcher){0};
    if (pod)
        waiting_of_launcher(pod, &chosen->news, NULL, ret_launcher);
    else if (successor_is_refused(chosen, leader, renewed_ms))
        waiting_of_launcher(NULL, NULL, job_news(chosen), ret_launcher);
}

bool follow_pod_see(struct follow_pod *chosen, const struct follow_leader *leader,
                    const json_t *pod)
{
    if (!launcher_pod_is_one(pod) || !is_of_job(chosen, leader, pod) ||
        is_another(chosen, leader, pod))
        return false;
    chosen->coming = !launcher_pod_has_begun(pod);
    if (chosen->coming)
        return false;
    if (chosen->name && strcmp(chosen->name, kube_name(pod)) == 0)
        return false;
    free(chosen->name);
    chosen->name = strdup(kube_name(pod));
    return chosen->name != NULL;
}

struct looking {
    struct follow_pod *chosen;
    const struct follow_leader *leader;
    bool found;
};

static void look_if_alive(const json_t *pod, void *arg)
{
    struct looking *looking = arg;
    if (is_alive(pod))
        looking->found |= follow_pod_see(looking->chosen, looking->leader, pod);
}

bool follow_pod_look(struct follow_pod *chosen, const struct follow_leader *leader)
{
    struct looking looking = {chosen, leader, false};
    const char *lead = who_leads(chosen, leader);
    const json_t *pod = follow_pod_find(chosen, lead);
    if (pod)
        return follow_pod_see(chosen, leader, pod);
    if (!lead && chosen->name && !is_alive(follow_pod_find(chosen, chosen->name)))
        kube_watch_each(chosen->pods, look_if_alive, &looking);
    return looking.found;
}
