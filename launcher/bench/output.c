/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/output.h"

#include <errno.h>

#include "launcher/bench/results.h"
#include "lib/bench/marked.h"

static void on_show(void *arg, const char *data, size_t length)
{
    const struct bench_output *output = arg;
    buf_add(output->shown, data, length);
}

/* What is longer than results may be is refused by who reads them, and need not be kept. */
static int on_read(void *arg, const char *data, size_t length, struct buf *shown)
{
    struct bench_output *output = arg;
    output->shown = shown;
    if (output->text.len <= RESULTS_TEXT_MAX)
        buf_add(&output->text, data, length);
    line_hide_add(&output->hide, data, length);
    return output->text.failed ? -ENOMEM : 0;
}

static void on_end(void *arg, struct buf *shown)
{
    struct bench_output *output = arg;
    output->shown = shown;
    line_hide_end(&output->hide);
}

void bench_output_init(struct bench_output *output)
{
    *output = (struct bench_output){.text = BUF_INIT,
                                    .hide = {.begins = MARKED, .show = on_show, .arg = output}};
}

void bench_output_done(struct bench_output *output)
{
    buf_done(&output->text);
}

struct sink_reader bench_output_reader(struct bench_output *output)
{
    return (struct sink_reader){.read = on_read, .end = on_end, .arg = output};
}
