/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/inventory/metadata.h"
#include "launcher/job/private.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/wire/hello.h"

#define NOTES_HELD_MS 1500 /* at most, while others may say the same */

/* A message that cannot be: the agent is broken, or none of ours. */
static void refuse(struct agent *agent, const char *what)
{
    struct drarun_error err = {0};
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, EPROTO, "it sent %s", what);
    agent_lose(agent, &err);
}

static bool is_its_rank(const struct agent *agent, uint32_t rank)
{
    const struct job *job = agent->job;
    return rank < job->map.ranks && rankmap_worker(&job->map, rank) == agent->index;
}

/* Also of one that has ended: it may have left a process, which connects or aborts in its name. */
static bool has_rank(struct agent *agent, uint32_t rank)
{
    if (is_its_rank(agent, rank))
        return true;
    refuse(agent, "an event of a rank that it does not have");
    return false;
}

static void on_hello(struct agent *agent, const Drarun__Wire__Hello *hello)
{
    struct job *job = agent->job;
    struct drarun_error err = {0};
    const char *pmix = "";
    char *host = strdup(hello->host), *cpu_list = strdup(hello->cpu_list);
    if (!host || !cpu_list) {
        free(host);
        free(cpu_list);
        refuse(agent, "a hello when we were out of memory");
        return;
    }
    free(agent->host);
    free(agent->cpu_list);
    agent->host = host;
    agent->cpu_list = cpu_list;
    /* fence data of one libpmix means nothing to another: all must be as the first that came */
    for (uint32_t i = 0; i < job->count && !pmix[0]; i++)
        pmix = job->agents[i].pmix;
    bool entry = job->request->pods && job->request->pods->entry;
    if (hello_check(hello, pmix, &err) < 0 || (entry && hello_check_release(hello, &err) < 0)) {
        agent_lose(agent, &err);
        return;
    }
    agent->cpus = hello->cpus;
    agent->reaches = hello->fabric == DRARUN__WIRE__FABRIC__FABRIC_REACH;
    snprintf(agent->pmix, sizeof agent->pmix, "%s", hello->pmix);
    if (hello->launched) { /* nothing of it is ours but its end */
        char name[128];
        agent->launched = true;
        agent_name(agent, name, sizeof name);
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, EBUSY,
                   "%s still has the job of a launcher that is gone: that job is ended first",
                   name);
        job_fail(job, &err);
        return;
    }
    const struct log_about about = agent_about(agent);
    log_about(&about, LOG_VERBOSE, "worker %u: %s, drarun-worker %s, libpmix %s, %u CPUs",
              agent->index, hello->host, hello->build, hello->pmix, hello->cpus);
}

/* NAME=VALUE, NAME or PREFIX*. */
static bool is_path(const char *item)
{
    size_t name = strcspn(item, "="), length = strlen(item);
    if (name == length && length > 0 && item[length - 1] == '*')
        return strncmp("PATH", item, length - 1) == 0;
    return name == 4 && strncmp(item, "PATH", name) == 0;
}

static bool sets_path(const struct job_request *request)
{
    bool sets = request->inherit != NULL;
    for (size_t i = 0; i < request->program_count; i++)
        for (size_t k = 0; k < request->programs[i].env.count; k++)
            sets |= is_path(request->programs[i].env.items[k]);
    return sets;
}

static bool sets_wd(const struct job_request *request)
{
    bool sets = false;
    for (size_t i = 0; i < request->program_count; i++)
        sets |= request->programs[i].wd != NULL;
    return sets;
}

/* A program was not found by what ranks have from an agent that was started by hand, and would have
 * from the caller under mpirun. */
static const char *advice(const struct job_request *request, const Drarun__Wire__Failure *failure)
{
    static const char path[] = " in PATH";
    size_t length = strlen(failure->text), end = sizeof path - 1;
    if (failure->kind != DRARUN_ERR_NOT_FOUND || !request->agents || request->alloc_agents)
        return "";
    if (length > end && strcmp(failure->text + length - end, path) == 0)
        return sets_path(request) ? "" : "; PATH is the agent's: -x PATH passes yours on";
    if (strncmp(failure->text, "no program ", 11) == 0 && strstr(failure->text, " in /"))
        return sets_wd(request) ? "" : ", where its agent was started: --wd DIR is another place";
    return "";
}

/* The agent itself has too little of something; what it says of its neighbours has other codes. */
static bool is_lack(int code)
{
    return code == ENOMEM || code == EAGAIN || code == EMFILE || code == ENFILE || code == ENOSPC;
}

