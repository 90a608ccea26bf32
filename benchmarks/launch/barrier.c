/* SPDX-License-Identifier: Apache-2.0 */
/* barrier FENCES: a PMI-1 client that puts 128 B, fences with that and then FENCES times without:
 * what the agents do among themselves, without libpmix on either side. Prints px's line; of its
 * steps, init, put, fenced, barrier-begin, barrier-end and finalized mean something. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DATA_SIZE = 128, STEPS = 8 };

static FILE *in, *out;

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Sends a command and wants an answer that begins as given. */
static const char *ask(const char *command, const char *answer)
{
    static char line[4096];
    fputs(command, out);
    fflush(out);
    if (!fgets(line, sizeof line, in) || strncmp(line, answer, strlen(answer)) != 0) {
        fprintf(stderr, "barrier: %.40s: %.80s\n", command, line);
        exit(1);
    }
    return line;
}

static void put(int rank)
{
    char command[1024], name[256], value[DATA_SIZE + 1];
    const char *line = ask("cmd=get_my_kvsname\n", "cmd=my_kvsname");
    const char *found = strstr(line, "kvsname=");
    if (!found || sscanf(found, "kvsname=%255s", name) != 1)
        exit(1);
    memset(value, 'a' + rank % 26, DATA_SIZE);
    value[DATA_SIZE] = '\0';
    snprintf(command, sizeof command, "cmd=put kvsname=%s key=k%d value=%s\n", name, rank, value);
    ask(command, "cmd=put_result rc=0");
}

static void fence(void)
{
    ask("cmd=barrier_in\n", "cmd=barrier_out");
}

int main(int argc, char **argv)
{
    long long at[STEPS] = {now_ns()};
    char line[512];
    const char *fd = getenv("PMI_FD"), *rank = getenv("PMI_RANK"), *size = getenv("PMI_SIZE");
    if (argc != 2 || !fd || !rank || !size)
        return 64;
    in = fdopen(atoi(fd), "r");
    out = fdopen(dup(atoi(fd)), "w");
    if (!in || !out)
        return 70;
    ask("cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=response_to_init");
    at[1] = now_ns();
    put(atoi(rank));
    at[2] = now_ns();
    fence();
    at[3] = at[4] = now_ns();
    fence(); /* all begin the next part together */
    at[5] = now_ns();
    for (int i = 0; i < atoi(argv[1]); i++)
        fence();
    at[6] = now_ns();
    ask("cmd=finalize\n", "cmd=finalize_ack");
    at[7] = now_ns();
    int length = snprintf(line, sizeof line, "px %s %s", rank, size);
    for (int i = 0; i < STEPS; i++)
        length += snprintf(line + length, sizeof line - (size_t)length, " %lld", at[i]);
    line[length++] = '\n';
    return write(STDOUT_FILENO, line, (size_t)length) == length ? 0 : 1;
}
