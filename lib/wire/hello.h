/* SPDX-License-Identifier: Apache-2.0 */
/* The first message of every connection, and who is refused. Pure. */
#ifndef DRARUN_WIRE_HELLO_H
#define DRARUN_WIRE_HELLO_H

#include "drarun/error.h"
#include "lib/wire/wire.pb-c.h"

#define WIRE_MAJOR 1u
#define WIRE_MINOR 1u

/* Fills version, build, role and pmix; pmix ("" from a launcher) is borrowed by the message. */
void hello_fill(Drarun__Wire__Hello *hello, Drarun__Wire__Role role, const char *pmix);

/* Refuses another major version and, when both sides carry one, another libpmix; the sentence says
 * both versions and what to do. Kind DRARUN_ERR_INFRASTRUCTURE. */
int hello_check(const Drarun__Wire__Hello *hello, const char *own_pmix, struct drarun_error *err);

/* Refuses another release of drarun, whose rules for the ranks' environment may be others. */
int hello_check_release(const Drarun__Wire__Hello *hello, struct drarun_error *err);

#endif
