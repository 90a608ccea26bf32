/* SPDX-License-Identifier: Apache-2.0 */
/* What a hook needs of the container that it is called for: the OCI configuration (config.json) of
 * its bundle (OCI runtime-spec, Configuration). It says which orders the container was given, since
 * the CDI edits of a claim run one hook for all of its devices: each device's edits add an
 * environment variable, its mark. */
#ifndef DRARUN_ATTACH_OCI_CONFIG_H
#define DRARUN_ATTACH_OCI_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "plugin/attach/order.h"

#define OCI_CONFIG_SIZE_MAX ((size_t)8 << 20) /* an object of the API has at most 1.5 MiB */

struct oci_config {
    char root[PATH_MAX];  /* the container's "/" where the runtime makes it, absolute */
    struct strlist marks; /* the names of environment variables that begin as marks do */
};

/* Of BUNDLE/config.json, or from its text (pure). The caller frees *ret with oci_config_done. No
 * message shows a value of the environment. */
int oci_config_load(const char *bundle, struct oci_config *ret, struct drarun_error *err);
int oci_config_parse(const char *bundle, const char *text, size_t len, struct oci_config *ret,
                     struct drarun_error *err);
void oci_config_done(struct oci_config *config);

/* Whether the container was given the order's device. Without a mark of the claim it was given all:
 * a specification that an older plugin wrote has a hook for each device and no marks. */
bool oci_config_has(const struct oci_config *config, const struct attach_order *order);

#endif
