/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks on this machine from a program of one's own, with no cluster: ranks N PROGRAM [ARG...].
 * Each rank's lines come with its number while the program waits for other things, too. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <drarun/drarun.h>

static int on_output(void *arg, unsigned rank, int is_stderr, const char *data, size_t length)
{
    (void)arg;
    fprintf(is_stderr ? stderr : stdout, "%u: %.*s", rank, (int)length, data);
    return 0;
}

/* A loop of one's own: what it waits for beside the job goes into the list. */
static int follow(struct drarun_local *job, int *status, struct drarun_error *err)
{
    struct pollfd waits[] = {{.fd = drarun_local_fd(job), .events = POLLIN}};
    while (drarun_local_dispatch(job, err) == 0)
        poll(waits, 1, -1);
    return drarun_local_wait(job, status, err);
}

int main(int argc, char *argv[])
{
    struct drarun_local_options options = drarun_local_options_init();
    struct drarun_error err = {0};
    struct drarun_local *job = NULL;
    int status = 0;
    if (argc < 3 || atoi(argv[1]) < 1) {
        fprintf(stderr, "usage: ranks N PROGRAM [ARG...]\n");
        return 64;
    }
    options.ranks = (unsigned)atoi(argv[1]);
    options.output = on_output;
    int rc = drarun_local_start((const char *const *)argv + 2, &options, &job, &err);
    if (rc == 0)
        rc = follow(job, &status, &err);
    drarun_local_free(job);
    if (rc == 0)
        return status;
    fprintf(stderr, "ranks: %s\n", err.text);
    return drarun_exit_status(err.kind);
}
