/* SPDX-License-Identifier: Apache-2.0 */
/* A launcher's job with three agents, which say anything in any order: the job engine itself, over
 * socketpairs. The first byte of the input says what kind of job it is; a step of up to WORKERS is
 * a message of that agent, a larger one something else that happens to a job. Steps as text:
 * tests/fuzz/encode_steps. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/spec/spec.h"
#include "launcher/streams/console.h"
#include "launcher/job/plan.h"
#include "launcher/job/private.h"
#include "launcher/alloc/kept.h"
#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/wire/frame.h"
#include "tests/fuzz/peer.h"

#define WORKERS 3u
#define INPUT "some input\n"
#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"

enum kind { /* two bits of the first byte */
            KIND_PODS = 0,
            KIND_ENTRY,
            KIND_KEPT,
            KIND_HAND, /* agents that were started by hand */
};

/* The other bits. */
#define FRAMED 4u
#define STDIN_ALL 8u
#define WATCHED 16u
#define SLOTS 32u
#define MPIRUN 64u
#define PLANNED 128u

enum step_kind {
    STEP_CLOSE = WORKERS, /* the connection of the agent that the step's first byte names */
    STEP_RAW,             /* the same, of its other bytes as they are */
    STEP_CLOCK,           /* that clock is due */
    STEP_SIGNAL,          /* that signal of the user's */
    STEP_POD_ENDED, /* first byte: which pod; second: how it ended, as the cluster reports it */
    STEP_POD_LEAVES,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char spec_text[] = "workers: 3\n"
                                "image: x\n"
                                "devices: {gpus: {count: 1, class: gpu}, "
                                "nics: {count: 1, class: nic}}\n"
                                "command: [x]\n";
static const char *const pods[] = {"pod-0", "pod-1", "pod-2"};
static const char *const nodes[] = {"node-0", "node-1", "node-2"};
static const char *const addresses[] = {"10.0.0.1:7173", "10.0.0.2:7173", "10.0.0.3:7173"};

/* ---- how agents are reached: over socketpairs ---- */

struct remote {
    struct event_base *base;
    struct remote_owner owner;
    bool dialled[WORKERS];
};

static struct rig {
    struct remote remote;
    struct peer peers[WORKERS];
    struct job_spec spec;
    struct plan_worker_input workers[WORKERS];
    char key_file[64];
    int input; /* of the ranks */
} rig = {.peers = {{-1}, {-1}, {-1}}};

static struct remote *fuzz_open(struct event_base *base, const struct tls_key *key, uint32_t agents,
                                const struct remote_owner *owner, struct drarun_error *err)
{
    (void)key, (void)err;
    if (agents != WORKERS)
        abort();
    rig.remote = (struct remote){.base = base, .owner = *owner};
    return &rig.remote;
}

static void fuzz_close(struct remote *remote)
{
    *remote = (struct remote){0};
}

static int fuzz_resolve(const char *address, char numeric[REMOTE_ADDRESS_SIZE],
                        struct drarun_error *err)
{
    (void)err;
    snprintf(numeric, REMOTE_ADDRESS_SIZE, "%s", address);
    return 0;
}

static char *fuzz_own_name(const char *hostname)
{
    (void)hostname;
    return NULL;
}

static int fuzz_dial(struct remote *remote, uint32_t agent, const char *address,
                     struct drarun_error *err)
{
    (void)address, (void)err;
    remote->dialled[agent] = true;
    return 0;
}

static void fuzz_give_up(struct remote *remote, uint32_t agent)
{
    remote->dialled[agent] = false;
}

static const char *fuzz_why(const struct remote *remote, uint32_t agent)
{
    (void)remote, (void)agent;
    return "";
}

static int fuzz_code(const struct remote *remote, uint32_t agent)
{
    (void)remote, (void)agent;
    return 0;
}

const struct remote_api *remote_api(void)
{
    static const struct remote_api api = {
        .open = fuzz_open,
        .close = fuzz_close,
        .resolve = fuzz_resolve,
        .own_name = fuzz_own_name,
        .dial = fuzz_dial,
        .give_up = fuzz_give_up,
        .why = fuzz_why,
        .code = fuzz_code,
    };
    return &api;
}

int remote_become(char *const argv[], struct drarun_error *err)
{
    (void)argv, (void)err;
    abort();
}

static void ignore_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    (void)channel, (void)message, (void)arg;
}

static void ignore_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    (void)channel, (void)err, (void)arg;
}

static void connect_agents(void)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        if (!rig.remote.dialled[i])
            continue;
        struct channel *channel = channel_new_take(rig.remote.base, peer_open(&rig.peers[i]),
                                                   ignore_message, ignore_closed, NULL);
        if (!channel)
            abort();
        rig.remote.owner.connected(rig.remote.owner.arg, i, channel);
    }
}

