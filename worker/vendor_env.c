/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/vendor_env.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/inspect/vendor_script.h"

#define START_MS 2000 /* of our own program and the shell */
#define CHUNK 65536u

static json_t *told(const char *path, const char *reason)
{
    return json_pack("{s:s, s:s}", "path", path, "reason", reason);
}

int vendor_env_serve(const char *path)
{
    struct drarun_error err = {0};
    json_t *env = NULL;
    int rc = vendor_script_run(path, VENDOR_SCRIPT_MS, &env, &err);
    CLEANUP(json_decrefp)
    json_t *answer =
        rc == 0 ? json_pack("{s:s, s:o}", "path", path, "env", env) : told(path, err.text);
    cleanup_free char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
    bool written = text && fd_write_all(STDOUT_FILENO, text, strlen(text)) == 0;
    return written ? 0 : error_exit_status(DRARUN_ERR_INFRASTRUCTURE);
}

__attribute__((noreturn)) static void child(const char *path, int out)
{
    static char self[] = "/proc/self/exe", option[] = "--vendor-script";
    char *const argv[] = {self, option, (char *)path, NULL}, *const none[] = {NULL};
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
        execve(self, argv, none);
    _exit(127);
}

/* Until its end or the deadline. */
static int read_all(int fd, struct buf *text)
{
    int64_t deadline = clock_ms() + VENDOR_SCRIPT_MS + START_MS;
    char chunk[CHUNK];
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int64_t left = deadline - clock_ms();
        int n = left > 0 ? poll(&ready, 1, (int)left) : 0;
        if (n == 0)
            return -ETIMEDOUT;
        ssize_t got = n > 0 ? read(fd, chunk, sizeof chunk) : -1;
        if (got == 0)
            return text->failed ? -ENOMEM : 0;
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got > 0)
            buf_add(text, chunk, (size_t)got);
    }
}

static json_t *ask(const char *path)
{
    char why[128];
    int fds[2], status = 0;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return told(path, strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        child(path, fds[1]);
    close(fds[1]);
    cleanup_close int from = fds[0];
    struct buf text = BUF_INIT;
    int rc = pid < 0 ? -errno : read_all(from, &text);
    if (rc < 0 && pid > 0)
        kill(pid, SIGKILL);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    json_t *answer = rc == 0 && text.len > 0 ? json_loadb(text.data, text.len, 0, NULL) : NULL;
    buf_done(&text);
    if (answer)
        return answer;
    snprintf(why, sizeof why, "%s: its runner told nothing: %s", path,
             rc < 0 ? strerror(-rc) : "it ended early");
    return told(path, why);
}

json_t *vendor_env(char *const *scripts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (access(scripts[i], F_OK) == 0)
            return ask(scripts[i]);
    return NULL;
}
