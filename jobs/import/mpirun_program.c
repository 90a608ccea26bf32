/* SPDX-License-Identifier: Apache-2.0 */
/* The program behind mpirun's options, or several of them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "jobs/import/mpirun.h"
#include "jobs/ranks/shell_script.h"
#include "jobs/spec/spec_words.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"

/* Behind the next reference of the text ($NAME, ${NAME}, $(NAME)), whose name is at *ret_name;
 * NULL: there is none. */
static const char *next_name(const char *text, const char **ret_name, size_t *ret_length)
{
    for (const char *at = strchr(text, '$'); at; at = strchr(at, '$')) {
        size_t length = 0;
        bool in_brackets = at[1] == '(';
        at += in_brackets || at[1] == '{' ? 2 : 1;
        while (shell_is_in_name(at[length]))
            length++;
        *ret_name = at;
        *ret_length = length;
        if (length > 0 && (!in_brackets || at[length] == ')')) /* else a command's output */
            return at + length;
    }
    return NULL;
}

static bool refers_to(const char *text, const char *variable)
{
    const char *name = NULL;
    size_t length = 0;
    while ((text = next_name(text, &name, &length)))
        if (length == strlen(variable) && strncmp(name, variable, length) == 0)
            return true;
    return false;
}

/* Sources of the manifest that a word needs where a kubelet expands it on the worker. */
static void give_sources(struct mpirun *m, const char *text)
{
    for (size_t i = 0; i < m->env.count; i++) {
        struct launcher_variable *v = &m->env.list[i];
        if (v->entry && !v->is_own && refers_to(text, v->name))
            mpirun_hand_on(m, v);
    }
}

/* ---- what the shell on the worker reads ---- */

/* The texts that it expands: lines of the script, and words of the program from fields[first] on.
 * NULL: behind the last one. */
static const char *expanded_text(const struct mpirun *m, size_t first, size_t at)
{
    if (at < m->lines.count)
        return m->lines.items[at];
    const struct field *f = &m->fields[first + at - m->lines.count];
    return first + at - m->lines.count >= m->count ? NULL : f->text ? "" : f->raw;
}

static bool is_read(const struct mpirun *m, size_t first, const char *name)
{
    const char *text;
    for (size_t i = 0; (text = expanded_text(m, first, i)); i++)
        if (refers_to(text, name))
            return true;
    return false;
}

/* The arguments of the launcher's script, which one on the worker has not: "set -- A B". */
static void give_arguments(struct mpirun *m, size_t first, struct strlist *given)
{
    const struct launcher_variable *v;
    struct buf line = BUF_INIT;
    bool are_read = false;
    char name[16] = "1";
    buf_add_str(&line, "set --");
    for (unsigned int i = 1; (v = launcher_env_find(&m->env, name)) && v->value; i++) {
        are_read |= is_read(m, first, name);
        buf_add_str(&line, " ");
        shell_quote(v->value, &line);
        snprintf(name, sizeof name, "%u", i + 1);
    }
    if (are_read)
        strlist_add(given, line.data ? line.data : "");
    given->failed |= line.failed;
    buf_done(&line);
}

/* What the manifest has for the launcher, whatever its script made of it later. */
static void give_variable(struct mpirun *m, struct launcher_variable *v, struct strlist *given)
{
    struct launcher_variable *now = launcher_env_find(&m->env, v->name);
    CLEANUP(buf_done) struct buf line = BUF_INIT;
    if (now)
        now->is_used = true;
    if (v->entry) {
        mpirun_hand_on(m, v);
    } else if (v->value) {
        buf_printf(&line, "%s=", v->name);
        shell_quote(v->value, &line);
        if (line.data && shell_is_assignment(line.data))
            strlist_add(given, line.data);
        given->failed |= line.failed;
    }
}

/* A name that the manifest does not set may be a key of the launcher's envFrom. Its keys are not
 * known here, so all of it is handed on. */
static void give_all_sources(struct mpirun *m, size_t first)
{
    static const char of_images[] = "PATH LD_LIBRARY_PATH LIBRARY_PATH LD_PRELOAD CPATH PYTHONPATH "
                                    "HOME USER PWD OLDPWD HOSTNAME SHELL TMPDIR";
    const char *text;
    for (size_t i = 0; (text = expanded_text(m, first, i)); i++) {
        const char *name = NULL;
        size_t length = 0;
        while (json_array_size(m->env.sources) > 0 && (text = next_name(text, &name, &length))) {
            cleanup_free char *copy = strndup(name, length);
            bool is_variable = name[-1] != '(' && !(*name >= '0' && *name <= '9');
            m->env.failed |= !copy;
            if (copy && is_variable && !words_has(of_images, copy) &&
                !launcher_env_find(&m->env, copy))
                mpirun_hand_on_name(m, copy);
        }
    }
}

void mpirun_give_values(struct mpirun *m, size_t first)
{
    struct launcher_env manifest = {0};
    struct strlist given = STRLIST_INIT;
    launcher_env_load(&manifest, m->im->objects, m->own);
    give_arguments(m, first, &given);
    for (size_t i = 0; i < manifest.count; i++)
        if (is_read(m, first, manifest.list[i].name))
            give_variable(m, &manifest.list[i], &given);
    give_all_sources(m, first);
    for (size_t i = 0; i < m->lines.count; i++)
        strlist_add(&given, m->lines.items[i]);
    given.failed |= m->lines.failed;
    m->env.failed |= manifest.failed;
    launcher_env_done(&manifest);
    strlist_done(&m->lines);
    m->lines = given;
}

/* ---- the program ---- */

/* The variable with a source to which the text refers by $(NAME): the first whose source is as
 * asked, or NULL. */
