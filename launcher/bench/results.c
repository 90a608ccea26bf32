/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/results.h"

#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/doc/load.h"

static const struct doc_limits limits = {.size = RESULTS_TEXT_MAX};

static int check_size(const struct buf *text, const char *name, struct drarun_error *err)
{
    return text->len > RESULTS_TEXT_MAX
               ? error_kind(err, DRARUN_ERR_SPEC, EFBIG, "%s: larger than %zu MiB", name,
                            RESULTS_TEXT_MAX >> 20)
               : 0;
}

static int read_text(const char *path, struct buf *text, struct drarun_error *err)
{
    int rc = doc_read(path, &limits, text, err);
    return rc < 0 ? rc : check_size(text, path, err);
}

static const char *name_of(const char *path)
{
    return strcmp(path, "-") == 0 ? "<stdin>" : path;
}

int results_read_text(const struct buf *text, const char *name, struct runs *runs,
                      struct drarun_error *err)
{
    int rc = check_size(text, name, err);
    return rc < 0 ? rc : runs_read(text->data ? text->data : "", text->len, name, runs, err);
}

int results_read(const char *path, struct runs *runs, struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    int rc = read_text(path, &text, err);
    if (rc == 0)
        rc = results_read_text(&text, name_of(path), runs, err);
    buf_done(&text);
    return rc;
}

int results_read_or_log(const char *path, struct runs *runs, struct nccl_report *report,
                        struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    int rc = read_text(path, &text, err);
    const char *data = text.data ? text.data : "";
    if (rc == 0)
        rc = runs_read(data, text.len, name_of(path), runs, err);
    if (rc == -EINVAL && nccl_report_read(data, text.len, name_of(path), report, NULL) == 0) {
        runs_done(runs); /* what it had begun */
        rc = 0;
    }
    buf_done(&text);
    return rc;
}

int results_read_log(const char *path, struct run *run, struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    size_t before = run->log.lines;
    int rc = read_text(path, &text, err);
    if (rc == 0)
        rc = runs_read_log(text.data ? text.data : "", text.len, name_of(path), run, err);
    buf_done(&text);
    if (rc == 0 && run->log.lines == before)
        rc = error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                        "%s: expected lines with NCCL INFO, as NCCL_DEBUG=INFO writes them", path);
    return rc;
}

int results_known(const char *path, struct known *known, struct drarun_error *err)
{
    struct doc *doc = NULL;
    int rc = path ? doc_load_one(path, &doc, err) : 0;
    if (rc == 0 && path)
        rc = known_read(known, doc, err);
    doc_free(doc);
    return rc < 0 ? rc : known_builtin(known, err);
}