static void on_failure(struct agent *agent, const Drarun__Wire__Failure *failure)
{
    struct drarun_error err = {0};
    char name[128];
    enum drarun_errkind kind = DRARUN_ERR_INFRASTRUCTURE;
    if (failure->kind > DRARUN_ERR_NONE && failure->kind <= DRARUN_ERR_TIMEOUT)
        kind = (enum drarun_errkind)failure->kind;
    error_kind(&err, kind, failure->code, "%s%s", failure->text,
               advice(agent->job->request, failure));
    if (!agent->job->early) {
        agent_name(agent, name, sizeof name);
        error_prefix(&err, "%s", name);
    }
    if (agent->phase == AGENT_GREETING) { /* it does not serve us */
        err = (struct drarun_error){0};
        error_kind(&err, kind, failure->code, "%s",
                   failure->code == EBUSY ? "it already serves another one" : failure->text);
        agent_refused(agent, &err);
        return;
    }
    /* the neighbours of a dead agent often notice before we do */
    if (kind == DRARUN_ERR_INFRASTRUCTURE && agent->job->remote && is_lack(failure->code))
        job_fail_worker(agent, &err); /* that its peers lose it may be known before */
    else if (kind == DRARUN_ERR_INFRASTRUCTURE && agent->job->remote)
        job_hear(agent->job, &err);
    else
        job_fail(agent->job, &err);
}

static void on_inspection(struct agent *agent, const Drarun__Wire__Inspection *inspection)
{
    json_error_t why;
    json_t *document = json_loads(inspection->document, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(document) || agent->inspection) {
        json_decref(document);
        refuse(agent, "an inspection that is not a JSON object, or a second one");
        return;
    }
    struct drarun_error err = {0};
    agent->inspection = document;
    if (metadata_decode_files(json_object_get(document, "probe"), &err) < 0)
        job_fail(agent->job, &err);
}

static void on_vitals(const struct agent *agent, const Drarun__Wire__Vitals *vitals)
{
    const struct request_pods *pods = agent->job->request->pods;
    struct job_watch *watch = agent->job->liveness.watch;
    if (watch)
        job_watch_take(watch, agent->index, vitals);
    if (pods && pods->vitals)
        pods->vitals(pods->arg, agent->index, vitals);
}

static void on_reach(struct agent *agent, const Drarun__Wire__Reach *reach)
{
    struct drarun_error err = {0};
    struct job_reach *awaited = agent->job->preflight.reach;
    if (awaited && job_reach_take(awaited, agent->index, reach, &err) < 0)
        refuse(agent, err.text);
}

/* All ranks get SIGTERM and their time to save what they have; the job is over. */
static void on_evicted(struct agent *agent, const Drarun__Wire__Evicted *evicted)
{
    struct drarun_error err = {0};
    char name[128];
    agent_name(agent, name, sizeof name);
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ESHUTDOWN, "%s is being removed: %s", name,
               evicted->reason);
    agent->leaves = true;
    if (agent->job->request->pods) {
        job_tell_leave(agent);
        job_leave(agent->job);
    }
    job_fail_worker(agent, &err);
}

/* All workers may say the same, one after another. A wait gives its reason within two seconds. */
static bool hold_note(struct agent *agent, const char *text)
{
    struct job *job = agent->job;
    if (job->early || job->state >= JOB_RUNNING)
        return false;
    int rc = notes_add(&job->notes.held, agent->index, text);
    if (rc == -ENOSPC) {
        job_say_notes(job);
        rc = notes_add(&job->notes.held, agent->index, text);
    }
    if (rc < 0)
        return false;
    if (!event_pending(job->notes.clock, EV_TIMEOUT, NULL) &&
        job_start_clock(job->notes.clock, NOTES_HELD_MS) < 0)
        job_say_notes(job);
    return true;
}

static void on_note(struct agent *agent, const Drarun__Wire__Note *note)
{
    if (hold_note(agent, note->text))
        return;
    job_say_notes(agent->job); /* what came before */
    console_clear(agent->job->console);
    job_say_note(&agent->index, 1, note->text, agent->job);
}

static enum cause_api api_of(Drarun__Wire__Api api)
{
    switch (api) {
    case DRARUN__WIRE__API__API_PMIX:
        return CAUSE_API_PMIX;
    case DRARUN__WIRE__API__API_PMI1:
        return CAUSE_API_PMI1;
    default:
        return CAUSE_API_NONE;
    }
}

