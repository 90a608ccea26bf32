/* SPDX-License-Identifier: Apache-2.0 */
/* drarun: which verb, and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <event2/event.h>

#include "jobs/foreign/options.h"
#include "jobs/foreign/variables.h"
#include "launcher/programs/commit.h"
#include "launcher/programs/remote.h"
#include "launcher/verbs/completion.h"
#include "launcher/run/run.h"
#include "launcher/cli/paint.h"
#include "launcher/cli/verb.h"
#include "launcher/verbs/messages.h"
#include "launcher/verbs/verbs.h"
#include "launcher/verbs/version.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/first_process.h"
#include "lib/base/log.h"
#include "lib/base/need_memory.h"
#include "lib/doc/json_memory.h"

static int show_completion(int argc, char *const argv[])
{
    struct buf text = BUF_INIT;
    if (argc != 1 || completion_script(argv[0], &text) < 0) {
        log_error("completion: expected the name of a shell: drarun completion bash, zsh or fish");
        return error_exit_status(DRARUN_ERR_USAGE);
    }
    return verb_write("completion", &text);
}

/* A word behind a verb that takes none. */
static int unexpected(const char *verb, const char *word)
{
    log_error("%s: unexpected argument \"%s\"", verb, word);
    return error_exit_status(DRARUN_ERR_USAGE);
}

static int show_foreign(unsigned int foreign)
{
    struct buf text = BUF_INIT;
    foreign_options_table(foreign, &text);
    buf_add_str(&text, "\n");
    foreign_variables_table(foreign, &text);
    return verb_write("help", &text);
}

static bool is_either(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

/* drarun help [VERB [PART]], the name of another launcher, or the code of a message. */
static int show_help(int argc, char *const argv[])
{
    struct drarun_error err = {0};
    struct buf text = BUF_INIT;
    if (argc == 0) {
        verbs_overview(&text);
        return verb_write("help", &text);
    }
    const struct verb *verb = verb_find(argv[0]);
    unsigned int foreign = foreign_launcher(argv[0]);
    if (argc > (verb && verb->parts ? 2 : 1))
        return unexpected("help", argv[argc - 1]);
    if (foreign)
        return show_foreign(foreign);
    if (is_either(argv[0], "help", "version", "completion") ||
        is_either(argv[0], "help", "--help", "-h"))
        return show_help(0, NULL);
    if (!verb && messages_help(argv[0], &text))
        return verb_write_prose("help", &text);
    if (!verb) {
        verb_unknown(argv[0], &err);
        return verb_fail(NULL, &err);
    }
    /* as if --help were typed behind it: a verb may have more to say than its table */
    char option[] = "--help", program[] = "drarun";
    char *words[] = {program, argv[0], argc > 1 ? argv[1] : option, argc > 1 ? option : NULL, NULL};
    if (argc > 1 && !verb_part(verb, argv[1])) {
        buf_printf(&text, "help: there is no drarun %s %s; there are", verb->name, argv[1]);
        for (size_t i = 0; verb->parts[i]; i++)
            buf_printf(&text, "%s %s", i ? "," : "", verb_part_word(verb->parts[i]));
        log_error("%s", text.data ? text.data : "out of memory");
        buf_done(&text);
        return error_exit_status(DRARUN_ERR_USAGE);
    }
    return verb->run(argc, words + 2);
}

/* Descriptors that we open must not become 0, 1 or 2. */
static void fill_closed_stdio(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", O_RDWR); /* gets the lowest free number, which is fd */
}

/* The same words with the first `at` behind the next one, the verb. NULL: out of memory. */
static char **put_verb_first(int argc, char *argv[], int at)
{
    char **words = calloc((size_t)argc + 1, sizeof *words);
    if (!words)
        return NULL;
    words[0] = argv[0];
    words[1] = argv[1 + at];
    for (int i = 0; i < at; i++)
        words[2 + i] = argv[1 + i];
    for (int i = 2 + at; i < argc; i++)
        words[i] = argv[i];
    return words;
}

/* words: the verb stands at words[1]. */
static int run_word(const struct verb *verb, int argc, char *words[], int at)
{
    if (at == 0)
        return verb->run(argc - 2, words + 2);
    cleanup_free char **moved = put_verb_first(argc, words, at);
    struct drarun_error err = {0};
    if (!moved) {
        error_set(&err, ENOMEM, "out of memory");
        return verb_fail(NULL, &err);
    }
    return verb->run(argc - 2, moved + 2);
}

static int show_nothing_to_do(void)
{
    struct buf text = BUF_INIT;
    verbs_overview(&text);
    if (!text.failed)
        fd_write_all(STDERR_FILENO, text.data, text.len);
    buf_done(&text);
    return error_exit_status(DRARUN_ERR_USAGE);
}

/* Options that all verbs have may stand before the verb. */
static int run_words(int argc, char *argv[])
{
    struct drarun_error err = {0};
    int at = verb_globals(argc - 1, argv + 1);
    const char *word = at < argc - 1 ? argv[1 + at] : "";
    int count = argc - at - 2;
    char **words = argv + at + 2;
    bool asks = count > 0 && is_either(words[0], "--help", "-h", "-help");
    if (argc == 1)
        return show_nothing_to_do();
    if (is_either(word, "help", "--help", "-h"))
        return show_help(count, words);
    if (is_either(word, "version", "--version", "-V"))
        return asks ? show_help(0, NULL) : version_show(count, words, commit_id);
    if (strcmp(word, "completion") == 0)
        return asks ? show_help(0, NULL) : show_completion(count, words);
    const struct verb *verb = verb_find(word);
    if (verb)
        return run_word(verb, argc, argv, at);
    if (word[0] && word[0] != '-' && verb_check_program(word, &err) < 0)
        return verb_fail(NULL, &err);
    return run_verb(argv, argc - 1, argv + 1);
}

int main(int argc, char *argv[])
{
    first_process_begin();
    json_memory_end_without();
    event_set_mem_functions(need_memory, need_more_memory, free);
    fill_closed_stdio();
    remote_setup();
    log_setup("drarun", LOG_NORMAL);
    log_colour(paint_wanted(STDERR_FILENO));
    return run_words(argc, argv);
}
