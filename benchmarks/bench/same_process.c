/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into IMB-MPI1: before or after each of its measurements drarun-bench measures the same,
 * in the same processes. So both meet the same placement of the library's shared memory and the
 * same moments of the machine, which are worth a fifth of a small call from start to start.
 * DRARUN_BENCH_GUEST is drarun-bench as a module, DRARUN_BENCH_WORDS its words, with a blank
 * between. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 64
#define OUTPUT_BYTES ((size_t)8 << 20)

typedef int program(int argc, char **argv);

MPI_Comm same_process_world; /* the guest's, for MPI_COMM_WORLD */
static int is_guest;         /* it runs, and begins and ends MPI, which belongs to its host */
static int is_owed;          /* it runs when IMB is done */

static void *must(void *given, const char *what)
{
    if (!given) {
        fprintf(stderr, "same_process: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return given;
}

static program *guest_main(void)
{
    const char *path = must(getenv("DRARUN_BENCH_GUEST"), "no DRARUN_BENCH_GUEST");
    void *guest = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!guest)
        must(NULL, dlerror());
    return (program *)must(dlsym(guest, "main"), "the guest has no main");
}

static int guest_words(char *argv[WORDS])
{
    char *text = strdup(must(getenv("DRARUN_BENCH_WORDS"), "no DRARUN_BENCH_WORDS"));
    char *rest = NULL;
    int argc = 0;
    for (char *word = strtok_r(text, " ", &rest); word && argc < WORDS - 1;
         word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    return argc;
}

static void run_guest(void)
{
    static program *guest;
    static char *argv[WORDS];
    static int argc;
    if (!guest) {
        guest = guest_main();
        argc = guest_words(argv);
    }
    optind = 0; /* getopt begins again */
    is_guest = 1;
    int status = guest(argc, argv);
    is_guest = 0;
    if (status != 0)
        must(NULL, "drarun-bench failed");
}

static void run_what_is_owed(void)
{
    if (is_owed)
        run_guest();
    is_owed = 0;
}

/* What is printed leaves the processes when all is measured: who reads it wakes on a processor that
 * one of the ranks has. */
int fflush(FILE *stream)
{
    static int (*next)(FILE *);
    if (stream == stdout)
        return 0;
    if (!next)
        *(void **)&next = must(dlsym(RTLD_NEXT, "fflush"), "no fflush");
    return next(stream);
}

int MPI_Init(int *argc, char ***argv)
{
    if (is_guest)
        return MPI_SUCCESS;
    setvbuf(stdout, NULL, _IOFBF, OUTPUT_BYTES);
    return PMPI_Init(argc, argv);
}

int MPI_Finalize(void)
{
    if (is_guest)
        return MPI_SUCCESS;
    run_what_is_owed();
    return PMPI_Finalize();
}

/* IMB begins each measurement with a communicator, and has no buffers then. The guest has the same
 * one, for the library gives each its own part of the shared memory: it measures before IMB, or
 * after it, by turns. */
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
    static int is_after;
    run_what_is_owed();
    int rc = PMPI_Comm_split(comm, color, key, made);
    same_process_world = *made;
    if (is_after)
        is_owed = 1;
    else
        run_guest();
    is_after = !is_after;
    return rc;
}
