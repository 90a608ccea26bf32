/* SPDX-License-Identifier: Apache-2.0 */
/* All of libdrarun. */
#ifndef DRARUN_DRARUN_H
#define DRARUN_DRARUN_H

#include "drarun/api.h"
#include "drarun/bench.h"
#include "drarun/env.h"
#include "drarun/error.h"
#include "drarun/job.h"
#include "drarun/local.h"
#include "drarun/plan.h"
#include "drarun/render.h"
#include "drarun/spec.h"

#endif
