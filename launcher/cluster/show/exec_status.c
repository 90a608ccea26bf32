/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/show/exec_status.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/number.h"

/* k8s.io/apimachinery, metav1.Status as remotecommand writes it. */
int exec_status_read(const char *text, size_t length, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *status = json_loadb(text, length, 0, NULL);
    const char *word = json_string_value(json_object_get(status, "status"));
    const char *message = json_string_value(json_object_get(status, "message"));
    const json_t *causes = json_object_get(json_object_get(status, "details"), "causes");
    size_t i;
    json_t *cause;
    if (word && strcmp(word, "Success") == 0)
        return 0;
    json_array_foreach(causes, i, cause)
    {
        const char *reason = json_string_value(json_object_get(cause, "reason"));
        const char *code = json_string_value(json_object_get(cause, "message"));
        int64_t number;
        if (reason && code && strcmp(reason, "ExitCode") == 0 &&
            number_parse("exit status", code, 1, 255, &number, NULL) == 0)
            return (int)number;
    }
    return error_kind(err, DRARUN_ERR_CLUSTER, EIO, "%s",
                      message ? message : "the kubelet does not say how the command ended");
}
