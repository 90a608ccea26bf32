/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of drarun-worker --nics, of a machine that the test makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/verbs/open_nics.h"
#include "worker/modes/nics.h"

#define MIB (UINT64_C(1) << 20)

static struct topo_rdma rdmas[3];
static struct topo_limits limits;
static bool no_host, no_list;

struct open_nics {
    uint64_t memory;
};

int __wrap_host_read(int rootfd, struct topo_host *ret_host, struct drarun_error *err);
void __wrap_host_done(struct topo_host *host);
int __wrap_open_nics_new(uint64_t memory, struct open_nics **ret_nics, struct drarun_error *err);
void __wrap_open_nics_try(struct open_nics *nics, struct topo_rdma *rdma,
                          struct nic_open *ret_open);
void __wrap_open_nics_free(struct open_nics *nics);

int __wrap_host_read(int rootfd, struct topo_host *ret_host, struct drarun_error *err)
{
    (void)rootfd;
    if (no_host)
        return error_set(err, ENOMEM, "no memory for a host");
    *ret_host = (struct topo_host){.rdmas = rdmas, .rdma_count = 3, .limits = limits};
    return 0;
}

void __wrap_host_done(struct topo_host *host)
{
    (void)host;
}

int __wrap_open_nics_new(uint64_t memory, struct open_nics **ret_nics, struct drarun_error *err)
{
    static struct open_nics nics;
    if (no_list)
        return error_set(err, ENOSYS, "libibverbs lists nothing");
    nics.memory = memory;
    *ret_nics = &nics;
    return 0;
}

/* Its queries fail, in a text that has the memory to register. */
void __wrap_open_nics_try(struct open_nics *nics, struct topo_rdma *rdma, struct nic_open *ret_open)
{
    (void)rdma;
    *ret_open = (struct nic_open){.step[NIC_STEP_OPEN].done = NIC_DONE_YES,
                                  .step[NIC_STEP_QUERY].done = NIC_DONE_NO};
    struct nic_step_result *query = &ret_open->step[NIC_STEP_QUERY];
    snprintf(query->why, sizeof query->why, "%" PRIu64, nics->memory);
}

void __wrap_open_nics_free(struct open_nics *nics)
{
    (void)nics;
}

static int set_up(void **state)
{
    (void)state;
    static const enum topo_tri usable[] = {TOPO_YES, TOPO_NO, TOPO_UNKNOWN};
    for (size_t i = 0; i < 3; i++) {
        rdmas[i] = (struct topo_rdma){.usable = usable[i], .pci = TOPO_NONE};
        snprintf(rdmas[i].name, sizeof rdmas[i].name, "mlx5_%zu", i);
    }
    limits = (struct topo_limits){0};
    no_host = no_list = false;
    return 0;
}

/* Returns the exit status; out and err are what it wrote. */
static int serve(bool reader_is_gone, FILE **ret_out, FILE **ret_err)
{
    int out[2], err[2], status;
    assert_int_equal(pipe(out) | pipe(err), 0);
    if (reader_is_gone)
        close(out[0]);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGPIPE, SIG_IGN);
        if (dup2(out[1], 1) < 0 || dup2(err[1], 2) < 0)
            _exit(99);
        _exit(nics_serve());
    }
    close(out[1]), close(err[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    *ret_out = reader_is_gone ? NULL : fdopen(out[0], "r");
    *ret_err = fdopen(err[0], "r");
    return WEXITSTATUS(status);
}

/* A line for mlx5_0 and one for mlx5_2, with that reason why the facts are sysfs'. */
static void assert_lines(const char *inferred)
{
    static const char *const names[] = {"mlx5_0", "mlx5_2"};
    FILE *out, *err;
    char line[4096];
    assert_int_equal(serve(false, &out, &err), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_non_null(fgets(line, sizeof line, out));
        assert_int_equal(line[strlen(line) - 1], '\n');
        json_t *object = json_loads(line, 0, NULL);
        assert_string_equal(json_string_value(json_object_get(object, "device")), names[i]);
        assert_string_equal(json_string_value(json_object_get(object, "inferred")), inferred);
        json_decref(object);
    }
    assert_null(fgets(line, sizeof line, out));
    assert_null(fgets(line, sizeof line, err));
    fclose(out);
    fclose(err);
}

static void a_line_for_each_device_that_is_here(void **state)
{
    (void)state;
    assert_lines("67108864");
    no_list = true;
    assert_lines("libibverbs lists nothing");
}

/* 64 MiB are registered where an eighth of the container's memory is as much. */
static void a_small_container_registers_none(void **state)
{
    (void)state;
    limits.memory_max = 1; /* which does not count */
    limits.memory_limited = TOPO_NO;
    assert_lines("67108864");
    limits.memory_limited = TOPO_UNKNOWN;
    assert_lines("67108864");
    limits.memory_limited = TOPO_YES;
    assert_lines("0");
    limits.memory_max = 512 * MIB - 1;
    assert_lines("0");
    limits.memory_max = 512 * MIB;
    assert_lines("67108864");
}

static void assert_failure(bool reader_is_gone, const char *expected)
{
    FILE *out, *err;
    char line[4096];
    assert_int_equal(serve(reader_is_gone, &out, &err), 70);
    if (out) {
        assert_null(fgets(line, sizeof line, out));
        fclose(out);
    }
    assert_non_null(fgets(line, sizeof line, err));
    const char *at = strstr(line, "--nics: ");
    assert_non_null(at);
    assert_string_equal(at, expected);
    fclose(err);
}

static void failures_are_named(void **state)
{
    (void)state;
    assert_failure(true, "--nics: the answer cannot be written: Broken pipe\n");
    no_host = true;
    assert_failure(false, "--nics: no memory for a host\n");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        CASE(a_line_for_each_device_that_is_here),
        CASE(a_small_container_registers_none),
        CASE(failures_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
