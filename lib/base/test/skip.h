/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a case that cannot run here. */
#ifndef DRARUN_BASE_TEST_SKIP_H
#define DRARUN_BASE_TEST_SKIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

/* Ends the case, and says what this machine lacks: scripts/test fails unless tests/skips.txt
 * permits the reason. scripts/lib/test_summary.py reads the line. */
__attribute__((format(printf, 1, 2))) static inline void skip_for(const char *reason, ...)
{
    char text[256];
    va_list args;
    va_start(args, reason);
    vsnprintf(text, sizeof text, reason, args);
    va_end(args);
    print_message("[  REASON  ] %s\n", text);
    skip();
}

#endif
