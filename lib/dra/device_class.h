/* SPDX-License-Identifier: Apache-2.0 */
/* DeviceClasses by their names. Pure. */
#ifndef DRARUN_DRA_DEVICE_CLASS_H
#define DRARUN_DRA_DEVICE_CLASS_H

#include <jansson.h>

/* Borrowed; "": it has none. */
const char *device_class_name(const json_t *class);
/* That of an array of DeviceClasses, borrowed; NULL: it is not among them. */
const json_t *device_class_find(const json_t *classes, const char *name);

#endif
