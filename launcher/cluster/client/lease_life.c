/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/lease_life.h"

#include <errno.h>
#include <string.h>

#include "lib/base/timestamp.h"

static int64_t time_at(const json_t *object, const char *key)
{
    int64_t at = 0;
    return timestamp_parse(json_string_value(json_object_get(object, key)), &at) ? at : 0;
}

/* When the API server last took something of it. manager: of this one; NULL: of any. 0: it does not
 * say. */
static int64_t taken_at(const json_t *lease, const char *manager)
{
    const json_t *fields = json_object_get(json_object_get(lease, "metadata"), "managedFields");
    int64_t last = 0;
    size_t i;
    json_t *entry;
    json_array_foreach(fields, i, entry)
    {
        const char *of = json_string_value(json_object_get(entry, "manager"));
        int64_t at = time_at(entry, "time");
        if ((!manager || (of && strcmp(of, manager) == 0)) && at > last)
            last = at;
    }
    return last;
}

int64_t lease_life_sign(const json_t *lease)
{
    int64_t renewed = time_at(json_object_get(lease, "spec"), "renewTime");
    int64_t taken = taken_at(lease, "drarun");
    return taken > renewed ? taken : renewed;
}

int64_t lease_last_write(const json_t *lease, int64_t now_ms)
{
    int64_t sign = lease_life_sign(lease), taken = taken_at(lease, NULL);
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
