/* SPDX-License-Identifier: Apache-2.0 */
/* A backend of drarun-bench whose transfers sleep: many ranks with known delays on few cores. Ranks
 * meet in the file SLEEP_FILE, a call takes SLEEP_US, and SLEEP_SLOW=RANK:PERCENT makes one slower,
 * SLEEP_SLOW_NIC the same in exchanges with ranks of other hosts, which have SLEEP_HOST ranks each.
 * It moves no data, and says so. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "benchmarks/bench/backend.h"

#define RANKS_MAX 128u
#define SHARE_MAX 4096u

struct meeting {
    _Atomic uint32_t arrived, generation;
    _Atomic uint32_t calls[RANKS_MAX][RANKS_MAX]; /* begun by row with column */
    char shared[RANKS_MAX][SHARE_MAX];
};

static struct meeting *meeting;
static unsigned own, all;
static long work_ns, far_ns; /* far: what an exchange with another host takes longer */
static unsigned of_host;

static void wait_while(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static int barrier(struct drarun_error *err)
{
    uint32_t generation = atomic_load(&meeting->generation);
    (void)err;
    if (atomic_fetch_add(&meeting->arrived, 1) + 1 == all) {
        atomic_store(&meeting->arrived, 0);
        atomic_fetch_add(&meeting->generation, 1);
        wake(&meeting->generation);
    }
    while (atomic_load(&meeting->generation) == generation)
        wait_while(&meeting->generation, generation);
    return 0;
}

static void work(long ns)
{
    const struct timespec time = {ns / 1000000000, ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static int collective(const struct transfer *t, struct drarun_error *err)
{
    (void)t;
    work(work_ns);
    return barrier(err);
}

static int sendrecv(const struct transfer *t, unsigned to, unsigned from, struct drarun_error *err)
{
    (void)t, (void)err;
    work(of_host && own / of_host != to / of_host ? work_ns + far_ns : work_ns);
    uint32_t mine = atomic_fetch_add(&meeting->calls[own][to], 1) + 1, theirs;
    wake(&meeting->calls[own][to]);
    while ((theirs = atomic_load(&meeting->calls[from][own])) < mine)
        wait_while(&meeting->calls[from][own], theirs);
    return 0;
}

static int share(const void *mine, void *to, size_t bytes, struct drarun_error *err)
{
    char *out = to;
    for (size_t at = 0; at < bytes; at += SHARE_MAX) {
        size_t part = bytes - at < SHARE_MAX ? bytes - at : SHARE_MAX;
        memcpy(meeting->shared[own], (const char *)mine + at, part);
        barrier(err);
        for (unsigned i = 0; i < all; i++)
            memcpy(out + i * bytes + at, meeting->shared[i], part);
        barrier(err);
    }
    return 0;
}

static int agree(double *values, size_t count, enum backend_agree how, struct drarun_error *err)
{
    double *every = calloc(count * all, sizeof *every);
    if (!every)
        return -ENOMEM;
    share(values, every, count * sizeof *values, err);
    for (size_t i = 0; i < count; i++) {
        values[i] = every[i];
        for (unsigned r = 1; r < all; r++) {
            double v = every[r * count + i];
            values[i] = how == AGREE_SUM                        ? values[i] + v
                        : (how == AGREE_MIN) == (v < values[i]) ? v
                                                                : values[i];
        }
    }
    free(every);
    return 0;
}

static int open_it(const struct backend_options *options, struct backend_world *world,
                   struct drarun_error *err)
{
    const char *file = getenv("SLEEP_FILE"), *slow = getenv("SLEEP_SLOW");
    const char *nic = getenv("SLEEP_SLOW_NIC"), *each = getenv("SLEEP_HOST");
    unsigned rank = 0;
    double percent = 0;
    (void)options, (void)err;
    own = (unsigned)atoi(getenv("DRARUN_RANK"));
    all = (unsigned)atoi(getenv("DRARUN_SIZE"));
    work_ns = 1000 * atol(getenv("SLEEP_US"));
    if (slow && sscanf(slow, "%u:%lf", &rank, &percent) == 2 && rank == own)
        work_ns += (long)((double)work_ns * percent / 100);
    if (nic && sscanf(nic, "%u:%lf", &rank, &percent) == 2 && rank == own)
        far_ns = (long)((double)work_ns * percent / 100);
    of_host = each ? (unsigned)atoi(each) : 0;
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (all > RANKS_MAX || fd < 0 || ftruncate(fd, sizeof *meeting) < 0)
        return -errno;
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    world->rank = own;
    world->ranks = all;
    world->stand_in = true;
    snprintf(world->library, sizeof world->library, "sleep");
    snprintf(world->device, sizeof world->device, "none");
    return meeting == MAP_FAILED ? -ENOMEM : 0;
}

static void close_it(void) {}

static void nothing(void *to, const void *from, size_t bytes)
{
    (void)to, (void)from, (void)bytes;
}

static int finish(struct drarun_error *err)
{
    (void)err;
    return 0;
}

static const char *lacks(enum element type, enum reduction op)
{
    (void)type, (void)op;
    return NULL;
}

__attribute__((visibility("default"))) const struct backend bench_backend = {
    .version = BACKEND_VERSION,
    .name = "sleep",
    .open = open_it,
    .close = close_it,
    .alloc = malloc,
    .release = free,
    .put = nothing,
    .get = nothing,
    .copy = nothing,
    .all_reduce = collective,
    .sendrecv = sendrecv,
    .finish = finish,
    .barrier = barrier,
    .agree = agree,
    .share = share,
    .lacks = lacks,
};
