/* SPDX-License-Identifier: Apache-2.0 */
/* A vendor's own script in the image (a profile's "script"), which sets what its release of the
 * vendor's library wants. It is foreign code: it runs as the calling user and in the image's own
 * shell, but with an environment, a session and standard files of its own, and nothing that it
 * started outlives the call. */
#ifndef DRARUN_INSPECT_VENDOR_SCRIPT_H
#define DRARUN_INSPECT_VENDOR_SCRIPT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"

#define VENDOR_SCRIPT_MS 5000u                 /* what `drarun env` gives it */
#define VENDOR_SCRIPT_OUTPUT ((size_t)1 << 20) /* bytes of environment that are taken */

/* Sources the file at the absolute path and gives what it exported, NAME -> value; null for what is
 * no UTF-8. Its output is not kept but for the first line, which an error quotes. An error says why
 * nothing was taken: no shell, no such file, it failed, it ran past deadline_ms. Blocks; the
 * calling process becomes the reaper of orphans and must have no other children. */
int vendor_script_run(const char *path, uint32_t deadline_ms, json_t **ret_env,
                      struct drarun_error *err);

/* The same for a process of its own that somebody waits for: writes to the descriptor, which it
 * closes, what vendor_script_answer reads. */
int vendor_script_tell(const char *path, uint32_t deadline_ms, int out);
int vendor_script_answer(const char *path, const char *text, size_t length, json_t **ret_env,
                         struct drarun_error *err);

/* The same for a process that has children, threads and handlers of signals: in a fork of it, which
 * adopts what the script leaves. Nothing of the caller is changed but that a child comes and goes.
 */
int vendor_script_run_apart(const char *path, uint32_t deadline_ms, json_t **ret_env,
                            struct drarun_error *err);

#endif
