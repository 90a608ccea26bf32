/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/claim_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "plugin/prepare/cdi_spec.h"
#include "plugin/prepare/claim_metadata.h"

#define FILE_SIZE_MAX ((size_t)1 << 20)

void preparer_order_path(const struct preparer *preparer, const char *uid, const char *device,
                         char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/%s.%s.json", preparer->config->orders_dir, uid, device);
}

void preparer_metadata_path(const struct preparer *preparer, const char *uid, const char *request,
                            char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/%s.%.*s.metadata", preparer->config->orders_dir, uid,
             (int)strcspn(request, "/"), request);
}

/* On a tmpfs, which a crash empties: they are whole or not there. */
static int write_text(const char *path, const char *text, unsigned mode, struct drarun_error *err)
{
    struct buf old = BUF_INIT;
    bool same = file_read(AT_FDCWD, path, FILE_SIZE_MAX, &old, NULL) == 0 && old.data &&
                strcmp(old.data, text) == 0;
    buf_done(&old);
    return same ? 0 : file_replace(path, text, strlen(text), mode, FILE_AFTER_ANYTHING, err);
}

static int write_order(const char *path, const json_t *order, struct drarun_error *err)
{
    cleanup_free char *text = json_dumps(order, JSON_COMPACT | JSON_SORT_KEYS);
    return text ? write_text(path, text, 0600, err) : error_set(err, ENOMEM, "out of memory");
}

/* For any user of the container. */
static int write_metadata(const struct task *task, const json_t *entry, struct drarun_error *err)
{
    char path[512];
    struct buf text = BUF_INIT;
    const char *request = json_string_value(json_object_get(entry, "request"));
    preparer_metadata_path(task->preparer, task->uid, request ? request : "", path, sizeof path);
    claim_metadata_text(entry, &text);
    int rc = text.failed || !text.data ? error_set(err, ENOMEM, "out of memory")
                                       : write_text(path, text.data, 0644, err);
    buf_done(&text);
    return rc;
}

int claim_files_check_agent(const char *path, struct drarun_error *err)
{
    if (!path || access(path, X_OK) == 0)
        return 0;
    return error_set(
        err, ENOENT,
        "%s: %s: this node has not the agent that the claim asks for; run a plugin with "
        "it here (--agent-from), or start the job again: it takes what the nodes offer",
        path, strerror(errno));
}

int claim_files_write(const struct task *task, struct drarun_error *err)
{
    const struct preparer *preparer = task->preparer;
    const struct checkpoint *c = task->checkpoint;
    int rc = claim_files_check_agent(cdi_agent_file(c->cdi, c->uid), err);
    for (size_t i = 0; rc == 0 && i < c->count; i++) {
        char path[512];
        if (!c->devices[i].order)
            continue;
        preparer_order_path(preparer, c->uid, c->devices[i].device, path, sizeof path);
        rc = write_order(path, c->devices[i].order, err);
    }
    for (size_t i = 0; rc == 0 && i < json_array_size(c->metadata); i++)
        rc = write_metadata(task, json_array_get(c->metadata, i), err);
    return rc < 0 ? rc : cdi_spec_write(c->cdi, preparer->config->cdi_dir, c->driver, c->uid, err);
}
