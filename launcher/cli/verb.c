/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cli/verb.h"

#include <errno.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "launcher/cli/fold.h"
#include "launcher/cli/paint.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/nearest.h"
#include "lib/base/plain.h"
#include "lib/base/terminal.h"
#include "lib/base/wrap.h"
#include "lib/doc/yaml_write.h"

#define PARTS_INDENT 6
#define LEAST_COLUMNS 40 /* of a line; a narrower terminal breaks it again */

static void add_parts(const struct verb *verb, struct buf *out)
{
    buf_printf(out, "\nOther verbs (drarun help %s PART):\n", verb->name);
    for (size_t i = 0; verb->parts[i]; i++) {
        struct buf usage = BUF_INIT;
        buf_printf(&usage, "drarun %s %s", verb->parts[i]->name, verb->parts[i]->arguments);
        out->failed |= usage.failed;
        buf_add_str(out, "  ");
        wrap_add(usage.data ? usage.data : "", 2, 2 * PARTS_INDENT, out);
        buf_printf(out, "%*s", PARTS_INDENT, "");
        wrap_add(verb->parts[i]->summary, PARTS_INDENT, PARTS_INDENT, out);
        buf_done(&usage);
    }
}

const char *verb_part_word(const struct verb *part)
{
    return strrchr(part->name, ' ') + 1;
}

const struct verb *verb_part(const struct verb *verb, const char *word)
{
    for (size_t i = 0; verb->parts && verb->parts[i]; i++)
        if (strcmp(verb_part_word(verb->parts[i]), word) == 0)
            return verb->parts[i];
    return NULL;
}

void verb_help(const struct verb *verb, struct buf *out)
{
    buf_printf(out, "Usage: drarun %s [options]%s%s\n\n", verb->name, verb->arguments ? " " : "",
               verb->arguments ? verb->arguments : "");
    wrap_add(verb->summary, 0, 0, out);
    if (verb->parts)
        add_parts(verb, out);
    options_help(verb->options, out);
}

int verb_set_verbose(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    (void)target, (void)shown, (void)value, (void)err;
    log_setup("drarun", log_level_now() >= LOG_VERBOSE ? LOG_DEBUG : LOG_VERBOSE);
    return 0;
}

int verb_set_quiet(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    (void)target, (void)shown, (void)value, (void)err;
    log_setup("drarun", LOG_QUIET);
    return 0;
}

int verb_parse_file(const struct verb *verb, int argc, char *const argv[], void *options,
                    const bool *help, const char **ret_file, struct drarun_error *err)
{
    const char *file = NULL;
    int at = options_parse(verb->options, argc, argv, false, options, err);
    if (at >= 0 && at < argc) {
        file = argv[at++];
        int more = options_parse(verb->options, argc - at, argv + at, false, options, err);
        at = more < 0 ? more : at + more;
    }
    if (at < 0)
        return at;
    if (!*help && (!file || at < argc))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "expected %s: drarun %s [options] %s",
                          strcmp(verb->arguments, "JOB") == 0 ? "the name of one job"
                          : strchr(verb->arguments, '|')      ? "one kind of job"
                                                              : "one file",
                          verb->name, verb->arguments);
    *ret_file = file;
    return 0;
}

int verb_parse_files(const struct verb *verb, int argc, char *const argv[], void *options,
                     struct strlist *files, struct drarun_error *err)
{
    bool split = false;
    for (int at = 0; at < argc; at++) {
        int used =
            split ? 0 : options_parse(verb->options, argc - at, argv + at, false, options, err);
        if (used < 0)
            return used;
        at += used;
        split = split || (used > 0 && strcmp(argv[at - 1], "--") == 0);
        if (at < argc)
            strlist_add(files, argv[at]);
    }
    return files->failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

static int add_text(const char *text, size_t length, void *arg)
{
    struct buf *out = arg;
    buf_add(out, text, length);
    return out->failed ? -1 : 0;
}

void verb_add_json_take(json_t *json, struct buf *out)
{
    if (!json || json_dump_callback(json, add_text, out, JSON_INDENT(2)) < 0)
        out->failed = true;
    buf_add_str(out, "\n");
    json_decref(json);
}

enum drarun_errkind verb_error_kind(const struct drarun_error *err)
{
    bool unreachable = err->code == ECONNREFUSED || err->code == EHOSTUNREACH;
    return err->kind == DRARUN_ERR_INFRASTRUCTURE && unreachable ? DRARUN_ERR_CLUSTER : err->kind;
}

int verb_fail(const char *verb, const struct drarun_error *err)
{
    log_error("%s%s%s", verb ? verb : "", verb ? ": " : "", err->text);
    return error_exit_status(err->kind);
}

int verb_exit_status(const struct drarun_error *err)
{
    if (err->kind == DRARUN_ERR_USAGE && err->code == ENOENT)
        return EX_NOINPUT;
    return error_exit_status(verb_error_kind(err));
}

enum verb_format verb_format_of(const char *word)
{
    static const char words[] = "text wide json yaml name"; /* as in the enum */
    int at = word ? words_index(words, word, strlen(word)) : 0;
    return at < 0 ? VERB_TEXT : (enum verb_format)at;
}

void verb_add_take(enum verb_format format, json_t *json, struct buf *out)
{
    if (format == VERB_YAML && (!json || yaml_write(json, out, NULL) < 0))
        out->failed = true;
    if (format == VERB_YAML)
        json_decref(json);
    else
        verb_add_json_take(json, out);
}

static void paint(struct buf *out)
{
    struct buf painted = BUF_INIT;
    paint_add(out->data, out->len, &painted);
    buf_done(out);
    *out = painted;
}

static void fold(struct buf *out)
{
    struct buf folded = BUF_INIT;
    size_t known = terminal_columns(STDOUT_FILENO);
    size_t width = known ? known : WRAP_COLUMNS;
    fold_add(out->data, out->len, width > LEAST_COLUMNS ? width : LEAST_COLUMNS, &folded);
    buf_done(out);
    *out = folded;
}

static int write_out(const char *name, bool prose, struct buf *out)
{
    if (out->data && isatty(STDOUT_FILENO))
        plain_text(out->data, out->len);
    if (out->data && !out->failed && paint_wanted(STDOUT_FILENO))
        paint(out);
    if (out->data && !out->failed && prose && isatty(STDOUT_FILENO))
        fold(out);
    int rc = out->failed     ? -ENOMEM
             : out->len == 0 ? 0
                             : fd_write_all(STDOUT_FILENO, out->data, out->len);
    buf_done(out);
    if (rc == 0)
        return 0;
    log_error("%s: cannot write to stdout: %s", name, strerror(-rc));
    return error_exit_status(DRARUN_ERR_INFRASTRUCTURE);
}

int verb_write(const char *name, struct buf *out)
{
    return write_out(name, false, out);
}

int verb_write_prose(const char *name, struct buf *out)
{
    return write_out(name, true, out);
}
