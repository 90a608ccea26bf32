/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of an attempt, created or refused. */
#include "launcher/cluster/lead/private.h"
#include "launcher/cluster/submit/create.h"
#include "lib/base/error.h"

int lead_create(struct lead *lead, struct drarun_error *err)
{
    struct drarun_error why = {0};
    int rc = lead->unmade ? create_missing(lead->cluster, lead->spec, &lead->render, &why)
                          : create_workers(lead->cluster, lead->spec, &lead->render, &why);
    lead->refused = (struct drarun_error){0};
    if (rc == 0)
        lead->unmade = false;
    else if (!create_may_pass(&why))
        return error_kind(err, why.kind, why.code, "%s", why.text);
    else
        lead->refused = why;
    lead->dirty = true;
    return 0;
}
