/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that start the words behind their own as they are: "nice -n 5 PROGRAM". Pure. */
#ifndef DRARUN_JOBS_RANKS_WRAPPER_H
#define DRARUN_JOBS_RANKS_WRAPPER_H

#include <stdbool.h>
#include <stddef.h>

enum wrapper_kind {                      /* what it changes */
                    WRAPPER_NOTHING = 1, /* exec, time, tini */
                    WRAPPER_SCHEDULING,  /* nice, numactl, stdbuf: priority, CPUs, buffers */
                    WRAPPER_USER,        /* sudo, gosu */
                    WRAPPER_TIME,        /* timeout: how long it may run */
                    WRAPPER_ENV,         /* env */
};

struct wrapper {
    enum wrapper_kind kind;
    size_t options;   /* its name and options: the first words */
    size_t arguments; /* and its own arguments: the time of timeout */
    size_t words;     /* and the variables of env and sudo */
};

/* False: words[0] is no such program, or its options make another one of it ("command -v"). */
bool wrapper_read(const char *const words[], size_t count, struct wrapper *ret);

/* The line of "env -S LINE WORD...", which env reads into words of its own in front of the others;
 * NULL: none. ret_words: how many words stand before these others. argv ends with NULL. */
const char *wrapper_env_line(char *const argv[], size_t *ret_words);

/* How many of argv's words stand before the program that all of them start; argv ends with NULL. */
size_t wrapper_skip(char *const argv[]);

#endif
