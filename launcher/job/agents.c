/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/job/private.h"
#include "launcher/programs/agent_program.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/wire/dial.h"
#include "lib/wire/hello.h"
#include "lib/wire/key_file.h"

#define LINGER_MS 1000      /* between the end of an agent's connection and that of its process */
#define LINGER_TOLD_MS 1500 /* until users hear what is waited for */

/* ---- starting ---- */

/* Two addresses of the loopback are of two agents, unless they are equal. One of them and another
 * address of this machine are of one agent, which listens on all of them. */
static bool is_same(const struct agent *a, const struct agent *b)
{
    if (strcmp(a->address, b->address) == 0)
        return true;
    return address_is_loopback(a->address) != address_is_loopback(b->address) &&
           strcmp(agent_outer_address(a), agent_outer_address(b)) == 0;
}

static bool is_repeated(const struct job *job, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (is_same(&job->agents[i], &job->agents[index]))
            return true;
    return false;
}

/* Towards an address of its own a machine has that one. */
static bool is_here(const char *address)
{
    char host[REMOTE_ADDRESS_SIZE], own[REMOTE_ADDRESS_SIZE];
    uint16_t port = 0;
    return address_is_loopback(address) ||
           (address_split(address, host, sizeof host, &port, NULL) == 0 &&
            address_towards(address, port, own, sizeof own) == 0 && strcmp(own, address) == 0);
}

static const struct agent *find_on_other_machine(const struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        char own[REMOTE_ADDRESS_SIZE];
        const struct agent *agent = &job->agents[i];
        if (!agent->here && address_towards(agent->address, 0, own, sizeof own) == 0 &&
            !address_is_loopback(own))
            return agent;
    }
    return NULL;
}

/* Debian's /etc/hosts has 127.0.1.1 for a machine's own name. To the others that address is their
 * own: agents that dial it from there, and the ranks that dial rank 0, get the one that we have
 * towards them. */
static void find_outer_addresses(struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++)
        job->agents[i].here = is_here(job->agents[i].address);
    const struct agent *other = find_on_other_machine(job);
    for (uint32_t i = 0; other && i < job->count; i++) {
        struct agent *agent = &job->agents[i];
        char host[REMOTE_ADDRESS_SIZE];
        uint16_t port = 0;
        if (address_is_loopback(agent->address) &&
            address_split(agent->address, host, sizeof host, &port, NULL) == 0 &&
            address_towards(other->address, port, agent->outer, sizeof agent->outer) < 0)
            agent->outer[0] = '\0';
    }
}

static int fail_to_resolve(struct drarun_error *err)
{
    const struct drarun_error bad = *err;
    return error_kind(err, bad.kind, bad.code, "--agents: %s%s", bad.text,
                      bad.code == EHOSTUNREACH
                          ? "; give the address if DNS and /etc/hosts do not have the name, as "
                            "those of ~/.ssh/config and .local"
                          : "");
}

static int resolve_agents(struct job *job, char *list, struct drarun_error *err)
{
    char *rest = list;
    for (uint32_t i = 0; i < job->count; i++)
        if (remote_api()->resolve(strsep(&rest, ","), job->agents[i].address, err) < 0)
            return fail_to_resolve(err);
    find_outer_addresses(job);
    const char *word = list;
    for (uint32_t i = 0; i < job->count; i++, word += strlen(word) + 1)
        if (is_repeated(job, i))
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--agents: %s is named twice", word);
    return 0;
}

static int take_addresses(struct job *job, struct drarun_error *err)
{
    const struct request_pods *pods = job->request->pods;
    for (uint32_t i = 0; i < job->count; i++) {
        char *address = job->agents[i].address;
        int n = snprintf(address, REMOTE_ADDRESS_SIZE, "%s", pods->addresses[i]);
        if (n >= REMOTE_ADDRESS_SIZE)
            return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EINVAL, "worker %u: address %s", i,
                              pods->addresses[i]);
    }
    return 0;
}

static uint32_t count_words(const char *list)
{
    uint32_t count = 1;
    for (; *list; list++)
        count += *list == ',';
    return count;
}

