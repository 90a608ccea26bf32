/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/topo/host_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/topo/cpus.h"

#define CPULIST_SIZE ((size_t)64 << 10) /* more than every second of CPUS_MAX */

int facts_nomem(struct facts_reader *r)
{
    return error_set(r->err, ENOMEM, "host facts: out of memory");
}

void facts_warn(struct facts_reader *r, const char *format, ...)
{
    char line[300];
    va_list args;
    struct strlist *warnings = &r->host->warnings;
    if (warnings->count >= TOPO_WARNINGS_MAX)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *p = line; *p; p++)
        if (iscntrl((unsigned char)*p) || (unsigned char)*p > 0x7e)
            *p = '?';
    strlist_add(warnings, warnings->count + 1 < TOPO_WARNINGS_MAX ? line : "and more like these");
}

int facts_list(struct facts_reader *r, const char *path, struct strlist *ret_names)
{
    struct drarun_error own = {0};
    struct strlist names = STRLIST_INIT;
    int rc = root_list(r->root, path, TOPO_ENTRIES_MAX, &names, &own);
    if (rc == -ENOMEM)
        return facts_nomem(r);
    if (rc < 0 && rc != -ENOENT)
        facts_warn(r, "%s", own.text);
    *ret_names = names;
    return 0;
}

int facts_list_devices(struct facts_reader *r, const char *path, struct strlist *ret_names)
{
    int rc = facts_list(r, path, ret_names);
    if (rc == 0 && ret_names->count > TOPO_DEVICES_MAX)
        facts_warn(r, "%s: of %zu entries the first %u are read", path, ret_names->count,
                   TOPO_DEVICES_MAX);
    while (rc == 0 && ret_names->count > TOPO_DEVICES_MAX)
        strlist_remove(ret_names, ret_names->count - 1);
    return rc;
}

void *facts_grow(struct facts_reader *r, void *array_pointer, size_t *count, size_t size)
{
    void **array = array_pointer;
    if ((*count & (*count - 1)) == 0) { /* full at 0 and each power of two */
        void *more = realloc(*array, (*count ? *count * 2 : 1) * size);
        if (!more) {
            facts_nomem(r);
            return NULL;
        }
        *array = more;
    }
    char *item = (char *)*array + *count * size;
    memset(item, 0, size);
    (*count)++;
    return item;
}

int facts_text(struct facts_reader *r, const char *path, char **ret_text)
{
    char text[ROOT_TEXT_MAX];
    int len = root_read(r->root, path, text, sizeof text);
    char *start = text;
    if (len <= 0)
        return 0;
    while (isspace((unsigned char)*start))
        start++;
    for (char *p = start; *p; p++)
        if (iscntrl((unsigned char)*p) || (unsigned char)*p > 0x7e)
            *p = '?';
    len = (int)strnlen(start, 127);
    while (len > 0 && start[len - 1] == ' ')
        len--;
    start[len] = '\0';
    *ret_text = len > 0 ? strdup(start) : NULL;
    return len > 0 && !*ret_text ? facts_nomem(r) : 0;
}

int facts_cpulist(struct facts_reader *r, const char *path, char **ret_list)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    struct buf list = BUF_INIT;
    cleanup_free uint32_t *ids = NULL;
    size_t count = 0;
    struct drarun_error own = {0};
    int rc = root_read_whole(r->root, path, CPULIST_SIZE, &text);
    if (text.failed)
        return facts_nomem(r);
    if (rc < 0 && rc != -EFBIG)
        return 0;
    rc = rc == 0 ? cpulist_parse(text.data, &ids, &count, &own)
                 : error_set(&own, EFBIG, "more than %zu bytes", CPULIST_SIZE);
    if (rc == -ENOMEM)
        return facts_nomem(r);
    if (rc < 0) {
        facts_warn(r, "%s: %s", path, own.text);
        return 0;
    }
    buf_add_str(&list, "");
    cpulist_format(ids, count, &list);
    *ret_list = buf_take(&list);
    return *ret_list ? 0 : facts_nomem(r);
}

bool facts_name_ok(struct facts_reader *r, const char *where, const char *name)
{
    size_t len = strlen(name);
    size_t good =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:@-");
    if (len > 0 && len < TOPO_NAME_MAX && good == len && strcmp(name, "..") != 0)
        return true;
    facts_warn(r, "%s: \"%.80s\" is left out: expected a name of letters, digits and _.:@-", where,
               name);
    return false;
}

bool attr_number(int dir, const char *name, uint32_t *ret_value)
{
    char text[32], *end;
    int len = attr_read(dir, name, text, sizeof text);
    if (len <= 0 || len > 10 || !isdigit((unsigned char)text[0]))
        return false;
    unsigned long long value = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
    if (*end != '\0' || value > UINT32_MAX)
        return false;
    *ret_value = (uint32_t)value;
    return true;
}