static void count_rank(struct job *job, const Drarun__Wire__RankEnd *end)
{
    job->rank_ended[end->rank] = 1;
    job->facts.user_us += end->user_us;
    job->facts.system_us += end->system_us;
    if (end->max_rss_kib > job->facts.max_rss_kib)
        job->facts.max_rss_kib = end->max_rss_kib;
    if (end->mpi_library && end->api == DRARUN__WIRE__API__API_NONE)
        job->mpi_library_ranks++;
}

/* The others go on, perhaps for long. */
static void tell_failed(struct job *job, uint32_t index)
{
    struct buf text = BUF_INIT;
    if (cause_ended(job->cause) == job->map.ranks)
        return; /* the report follows at once */
    cause_explain_failed(job->cause, index, &text);
    console_clear(job->console);
    if (index < CAUSE_FAILED_SHOWN && text.data && !text.failed)
        log_note("%s; the other ranks continue", text.data);
    else if (index == CAUSE_FAILED_SHOWN)
        log_note("more ranks have failed: the report of the job's end has their number, and "
                 "--report FILE all of them");
    buf_done(&text);
}

static void on_rank_end(struct agent *agent, const Drarun__Wire__RankEnd *wire)
{
    struct job *job = agent->job;
    if (!has_rank(agent, wire->rank))
        return;
    if (job->rank_ended[wire->rank]) {
        refuse(agent, "the end of a rank that has ended before");
        return;
    }
    count_rank(job, wire);
    output_rank_ended(job->output, wire->rank);
    if (job->input.source && wire->rank < job->spawning.first_ranks &&
        (job->input.rank < 0 || (uint32_t)job->input.rank == wire->rank) && --job->input.left == 0)
        input_stop(job->input.source);
    struct cause_end end = {
        .rank = wire->rank,
        .worker = agent->index,
        .host = agent->host,
        .code = wire->code,
        .signo = (int)wire->signo,
        .core = wire->core,
        .oom = wire->oom,
        .ran_us = (int64_t)wire->ran_us,
        .api = api_of(wire->api),
        .finalized = wire->finalized,
        .by_us = wire->by_us,
        .advice = wire->advice,
        .stderr_tail = (const char *)wire->stderr_tail.data,
        .stderr_tail_length = wire->stderr_tail.len,
    };
    uint32_t failed = cause_failed(job->cause);
    job_caused(job, cause_rank_end(job->cause, &end));
    if (cause_failed(job->cause) > failed)
        tell_failed(job, failed);
}

static void on_output(struct agent *agent, const Drarun__Wire__Output *output)
{
    struct job *job = agent->job;
    enum output_stream stream = OUTPUT_STDOUT;
    if (output->stream == DRARUN__WIRE__STREAM__STREAM_STDERR)
        stream = OUTPUT_STDERR;
    else if (output->stream != DRARUN__WIRE__STREAM__STREAM_STDOUT) {
        refuse(agent, "output of an unknown stream");
        return;
    }
    if (!is_its_rank(agent,
                     output->rank)) { /* one that has ended may have left a child that writes */
        refuse(agent, "output of a rank that it does not have");
        return;
    }
    if (agent->held + output->data.len > JOB_HELD_MAX) {
        refuse(agent, "more output than it was given room for");
        return;
    }
    agent->held += output->data.len;
    output_add(job->output, agent->index, output->rank, stream, output->data.data, output->data.len,
               output->partial);
    console_mark(job->console);
}

static void on_abort(struct agent *agent, const Drarun__Wire__Abort *abort)
{
    struct job *job = agent->job;
    if (has_rank(agent, abort->rank))
        job_caused(job, cause_abort(job->cause, abort->rank, agent->index, agent->host,
                                    abort->status, abort->text));
}

static void on_name_request(struct agent *agent, const Drarun__Wire__NameRequest *request)
{
    Drarun__Wire__NameReply reply = DRARUN__WIRE__NAME_REPLY__INIT;
    if (!request->pmix && !has_rank(agent, request->rank))
        return;
    if (!job_names_ask(agent->job->names, agent->index, agent->pmix, request, &reply))
        return;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(NAME_REPLY, name_reply, &reply);
    agent_send(agent, &envelope);
}

