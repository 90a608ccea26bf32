/* SPDX-License-Identifier: Apache-2.0 */
/* What the plans of a job's roles warn of, each wording once. */
#ifndef DRARUN_LAUNCHER_PLAN_ROLE_WARNINGS_H
#define DRARUN_LAUNCHER_PLAN_ROLE_WARNINGS_H

#include "jobs/predict/preview.h"
#include "lib/base/buf.h"

/* previews: of the spec's first roles, count of them. */
void role_warnings_text(const struct job_spec *spec, const struct preview *previews, uint32_t count,
                        struct buf *out);

#endif
