/* SPDX-License-Identifier: Apache-2.0 */
/* drarun-bench: one rank of a collective benchmark. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/bench/copy_rate.h"
#include "benchmarks/bench/host_errors.h"
#include "benchmarks/bench/host_traffic.h"
#include "benchmarks/bench/mpi_library.h"
#include "benchmarks/bench/probe.h"
#include "benchmarks/bench/record.h"
#include "benchmarks/bench/room.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/bench/written.h"

struct bench {
    struct bench_options options;
    const struct backend *backend;
    bool own_failure; /* not what all ranks come to alike: each says its own, and may be alone */
    struct backend_world world;
    struct measure_memory memory;
    struct record record; /* of rank 0 */
    char **argv;
    struct progress_page *progress;
    double busbw, wrong;
    unsigned first_wrong; /* the first rank that received wrong data */
    unsigned rows;        /* halves of rows: out of place and in place */
};

/* ret: whether it is there. */
static bool module_beside(const char *backend, const char *abi, char path[PATH_MAX])
{
    char here[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", here, sizeof here - 1);
    here[length > 0 ? length : 0] = '\0';
    char *name = strrchr(here, '/');
    if (name)
        *name = '\0';
    int n = snprintf(path, PATH_MAX, "%s/../lib/drarun/bench-%s%s%s.so", here, backend,
                     abi ? "-" : "", abi ? abi : "");
    return n > 0 && n < PATH_MAX && access(path, R_OK) == 0;
}

/* Its modules lie beside the program: that of the MPI that it was built with, or one for each ABI,
 * which the image's library chooses. DRARUN_BENCH_MODULE names another. */
static int find_module(const char *backend, char path[PATH_MAX], struct drarun_error *err)
{
    const char *named = getenv("DRARUN_BENCH_MODULE"), *abi = NULL;
    char of_abi[PATH_MAX];
    bool found = module_beside(backend, NULL, path);
    if (named) {
        snprintf(path, PATH_MAX, "%s", named);
        found = access(path, R_OK) == 0;
    }
    if (!found && !named && strcmp(backend, "mpi") == 0 &&
        (module_beside(backend, "ompi", of_abi) || module_beside(backend, "mpich", of_abi))) {
        int rc = mpi_library_open(&abi, err);
        if (rc < 0)
            return rc;
        found = module_beside(backend, abi, path);
    }
    if (found)
        return 0;
    return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, ENOENT,
                      "backend %s: there is no %s: build drarun where its package is (for mpi: "
                      "libopenmpi-dev or libmpich-dev; for nccl: libpmix-dev), or set "
                      "DRARUN_BENCH_MODULE",
                      backend, path);
}

static int open_backend(struct bench *b, struct drarun_error *err)
{
    char path[PATH_MAX];
    int rc = find_module(b->options.backend, path, err);
    if (rc < 0)
        return rc;
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const struct backend *backend = module ? dlsym(module, BACKEND_SYMBOL) : NULL;
    if (!backend)
        return error_set(err, ENOENT, "backend %s: %s", b->options.backend, dlerror());
    if (backend->version != BACKEND_VERSION)
        return error_set(err, EPROTO, "backend %s has version %u, this program %u", path,
                         backend->version, BACKEND_VERSION);
    rc = backend->open(&b->options.of_backend, &b->world, err);
    if (rc == 0 || b->world.met)
        b->backend = backend;
    b->own_failure = rc < 0 && !b->world.met && err->kind != DRARUN_ERR_USAGE;
    return rc;
}

/* ---- -T ---- */

static char late[256]; /* what on_alarm says: it may not put words together */

static void on_alarm(int signal)
{
    (void)signal;
    (void)!write(STDERR_FILENO, late, strlen(late));
    // NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c): it reads a table of constants
    _exit(error_exit_status(DRARUN_ERR_TIMEOUT));
}

/* A call that never ends holds this thread, so that nothing but a signal can tell. */
static void begin_watch(const struct bench *b, const struct measure_case *m)
{
    snprintf(late, sizeof late,
             "drarun-bench: rank %u: %s of %zu bytes is not done after %u s (--timeout)\n",
             b->world.rank, m->collective->name, m->bytes, b->options.timeout_s);
    signal(SIGALRM, on_alarm);
    alarm(b->options.timeout_s);
}

/* ---- rows ---- */

static void note_wrong(struct bench *b, const struct measured *m)
{
    unsigned first = 0;
    if (m->wrong <= 0)
        return;
    while (m->wrong_ranks[first] <= 0)
        first++;
    b->first_wrong = b->wrong > 0 && b->first_wrong < first ? b->first_wrong : first;
    b->wrong += m->wrong;
}

