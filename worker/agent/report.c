/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/affinity.h"
#include "lib/base/cgroup.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/inspect/awaited_link.h"
#include "lib/inspect/inspect.h"
#include "lib/topo/cpus.h"
#include "lib/wire/hello.h"
#include "worker/agent/private.h"
#include "worker/tree/pmix_version.h"
#include "worker/host/session.h"

#define LATE_ABORT_MS 1200 /* longer than a dying rank keeps back news, ranks_dying() */

/* To a launcher that did not launch the job its ranks are strangers. */
static bool is_for_an_heir(const Drarun__Wire__Envelope *message)
{
    switch (message->body_case) {
    case DRARUN__WIRE__ENVELOPE__BODY_HELLO:
    case DRARUN__WIRE__ENVELOPE__BODY_NOTE:
    case DRARUN__WIRE__ENVELOPE__BODY_PONG:
    case DRARUN__WIRE__ENVELOPE__BODY_EVICTED:
    case DRARUN__WIRE__ENVELOPE__BODY_DONE:
        return true;
    default:
        return false;
    }
}

bool agent_has_launcher(const struct agent *agent)
{
    const struct agent_launcher *launcher = &agent->launcher;
    return launcher->channel && !launcher->lost && !launcher->heir;
}

void agent_send(struct agent *agent, const Drarun__Wire__Envelope *message)
{
    const struct agent_launcher *launcher = &agent->launcher;
    if (!launcher->channel || launcher->lost || (launcher->heir && !is_for_an_heir(message)))
        return;
    int rc = channel_send(launcher->channel, message);
    if (rc < 0)
        log_error("message to the launcher not sent: %s", strerror(-rc));
}

void agent_send_failure(struct agent *agent, const struct drarun_error *failure)
{
    Drarun__Wire__Failure message = DRARUN__WIRE__FAILURE__INIT;
    message.kind = failure->kind;
    message.code = failure->code;
    message.text = unconst(failure->text);
    message.rank = -1; /* of all */
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(FAILURE, failure, &message);
    agent_send(agent, &envelope);
}

void agent_send_note(struct agent *agent, const char *text)
{
    Drarun__Wire__Note message = DRARUN__WIRE__NOTE__INIT;
    message.text = unconst(text);
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(NOTE, note, &message);
    agent_send(agent, &envelope);
}

void agent_send_hello(struct agent *agent)
{
    char host[256] = "";
    CLEANUP(buf_done) struct buf cpus = BUF_INIT;
    Drarun__Wire__Hello message = DRARUN__WIRE__HELLO__INIT;
    hello_fill(&message, DRARUN__WIRE__ROLE__ROLE_AGENT, pmix_version());
    gethostname(host, sizeof host - 1);
    message.host = host;
    message.launched = agent->launcher.heir;
    message.fabric = DRARUN__WIRE__FABRIC__FABRIC_REACH;
    if (agent->options.pod)
        message.job = unconst(agent->options.pod->job);
    message.cpus = affinity_count();
    if (agent->options.pod && cpulist_of_process(0, &cpus) == 0 && cpus.data)
        message.cpu_list = cpus.data;
    if (agent->options.pod && cgroup_cpu_quota() < message.cpus) /* the node's are not its own */
        message.cpus = cgroup_cpu_quota();
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(HELLO, hello, &message);
    agent_send(agent, &envelope);
}

static void send_document(struct agent *agent)
{
    struct drarun_error err = {0};
    cleanup_free char *text = json_dumps(agent->inspection.document, JSON_COMPACT);
    if (!text) {
        error_set(&err, ENOMEM, "inspection: out of memory");
        agent_send_failure(agent, &err);
        return;
    }
    Drarun__Wire__Inspection message = DRARUN__WIRE__INSPECTION__INIT;
    message.document = text;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(INSPECTION, inspection, &message);
    agent_send(agent, &envelope);
}

void agent_drop_inspection(struct agent *agent)
{
    struct agent_inspection *inspection = &agent->inspection;
    if (inspection->links_clock)
        event_free(TAKE_PTR(inspection->links_clock));
    if (inspection->hello)
        drarun__wire__hello__free_unpacked(TAKE_PTR(inspection->hello), NULL);
    inspection->links_from_ms = 0;
    inspection->links_told = false;
    child_free(TAKE_PTR(agent->inspection.opening.child));
    vendor_env_drop(&agent->inspection.script);
    json_decref(TAKE_PTR(agent->inspection.document));
}

static void send_once_whole(void *arg)
{
    struct agent *agent = arg;
    if (agent->inspection.opening.child || agent->inspection.script.child)
        return;
    send_document(agent);
    agent_drop_inspection(agent);
}