/* ---- the job ---- */

/* Our own bugs say so. */
static void on_log(void *arg, const struct log_line *line)
{
    static const char bug[] = "internal error: ";
    (void)arg;
    if (strncmp(line->text + line->prefix, bug, sizeof bug - 1) == 0)
        abort();
}

static int on_prepare(void *arg, struct job *job, struct drarun_error *err)
{
    const struct job_plan_input input = {
        .spec = &rig.spec, .workers = rig.workers, .slices_unknown = true, .warn = true};
    (void)arg;
    return job_plan(job, &input, err);
}

static void on_vitals(void *arg, uint32_t worker, const Drarun__Wire__Vitals *vitals)
{
    (void)arg, (void)vitals;
    if (worker >= WORKERS)
        abort();
}

static void set_up(void)
{
    struct drarun_error err = {0};
    if (rig.key_file[0])
        return;
    int fd = memfd_create("key", MFD_CLOEXEC);
    if (fd < 0 || fchmod(fd, 0600) < 0 || write(fd, KEY, sizeof KEY - 1) != sizeof KEY - 1 ||
        spec_parse("spec", spec_text, sizeof spec_text - 1, &rig.spec, &err) < 0)
        abort();
    snprintf(rig.key_file, sizeof rig.key_file, "/proc/self/fd/%d", fd);
    for (size_t i = 0; i < WORKERS; i++)
        rig.workers[i] = (struct plan_worker_input){.pod = pods[i], .node = nodes[i]};
    if (setenv("TMPDIR", peer_folder(), 1) < 0 || unsetenv("XDG_RUNTIME_DIR") < 0)
        abort(); /* where names are published */
    rig.input = memfd_create("input", MFD_CLOEXEC);
    if (rig.input < 0 || write(rig.input, INPUT, sizeof INPUT - 1) != sizeof INPUT - 1)
        abort();
}

static struct event *clock_at(const struct job *job, uint8_t index)
{
    struct event *const clocks[] = {
        job->clocks.start,          job->clocks.notice,       job->clocks.limit,
        job->interrupt.grace_clock, job->overdue.clock,       job->liveness.ping_clock,
        job->hearsay.clock,         job->settling.clock,      job->agents[0].linger,
        job->agents[1].linger,      job->agents[2].linger,    job->preflight.reach_clock,
        job->liveness.watch_clock,  job->spawning.room_clock, job->clocks.look,
        job->clocks.warn,
    };
    return clocks[index % ARRAY_LEN(clocks)];
}

static void say(uint32_t worker, const struct step *step)
{
    Drarun__Wire__Envelope *message = NULL;
    struct peer *peer = &rig.peers[worker];
    if (frame_decode(step->bytes, step->length, &message, NULL) < 0) {
        peer_send(peer, step->bytes, step->length);
        return;
    }
    /* so that samples outlive a release */
    if (message->body_case == DRARUN__WIRE__ENVELOPE__BODY_HELLO &&
        strcmp(message->hello->build, "@") == 0) {
        free(message->hello->build);
        message->hello->build = strdup(DRARUN_VERSION);
        peer_send_message(peer, message);
    } else {
        peer_send(peer, step->bytes, step->length);
    }
    drarun__wire__envelope__free_unpacked(message, NULL);
}

static void of_pod(struct job *job, const struct step *step, uint32_t worker)
{
    const struct cause_pod pod = {
        .worker = worker,
        .end = (enum pod_end)(step->length > 1 ? step->bytes[1] % (POD_END_UNKNOWN + 1) : 0),
        .deleting = step->length > 2 && step->bytes[2] % 2 == 1,
        .exit_code = -1,
    };
    if (!job->request->pods || job->request->pods->entry || job->request->pods->kept)
        return;
    if (step->what == STEP_POD_ENDED)
        job_pod_ended(job, &pod);
    else
        job_pod_leaves(job, &pod);
}

static void play(struct job *job, const struct step *step)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGCONT,
                                  SIGWINCH}; /* none stops this process */
    uint8_t first = step->length > 0 ? step->bytes[0] : 0;
    struct event *clock = clock_at(job, first);
    uint32_t worker = first % WORKERS;
    if (step->what < WORKERS)
        say(step->what, step);
    else if (step->what == STEP_CLOSE)
        peer_close(&rig.peers[worker]);
    else if (step->what == STEP_RAW && step->length > 1)
        peer_send_raw(&rig.peers[worker], step->bytes + 1, step->length - 1);
    else if (step->what == STEP_CLOCK && clock && event_pending(clock, EV_TIMEOUT, NULL))
        event_active(clock, EV_TIMEOUT, 0);
    else if (step->what == STEP_SIGNAL)
        job_interrupt(job, signals[first % ARRAY_LEN(signals)]);
    else if (step->what == STEP_POD_ENDED || step->what == STEP_POD_LEAVES)
        of_pod(job, step, worker);
}

