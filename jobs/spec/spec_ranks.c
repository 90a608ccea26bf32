/* SPDX-License-Identifier: Apache-2.0 */
/* How many ranks a worker of a role has. */
#include "jobs/ranks/rankenv.h"
#include "jobs/spec/spec.h"
#include "jobs/spec/spec_words.h"
#include "lib/base/cleanup.h"

bool spec_role_starts_torchrun(const struct spec_role *role)
{
    CLEANUP(strlist_done) struct strlist argv = STRLIST_INIT;
    spec_words_add(role, NULL, &argv);
    return argv.count > 0 && !argv.failed && rankenv_runs_torchrun(argv.items);
}

uint32_t spec_role_ranks(const struct spec_role *role, bool mpirun, char *const argv[],
                         uint32_t gpus)
{
    if (role->ranks_per_worker > 0)
        return role->ranks_per_worker;
    bool torchrun = argv ? rankenv_runs_torchrun(argv) : spec_role_starts_torchrun(role);
    return mpirun || gpus == 0 || torchrun ? 1 : gpus;
}
