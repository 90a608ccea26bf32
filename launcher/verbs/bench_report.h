/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun bench report FILE...`: a page, a picture or a table of results. */
#ifndef DRARUN_LAUNCHER_VERB_BENCH_REPORT_H
#define DRARUN_LAUNCHER_VERB_BENCH_REPORT_H

#include "launcher/cli/verb.h"

extern const struct verb verb_bench_report;

#endif
