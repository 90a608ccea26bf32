/* SPDX-License-Identifier: Apache-2.0 */
/* The program behind mpirun's options, or several of them. */
#include <inttypes.h>
#include <string.h>

#include "jobs/import/mpirun.h"
#include "jobs/spec/spec_words.h"
#include "lib/base/cleanup.h"

/* Values of the manifest that a word needs where a shell on the worker expands it. */
static void give_values(struct mpirun *m, const char *raw)
{
    for (size_t i = 0; i < m->env.count; i++) {
        struct launcher_variable *v = &m->env.list[i];
        const char *at = raw;
        size_t n = strlen(v->name);
        bool has = false;
        while (!has && (at = strchr(at, '$'))) {
            at += at[1] == '{' || at[1] == '(' ? 2 : 1;
            has = strncmp(at, v->name, n) == 0 && (at[n] == '\0' || !strchr("_", at[n])) &&
                  !(at[n] >= '0' && at[n] <= '9') && !((at[n] | 32) >= 'a' && (at[n] | 32) <= 'z');
        }
        if (!has || v->is_own)
            continue;
        if (v->entry) {
            mpirun_hand_on(m, v);
        } else if (v->value) {
            struct buf line = BUF_INIT;
            buf_printf(&line, "%s=", v->name);
            shell_quote(v->value, &line);
            mpirun_add_line_take(m, &line);
        }
    }
}

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
        give_values(m, f->text ? f->text : f->raw);
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
