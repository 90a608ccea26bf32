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

int64_t lease_life_sign(const json_t *lease)
{
    const json_t *fields = json_object_get(json_object_get(lease, "metadata"), "managedFields");
    int64_t last = time_at(json_object_get(lease, "spec"), "renewTime");
    size_t i;
    json_t *entry;
    json_array_foreach(fields, i, entry)
    {
        const char *manager = json_string_value(json_object_get(entry, "manager"));
        int64_t at = time_at(entry, "time");
        if (manager && strcmp(manager, "drarun") == 0 && at > last)
            last = at;
    }
    return last;
}

bool lease_is_lost(int code, bool timed, int64_t left_ms, int64_t life_ms)
{
    return code == ENOENT || (timed && left_ms < life_ms / 10);
}
