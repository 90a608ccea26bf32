/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/oci_state.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/doc/reader.h"

#define PID_MAX (1 << 22) /* the kernel's PID_MAX_LIMIT */

static void read_bundle(const struct reader_node *node, struct oci_state *state)
{
    const char *text = NULL;
    if (reader_text(node, &text) < 0)
        return;
    if (text[0] != '/' || strlen(text) >= sizeof state->bundle)
        reader_expected(node, "an absolute path");
    else
        memcpy(state->bundle, text, strlen(text) + 1);
}

static void read_state(const struct reader_node *root, struct oci_state *state)
{
    struct reader_node node;
    const char *status = NULL;
    int64_t pid = 0;
    if (reader_object(root) < 0)
        return;
    if (reader_get(root, "status", &node) && reader_text(&node, &status) == 0 &&
        strcmp(status, "stopped") == 0)
        reader_fail(&node, "the container has ended already");
    if (!reader_get(root, "pid", &node))
        reader_fail(root, "expected \"pid\": this is a createRuntime hook");
    /* 1 is the host's first process, never a container's */
    else if (reader_integer(&node, 2, PID_MAX, &pid) == 0)
        state->pid = (pid_t)pid;
    if (reader_get(root, "bundle", &node))
        read_bundle(&node, state);
}

int oci_state_parse(const char *text, size_t len, struct oci_state *ret, struct drarun_error *err)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    struct oci_state state = {0};
    struct reader reader;
    int rc = doc_parse("container state", text, len, DOC_FORMAT_JSON, NULL, &doc, err);
    if (rc < 0)
        return rc;
    if (doc_count(doc) != 1)
        return error_set(err, EINVAL, "container state: expected one document, got %zu",
                         doc_count(doc));
    reader_init(&reader, doc, true);
    struct reader_node root = reader_root(&reader, 0);
    read_state(&root, &state);
    rc = reader_result(&reader, err);
    reader_done(&reader);
    if (rc == 0)
        *ret = state;
    return rc;
}

static void buf_donep(struct buf *b)
{
    buf_done(b);
}

int oci_state_read(int fd, int64_t until_ms, struct oci_state *ret, struct drarun_error *err)
{
    CLEANUP(buf_donep) struct buf text = BUF_INIT;
    char part[4096];
    ssize_t n = 1;
    while (n != 0) {
        int64_t left = until_ms - clock_ms();
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (left <= 0 || poll(&ready, 1, (int)left) == 0)
            return error_set(err, ETIMEDOUT,
                             "container state: its end has not come on standard "
                             "input");
        n = read(fd, part, sizeof part);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return error_set(err, errno, "container state: %s", strerror(errno));
        if (n > 0)
            buf_add(&text, part, (size_t)n);
        if (text.failed || text.len > OCI_STATE_SIZE_MAX)
            return error_set(err, EFBIG, "container state: larger than %zu bytes",
                             OCI_STATE_SIZE_MAX);
    }
    return oci_state_parse(text.data ? text.data : "", text.len, ret, err);
}
