/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cli/manifests.h"

#include <errno.h>

#include "launcher/cli/verb.h"
#include "lib/base/error.h"
#include "lib/doc/yaml_write.h"

int manifests_write(json_t *list, const char *note, bool json, struct buf *out,
                    struct drarun_error *err)
{
    size_t i;
    json_t *manifest;
    int rc = 0;
    if (json) {
        verb_add_json_take(
            json_pack("{s:s, s:s, s:O}", "apiVersion", "v1", "kind", "List", "items", list), out);
        return 0;
    }
    buf_add_str(out, note);
    json_array_foreach(list, i, manifest)
    {
        buf_add_str(out, "---\n");
        if (rc == 0 && !out->failed)
            rc = yaml_write(manifest, out, err);
    }
    return rc == 0 && out->failed ? error_set(err, ENOMEM, "out of memory") : rc;
}
