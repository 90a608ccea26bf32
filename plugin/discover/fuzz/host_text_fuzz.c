/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of the kernel and of NVIDIA's driver: routes, versions, the minors of MIG. */
#include <stdlib.h>
#include <string.h>

#include "lib/topo/default_route.h"
#include "lib/topo/route_text.h"
#include "plugin/discover/device_json.h"
#include "plugin/discover/mig_minors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char version[64];
    uint32_t minors[2];
    struct strlist names = STRLIST_INIT;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (int six = 0; six < 2; six++) {
        struct topo_route route;
        if (route_parse(text, six, &route) &&
            (route.bits > (six ? 128 : 32) || !route_covers(&route, route.destination)))
            abort();
    }
    default_routes_parse(text, false, &names);
    default_routes_parse(text, true, &names);
    version_normalize(text, version, sizeof version);
    if (mig_minors_parse(text, 0, 1, 0, minors) > 2)
        abort();
    strlist_done(&names);
    free(text);
    return 0;
}
