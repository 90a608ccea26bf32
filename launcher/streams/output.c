/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/streams/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "launcher/streams/lines.h"
#include "launcher/streams/output_files.h"

/* How long others wait for an unfinished line. Only time in which all that came is written counts:
 * while the reader is slow, the agent may lack the credit for the rest of the line. */
#define LINE_WAIT_MS 1000

/* Bytes in a sink's queue that belong to one agent. */
struct segment {
    STAILQ_ENTRY(segment) link;
    uint64_t end; /* as counted by sink_added */
    uint32_t agent;
    size_t credit;
};

STAILQ_HEAD(segment_list, segment);

/* Where our stdout, our stderr, or both (when they are the same file) go. */
struct destination {
    struct output *output;
    bool streams[OUTPUT_STDERR + 1];
    struct lines *lines[OUTPUT_STDERR + 1]; /* by stream; one for both unless they are framed */
    struct sink *sink;
    struct segment_list queued;
    struct event *line_clock;
    bool line_waits; /* others wait for an unfinished line */
    bool read;       /* by a sink_reader */
    bool busy;       /* not idle at last sight */
};

struct output {
    struct event_base *base;
    struct output_owner owner;
    struct output_files *files;
    struct destination *to[OUTPUT_STDERR + 1]; /* by stream; both may be the same */
    bool failed;
};

static bool destination_idle(const struct destination *d)
{
    return !d || (STAILQ_EMPTY(&d->queued) && sink_done(d->sink) == sink_added(d->sink));
}

/* Level-triggered: looks at the state, whatever has happened. */
static void look(struct destination *d)
{
    bool was_busy = d->busy;
    d->busy = !destination_idle(d);
    if (was_busy && output_idle(d->output))
        d->output->owner.idle(d->output->owner.arg);
}

static void give_back(struct destination *d)
{
    struct output *output = d->output;
    struct segment *segment;
    while ((segment = STAILQ_FIRST(&d->queued)) && segment->end <= sink_done(d->sink)) {
        STAILQ_REMOVE_HEAD(&d->queued, link);
        output->owner.credit(output->owner.arg, segment->agent, segment->credit);
        free(segment);
    }
}

/* Restarts the clock. */
static void wait_for_line(struct destination *d)
{
    struct timeval after = timeval_from_ms(LINE_WAIT_MS);
    if (d->line_waits && destination_idle(d))
        evtimer_add(d->line_clock, &after);
}

static void on_progress(void *arg)
{
    struct destination *d = arg;
    give_back(d);
    wait_for_line(d);
    look(d);
}

static void report_failure(struct output *output, const struct drarun_error *err)
{
    if (!output->failed)
        output->owner.failed(output->owner.arg, err);
    output->failed = true;
}

static void on_broken(void *arg, const struct drarun_error *err)
{
    struct destination *d = arg;
    struct output *output = d->output;
    if (sink_has_hung_up(d->sink)) { /* SIGHUP ends a job that is to end with its terminal */
        log_verbose("%s; what is for it is dropped", err->text);
        return;
    }
    if (err->code != EPIPE)
        report_failure(output, err);
    for (int stream = OUTPUT_STDOUT; stream <= OUTPUT_STDERR; stream++)
        if (err->code == EPIPE && !d->read && d->streams[stream])
            output->owner.closed(output->owner.arg, (enum output_stream)stream);
}

static void put(struct destination *d, const void *data, size_t length)
{
    const struct output_owner *owner = &d->output->owner;
    sink_add(d->sink, data, length);
    if (owner->written)
        owner->written(owner->arg, data, length);
}

static void on_emit(void *arg, uint32_t agent, size_t credit, const void *data, size_t length)
{
    struct destination *d = arg;
    struct output *output = d->output;
    output->owner.before(output->owner.arg);
    put(d, data, length);
    if (sink_done(d->sink) == sink_added(d->sink)) {
        give_back(d);
        output->owner.credit(output->owner.arg, agent, credit);
        return;
    }
    struct segment *segment = malloc(sizeof *segment);
    if (!segment) {
        struct drarun_error err = {0};
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ENOMEM, "out of memory for output");
        sink_discard(d->sink);
        report_failure(output, &err);
        give_back(d);
        output->owner.credit(output->owner.arg, agent, credit);
        return;
    }
    *segment = (struct segment){.end = sink_added(d->sink), .agent = agent, .credit = credit};
    STAILQ_INSERT_TAIL(&d->queued, segment, link);
}

