/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/ranks/shell_script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"

/* ---- tokens ---- */

struct nesting { /* of quotations and brackets inside one another */
    unsigned int depth;
    bool too_deep;
};

static const char *past_group(struct nesting *n, const char *p, char close);

static bool enter(struct nesting *n)
{
    n->too_deep |= n->depth == SHELL_DEPTH_MAX;
    n->depth += !n->too_deep;
    return !n->too_deep;
}

/* Behind a quotation that begins at p; NULL: it is open, or too deep. */
static const char *past_quoted(struct nesting *n, const char *p)
{
    char quote = *p++;
    if (!enter(n))
        return NULL;
    for (; *p && *p != quote; p++) {
        if (quote == '"' && *p == '\\' && p[1]) {
            p++;
        } else if (quote == '"' && *p == '$' && strchr("({", p[1]) && p[1]) {
            p = past_group(n, p + 1, p[1] == '(' ? ')' : '}');
            if (!p)
                return NULL;
            p--;
        }
    }
    n->depth--;
    return *p ? p + 1 : NULL;
}

/* Behind a bracket that begins at p and ends with close; NULL: it is open, or too deep. */
static const char *past_group(struct nesting *n, const char *p, char close)
{
    char open = *p++;
    if (!enter(n))
        return NULL;
    while (*p && *p != close) {
        if (*p == '\'' || *p == '"' || *p == '`')
            p = past_quoted(n, p);
        else if (*p == open)
            p = past_group(n, p, close);
        else
            p += *p == '\\' && p[1] ? 2 : 1;
        if (!p)
            return NULL;
    }
    n->depth--;
    return *p ? p + 1 : NULL;
}

/* The same where a word that shell_parse has found is expanded. */
static const char *past_known(const char *p, char close)
{
    struct nesting n = {0};
    return *p == '`' ? past_quoted(&n, p) : past_group(&n, p, close);
}

/* Behind a word; NULL: a quotation or bracket is open, or too deep. */
static const char *past_word(struct nesting *n, const char *p)
{
    if (*p && strchr("<>", *p) && p[1] == '(') /* bash: a process as a file */
        p = past_group(n, p + 1, ')');
    const char *from = p;
    while (p && *p && (!strchr(" \t\n;|&<>()", *p) || (*p == '(' && p > from && p[-1] == '='))) {
        if (*p == '\'' || *p == '"' || *p == '`')
            p = past_quoted(n, p);
        else if (*p == '$' && p[1] && strchr("({", p[1]))
            p = past_group(n, p + 1, p[1] == '(' ? ')' : '}');
        else if (*p == '(') /* bash: a list */
            p = past_group(n, p, ')');
        else
            p += *p == '\\' && p[1] ? 2 : 1;
    }
    return p;
}

static const char *past_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r' || (*p == '\\' && p[1] == '\n'))
        p += *p == '\\' ? 2 : 1;
    if (*p == '#')
        p += strcspn(p, "\n");
    return p;
}

/* ---- commands ---- */

struct parser {
    struct shell_script *script;
    struct shell_command *command; /* NULL: none has begun */
    enum shell_join join;          /* of the next one */
    unsigned int depth;
    struct nesting nesting;
    struct strlist ends; /* of here-documents whose text follows the line */
};

static struct shell_command *begin(struct parser *p)
{
    struct shell_script *s = p->script;
    if (p->command)
        return p->command;
    struct shell_command *more = array_room(s->commands, s->count, &s->cap, sizeof *more);
    if (!more) {
        s->failed = true;
        return NULL;
    }
    s->commands = more;
    p->command = &s->commands[s->count++];
    *p->command = (struct shell_command){.join = p->join, .depth = p->depth};
    return p->command;
}

static void end(struct parser *p, enum shell_join next)
{
    if (p->command)
        p->join = next;
    p->command = NULL;
}

static void add_text(struct strlist *list, const char *from, const char *to)
{
    strlist_addf(list, "%.*s", (int)(to - from), from);
}