static void open_nics(struct agent *agent)
{
    json_t *verbs = json_object_get(agent->inspection.document, "verbs");
    agent->inspection.opening =
        (struct verbs_open){.verbs = verbs, .fn = send_once_whole, .arg = agent};
    if (json_array_size(verbs) > 0)
        verbs_open_start(agent->base, "/proc/self/exe", &agent->inspection.opening);
}

static void run_script(struct agent *agent, const Drarun__Wire__Hello *hello)
{
    json_t *probe = json_object_get(agent->inspection.document, "probe");
    agent->inspection.script =
        (struct vendor_env){.probe = probe, .fn = send_once_whole, .arg = agent};
    vendor_env_start(agent->base, "/proc/self/exe", hello->scripts, hello->n_scripts,
                     &agent->inspection.script);
}

static int inspect_here(const Drarun__Wire__Hello *hello, json_t **ret_document,
                        struct drarun_error *err)
{
    CLEANUP(strlist_done) struct strlist files = STRLIST_INIT;
    for (size_t i = 0; i < hello->n_look_for; i++)
        strlist_add(&files, hello->look_for[i]);
    const struct inspect_options options = {.files = &files,
                                            .session_dir = session_base(),
                                            .build = DRARUN_VERSION,
                                            .pmix = pmix_version(),
                                            .environ = environ};
    int rc = files.failed ? error_set(err, ENOMEM, "out of memory")
                          : inspect(&options, ret_document, err);
    return rc < 0 ? error_prefix(err, "inspection") : 0;
}

/* ---- links that come up ---- */

#define LINKS_LOOK_MS 200
#define LINKS_TELL_MS 400 /* the launcher may hold it for 1.5 s (launcher/job/messages.c) */

static void on_links_clock(evutil_socket_t fd, short what, void *arg);

static void tell_of_link(struct agent *agent, const char *device, int64_t now)
{
    char text[256];
    struct agent_inspection *inspection = &agent->inspection;
    if (inspection->links_told || now - inspection->links_from_ms < LINKS_TELL_MS)
        return;
    inspection->links_told = true;
    snprintf(text, sizeof text, "waits up to %d s for the link of its NIC %s, which is down",
             (int)((inspection->links_end_ms - now + 999) / 1000), device);
    agent_send_note(agent, text);
}

/* False: nothing is waited for, or no longer. */
static bool await_link(struct agent *agent)
{
    struct agent_inspection *inspection = &agent->inspection;
    struct timeval look = timeval_from_ms(LINKS_LOOK_MS);
    int64_t now = clock_ms();
    const char *device = agent->options.pod && now < inspection->links_end_ms
                             ? inspect_awaited_link(inspection->document, NULL)
                             : NULL;
    if (!device)
        return false;
    if (inspection->links_from_ms == 0)
        inspection->links_from_ms = now;
    if (!inspection->links_clock)
        inspection->links_clock = evtimer_new(agent->base, on_links_clock, agent);
    if (!inspection->links_clock || evtimer_add(inspection->links_clock, &look) < 0)
        return false;
    tell_of_link(agent, device, now);
    return true;
}

static void look(struct agent *agent)
{
    struct drarun_error err = {0};
    struct agent_inspection *inspection = &agent->inspection;
    json_decref(TAKE_PTR(inspection->document));
    if (inspect_here(inspection->hello, &inspection->document, &err) < 0) {
        agent_send_failure(agent, &err);
        return;
    }
    if (await_link(agent))
        return;
    if (inspection->hello->fabric == DRARUN__WIRE__FABRIC__FABRIC_OPEN)
        open_nics(agent);
    run_script(agent, inspection->hello);
    send_once_whole(agent);
}

static void on_links_clock(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    look(arg);
}

/* NULL without memory. */
static Drarun__Wire__Hello *copy_hello(const Drarun__Wire__Hello *hello)
{
    size_t size = drarun__wire__hello__get_packed_size(hello);
    cleanup_free uint8_t *packed = malloc(size + 1);
    return packed
               ? drarun__wire__hello__unpack(NULL, drarun__wire__hello__pack(hello, packed), packed)
               : NULL;
}

void agent_send_inspection(struct agent *agent, const Drarun__Wire__Hello *hello)
{
    struct drarun_error err = {0};
    agent_drop_inspection(agent); /* of a launcher before */
    agent->inspection.hello = copy_hello(hello);
    if (agent->inspection.hello)
        look(agent);
    else {
        error_set(&err, ENOMEM, "inspection: out of memory");
        agent_send_failure(agent, &err);
    }
}