static void on_waiting(void *arg, bool waits)
{
    struct destination *d = arg;
    d->line_waits = waits;
    evtimer_del(d->line_clock);
    wait_for_line(d);
}

static void break_lines(struct destination *d)
{
    for (int stream = OUTPUT_STDOUT; stream <= OUTPUT_STDERR; stream++)
        lines_break(d->lines[stream]);
}

static void on_line_clock(evutil_socket_t fd, short what, void *arg)
{
    struct destination *d = arg;
    (void)fd, (void)what;
    if (!destination_idle(d)) /* on_progress starts the clock again */
        return;
    break_lines(d);
    look(d);
}

static void destination_free(struct destination *d)
{
    if (!d)
        return;
    if (d->lines[OUTPUT_STDERR] != d->lines[OUTPUT_STDOUT])
        lines_free(d->lines[OUTPUT_STDERR]);
    lines_free(d->lines[OUTPUT_STDOUT]);
    sink_free(d->sink);
    if (d->line_clock)
        event_free(d->line_clock);
    while (!STAILQ_EMPTY(&d->queued)) {
        struct segment *segment = STAILQ_FIRST(&d->queued);
        STAILQ_REMOVE_HEAD(&d->queued, link);
        free(segment);
    }
    free(d);
}

static void make_lines(struct destination *d, uint32_t ranks, enum output_form form)
{
    static const enum lines_form forms[] = {
        [OUTPUT_PLAIN] = LINES_PLAIN,
        [OUTPUT_LABELLED] = LINES_LABELLED,
        [OUTPUT_FRAMED] = LINES_FRAMED,
    };
    struct lines_owner owner = {on_emit, on_waiting, d};
    d->lines[OUTPUT_STDOUT] = lines_new(ranks, forms[form], &owner);
    d->lines[OUTPUT_STDERR] = form == OUTPUT_FRAMED ? lines_new(ranks, LINES_FRAMED_ERR, &owner)
                                                    : d->lines[OUTPUT_STDOUT];
}

static struct destination *destination_new(struct output *output, int fd, const char *name,
                                           uint32_t ranks, enum output_form form)
{
    struct destination *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->output = output;
    STAILQ_INIT(&d->queued);
    struct sink_owner sink_owner = {on_progress, on_broken, d};
    make_lines(d, ranks, form);
    d->sink = sink_new(output->base, fd, name, &sink_owner);
    d->line_clock = evtimer_new(output->base, on_line_clock, d);
    if (!d->lines[OUTPUT_STDOUT] || !d->lines[OUTPUT_STDERR] || !d->sink || !d->line_clock) {
        destination_free(d);
        return NULL;
    }
    return d;
}

static int open_streams(struct output *output, uint32_t ranks, const struct output_options *options)
{
    struct destination **to = output->to;
    enum output_form form = options->form;
    const struct sink_reader *reader = options->reader;
    bool framed = form == OUTPUT_FRAMED;
    to[OUTPUT_STDERR] = destination_new(output, framed ? STDOUT_FILENO : STDERR_FILENO,
                                        framed ? "standard output" : "standard error", ranks, form);
    if (!to[OUTPUT_STDERR])
        return -ENOMEM;
    to[OUTPUT_STDERR]->streams[OUTPUT_STDERR] = true;
    if (output->files)
        return 0; /* stderr is for what we say ourselves */
    to[OUTPUT_STDOUT] = to[OUTPUT_STDERR];
    if (!framed && (reader || !sink_is_same_file(STDOUT_FILENO, STDERR_FILENO)))
        to[OUTPUT_STDOUT] = destination_new(output, STDOUT_FILENO, "standard output", ranks, form);
    if (!to[OUTPUT_STDOUT])
        return -ENOMEM;
    to[OUTPUT_STDOUT]->streams[OUTPUT_STDOUT] = true;
    to[OUTPUT_STDOUT]->read = reader != NULL;
    if (reader)
        sink_set_reader(to[OUTPUT_STDOUT]->sink, reader);
    return 0;
}

