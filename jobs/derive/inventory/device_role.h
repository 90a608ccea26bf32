/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of device a name speaks of: a DeviceClass, a driver, a request, a selector. Drivers and
 * classes are named by anyone, so that whole words count, never a list of known names. Pure. */
#ifndef DRARUN_JOBS_DEVICE_ROLE_H
#define DRARUN_JOBS_DEVICE_ROLE_H

#include "jobs/derive/inventory/device.h"

/* DEVICE_GPU, DEVICE_NIC or DEVICE_CHANNEL; DEVICE_OTHER: it does not say, as NULL does not. */
enum device_kind device_role(const char *name);

/* "TPUs", for what drarun places no ranks on; NULL: nothing of that kind is named. */
const char *device_role_unsupported(const char *name);

/* "NVIDIA", "AMD" or "Intel", by the driver's name; NULL: it does not say. */
const char *device_vendor(const char *driver);

#endif
