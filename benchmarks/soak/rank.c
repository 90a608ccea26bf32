/* SPDX-License-Identifier: Apache-2.0 */
/* soak-rank RANK:STEP,STEP,... [...]: a rank that does what its rank was given, or the steps of
 * "*". At first it says "rank R PID". Steps: sleep=MS  exit=STATUS  kill=SIGNAL (to itself)  hang
 * lines=COUNT child     leave a process in a session of its own that never ends init  fence
 * finalize   (soak-rank-pmix only) After the last step it exits with 0. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_PMIX
#include <pmix.h>
#endif

/* drarun, Hydra and Open MPI each have a name for it. */
static const char *const rank_names[] = {"RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"};

static int rank = -1;

static void say(const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t put = write(STDOUT_FILENO, text, left);
        if (put < 0)
            _exit(99);
        text += put;
        left -= (size_t)put;
    }
}

static void sleep_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    while (nanosleep(&t, &t) != 0)
        ;
}

static void hang(void)
{
    for (;;)
        pause();
}

static void leave_child(void)
{
    if (fork() == 0) {
        setsid();
        hang();
    }
}

static void print_lines(int count)
{
    char line[128];
    for (int i = 0; i < count; i++) {
        snprintf(line, sizeof line, "line %d %d of %d ......................................\n",
                 rank, i, count);
        say(line);
    }
}

#ifdef WITH_PMIX
static void check(pmix_status_t status, const char *what)
{
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "soak-rank %d: %s: %s\n", rank, what, PMIx_Error_string(status));
        exit(98);
    }
}

static int pmix_step(const char *name)
{
    pmix_proc_t me;
    if (strcmp(name, "init") == 0)
        check(PMIx_Init(&me, NULL, 0), "PMIx_Init");
    else if (strcmp(name, "fence") == 0)
        check(PMIx_Fence(NULL, 0, NULL, 0), "PMIx_Fence");
    else if (strcmp(name, "finalize") == 0)
        check(PMIx_Finalize(NULL, 0), "PMIx_Finalize");
    else
        return 0;
    return 1;
}
#else
static int pmix_step(const char *name)
{
    (void)name;
    return 0;
}
#endif

static void step(const char *name, int number)
{
    if (strcmp(name, "sleep") == 0)
        sleep_ms(number);
    else if (strcmp(name, "exit") == 0)
        _exit(number);
    else if (strcmp(name, "kill") == 0)
        kill(getpid(), number);
    else if (strcmp(name, "hang") == 0)
        hang();
    else if (strcmp(name, "lines") == 0)
        print_lines(number);
    else if (strcmp(name, "child") == 0)
        leave_child();
    else if (!pmix_step(name))
        _exit(97);
}

static void play(char *steps)
{
    char *rest = steps, *word;
    while ((word = strsep(&rest, ",")) != NULL) {
        char *number = strchr(word, '=');
        if (number)
            *number++ = '\0';
        step(word, number ? atoi(number) : 0);
    }
}

static char *steps_for(char **words)
{
    char *everyone = NULL;
    for (; *words; words++) {
        char *colon = strchr(*words, ':');
        if (!colon)
            _exit(96);
        if (**words == '*')
            everyone = colon + 1;
        else if (atoi(*words) == rank)
            return colon + 1;
    }
    return everyone;
}

int main(int argc, char **argv)
{
    char hello[64];
    (void)argc;
    for (size_t i = 0; rank < 0 && i < sizeof rank_names / sizeof *rank_names; i++) {
        const char *text = getenv(rank_names[i]);
        rank = text ? atoi(text) : rank;
    }
    snprintf(hello, sizeof hello, "rank %d %d\n", rank, (int)getpid());
    say(hello);
    char *steps = steps_for(argv + 1);
    if (steps)
        play(steps);
    return 0;
}
