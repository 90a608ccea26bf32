/* SPDX-License-Identifier: Apache-2.0 */
/* A job on a cluster from a program of one's own: each rank's lines with its number, what is
 * awaited meanwhile, and the exit status. Ctrl-C cancels the job. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <drarun/drarun.h>

static struct drarun_cluster *cluster;

static void on_signal(int signo)
{
    (void)signo;
    drarun_cluster_interrupt(cluster);
}

static int on_output(void *arg, unsigned rank, int is_stderr, const char *data, size_t length)
{
    (void)arg;
    fprintf(is_stderr ? stderr : stdout, "%u: %.*s", rank, (int)length, data);
    return 0;
}

static void on_progress(void *arg, const char *text)
{
    (void)arg;
    fprintf(stderr, "run: %s\n", text);
}

static int run(const char *file, int *status, struct drarun_error *err)
{
    struct drarun_spec *spec = NULL;
    struct drarun_submit_options submit = drarun_submit_options_init();
    struct drarun_follow_options follow = drarun_follow_options_init();
    submit.image = getenv("DRARUN_IMAGE"); /* of agent and launcher; NULL: this version's */
    follow.output = on_output;
    follow.progress = on_progress;
    follow.cancel = 1; /* a user who stops this program wants the job to end */
    int rc = drarun_spec_load(file, NULL, &spec, NULL, err);
    if (rc == 0)
        rc = drarun_cluster_open(NULL, &cluster, err);
    if (rc == 0) {
        signal(SIGINT, on_signal);
        rc = drarun_run(cluster, spec, &submit, &follow, status, err);
        signal(SIGINT, SIG_DFL);
        drarun_cluster_close(cluster);
    }
    drarun_spec_free(spec);
    return rc;
}

int main(int argc, char *argv[])
{
    struct drarun_error err = {0};
    int status = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: run JOB.yaml\n");
        return 64;
    }
    if (run(argv[1], &status, &err) == 0)
        return status;
    fprintf(stderr, "run: %s\n", err.text);
    return drarun_exit_status(err.kind);
}
