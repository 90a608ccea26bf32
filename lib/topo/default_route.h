/* SPDX-License-Identifier: Apache-2.0 */
/* The interfaces over which a network namespace reaches everywhere else. */
#ifndef DRARUN_TOPO_DEFAULT_ROUTE_H
#define DRARUN_TOPO_DEFAULT_ROUTE_H

#include <stdbool.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"

/* Those of the default routes with the smallest metric, from the text of net/route (ipv6:
 * net/ipv6_route), each added to names once. Pure. */
void default_routes_parse(const char *text, bool ipv6, struct strlist *names);

/* The same from proc below a root; adds nothing where that cannot be read. -ENOMEM. */
int default_routes_read(int root, bool ipv6, struct strlist *names, struct drarun_error *err);

#endif
