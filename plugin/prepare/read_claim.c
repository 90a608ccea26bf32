/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/read_claim.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/kube/object.h"

#define FRESH_MS 1000

void read_claim_done(struct read_claim *read)
{
    json_decref(read->claim);
    *read = (struct read_claim){0};
}

void read_claim_put(struct read_claim *read, json_t *claim, const char *driver, int64_t now_ms)
{
    read_claim_done(read);
    *read = (struct read_claim){json_incref(claim), driver, now_ms};
}

json_t *read_claim_take(struct read_claim *read, const char *namespace_, const char *name,
                        const char *uid, const char *driver, int64_t now_ms)
{
    const json_t *claim = read->claim;
    if (!claim || strcmp(kube_uid(claim), uid) != 0 || strcmp(kube_name(claim), name) != 0 ||
        strcmp(kube_namespace(claim), namespace_) != 0 || strcmp(read->driver, driver) == 0 ||
        now_ms - read->at_ms >= FRESH_MS)
        return NULL;
    return TAKE_PTR(read->claim);
}
