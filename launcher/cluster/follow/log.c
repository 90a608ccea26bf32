/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/objects.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define AGAIN_MS 500  /* after a log that broke off */
#define DRAIN_MS 5000 /* drain timeout of a log whose launcher is gone */
#define ROTATED "its node keeps only the end of a log (the kubelet's containerLogMaxSize)"

static void on_output(void *arg, uint32_t rank, bool is_stderr, const char *data, size_t length)
{
    struct follow_log *log = arg;
    log->lines++;
    follow_output_add(log->output, rank, is_stderr, data, length);
}

static bool on_stamp(void *arg, const char *text, size_t length)
{
    struct follow_log *log = arg;
    follow_output_stamp(log->output, text, length);
    return log_place_pass(&log->at, text, length);
}

/* told: how many lines the launcher had written before this one. */
static void look_for_gap(struct follow_log *log, const json_t *told)
{
    if (!json_is_integer(told))
        return;
    uint64_t lines = (uint64_t)json_integer_value(told);
    if (lines > log->lines)
        log_note("%" PRIu64 " lines of the log of %s are missing here: " ROTATED,
                 lines - log->lines, log->pod);
    log->lines = lines; /* more of them: something else writes to it, too */
    log->marked = true;
}

static void on_own(void *arg, const char *line, size_t length)
{
    struct follow_log *log = arg;
    CLEANUP(json_decrefp) json_t *json = json_loadb(line, length, 0, NULL);
    const char *event = json_string_value(json_object_get(json, "event"));
    look_for_gap(log, json_object_get(json, "lines"));
    log->lines++;
    if (event && strcmp(event, "ended") == 0)
        follow_state_take_end(log->state, json), log->recorded = true;
    else if (!event)
        follow_output_own(log->output, json, line, length);
}

/* A launcher that fails before it leads writes no such line: whether it has may be known only after
 * its log's end. */
static void say_headless(struct follow_log *log)
{
    if (log->headless && !log->state->failed.code)
        log_note("the beginning of the log of %s is missing: " ROTATED, log->pod);
    log->headless = false;
}

/* All that there is was read. */
static void close_log(struct follow_log *log)
{
    json_t *lines = json_integer((json_int_t)follow_state_lines(log->state, log->pod));
    frames_end(&log->frames);
    log->closed = true;
    if (follow_state_lines(log->state, log->pod) > log->lines)
        look_for_gap(log, lines);
    else
        log->headless = !log->marked && (log->lines > 0 || log->final);
    json_decref(lines);
}

/* It has as many lines as the job's last document says, which may come later than the log's end. */
static bool is_long_enough(const struct follow_log *log)
{
    return log->eof && log->state->ended_ms && follow_state_lines(log->state, log->pod) > 0 &&
           log->lines >= follow_state_lines(log->state, log->pod);
}

void follow_log_init(struct follow_log *log)
{
    const struct frames_owner owner = {
        .output = on_output, .own = on_own, .stamp = on_stamp, .arg = log};
    frames_init(&log->frames, &owner);
}

void follow_log_done(struct follow_log *log)
{
    kube_stream_free(log->stream);
    frames_done(&log->frames);
    free(log->pod);
}

void follow_log_read(struct follow_log *log, const char *bytes, size_t length)
{
    log->heard_ms = clock_ms();
    log->err = (struct drarun_error){0};
    frames_add(&log->frames, bytes, length);
}

static void note_failure(struct follow_log *log, const struct drarun_error *err)
{
    log_verbose("the log ended early: %s", err->text);
    log->err = *err;
    if (err->code != EACCES)
        return;
    if (!log->once && !log->refused)
        log_error("%s", err->text);
    log->refused = true;
}

/* A log that is followed ends with its container, but for a connection that was closed on the way:
 * it has an end where its container had ended before.
 */
void follow_log_end(struct follow_log *log, const struct drarun_error *err)
{
    log->stream = NULL;
    if (err)
        note_failure(log, err);
    log->eof |= !err;
    if (!err && (log->once || log->final) && !log->recorded)
        close_log(log);
    else if (!log->recorded)
        log->again_ms = clock_ms() + AGAIN_MS;
}

bool follow_log_is_whole(const struct follow_log *log)
{
    return log->closed || is_long_enough(log);
}

static void open_log(struct follow_log *log)
{
    struct drarun_error err = {0};
    char since[TIMESTAMP_SIZE];
    const struct kube_log request = {
        .namespace_ = log->state->namespace,
        .pod = log->pod,
        .container = OBJECT_LAUNCHER_CONTAINER,
        .follow = !log->once,
        .tail = -1,
        .timestamps = true,
        .since_time = log_place_resume(&log->at, since),
    };
    log->again_ms = 0;
    log->final = follow_pod_has_ended(&log->state->pod, log->pod);
    frames_done(&log->frames);
    log->frames.line = (struct buf)BUF_INIT;
    if (kube_log_open(log->client, &request, log->events, log->arg, &log->stream, &err) < 0) {
        log_error("%s", err.text);
        log->err = err;
        log->again_ms = clock_ms() + AGAIN_MS;
    } else if (log->held) {
        kube_stream_pause(log->stream, true);
    }
}

/* The chosen pod's from now on, from its beginning. */
static void change_log(struct follow_log *log)
{
    char *pod = strdup(log->state->pod.name);
    log->change_ms = 0;
    if (!pod)
        return;
    say_headless(log);
    kube_stream_free(TAKE_PTR(log->stream));
    free(log->pod);
    log->pod = pod;
    log->lines = 0;
    log->marked = log->recorded = log->eof = log->closed = false;
    log->at = (struct log_place){0};
    open_log(log);
}

void follow_log_hold(struct follow_log *log, bool hold)
{
    if (log->held == hold)
        return;
    log->held = hold;
    if (log->stream)
        kube_stream_pause(log->stream, hold);
    if (hold)
        return;
    log->heard_ms = clock_ms();
    if (log->change_ms)
        log->change_ms = log->heard_ms + DRAIN_MS;
}

void follow_log_stop(struct follow_log *log)
{
    kube_stream_free(TAKE_PTR(log->stream));
    log->again_ms = log->change_ms = 0;
    say_headless(log);
}

/* What a launcher that is gone has written may still be on its way. */
void follow_log_change(struct follow_log *log)
{
    bool rest = log->stream && !follow_pod_is_alive(&log->state->pod, log->pod);
    if (!rest)
        change_log(log);
    else if (!log->change_ms)
        log->change_ms = clock_ms() + DRAIN_MS;
}

int64_t follow_log_do_due(struct follow_log *log, int64_t now)
{
    bool held = log->held && log->stream; /* its rest cannot come */
    if (log->change_ms && !held && (!log->stream || now >= log->change_ms))
        change_log(log);
    else if (log->again_ms && now >= log->again_ms)
        open_log(log);
    int64_t change_ms = held ? 0 : log->change_ms;
    bool sooner = log->again_ms && (!change_ms || log->again_ms < change_ms);
    return sooner ? log->again_ms : change_ms;
}
