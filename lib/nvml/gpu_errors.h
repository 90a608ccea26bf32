/* SPDX-License-Identifier: Apache-2.0 */
/* Errors that GPUs have counted: ECC errors that could not be corrected, and NVLinks that had to
 * send again, recover or drop data. CRC errors of single flits are left out: links have some and
 * repair them. Source: NVML API reference, nvmlDeviceGetTotalEccErrors and
 * nvmlDeviceGetNvLinkErrorCounter. */
#ifndef DRARUN_NVML_GPU_ERRORS_H
#define DRARUN_NVML_GPU_ERRORS_H

#include "lib/inspect/error_counts.h"
#include "lib/nvml/library.h"

/* How many GPUs told something; `ret_links`: how many of their NVLinks did. */
unsigned gpu_errors_add(const struct nvml_library *library, struct error_counts *counts,
                        unsigned *ret_links);

#endif