void agent_send_ready(struct agent *agent)
{
    Drarun__Wire__Ready message = DRARUN__WIRE__READY__INIT;
    message.pid = (uint32_t)getpid();
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(READY, ready, &message);
    agent_send(agent, &envelope);
}

void agent_send_done(struct agent *agent)
{
    Drarun__Wire__Done message = DRARUN__WIRE__DONE__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(DONE, done, &message);
    agent_send(agent, &envelope);
}

void agent_send_pong(struct agent *agent, uint32_t ask)
{
    Drarun__Wire__Pong pong = DRARUN__WIRE__PONG__INIT;
    pong.ask = ask;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(PONG, pong, &pong);
    agent_send(agent, &envelope);
}

void agent_rank_connected(struct agent *agent, uint32_t rank, int api)
{
    int64_t index = agent_job_local_index(&agent->job, rank);
    if (index < 0)
        return;
    agent->rank[index].api = api;
    agent->rank[index].finalized = false; /* it may begin again after its last session */
    uint32_t app = rankmap_place(&agent->job.map, rank).app;
    if (agent->app_connected[app])
        return;
    agent->app_connected[app] = true;
    Drarun__Wire__Connected message = DRARUN__WIRE__CONNECTED__INIT;
    message.rank = rank;
    message.api = api == RANK_API_PMIX ? DRARUN__WIRE__API__API_PMIX : DRARUN__WIRE__API__API_PMI1;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(CONNECTED, connected, &message);
    agent_send(agent, &envelope);
}

void agent_rank_finalized(struct agent *agent, uint32_t rank)
{
    int64_t index = agent_job_local_index(&agent->job, rank);
    if (index >= 0)
        agent->rank[index].finalized = true;
}

/* The rank whose process it is gets the reason, which its end carries. */
void agent_user_refused(struct agent *agent, uid_t uid)
{
    bool unlogged = agent->other_users.searches == 0, found = false;
    if (!other_users_may_search(&agent->other_users, agent->job.local_count, uid, clock_ms()))
        return;
    for (uint32_t i = 0; agent->ranks && i < agent->job.local_count; i++) {
        struct agent_rank *rank = &agent->rank[i];
        pid_t pid = ranks_pid(agent->ranks, agent->job.local[i]);
        struct buf reason = BUF_INIT;
        if (rank->api == RANK_API_NONE && !rank->refusal && pid > 0 &&
            other_user_explain(pid, uid, &reason)) {
            rank->refusal = buf_take(&reason);
            if (unlogged)
                log_note("PMIx: refused a connection of rank %u: %s", agent->job.local[i],
                         rank->refusal ? rank->refusal : "out of memory");
            unlogged = false;
        }
        found |= rank->refusal != NULL;
        buf_done(&reason);
    }
    if (!found)
        other_users_note_strange(&agent->other_users, uid, clock_ms());
    if (unlogged)
        log_note("PMIx: refused a connection of user %u: only processes of user %u may connect",
                 (unsigned)uid, (unsigned)geteuid());
}

static void send_abort(void *arg, uint32_t rank, int status, const char *text)
{
    struct agent *agent = arg;
    Drarun__Wire__Abort message = DRARUN__WIRE__ABORT__INIT;
    message.rank = rank;
    message.status = status;
    message.text = unconst(text);
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(ABORT, abort, &message);
    agent_send(agent, &envelope);
}

static void send_late_aborts(struct agent *agent)
{
    late_aborts_tell(&agent->late_aborts, SIZE_MAX, send_abort, agent);
}

static void on_late_abort(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    send_late_aborts(arg);
}

/* False without memory. */
static bool start_late_abort_clock(struct agent *agent)
{
    struct timeval latest = timeval_from_ms(LATE_ABORT_MS);
    if (!agent->late_abort_clock)
        agent->late_abort_clock = evtimer_new(agent->base, on_late_abort, agent);
    return agent->late_abort_clock && (!late_aborts_empty(&agent->late_aborts) ||
                                       evtimer_add(agent->late_abort_clock, &latest) == 0);
}

void agent_rank_abort(struct agent *agent, uint32_t rank, int status, const char *text)
{
    bool waits = agent->ranks && ranks_any_dying(agent->ranks, rank);
    if (!waits || !start_late_abort_clock(agent) ||
        late_aborts_add(&agent->late_aborts, rank, status, text, ranks_signs(agent->ranks)) < 0)
        send_abort(agent, rank, status, text);
}

