/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/doc/json_memory.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/log.h"

/* The log's line may be JSON, which needs memory itself. */
static _Noreturn void end(size_t size)
{
    static _Thread_local bool telling;
    static const char plain[] = "out of memory for a JSON document\n";
    if (!telling) {
        telling = true;
        log_error("out of memory: %zu bytes for a JSON document", size);
    } else {
        (void)!write(STDERR_FILENO, plain, sizeof plain - 1);
    }
    _exit(error_exit_status(DRARUN_ERR_INFRASTRUCTURE));
}

static void *allocate(size_t size)
{
    void *memory = malloc(size);
    if (!memory)
        end(size);
    return memory;
}

void json_memory_end_without(void)
{
    json_set_alloc_funcs(allocate, free);
}
