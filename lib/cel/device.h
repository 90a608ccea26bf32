/* SPDX-License-Identifier: Apache-2.0 */
/* A device as a value. */
#ifndef DRARUN_CEL_DEVICE_H
#define DRARUN_CEL_DEVICE_H

#include "lib/cel/cel.h"
#include "lib/cel/value.h"

struct cel_device {
    struct cel_arena arena;
    struct cel_value value; /* what "device" is; CEL_ERROR: an attribute has no meaning */
};

#endif