static int row(struct bench *b, struct measure_case *m, struct drarun_error *err)
{
    const struct measure_plan *plan = &b->options.plan;
    struct measured halves[2] = {{.wrong = -1}, {.wrong = -1}};
    size_t shift = b->options.unaligned * element_size(m->type);
    int rc = 0;
    for (unsigned in_place = 0; rc == 0 && in_place < 2; in_place++) {
        begin_watch(b, m);
        rc = measure(m, plan, &b->memory, shift, in_place, &halves[in_place], err);
        alarm(0);
        if (rc < 0)
            break;
        b->busbw += halves[in_place].busbw;
        note_wrong(b, &halves[in_place]);
        b->rows++;
    }
    if (rc == 0 && b->world.rank == 0)
        rc = record_row(&b->record, &b->options, m, &halves[0], &halves[1], err);
    if (rc == 0 && b->world.rank == 0)
        table_row(stdout, &b->options, m, &halves[0], &halves[1]);
    measured_done(&halves[0]);
    measured_done(&halves[1]);
    return rc;
}

static size_t next_size(const struct bench_options *o, size_t size)
{
    return o->step_factor > 1 ? size * o->step_factor : size + o->step_bytes;
}

static int sizes(struct bench *b, struct measure_case *m, struct drarun_error *err)
{
    const struct bench_options *o = &b->options;
    size_t shift = o->unaligned * element_size(m->type);
    int rc = b->backend->barrier(err);
    for (size_t size = o->min_bytes; rc == 0 && size && size <= o->max_bytes; size *= 2) {
        m->bytes = size;
        begin_watch(b, m);
        rc = measure_warm(m, &b->memory, shift, o->warmup, err);
        alarm(0);
    }
    for (unsigned cycle = 0; rc == 0 && (o->cycles == 0 || cycle < o->cycles); cycle++) {
        for (size_t size = o->min_bytes; rc == 0; size = next_size(o, size)) {
            m->bytes = size;
            rc = row(b, m, err);
            if (size >= o->max_bytes || next_size(o, size) > o->max_bytes)
                break;
        }
    }
    return rc;
}

static int roots(struct bench *b, struct measure_case *m, struct drarun_error *err)
{
    const struct bench_options *o = &b->options;
    unsigned first = o->root < 0 ? 0 : (unsigned)o->root;
    unsigned last = o->root < 0 ? b->world.ranks - 1 : (unsigned)o->root;
    int rc = 0;
    if (!m->collective->rooted)
        return sizes(b, m, err);
    if (last >= b->world.ranks)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "-r %u: there are %u ranks, from 0", last,
                          b->world.ranks);
    for (m->root = first; rc == 0 && m->root <= last; m->root++)
        rc = sizes(b, m, err);
    return rc;
}

/* What one was asked for and cannot be had is an error; of all, it is left out. */
static int types_and_ops(struct bench *b, struct drarun_error *err)
{
    const struct bench_options *o = &b->options;
    struct measure_case m = {b->backend, &b->world, o->collective, 0, REDUCE_SUM,
                             0,          0,         b->progress};
    unsigned ops = 0, types = 0;
    int rc = 0;
    for (unsigned op = 0; op < REDUCTIONS; op++)
        ops += o->ops[op];
    for (unsigned type = 0; type < ELEMENTS; type++)
        types += o->types[type];
    for (unsigned type = 0; rc == 0 && type < ELEMENTS; type++) {
        for (unsigned op = 0; rc == 0 && o->types[type] && op < REDUCTIONS; op++) {
            m.type = (enum element)type;
            m.op = (enum reduction)op;
            const char *why = b->backend->lacks(m.type, m.op);
            if (!(m.collective->reduces ? o->ops[op] : op == REDUCE_SUM))
                continue;
            if (why && types * (m.collective->reduces ? ops : 1) == 1)
                return error_kind(err, DRARUN_ERR_USAGE, ENOTSUP, "-d %s -o %s: %s",
                                  element_name(m.type), reduction_name(m.op), why);
            rc = why ? 0 : roots(b, &m, err);
        }
    }
    return rc;
}

/* ---- all ---- */

