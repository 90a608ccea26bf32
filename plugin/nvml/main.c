/* SPDX-License-Identifier: Apache-2.0 */
/* drarun-nvml [LIBRARY]: the node plugin's questions to NVIDIA's library. The plugin starts it; a
 * person has nvidia-smi. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/doc/json_memory.h"
#include "plugin/nvml/told.h"

/* Takes it, and writes it as one line. False: nobody reads any more. */
static bool answer_take(json_t *json)
{
    bool written =
        json_dumpf(json, stdout, JSON_COMPACT) == 0 && putchar('\n') == '\n' && fflush(stdout) == 0;
    json_decref(json);
    return written;
}

static bool answer(struct told *told, const char *request)
{
    if (strcmp(request, "gpus\n") == 0)
        return answer_take(json_pack("{s:o}", "gpus", told_gpus(told)));
    if (strcmp(request, "xids\n") == 0)
        return answer_take(json_pack("{s:o}", "xids", told_xids(told)));
    return answer_take(json_pack("{s:s, s:i}", "error", "expected gpus or xids", "errno", EINVAL));
}

int main(int argc, char *argv[])
{
    struct drarun_error err = {0};
    struct told told = {.events = NULL};
    char request[16];
    json_memory_end_without();
    log_setup("drarun-nvml", LOG_NORMAL);
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        log_error("expected drarun-nvml [LIBRARY]; drarun-plugin starts it");
        return error_exit_status(DRARUN_ERR_USAGE);
    }
    int rc = nvml_library_open(argc == 2 ? argv[1] : NULL, &told.lib, &err);
    if (rc < 0) {
        answer_take(json_pack("{s:s, s:i}", "error", err.text, "errno", -rc));
        return error_exit_status(DRARUN_ERR_INFRASTRUCTURE);
    }
    bool heard = answer_take(json_pack("{s:b}", "ready", true));
    while (heard && fgets(request, sizeof request, stdin))
        heard = answer(&told, request);
    told_done(&told);
    return 0;
}
