/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/claim_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"

#define REMEDY                                                                                     \
    "the administrator allows more by claims.allow of the PluginConfig, or sets it in "            \
    "the DeviceClass"

/* Objects whose keys are settings of their own. */
static bool is_group(const char *key)
{
    return strcmp(key, "interface") == 0 || strcmp(key, "ethtool") == 0;
}

static void add_refused(const struct claim_limits *limits, const char *group, const char *key,
                        struct buf *refused)
{
    char setting[128];
    snprintf(setting, sizeof setting, "%s%s%s", group, *group ? "." : "", key);
    if (!claim_limits_allow(limits, setting))
        buf_printf(refused, "%s%s", refused->len ? ", " : "", setting);
}

static void find_refused(const struct claim_limits *limits, const json_t *claim,
                         struct buf *refused)
{
    const char *key, *inner;
    json_t *value, *ignored;
    value_foreach(claim, key, value)
    {
        if (!is_group(key) || !json_is_object(value))
            add_refused(limits, "", key, refused);
        else
            json_object_foreach(value, inner, ignored) add_refused(limits, key, inner, refused);
    }
}

int claim_config_check(const struct claim_limits *limits, const json_t *claim,
                       struct drarun_error *err)
{
    struct buf refused = BUF_INIT, allowed = BUF_INIT;
    int rc = 0;
    find_refused(limits, claim, &refused);
    claim_limits_list(limits, &allowed);
    if (refused.failed || allowed.failed)
        rc = error_set(err, ENOMEM, "out of memory");
    else if (refused.len > 0)
        rc = error_set(
            err, EPERM,
            "the claim may not set %.100s: a claim's own configuration may set %s; " REMEDY,
            refused.data, allowed.data);
    buf_done(&refused);
    buf_done(&allowed);
    return rc;
}

static bool merge_group(json_t *merged, const char *key, json_t *value)
{
    json_t *group = json_object_get(merged, key);
    return is_group(key) && json_is_object(group) && json_is_object(value)
               ? json_object_update(group, value) == 0
               : json_object_set(merged, key, value) == 0;
}

int claim_config_merge(const json_t *class_, const json_t *claim, json_t **ret_config,
                       struct drarun_error *err)
{
    const char *key;
    json_t *value;
    bool ok = true;
    if (!json_is_object(class_) ||
        !json_is_object(claim)) { /* of one that is none its reader tells */
        *ret_config = json_incref(unconst(claim ? claim : class_));
        return 0;
    }
    CLEANUP(json_decrefp) json_t *merged = json_deep_copy(class_);
    value_foreach(claim, key, value) ok = ok && merge_group(merged, key, value);
    if (!merged || !ok)
        return error_set(err, ENOMEM, "out of memory");
    *ret_config = TAKE_PTR(merged);
    return 0;
}

static bool is_own(const struct ip_prefix *address, const struct ip_prefix *own, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (own[i].family == address->family &&
            memcmp(own[i].bytes, address->bytes, ip_prefix_size(address)) == 0)
            return true;
    return false;
}

int claim_config_check_addresses(const struct claim_limits *limits, const struct ip_prefix *wanted,
                                 size_t wanted_count, const struct ip_prefix *own, size_t own_count,
                                 struct drarun_error *err)
{
    char text[IP_PREFIX_TEXT];
    size_t i = 0;
    while (i < wanted_count &&
           (is_own(&wanted[i], own, own_count) || claim_limits_have(limits, &wanted[i])))
        i++;
    if (i == wanted_count)
        return 0;
    struct buf plan = BUF_INIT;
    claim_limits_plan(limits, &plan);
    int rc = plan.failed ? error_set(err, ENOMEM, "out of memory")
                         : error_set(err, EPERM,
                                     "interface.addresses: the claim may not have %s: the address "
                                     "plan (claims.addresses of the PluginConfig) has %.120s, and "
                                     "it is no address of the device on the host; the "
                                     "administrator adds the network there, or sets the address "
                                     "in the DeviceClass",
                                     ip_prefix_text(&wanted[i], text), plan.data);
    buf_done(&plan);
    return rc;
}
