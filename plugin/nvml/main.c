/* SPDX-License-Identifier: Apache-2.0 */
/* drarun-nvml [LIBRARY]: the node plugin's questions to NVIDIA's library. The plugin starts it; a
 * person has nvidia-smi. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/doc/json_memory.h"
#include "plugin/nvml/told.h"

static FILE *answers; /* stdout as the plugin gave it */

/* What NVIDIA's library might write to stdout goes to stderr. */
static bool keep_stdout(void)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    answers = fd >= 0 ? fdopen(fd, "w") : NULL;
    return answers && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

/* Takes it, and writes it as one line. False: nobody reads any more. */
static bool answer_take(json_t *json)
{
    bool written = json_dumpf(json, answers, JSON_COMPACT) == 0 && putc('\n', answers) == '\n' &&
                   fflush(answers) == 0;
    json_decref(json);
    return written;
}

static bool answer_gpus(struct told *told)
{
    json_t *gpus = told_gpus(told);
    return answer_take(
        gpus ? json_pack("{s:o}", "gpus", gpus)
             : json_pack("{s:s, s:i}", "error", "the driver does not list its GPUs", "errno", EIO));
}

static bool answer(struct told *told, const char *request)
{
    if (strcmp(request, "gpus\n") == 0)
        return answer_gpus(told);
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
    if (!keep_stdout()) {
        log_error("stdout: %s", strerror(errno));
        return error_exit_status(DRARUN_ERR_INFRASTRUCTURE);
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
