/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "launcher/run/batch_hosts.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

static const struct {
    const char *variable, *text;
    bool file;
    uint32_t count;
} cases[] = {
    {"PBS_NODEFILE", "a\na\nb\nb\n", true, 2},
    {"PBS_NODEFILE", "a\na", true, 1},
    {"PBS_NODEFILE", "", true, 0},
    {"LSB_MCPU_HOSTS", "a 4 b 4 c 4 ", false, 3},
    {"LSB_MCPU_HOSTS", "a 4", false, 1},
    {"PE_HOSTFILE", "a 4 all.q@a UNDEFINED\n b\t4 all.q@b UNDEFINED\r\n# c 1\n\n", true, 2},
};

static void test_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char path[] = "/tmp/drarun-batch-hosts-XXXXXX";
        cleanup_close int fd = cases[i].file ? mkstemp(path) : -1;
        const char *named = NULL;
        if (cases[i].file)
            assert_int_equal(fd_write_all(fd, cases[i].text, strlen(cases[i].text)), 0);
        setenv(cases[i].variable, cases[i].file ? path : cases[i].text, 1);
        uint32_t count = batch_hosts_count(&named);
        unsetenv(cases[i].variable);
        if (cases[i].file)
            unlink(path);
        if (count != cases[i].count || !named || strcmp(named, cases[i].variable) != 0)
            fail_msg("case %zu: %u hosts of %s", i, count, named ? named : "nothing");
    }
}

/* A job of none of these, and one whose file is on another machine. */
static void test_none(void **state)
{
    const char *named = NULL;
    (void)state;
    assert_int_equal(batch_hosts_count(&named), 0);
    setenv("PBS_NODEFILE", "/nowhere/nodes", 1);
    assert_int_equal(batch_hosts_count(&named), 0);
    unsetenv("PBS_NODEFILE");
}

static void test_other_host(void **state)
{
    static const struct {
        const char *count, *list, *node;
        bool other;
    } slurm[] = {
        {"1", "nowhere7", NULL, true},
        {"1", "localhost", NULL, false},
        {"1", "nowhere7", "nowhere7", false},
        {"2", "nowhere[7-8]", NULL, false},
        {"1", "", NULL, false},
        {"1", NULL, NULL, false},
        {NULL, "nowhere7", NULL, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(slurm); i++) {
        if (slurm[i].count)
            setenv("SLURM_JOB_NUM_NODES", slurm[i].count, 1);
        if (slurm[i].list)
            setenv("SLURM_JOB_NODELIST", slurm[i].list, 1);
        if (slurm[i].node)
            setenv("SLURMD_NODENAME", slurm[i].node, 1);
        const char *other = batch_hosts_other();
        if (slurm[i].other != (other && strcmp(other, slurm[i].list) == 0))
            fail_msg("case %zu: %s", i, other ? other : "none");
        unsetenv("SLURM_JOB_NUM_NODES");
        unsetenv("SLURM_JOB_NODELIST");
        unsetenv("SLURMD_NODENAME");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_other_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
