/* SPDX-License-Identifier: Apache-2.0 */
/* A planned worker's node as drarun topo draws it, with the plan's own pairing: it knows machines
 * by their profile, of which slices alone tell no switches. */
#ifndef DRARUN_LAUNCHER_API_PICTURE_H
#define DRARUN_LAUNCHER_API_PICTURE_H

#include <jansson.h>
#include <stdint.h>
#include "jobs/derive/plan.h"
#include "launcher/topo/view.h"
#include "lib/topo/host.h"

/* host: of the worker's node and claims; GPUs of a device plugin, which are in no claim, lose their
 * mark there: which ones it gives is not known. fabric: jobs/preflight/fabric.h, of the job whose
 * worker this is; NULL: not known. job->worker is the worker. */
int picture_of_worker(struct topo_host *host, const struct plan_worker *worker,
                      const struct view_job *job, const json_t *fabric, char **ret_svg,
                      struct drarun_error *err);

#endif