/* Reserved words where a command may begin. True: taken. */
static bool take_reserved(struct parser *p, const char *from, const char *to)
{
    size_t n = (size_t)(to - from);
    if (p->command && p->command->words.count > 0)
        return false;
    bool opens = words_index("if while until for case select {", from, n) >= 0;
    bool closes = words_index("fi done esac }", from, n) >= 0;
    if (!opens && !closes && words_index("then else elif do", from, n) < 0)
        return false;
    if (opens)
        p->depth++;
    if (closes && p->depth > 0)
        p->depth--;
    /* a condition is a command; what "for" and "case" name is not one */
    if (words_index("for case select", from, n) < 0)
        return true;
    struct shell_command *command = begin(p);
    if (command)
        add_text(&command->words, from, to);
    return true;
}

/* A redirection at `from`, whose operator is at p; returns behind it, NULL: open. */
static const char *redirection(struct parser *parser, const char *from, const char *p)
{
    struct shell_command *command = begin(parser);
    bool is_input = *p == '<';
    const char *operator= p;
    p += strspn(p, "<>&|");
    size_t length = (size_t)(p - operator);
    bool is_here = length == 2 && memcmp(operator, "<<", 2) == 0;
    if (is_here && *p == '-')
        p++;
    p = past_blanks(p);
    const char *target = p;
    p = past_word(&parser->nesting, p);
    if (!p || !command)
        return NULL;
    if (is_here) {
        struct buf word = BUF_INIT, plain = BUF_INIT;
        buf_add(&word, target, (size_t)(p - target));
        shell_unquote(word.data ? word.data : "", &plain);
        strlist_add(&parser->ends, plain.data ? plain.data : "");
        parser->script->failed |= word.failed || plain.failed || parser->ends.failed;
        buf_done(&word);
        buf_done(&plain);
    }
    add_text(is_input ? &command->inputs : &command->outputs, from, p);
    return p;
}

/* Past the texts of the here-documents that the line named. */
static const char *past_documents(struct parser *parser, const char *p)
{
    for (size_t i = 0; i < parser->ends.count; i++)
        for (bool found = false; *p && !found;) {
            const char *line = p + strspn(p, "\t");
            size_t length = strcspn(line, "\n");
            found = length == strlen(parser->ends.items[i]) &&
                    strncmp(line, parser->ends.items[i], length) == 0;
            p = line + length + (line[length] == '\n');
        }
    strlist_done(&parser->ends);
    parser->ends = (struct strlist)STRLIST_INIT;
    return p;
}

static const char *operator_at(struct parser *parser, const char *p)
{
    switch (*p) {
    case '\n':
        end(parser, SHELL_JOIN_THEN);
        return past_documents(parser, p + 1);
    case '(':
        parser->command = NULL; /* "name ()" was no command, but is one here, which is left out */
        parser->depth++;
        return p + 1;
    case ')':
        end(parser, SHELL_JOIN_THEN);
        if (parser->depth > 0)
            parser->depth--;
        return p + 1;
    case '|':
        end(parser, p[1] == '|' ? SHELL_JOIN_OR : SHELL_JOIN_PIPE);
        return p + (p[1] == '|' || p[1] == '&' ? 2 : 1);
    case '&':
        if (p[1] != '&' && parser->command)
            parser->command->in_background = true;
        end(parser, p[1] == '&' ? SHELL_JOIN_AND : SHELL_JOIN_THEN);
        return p + (p[1] == '&' ? 2 : 1);
    default:
        end(parser, SHELL_JOIN_THEN);
        return p + strspn(p, ";");
    }
}

static const char *word_at(struct parser *parser, const char *p)
{
    const char *digits = p + strspn(p, "0123456789");
    if (strchr("<>", *digits) && *digits && (digits > p || p[1] != '('))
        return redirection(parser, p, digits);
    if (*p == '&' && p[1] == '>')
        return redirection(parser, p, p);
    const char *to = past_word(&parser->nesting, p);
    if (!to || take_reserved(parser, p, to))
        return to;
    struct shell_command *command = begin(parser);
    if (command)
        add_text(&command->words, p, to);
    return to;
}

