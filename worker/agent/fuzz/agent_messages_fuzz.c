/* SPDX-License-Identifier: Apache-2.0 */
/* What a launcher and a parent in the tree, which have the key, say to an agent: the agent itself,
 * over socketpairs, and it starts ranks. What a message may name by right, programs, directories
 * and addresses, is replaced by harmless ones. Steps as text: tests/fuzz/encode_steps. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/wire/frame.h"
#include "lib/wire/hello.h"
#include "tests/fuzz/peer.h"
#include "worker/agent/private.h"
#include "worker/tree/pmix_version.h"

#define PROGRAM "/bin/cat"
#define NOBODY "127.0.0.1:1"
#define RANKS_MAX 8u
#define WAITS_MAX 3u
#define WAIT_MAX_MS 2u

/* The first byte of the input. */
#define LAUNCHED 1u /* as drarun starts it: a launcher is there from the beginning */

enum {
    STEP_LAUNCHER = 0, /* a message of the launcher */
    STEP_PARENT,       /* a message of the parent */
    STEP_GUEST,        /* somebody dials with this hello, and takes the place of who was there */
    STEP_LAUNCHER_GOES,
    STEP_PARENT_GOES,
    STEP_LAUNCHER_RAW, /* bytes without a frame */
    STEP_PARENT_RAW,
    STEP_CLOCK, /* that clock is due */
    STEP_WAIT,  /* for ranks: so many ms */
    STEP_SIGTERM,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rig {
    struct event_base *base;
    struct agent *agent;
    struct peer launcher, parent;
    bool servers; /* ranks of this job would be this program, as servers of mpirun's */
    unsigned waits;
    bool done; /* it was, and stays so */
    bool over;
} rig;

/* ---- what a message may name ---- */

static void replace(char **text, const char *by)
{
    if (*text != protobuf_c_empty_string)
        free(*text);
    *text = strdup(by);
    if (!*text)
        abort();
}

static void tame_apps(Drarun__Wire__App *const *apps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        while (apps[i]->n_argv > 1)
            free(apps[i]->argv[--apps[i]->n_argv]);
        if (apps[i]->n_argv == 1 && apps[i]->argv[0][0])
            replace(&apps[i]->argv[0], PROGRAM);
    }
}

/* False: so many ranks that starting them takes long. */
static bool few_ranks(Drarun__Wire__Block *const *blocks, size_t count)
{
    uint64_t ranks = 0;
    for (size_t i = 0; i < count; i++)
        ranks += blocks[i]->count;
    return ranks <= RANKS_MAX || ranks > RANKMAP_RANKS_MAX;
}

static void tame_directory(char **path)
{
    if ((*path)[0])
        replace(path, strrchr(peer_folder(), '/') + 1);
}

static bool tame_launch(Drarun__Wire__Launch *launch)
{
    tame_apps(launch->apps, launch->n_apps);
    tame_directory(&launch->session_dir);
    for (size_t i = 0; i < launch->n_workers; i++)
        if (launch->workers[i]->address[0])
            replace(&launch->workers[i]->address, NOBODY);
    rig.servers |= launch->mode == DRARUN__WIRE__LAUNCH_MODE__LAUNCH_MPIRUN;
    if (rig.servers)
        launch->start = false;
    return few_ranks(launch->blocks, launch->n_blocks);
}

/* It would start libpmix, which lives as long as the process. */
static bool is_for_libpmix(const Drarun__Wire__Routed *routed)
{
    return routed->body_case < DRARUN__WIRE__ROUTED__BODY_REMOTE_START;
}

/* False: it is left out. */
static bool tame(Drarun__Wire__Envelope *message)
{
    switch (message->body_case) {
    case DRARUN__WIRE__ENVELOPE__BODY_LAUNCH:
        return tame_launch(message->launch);
    case DRARUN__WIRE__ENVELOPE__BODY_ASSIGNMENT:
        tame_directory(&message->assignment->session_dir);
        return true;
    case DRARUN__WIRE__ENVELOPE__BODY_GROUP:
        tame_apps(message->group->apps, message->group->n_apps);
        return few_ranks(message->group->blocks, message->group->n_blocks);
    case DRARUN__WIRE__ENVELOPE__BODY_START:
        return !rig.servers;
    case DRARUN__WIRE__ENVELOPE__BODY_ROUTED:
        return !is_for_libpmix(message->routed);
    default:
        return true;
    }
}

/* ---- steps ---- */

static void say(struct peer *peer, const struct step *step)
{
    Drarun__Wire__Envelope *message = NULL;
    if (frame_decode(step->bytes, step->length, &message, NULL) < 0) {
        peer_send(peer, step->bytes, step->length);
        return;
    }
    if (tame(message))
        peer_send_message(peer, message);
    drarun__wire__envelope__free_unpacked(message, NULL);
}

static void ignore_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    (void)channel, (void)message, (void)arg;
}

static void ignore_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    (void)channel, (void)err, (void)arg;
}

