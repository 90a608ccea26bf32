/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/files/profile_file.h"

#include "lib/base/error.h"
#include "lib/doc/load.h"

int profile_file_load(const char *path, struct profiles *ret_profiles, struct drarun_error *err)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    if (!path)
        return profiles_builtin(ret_profiles, err);
    int rc = doc_load_one(path, &doc, err);
    if (rc < 0)
        return rc;
    rc = profiles_load(doc_root(doc, 0), ret_profiles, err);
    return rc < 0 ? error_prefix(err, "%s", path) : 0;
}