/* Before anything is taken: where one rank has too little, none goes on. */
static int check_room(const struct bench *b, const struct room_need *need, struct drarun_error *err)
{
    struct room mine = {.bytes = need->device ? (double)b->backend->room()
                                              : room_of_machine("/proc/meminfo")};
    cleanup_free struct room *all = calloc(b->world.ranks, sizeof *all);
    if (!all)
        return error_set(err, ENOMEM, "out of memory");
    gethostname(mine.host, sizeof mine.host - 1);
    int rc = b->backend->share(&mine, all, sizeof mine, err);
    return rc < 0 ? rc : room_check(all, b->world.ranks, need, err);
}

static int make_memory(struct bench *b, struct drarun_error *err)
{
    enum element largest = ELEMENT_INT8;
    for (unsigned type = 0; type < ELEMENTS; type++)
        if (b->options.types[type] && element_size((enum element)type) >= element_size(largest))
            largest = (enum element)type;
    const struct measure_case m = {b->backend, &b->world, b->options.collective, ELEMENT_INT8,
                                   REDUCE_SUM, 0,         b->options.max_bytes};
    size_t send, recv;
    measure_needs(&m, 0, &send, &recv);
    bool check = b->options.plan.check > 0;
    const struct room_need need = {
        .bytes = (double)send + (double)recv * (check ? 2 : 1), /* once more for what must come */
        .max_bytes = b->options.max_bytes,
        .device = b->backend->room != NULL,
        .check = check,
    };
    int rc = check_room(b, &need, err);
    if (rc < 0)
        return rc;
    return measure_memory_new(&m, b->options.unaligned * (unsigned)element_size(largest), check,
                              &b->memory, err);
}

static int meet(struct bench *b, struct table_rank **ret_ranks, struct drarun_error *err)
{
    struct table_rank mine = {.pid = getpid()};
    struct table_rank *all = calloc(b->world.ranks, sizeof *all);
    if (!all)
        return error_set(err, ENOMEM, "out of memory");
    gethostname(mine.host, sizeof mine.host - 1);
    mine.index = b->world.index;
    memcpy(mine.device, b->world.device, sizeof mine.device);
    memcpy(mine.address, b->world.address, sizeof mine.address);
    place_read("", mine.address, &mine.place);
    int rc = copy_rate(b->backend, &b->memory, b->options.min_bytes, &mine.copy_gbs, err);
    rc = rc < 0 ? rc : b->backend->share(&mine, all, sizeof mine, err);
    if (rc < 0)
        free(all);
    else
        *ret_ranks = all;
    return rc;
}

/* What rank 0 alone can see to fail ends all of them. */
static int all_begin(struct bench *b, const struct table_rank *ranks, struct drarun_error *err)
{
    struct drarun_error of_rank_0 = {0};
    double rc = 0;
    if (b->world.rank == 0)
        rc = record_begin(&b->record, &b->options, &b->world, ranks, b->argv, environ, &of_rank_0);
    int agreed = b->backend->agree(&rc, 1, AGREE_MIN, err);
    if (agreed < 0 || rc == 0)
        return agreed;
    return error_kind(err, DRARUN_ERR_USAGE, (int)-rc, "%s",
                      b->world.rank == 0 ? of_rank_0.text : "rank 0 could not begin");
}

#define PAIR_BYTES ((size_t)4 << 20)
#define PAIR_CALLS 3u
#define PAIR_PASSES 3u
#define PAIR_ROUNDS 63u /* of more than 64 ranks each meets so many */

static bool is_slow(const struct bench *b)
{
    return b->options.min_busbw >= 0 && b->busbw / (b->rows ? b->rows : 1) < b->options.min_busbw;
}

/* After a slow result, or where it was asked for: the same on all ranks. */
static int look_at_pairs(struct bench *b, const struct table_rank *ranks, struct drarun_error *err)
{
    const struct bench_options *o = &b->options;
    const struct measure_case m = {b->backend, &b->world, o->collective, ELEMENT_INT8,
                                   REDUCE_SUM, 0,         o->max_bytes,  b->progress};
    const struct probe_plan plan = {o->max_bytes < PAIR_BYTES ? o->max_bytes : PAIR_BYTES,
                                    PAIR_CALLS, PAIR_PASSES, PAIR_ROUNDS};
    double wanted = o->pairs || is_slow(b);
    if (!b->backend->sendrecv)
        return 0;
    int rc = b->backend->agree(&wanted, 1, AGREE_MAX, err);
    if (rc < 0 || wanted <= 0)
        return rc;
    rc = probe_pairs(&m, &b->memory, &plan, ranks, &b->record.result.probed, err);
    if (rc == 0 && b->world.rank == 0)
        table_probed(stdout, &b->record.result.probed);
    return rc;
}

