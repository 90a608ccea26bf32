/* SPDX-License-Identifier: Apache-2.0 */
/* The script in which mpirun stands: what it changes for the ranks before, and what is left out. */
#include <stdlib.h>
#include <string.h>

#include "jobs/import/mpirun.h"
#include "jobs/ranks/wrapper.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"

/* NAME=VALUE of the script. */
static void assign(struct mpirun *m, const char *word, bool is_exported)
{
    const char *equals = strchr(word, '=');
    cleanup_free char *name = strndup(word, (size_t)(equals - word));
    struct strlist fields = STRLIST_INIT;
    struct buf quoted = BUF_INIT;
    enum shell_worth worth = SHELL_KEPT;
    /* a value is not split: the same as in double quotes, but for a list of bash */
    if (equals[1] != '(') {
        worth = shell_expand(equals + 1, launcher_env_look_up, &m->env, &fields, NULL);
        for (size_t i = 0; i < fields.count; i++)
            buf_printf(&quoted, "%s%s", i ? " " : "", fields.items[i]);
    }
    long long value = worth == SHELL_COMPUTED ? mpirun_compute(m, equals + 1) : -1;
    CLEANUP(buf_done) struct buf line = BUF_INIT;
    buf_add_str(&line, word);
    if (value >= 0 && name) {
        buf_printf(&quoted, "%lld", value);
        worth = SHELL_LITERAL;
        reader_fail(m->node, "the launcher's %.100s is %lld", word, value);
        buf_reset(&line);
        buf_printf(&line, "%s=%lld", name, value);
    }
    buf_add(&quoted, "", 0);
    struct launcher_variable *v =
        name ? launcher_env_set(&m->env, name, worth == SHELL_LITERAL ? quoted.data : NULL, worth)
             : NULL;
    if (v) {
        v->is_exported |= is_exported;
        v->is_own = true;
        v->is_used = false;
    }
    m->env.failed |= !name || fields.failed || quoted.failed;
    if (worth != SHELL_COMPUTED)
        mpirun_add_line_take(m, &line);
    buf_done(&quoted);
    strlist_done(&fields);
}

/* An assignment in quotes, "NAME=A B", as NAME="A B". False: the word is none. */
static bool move_quote(const char *word, struct buf *out)
{
    if ((*word != '"' && *word != '\'') || !shell_is_assignment(word + 1))
        return false;
    const char *equals = strchr(word, '=');
    buf_add(out, word + 1, (size_t)(equals - word));
    buf_add(out, word, 1);
    buf_add_str(out, equals + 1);
    return true;
}

/* A word of export: a name, with or without a value, or what only a shell makes some of, as
 * "$(cat .env)". */
static void export_word(struct mpirun *m, const char *exporter, const char *word)
{
    CLEANUP(buf_done) struct buf moved = BUF_INIT;
    struct launcher_variable *v = launcher_env_find(&m->env, word);
    if (v) {
        v->is_exported = true;
    } else if (shell_is_assignment(word)) {
        assign(m, word, true);
    } else if (move_quote(word, &moved)) {
        m->env.failed |= moved.failed;
        if (!moved.failed)
            assign(m, moved.data, true);
    } else if (strpbrk(word, "$`")) {
        strlist_addf(&m->lines, "%s %s", exporter, word);
        m->needs_shell = true;
    }
}

static void export_names(struct mpirun *m, const struct shell_command *command)
{
    for (size_t i = 1; i < command->words.count; i++)
        export_word(m, command->words.items[0], command->words.items[i]);
}

/* "set -a": from there on what is assigned, or read by "source", is exported; "set +a" ends it. */
static void set_options(struct mpirun *m, const struct shell_command *command)
{
    for (size_t i = 1; i < command->words.count; i++) {
        const char *word = command->words.items[i];
        bool has_name = strspn(word, "-+") == 1 && word[strlen(word) - 1] == 'o';
        const char *name =
            has_name && i + 1 < command->words.count ? command->words.items[i + 1] : "";
        if (strspn(word, "-+") != 1 || !word[1])
            break; /* the script's arguments */
        i += has_name;
        if (!strchr(word, 'a') && strcmp(name, "allexport") != 0)
            continue;
        m->exports_all = word[0] == '-';
        strlist_add(&m->lines, m->exports_all ? "set -a" : "set +a");
    }
}