struct output *output_new(struct event_base *base, uint32_t ranks,
                          const struct output_options *options, const struct output_owner *owner,
                          struct drarun_error *err)
{
    struct output *output = calloc(1, sizeof *output);
    if (!output) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    output->base = base;
    output->owner = *owner;
    int rc = 0;
    if (options->dir) {
        output->files = output_files_new(options->dir, ranks, err);
        rc = output->files ? 0 : -EIO;
    }
    if (rc == 0 && open_streams(output, ranks, options) < 0)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc < 0) {
        output_free(output);
        return NULL;
    }
    return output;
}

static int grow_lines(struct destination *d, uint32_t ranks)
{
    int rc = lines_grow(d->lines[OUTPUT_STDOUT], ranks);
    return rc < 0 ? rc : lines_grow(d->lines[OUTPUT_STDERR], ranks);
}

int output_grow(struct output *output, uint32_t ranks, struct drarun_error *err)
{
    int rc = output->files ? output_files_grow(output->files, ranks, err) : 0;
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < ARRAY_LEN(output->to); i++)
        if (output->to[i] && grow_lines(output->to[i], ranks) < 0)
            return error_set(err, ENOMEM, "out of memory");
    return 0;
}

void output_free(struct output *output)
{
    if (!output)
        return;
    if (output->to[OUTPUT_STDERR] != output->to[OUTPUT_STDOUT])
        destination_free(output->to[OUTPUT_STDERR]);
    destination_free(output->to[OUTPUT_STDOUT]);
    output_files_free(output->files);
    free(output);
}

static void add_to_file(struct output *output, uint32_t agent, uint32_t rank,
                        enum output_stream stream, const void *data, size_t length)
{
    struct drarun_error err = {0};
    if (output_files_write(output->files, rank, stream, data, length, &err) < 0)
        report_failure(output, &err);
    output->owner.credit(output->owner.arg, agent, length);
}

void output_add(struct output *output, uint32_t agent, uint32_t rank, enum output_stream stream,
                const void *data, size_t length, bool partial)
{
    if (output->files) {
        add_to_file(output, agent, rank, stream, data, length);
        return;
    }
    struct destination *d = output->to[stream];
    if (lines_add(d->lines[stream], agent, rank, data, length, partial) < 0) {
        struct drarun_error err = {0};
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ENOMEM, "out of memory for output");
        report_failure(output, &err);
        output->owner.credit(output->owner.arg, agent, length);
    }
    d->busy = !destination_idle(d);
}

void output_rank_ended(struct output *output, uint32_t rank)
{
    for (int stream = OUTPUT_STDOUT; !output->files && stream <= OUTPUT_STDERR; stream++) {
        struct destination *d = output->to[stream];
        lines_rank_ended(d->lines[stream], rank);
        d->busy = !destination_idle(d);
    }
}

void output_finish(struct output *output)
{
    for (int stream = OUTPUT_STDOUT; !output->files && stream <= OUTPUT_STDERR; stream++) {
        struct destination *d = output->to[stream];
        lines_finish(d->lines[stream]);
        d->busy = !destination_idle(d);
    }
}

void output_say(struct output *output, const char *line, size_t length)
{
    struct destination *d = output->to[OUTPUT_STDERR];
    output->owner.before(output->owner.arg);
    put(d, line, length);
    d->busy = !destination_idle(d);
}

bool output_idle(const struct output *output)
{
    return destination_idle(output->to[OUTPUT_STDOUT]) &&
           destination_idle(output->to[OUTPUT_STDERR]);
}

uint64_t output_written(const struct output *output)
{
    uint64_t bytes = 0;
    for (int stream = OUTPUT_STDOUT; stream <= OUTPUT_STDERR; stream++)
        bytes += output->to[stream] ? sink_written(output->to[stream]->sink) : 0;
    return bytes;
}

static void discard(struct destination *d)
{
    sink_discard(d->sink);
    break_lines(d);
    give_back(d);
    d->busy = !destination_idle(d);
}

void output_discard(struct output *output)
{
    for (int stream = OUTPUT_STDOUT; stream <= OUTPUT_STDERR; stream++)
        if (output->to[stream])
            discard(output->to[stream]);
}

void output_discard_stalled(struct output *output)
{
    for (int stream = OUTPUT_STDOUT; stream <= OUTPUT_STDERR; stream++)
        if (!destination_idle(output->to[stream]))
            discard(output->to[stream]);
}
