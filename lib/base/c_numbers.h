/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as documents have them, "1.5", while a call of the library lasts: a program around it may
 * have set a locale that writes "1,5". */
#ifndef DRARUN_BASE_C_NUMBERS_H
#define DRARUN_BASE_C_NUMBERS_H

#include <locale.h>
#include "lib/base/cleanup.h"

struct c_numbers {
    locale_t own, before; /* own 0: there was no memory for it, and nothing is changed */
};

/* For this thread, until the end. May be nested. */
struct c_numbers c_numbers_begin(void);
void c_numbers_end(struct c_numbers *numbers);

/* Until the scope's end. */
#define C_NUMBERS                                                                                  \
    CLEANUP(c_numbers_end)                                                                         \
    struct c_numbers c_numbers_here __attribute__((unused)) = c_numbers_begin()

#endif