static void show_words(const struct shell_command *command, size_t first, struct buf *out)
{
    buf_add(out, "", 0);
    for (size_t i = first; i < command->words.count; i++)
        buf_printf(out, "%s%s", i > first ? " " : "", command->words.items[i]);
}

static void show_command(const struct shell_command *command, struct buf *out)
{
    show_words(command, 0, out);
}

static void leave_out(struct mpirun *m, const struct shell_command *command, const char *why)
{
    struct buf text = BUF_INIT;
    show_command(command, &text);
    bool is_long = text.len > 60;
    if (text.len > 0)
        reader_fail(m->node, "the launcher's \"%.60s%s\" is left out: %s", text.data,
                    is_long ? " ..." : "", why);
    buf_done(&text);
}

/* A line that every rank's shell runs first. */
static void keep_line(struct mpirun *m, const struct shell_command *command)
{
    struct buf text = BUF_INIT;
    show_command(command, &text);
    mpirun_add_line_take(m, &text);
    m->needs_shell = true;
}

/* To a word of the script; one that only its shell knows is for each rank's. */
static void change_directory(struct mpirun *m, const char *word)
{
    struct strlist fields = STRLIST_INIT;
    struct buf line = BUF_INIT;
    enum shell_worth worth = shell_expand(word, launcher_env_look_up, &m->env, &fields, NULL);
    if (worth == SHELL_LITERAL && fields.count == 1 && fields.items[0][0] != '-') {
        mpirun_change_directory(m, fields.items[0]);
    } else {
        buf_printf(&line, "cd %s", word);
        mpirun_add_line_take(m, &line);
        m->needs_shell = true;
    }
    m->env.failed |= fields.failed;
    strlist_done(&fields);
}

/* Ranks are not meant to have it, so that nothing is said of it. */
static void take_back(struct launcher_variable *v)
{
    v->is_exported = false;
    v->is_used = true;
}

/* A name of "unset" or "env -u", of which mpirun has no variable then. */
static void unset_name(struct mpirun *m, const char *by, const char *word)
{
    struct strlist fields = STRLIST_INIT;
    enum shell_worth worth = shell_expand(word, launcher_env_look_up, &m->env, &fields, NULL);
    bool is_known = worth == SHELL_LITERAL && fields.count == 1;
    struct launcher_variable *v = is_known ? launcher_env_find(&m->env, fields.items[0]) : NULL;
    m->env.failed |= fields.failed;
    strlist_done(&fields);
    if (v) {
        take_back(v);
        v->is_own = false;
    } else if (!is_known) {
        reader_fail(m->node, "the launcher's \"%s %.80s\" is left out: the name is not known here",
                    by, word);
    } else if (json_array_size(m->env.sources) > 0) {
        reader_fail(m->node,
                    "the launcher's \"%s %.80s\" is left out: which variables its envFrom has "
                    "is not known here",
                    by, word);
    }
}

/* What lines before it that ranks' shells run too may have set, those unset as well. */
static void unset_names(struct mpirun *m, const struct shell_command *command)
{
    for (size_t i = 1; i < command->words.count; i++) {
        const char *word = command->words.items[i];
        if (strcmp(word, "-f") == 0)
            return; /* functions */
        if (word[0] != '-')
            unset_name(m, "unset", word);
    }
    if (m->needs_shell)
        keep_line(m, command);
}

static const char inherited[] = "cd ulimit source . umask module ml conda spack eval pushd shopt";

static const char exporters[] = "export declare typeset readonly";

static bool are_assignments(const struct shell_command *command)
{
    for (size_t i = 0; i < command->words.count; i++)
        if (!shell_is_assignment(command->words.items[i]))
            return false;
    return command->words.count > 0;
}

static bool is_test(const struct shell_command *command)
{
    return command->words.count > 0 && words_has("test [ [[", command->words.items[0]);
}

