/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that run `drarun join` (docs/design/029-entry.md): the ranks' program behind it, and its
 * options as those of a job, whose launcher starts the ranks itself. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/import/parts.h"
#include "jobs/ranks/wrapper.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"
#include "lib/base/options.h"

#define RANKS_MAX 65536 /* of a pod */
#define INSTEAD                                                                                    \
    "put the ranks' program in its place, or give it behind the file (drarun import FILE -- "      \
    "PROGRAM)"

struct join {
    uint32_t per_worker, slots;
    bool oversubscribe, report_bindings;
    const char *workers, *on_rank_failure, *launch, *network, *bind;
    struct strlist left; /* options that a job has no place for */
};

static int leave(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct join *join = target;
    (void)value;
    strlist_add(&join->left, shown);
    return join->left.failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

#define AT(field) offsetof(struct join, field)
#define LEFT .kind = OPTION_CALL, .set = leave

/* Those of launcher/verbs/join.c. */
static const struct option_spec option_list[] = {
    {.name = "workers", .value = "N", .kind = OPTION_TEXT, .offset = AT(workers)},
    {.name = "per-worker",
     .aliases = "-N -npernode --npernode",
     .value = "N",
     .kind = OPTION_COUNT,
     .offset = AT(per_worker),
     .min = 1,
     .max = RANKS_MAX},
    {.name = "slots",
     .value = "N",
     .kind = OPTION_COUNT,
     .offset = AT(slots),
     .min = 1,
     .max = RANKS_MAX},
    {.name = "oversubscribe", .kind = OPTION_FLAG, .offset = AT(oversubscribe)},
    {.name = "on-rank-failure",
     .value = "WHAT",
     .kind = OPTION_TEXT,
     .offset = AT(on_rank_failure)},
    {.name = "launch", .value = "HOW", .kind = OPTION_TEXT, .offset = AT(launch)},
    {.name = "network", .value = "KIND", .kind = OPTION_TEXT, .offset = AT(network)},
    {.name = "bind", .value = "HOW", .kind = OPTION_TEXT, .offset = AT(bind)},
    {.name = "report-bindings", .kind = OPTION_FLAG, .offset = AT(report_bindings)},
    {.name = "peers", .value = "LIST", LEFT},
    {.name = "index", .value = "I", LEFT},
    {.name = "key-file", .value = "FILE", LEFT},
    {.name = "port", .value = "PORT", LEFT},
    {.name = "start-timeout", .value = "TIME", LEFT},
    {.name = "label", .letter = 'l', LEFT},
    {.name = "verbose", .letter = 'v', LEFT},
};
static const struct option_table table = {option_list, ARRAY_LEN(option_list)};

static bool is_drarun(const char *word)
{
    const char *slash = strrchr(word, '/');
    return strcmp(slash ? slash + 1 : word, "drarun") == 0;
}

/* join, or its former name as drarun still takes it: exec with options of join, "--" and a program
 * (verb_join_is_meant). */
static bool is_join(const struct strlist *words, size_t verb)
{
    struct join join = {.left = STRLIST_INIT};
    size_t begin = verb + 1;
    if (strcmp(words->items[verb], "exec") != 0)
        return strcmp(words->items[verb], "join") == 0;
    int used = options_parse(&table, (int)(words->count - begin), words->items + begin, false,
                             &join, NULL);
    strlist_done(&join.left);
    return used > 0 && strcmp(words->items[begin + (size_t)used - 1], "--") == 0;
}

static const char *why_left(const char *option)
{
    if (words_has("-l --label -v --verbose", option))
        return "it is an option of drarun run";
    if (strcmp(option, "--start-timeout") == 0)
        return "a job's timeouts say how long its pods may take";
    return "a job's launcher knows its workers, and makes their key";
}

static void set_count(json_t *job, const char *key, uint32_t value)
{
    if (value > 0)
        json_object_set_new(job, key, json_integer(value));
}

static void set_text(json_t *object, const char *key, const char *value)
{
    if (value)
        json_object_set_new(object, key, json_string(value));
}

static void take_options(struct import *im, const struct reader_node *node, const struct join *join)
{
    const json_t *workers = json_object_get(im->job, "workers");
    json_int_t pods = workers ? json_integer_value(workers) : 1;
    set_count(im->job, "ranksPerWorker", join->per_worker);
    set_count(im->job, "slots", join->slots);
    if (join->oversubscribe)
        json_object_set_new(im->job, "oversubscribe", json_true());
    if (join->report_bindings)
        json_object_set_new(im->job, "reportBindings", json_true());
    set_text(im->job, "launch", join->launch);
    set_text(im->job, "network", join->network);
    set_text(im->job, "bind", join->bind);
    if (join->on_rank_failure)
        set_text(import_child(im->job, "failurePolicy"), "onRankFailure", join->on_rank_failure);
    if (join->workers && strtoll(join->workers, NULL, 10) != pods)
        reader_fail(node,
                    "--workers %.40s is left out: the workload has %" JSON_INTEGER_FORMAT " pods",
                    join->workers, pods);
    for (size_t i = 0; i < join->left.count; i++)
        reader_fail(node, "%s is left out: %s", join->left.items[i], why_left(join->left.items[i]));
}

/* What starts the program as it is stays before it: "nice drarun join -- app". */
static void set_program(json_t *container, const struct strlist *words, size_t before, size_t first)
{
    json_t *command = json_array();
    for (size_t i = 0; i < words->count; i++)
        if (i < before || i >= first)
            json_array_append_new(command, json_string(words->items[i]));
    json_object_set_new(container, "command", command);
    json_object_del(container, "args");
}

/* A line of a shell, which stays. */
static void tell_lines(const struct reader_node *node, const struct strlist *words)
{
    for (size_t i = 0; i < words->count; i++)
        if (strstr(words->items[i], "drarun join ")) {
            reader_fail(node, "each pod runs drarun join itself, and each rank would: " INSTEAD);
            return;
        }
}

/* Behind "drarun join": its options, and the program. */
static int take_words(struct import *im, const struct reader_node *node, json_t *container,
                      const struct strlist *words, size_t at, struct join *join,
                      struct drarun_error *err)
{
    struct drarun_error why = {0};
    const char *verb = words->items[at + 1];
    size_t begin = at + 2;
    int used =
        options_parse(&table, (int)(words->count - begin), words->items + begin, false, join, &why);
    if (used == -ENOMEM)
        return error_set(err, ENOMEM, "out of memory");
    if (used < 0)
        return import_refuse_at(node, err, "drarun %s: %s: " INSTEAD, verb, why.text);
    if (begin + (size_t)used == words->count)
        return import_refuse_at(node, err, "drarun %s starts no program", verb);
    reader_fail(node, "drarun %s is left out: the job's launcher starts the ranks of all pods",
                verb);
    take_options(im, node, join);
    set_program(container, words, at, begin + (size_t)used);
    return 0;
}

int import_take_join(struct import *im, json_t *template, bool *ret_joined,
                     struct drarun_error *err)
{
    json_t *container = import_first_container(template);
    struct join join = {.left = STRLIST_INIT};
    struct reader_node containers, first, node;
    if (!reader_get(&im->pod, "containers", &containers))
        return 0;
    first = reader_item(&containers, import_ranks_container(im->pod.value));
    if (!json_is_object(first.value) || !reader_get(&first, "command", &node))
        return 0;
    CLEANUP(strlist_done) struct strlist words = STRLIST_INIT;
    import_words(container, &words);
    if (words.failed)
        return error_set(err, ENOMEM, "out of memory");
    size_t at = words.count > 0 ? wrapper_skip(words.items) : 0;
    if (at + 1 >= words.count || !is_drarun(words.items[at]) || !is_join(&words, at + 1)) {
        tell_lines(&node, &words);
        return 0;
    }
    int rc = take_words(im, &node, container, &words, at, &join, err);
    strlist_done(&join.left);
    *ret_joined = rc == 0;
    return rc;
}
