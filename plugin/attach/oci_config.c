/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/oci_config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

#define FILE_NAME "config.json"

static void config_donep(struct oci_config *config)
{
    oci_config_done(config);
}

static void buf_donep(struct buf *b)
{
    buf_done(b);
}

void oci_config_done(struct oci_config *config)
{
    strlist_done(&config->marks);
    *config = (struct oci_config){0};
}

static int read_root(const char *bundle, const json_t *document, struct oci_config *config,
                     struct drarun_error *err)
{
    const char *path =
        json_string_value(json_object_get(json_object_get(document, "root"), "path"));
    if (!path || !*path)
        return error_set(err, EINVAL, "%s/" FILE_NAME ": expected root.path, a text", bundle);
    int n = path[0] == '/' ? snprintf(config->root, sizeof config->root, "%s", path)
                           : snprintf(config->root, sizeof config->root, "%s/%s", bundle, path);
    return n < (int)sizeof config->root
               ? 0
               : error_set(err, ENAMETOOLONG, "%s/" FILE_NAME ": root.path is too long", bundle);
}

static int read_marks(const json_t *document, struct oci_config *config, struct drarun_error *err)
{
    const json_t *env = json_object_get(json_object_get(document, "process"), "env"), *item;
    size_t i;
    json_array_foreach(env, i, item)
    {
        const char *text = json_string_value(item);
        if (text && strncmp(text, ATTACH_MARK, sizeof ATTACH_MARK - 1) == 0)
            strlist_addf(&config->marks, "%.*s", (int)strcspn(text, "="), text);
    }
    return config->marks.failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* Not lib/doc's reader: an environment may hold what that refuses, and shows nothing of it here. */
int oci_config_parse(const char *bundle, const char *text, size_t len, struct oci_config *ret,
                     struct drarun_error *err)
{
    CLEANUP(config_donep) struct oci_config config = {.marks = STRLIST_INIT};
    json_error_t where;
    CLEANUP(json_decrefp) json_t *document = json_loadb(text, len, JSON_ALLOW_NUL, &where);
    if (!json_is_object(document))
        return error_set(err, EINVAL, "%s/" FILE_NAME ": expected a JSON object (line %d)", bundle,
                         document ? 1 : where.line);
    int rc = read_root(bundle, document, &config, err);
    rc = rc < 0 ? rc : read_marks(document, &config, err);
    if (rc < 0)
        return rc;
    *ret = config;
    config = (struct oci_config){0};
    return 0;
}

int oci_config_load(const char *bundle, struct oci_config *ret, struct drarun_error *err)
{
    CLEANUP(buf_donep) struct buf text = BUF_INIT;
    char path[PATH_MAX + sizeof "/" FILE_NAME];
    snprintf(path, sizeof path, "%s/" FILE_NAME, bundle);
    int rc = file_read(AT_FDCWD, path, OCI_CONFIG_SIZE_MAX, &text, err);
    return rc < 0 ? rc : oci_config_parse(bundle, text.data ? text.data : "", text.len, ret, err);
}

bool oci_config_has(const struct oci_config *config, const struct attach_order *order)
{
    char mark[ATTACH_MARK_MAX], claim[ATTACH_MARK_MAX];
    bool marked = false;
    attach_order_mark(order->claim_uid, order->device, mark, sizeof mark);
    attach_order_mark(order->claim_uid, "", claim, sizeof claim);
    for (size_t i = 0; i < config->marks.count; i++) {
        if (strcmp(config->marks.items[i], mark) == 0)
            return true;
        marked = marked || strncmp(config->marks.items[i], claim, strlen(claim)) == 0;
    }
    return !marked;
}
