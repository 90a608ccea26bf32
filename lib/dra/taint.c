/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/dra/taint.h"

#include <stdbool.h>
#include <string.h>

#include "lib/doc/value.h"

/* An empty key with Exists tolerates all, an empty effect every effect. */
static bool tolerates(const json_t *toleration, const json_t *taint)
{
    const char *key = value_text_or(toleration, "key", "");
    const char *effect = value_text_or(toleration, "effect", "");
    bool exists = strcmp(value_text_or(toleration, "operator", "Equal"), "Exists") == 0;
    if (effect[0] && strcmp(effect, value_text_or(taint, "effect", "")) != 0)
        return false;
    if (!key[0])
        return exists;
    return strcmp(key, value_text_or(taint, "key", "")) == 0 &&
           (exists ||
            strcmp(value_text_or(toleration, "value", ""), value_text_or(taint, "value", "")) == 0);
}

const char *taint_repelling(const json_t *taints, const json_t *tolerations)
{
    for (size_t t = 0; t < json_array_size(taints); t++) {
        const json_t *taint = json_array_get(taints, t);
        const char *effect = value_text_or(taint, "effect", "");
        bool tolerated = strcmp(effect, "NoSchedule") != 0 && strcmp(effect, "NoExecute") != 0;
        for (size_t i = 0; !tolerated && i < json_array_size(tolerations); i++)
            tolerated = tolerates(json_array_get(tolerations, i), taint);
        if (!tolerated)
            return value_text_or(taint, "key", "?");
    }
    return NULL;
}