static int run(struct bench *b, struct drarun_error *err)
{
    struct table_rank *ranks = NULL;
    struct traffic begun;
    CLEANUP(host_errors_done) struct host_errors errors = {0};
    const struct collective *c = b->options.collective;
    const char *why = c->refuses ? c->refuses(b->world.ranks) : NULL;
    if (why)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s with %u ranks: %s", c->name,
                          b->world.ranks, why);
    progress_step(b->progress, true, "getting memory");
    int rc = make_memory(b, err);
    progress_step(b->progress, false, "meeting the others");
    rc = rc < 0 ? rc : meet(b, &ranks, err);
    rc = rc < 0 ? rc : all_begin(b, ranks, err);
    if (rc == 0 && b->world.rank == 0)
        table_begin(stdout, &b->options, &b->world, ranks);
    progress_step(b->progress, true, "reading what devices count as errors"); /* NVML: seconds */
    if (rc == 0)
        host_errors_begin(&errors, ranks, b->world.rank);
    progress_step(b->progress, false, "beginning");
    traffic_read(-1, &begun);
    rc = rc < 0 ? rc : types_and_ops(b, err);
    rc = rc < 0 ? rc
                : host_traffic(b->backend, ranks, b->world.ranks, &begun, &b->record.result.traffic,
                               err);
    rc = rc < 0 ? rc
                : host_errors_end(&errors, b->backend, ranks, b->world.ranks,
                                  &b->record.result.faults, err);
    rc = rc < 0 ? rc : look_at_pairs(b, ranks, err);
    free(ranks);
    if (rc == 0 && b->world.rank == 0) {
        table_latency(stdout, &b->options, &b->record.result);
        table_traffic(stdout, &b->record.result.traffic);
        table_faults(stdout, &b->record.result.faults);
        table_wrong(stdout, &b->record.result);
        table_end(stdout, &b->options, b->wrong, b->rows ? b->busbw / b->rows : 0);
        rc = record_end(&b->record, b->wrong, b->rows ? b->busbw / b->rows : 0, err);
        rc = rc < 0 ? rc : written(stdout, "standard output", err);
    }
    double unused = 0;
    if (rc == 0 &&
        b->wrong > 0) /* whose status ends the job may not do so before that is written */
        rc = b->backend->agree(&unused, 1, AGREE_MAX, err);
    record_done(&b->record);
    measure_memory_done(b->backend, &b->memory);
    return rc;
}

static int run_opened(struct bench *b, struct drarun_error *err)
{
    int rc = run(b, err);
    b->own_failure = rc < 0 && err->kind != DRARUN_ERR_USAGE;
    return rc;
}

/* Every rank comes to the same errors before they know of each other: the first one says them. */
static bool is_first(const struct bench *b)
{
    const char *rank = getenv("DRARUN_RANK");
    return b->backend ? b->world.rank == 0 : !rank || strcmp(rank, "0") == 0;
}

/* The first status that is not 0 ends the job, and its rank is named: it is that of a rank which
 * received wrong data, else of rank 0. */
static int status_of(const struct bench *b)
{
    if (b->wrong <= 0)
        return is_slow(b) && b->world.rank == 0;
    if (b->world.rank != b->first_wrong)
        return 0;
    log_error("rank %u received wrong data: no bandwidth of this run counts", b->world.rank);
    return 1;
}

int main(int argc, char **argv)
{
    struct drarun_error err = {0};
    struct bench b = {.argv = argv};
    log_setup("drarun-bench", LOG_NORMAL);
    int rc = options_read(argc, argv, &b.options, &err);
    if (rc == 0 && b.options.help) {
        options_print_help(stdout);
        return 0;
    }
    if (rc == 0 && !(b.progress = progress_open(getenv(PROGRESS_VARIABLE))))
        rc = error_set(&err, ENOMEM, "out of memory");
    if (rc == 0)
        progress_step(b.progress, false, "joining the others");
    rc = rc < 0 ? rc : open_backend(&b, &err);
    rc = rc < 0 ? rc : run_opened(&b, &err);
    if (rc < 0 && (b.own_failure || is_first(&b)))
        log_error("%s", err.text);
    else if (rc < 0 && !b.backend)
        sleep(1); /* the first status ends the job: that of the rank which says why */
    if (b.backend && !b.own_failure) /* together */
        b.backend->close();
    if (rc < 0)
        return error_exit_status(err.kind);
    return status_of(&b);
}
