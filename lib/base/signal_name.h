/* SPDX-License-Identifier: Apache-2.0 */
/* The signals by which a program can be told something that it handles: neither those that no
 * program can handle nor those that stop and resume it. */
#ifndef DRARUN_BASE_SIGNAL_NAME_H
#define DRARUN_BASE_SIGNAL_NAME_H

#include <stddef.h>

#define SIGNAL_NAMES "SIGHUP SIGINT SIGQUIT SIGUSR1 SIGUSR2 SIGALRM SIGTERM SIGURG SIGXCPU"

/* The number of a signal of SIGNAL_NAMES, which may also be given in either case, without SIG or
 * as its number. 0: another word. */
int signal_of_name(const char *name, size_t length);
/* By its place in SIGNAL_NAMES, from 0. */
int signal_at(size_t index);

#endif
