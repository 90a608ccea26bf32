/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of an attempt, created or refused. */
#include <errno.h>

#include "launcher/cluster/lead/private.h"
#include "launcher/cluster/submit/create.h"
#include "lib/base/error.h"

/* What is under way is waited for: the workers may be deleted next, and then all must be found. */
static bool may_create(void *arg)
{
    return !lead_is_stopped(arg);
}

static int create(struct lead *lead, struct drarun_error *err)
{
    struct cluster *cluster = lead->cluster;
    cluster->may_create = may_create;
    cluster->may_create_arg = lead;
    int rc = lead->unmade ? create_missing(cluster, lead->spec, &lead->render, err)
                          : create_workers(cluster, lead->spec, &lead->render, err);
    cluster->may_create = NULL;
    return rc;
}

int lead_create(struct lead *lead, struct drarun_error *err)
{
    struct drarun_error why = {0};
    int rc = create(lead, &why);
    lead->refused = (struct drarun_error){0};
    if (rc == -ECANCELED && lead_is_stopped(lead))
        return -EINTR;
    if (rc == 0)
        lead->unmade = false;
    else if (!create_may_pass(&why))
        return error_kind(err, why.kind, why.code, "%s", why.text);
    else
        lead->refused = why;
    lead->dirty = true;
    return 0;
}
