/* SPDX-License-Identifier: Apache-2.0 */
/* What a vendor's script in the image sets (lib/inspect/vendor_script.h), for the inspection. */
#ifndef DRARUN_WORKER_VENDOR_ENV_H
#define DRARUN_WORKER_VENDOR_ENV_H

#include <jansson.h>
#include <stddef.h>

/* Runs the first of the scripts that is a file here, and gives {path, env} or {path, reason} as a
 * plan's probe has it; NULL: none is here, or no memory. Blocks up to VENDOR_SCRIPT_MS and what two
 * processes take to start. */
json_t *vendor_env(char *const *scripts, size_t count);

#endif
