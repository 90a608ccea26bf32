/* SPDX-License-Identifier: Apache-2.0 */
/* BPF programs of tc(8) on an interface, as a container network attaches them: they go with the
 * queueing discipline, which the kernel drops when the interface moves to another namespace. */
#ifndef DRARUN_PLUGIN_DISCOVER_TC_PROGRAMS_H
#define DRARUN_PLUGIN_DISCOVER_TC_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether an interface of this network namespace has one; its name, "bpf" where it has none. False
 * where the kernel does not tell. Waits for the kernel's answer, at most a second. */
bool tc_programs_find(const char *interface, char *ret_name, size_t size);

/* From an answer of the kernel to RTM_GETTFILTER: 1 found, 0 no more to come, -1 more is. Pure. */
int tc_programs_parse(const void *answer, size_t len, char *ret_name, size_t size);

#endif
