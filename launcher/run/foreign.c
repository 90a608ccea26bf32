/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/run/foreign.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/foreign/options.h"
#include "jobs/foreign/variables.h"
#include "jobs/ranks/rankmap.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/nearest.h"
#include "lib/base/number.h"
#include "lib/topo/cpus.h"
#include "launcher/run/batch_hosts.h"

#define SHOWN_MAX NEAREST_WORD_MAX
#define SLURM_INTERACTIVE_STEP "4294967290" /* slurm.h: 0xfffffffa */

/* One option and its values. */
struct typed {
    const struct option_table *table; /* ours */
    const struct foreign_option *option;
    const char *word;      /* as it was typed, of the command line */
    char shown[SHOWN_MAX]; /* without its value */
    const char *values[2]; /* NULL: none */
    int used;              /* words */
    bool each_only;
    struct run_line *line;
    struct job_request *request; /* of it */
};

static struct request_program *current(const struct typed *typed)
{
    return &typed->request->programs[typed->request->program_count - 1];
}

static int whole_job(const struct typed *typed, struct drarun_error *err)
{
    return typed->each_only
               ? error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                            "%s is for the whole job: give it before the first program",
                            typed->shown)
               : 0;
}

static int set_cores(const struct typed *typed, const char *text, struct drarun_error *err)
{
    uint32_t before = typed->request->cores;
    int64_t cores = 0;
    int rc = whole_job(typed, err);
    if (rc == 0)
        rc = number_parse(typed->shown, text, 1, CPUS_MAX, &cores, err);
    if (rc < 0)
        return rc;
    if (before > 0 && cores != before)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: %u cores for each rank, and %u are asked for before: give one of "
                          "them",
                          typed->shown, (uint32_t)cores, before);
    typed->request->cores = (uint32_t)cores;
    return 0;
}

/* "slot:PE=4:OVERSUBSCRIBE", and as Open MPI 4 has it "slot:PE=4,OVERSUBSCRIBE", without its PE=4,
 * into value; where there is none, as it is. */
static int take_cores(const struct typed *typed, char *value, struct drarun_error *err)
{
    char *at = value + strcspn(value, ":,");
    while (*at && strncasecmp(at + 1, "pe=", 3) != 0)
        at += 1 + strcspn(at + 1, ":,");
    if (!*at)
        return 0;
    size_t length = strcspn(at + 4, ":,");
    char number[SHOWN_MAX];
    snprintf(number, sizeof number, "%.*s", (int)length, at + 4);
    const char *rest = at + 4 + length;
    if (*rest) /* behind what separates it */
        memmove(at + 1, rest + 1, strlen(rest));
    else
        *at = '\0';
    return set_cores(typed, number, err);
}

/* Ranks may always share a core, so that Open MPI's modifiers change nothing. */
static const char *without_modifier(const char *value)
{
    static const char *const names[] = {"none", "core", "numa"};
    for (size_t i = 0; value && i < ARRAY_LEN(names); i++) {
        const char *rest = value + strlen(names[i]);
        if (strncmp(value, names[i], strlen(names[i])) == 0 &&
            (strcasecmp(rest, ":overload-allowed") == 0 || strcasecmp(rest, ":if-supported") == 0))
            return names[i];
    }
    return value;
}

/* Several launchers may use a word, each for something else. */
static int refuse(const struct typed *typed, const char *word, struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    const struct foreign_option *option = typed->option, *other = option;
    while ((other = foreign_option_find((size_t)(other - foreign_options) + 1, word)))
        if (strcmp(other->text, option->text) != 0)
            buf_printf(&text, "; %s's: %s", foreign_launcher_name(other->from), other->text);
    int rc = text.len > 0
                 ? error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s is not an option here. %s's: %s%s",
                              typed->shown, foreign_launcher_name(option->from), option->text,
                              text.data ? text.data : "")
                 : error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s is not an option here: %s",
                              typed->shown, option->text);
    buf_done(&text);
    return rc;
}

static bool takes_pairs(const struct foreign_option *option)
{
    return foreign_option_values(option, "NAME=VALUE") == 1;
}

