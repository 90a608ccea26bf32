/* SPDX-License-Identifier: Apache-2.0 */
/* verb-pages DIR: writes a manual page for each verb, and verbs.md with all of them, of the tables
 * that make the parser. scripts/verb-pages runs it; it is not installed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "launcher/verbs/verbs.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

/* ---- mdoc ---- */

/* Text, a sentence a line: what roff would take for a request or an escape is none. */
static void add_text(const char *text, struct buf *out)
{
    if (*text == '.' || *text == '\'')
        buf_add_str(out, "\\&");
    for (; *text; text++) {
        if (*text == '\\')
            buf_add_str(out, "\\e");
        else if (strncmp(text, ". ", 2) == 0 && text[2] >= 'A' && text[2] <= 'Z')
            buf_add_str(out, ".\n"), text++;
        else
            buf_add(out, *text == '\n' ? " " : text, 1);
    }
    buf_add_str(out, "\n");
}

/* Words of a macro line: each behind \&, so that none is a macro or a delimiter. */
static void add_words(const char *text, struct buf *out)
{
    for (const char *word = text; *word;) {
        size_t n = strcspn(word, " ");
        buf_add_str(out, " \\&");
        buf_add(out, word, n);
        word += n + strspn(word + n, " ");
    }
}

static void add_option(const struct option_spec *spec, struct buf *out)
{
    buf_add_str(out, ".It");
    if (spec->letter)
        buf_printf(out, " Fl %c ,", spec->letter);
    buf_printf(out, " Fl -%s", spec->name);
    if (spec->value) {
        buf_add_str(out, " Ar");
        add_words(spec->value, out);
    }
    buf_add_str(out, "\n");
    add_text(spec->help, out);
}

static void add_options(const struct option_table *table, struct buf *out)
{
    const char *group = NULL;
    for (size_t i = 0; i < table->count; i++) {
        const struct option_spec *spec = &table->list[i];
        if (!spec->group)
            continue;
        if (!group || strcmp(group, spec->group) != 0) {
            buf_printf(out, "%s.Ss", group ? ".El\n" : "");
            add_words(spec->group, out);
            buf_add_str(out, "\n.Bl -tag -width Ds\n");
        }
        group = spec->group;
        add_option(spec, out);
    }
    buf_add_str(out, group ? ".El\n" : "");
}

/* "bench judge" is drarun-bench-judge. */
static void add_page_name(const struct verb *verb, struct buf *out)
{
    buf_add_str(out, "drarun-");
    for (const char *p = verb->name; *p; p++)
        buf_add(out, *p == ' ' ? "-" : p, 1);
}

static void add_page(const struct verb *verb, struct buf *out)
{
    struct buf name = BUF_INIT;
    add_page_name(verb, &name);
    buf_add(&name, "", 1);
    buf_printf(out,
               ".\\\" SPDX-License-Identifier: Apache-2.0\n"
               ".\\\" Written by scripts/verb-pages from the program's own tables.\n"
               ".Dd November 26, 2026\n.Dt %s 1\n.Os drarun\n.Sh NAME\n.Nm %s\n.Nd %s\n"
               ".Sh SYNOPSIS\n.Nm drarun\n.Cm %s\n.Op Ar options\n",
               name.data, name.data, verb->brief ? verb->brief : verb->name, verb->name);
    if (verb->arguments) {
        buf_add_str(out, ".Ar");
        add_words(verb->arguments, out);
        buf_add_str(out, "\n");
    }
    buf_add_str(out, ".Sh DESCRIPTION\n");
    add_text(verb->summary, out);
    add_options(verb->options, out);
    buf_add_str(out,
                ".Sh SEE ALSO\n.Xr drarun 1 ,\nwhich has more detail and all exit statuses.\n");
    out->failed |= name.failed;
    buf_done(&name);
}

/* ---- Markdown ---- */

static void add_cell(const char *text, struct buf *out)
{
    for (; *text; text++) {
        if (*text == '|')
            buf_add_str(out, "\\");
        buf_add(out, *text == '\n' ? " " : text, 1);
    }
}

static void add_section(const struct verb *verb, struct buf *out)
{
    buf_printf(out, "\n### drarun %s\n\n    drarun %s [options]%s%s\n\n", verb->name, verb->name,
               verb->arguments ? " " : "", verb->arguments ? verb->arguments : "");
    for (const char *p = verb->summary; *p; p++)
        buf_add(out, *p == '\n' ? " " : p, 1);
    buf_add_str(out, "\n\n| option | |\n|---|---|\n");
    for (size_t i = 0; i < verb->options->count; i++) {
        const struct option_spec *spec = &verb->options->list[i];
        if (!spec->group)
            continue;
        buf_add_str(out, "| `");
        if (spec->letter)
            buf_printf(out, "-%c, ", spec->letter);
        buf_printf(out, "--%s%s", spec->name, spec->value ? " " : "");
        add_cell(spec->value ? spec->value : "", out);
        buf_add_str(out, "` | ");
        add_cell(spec->help, out);
        buf_add_str(out, " |\n");
    }
}

/* ---- files ---- */

/* Takes text. */
static int write_take(const char *dir, const char *file, struct buf *text, struct drarun_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    int rc = text->failed ? error_set(err, ENOMEM, "out of memory")
                          : file_write_atomic(path, text->data, text->len, 0644, err);
    buf_done(text);
    return rc;
}

static int write_verb(const char *dir, const struct verb *verb, struct buf *markdown,
                      struct drarun_error *err)
{
    struct buf name = BUF_INIT, page = BUF_INIT;
    add_page_name(verb, &name);
    buf_add(&name, ".1", sizeof ".1");
    add_page(verb, &page);
    add_section(verb, markdown);
    int rc = name.failed ? error_set(err, ENOMEM, "out of memory") : 0;
    if (rc == 0)
        rc = write_take(dir, name.data, &page, err);
    buf_done(&page);
    buf_done(&name);
    return rc;
}

static int write_with_parts(const char *dir, const struct verb *verb, struct buf *markdown,
                            struct drarun_error *err)
{
    int rc = write_verb(dir, verb, markdown, err);
    for (size_t i = 0; rc == 0 && verb->parts && verb->parts[i]; i++)
        rc = write_verb(dir, verb->parts[i], markdown, err);
    return rc;
}

static int write_all(const char *dir, struct drarun_error *err)
{
    struct buf markdown = BUF_INIT;
    int rc = 0;
    buf_add_str(&markdown, "# The verbs\n\nWritten by `scripts/verb-pages` from the program's own "
                           "tables; `drarun help VERB` shows the same.\n");
    for (const struct verb_group *group = verb_groups; group->title; group++) {
        buf_printf(&markdown, "\n## %s\n", group->title);
        for (const struct verb *const *verb = group->verbs; rc == 0 && *verb; verb++)
            rc = write_with_parts(dir, *verb, &markdown, err);
    }
    if (rc == 0)
        return write_take(dir, "verbs.md", &markdown, err);
    buf_done(&markdown);
    return rc;
}

int main(int argc, char *argv[])
{
    struct drarun_error err = {0};
    log_setup("verb-pages", LOG_NORMAL);
    if (argc != 2) {
        log_error("expected a folder: verb-pages DIR");
        return error_exit_status(DRARUN_ERR_USAGE);
    }
    if (write_all(argv[1], &err) == 0)
        return 0;
    log_error("%s", err.text);
    return error_exit_status(err.kind);
}
