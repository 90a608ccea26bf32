/* SPDX-License-Identifier: Apache-2.0 */
/* A preview as people read it. */
#ifndef DRARUN_LAUNCHER_PLAN_TEXT_H
#define DRARUN_LAUNCHER_PLAN_TEXT_H

#include "jobs/predict/preview.h"
#include "lib/base/buf.h"

/* explain: each variable with rule, fact, reason and source. The warnings of a job with roles are
 * not with each role: role_warnings_text shows those of all. */
void preview_text(const struct preview_input *input, const struct preview *preview, bool explain,
                  struct buf *out);
json_t *preview_json(const struct preview_input *input, const struct preview *preview,
                     bool explain);

#endif
