/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/doc/log_json.h"

#include <jansson.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/timestamp.h"

static const char *const levels[] = {"error", "note", "verbose", "debug"};

static json_t *number_or_none(bool there, int64_t number)
{
    return there ? json_integer(number) : NULL;
}

static json_t *text_of(const struct log_line *line)
{
    const char *text = line->text + line->prefix;
    size_t length = line->length - line->prefix;
    if (length > 0 && text[length - 1] == '\n')
        length--;
    return json_stringn(text, length); /* lib/base/log.h: it is UTF-8 */
}

void log_json_line(const struct log_json *who, const struct log_line *line, struct buf *out)
{
    char now[TIMESTAMP_SIZE];
    struct timeval at;
    const struct log_about *about = &line->about, *all = &who->about;
    const struct log_about *worker = about->of_worker ? about : all;
    const struct log_about *rank = about->of_rank ? about : all;
    gettimeofday(&at, NULL);
    timestamp_format((int64_t)at.tv_sec * 1000 + at.tv_usec / 1000, now, sizeof now);
    CLEANUP(json_decrefp)
    json_t *object = json_pack("{s:s, s:s, s:s*, s:o*, s:o*, s:o*, s:s*, s:s*, s:o}", "time", now,
                               "level", levels[line->level], "job", who->job, "attempt",
                               number_or_none(who->attempt > 0, who->attempt), "worker",
                               number_or_none(worker->of_worker, worker->worker), "rank",
                               number_or_none(rank->of_rank, rank->rank), "claim",
                               about->claim ? about->claim : all->claim, "node",
                               about->node ? about->node : all->node, "text", text_of(line));
    cleanup_free char *written = object ? json_dumps(object, JSON_COMPACT) : NULL;
    if (written)
        buf_printf(out, "%s\n", written);
}

void log_json_write(const struct log_json *who, const struct log_line *line)
{
    struct buf json = BUF_INIT;
    log_json_line(who, line, &json);
    bool made = json.len > 0 && !json.failed;
    fd_write_all(STDERR_FILENO, made ? json.data : line->text, made ? json.len : line->length);
    buf_done(&json);
}
