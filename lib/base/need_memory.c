/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/need_memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/log.h"

/* The log's line may be JSON, which needs memory itself. */
static _Noreturn void end(size_t size)
{
    static _Thread_local bool telling;
    static const char plain[] = "out of memory\n";
    if (!telling) {
        telling = true;
        log_error("out of memory: %zu bytes", size);
    } else {
        (void)!write(STDERR_FILENO, plain, sizeof plain - 1);
    }
    _exit(error_exit_status(DRARUN_ERR_INFRASTRUCTURE));
}

void *need_memory(size_t size)
{
    void *memory = malloc(size);
    if (!memory && size > 0)
        end(size);
    return memory;
}

void *need_more_memory(void *old, size_t size)
{
    void *memory = realloc(old, size);
    if (!memory && size > 0)
        end(size);
    return memory;
}

void *need_zeroed_memory(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory && count > 0 && size > 0)
        end(count * size);
    return memory;
}

char *need_copy(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        end(strlen(text) + 1);
    return copy;
}
