/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"
#include "lib/base/number.h"
#include "lib/base/strlist.h"
#include "lib/base/wrap.h"

#define WORD_MAX NEAREST_WORD_MAX
/* Every short word is near to some option of one or two letters. */
#define SUGGESTED_MIN 3
#define LEFT_COLUMNS 26 /* of a help screen: the option itself */

/* Matches --name, -x and aliases, exactly; length excludes a "=value". */
static const struct option_spec *find(const struct option_table *table, const char *word,
                                      size_t length)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct option_spec *spec = &table->list[i];
        if (length > 2 && memcmp(word, "--", 2) == 0 && strlen(spec->name) == length - 2 &&
            memcmp(spec->name, word + 2, length - 2) == 0)
            return spec;
        if (length == 2 && spec->letter && word[1] == spec->letter)
            return spec;
        if (spec->aliases && words_index(spec->aliases, word, length) >= 0)
            return spec;
    }
    return NULL;
}

static bool is_worth_suggesting(const char *word, size_t length)
{
    size_t dashes = strspn(word, "-");
    return length >= dashes + SUGGESTED_MIN;
}

static void add_suggestion(const char *word, size_t length, struct buf *out)
{
    if (is_worth_suggesting(word, length))
        buf_printf(out, "%.*s ", (int)length, word);
}

static void add_suggestions(const struct option_table *table, struct buf *out)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct option_spec *spec = &table->list[i];
        const char *at = spec->aliases;
        size_t n = 0;
        if (!spec->group)
            continue;
        if (is_worth_suggesting(spec->name, strlen(spec->name)))
            buf_printf(out, "--%s ", spec->name);
        for (const char *w; (w = words_next(&at, &n));)
            add_suggestion(w, n, out);
    }
    if (!table->others)
        return;
    struct buf words = BUF_INIT;
    table->others->spellings(&words);
    const char *at = words.data;
    size_t n = 0;
    for (const char *w; (w = words_next(&at, &n));)
        add_suggestion(w, n, out);
    out->failed |= words.failed;
    buf_done(&words);
}

static int unknown(const struct option_table *table, const char *word, size_t length,
                   struct drarun_error *err)
{
    char typed[WORD_MAX], nearest[WORD_MAX];
    struct buf words = BUF_INIT;
    add_suggestions(table, &words);
    snprintf(typed, sizeof typed, "%.*s%.*s", word[1] == '-' ? 0 : 1, "-", (int)length, word);
    bool near = words.data && nearest_word(typed, words.data, nearest, sizeof nearest);
    buf_done(&words);
    if (near && (find(table, nearest, strlen(nearest)) ||
                 (table->others && table->others->is_taken(nearest))))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "unknown option %.*s; did you mean %s?",
                          (int)length, word, nearest);
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "unknown option %.*s; --help lists them",
                      (int)length, word);
}

static int check_choice(const struct option_spec *spec, const char *shown, const char *value,
                        struct drarun_error *err)
{
    if (!spec->choices || spec->kind == OPTION_CALL || strcmp(spec->choices, "FILE") == 0 ||
        strcmp(spec->choices, "DIR") == 0 || words_has(spec->choices, value))
        return 0;
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: expected one of \"%s\", got \"%s\"",
                      shown, spec->choices, value);
}

static int apply(const struct option_spec *spec, void *target, const char *shown, const char *value,
                 struct drarun_error *err)
{
    char *field = (char *)target + spec->offset;
    int64_t number = 0;
    int rc = value ? check_choice(spec, shown, value, err) : 0;
    if (rc < 0)
        return rc;
    switch (spec->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case OPTION_TEXT:
        *(const char **)field = value;
        return 0;
    case OPTION_COUNT:
        rc = number_parse(shown, value, spec->min, spec->max, &number, err);
        if (rc == 0)
            *(uint32_t *)field = (uint32_t)number;
        return rc;
    case OPTION_DURATION:
        return duration_parse(shown, value, (int64_t *)field, err);
    case OPTION_LIST:
        strlist_add((void *)field, value);
        return ((struct strlist *)field)->failed ? error_set(err, ENOMEM, "out of memory") : 0;
    case OPTION_CALL:
        return spec->set(target, shown, value, err);
    }
    return error_set(err, EINVAL, "%s: an option of an unknown kind", shown);
}

/* The words that remain, and what has been learnt about the first. */
struct cursor {
    const struct option_table *table;
    int argc;
    char *const *argv;
    int at;
    bool each_only;
    void *target;
};

static int use(struct cursor *c, const struct option_spec *spec, const char *shown,
               const char *value, struct drarun_error *err)
{
    if (c->each_only && !spec->each)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s is for the whole job: give it before the first program", shown);
    if (c->table->seen)
        c->table->seen(c->target, spec);
    return apply(spec, c->target, shown, value, err);
}

/* The value of an option whose word holds none: the next word, whatever it looks like. */
static int next_value(struct cursor *c, const struct option_spec *spec, const char *shown,
                      const char **ret_value, struct drarun_error *err)
{
    if (c->at + 1 >= c->argc)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s needs a value: %s %s", shown, shown,
                          spec->value);
    *ret_value = c->argv[++c->at];
    return 0;
}

