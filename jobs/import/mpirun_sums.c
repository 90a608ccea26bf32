/* SPDX-License-Identifier: Apache-2.0 */
/* What a script computes from what the manifest says: sums, and the lines of the hostfile. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/import/mpirun.h"
#include "lib/base/cleanup.h"

#define SUM_MAX 1000000000LL
#define DEPTH_MAX 32

/* $((...)): whole numbers, names with and without $, + - * / % and brackets. */
struct sum {
    struct mpirun *m;
    const char *at;
    unsigned int depth; /* of brackets */
    bool failed;        /* something else, or too large */
};

static long long sum_of(struct sum *s);

static char next_of(struct sum *s)
{
    while (*s->at == ' ' || *s->at == '\t')
        s->at++;
    return *s->at;
}

static long long number(struct sum *s, const char *text, char **ret_end)
{
    long long value = strtoll(text, ret_end, 10);
    bool is_octal = text[0] == '0' && isdigit((unsigned char)text[1]);
    s->failed |= !isdigit((unsigned char)text[0]) || is_octal || value > SUM_MAX;
    return value;
}

static long long value_of_name(struct sum *s)
{
    char name[64], *end;
    const char *value = NULL;
    s->at += *s->at == '$';
    bool in_braces = *s->at == '{';
    s->at += in_braces;
    size_t n = 0;
    while (n < sizeof name - 1 && (isalnum((unsigned char)s->at[n]) || s->at[n] == '_'))
        n++;
    snprintf(name, sizeof name, "%.*s", (int)n, s->at);
    s->at += n;
    s->failed |= n == 0 || (in_braces && *s->at != '}');
    s->at += in_braces && *s->at == '}';
    if (s->failed || launcher_env_look_up(&s->m->env, name, &value) != SHELL_LITERAL || !value) {
        s->failed = true;
        return 0;
    }
    long long found = number(s, value, &end);
    s->failed |= *end != '\0';
    return found;
}

static long long factor(struct sum *s)
{
    char *end;
    long long value;
    if (next_of(s) == '(') {
        s->at++;
        s->failed |= ++s->depth > DEPTH_MAX;
        value = s->failed ? 0 : sum_of(s);
        s->depth--;
        s->failed |= next_of(s) != ')';
        s->at += *s->at == ')';
    } else if (isdigit((unsigned char)*s->at)) {
        value = number(s, s->at, &end);
        s->at = end;
    } else {
        value = value_of_name(s);
    }
    return value;
}

static long long product(struct sum *s)
{
    long long value = factor(s);
    for (char sign = next_of(s); !s->failed && sign && strchr("*/%", sign); sign = next_of(s)) {
        s->at++;
        long long other = factor(s);
        s->failed |= sign != '*' && other == 0;
        if (s->failed)
            return 0;
        value = sign == '*' ? value * other : sign == '/' ? value / other : value % other;
        s->failed |= llabs(value) > SUM_MAX;
    }
    return value;
}

static long long sum_of(struct sum *s)
{
    long long value = product(s);
    for (char sign = next_of(s); !s->failed && (sign == '+' || sign == '-'); sign = next_of(s)) {
        s->at++;
        long long other = product(s);
        if (s->failed)
            return 0;
        value = sign == '+' ? value + other : value - other;
        s->failed |= llabs(value) > SUM_MAX;
    }
    return value;
}

static bool is_one_of(const char *const list[], size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], text) == 0)
            return true;
    return false;
}

/* A line of the operator's hostfile stays one line. */
static bool passes_lines(const char *command)
{
    static const char *const list[] = {
        "cat",
        "sort",
        "sort -u",
        "uniq",
        "awk {print $1}",
        "awk NF {print $1}",
        "awk NF{print $1}",
        /* -d' ' and -d ' ', without their quotes */
        "cut -d  -f1",
        "cut -d  -f 1",
        "cut -d   -f1",
        "cut -d   -f 1",
        "cut -f1 -d ",
        "cut -f 1 -d ",
        "cut -f1 -d  ",
        "cut -f 1 -d  ",
    };
    return is_one_of(list, ARRAY_LEN(list), command);
}

