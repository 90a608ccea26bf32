/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/doc/json_memory.h"

#include <jansson.h>
#include <stdlib.h>

#include "lib/base/need_memory.h"

void json_memory_end_without(void)
{
    json_set_alloc_funcs(need_memory, free);
}
