/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time as Kubernetes writes them (RFC 3339, metav1.Time and MicroTime): milliseconds
 * since 1970 in UTC. Pure. */
#ifndef DRARUN_BASE_TIMESTAMP_H
#define DRARUN_BASE_TIMESTAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMESTAMP_SIZE sizeof "2026-11-21T15:24:42.123Z"

/* "2026-11-21T15:24:42Z", with a fraction or an offset too; false, and ret_ms untouched, when text
 * is NULL or no such time. */
bool timestamp_parse(const char *text, int64_t *ret_ms);

/* text holds at least TIMESTAMP_SIZE; always with milliseconds. */
void timestamp_format(int64_t ms, char *text, size_t size);

/* "850 ms", "41 s", "3 min 20 s", "2 h 5 min", "3 d 4 h": for people. */
void duration_format(int64_t ms, char *text, size_t size);

#endif