static const struct launcher_variable *find_reference(const struct mpirun *m, const char *text,
                                                      bool of_launcher)
{
    for (size_t i = 0; i < m->env.count; i++) {
        const struct launcher_variable *v = &m->env.list[i];
        CLEANUP(buf_done) struct buf reference = BUF_INIT;
        buf_printf(&reference, "$(%s)", v->name);
        if (v->entry && (!of_launcher || mpirun_is_of_launcher(v)) && reference.data &&
            strstr(text, reference.data))
            return v;
    }
    return NULL;
}

/* What the manifest's references became is there to stay. One that stood for a variable with a
 * source is replaced on the workers, which get the source. */
static json_t *word_of(const struct mpirun *m, const char *text)
{
    return find_reference(m, text, false) ? json_string(text) : spec_words_literal(text);
}

static void add_word(const struct field *f, struct buf *line)
{
    buf_add_str(line, line->len ? " " : "exec ");
    if (f->text)
        shell_quote(f->text, line);
    else
        buf_add_str(line, f->raw);
}

static json_t *shell_command(struct mpirun *m, size_t first)
{
    struct buf script = BUF_INIT, line = BUF_INIT;
    json_t *command = json_array();
    for (size_t i = first; i < m->count; i++)
        add_word(&m->fields[i], &line);
    for (size_t i = 0; i < m->lines.count; i++)
        buf_printf(&script, "%s\n", m->lines.items[i]);
    buf_add_str(&script, line.data ? line.data : "");
    for (size_t i = 0; i < m->shell.count; i++)
        json_array_append_new(command, json_string(m->shell.items[i]));
    if (m->shell.count == 0) {
        json_array_append_new(command, json_string("sh"));
        json_array_append_new(command, json_string("-c"));
    }
    json_array_append_new(command, word_of(m, script.data ? script.data : ""));
    reader_fail(m->node, "the program stays in a shell, which each rank runs%s",
                m->lines.count ? ", behind the lines of the script that change what it inherits"
                : m->is_login  ? ": a login shell sets variables, which the ranks inherit"
                               : ": its words have variables or patterns");
    m->lines.failed |= script.failed || line.failed;
    buf_done(&script);
    buf_done(&line);
    return command;
}

static bool is_colon(const struct field *f)
{
    return f->text && strcmp(f->text, ":") == 0;
}

/* One program that becomes the right one by its rank: "test $RANK -lt 1 && exec a; exec b". False:
 * the line does not say how many ranks each has, or is too long to be shown. */
static bool choose_by_rank(struct mpirun *m, size_t first, struct buf *out)
{
    uint64_t ranks = m->ranks.ranks, before = 0;
    for (size_t i = first; i < m->count;) {
        struct buf line = BUF_INIT;
        size_t end = i;
        bool is_known = i < m->count;
        for (; end < m->count && !is_colon(&m->fields[end]); end++) {
            add_word(&m->fields[end], &line);
            is_known &= m->fields[end].text && !strchr(m->fields[end].text, '\'');
        }
        bool is_last = end >= m->count;
        before += ranks;
        is_known &= is_last || ranks > 0;
        if (is_known && !is_last)
            buf_printf(out, "test $RANK -lt %" PRIu64 " && ", before);
        buf_printf(out, "%s%s", line.data ? line.data : "", is_last ? "" : "; ");
        buf_done(&line);
        if (!is_known || out->len > 120 || out->failed)
            return false;
        i = is_last ? end : mpirun_past_options(m, end + 1, &ranks);
        if (!is_last && i >= m->count)
            return false;
    }
    return !strchr(out->data ? out->data : "'", '\'');
}

static int refuse_several(struct mpirun *m, size_t first)
{
    struct buf choice = BUF_INIT;
    int rc = choose_by_rank(m, first, &choice)
                 ? mpirun_refuse(m,
                                 "%s starts several programs, with \":\" between them, and a job "
                                 "runs one on all of its ranks: give one that chooses (drarun "
                                 "import FILE -- sh -c '%s'; MPI_APPNUM is 0 then), or run the "
                                 "launcher's command as it is with launch: mpirun",
                                 m->name, choice.data)
                 : mpirun_refuse(m,
                                 "%s starts several programs, with \":\" between them, and a job "
                                 "runs one on all of its ranks; " MPIRUN_INSTEAD,
                                 m->name);
    buf_done(&choice);
    return rc;
}

int mpirun_check_one_program(struct mpirun *m, size_t first)
{
    for (size_t i = first; i < m->count; i++)
        if (is_colon(&m->fields[i]))
            return refuse_several(m, first);
    return 0;
}

int mpirun_check_words(struct mpirun *m, size_t first)
{
    for (size_t i = first; i < m->count; i++) {
        const struct field *f = &m->fields[i];
        const struct launcher_variable *v = f->text ? find_reference(m, f->text, true) : NULL;
        if (f->worth == SHELL_COMPUTED)
            return mpirun_refuse(
                m,
                "%s's program gets %s, which the launcher's shell computes, and ranks "
                "would get other words; " MPIRUN_INSTEAD,
                m->name, f->culprit);
        if (v)
            return mpirun_refuse(m,
                                 "%s's program gets $(%s), which describes the launcher's pod, and "
                                 "a job has none; " MPIRUN_INSTEAD,
                                 m->name, v->name);
        m->needs_shell |= !f->text;
        if (f->text)
            give_sources(m, f->text);
    }
    return 0;
}

void mpirun_take_program(struct mpirun *m, size_t first)
{
    json_t *command = NULL;
    if (m->needs_shell)
        command = shell_command(m, first);
    else
        for (command = json_array(); first < m->count; first++)
            json_array_append_new(command, word_of(m, m->fields[first].text));
    json_object_set_new(m->container, "command", command);
    json_object_del(m->container, "args");
}
