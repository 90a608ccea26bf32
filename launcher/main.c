/* SPDX-License-Identifier: Apache-2.0 */
/* drarun: which verb, and nothing else. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launcher/run.h"
#include "launcher/run_options.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

#define VERBS "run help version completion"

static int show_completion(int argc, char *const argv[])
{
    struct buf text = BUF_INIT;
    if (argc != 1 || strcmp(argv[0], "bash") != 0) {
        log_error("completion: expected the name of a shell: drarun completion bash");
        return error_exit_status(DRARUN_ERR_USAGE);
    }
    options_completion(&run_option_table, "drarun", VERBS, &text);
    int rc = text.failed ? -1 : fd_write_all(STDOUT_FILENO, text.data, text.len);
    buf_done(&text);
    return rc < 0 ? error_exit_status(DRARUN_ERR_INFRASTRUCTURE) : 0;
}

/* "--help" and "--version" as run's options do the work of those verbs. */
static int show(char *const all[], const char *option)
{
    char *const argv[] = {(char *)option};
    return run_verb(all, 1, argv);
}

/* Descriptors that we open must not become 0, 1 or 2. */
static void fill_closed_stdio(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", O_RDWR); /* the lowest free number, hence fd */
}

int main(int argc, char *argv[])
{
    const char *first = argc > 1 ? argv[1] : "";
    fill_closed_stdio();
    if (strcmp(first, "run") == 0)
        return run_verb(argv, argc - 2, argv + 2);
    if (strcmp(first, "help") == 0)
        return show(argv, "--help");
    if (strcmp(first, "version") == 0)
        return show(argv, "--version");
    if (strcmp(first, "completion") == 0)
        return show_completion(argc - 2, argv + 2);
    return run_verb(argv, argc - 1, argv + 1);
}
