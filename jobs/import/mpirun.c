/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher of an MPIJob: what stands behind mpirun is the ranks' program, and the options and
 * the script before it say how many ranks there are and what they inherit. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/import/mpirun.h"
#include "jobs/ranks/shell_words.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"

/* The script of "bash -lc SCRIPT ARG0 ARG1", whose arguments are $0, $1, ...; NULL: there is none.
 */
static const char *find_script(struct mpirun *m, const struct strlist *words, size_t at,
                               const struct shell_words *shell)
{
    for (size_t i = 0; i < shell->options; i++)
        strlist_add(&m->shell, words->items[at++]);
    m->is_login |= shell->is_login;
    if (!shell->has_script)
        return NULL;
    for (size_t i = at + 1; i < words->count; i++) {
        char name[16];
        snprintf(name, sizeof name, "%zu", i - at - 1);
        launcher_env_set(&m->env, name, words->items[i], SHELL_LITERAL);
    }
    return words->items[at];
}

/* A script that a ConfigMap holds: "bash /scripts/run.sh", "/scripts/run.sh". */
static int take_file(struct mpirun *m, const struct reader_node *pod,
                     const struct reader_node *container, const struct strlist *words, size_t at)
{
    const char *map = "";
    for (; at < words->count; at++) {
        const char *text = launcher_file(m->im->objects, pod, container, words->items[at], &map);
        if (!text && *map)
            reader_fail(m->node,
                        "the script %s is in the ConfigMap %s, which is not among these manifests: "
                        "import both together",
                        words->items[at], map);
        if (!text)
            continue;
        for (size_t i = at + 1; i < words->count; i++) {
            char name[16];
            snprintf(name, sizeof name, "%zu", i - at);
            launcher_env_set(&m->env, name, words->items[i], SHELL_LITERAL);
        }
        strlist_done(&m->shell);
        m->shell = (struct strlist)STRLIST_INIT;
        strlist_add(&m->shell, strstr(text, "bash") ? "bash" : "sh");
        strlist_add(&m->shell, m->is_login ? "-lc" : "-c");
        return mpirun_take_script(m, text);
    }
    return 0;
}

static int take_container(struct mpirun *m, const struct reader_node *pod,
                          const struct reader_node *container)
{
    static const char *const keys[] = {"command", "args"};
    CLEANUP(strlist_done) struct strlist words = STRLIST_INIT;
    CLEANUP(strlist_done) struct strlist quoted = STRLIST_INIT;
    struct reader_node node;
    struct shell_words shell;
    int rc = 0;
    for (size_t k = 0; k < ARRAY_LEN(keys); k++)
        for (size_t i = 0; reader_get(container, keys[k], &node) && i < json_array_size(node.value);
             i++) {
            const char *word = json_string_value(json_array_get(node.value, i));
            struct buf text = BUF_INIT;
            launcher_env_expand(&m->env, word ? word : "", &text);
            strlist_add(&words, text.data ? text.data : "");
            words.failed |= text.failed;
            buf_done(&text);
        }
    if (words.failed)
        return error_set(m->err, ENOMEM, "out of memory");
    mpirun_quote_words(m, &words, &quoted);
    mpirun_past_wrappers(m, &quoted);
    size_t at = mpirun_past_wrappers(NULL, &words);
    if (at < words.count &&
        shell_words_read(strlist_items(&words) + at, words.count - at, &shell)) {
        const char *script = find_script(m, &words, at, &shell);
        rc = script ? mpirun_take_script(m, script) : take_file(m, pod, container, &words, at + 1);
    } else {
        rc = mpirun_take_words(m, &quoted);
        if (rc == 0)
            rc = take_file(m, pod, container, &words, at);
    }
    return rc;
}

int import_mpirun(struct import *im, json_t *template, struct drarun_error *err)
{
    struct reader_node containers, node;
    if (!reader_get(&im->launcher, "containers", &containers) ||
        json_array_size(containers.value) == 0)
        return 0;
    struct reader_node first = reader_item(&containers, 0);
    if (!json_is_object(first.value))
        return 0;
    if (!reader_get(&first, "args", &node) && !reader_get(&first, "command", &node))
        node = first;
    json_t *workers = json_object_get(im->job, "workers");
    json_t *slots = json_object_get(im->job, "ranksPerWorker");
    bool of_operator = words_has("MPIJob TrainJob", import_text(im->workload, "kind"));
    struct mpirun m = {
        .im = im,
        .node = &node,
        .name = "mpirun",
        .container = import_first_container(template),
        .has_hostfile = of_operator,
        .pod = &im->launcher,
        .own = &first,
        .err = err,
        .ranks = {.workers = workers ? (uint64_t)json_integer_value(workers) : 1,
                  .slots = slots         ? (uint64_t)json_integer_value(slots)
                           : of_operator ? 1
                                         : 0},
    };
    if (m.ranks.workers == 0)
        m.ranks.workers = 1;
    launcher_env_load(&m.env, im->objects, &first);
    buf_add_str(&m.directory, import_text(&first, "workingDir"));
    int rc = take_container(&m, &im->launcher, &first);
    if (rc >= 0 && (m.env.failed || m.shell.failed || m.lines.failed || m.directory.failed))
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc >= 0)
        launcher_explain(&im->launcher, template);
    for (size_t i = 0; i < m.count; i++) {
        free(m.fields[i].text);
        free(m.fields[i].culprit);
    }
    free(m.fields);
    buf_done(&m.directory);
    strlist_done(&m.shell);
    strlist_done(&m.lines);
    launcher_env_done(&m.env);
    return rc;
}
