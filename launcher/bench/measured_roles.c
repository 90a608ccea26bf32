/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/measured_roles.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/doc/value.h"

/* ---- which ---- */

static bool any_asks(const struct job_spec *spec)
{
    for (uint32_t r = 0; r < spec->role_count; r++)
        if (spec_role_has_devices(&spec->roles[r]))
            return true;
    return false;
}

static bool is_chosen(const struct job_spec *spec, const struct spec_role *role, const char *name)
{
    if (name)
        return strcmp(role->name, name) == 0;
    return spec_role_has_devices(role) || !any_asks(spec);
}

static void refuse_name(const struct job_spec *spec, const json_t *roles, const char *name,
                        struct drarun_error *err)
{
    struct buf names = BUF_INIT;
    measured_roles_names(roles, &names);
    if (roles)
        error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--role %s: no such role; %s has %s", name,
                   spec->name, names.data ? names.data : "others");
    else
        error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--role %s: %s has no roles: leave it out", name,
                   spec->name);
    buf_done(&names);
}

static void refuse_own_worlds(const json_t *chosen, struct drarun_error *err)
{
    struct buf names = BUF_INIT;
    measured_roles_names(chosen, &names);
    error_kind(err, DRARUN_ERR_SPEC, EINVAL,
               "spec.world: the roles %s each have a world of their own, and a measurement is of "
               "one: choose one of them with --role NAME",
               names.data ? names.data : "of the job");
    buf_done(&names);
}

/* ---- their keys ---- */

/* nccl at the top is for roles that ask for devices, and which claims there are is of the whole job
 * (jobs/spec/spec_check.c). */
static int take_over(const json_t *top, const struct spec_role *role, json_t *own)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < spec_role_fields.count; i++) {
        const char *key = spec_role_fields.list[i].key;
        json_t *value = json_object_get(top, key);
        bool unmeant = strcmp(key, "nccl") == 0 && !spec_role_has_devices(role);
        if (value && !unmeant && !json_object_get(own, key))
            rc = json_object_set_new(own, key, json_deep_copy(value));
    }
    json_object_del(json_object_get(own, "devices"), "claims");
    return rc;
}

static int drop_of_top(json_t *top)
{
    static const char *const meant[] = {"roles", "success", "world"};
    const char *claims = value_text(json_object_get(top, "devices"), "claims");
    json_t *kept = claims ? json_pack("{s:s}", "claims", claims) : NULL;
    for (size_t i = 0; i < spec_role_fields.count; i++)
        json_object_del(top, spec_role_fields.list[i].key);
    for (size_t i = 0; i < ARRAY_LEN(meant); i++)
        json_object_del(top, meant[i]);
    return claims ? json_object_set_new(top, "devices", kept) : 0;
}

/* A role alone: its keys are the top's, whose claims stay. */
static int stand_at_top(json_t *top, json_t *role)
{
    json_t *claims = json_incref(json_object_get(json_object_get(top, "devices"), "claims"));
    json_object_del(role, "name");
    int rc = json_object_update(top, role);
    json_t *devices = json_object_get(top, "devices");
    if (rc == 0 && claims && devices)
        rc = json_object_set(devices, "claims", claims);
    json_decref(claims);
    return rc;
}

static void say_left_out(const struct job_spec *spec, const char *name)
{
    for (uint32_t r = 0; !name && r < spec->role_count; r++)
        if (!is_chosen(spec, &spec->roles[r], NULL))
            log_note("role %s asks for no devices and takes no part: --role %s measures it alone",
                     spec->roles[r].name, spec->roles[r].name);
}

static json_t *choose(const struct job_spec *spec, const json_t *top, const char *name)
{
    json_t *chosen = json_array();
    int rc = chosen ? 0 : -1;
    for (uint32_t r = 0; rc == 0 && r < spec->role_count; r++) {
        if (!is_chosen(spec, &spec->roles[r], name))
            continue;
        json_t *own = json_deep_copy(json_array_get(json_object_get(top, "roles"), r));
        rc = own ? take_over(top, &spec->roles[r], own) : -1;
        rc |= json_array_append_new(chosen, own);
    }
    if (rc != 0)
        json_decref(TAKE_PTR(chosen));
    return chosen;
}

json_t *measured_roles_take(const struct job_spec *spec, const char *name, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *document = json_deep_copy(spec->document);
    json_t *top = json_object_get(document, "spec");
    const char *world = value_text_or(top, "world", "shared");
    CLEANUP(json_decrefp) json_t *chosen = NULL;
    if (!spec_has_roles(spec) && name) {
        refuse_name(spec, NULL, name, err);
        return NULL;
    }
    if (document && !spec_has_roles(spec))
        return TAKE_PTR(document);
    chosen = document ? choose(spec, top, name) : NULL;
    size_t count = json_array_size(chosen);
    if (chosen && count == 0) {
        refuse_name(spec, json_object_get(top, "roles"), name, err);
        return NULL;
    }
    if (count > 1 && strcmp(world, "own") == 0) {
        refuse_own_worlds(chosen, err);
        return NULL;
    }
    int rc = chosen ? drop_of_top(top) : -1;
    if (rc == 0)
        rc = count == 1 ? stand_at_top(top, json_array_get(chosen, 0))
                        : json_object_set(top, "roles", chosen);
    if (rc != 0) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    say_left_out(spec, name);
    return TAKE_PTR(document);
}

json_t *measured_roles_of(const json_t *document)
{
    json_t *roles = json_object_get(json_object_get(document, "spec"), "roles");
    return json_array_size(roles) > 1 ? roles : NULL;
}

void measured_roles_names(const json_t *roles, struct buf *out)
{
    size_t i;
    const json_t *role;
    json_array_foreach(roles, i, role)
        buf_printf(out, "%s%s", i ? ", " : "", value_text_or(role, "name", "?"));
}