/* Variables that a command sets, or may set, to what only the script's run can tell. */
static void forget_names(struct mpirun *m, const struct shell_command *command)
{
    const char *first = command->words.count ? command->words.items[0] : "";
    bool is_export = words_has(exporters, first);
    bool is_set = is_export || are_assignments(command);
    for (size_t i = 0; i < command->words.count; i++) {
        const char *word = command->words.items[i];
        cleanup_free char *name = strndup(word, strcspn(word, "="));
        bool is_read = strcmp(first, "read") == 0 && i > 0 && word[0] != '-';
        bool is_loop = words_has("for select", first) && i == 1;
        m->env.failed |= !name;
        if (!name || !((is_set && shell_is_assignment(word)) || is_read || is_loop))
            continue;
        struct launcher_variable *v = launcher_env_set(&m->env, name, NULL, SHELL_COMPUTED);
        if (v)
            v->is_own = true;
    }
}

/* A command that runs only at times. */
static int take_conditional(struct mpirun *m, const struct shell_command *command)
{
    const char *first = command->words.count ? command->words.items[0] : "";
    const struct shell_command *before = command - 1;
    struct buf line = BUF_INIT;
    if (command->depth == 0 && command->join == SHELL_JOIN_AND && words_has(inherited, first)) {
        show_command(before, &line);
        buf_add_str(&line, " && ");
        show_command(command, &line);
        mpirun_add_line_take(m, &line);
        m->needs_shell = true;
        return 0;
    }
    if (strcmp(first, "cd") == 0)
        return mpirun_refuse(m, "the launcher's script changes its directory on a condition, and "
                                "ranks start there; " MPIRUN_INSTEAD);
    forget_names(m, command);
    leave_out(m, command, "there is no launcher pod's script");
    return 0;
}

/* What mpirun, and so the ranks, would inherit from a command before it. */
static void before_line(struct mpirun *m, const struct shell_command *command)
{
    const char *first = command->words.count ? command->words.items[0] : "";
    if (are_assignments(command)) {
        for (size_t i = 0; i < command->words.count; i++) {
            struct launcher_variable *v = NULL;
            cleanup_free char *name =
                strndup(command->words.items[i], strcspn(command->words.items[i], "="));
            m->env.failed |= !name;
            v = name ? launcher_env_find(&m->env, name) : NULL;
            assign(m, command->words.items[i], m->exports_all || (v && v->is_exported));
        }
    } else if (words_has(exporters, first)) {
        export_names(m, command);
    } else if (strcmp(first, "cd") == 0 && command->words.count == 2) {
        change_directory(m, command->words.items[1]);
    } else if (words_has("source .", first) && command->words.count > 1 &&
               strstr(command->words.items[1], "set_nccl_env")) {
        leave_out(m, command, "drarun runs that script itself where the image has it");
    } else if (words_has(inherited, first)) {
        keep_line(m, command);
    } else if (strcmp(first, "set") == 0) {
        set_options(m, command);
    } else if (strcmp(first, "unset") == 0) {
        unset_names(m, command);
    } else {
        forget_names(m, command);
        leave_out(m, command, "there is no launcher pod's script");
    }
}

static int take_command(struct mpirun *m, const struct shell_command *command)
{
    bool after_test = command->join == SHELL_JOIN_AND && is_test(command - 1);
    if (command->depth > 0 || command->join == SHELL_JOIN_OR || after_test)
        return take_conditional(m, command);
    before_line(m, command);
    return 0;
}

/* ---- what starts mpirun ---- */

/* A word of env's: NAME=VALUE, where quotes may be around all of it. */
static void assign_operand(struct mpirun *m, const char *word)
{
    struct strlist fields = STRLIST_INIT;
    struct buf plain = BUF_INIT;
    if (shell_is_assignment(word)) {
        assign(m, word, true);
        return;
    }
    enum shell_worth worth = shell_expand(word, launcher_env_look_up, &m->env, &fields, NULL);
    if (worth == SHELL_LITERAL && fields.count == 1 && shell_is_assignment(fields.items[0])) {
        const char *equals = strchr(fields.items[0], '=');
        buf_add(&plain, fields.items[0], (size_t)(equals + 1 - fields.items[0]));
        shell_quote(equals + 1, &plain);
        if (plain.data)
            assign(m, plain.data, true);
    }
    m->env.failed |= fields.failed || plain.failed;
    buf_done(&plain);
    strlist_done(&fields);
}