/* Of a file, wc prints the name, too: it is the last. */
static bool counts_lines(const char *command, bool of_file)
{
    static const char *const list[] = {
        "sed -n $=", "grep -c .", "grep -c ", "awk END {print NR}", "awk END{print NR}", "wc -l",
    };
    return is_one_of(list, ARRAY_LEN(list) - (of_file ? 1u : 0u), command);
}

/* failed: set without memory. */
static bool is_hostfile(const char *word, bool *failed)
{
    static const char end[] = "hostfile";
    CLEANUP(buf_done) struct buf path = BUF_INIT;
    shell_unquote(word, &path);
    *failed |= path.failed;
    return !path.failed && path.len >= strlen(end) && !strpbrk(path.data, " \t") &&
           strcmp(path.data + path.len - strlen(end), end) == 0;
}

/* A stage of a pipe: its words without quotes, and without the file that the first one reads.
 * False: it reads something else than the hostfile, or than the stage before it. */
static bool read_stage(const struct shell_command *command, bool is_first, struct buf *out,
                       bool *ret_of_file)
{
    const struct strlist *words = &command->words, *inputs = &command->inputs;
    const char *input = inputs->count > 0 ? inputs->items[0] : NULL; /* "< file" */
    bool has_input = input && input[0] == '<' && input[1] != '<' &&
                     is_hostfile(input + 1 + strspn(input + 1, " \t"), &out->failed);
    *ret_of_file = is_first && !input && words->count > 1 &&
                   is_hostfile(words->items[words->count - 1], &out->failed);
    size_t count = words->count - (*ret_of_file ? 1u : 0u);
    buf_add(out, "", 0);
    for (size_t i = 0; i < count; i++) {
        CLEANUP(buf_done) struct buf plain = BUF_INIT;
        shell_unquote(words->items[i], &plain);
        buf_printf(out, "%s%s", i ? " " : "", plain.data ? plain.data : "");
        out->failed |= plain.failed;
    }
    return command->depth == 0 && command->outputs.count == 0 && inputs->count < 2 &&
           (is_first ? has_input || *ret_of_file : !input);
}

/* Whether a command's substitution prints how many lines the operator's hostfile has: one a worker.
 */
static bool counts_hosts(struct mpirun *m, const char *text)
{
    struct shell_script script;
    bool counts = shell_parse(text, &script) && script.count > 0;
    for (size_t i = 0; counts && i < script.count; i++) {
        CLEANUP(buf_done) struct buf command = BUF_INIT;
        bool of_file = false, is_last = i + 1 == script.count;
        const struct shell_command *stage = &script.commands[i];
        counts = read_stage(stage, i == 0, &command, &of_file) && command.data &&
                 (i == 0 || stage->join == SHELL_JOIN_PIPE) &&
                 (is_last ? counts_lines(command.data, of_file) : passes_lines(command.data));
        m->env.failed |= command.failed;
    }
    m->env.failed |= script.failed;
    shell_script_done(&script);
    return counts;
}

long long mpirun_compute(struct mpirun *m, const char *word)
{
    struct buf plain = BUF_INIT;
    const json_t *workers = json_object_get(m->im->job, "workers");
    bool is_quoted = word[0] == '"';
    size_t length = strlen(word);
    bool is_whole = length > 4u + 2u * is_quoted && strncmp(word + is_quoted, "$(", 2) == 0;
    long long value = -1;
    if (!is_whole)
        return -1;
    buf_add(&plain, word + is_quoted, length - 2u * is_quoted);
    m->env.failed |= plain.failed;
    char *text = plain.data;
    size_t last = plain.len - 1;
    if (!plain.failed && strncmp(text, "$((", 3) == 0 && strcmp(text + last - 1, "))") == 0) {
        struct sum sum = {.m = m, .at = text + 3};
        value = sum_of(&sum);
        if (sum.failed || strcmp(sum.at, "))") != 0)
            value = -1;
    } else if (!plain.failed && text[last] == ')') {
        text[last] = '\0';
        if (counts_hosts(m, text + 2))
            value = workers ? json_integer_value(workers) : 1;
    }
    buf_done(&plain);
    return value;
}
