/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of one role, of its value and of the document. */
#include <string.h>

#include "jobs/spec/spec_fields.h"
#include "lib/base/cleanup.h"

bool spec_role_has_nics(const struct spec_role *role)
{
    return role->nics.count > 0 || role->nics.all;
}

bool spec_role_has_devices(const struct spec_role *role)
{
    return role->gpus.count > 0 || role->gpus.all || spec_role_has_nics(role);
}

const json_t *spec_role_pod(const struct spec_role *role)
{
    return json_object_get(role->template, "spec");
}

bool spec_role_names_claims(const struct spec_role *role)
{
    return role->shared.count > 0 ||
           json_array_size(json_object_get(spec_role_pod(role), "resourceClaims")) > 0;
}

const json_t *spec_role_container(const struct spec_role *role)
{
    return json_array_get(json_object_get(spec_role_pod(role), "containers"), 0);
}

bool spec_role_wants_bench(const struct spec_role *role)
{
    static const char *const lists[] = {"command", "args"};
    const json_t *first = spec_role_container(role), *word;
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        size_t i;
        json_array_foreach(json_object_get(first, lists[l]), i, word)
        {
            if (json_is_string(word) && strstr(json_string_value(word), SPEC_BENCH))
                return true;
        }
    }
    return false;
}

bool spec_role_get(const struct spec_role_nodes *at, const char *key, struct reader_node *ret_node)
{
    return reader_get(at->own, key, ret_node) || reader_get(at->above, key, ret_node);
}

const struct reader_node *spec_role_holder(const struct spec_role_nodes *at, const char *key)
{
    bool above = !json_object_get(at->own->value, key) && json_object_get(at->above->value, key);
    return above ? at->above : at->own;
}