/* "-n4", "-n=4"?, "-vv", "-lq": letters behind one dash. */
static int parse_letters(struct cursor *c, const char *word, struct drarun_error *err)
{
    for (const char *p = word + 1; *p; p++) {
        char shown[3] = {'-', *p, '\0'};
        const struct option_spec *spec = find(c->table, shown, 2);
        const char *value = NULL;
        int rc = 0;
        if (!spec)
            return unknown(c->table, word, strcspn(word, "="), err);
        if (spec->value && p[1])
            value = p + 1;
        else if (spec->value)
            rc = next_value(c, spec, shown, &value, err);
        if (rc == 0)
            rc = use(c, spec, shown, value, err);
        if (rc < 0 || value)
            return rc;
    }
    return 0;
}

int options_set(const struct option_table *table, const char *name, const char *shown,
                const char *value, bool each_only, void *target, struct drarun_error *err)
{
    struct cursor c = {.table = table, .each_only = each_only, .target = target};
    size_t length = strcspn(name, "=");
    const struct option_spec *spec = find(table, name, length);
    if (!spec)
        return error_set(err, EINVAL, "%s: there is no option %s", shown, name);
    return use(&c, spec, shown, name[length] && !value ? name + length + 1 : value, err);
}

static int parse_word(struct cursor *c, const char *word, struct drarun_error *err)
{
    size_t length = strcspn(word, "=");
    const struct option_spec *spec = find(c->table, word, length);
    const char *value = word[length] ? word + length + 1 : NULL;
    char shown[WORD_MAX];
    if (!spec && c->table->others) {
        int used = c->table->others->take(c->table, c->argc - c->at, c->argv + c->at, c->each_only,
                                          c->target, err);
        if (used > 0)
            c->at += used - 1;
        if (used != 0)
            return used < 0 ? used : 0;
    }
    if (!spec && word[1] != '-')
        return parse_letters(c, word, err);
    if (!spec)
        return unknown(c->table, word, length, err);
    snprintf(shown, sizeof shown, "%.*s", (int)length, word);
    if (value && !spec->value)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s takes no value, got \"%s\"", shown,
                          value);
    int rc = 0;
    if (!value && spec->value)
        rc = next_value(c, spec, shown, &value, err);
    return rc < 0 ? rc : use(c, spec, shown, value, err);
}

int options_parse(const struct option_table *table, int argc, char *const argv[], bool each_only,
                  void *target, struct drarun_error *err)
{
    struct cursor c = {table, argc, argv, 0, each_only, target};
    for (; c.at < argc; c.at++) {
        const char *word = argv[c.at];
        if (strcmp(word, "--") == 0)
            return c.at + 1;
        if (word[0] != '-' || !word[1])
            return c.at;
        int rc = parse_word(&c, word, err);
        if (rc < 0)
            return rc;
    }
    return argc;
}

static bool is_known(const struct option_table *table, const char *word)
{
    if (word[0] != '-' || !word[1])
        return false;
    return find(table, word, strcspn(word, "=")) || (word[1] != '-' && find(table, word, 2));
}

int options_pick(const struct option_table *table, int argc, char *const argv[], void *target,
                 struct strlist *others, struct drarun_error *err)
{
    struct cursor c = {table, argc, argv, 0, false, target};
    for (; c.at < argc && strcmp(argv[c.at], "--") != 0; c.at++) {
        int rc = 0;
        if (is_known(table, argv[c.at]))
            rc = parse_word(&c, argv[c.at], err);
        else
            strlist_add(others, argv[c.at]);
        if (rc < 0)
            return rc;
    }
    while (c.at < argc)
        strlist_add(others, argv[c.at++]);
    return others->failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

static void help_entry(const struct option_spec *spec, struct buf *out)
{
    char left[WORD_MAX];
    int n = 0;
    if (spec->letter)
        n = snprintf(left, sizeof left, "-%c, ", spec->letter);
    snprintf(left + n, sizeof left - (size_t)n, "--%s%s%s", spec->name, spec->value ? " " : "",
             spec->value ? spec->value : "");
    if (strlen(left) > LEFT_COLUMNS)
        buf_printf(out, "  %s\n  %*s  ", left, LEFT_COLUMNS, "");
    else
        buf_printf(out, "  %-*s  ", LEFT_COLUMNS, left);
    wrap_add(spec->help, LEFT_COLUMNS + 4, LEFT_COLUMNS + 4, out);
}

void options_help(const struct option_table *table, struct buf *out)
{
    const char *group = NULL;
    for (size_t i = 0; i < table->count; i++) {
        const struct option_spec *spec = &table->list[i];
        if (!spec->group)
            continue;
        if (!group || strcmp(group, spec->group) != 0)
            buf_printf(out, "\n%s:\n", spec->group);
        group = spec->group;
        help_entry(spec, out);
    }
}
