/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "worker/remote.h"
#include "worker/remote_start.h"

static void fill(Drarun__Wire__Launch *launch, Drarun__Wire__Worker *workers,
                 Drarun__Wire__Worker **pointers, bool same_host)
{
    static const char *const addresses[] = {"10.0.0.7:7173", "[fd00::8]:7173", ""};
    static const char *const hosts[] = {"train-w-0", "train-w-1", "node9"};
    drarun__wire__launch__init(launch);
    for (size_t i = 0; i < 3; i++) {
        drarun__wire__worker__init(&workers[i]);
        workers[i].host = (char *)hosts[i];
        workers[i].address = (char *)addresses[i];
        pointers[i] = &workers[i];
    }
    launch->workers = pointers;
    launch->n_workers = 3;
    launch->same_host = same_host;
}

static void names_of_hosts(void **state)
{
    (void)state;
    Drarun__Wire__Launch launch;
    Drarun__Wire__Worker workers[3], *pointers[3];
    char name[64];
    fill(&launch, workers, pointers, false);
    static const char *const expected[] = {"10.0.0.7", "fd00::8", "node9"};
    for (uint32_t i = 0; i < 3; i++) {
        remote_host_name(&launch, i, name, sizeof name);
        assert_string_equal(name, expected[i]);
        assert_int_equal(remote_find_host(&launch, name), i);
    }
    assert_int_equal(remote_find_host(&launch, "train-w-1"), 1);
    assert_int_equal(remote_find_host(&launch, "root@10.0.0.7"), 0);
    assert_int_equal(remote_find_host(&launch, "train-w-3"), -1);
    assert_int_equal(remote_find_host(&launch, ""), -1);
}

static void names_on_one_machine(void **state)
{
    (void)state;
    Drarun__Wire__Launch launch;
    Drarun__Wire__Worker workers[3], *pointers[3];
    char name[64];
    fill(&launch, workers, pointers, true);
    remote_host_name(&launch, 0, name, sizeof name);
    assert_string_equal(name, "train-w-0");
    remote_host_name(&launch, 2, name, sizeof name);
    assert_string_equal(name, "drarun-w-2");
    assert_int_equal(remote_find_host(&launch, "drarun-w-2"), 2);
}

static void known_by_name(void **state)
{
    (void)state;
    assert_true(remote_start_is("/tmp/drarun-x.0.0/drarun-rsh"));
    assert_true(remote_start_is("drarun-rsh"));
    assert_false(remote_start_is("/drarun-rsh/drarun-worker"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_hosts),
        cmocka_unit_test(names_on_one_machine),
        cmocka_unit_test(known_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
