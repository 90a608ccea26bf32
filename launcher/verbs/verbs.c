/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/verbs.h"

#include <errno.h>
#include <string.h>

#include "launcher/run/run.h"
#include "launcher/verbs/alloc.h"
#include "launcher/verbs/controller.h"
#include "launcher/verbs/doctor.h"
#include "launcher/verbs/env.h"
#include "launcher/verbs/exec.h"
#include "launcher/verbs/import.h"
#include "launcher/verbs/init.h"
#include "launcher/verbs/install.h"
#include "launcher/verbs/job.h"
#include "launcher/verbs/join.h"
#include "launcher/verbs/optional.h"
#include "launcher/verbs/plan.h"
#include "launcher/verbs/render.h"
#include "launcher/verbs/submit.h"
#include "launcher/verbs/topo.h"
#include "launcher/verbs/validate.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"

/* A new verb is a file NAME.c and a word here (docs/developing.md). */
static const struct verb *const run[] = {&verb_run, &verb_submit, &verb_alloc, &verb_join, NULL};
static const struct verb *const look[] = {&verb_list, &verb_status, &verb_describe, &verb_logs,
                                          &verb_exec, &verb_wait,   &verb_cancel,   NULL};
static const struct verb *const before[] = {&verb_init, &verb_import, &verb_validate,
                                            &verb_plan, &verb_render, NULL};
static const struct verb *const cluster[] = {
    &verb_doctor, &verb_install, &verb_controller, &verb_accept, &verb_topo, &verb_env, NULL};
static const struct verb *const bench[] = {&verb_bench, NULL};

const struct verb_group verb_groups[] = {
    {"Run", run},         {"Look", look},   {"Before", before},
    {"Cluster", cluster}, {"Bench", bench}, {NULL, NULL},
};

const struct verb *verb_find(const char *name)
{
    for (const struct verb_group *group = verb_groups; group->title; group++)
        for (const struct verb *const *verb = group->verbs; *verb; verb++)
            if (strcmp((*verb)->name, name) == 0)
                return *verb;
    return NULL;
}

int verb_globals(int argc, char *const argv[])
{
    static const char flags[] = "-v -vv --verbose -q --quiet";
    static const char valued[] = "--namespace --context --kubeconfig";
    int at = 0;
    while (at < argc) {
        const char *word = argv[at];
        size_t length = strcspn(word, "=");
        bool value = words_index(valued, word, length) >= 0;
        if (!value && !words_has(flags, word))
            break;
        at += value && !word[length] ? 2 : 1;
    }
    return at < argc ? at : argc;
}

/* ---- words that are no verbs ---- */

/* Verbs of others, and what does their work here. Not among them: cat and node, which are programs
 * that people start as ranks. */
static const struct {
    const char *words, *hint;
} others[] = {
    {"get ls ps squeue sacct qstat bjobs list-jobs list-units jobs", "drarun list shows the jobs"},
    {"rm delete del kill stop scancel qdel bkill", "drarun cancel JOB ends a job"},
    {"apply create start sbatch qsub bsub", "drarun submit FILE starts a job of a cluster"},
    {"srun", "drarun -n N PROGRAM starts ranks, as srun does"},
    {"salloc", "drarun alloc keeps workers for a shell"},
    {"sinfo scontrol cluster-info info pbsnodes bhosts", "drarun doctor checks the cluster"},
    {"top stats inspect show events history sstat is-active is-failed",
     "drarun status JOB shows the progress of a job, and drarun describe JOB all details"},
    {"attach sattach", "drarun logs -f JOB follows a job's output, drarun exec JOB RANK -t is a "
                       "shell beside a rank"},
    {"diff", "drarun plan FILE shows what a job would get"},
    {"explain api-resources", "drarun validate FILE says what is wrong in a job's spec"},
    {"new", "drarun init KIND writes a job's spec to begin with"},
    {"scale autoscale edit patch replace", "a job's size is fixed: drarun submit FILE --name NAME "
                                           "--workers N starts another one"},
    {"annotate api-versions auth build builder buildx certificate commit compose config container "
     "context cordon cp daemon-reload debug disable drain enable export expose freeze halt "
     "hibernate image images is-enabled isolate kexec kustomize label load login logout manifest "
     "mask network pause plugin port port-forward poweroff preset proxy pull push reboot reenable "
     "reload rename reset-failed restart resume revert rmi rollout save search secret service "
     "stack suspend swarm system tag taint thaw trust uncordon unmask unpause update volume",
     "drarun help shows the verbs"},
};

static const char *hint_of(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (words_has(others[i].words, word))
            return others[i].hint;
    return NULL;
}

/* Of names that have so many letters. */
static bool near_to(const char *word, size_t letters, unsigned int edits,
                    char ret_verb[NEAREST_WORD_MAX])
{
    struct buf names = BUF_INIT;
    unsigned int needed = 0;
    buf_add_str(&names, VERB_OTHERS);
    for (const struct verb_group *group = verb_groups; group->title; group++)
        for (const struct verb *const *verb = group->verbs; *verb; verb++)
            if (strlen((*verb)->name) >= letters)
                buf_printf(&names, " %s", (*verb)->name);
    bool found = !names.failed &&
                 nearest_within(word, names.data, edits, ret_verb, NEAREST_WORD_MAX, &needed);
    buf_done(&names);
    return found && strlen(ret_verb) >= letters;
}

/* One edit away, of long verbs two: "lits", "statsu", "valdiat". */
static bool near_verb(const char *word, char ret_verb[NEAREST_WORD_MAX])
{
    return near_to(word, 0, 1, ret_verb) || near_to(word, 6, 2, ret_verb);
}

int verb_unknown(const char *word, struct drarun_error *err)
{
    char nearest[NEAREST_WORD_MAX];
    const char *hint = hint_of(word);
    if (hint)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "drarun has no verb %s: %s", word, hint);
    if (near_verb(word, nearest))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "drarun has no verb %s; did you mean drarun %s?", word, nearest);
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "drarun has no verb %s: drarun help shows the verbs", word);
}

int verb_check_program(const char *word, struct drarun_error *err)
{
    char nearest[NEAREST_WORD_MAX];
    if (strchr(word, '/') || (!hint_of(word) && !near_verb(word, nearest)))
        return 0;
    verb_unknown(word, err);
    struct drarun_error said = *err;
    return error_kind(err, said.kind, said.code, "%s (the program of that name: drarun -- %s)",
                      said.text, word);
}

/* ---- the screen of all ---- */

static void add_group(const struct verb_group *group, struct buf *out)
{
    buf_printf(out, "%s\n", group->title);
    for (const struct verb *const *verb = group->verbs; *verb; verb++) {
        bool right = (verb - group->verbs) % 2 == 1;
        buf_printf(out, right || !verb[1] ? "  %-10s %s\n" : "  %-10s %-27s", (*verb)->name,
                   (*verb)->brief ? (*verb)->brief : "");
    }
}

void verbs_overview(struct buf *out)
{
    buf_add_str(out, "Usage: drarun [-n N] [OPTIONS] PROGRAM [ARGS]   ranks here, as mpirun and "
                     "srun\n"
                     "       drarun [OPTIONS] VERB [OPTIONS] ...\n");
    for (const struct verb_group *group = verb_groups; group->title; group++)
        add_group(group, out);
    buf_add_str(out,
                "drarun help VERB shows its options; help mpirun, theirs; help CODE, a message\n"
                "Also: version, completion. A program called like a verb: drarun -- wait\n");
}