void agent_on_output(void *arg, uint32_t rank, enum rank_stream stream, const void *data,
                     size_t length, bool partial)
{
    struct agent *agent = arg;
    Drarun__Wire__Output message = DRARUN__WIRE__OUTPUT__INIT;
    agent->output_bytes += length;
    message.rank = rank;
    message.stream = stream == RANK_STDOUT ? DRARUN__WIRE__STREAM__STREAM_STDOUT
                                           : DRARUN__WIRE__STREAM__STREAM_STDERR;
    message.data.data = unconst(data);
    message.data.len = length;
    message.partial = partial;
    if (agent->launcher.lost || agent->launcher.heir) { /* nobody will give the credit back */
        ranks_output_done(agent->ranks, length);
        return;
    }
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(OUTPUT, output, &message);
    agent_send(agent, &envelope);
}

void agent_forgive_output(struct agent *agent)
{
    if (agent->ranks)
        ranks_output_done(agent->ranks, SIZE_MAX);
}

void agent_on_input_done(void *arg, size_t bytes)
{
    Drarun__Wire__InputAck message = DRARUN__WIRE__INPUT_ACK__INIT;
    message.bytes = bytes;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(INPUT_ACK, input_ack, &message);
    agent_send(arg, &envelope);
}

/* What the rank's servers still hold of it is read before anyone judges its end. */
bool agent_on_reaped(void *arg, const struct rank_result *result)
{
    struct agent *agent = arg;
    if (agent->servers.pmix)
        pmix_host_drain(agent->servers.pmix);
    if (agent_pmi1(agent, result->rank))
        pmi1_host_drain(agent_pmi1(agent, result->rank), result->rank);
    if (result->signo != 0 || result->code != 0)
        agent->session.out_of_order = true;
    int64_t index = agent_job_local_index(&agent->job, result->rank);
    return index >= 0 && agent->rank[index].api == RANK_API_PMIX && !agent->rank[index].finalized;
}

void agent_on_ended(void *arg, const struct rank_result *result)
{
    struct agent *agent = arg;
    int64_t index = agent_job_local_index(&agent->job, result->rank);
    const struct agent_rank *rank = &agent->rank[index < 0 ? 0 : index];
    Drarun__Wire__RankEnd message = DRARUN__WIRE__RANK_END__INIT;
    message.rank = result->rank;
    message.code = result->code;
    message.signo = (uint32_t)result->signo;
    message.core = result->core;
    message.oom = result->oom;
    message.pid = (uint32_t)result->pid;
    message.ran_us = (uint64_t)result->ran_us;
    message.user_us = (uint64_t)result->user_us;
    message.system_us = (uint64_t)result->system_us;
    message.max_rss_kib = result->max_rss_kib;
    message.api = rank->api == RANK_API_PMIX   ? DRARUN__WIRE__API__API_PMIX
                  : rank->api == RANK_API_PMI1 ? DRARUN__WIRE__API__API_PMI1
                                               : DRARUN__WIRE__API__API_NONE;
    message.finalized = rank->finalized;
    message.by_us = result->by_us;
    message.mpi_library = agent->looks.mpi_library;
    if (rank->refusal)
        message.advice = rank->refusal;
    else if (result->signo > 0 && result->signo == rank->asked)
        message.advice = unconst("a rank or a tool asked drarun to send it (PMIx_Job_control)");
    message.stderr_tail.data = unconst(result->stderr_tail);
    message.stderr_tail.len = result->stderr_tail_length;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(RANK_END, rank_end, &message);
    late_aborts_tell_of(&agent->late_aborts, result->rank, send_abort, agent);
    agent_send(agent, &envelope);
    if (result->rank == 0)
        agent_mpirun_ended(agent);
    late_aborts_tell(&agent->late_aborts, ranks_told(agent->ranks), send_abort, agent);
}

void agent_on_stuck(void *arg, uint32_t rank, pid_t pid, size_t more)
{
    struct agent *agent = arg;
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    buf_printf(&text, "rank %u on %s (process %d)", rank, agent->job.host, (int)pid);
    if (more > 0)
        buf_printf(&text, " and %zu more", more);
    buf_printf(&text,
               " %s not ended within %d s of SIGKILL: the kernel is not done with %s (a driver, a "
               "file system, much memory), or a debugger holds %s",
               more > 0 ? "have" : "has", RANKS_STUCK_MS / 1000, more > 0 ? "them" : "it",
               more > 0 ? "them" : "it");
    if (text.failed)
        return;
    if (agent_has_launcher(agent))
        agent_send_note(agent, text.data);
    else
        log_error("%s", text.data);
}

void agent_on_settled(void *arg)
{
    struct agent *agent = arg;
    send_late_aborts(agent);
    agent_send_pong(agent, agent->launcher.asked);
}