static void knock(const struct step *step)
{
    Drarun__Wire__Envelope *message = NULL;
    if (frame_decode(step->bytes, step->length, &message, NULL) < 0)
        return;
    const Drarun__Wire__Hello *hello = message->hello;
    if (message->body_case == DRARUN__WIRE__ENVELOPE__BODY_HELLO &&
        hello_check(hello, pmix_version(), NULL) == 0) {
        bool parent = hello->role == DRARUN__WIRE__ROLE__ROLE_PEER;
        struct peer *peer = parent ? &rig.parent : &rig.launcher;
        struct peer before = *peer;
        struct channel *channel =
            channel_new_take(rig.base, peer_open(peer), ignore_message, ignore_closed, NULL);
        if (!channel)
            abort();
        agent_guest_take(channel, hello, rig.agent);
        peer_close(&before);
    }
    drarun__wire__envelope__free_unpacked(message, NULL);
}

static void on_waited(evutil_socket_t fd, short what, void *arg)
{
    bool *waited = arg;
    (void)fd, (void)what;
    *waited = true;
}

static void wait_ms(unsigned ms)
{
    bool waited = rig.waits++ >= WAITS_MAX;
    struct timeval limit = timeval_from_ms(ms);
    struct event *clock = evtimer_new(rig.base, on_waited, &waited);
    if (!clock || evtimer_add(clock, &limit) < 0)
        abort();
    while (!waited && event_base_loop(rig.base, EVLOOP_ONCE) == 0 &&
           !event_base_got_break(rig.base))
        continue;
    rig.over |= event_base_got_break(rig.base) != 0;
    event_free(clock);
}

static void fire(uint8_t index)
{
    struct agent *agent = rig.agent;
    struct event *const clocks[] = {agent->parent.due, agent->launcher.orphan_clock,
                                    agent->launcher.await_clock, agent->looks.library_clock,
                                    agent->late_abort_clock};
    struct event *clock = clocks[index % ARRAY_LEN(clocks)];
    if (clock && event_pending(clock, EV_TIMEOUT, NULL))
        event_active(clock, EV_TIMEOUT, 0);
}

static void play(const struct step *step)
{
    uint8_t first = step->length > 0 ? step->bytes[0] : 0;
    switch (step->what) {
    case STEP_LAUNCHER:
        say(&rig.launcher, step);
        break;
    case STEP_PARENT:
        say(&rig.parent, step);
        break;
    case STEP_GUEST:
        knock(step);
        break;
    case STEP_LAUNCHER_GOES:
        peer_close(&rig.launcher);
        break;
    case STEP_PARENT_GOES:
        peer_close(&rig.parent);
        break;
    case STEP_LAUNCHER_RAW:
        peer_send_raw(&rig.launcher, step->bytes, step->length);
        break;
    case STEP_PARENT_RAW:
        peer_send_raw(&rig.parent, step->bytes, step->length);
        break;
    case STEP_CLOCK:
        fire(first);
        break;
    case STEP_WAIT:
        wait_ms(first % (WAIT_MAX_MS + 1));
        break;
    case STEP_SIGTERM:
        event_active(rig.agent->sigterm, EV_SIGNAL, 1);
        break;
    default:
        break;
    }
}

static void turn(void)
{
    event_base_loop(rig.base, EVLOOP_NONBLOCK);
    rig.over |= event_base_got_break(rig.base) != 0;
    peer_read(&rig.launcher);
    peer_read(&rig.parent);
}

static void check(void)
{
    const struct agent *agent = rig.agent;
    const struct agent_job *job = &agent->job;
    if (agent->state < AGENT_IDLE || agent->state > AGENT_DONE)
        abort();
    for (uint32_t i = 0; i < job->local_count; i++)
        if (job->local[i] >= job->map.ranks ||
            rankmap_worker(&job->map, job->local[i]) != job->worker)
            abort();
    rig.done |= agent->state == AGENT_DONE;
    if (rig.done && (agent->state != AGENT_DONE || agent->session.dir))
        abort();
}

static void run(const uint8_t *data, size_t size)
{
    struct step step;
    turn();
    while (!rig.over && step_next(&data, &size, &step)) {
        play(&step);
        turn();
        check();
    }
}

static struct tls_context *tls;

/* As main.c does, before any agent. */
static void set_up(void)
{
    const struct tls_key key = {{0}};
    struct drarun_error err = {0};
    sigset_t child;
    if (tls)
        return;
    tls = tls_context_new(&key, TLS_CLIENT, &err);
    if (!tls)
        abort();
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (setenv("TMPDIR", peer_folder(), 1) < 0 || setenv("HWLOC_SYNTHETIC", "core:2", 1) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct log_scope silent = {.level = LOG_DEBUG};
    struct agent_options options = {.control_fd = -1, .listen_fd = -1};
    struct drarun_error err = {0};
    if (size == 0)
        return 0;
    set_up();
    rig = (struct rig){.launcher = {-1}, .parent = {-1}, .base = event_base_new()};
    if (data[0] & LAUNCHED)
        options.control_fd = peer_open(&rig.launcher);
    peer_streams_divert("", 0);
    const struct log_scope *before = log_scope_set(&silent);
    rig.agent = rig.base ? agent_new(rig.base, &options, &err) : NULL;
    if (!rig.agent)
        abort();
    rig.agent->dial_tls = tls; /* as with a port of its own; the children are not there */
    run(data + 1, size - 1);
    rig.agent->dial_tls = NULL;
    agent_free(rig.agent);
    peer_close(&rig.launcher);
    peer_close(&rig.parent);
    event_base_loop(rig.base, EVLOOP_NONBLOCK); /* libevent's own finalizers, as of bufferevents */
    event_base_free(rig.base);
    log_scope_set(before);
    peer_streams_restore();
    return 0;
}
