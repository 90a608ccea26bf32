/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests as text, for verbs. */
#ifndef DRARUN_LAUNCHER_MANIFESTS_H
#define DRARUN_LAUNCHER_MANIFESTS_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

/* An array of manifests: as YAML a document each behind the note (comment lines), as JSON one List.
 */
int manifests_write(json_t *list, const char *note, bool json, struct buf *out,
                    struct drarun_error *err);

#endif
