/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/timestamp.h"

int follow_output_init(struct follow_output *output)
{
    uint32_t tail = output->options->tail;
    return tail ? log_tail_init(&output->tail, tail - 1) : 0;
}

void follow_output_done(struct follow_output *output)
{
    status_line_free(output->line);
    log_tail_done(&output->tail);
}

void follow_output_stamp(struct follow_output *output, const char *text, size_t length)
{
    int64_t at = 0, after_ms = output->after_ms;
    snprintf(output->stamp, sizeof output->stamp, "%.*s", (int)length, text);
    output->too_old = after_ms && timestamp_parse(output->stamp, &at) && at < after_ms;
}

static void put_kept(void *arg, int fd, const char *data, size_t length)
{
    const struct follow_output *output = arg;
    std_streams_write(output->options->streams, fd, data, length);
}

/* At once, or with the last lines at the end. */
static void put_stamped(struct follow_output *output, int fd, uint32_t rank, const char *data,
                        size_t length)
{
    struct buf line = BUF_INIT;
    if (output->options->timestamps)
        buf_printf(&line, "%s ", output->stamp);
    if (output->options->label)
        buf_printf(&line, "[%" PRIu32 "] ", rank);
    buf_add(&line, data, length);
    if (line.failed ||
        (output->options->tail && !log_tail_add(&output->tail, fd, line.data, line.len)))
        log_error("a line is not shown: out of memory");
    else if (!output->options->tail)
        std_streams_write(output->options->streams, fd, line.data, line.len);
    buf_done(&line);
}

void follow_output_add(struct follow_output *output, uint32_t rank, bool is_stderr,
                       const char *data, size_t length)
{
    char label[24];
    if ((output->options->rank >= 0 && rank != (uint32_t)output->options->rank) || output->too_old)
        return;
    if (output->put && !output->refused)
        output->refused = output->put(output->arg, rank, is_stderr, data, length) != 0;
    struct std_streams *streams = output->options->streams;
    if (!streams)
        return;
    int fd = is_stderr ? STDERR_FILENO : STDOUT_FILENO;
    if (output->options->tail || output->options->timestamps) {
        put_stamped(output, fd, rank, data, length);
        return;
    }
    if (output->options->label)
        std_streams_write(streams, fd, label, (size_t)snprintf(label, sizeof label, "[%u] ", rank));
    std_streams_write(streams, fd, data, length);
}

/* With `once` the ranks' output is all that was asked for. */
static bool is_wanted(const struct follow_options *options, bool is_error)
{
    bool quiet = options->quiet && (options->once || !is_error);
    return !quiet && options->rank < 0;
}

void follow_output_own(struct follow_output *output, const json_t *json, const char *line,
                       size_t length)
{
    const char *text = json_string_value(json_object_get(json, "text"));
    const char *level = json_string_value(json_object_get(json, "level"));
    bool is_error = text && level && strcmp(level, "error") == 0;
    if (!is_wanted(output->options, is_error))
        return;
    if (is_error)
        log_error("%s", text);
    else if (text)
        log_note("%s", text);
    else if (!json)
        log_note("%.*s", length > 900 ? 900 : (int)length, line);
}

void follow_output_end(struct follow_output *output)
{
    log_tail_take(&output->tail, put_kept, output);
    status_line_clear(output->line);
}
