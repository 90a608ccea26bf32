/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/topo/test/tree.h"
#include "plugin/prepare/pod_processes.h"

#define UID "0b8b8f7e-27c1-4a3c-9d4f-5a4f3d9f0001"

/* As containerd and CRI-O make cgroups, seen from the host and from a container beside them. */
static void test_forms(void **state)
{
    static const struct {
        const char *cgroup;
        int found;
    } rows[] = {
        {"0::/kubepods.slice/kubepods-burstable.slice/"
         "kubepods-burstable-pod0b8b8f7e_27c1_4a3c_9d4f_5a4f3d9f0001.slice/"
         "cri-containerd-a.scope\n",
         1},
        {"0::/../../kubepods-besteffort-pod0b8b8f7e_27c1_4a3c_9d4f_5a4f3d9f0001.slice/"
         "crio-a.scope\n",
         1},
        {"12:pids:/user.slice\n3:memory:/kubepods/burstable/pod" UID "/a\n0::/system.slice\n", 1},
        {"0::/kubepods/besteffort/pod0b8b8f7e-27c1-4a3c-9d4f-5a4f3d9f0002/a\n", 0},
        {"0::/system.slice/kubelet.service\n", 0},
        {"", 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tree tree = tree_new();
        tree_file(&tree, "1/cgroup", "0::/init.scope\n");
        tree_file(&tree, "70/cgroup", rows[i].cgroup);
        tree_file(&tree, "self/cgroup", "0::/pod" UID "\n"); /* no process's number */
        tree_dir(&tree, "71");                               /* it has just ended */
        assert_int_equal(pod_processes(tree.name, UID, NULL), rows[i].found);
        tree_drop(&tree);
    }
}

static void test_no_proc(void **state)
{
    (void)state;
    assert_int_equal(pod_processes("/nonexistent", UID, NULL), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms),
                                       cmocka_unit_test(test_no_proc)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