/* What follows an option with a value. */
static const char *words_of(const struct foreign_option *option)
{
    return option->values_after < 2 ? "a value"
           : takes_pairs(option)    ? "NAME VALUE or NAME=VALUE"
                                    : "two words: NAME VALUE";
}

static int set_variable(const struct typed *typed, struct strlist *env, struct drarun_error *err)
{
    const char *name = typed->values[0], *value = typed->values[1];
    if (!name[0] || name[0] == '=' || (value && strchr(name, '=')))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: expected %s, got \"%s\"%s",
                          typed->shown, words_of(typed->option), name,
                          takes_pairs(typed->option) ? "" : "; -x takes NAME=VALUE");
    strlist_addf(env, "%s%s%s%s", typed->option->text, name, value ? "=" : "", value ? value : "");
    if (strcmp(typed->option->text, "PRTE_MCA_") == 0 && !typed->line->prtemca)
        typed->line->prtemca = name;
    return env->failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* "NAME=VALUE", or NAME whose value was typed. */
static int set_its_variable(const struct typed *typed, struct drarun_error *err)
{
    struct strlist *env = &current(typed)->env;
    const char *value = typed->values[0];
    strlist_addf(env, "%s%s%s", typed->option->text, value ? "=" : "", value ? value : "");
    return env->failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

static bool says_oversubscribe(const char *value)
{
    return value && strcasestr(value, "oversubscribe");
}

static int check_so(const struct typed *typed, const char *word, struct drarun_error *err)
{
    const char *value = typed->values[0], *so = typed->option->values, *left = value;
    char rest[SHOWN_MAX];
    if (!value && typed->option->values_after == 0)
        return 0;
    if (so && value && strstr(so, ":PE=N") && strlen(value) < sizeof rest) {
        strcpy(rest, value); // NOLINT: the length was checked
        int rc = take_cores(typed, rest, err);
        if (rc < 0 || !rest[0])
            return rc;
        left = rest;
    }
    if (!so || (left && words_has(so, left)))
        return 0;
    if (value)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s %s is not possible here: %s",
                          typed->shown, value, typed->option->text);
    return refuse(typed, word, err);
}

/* Values of other launchers are in either case. */
static bool is_one_of(const char *values, const char *value)
{
    char lower[64];
    size_t length = strlen(value);
    if (length >= sizeof lower)
        return false;
    for (size_t i = 0; i <= length; i++)
        lower[i] = (char)tolower((unsigned char)value[i]);
    return words_index(values, lower, length) >= 0;
}

/* The entry for the value that was typed. */
static const struct foreign_option *entry_for(const struct foreign_option *option, const char *word,
                                              const char *value)
{
    if (option->way != FOREIGN_WHEN || (value && is_one_of(option->values, value)))
        return option;
    return foreign_option_find((size_t)(option - foreign_options) + 1, word);
}

static int set_hosts(const struct typed *typed, struct drarun_error *err)
{
    struct job_request *request = typed->request;
    if (request->hosts || request->hostfile)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: the hosts are given twice; name all of them in one list or file",
                          typed->shown);
    if (typed->option->way == FOREIGN_HOSTS)
        request->hosts = typed->values[0];
    else
        request->hostfile = typed->values[0];
    request->hosts_shown = typed->word;
    return 0;
}

