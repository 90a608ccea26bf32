/* SPDX-License-Identifier: Apache-2.0 */
/* malloc and realloc that end the process with status 70 and a message instead of returning NULL:
 * for libraries that lose something without a word when they get no memory. For programs alone. */
#ifndef DRARUN_BASE_NEED_MEMORY_H
#define DRARUN_BASE_NEED_MEMORY_H

#include <stddef.h>

void *need_memory(size_t size);
void *need_more_memory(void *old, size_t size);
void *need_zeroed_memory(size_t count, size_t size);
char *need_copy(const char *text);

#endif
