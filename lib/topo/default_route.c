/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/topo/default_route.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/topo/route_text.h"

static bool parse_line(const char *text, bool ipv6, struct topo_route *route)
{
    static const uint8_t everywhere[16];
    return route_parse(text, ipv6, route) && route->bits == 0 &&
           memcmp(route->destination, everywhere, sizeof everywhere) == 0 &&
           (route->flags & ROUTE_UP) && !(route->flags & ROUTE_REJECT) &&
           strcmp(route->name, "lo") != 0;
}

void default_routes_parse(const char *text, bool ipv6, struct strlist *names)
{
    unsigned best = 0;
    bool found = false;
    struct topo_route route;
    for (int pass = 0; pass < 2; pass++)
        for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
            if (!parse_line(line, ipv6, &route))
                continue;
            if (pass == 1 && route.metric == best && !strlist_has(names, route.name))
                strlist_add(names, route.name);
            if (pass == 0 && (!found || route.metric < best))
                best = route.metric;
            found = true;
        }
}

int default_routes_read(int root, bool ipv6, struct strlist *names, struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    int rc = routes_read_text(root, ipv6, &text, err);
    if (rc < 0)
        return rc;
    default_routes_parse(text.data, ipv6, names);
    return names->failed ? error_set(err, ENOMEM, "routes: out of memory") : 0;
}