void job_on_found(void *arg, uint32_t worker, const Drarun__Wire__NameReply *reply)
{
    struct job *job = arg;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(NAME_REPLY, name_reply, unconst(reply));
    agent_send(&job->agents[worker], &envelope);
}

void job_on_met(void *arg, uint32_t worker, const Drarun__Wire__MeetReply *reply)
{
    struct job *job = arg;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(MEET_REPLY, meet_reply, unconst(reply));
    agent_send(&job->agents[worker], &envelope);
}

static void on_spawn_request(struct agent *agent, Drarun__Wire__Envelope *message)
{
    const Drarun__Wire__SpawnRequest *request = message->spawn_request;
    for (size_t i = 0; i < request->n_apps; i++)
        if (!request->apps[i]->app) { /* an empty one is refused by those who are to start it */
            refuse(agent, "a request for ranks that names no program");
            return;
        }
    if (has_rank(agent, request->rank))
        job_spawn_asked(agent->job->spawning.requests, agent, message);
}

static void on_input_ack(struct agent *agent, const Drarun__Wire__InputAck *ack)
{
    struct job *job = agent->job;
    uint32_t index = job->input.rank == REQUEST_STDIN_ALL ? agent->index : 0;
    if (!job->input.source || !input_passed(job->input.source, index, ack->bytes))
        refuse(agent, "an acknowledgement of input that it was not given");
}

static void on_file(struct agent *agent, const Drarun__Wire__File *file)
{
    struct job *job = agent->job;
    struct drarun_error err = {0};
    Drarun__Wire__FileTaken taken = DRARUN__WIRE__FILE_TAKEN__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(FILE_TAKEN, file_taken, &taken);
    if (!job->files)
        refuse(agent, "a file that it was not asked for");
    else if (job_files_take(job->files, agent->index, file, &err) < 0)
        refuse(agent, err.text);
    else
        agent_send(agent, &envelope);
}

static void on_done(struct agent *agent)
{
    struct drarun_error err = {0};
    uint32_t missing = 0;
    struct job *job = agent->job;
    for (size_t i = 0; i < job->map.block_count; i++) {
        const struct rank_block *block = &job->map.blocks[i];
        for (uint32_t r = 0; block->worker == agent->index && r < block->count; r++)
            missing += !job->rank_ended[block->first + r];
    }
    if (missing == 0 || job->hearsay.error.code || job->state >= JOB_ENDING)
        return;
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, EPROTO,
               "worker %u was done before %u of its ranks had ended", agent->index, missing);
    job_fail(job, &err);
}

/* An agent in a pod has greeted when it has told what it holds, too. */
static enum agent_event event_of(const struct agent *agent, const Drarun__Wire__Envelope *message)
{
    bool pods = agent->job->request->pods != NULL;
    switch (message->body_case) {
    case DRARUN__WIRE__ENVELOPE__BODY_HELLO:
        return pods && !message->hello->launched ? AGENT_TELL : AGENT_HELLO;
    case DRARUN__WIRE__ENVELOPE__BODY_INSPECTION:
        return pods ? AGENT_HELLO : AGENT_TELL;
    case DRARUN__WIRE__ENVELOPE__BODY_READY:
        return AGENT_READY;
    case DRARUN__WIRE__ENVELOPE__BODY_DONE:
        return AGENT_ENDED;
    case DRARUN__WIRE__ENVELOPE__BODY_FAILURE:
    case DRARUN__WIRE__ENVELOPE__BODY_NOTE:
    case DRARUN__WIRE__ENVELOPE__BODY_PONG:
    case DRARUN__WIRE__ENVELOPE__BODY_INPUT_ACK:
    case DRARUN__WIRE__ENVELOPE__BODY_EVICTED:
    case DRARUN__WIRE__ENVELOPE__BODY_VITALS:
    case DRARUN__WIRE__ENVELOPE__BODY_GROUP_READY:
    case DRARUN__WIRE__ENVELOPE__BODY_REACH:
        return AGENT_TELL;
    case DRARUN__WIRE__ENVELOPE__BODY_RANK_END:
    case DRARUN__WIRE__ENVELOPE__BODY_ABORT:
    case DRARUN__WIRE__ENVELOPE__BODY_CONNECTED:
    case DRARUN__WIRE__ENVELOPE__BODY_OUTPUT:
    case DRARUN__WIRE__ENVELOPE__BODY_SPAWN_REQUEST:
    case DRARUN__WIRE__ENVELOPE__BODY_NAME_REQUEST:
    case DRARUN__WIRE__ENVELOPE__BODY_MEET_REQUEST:
    case DRARUN__WIRE__ENVELOPE__BODY_FILE:
        return AGENT_WORK;
    default:
        return 0;
    }
}

