/* SPDX-License-Identifier: Apache-2.0 */
/* px GETS FENCES [hold]: what an MPI library asks of its launcher, without the library. Puts 128 B,
 * fences with data, gets the data of GETS peers ("all" for every one) and checks it, then fences
 * FENCES times without data. Prints CLOCK_MONOTONIC in ns at each step:
 *     px RANK SIZE main init put fenced got barrier-begin barrier-end finalized
 * hold: stay after the fence, for measuring memory. */
#include <pmix.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DATA_SIZE = 128, STEPS = 8 };

static pmix_proc_t me;

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void check(pmix_status_t status, const char *what)
{
    if (status == PMIX_SUCCESS)
        return;
    fprintf(stderr, "px: rank %u: %s: %s\n", me.rank, what, PMIx_Error_string(status));
    exit(1);
}

static void fill(char *data, uint32_t rank)
{
    for (unsigned i = 0; i < DATA_SIZE; i++)
        data[i] = (char)(rank * 31 + i * 7 + (rank >> 8));
}

static void put(void)
{
    char data[DATA_SIZE];
    pmix_value_t value;
    fill(data, me.rank);
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = data;
    value.data.bo.size = sizeof data;
    check(PMIx_Put(PMIX_GLOBAL, "px", &value), "Put");
    check(PMIx_Commit(), "Commit");
}

static void get(uint32_t rank)
{
    char data[DATA_SIZE];
    pmix_proc_t peer;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&peer, me.nspace, rank);
    check(PMIx_Get(&peer, "px", NULL, 0, &value), "Get");
    fill(data, rank);
    if (value->type != PMIX_BYTE_OBJECT || value->data.bo.size != sizeof data ||
        memcmp(value->data.bo.bytes, data, sizeof data) != 0) {
        fprintf(stderr, "px: rank %u: wrong data of rank %u\n", me.rank, rank);
        exit(1);
    }
    PMIX_VALUE_RELEASE(value);
}

static void fence(bool collect)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    check(PMIx_Fence(NULL, 0, &info, 1), "Fence");
    PMIX_INFO_DESTRUCT(&info);
}

static uint32_t job_size(void)
{
    pmix_proc_t all;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    check(PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value), "Get of the size");
    uint32_t size = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return size;
}

int main(int argc, char **argv)
{
    long long at[STEPS] = {now_ns()};
    char line[512];
    if (argc < 3)
        return 64;
    check(PMIx_Init(&me, NULL, 0), "Init");
    at[1] = now_ns();
    uint32_t size = job_size();
    uint32_t gets = strcmp(argv[1], "all") == 0 ? size : (uint32_t)atoi(argv[1]);
    put();
    at[2] = now_ns();
    fence(true);
    at[3] = now_ns();
    if (argc > 3) {
        printf("ready\n");
        fflush(stdout);
        for (;;)
            pause();
    }
    for (uint32_t i = 0; i < gets; i++)
        get((uint32_t)((me.rank + (unsigned long long)i * size / gets) % size));
    at[4] = now_ns();
    fence(false); /* all begin the next part together */
    at[5] = now_ns();
    for (int i = 0; i < atoi(argv[2]); i++)
        fence(false);
    at[6] = now_ns();
    check(PMIx_Finalize(NULL, 0), "Finalize");
    at[7] = now_ns();
    int length = snprintf(line, sizeof line, "px %u %u", me.rank, size);
    for (int i = 0; i < STEPS; i++)
        length += snprintf(line + length, sizeof line - (size_t)length, " %lld", at[i]);
    line[length++] = '\n';
    return write(STDOUT_FILENO, line, (size_t)length) == length ? 0 : 1;
}
