/* SPDX-License-Identifier: Apache-2.0 */
/* What the plan derived for a rank, put into its environment: of the job, the worker and the rank,
 * from the launcher's messages (docs/design/003-wire.md). Pure. */
#ifndef DRARUN_WORKER_RANK_SETTING_H
#define DRARUN_WORKER_RANK_SETTING_H

#include <stddef.h>
#include <stdint.h>
#include "lib/base/strlist.h"
#include "lib/topo/cpus.h"
#include "lib/wire/wire.pb-c.h"

/* Borrowed from the messages; each NULL: nothing was derived. */
struct rank_settings {
    const Drarun__Wire__Environment *job;      /* of all ranks (Launch.derived) */
    const Drarun__Wire__WorkerSetting *worker; /* of this worker and its ranks */
};

/* What is set whatever the worker's environment says: before the program's own variables. */
void rank_setting_base(const struct rank_settings *settings, struct strlist *env);
/* The rest, when everything else is in env: the nearest wins, rank before worker before job; what
 * is there already stays, and is put behind what is to be prepended. What contradicts an entry of
 * env or of files, the settings in the image's files as variables, is left out
 * (jobs/ranks/env_conflict.h). */
void rank_setting_add(const struct rank_settings *settings, uint32_t local_rank,
                      const struct strlist *files, struct strlist *env);

/* The CPUs that the rank is to be bound to: those of its setting that are usable here. *ret_count
 * 0: it has no setting, or none of them is. The ids are malloc'ed and ascend. -EINVAL for what is
 * no list of CPUs. */
int rank_setting_cpus(const struct rank_settings *settings, uint32_t local_rank,
                      const struct cpus *usable, uint32_t **ret_ids, size_t *ret_count,
                      struct drarun_error *err);
/* Any rank of this worker has such CPUs. */
bool rank_setting_binds(const struct rank_settings *settings);

#endif