static int use(const struct typed *typed, const char *word, struct drarun_error *err)
{
    struct job_request *request = typed->request;
    int64_t number = 0;
    int rc;
    switch (typed->option->way) {
    case FOREIGN_SAME:
        return options_set(typed->table, typed->option->text, typed->shown,
                           strcmp(typed->option->text, "--bind") == 0
                               ? without_modifier(typed->values[0])
                               : typed->values[0],
                           typed->each_only, typed->line, err);
    case FOREIGN_CORES:
        return set_cores(typed, typed->values[0], err);
    case FOREIGN_WHEN:
        return options_set(typed->table, typed->option->text, typed->shown, NULL, typed->each_only,
                           typed->line, err);
    case FOREIGN_VARIABLE:
        return set_variable(typed, &current(typed)->env, err);
    case FOREIGN_SETS:
        return set_its_variable(typed, err);
    case FOREIGN_ALL_VARIABLE:
        rc = whole_job(typed, err);
        return rc < 0 ? rc : set_variable(typed, &request->env_all, err);
    case FOREIGN_INHERIT:
        rc = whole_job(typed, err);
        if (rc == 0) {
            request->inherit = typed->option->text;
            request->inherit_list = typed->values[0];
        }
        return rc;
    case FOREIGN_SO:
        request->oversubscribe |= says_oversubscribe(typed->values[0]);
        return check_so(typed, word, err);
    case FOREIGN_HOSTS:
    case FOREIGN_HOSTFILE:
        rc = whole_job(typed, err);
        return rc < 0 ? rc : set_hosts(typed, err);
    case FOREIGN_PER_HOST:
        rc = whole_job(typed, err);
        if (rc == 0)
            rc = number_parse(typed->shown, typed->values[0], 1, RANKMAP_RANKS_MAX, &number, err);
        request->per_host = (uint32_t)number;
        return rc;
    case FOREIGN_CLASH:
    case FOREIGN_REFUSED:
        break;
    }
    return refuse(typed, word, err);
}

/* "-N2" and "-c4": a letter with its number. */
static const struct foreign_option *find_glued(const char *word, const char **ret_value)
{
    char letter[3] = {word[0], word[1], '\0'};
    if (word[1] == '-' || word[1] == '\0' || word[2] < '0' || word[2] > '9')
        return NULL;
    *ret_value = word + 2;
    return foreign_option_find(0, letter);
}

static int take(const struct option_table *table, int argc, char *const argv[], bool each_only,
                void *target, struct drarun_error *err)
{
    const char *word = argv[0], *equals = strchr(word, '=');
    struct run_line *line = target;
    struct typed typed = {.table = table,
                          .word = word,
                          .used = 1,
                          .each_only = each_only,
                          .line = line,
                          .request = &line->request};
    size_t length = equals ? (size_t)(equals - word) : strlen(word), values = 0;
    typed.option = foreign_option_find(0, word);
    if (typed.option && equals)
        typed.values[values++] = equals + 1;
    if (!typed.option && (typed.option = find_glued(word, &typed.values[0]))) {
        values = 1;
        length = 2;
    }
    if (!typed.option)
        return 0;
    snprintf(typed.shown, sizeof typed.shown, "%.*s", (int)length, word);
    if (typed.option->way == FOREIGN_REFUSED)
        return refuse(&typed, typed.shown, err);
    bool takes_none = typed.option->values_after == 0 && !typed.option->values;
    if (values > 0 && takes_none)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s takes no value, got \"%s\"",
                          typed.shown, typed.values[0]);
    while (values < foreign_option_values(typed.option, typed.values[0])) {
        if (typed.used >= argc)
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s needs %s", typed.shown,
                              words_of(typed.option));
        typed.values[values++] = argv[typed.used++];
    }
    typed.option = entry_for(typed.option, typed.shown, typed.values[0]);
    int rc = use(&typed, typed.shown, err);
    return rc < 0 ? rc : typed.used;
}

static void spellings(struct buf *out)
{
    for (size_t i = 0; i < foreign_option_count; i++) {
        const char *at = foreign_options[i].words;
        size_t n = 0;
        for (const char *w; (w = words_next(&at, &n));)
            buf_printf(out, "--%.*s ", (int)n, w);
    }
}

static bool is_taken(const char *word)
{
    const struct foreign_option *option = foreign_option_find(0, word);
    return option && option->way != FOREIGN_REFUSED && option->way != FOREIGN_CLASH;
}

const struct option_others foreign_others = {take, spellings, is_taken};

int foreign_explain(const char *shown, struct drarun_error *err)
{
    const struct foreign_option *option = NULL;
    for (size_t at = 0; (option = foreign_option_find(at, shown));
         at = (size_t)(option - foreign_options) + 1)
        if (option->way == FOREIGN_CLASH) {
            struct drarun_error bad = *err;
            return error_kind(err, bad.kind, bad.code, "%s; %s", bad.text, option->text);
        }
    return -err->code;
}

/* ---- variables ---- */

