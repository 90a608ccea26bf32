/* SPDX-License-Identifier: Apache-2.0 */
/* What drarun-cluster lacks in a build without the benchmark (-DDRARUN_BENCH=OFF). */
#include "launcher/programs/accept_run.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

/* The verb that asks for it is not in such a build either. */
int accept_run(struct cluster *cluster, const struct accept_order *asked, cluster_run_fn run)
{
    (void)cluster, (void)asked, (void)run;
    log_error("accept: this drarun was built without the benchmark (-DDRARUN_BENCH=OFF)");
    return error_exit_status(DRARUN_ERR_USAGE);
}