bool shell_parse(const char *text, struct shell_script *ret_script)
{
    struct parser parser = {.script = ret_script, .join = SHELL_JOIN_NONE};
    const char *p = text;
    *ret_script = (struct shell_script){0};
    while (p && *(p = past_blanks(p)) && !ret_script->failed) {
        bool is_operator = strchr("\n;|&()", *p) && !(*p == '&' && p[1] == '>');
        p = is_operator ? operator_at(&parser, p) : word_at(&parser, p);
    }
    strlist_done(&parser.ends);
    ret_script->too_deep = parser.nesting.too_deep;
    for (size_t i = 0; i < ret_script->count; i++)
        ret_script->failed |= ret_script->commands[i].words.failed ||
                              ret_script->commands[i].inputs.failed ||
                              ret_script->commands[i].outputs.failed;
    return p && !ret_script->failed;
}

void shell_script_done(struct shell_script *script)
{
    for (size_t i = 0; i < script->count; i++) {
        strlist_done(&script->commands[i].words);
        strlist_done(&script->commands[i].inputs);
        strlist_done(&script->commands[i].outputs);
    }
    free(script->commands);
    *script = (struct shell_script){0};
}

/* ---- words ---- */

struct expansion {
    shell_lookup_fn lookup;
    void *context;
    struct strlist *fields;
    struct buf field, *culprit;
    bool has_field; /* also an empty one in quotes */
    enum shell_worth worth;
};

static void blame(struct expansion *e, enum shell_worth worth, const char *from, const char *to)
{
    if (worth <= e->worth)
        return;
    e->worth = worth;
    if (e->culprit) {
        buf_reset(e->culprit);
        buf_add(e->culprit, from, (size_t)(to - from));
    }
}

static void end_field(struct expansion *e)
{
    if (e->has_field)
        strlist_add(e->fields, e->field.data ? e->field.data : "");
    e->fields->failed |= e->field.failed;
    buf_reset(&e->field);
    e->has_field = false;
}