/* env -i: nothing of the launcher's reaches mpirun. */
static void forget_all(struct mpirun *m)
{
    for (size_t i = 0; i < m->env.count; i++)
        take_back(&m->env.list[i]);
    json_array_clear(m->env.sources);
}

/* What env reads as of getopt_long. */
static const struct env_option {
    const char *name;
    char letter;
    bool has_value;
} env_options[] = {
    {"ignore-environment", 'i', false},
    {"unset", 'u', true},
    {"chdir", 'C', true},
    {"argv0", 'a', true},
    {"debug", 'v', false},
    {"null", '0', false},
};

/* The one at *at, a letter of several or a whole word behind its dashes, which *at then is behind;
 * *ret_value: behind its name, NULL: in the next word, if it has one. NULL: none of these. */
static const struct env_option *next_option(const char **at, bool is_long, const char **ret_value)
{
    size_t length = is_long ? strcspn(*at, "=") : 1;
    *ret_value = NULL;
    for (size_t i = 0; i < ARRAY_LEN(env_options); i++) {
        const struct env_option *o = &env_options[i];
        if (is_long ? strncmp(o->name, *at, length) != 0 || o->name[length] : o->letter != **at)
            continue;
        *at += length;
        if (o->has_value && **at) {
            *ret_value = *at + is_long; /* the sign */
            *at += strlen(*at);
        }
        return o;
    }
    return NULL;
}

static void take_env_options(struct mpirun *m, const struct strlist *words, size_t from, size_t to)
{
    CLEANUP(buf_done) struct buf others = BUF_INIT;
    const char *directory = NULL; /* of several the last one */
    for (size_t i = from; i < to; i++) {
        const char *option = words->items[i], *value;
        bool is_long = strncmp(option, "--", 2) == 0;
        if (strcmp(option, "-") == 0)
            forget_all(m);
        for (const char *at = *option ? option + 1 + is_long : ""; *at;) {
            const struct env_option *o = next_option(&at, is_long, &value);
            if (!o) {
                buf_printf(&others, " %s", option);
                break;
            }
            if (o->has_value && !value && i + 1 < to)
                value = words->items[++i];
            if (o->letter == 'i')
                forget_all(m);
            else if (o->letter == 'u' && value)
                unset_name(m, "env -u", value);
            else if (o->letter == 'C')
                directory = value;
        }
    }
    if (directory)
        change_directory(m, directory);
    m->env.failed |= others.failed;
    if (others.data)
        reader_fail(m->node,
                    "the launcher's \"env%.80s\" is left out: it is for mpirun, not for the ranks; "
                    "before their program it is for them",
                    others.data);
}

static void take_env(struct mpirun *m, const struct strlist *words, size_t at,
                     const struct wrapper *env)
{
    take_env_options(m, words, at + 1, at + env->options);
    for (size_t i = at + env->options; i < at + env->words; i++)
        assign_operand(m, words->items[i]);
}

#define TIME_MAX_S (10.0 * 365 * 86400) /* as a duration of a job */

/* Seconds of "90", "1.5h", as timeout(1) has them; 0 is no limit. */
static bool read_time(const char *text, uint64_t *ret_seconds)
{
    static const char units[] = "smhd";
    static const double seconds_of[] = {1, 60, 3600, 86400};
    char *end = NULL;
    double time = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : units;
    if (end == text || !unit || (*end && end[1]) || !(time >= 0))
        return false;
    time *= seconds_of[unit - units];
    *ret_seconds = time < TIME_MAX_S ? (uint64_t)time : 0;
    *ret_seconds += time < TIME_MAX_S && (double)*ret_seconds < time;
    return true;
}

