/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a shell: "bash -euo pipefail -c SCRIPT". Pure. */
#ifndef DRARUN_JOBS_RANKS_SHELL_WORDS_H
#define DRARUN_JOBS_RANKS_SHELL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct shell_words {
    size_t options;  /* its name and options: the first words */
    bool has_script; /* of -c: the next word, whose arguments are $0, $1, ... */
    bool is_login;
};

/* False: words[0] is no shell. */
bool shell_words_read(const char *const words[], size_t count, struct shell_words *ret);

#endif
