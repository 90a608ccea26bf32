/* SPDX-License-Identifier: Apache-2.0 */
/* DeviceClasses that come with a driver, for where the cluster's are not given. */
#ifndef DRARUN_DRA_KNOWN_CLASS_H
#define DRARUN_DRA_KNOWN_CLASS_H

#include <stdbool.h>

struct known_class {
    const char *name;
    const char *driver;     /* whose opaque configuration its requests take */
    const char *expression; /* its selector; NULL: not published */
    bool assumed;           /* it is published nowhere, and taken for all devices of the driver */
};

/* NULL: none of that name is known. */
const struct known_class *known_class(const char *name);

#endif