int agents_new(struct job *job, struct drarun_error *err)
{
    const struct job_request *request = job->request;
    job->count = request->pods      ? request->pods->workers
                 : request->agents  ? count_words(request->agents)
                 : request->workers ? request->workers
                                    : 1;
    job->early = !request_is_elsewhere(request) && job->count == 1;
    job->agents = calloc(job->count, sizeof *job->agents);
    if (!job->agents)
        return error_set(err, ENOMEM, "out of memory");
    for (uint32_t i = 0; i < job->count; i++) {
        struct agent *agent = &job->agents[i];
        *agent = (struct agent){.job = job, .index = i, .phase = AGENT_CONNECTING};
        agent->host = strdup("");
        agent->cpu_list = strdup("");
        if (!agent->host || !agent->cpu_list)
            return error_set(err, ENOMEM, "out of memory");
        identity_session_dir(job->identity.uid, job->identity.attempt, i,
                             !request_is_elsewhere(request), agent->session_dir);
    }
    if (request->pods)
        return take_addresses(job, err);
    if (!request->agents)
        return 0;
    cleanup_free char *list = strdup(request->agents);
    return list ? resolve_agents(job, list, err) : error_set(err, ENOMEM, "out of memory");
}

/* ---- connections ---- */

static void send_hello(struct agent *agent)
{
    struct job *job = agent->job;
    Drarun__Wire__Hello hello = DRARUN__WIRE__HELLO__INIT;
    hello_fill(&hello, DRARUN__WIRE__ROLE__ROLE_LAUNCHER, "");
    hello.job = unconst(job->identity.uid);
    hello.attempt = job->identity.attempt;
    hello.worker = agent->index;
    hello.host = job->identity.hostname;
    const struct request_pods *pods = job->request->pods;
    hello.generation = pods ? pods->generation : 0;
    if (pods && pods->look_for) {
        hello.look_for = pods->look_for->items;
        hello.n_look_for = pods->look_for->count;
    }
    if (pods && pods->scripts) {
        hello.scripts = pods->scripts->items;
        hello.n_scripts = pods->scripts->count;
    }
    hello.fabric = pods && pods->open_nics ? DRARUN__WIRE__FABRIC__FABRIC_OPEN
                                           : DRARUN__WIRE__FABRIC__FABRIC_OFF;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(HELLO, hello, &hello);
    agent_send(agent, &envelope);
}

static void on_linger(evutil_socket_t fd, short what, void *arg)
{
    struct agent *agent = arg;
    struct job *job = agent->job;
    char name[128];
    (void)fd, (void)what;
    if (agent->awaits_pod) {
        agent->awaits_pod = false;
        agent_name(agent, name, sizeof name);
        console_clear(job->console);
        log_note("%s: %s; waiting up to %d s for the cluster to report how its pod ended", name,
                 agent_why(agent), (int)agent_pod_ms(agent) / 1000);
        if (job_start_clock(agent->linger, agent_pod_ms(agent) - LINGER_TOLD_MS) == 0)
            return;
    }
    agent_conclude(agent);
    job_look(job);
}

static void on_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct agent *agent = arg;
    struct job *job = agent->job;
    (void)channel;
    agent->why = *err;
    channel_free(TAKE_PTR(agent->channel));
    const struct request_pods *pods = job->request->pods;
    bool pod = pods && !pods->entry && !pods->kept && agent->launched;
    if (agent->phase < AGENT_DONE && (pod || (agent->pid && !agent->reaped))) {
        /* how the process or pod ended is what people need to know, and it is about to end */
        agent->linger = evtimer_new(job->base, on_linger, agent);
        agent->awaits_pod = pod;
        if (agent->linger && job_start_clock(agent->linger, pod ? LINGER_TOLD_MS : LINGER_MS) == 0)
            return;
    }
    agent_conclude(agent);
    job_look(job);
}

/* The kernel does not end the connection before we call the agent lost. */
static void bear_silence(const struct job *job, struct channel *channel)
{
    int64_t ms = job->request->agent_timeout_ms + CHANNEL_AGENT_BEYOND_MS;
    if (job->request->agent_timeout_ms > 0 && ms > CHANNEL_SILENCE_MS)
        channel_set_silence(channel, (unsigned int)ms);
}

/* The connection of an agent stands. */
static void connected(struct agent *agent, struct channel *channel)
{
    agent->channel = channel;
    bear_silence(agent->job, channel);
    agent->heard_ms = clock_ms();
    channel_set_callbacks(channel, agent_on_message, on_closed, agent);
    agent_advance(agent, AGENT_CONNECTED);
    send_hello(agent);
}