/* text: the whole of it. at: its time. */
static void take_time(struct mpirun *m, const struct strlist *words, size_t at, const char *text)
{
    struct strlist fields = STRLIST_INIT;
    CLEANUP(buf_done) struct buf what = BUF_INIT;
    uint64_t seconds = 0;
    if (at < words->count)
        shell_expand(words->items[at], launcher_env_look_up, &m->env, &fields, NULL);
    buf_printf(&what, "the launcher's \"%.80s\"", text);
    if (fields.count != 1 || !read_time(fields.items[0], &seconds))
        reader_fail(m->node,
                    "%s is left out: its time is not known here; timeouts: {total: TIME} "
                    "ends the job after it",
                    what.data);
    else if (seconds > 0)
        mpirun_take_seconds(m, what.data, seconds);
    m->env.failed |= fields.failed || what.failed;
    strlist_done(&fields);
}

static void take_wrapper(struct mpirun *m, const struct strlist *words, size_t at,
                         const struct wrapper *wrapper)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    for (size_t i = at; i < at + wrapper->arguments; i++)
        buf_printf(&text, "%s%s", i > at ? " " : "", words->items[i]);
    m->env.failed |= text.failed;
    if (text.failed)
        return;
    switch (wrapper->kind) {
    case WRAPPER_NOTHING:
        return;
    case WRAPPER_ENV:
        take_env(m, words, at, wrapper);
        return;
    case WRAPPER_TIME:
        take_time(m, words, at + wrapper->options, text.data);
        return;
    case WRAPPER_SCHEDULING:
        reader_fail(m->node,
                    "the launcher's \"%.80s\" is left out: it is for mpirun, not for the ranks; "
                    "before their program it is for them",
                    text.data);
        return;
    case WRAPPER_USER:
        reader_fail(m->node,
                    "the launcher's \"%.80s\" is left out: ranks run as the user of the workers' "
                    "container (securityContext.runAsUser)",
                    text.data);
        for (size_t i = at + wrapper->arguments; i < at + wrapper->words; i++)
            assign_operand(m, words->items[i]);
        return;
    }
}

size_t mpirun_past_wrappers(struct mpirun *m, const struct strlist *words)
{
    struct wrapper wrapper;
    size_t i = 0;
    while (i < words->count) {
        if (shell_is_assignment(words->items[i])) {
            if (m)
                assign(m, words->items[i], true);
            i++;
            continue;
        }
        if (!wrapper_read(strlist_items(words) + i, words->count - i, &wrapper))
            break;
        if (m)
            take_wrapper(m, words, i, &wrapper);
        i += wrapper.words;
    }
    return i;
}

/* "mpirun --version", which starts nothing. */
static bool only_asks(const char *word)
{
    return words_has("-V -version --version -h -help --help -info -cb --check-build", word);
}

static bool is_run(const struct shell_command *command)
{
    const struct strlist *words = &command->words;
    size_t i = mpirun_past_wrappers(NULL, words);
    return i < words->count && mpirun_known(words->items[i]) != 0 &&
           !(i + 1 < words->count && only_asks(words->items[i + 1]));
}

static bool is_null(const struct shell_command *command)
{
    for (size_t i = 0; i < command->inputs.count; i++)
        if (!strstr(command->inputs.items[i], "/dev/null"))
            return false;
    return true;
}

/* Whether the run of a script happens, once, and with nothing on its input. */
static int check_run(const struct mpirun *m, const struct shell_script *script, size_t at)
{
    const struct shell_command *command = &script->commands[at];
    const struct shell_command *before = at > 0 ? command - 1 : NULL;
    if (command->depth > 0)
        return mpirun_refuse(
            m, "the launcher's script runs mpirun in a condition, a loop or a function: a "
               "job runs its program once; " MPIRUN_INSTEAD);
    if (command->join == SHELL_JOIN_OR ||
        (command->join == SHELL_JOIN_AND && before && is_test(before)))
        return mpirun_refuse(
            m, "the launcher's script runs mpirun on a condition, which a job does not "
               "have; " MPIRUN_INSTEAD);
    if (command->join == SHELL_JOIN_PIPE || !is_null(command))
        return mpirun_refuse(
            m, "the launcher's script gives mpirun an input, and a job has none: let the "
               "program open the file, or " MPIRUN_INSTEAD);
    for (size_t i = 0; i < command->outputs.count; i++)
        reader_fail(m->node,
                    "mpirun's redirection \"%s\" is left out: what ranks print is the "
                    "job's log",
                    command->outputs.items[i]);
    return 0;
}

