/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/lease_life.h"

#include <errno.h>
#include <string.h>

#include "lib/base/timestamp.h"
#include "lib/kube/object.h"

static int64_t time_at(const json_t *object, const char *key)
{
    int64_t at = 0;
    return timestamp_parse(json_string_value(json_object_get(object, key)), &at) ? at : 0;
}

int64_t lease_life_sign(const json_t *lease)
{
    int64_t renewed = time_at(json_object_get(lease, "spec"), "renewTime");
    int64_t taken = kube_written_ms(lease, "drarun");
    return taken > renewed ? taken : renewed;
}

int64_t lease_renewed_ms(const json_t *lease)
{
    int64_t taken = kube_written_ms(lease, "drarun");
    return taken ? taken : lease_life_sign(lease);
}

int64_t lease_last_write(const json_t *lease, int64_t now_ms)
{
    int64_t sign = lease_life_sign(lease), taken = kube_written_ms(lease, NULL);
    return sign > now_ms && taken > 0 ? taken : sign;
}

bool lease_is_held(const json_t *lease, const char *holder, int64_t now_ms, int64_t least_ms,
                   int64_t most_ms)
{
    const json_t *spec = json_object_get(lease, "spec");
    const char *by = json_string_value(json_object_get(spec, "holderIdentity"));
    int64_t taken = time_at(spec, "acquireTime");
    return (!by || strcmp(by, holder) != 0) && taken > 0 && now_ms - taken >= least_ms &&
           now_ms - lease_last_write(lease, now_ms) < most_ms;
}

bool lease_is_lost(int code, bool timed, int64_t left_ms, int64_t life_ms)
{
    return code == ENOENT || (timed && left_ms < life_ms / 10);
}
