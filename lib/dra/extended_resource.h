/* SPDX-License-Identifier: Apache-2.0 */
/* Extended resources that the scheduler serves with devices of a DeviceClass (DRAExtendedResource,
 * on since 1.36): by the class's extendedResourceName, and by a name that each class has. Pure. */
#ifndef DRARUN_DRA_EXTENDED_RESOURCE_H
#define DRARUN_DRA_EXTENDED_RESOURCE_H

#include <jansson.h>
#include <stdbool.h>

#define EXTENDED_RESOURCE_OF_CLASS                                                                 \
    "deviceclass.resource.kubernetes.io/" /* and the class's name                                  \
                                           */

/* minor: of Kubernetes, as in struct predict_cluster. */
bool extended_resource_by_class(unsigned minor);

/* The name of the class, of an array of DeviceClasses, that serves the resource: the newest where
 * several do. Borrowed; NULL: none does. */
const char *extended_resource_class(const json_t *classes, const char *resource, unsigned minor);
/* The class's extendedResourceName, borrowed; NULL: it has none, or is not among them. */
const char *extended_resource_name(const json_t *classes, const char *name);

#endif
