/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/topo/port_name.h"

#include <stdio.h>

bool port_name_is_representor(const char *name)
{
    unsigned controller = 0, pf = 0;
    int end = 0;
    if (sscanf(name, "c%u%n", &controller, &end) == 1)
        name += end;
    return sscanf(name, "pf%u", &pf) == 1;
}
