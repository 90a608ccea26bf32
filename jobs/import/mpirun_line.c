/* SPDX-License-Identifier: Apache-2.0 */
/* mpirun's line: its options, the ranks that they ask for, and the program behind them. */
#include <inttypes.h>
#include <string.h>

#include "jobs/foreign/options.h"
#include "jobs/import/mpirun.h"
#include "lib/base/nearest.h"
#include "lib/doc/value.h"

const char *mpirun_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- ranks ---- */

static json_int_t default_each(const struct import *im)
{
    json_t *gpus = json_object_get(json_object_get(im->job, "devices"), "gpus");
    json_t *count = json_object_get(gpus, "count");
    return json_is_integer(count) ? json_integer_value(count) : 1;
}

/* The same spread whatever slots a hostfile gives to the workers. */
static bool hosts_do_not_matter(const struct import_ranks *ranks)
{
    return ranks->each > 0 || (ranks->ranks > 0 && (ranks->by_node || ranks->slots == 0 ||
                                                    ranks->ranks == ranks->slots * ranks->workers));
}

static int take_ranks(struct mpirun *m)
{
    uint64_t workers = 0, each = 0;
    json_t *job = m->im->job;
    if (m->from == FOREIGN_HOROVOD && !m->hosts_said)
        return mpirun_refuse(m,
                             "%s names no hosts (-H, --hostfile), so that all of its ranks are in "
                             "the launcher's own pod; " MPIRUN_INSTEAD,
                             m->name);
    if (m->foreign_hosts && !hosts_do_not_matter(&m->ranks))
        return mpirun_refuse(m,
                             "%s: the number of ranks of each worker is in the hostfile %s, which "
                             "is not among these manifests; import its ConfigMap with them, give "
                             "the number by -np and -npernode, or " MPIRUN_INSTEAD,
                             m->name, m->foreign_hosts);
    if (m->unknown_hosts && !hosts_do_not_matter(&m->ranks))
        return mpirun_refuse(
            m,
            "%s: the number of ranks of each worker is in the hosts %s, which only "
            "the launcher's shell knows; give the number by -np and -npernode, "
            "or " MPIRUN_INSTEAD,
            m->name, m->unknown_hosts);
    if (!m->ranks_said && m->ranks.slots == 0)
        return 0;
    m->ranks.may_exceed |= (m->prefer & (FOREIGN_MPIRUN | FOREIGN_HOROVOD)) == 0;
    m->ranks.by_node |= m->from == FOREIGN_SRUN; /* block: as many on each node */
    struct drarun_error reason = {0};
    if (import_spread(&m->ranks, &workers, &each, &reason) < 0)
        return mpirun_refuse(m, "%s: %s; " MPIRUN_INSTEAD, m->name, reason.text);
    if (workers != m->ranks.workers) {
        json_object_set_new(job, "workers", json_integer((json_int_t)workers));
        reader_fail(m->node,
                    "%s starts %" PRIu64 " ranks, all on %" PRIu64 " of %" PRIu64
                    " workers, the only ones that are left",
                    m->name, workers * each, workers, m->ranks.workers);
    }
    json_t *now = json_object_get(job, "ranksPerWorker");
    json_int_t before = now ? json_integer_value(now) : default_each(m->im);
    if (each > 0 && (json_int_t)each != before) {
        json_object_set_new(job, "ranksPerWorker", json_integer((json_int_t)each));
        reader_fail(m->node, "%s starts %" PRIu64 " ranks, so ranksPerWorker is %" PRIu64, m->name,
                    workers * each, each);
    }
    return 0;
}

/* ---- the line ---- */

unsigned int mpirun_known(const char *path)
{
    const char *name = mpirun_base_name(path);
    if (words_has("mpirun mpiexec", name))
        return FOREIGN_MPI;
    if (words_has("orterun prterun mpirun.openmpi mpiexec.openmpi", name))
        return FOREIGN_MPIRUN;
    if (words_has("mpiexec.hydra mpirun.mpich mpiexec.mpich mpirun.hydra", name))
        return FOREIGN_HYDRA;
    if (strcmp(name, "horovodrun") == 0)
        return FOREIGN_HOROVOD;
    return strcmp(name, "srun") == 0 ? FOREIGN_SRUN : 0;
}

/* Of an MPIJob, and of a TrainJob's runtime; "": it is not said. */
static const char *implementation(const struct import *im)
{
    const json_t *policy = json_object_get(im->runtime.spec.value, "mlPolicy");
    const char *own = import_text(&im->spec, "mpiImplementation");
    return *own ? own : value_text_or(json_object_get(policy, "mpi"), "mpiImplementation", "");
}

void mpirun_find_launcher(struct mpirun *m, const char *path)
{
    const char *of_job = implementation(m->im);
    unsigned int said = strcmp(of_job, "Intel") == 0   ? FOREIGN_INTEL
                        : strcmp(of_job, "MPICH") == 0 ? FOREIGN_MPICH
                                                       : FOREIGN_MPIRUN;
    m->from = mpirun_known(path);
    m->prefer = m->from & said ? m->from & said : m->from;
}

/* What the ranks' shell reads, and what they inherit, of which their shell may be a consequence. */
static void take_variables(struct mpirun *m, size_t first)
{
    bool had_shell = m->needs_shell;
    if (had_shell)
        mpirun_give_values(m, first);
    mpirun_hand_on_rest(m);
    if (!had_shell && m->needs_shell)
        mpirun_give_values(m, first);
}

/* Words behind the launcher's name. 1: a program was found. */
int mpirun_take_line(struct mpirun *m, const struct strlist *words, size_t first)
{
    size_t used = 0;
    int rc = 0;
    m->inherits = (m->prefer & FOREIGN_MPIRUN) == 0;
    for (size_t i = first; rc == 0 && i < words->count; i++)
        rc = mpirun_expand_word(m, words->items[i]);
    if (rc == 0)
        rc = mpirun_take_options(m, &used);
    if (rc < 0 || used >= m->count)
        return rc;
    if ((m->prefer & FOREIGN_MPIRUN) == 0 && !m->inherits_said && m->from == FOREIGN_MPI)
        m->inherits = true; /* an option told that it is Hydra */
    if (m->from == FOREIGN_HOROVOD)
        reader_fail(m->node, "ranks meet by MPI: Horovod must have been built with it, as "
                             "horovodrun --check-build says; without, each rank is alone");
    rc = mpirun_check_one_program(m, used);
    if (rc == 0)
        rc = take_ranks(m);
    m->is_login &= m->inherits;
    m->needs_shell |= m->is_login;
    if (rc == 0)
        rc = mpirun_check_words(m, used);
    if (rc == 0) {
        take_variables(m, used);
        mpirun_take_program(m, used);
    }
    if (rc == 0 && m->directory.len > 0)
        json_object_set_new(m->container, "workingDir", json_string(m->directory.data));
    return rc < 0 ? rc : 1;
}
