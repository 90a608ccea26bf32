/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/import/parts.h"

void import_torchrun(struct import *im, const char *name, json_t *value_take)
{
    if (!im->torchrun)
        im->torchrun = json_object();
    json_object_set_new(im->torchrun, name, value_take);
}

void import_add_torchrun(const struct import *im, json_t *template)
{
    json_t *container = import_first_container(template);
    json_t *env = json_object_get(container, "env"), *value = NULL;
    const char *name = NULL;
    if (!im->torchrun)
        return;
    if (!env) {
        env = json_array();
        json_object_set_new(container, "env", env);
    }
    json_object_foreach(im->torchrun, name, value)
    {
        json_array_append_new(env, json_pack("{s:s, s:O}", "name", name, "value", value));
    }
}