static bool is_said(const struct run_line *line, enum foreign_said what)
{
    const struct job_request *request = &line->request;
    switch (what) {
    case FOREIGN_SAID_RANKS:
        return request->programs[0].ranks > 0 || request->per_worker > 0;
    case FOREIGN_SAID_WORKERS:
        return request->workers > 0 || request->agents || request->pods || request->hosts_shown ||
               request->per_worker > 0;
    case FOREIGN_SAID_HOSTS:
        return is_said(line, FOREIGN_SAID_WORKERS) ||
               (request->program_count == 1 && request->programs[0].ranks == 1);
    case FOREIGN_SAID_BIND:
        return request->bind != NULL;
    case FOREIGN_SAID_OUTPUT:
        return line->console.label || line->console.dir;
    case FOREIGN_SAID_TIMEOUT:
        return request->timeout_ms > 0;
    case FOREIGN_SAID_FAILURE:
        return request->on_rank_failure != NULL;
    case FOREIGN_SAID_NOTHING:
        break;
    }
    return false;
}

/* Of the command line (--mca sets variables), else our own. */
static const char *value_of(const struct job_request *request, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < request->program_count; i++) {
        const struct strlist *env = &request->programs[i].env;
        for (size_t k = 0; k < env->count; k++)
            if (strncmp(env->items[k], name, length) == 0 && env->items[k][length] == '=')
                return env->items[k] + length + 1;
    }
    return getenv(name);
}

/* srun tells its tasks by the same variables what it was told. The shell that salloc starts on a
 * node (LaunchParameters=use_interactive_step in slurm.conf) is a task, too, but what it is told of
 * hosts and ranks is the allocation. */
static bool is_spent(const struct foreign_variable *variable)
{
    const char *step = variable->from == FOREIGN_SRUN ? getenv("SLURM_STEP_ID") : NULL;
    bool is_size = variable->unless == FOREIGN_SAID_RANKS || variable->unless == FOREIGN_SAID_HOSTS;
    return step && !(is_size && strcmp(step, SLURM_INTERACTIVE_STEP) == 0);
}

/* mpirun would start ranks on all of them. The variable's value may be longer than a line. */
static void tell_batch_hosts(const struct run_line *line)
{
    const char *variable = NULL;
    uint32_t count = is_said(line, FOREIGN_SAID_HOSTS) ? 0 : batch_hosts_count(&variable);
    const char *other = is_said(line, FOREIGN_SAID_WORKERS) ? NULL : batch_hosts_other();
    if (count > 1)
        log_note("%s names %u hosts, but all ranks start on this one: " FOREIGN_START_AGENTS,
                 variable, count);
    if (other)
        log_note("SLURM_JOB_NODELIST=%s: the allocation is on that host, but all ranks start on "
                 "this one: " FOREIGN_START_AGENTS,
                 other);
}

int foreign_variables_use(const struct option_table *table, struct run_line *line,
                          struct drarun_error *err)
{
    struct job_request *request = &line->request;
    if (request->launch_mpirun)
        return 0; /* they are for that one */
    if (line->prtemca)
        log_note("--prtemca %s: drarun starts no daemons of PRRTE, so nothing reads it",
                 line->prtemca);
    tell_batch_hosts(line);
    for (size_t i = 0; i < foreign_variable_count; i++) {
        const struct foreign_variable *variable = &foreign_variables[i];
        const char *value = value_of(request, variable->name);
        if (variable->from == FOREIGN_OPENMPI5 && strstr(variable->name, "mapping_policy"))
            request->oversubscribe |= says_oversubscribe(value);
        if (!value || !value[0] || is_said(line, variable->unless) || is_spent(variable) ||
            (variable->harmless && words_has(variable->harmless, value)))
            continue;
        bool sets = strchr(variable->ours ? variable->ours : "", '=') != NULL;
        if (!variable->ours || (sets && !is_one_of(variable->text, value))) {
            log_note("%s=%s: drarun does not read this variable: %s", variable->name, value,
                     sets ? variable->ours : variable->text);
            continue;
        }
        int rc = options_set(table, variable->ours, variable->name, sets ? NULL : value, false,
                             line, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}