static void on_remote_connected(void *arg, uint32_t index, struct channel *channel)
{
    struct job *job = arg;
    connected(&job->agents[index], channel);
    job_look(job);
}

/* One agent on a socketpair: it finds hello and job in its socket before it has even started. */
static int start_early(struct job *job, struct drarun_error *err)
{
    struct agent *agent = &job->agents[0];
    int fd = -1;
    int rc = local_agent_start(&job->local.agents, &agent->pid, &fd, err);
    if (rc < 0)
        return rc;
    struct channel *channel = channel_new_take(job->base, fd, agent_on_message, on_closed, agent);
    if (!channel)
        return error_set(err, ENOMEM, "out of memory");
    connected(agent, channel);
    return agent_send_launch(agent, err);
}

static int get_key(const struct job *job, struct tls_key *ret_key, struct drarun_error *err)
{
    if (job->request->pods) {
        *ret_key = *job->request->pods->key;
        return 0;
    }
    if (job->request->agents)
        return key_file_read(job->request->key_file, ret_key, err);
    if (getrandom(ret_key->bytes, sizeof ret_key->bytes, 0) != (ssize_t)sizeof ret_key->bytes)
        return error_set(err, errno, "getrandom: %s", strerror(errno));
    return 0;
}

static int open_remote(struct job *job, struct tls_key *key, struct drarun_error *err)
{
    struct remote_owner owner = {.connected = on_remote_connected, .arg = job};
    int rc = get_key(job, key, err);
    if (rc < 0)
        return rc;
    job->remote = remote_api()->open(job->base, key, job->count, &owner, err);
    return job->remote ? 0 : -err->code;
}

/* Neighbours dial its own one. */
static const char *dial_address(const struct agent *agent)
{
    const struct request_pods *pods = agent->job->request->pods;
    return pods && pods->dials ? pods->dials[agent->index] : agent->address;
}

static int start_remote(struct job *job, const struct tls_key *key, struct drarun_error *err)
{
    for (uint32_t i = 0; i < job->count; i++) {
        struct agent *agent = &job->agents[i];
        uint16_t port = 0;
        int rc = 0;
        if (!request_is_elsewhere(job->request)) {
            rc = local_agent_listen(&job->local.agents, key, &agent->pid, &port, err);
            snprintf(agent->address, sizeof agent->address, "127.0.0.1:%u", port);
        }
        if (rc == 0)
            rc = remote_api()->dial(job->remote, i, dial_address(agent), err);
        if (rc < 0)
            return error_prefix(err, "worker %u", i);
    }
    return 0;
}

int agents_start(struct job *job, struct drarun_error *err)
{
    struct tls_key key;
    job->local.agents.program = job->local.program;
    job->local.agents.signals = job->signals;
    if (!request_is_elsewhere(job->request)) {
        int rc = program_find_agent(job->local.program, err);
        if (rc < 0)
            return rc;
    }
    if (job->early)
        return start_early(job, err);
    int rc = open_remote(job, &key, err);
    if (rc == 0)
        rc = start_remote(job, &key, err);
    explicit_bzero(&key, sizeof key);
    return rc;
}

void agents_free(struct job *job)
{
    for (uint32_t i = 0; job->agents && i < job->count; i++) {
        struct agent *agent = &job->agents[i];
        channel_free(TAKE_PTR(agent->channel));
        if (agent->linger)
            event_free(agent->linger);
        free(agent->host);
        free(agent->cpu_list);
        json_decref(agent->inspection);
        if (!agent->pid || agent->reaped)
            continue;
        kill(agent->pid, SIGKILL);
        waitpid(agent->pid, NULL, 0);
    }
    if (job->remote)
        remote_api()->close(job->remote);
    free(job->agents);
}

/* ---- what the cluster says of pods ---- */

bool job_pod_ended(struct job *job, const struct cause_pod *pod)
{
    bool done = agent_pod_ended(&job->agents[pod->worker], pod);
    job_look(job);
    return done;
}

void job_pod_leaves(struct job *job, const struct cause_pod *pod)
{
    struct agent *agent = &job->agents[pod->worker];
    if (agent->pod_told || (agent->phase == AGENT_DONE && !agent->leaves))
        return;
    agent->pod_told = true;
    if (cause_pod(job->cause, pod)) {
        job_tell_leave(agent);
        job_leave(job);
    }
    job_look(job);
}
