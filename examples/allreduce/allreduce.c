/* SPDX-License-Identifier: Apache-2.0 */
/* Sums an array over all ranks and checks every element on every rank. Exit status 0 when all of
 * them are right, 1 when any is wrong, 2 for wrong arguments. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_COUNT (128 * 1024)
#define REPEATS 10

/* What a rank puts in: small integers, so that sums of doubles are exact. */
static double term(int rank, int i)
{
    return (double)(rank + 1) * (i % 97 + 1);
}

static double sum_of_terms(int ranks, int i)
{
    return (double)ranks * (ranks + 1) / 2 * (i % 97 + 1);
}

static int count_wrong(const double *sum, int count, int rank, int ranks)
{
    int wrong = 0;
    for (int i = 0; i < count; i++) {
        if (sum[i] == sum_of_terms(ranks, i))
            continue;
        if (wrong++ == 0)
            fprintf(stderr, "allreduce: rank %d: element %d is %.17g, expected %.17g\n", rank, i,
                    sum[i], sum_of_terms(ranks, i));
    }
    return wrong;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Different host names among the ranks; known on rank 0 only. */
static int count_hosts(int rank, int ranks)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    char(*all)[MPI_MAX_PROCESSOR_NAME] = NULL;
    int length = 0, hosts = 1;
    MPI_Get_processor_name(name, &length);
    if (rank == 0 && !(all = calloc((size_t)ranks, sizeof *all)))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Gather(name, sizeof name, MPI_CHAR, all, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return 0;
    qsort(all, (size_t)ranks, sizeof *all, compare_names);
    for (int i = 1; i < ranks; i++)
        hosts += strcmp(all[i - 1], all[i]) != 0;
    free(all);
    return hosts;
}

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Seconds that one all_reduce takes on its slowest rank, ascending; known on rank 0 only. */
static void measure(const double *in, double *sum, int count, double times[REPEATS])
{
    for (int i = 0; i < REPEATS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        MPI_Allreduce(in, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        double mine = MPI_Wtime() - start;
        MPI_Reduce(&mine, &times[i], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    }
    qsort(times, REPEATS, sizeof *times, compare_doubles);
}

static void print_result(int ranks, int hosts, int count, const double *sum,
                         const double times[REPEATS])
{
    const char *workers = getenv("DRARUN_WORKERS");
    printf("allreduce: %d ranks", ranks);
    if (workers)
        printf(", workers: %s", workers);
    printf(", hosts: %d; %d doubles, first sum %.0f, every element right on every rank\n"
           "           %.2f ms (%.2f to %.2f)\n",
           hosts, count, sum[0], times[REPEATS / 2] * 1e3, times[0] * 1e3,
           times[REPEATS - 1] * 1e3);
}

static int parse_count(int argc, char **argv)
{
    char *end = NULL;
    long count = argc > 1 ? strtol(argv[1], &end, 10) : DEFAULT_COUNT;
    if (argc > 2 || (end && (*end || end == argv[1])) || count < 1 || count > 1L << 28)
        return 0;
    return (int)count;
}

int main(int argc, char **argv)
{
    int rank = 0, ranks = 0, wrong = 0, all_wrong = 0;
    double times[REPEATS] = {0};
    int count = parse_count(argc, argv);
    if (count == 0) {
        fprintf(stderr, "usage: allreduce [COUNT]: doubles to sum, 1 to 2^28 (default %d)\n",
                DEFAULT_COUNT);
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double *in = malloc((size_t)count * sizeof *in);
    double *sum = calloc((size_t)count, sizeof *sum);
    if (!in || !sum) {
        fprintf(stderr, "allreduce: rank %d: no memory for %d doubles\n", rank, count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < count; i++)
        in[i] = term(rank, i);

    measure(in, sum, count, times);
    wrong = count_wrong(sum, count, rank, ranks);
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    int hosts = count_hosts(rank, ranks);
    if (rank == 0 && all_wrong == 0)
        print_result(ranks, hosts, count, sum, times);

    free(in);
    free(sum);
    MPI_Finalize();
    return wrong || all_wrong ? 1 : 0;
}