static void turn(struct job *job)
{
    event_base_loop(job->base, EVLOOP_NONBLOCK);
    for (uint32_t i = 0; i < WORKERS; i++)
        peer_read(&rig.peers[i]);
}

static void check(const struct job *job)
{
    uint32_t gone = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        gone += job->agents[i].phase >= AGENT_DONE;
        if (job->agents[i].held > JOB_HELD_MAX)
            abort();
    }
    if (gone != job->phases.gone || job->phases.greeted > WORKERS || job->phases.prepared > WORKERS)
        abort();
    if (job->state == JOB_ENDED && gone != WORKERS)
        abort();
    if (gone == WORKERS && job->state < JOB_DRAINING) /* no look was left out */
        abort();
}

static void run(struct job *job, const uint8_t *data, size_t size)
{
    struct buf why = BUF_INIT;
    struct step step;
    connect_agents();
    turn(job);
    while (job->state != JOB_ENDED && step_next(&data, &size, &step)) {
        play(job, &step);
        turn(job);
        check(job);
    }
    cause_explain(job->cause, true, &why);
    json_decref(cause_json(job->cause));
    for (uint32_t i = 0; i < WORKERS; i++)
        peer_close(&rig.peers[i]);
    turn(job);
    buf_done(&why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct log_scope scope = {.level = LOG_DEBUG, .put = on_log};
    if (size == 0)
        return 0;
    set_up();
    uint8_t flags = data[0];
    enum kind kind = flags % 4;
    char first[] = "first", second[] = "second", *argv[] = {first, second, NULL}, *env[] = {NULL};
    struct request_program programs[] = {{.ranks = 3, .argv = argv, .argc = 2},
                                         {.ranks = 2, .argv = argv + 1, .argc = 1}};
    const struct console_options console_options = {.frames = flags & FRAMED, .quiet = true};
    struct console *console = console_new(&console_options);
    struct tls_key key = {{0}};
    struct drarun_error err = {0};
    struct request_pods in_pods = {
        .key = &key,
        .uid = "b5a1",
        .attempt = 1,
        .workers = WORKERS,
        .addresses = addresses,
        .pods = pods,
        .nodes = nodes,
        .total_ms = 1000,
        .grace_ms = 1000,
        .prepare = flags & PLANNED ? on_prepare : NULL,
        .vitals = on_vitals,
        .entry = kind == KIND_ENTRY,
        .kept = kind == KIND_KEPT,
    };
    struct job_request request = {
        .programs = programs,
        .program_count = flags & MPIRUN ? 1 : 2,
        .radix = 2,
        .pods = kind == KIND_HAND ? NULL : &in_pods,
        .agents = kind == KIND_HAND ? "10.0.0.1:1,10.0.0.2:1,10.0.0.3:1" : NULL,
        .key_file = rig.key_file,
        .stdin_rank = flags & STDIN_ALL ? REQUEST_STDIN_ALL : 0,
        .hang_after_ms = flags & WATCHED ? 600000 : 0,
        .timeout_ms = flags & WATCHED ? 600000 : 0,
        .warn_signo = flags & WATCHED ? SIGUSR1 : 0,
        .warn_before_ms = 1000,
        .on_rank_failure = flags & SLOTS && !(flags & MPIRUN) ? "continue" : NULL,
        .slots = flags & SLOTS ? 4 : 0,
        .launch_mpirun = flags & MPIRUN,
        .kill_after_ms = 1000,
    };
    programs[0].ranks = flags & MPIRUN ? 0 : 3;
    in_pods.base = event_base_new();
    if (lseek(rig.input, 0, SEEK_SET) < 0)
        abort();
    peer_streams_divert(INPUT, sizeof INPUT - 1);
    const struct log_scope *before = log_scope_set(&scope);
    struct job *job =
        in_pods.base && console ? job_new(&request, console, rig.input, env, &err) : NULL;
    if (!job)
        abort();
    run(job, data + 1, size - 1);
    job_free(job);
    console_free(console);
    log_scope_set(before);
    if (lseek(STDIN_FILENO, 0, SEEK_CUR) != 0) /* it reads what it is given */
        abort();
    peer_streams_restore();
    event_base_free(in_pods.base);
    return 0;
}
