/* SPDX-License-Identifier: Apache-2.0 */
/* The options of mpirun, mpiexec.hydra, srun, horovodrun and torchrun, and what each of them is
 * here: one table for the parser, `drarun help mpirun` and docs/other-launchers.md. Pure. */
#ifndef DRARUN_JOBS_FOREIGN_OPTIONS_H
#define DRARUN_JOBS_FOREIGN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/buf.h"

enum foreign_launcher {
    FOREIGN_OPENMPI4 = 1 << 0,
    FOREIGN_OPENMPI5 = 1 << 1,
    FOREIGN_MPICH = 1 << 2,
    FOREIGN_INTEL = 1 << 3,
    FOREIGN_SRUN = 1 << 4,
    FOREIGN_HOROVOD = 1 << 5,
    FOREIGN_TORCHRUN = 1 << 6,
    FOREIGN_MPIRUN = FOREIGN_OPENMPI4 | FOREIGN_OPENMPI5,
    FOREIGN_HYDRA = FOREIGN_MPICH | FOREIGN_INTEL,
    FOREIGN_MPI = FOREIGN_MPIRUN | FOREIGN_HYDRA,
};

enum foreign_way {
    FOREIGN_SAME = 1,     /* `text` is our option, with its value or without: "--bind=core" */
    FOREIGN_CORES,        /* --bind core:N */
    FOREIGN_VARIABLE,     /* NAME VALUE: a variable of one program's ranks; `text` precedes NAME */
    FOREIGN_ALL_VARIABLE, /* the same for all programs */
    FOREIGN_SETS,         /* sets `text`, "NAME=VALUE", or NAME to the option's value */
    FOREIGN_INHERIT,      /* which of our variables ranks get: "all", "none", "list" */
    FOREIGN_HOSTS,        /* hosts as a list */
    FOREIGN_HOSTFILE,     /* hosts in a file */
    FOREIGN_PER_HOST,     /* ranks of each host, where there are several */
    FOREIGN_WHEN,    /* the same, if its value is one of `values`; else the next entry counts */
    FOREIGN_SO,      /* so it is here, which `text` says; `values` are those that are so */
    FOREIGN_CLASH,   /* that spelling is another option here; `text` tells both */
    FOREIGN_REFUSED, /* `text` says what to do instead, or why not */
};

struct foreign_option {
    unsigned int from;
    /* Spellings without their dashes, separated by spaces. A letter has one dash, a word of srun
     * two, and a word of the others one or two. */
    const char *words;
    uint8_t values_after; /* how many words follow it; see foreign_option_values */
    enum foreign_way way;
    const char *text;
    const char *values; /* FOREIGN_SO; NULL: whatever follows. FOREIGN_WHEN: in lower case */
};

extern const struct foreign_option foreign_options[];
extern const size_t foreign_option_count;

/* The first entry, from `at` on, of a word as it was typed ("-np"; a value behind "=" does not
 * matter). NULL: none. */
const struct foreign_option *foreign_option_find(size_t at, const char *word);
/* How many words follow the option where that is the first of them; NULL: it is not known. Hydra's
 * -genv and -env take NAME VALUE, and NAME=VALUE too. */
size_t foreign_option_values(const struct foreign_option *option, const char *first);
/* The first entry of a spelling without dashes for one of those launchers. */
const struct foreign_option *foreign_option_named(unsigned int from, const char *name);

/* "mpirun", "mpiexec", "srun", "horovodrun" and "torchrun"; 0: another name. */
unsigned int foreign_launcher(const char *name);
/* The name of the first of those launchers. */
const char *foreign_launcher_name(unsigned int from);
/* A text within such a table. */
void foreign_add_cell(const char *text, struct buf *out);
/* What the options of one of these launchers are here, as a table in Markdown. */
void foreign_options_table(unsigned int from, struct buf *out);

#endif
