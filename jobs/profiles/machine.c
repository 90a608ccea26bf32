/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/profiles/machine.h"

#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"

static uint32_t count_at(const json_t *object, const char *key)
{
    json_int_t count = json_integer_value(json_object_get(object, key));
    return count > 0 && count <= UINT16_MAX ? (uint32_t)count : 0;
}

int machine_read(const struct profiles *profiles, const char *profile, struct machine *ret_machine,
                 struct drarun_error *err)
{
    const struct profile *found = profile ? profiles_find(profiles, profile) : NULL;
    struct machine m = {0};
    if (found && found->machine) {
        m = (struct machine){
            .no_root = value_text(found->machine, "noRoot"),
            .gpu_class = value_text(found->machine, "gpuClass"),
            .gpus = count_at(found->machine, "gpus"),
            .nics = count_at(found->machine, "nics"),
            .whole_node = json_is_true(json_object_get(found->machine, "wholeNode")),
            .name = json_string(found->name),
            .rules = json_incref(unconst(found->machine)),
        };
        m.profile = json_string_value(m.name);
        if (!m.profile) {
            json_decref(m.rules);
            return error_set(err, ENOMEM, "profiles: out of memory");
        }
    }
    const json_t *taint = json_object_get(m.rules, "taint");
    m.taint = (struct machine_taint){value_text(taint, "key"), value_text(taint, "value"),
                                     value_text(taint, "nodes")};
    const json_t *mounts = json_object_get(m.rules, "mounts");
    for (size_t i = 0; i < json_array_size(mounts) && i < MACHINE_MOUNTS_MAX; i++) {
        const json_t *mount = json_array_get(mounts, i);
        m.mounts[i] = (struct machine_mount){value_text(mount, "name"), value_text(mount, "host"),
                                             value_text(mount, "pod")};
    }
    *ret_machine = m;
    return 0;
}

int machine_builtin(const char *profile, struct machine *ret_machine, struct drarun_error *err)
{
    struct profiles profiles;
    if (!profile || strcmp(profile, "auto") == 0) {
        *ret_machine = (struct machine){0};
        return 0;
    }
    int rc = profiles_builtin(&profiles, err);
    if (rc < 0)
        return rc;
    rc = machine_read(&profiles, profile, ret_machine, err);
    profiles_done(&profiles);
    return rc;
}

void machine_done(struct machine *machine)
{
    json_decref(machine->name);
    json_decref(machine->rules);
    *machine = (struct machine){0};
}
