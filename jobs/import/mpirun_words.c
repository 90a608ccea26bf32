/* SPDX-License-Identifier: Apache-2.0 */
/* The words of mpirun's line: their values where these are known. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/import/mpirun.h"
#include "lib/base/error.h"

int mpirun_refuse(const struct mpirun *m, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return import_refuse_at(m->node, m->err, "%s", text);
}

void mpirun_add_line_take(struct mpirun *m, struct buf *line)
{
    if (line->failed)
        m->lines.failed = true;
    else
        strlist_add(&m->lines, line->data ? line->data : "");
    buf_done(line);
}

static int add_field(struct mpirun *m, const char *text, const char *raw, const char *culprit,
                     enum shell_worth worth)
{
    struct field *more = realloc(m->fields, (m->count + 1) * sizeof *more);
    if (!more)
        return error_set(m->err, ENOMEM, "out of memory");
    m->fields = more;
    struct field *field = &m->fields[m->count++];
    *field =
        (struct field){text ? strdup(text) : NULL, raw, culprit ? strdup(culprit) : NULL, worth};
    return (text && !field->text) || (culprit && !field->culprit)
               ? error_set(m->err, ENOMEM, "out of memory")
               : 0;
}

int mpirun_expand_word(struct mpirun *m, const char *raw)
{
    struct strlist fields = STRLIST_INIT;
    struct buf culprit = BUF_INIT;
    enum shell_worth worth = shell_expand(raw, launcher_env_look_up, &m->env, &fields, &culprit);
    int rc = fields.failed || culprit.failed ? error_set(m->err, ENOMEM, "out of memory") : 0;
    if (rc == 0 && worth != SHELL_LITERAL)
        rc = add_field(m, NULL, raw, culprit.data, worth);
    for (size_t i = 0; rc == 0 && i < fields.count; i++)
        rc = add_field(m, fields.items[i], raw, NULL, worth);
    strlist_done(&fields);
    buf_done(&culprit);
    return rc;
}

int mpirun_need_text(const struct mpirun *m, const char *option, const struct field *value,
                     const char **ret_text)
{
    if (!value->text)
        return mpirun_refuse(m,
                             "%s %s: only the launcher's shell knows the value %s; " MPIRUN_INSTEAD,
                             m->name, option, value->culprit);
    *ret_text = value->text;
    return 0;
}

int mpirun_need_number(const struct mpirun *m, const char *option, const struct field *value,
                       uint64_t *ret_number)
{
    const char *text = "";
    char *end = NULL;
    int rc = mpirun_need_text(m, option, value, &text);
    if (rc < 0)
        return rc;
    unsigned long long number = strtoull(text, &end, 10);
    if (!(*text >= '0' && *text <= '9') || *end || number == 0 || number > UINT32_MAX)
        return mpirun_refuse(m, "%s %s %s: expected a number of at least 1", m->name, option, text);
    *ret_number = number;
    return 0;
}
