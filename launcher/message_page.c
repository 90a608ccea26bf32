/* SPDX-License-Identifier: Apache-2.0 */
/* message-page FILE: writes the reference page of messages, of the tables beside the code that says
 * them. scripts/message-page runs it; it is not installed. */
#include <errno.h>

#include "launcher/verbs/messages.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

int main(int argc, char *argv[])
{
    struct drarun_error err = {0};
    CLEANUP(buf_done) struct buf page = BUF_INIT;
    log_setup("message-page", LOG_NORMAL);
    if (argc != 2) {
        log_error("expected a file: message-page FILE");
        return error_exit_status(DRARUN_ERR_USAGE);
    }
    messages_page(&page);
    int rc = page.failed ? error_set(&err, ENOMEM, "out of memory")
                         : file_write_atomic(argv[1], page.data, page.len, 0644, &err);
    if (rc == 0)
        return 0;
    log_error("%s", err.text);
    return error_exit_status(err.kind);
}