/* The whole command where it is not known at which word the program begins. */
static void show_program(struct mpirun *m, const struct shell_command *run, struct buf *out)
{
    size_t launcher = mpirun_past_wrappers(NULL, &run->words);
    size_t program = mpirun_find_program(m, &run->words, launcher + 1);
    show_words(run, program < run->words.count ? program : launcher, out);
}

/* A job runs one program, and which of several is meant is not known. */
static int check_one_run(struct mpirun *m, const struct shell_script *script, size_t at)
{
    size_t next = at + 1;
    CLEANUP(buf_done) struct buf first = BUF_INIT;
    CLEANUP(buf_done) struct buf second = BUF_INIT;
    while (next < script->count && !is_run(&script->commands[next]))
        next++;
    if (next >= script->count)
        return 0;
    show_program(m, &script->commands[at], &first);
    show_program(m, &script->commands[next], &second);
    return mpirun_refuse(m,
                         "the launcher's script runs mpirun more than once, for \"%.60s\" and then "
                         "for \"%.60s\", and a job runs one program: import each as a job of its "
                         "own (drarun import FILE -- PROGRAM), or run the launcher's command as it "
                         "is with launch: mpirun",
                         first.data ? first.data : "", second.data ? second.data : "");
}

static int take_commands(struct mpirun *m, const struct shell_script *script)
{
    size_t at = 0;
    while (at < script->count && !is_run(&script->commands[at]))
        at++;
    if (at == script->count) {
        for (size_t i = 0; i < script->count; i++)
            leave_out(m, &script->commands[i], "there is no launcher pod's script");
        return 0;
    }
    const struct shell_command *run = &script->commands[at];
    mpirun_find_launcher(m, run->words.items[mpirun_past_wrappers(NULL, &run->words)]);
    m->name = mpirun_base_name(run->words.items[mpirun_past_wrappers(NULL, &run->words)]);
    int rc = check_run(m, script, at);
    if (rc == 0)
        rc = check_one_run(m, script, at);
    for (size_t i = 0; rc == 0 && i < at; i++)
        rc = take_command(m, &script->commands[i]);
    if (rc == 0)
        rc = mpirun_take_line(m, &run->words, mpirun_past_wrappers(m, &run->words) + 1);
    for (size_t i = at + 1; rc > 0 && i < script->count; i++)
        leave_out(m, &script->commands[i],
                  script->commands[i].join == SHELL_JOIN_PIPE
                      ? "what ranks print is the job's log"
                      : "there is no launcher pod's script");
    return rc;
}

int mpirun_take_script(struct mpirun *m, const char *text)
{
    struct shell_script script;
    int rc = shell_parse(text, &script) ? take_commands(m, &script) : 0;
    if (script.too_deep)
        rc = mpirun_refuse(m,
                           "the launcher's script has more than %u quotations and brackets inside "
                           "one another; " MPIRUN_INSTEAD,
                           SHELL_DEPTH_MAX);
    m->env.failed |= script.failed;
    shell_script_done(&script);
    return rc;
}

void mpirun_quote_words(struct mpirun *m, const struct strlist *words, struct strlist *quoted)
{
    for (size_t i = 0; i < words->count; i++) {
        struct buf word = BUF_INIT;
        shell_quote(words->items[i], &word);
        strlist_add(quoted, word.data ? word.data : "");
        m->env.failed |= word.failed || quoted->failed;
        buf_done(&word);
    }
}

int mpirun_take_words(struct mpirun *m, const struct strlist *words)
{
    size_t at = 0;
    while (at < words->count && mpirun_known(words->items[at]) == 0)
        at++;
    if (at == words->count)
        return 0;
    size_t past = mpirun_past_wrappers(NULL, words);
    if (past < at)
        reader_fail(m->node, "\"%s\" before %s is left out: there is no launcher's pod",
                    words->items[past], words->items[at]);
    mpirun_find_launcher(m, words->items[at]);
    m->name = mpirun_base_name(words->items[at]);
    return mpirun_take_line(m, words, at + 1);
}