static void take(struct agent *agent, Drarun__Wire__Envelope *message)
{
    switch (message->body_case) {
    case DRARUN__WIRE__ENVELOPE__BODY_HELLO:
        on_hello(agent, message->hello);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_FAILURE:
        on_failure(agent, message->failure);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_NOTE:
        on_note(agent, message->note);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_RANK_END:
        on_rank_end(agent, message->rank_end);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_OUTPUT:
        on_output(agent, message->output);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_ABORT:
        on_abort(agent, message->abort);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_CONNECTED:
        if (has_rank(agent, message->connected->rank))
            job_caused(agent->job, cause_connected(agent->job->cause, message->connected->rank,
                                                   api_of(message->connected->api)));
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_INPUT_ACK:
        on_input_ack(agent, message->input_ack);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_INSPECTION:
        on_inspection(agent, message->inspection);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_REACH:
        on_reach(agent, message->reach);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_VITALS:
        on_vitals(agent, message->vitals);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_EVICTED:
        on_evicted(agent, message->evicted);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_SPAWN_REQUEST:
        on_spawn_request(agent, message);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_NAME_REQUEST:
        on_name_request(agent, message->name_request);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_MEET_REQUEST:
        job_names_meet(agent->job->names, agent->index, agent->pmix, message->meet_request);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_GROUP_READY:
        job_spawn_ready(agent->job->spawning.requests, agent, message->group_ready);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_FILE:
        on_file(agent, message->file);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_DONE:
        on_done(agent);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_PONG:
        if (message->pong->ask != 0)
            agent->settled = message->pong->ask;
        break;
    default: /* ready: the phase says it all */
        break;
    }
}

void agent_on_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    struct agent *agent = arg;
    struct job *job = agent->job;
    (void)channel;
    agent->heard_ms = clock_ms();
    enum agent_event event = event_of(agent, message);
    if (!event)
        refuse(agent, "a message that only a launcher or another agent sends");
    else if (agent_advance(agent, event))
        take(agent, message);
    job_look(job);
}

/* ---- what goes to agents ---- */

void job_on_credit(void *arg, uint32_t index, size_t bytes)
{
    struct job *job = arg;
    struct agent *agent = &job->agents[index];
    agent->held -= bytes;
    agent->unsaid += bytes;
    if (agent->unsaid < JOB_ACK_BYTES)
        return;
    Drarun__Wire__OutputAck ack = DRARUN__WIRE__OUTPUT_ACK__INIT;
    ack.bytes = agent->unsaid;
    agent->unsaid = 0;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(OUTPUT_ACK, output_ack, &ack);
    agent_send(agent, &envelope);
}

/* Ranks that are ending may still say so: SIGPIPE would kill them before they have cleaned up. */
void job_on_output_closed(void *arg, enum output_stream stream)
{
    const struct job *job = arg;
    Drarun__Wire__OutputClosed closed = DRARUN__WIRE__OUTPUT_CLOSED__INIT;
    closed.stream = stream == OUTPUT_STDOUT ? DRARUN__WIRE__STREAM__STREAM_STDOUT
                                            : DRARUN__WIRE__STREAM__STREAM_STDERR;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(OUTPUT_CLOSED, output_closed, &closed);
    log_verbose("the reader of our %s is gone",
                stream == OUTPUT_STDOUT ? "standard output" : "standard error");
    if (job->state < JOB_ENDING)
        agents_send(arg, &envelope);
}

/* It may show amid anything, with a line of the log. */
void job_on_output_failed(void *arg, const struct drarun_error *err)
{
    struct job *job = arg;
    job_fail(job, err);
    if (job->clocks.look) /* else the first look takes it */
        job_start_clock(job->clocks.look, 0);
}

void job_on_input(void *arg, const void *data, size_t length)
{
    struct job *job = arg;
    Drarun__Wire__Input input = DRARUN__WIRE__INPUT__INIT;
    input.data.data = unconst(data);
    input.data.len = length;
    input.eof = length == 0;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(INPUT, input, &input);
    if (job->input.rank == REQUEST_STDIN_ALL)
        agents_send(job, &envelope);
    else
        agent_send(&job->agents[rankmap_worker(&job->map, (uint32_t)job->input.rank)], &envelope);
}