/* A variable's value; outside of quotes it is split at blanks. */
static void add_value(struct expansion *e, const char *value, bool in_quotes)
{
    for (; *value; value++) {
        if (!in_quotes && strchr(" \t\n", *value)) {
            end_field(e);
            continue;
        }
        if (!in_quotes && strchr("*?[", *value))
            e->worth = e->worth < SHELL_KEPT ? SHELL_KEPT : e->worth;
        buf_add(&e->field, value, 1);
        e->has_field = true;
    }
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* From a "$"; returns behind it. */
static const char *expand_dollar(struct expansion *e, const char *p, bool in_quotes)
{
    const char *from = p++, *name, *to, *value = "";
    if (*p == '(') {
        to = past_known(p, ')');
        blame(e, SHELL_COMPUTED, from, to ? to : p);
        return to ? to : p + strlen(p);
    }
    bool has_brace = *p == '{';
    name = p + has_brace;
    const char *after = name;
    while (is_name(*after))
        after++;
    if (isdigit((unsigned char)*name) && !has_brace)
        after = name + 1;
    to = has_brace ? past_known(p, '}') : after;
    if (after == name) { /* $@, $?, a lone "$" */
        if (!has_brace && (!*p || !strchr("@*#?$!-", *p))) {
            buf_add(&e->field, from, 1);
            e->has_field = true;
            return p;
        }
        to = has_brace ? to : p + 1;
        blame(e, SHELL_COMPUTED, from, to ? to : p);
        return to ? to : p + strlen(p);
    }
    cleanup_free char *copy = strndup(name, (size_t)(after - name));
    enum shell_worth worth = copy ? e->lookup(e->context, copy, &value) : SHELL_COMPUTED;
    e->fields->failed |= !copy;
    /* "${N:-4}" with a value of N is that value */
    bool plain =
        !has_brace || *after == '}' ||
        (*value && worth == SHELL_LITERAL && (strncmp(after, ":-", 2) == 0 || *after == '-'));
    if (worth != SHELL_LITERAL || !plain)
        blame(e, worth == SHELL_COMPUTED ? SHELL_COMPUTED : SHELL_KEPT, from, to ? to : after);
    else
        add_value(e, value, in_quotes);
    return to ? to : after + strlen(after);
}

static const char *expand_double(struct expansion *e, const char *p)
{
    e->has_field = true;
    for (p++; *p && *p != '"';) {
        if (*p == '\\' && p[1] && strchr("\"\\$`\n", p[1])) {
            if (p[1] != '\n')
                buf_add(&e->field, p + 1, 1);
            p += 2;
        } else if (*p == '$') {
            p = expand_dollar(e, p, true);
        } else if (*p == '`') {
            const char *to = past_known(p, '`');
            blame(e, SHELL_COMPUTED, p, to ? to : p);
            p = to ? to : p + strlen(p);
        } else {
            buf_add(&e->field, p++, 1);
        }
    }
    return *p ? p + 1 : p;
}

static const char *expand_plain(struct expansion *e, const char *p, const char *word)
{
    const char *to;
    switch (*p) {
    case '\\':
        if (p[1] == '\n')
            return p + 2;
        p += p[1] != '\0';
        break;
    case '`':
        to = past_known(p, '`');
        blame(e, SHELL_COMPUTED, p, to ? to : p);
        return to ? to : p + strlen(p);
    case '<':
    case '>': /* bash: a process as a file */
        blame(e, SHELL_COMPUTED, word, word + strlen(word));
        return word + strlen(word);
    case '~':
        if (p == word)
            blame(e, SHELL_KEPT, word, word + strlen(word));
        break;
    case '*':
    case '?':
    case '[':
        blame(e, SHELL_KEPT, word, word + strlen(word));
        break;
    case '{': /* bash: {1,2} and {1..3} */
        if (strchr(p, '}') && (strchr(p, ',') || strstr(p, "..")))
            blame(e, SHELL_KEPT, word, word + strlen(word));
        break;
    default:
        break;
    }
    buf_add(&e->field, p, 1);
    e->has_field = true;
    return p + (*p != '\0');
}

enum shell_worth shell_expand(const char *word, shell_lookup_fn lookup, void *context,
                              struct strlist *fields, struct buf *culprit)
{
    size_t before = fields->count;
    struct expansion e = {lookup, context, fields, BUF_INIT, culprit, false, SHELL_LITERAL};
    for (const char *p = word; *p;) {
        if (*p == '\'') {
            size_t n = strcspn(p + 1, "'");
            buf_add(&e.field, p + 1, n);
            e.has_field = true;
            p += n + 1 + (p[n + 1] != '\0');
        } else if (*p == '"') {
            p = expand_double(&e, p);
        } else if (*p == '$' && p[1] == '"') {
            p++;
        } else if (*p == '$' && p[1] == '\'') { /* bash: with escapes */
            blame(&e, SHELL_KEPT, word, word + strlen(word));
            p++;
        } else if (*p == '$') {
            p = expand_dollar(&e, p, false);
        } else {
            p = expand_plain(&e, p, word);
        }
    }
    end_field(&e);
    buf_done(&e.field);
    while (e.worth != SHELL_LITERAL && fields->count > before) {
        free(fields->items[--fields->count]);
        fields->items[fields->count] = NULL;
    }
    return e.worth;
}

bool shell_is_in_name(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

bool shell_is_assignment(const char *word)
{
    size_t n = 0;
    while (shell_is_in_name(word[n]))
        n++;
    return n > 0 && !(word[0] >= '0' && word[0] <= '9') && word[n] == '=';
}

void shell_unquote(const char *word, struct buf *out)
{
    buf_add(out, "", 0);
    for (const char *p = word; *p;) {
        char quote = *p == '\'' || *p == '"' ? *p : '\0';
        if (quote) {
            for (p++; *p && *p != quote; p++) {
                if (quote == '"' && *p == '\\' && p[1] && strchr("\"\\$`", p[1]))
                    p++;
                buf_add(out, p, 1);
            }
            p += *p != '\0';
        } else {
            p += *p == '\\' && p[1];
            buf_add(out, p++, 1);
        }
    }
}

void shell_quote(const char *text, struct buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:=,+@%^";
    if (*text && text[strspn(text, plain)] == '\0') {
        buf_add_str(out, text);
        return;
    }
    buf_add_str(out, "'");
    for (; *text; text++)
        if (*text == '\'')
            buf_add_str(out, "'\\''");
        else
            buf_add(out, text, 1);
    buf_add_str(out, "'");
}
