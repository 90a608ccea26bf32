/* SPDX-License-Identifier: Apache-2.0 */
/* The taint of a node that others write at the same time. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "launcher/accept/cluster.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/test/quoted_json.h"

static struct {
    const char *node;
    unsigned conflicts, reads;
    json_t *patch; /* that was taken */
} world;

int __wrap_cluster_get(struct cluster *cluster, const struct kube_target *target, json_t **ret_body,
                       struct drarun_error *err);
int __wrap_cluster_get(struct cluster *cluster, const struct kube_target *target, json_t **ret_body,
                       struct drarun_error *err)
{
    (void)cluster;
    assert_string_equal(target->name, "n0");
    world.reads++;
    if (!world.node)
        return error_kind(err, DRARUN_ERR_CLUSTER, EACCES, "no rights");
    *ret_body = quoted_json(world.node, 0);
    return 0;
}

int __wrap_cluster_merge_patch(struct cluster *cluster, const struct kube_target *target,
                               const json_t *patch, struct drarun_error *err);
int __wrap_cluster_merge_patch(struct cluster *cluster, const struct kube_target *target,
                               const json_t *patch, struct drarun_error *err)
{
    (void)cluster, (void)target;
    if (world.conflicts && world.conflicts--)
        return error_kind(err, DRARUN_ERR_CLUSTER, EBUSY, "it was changed");
    world.patch = json_deep_copy(patch);
    return 0;
}

#define OURS "{'key':'drarun.dev/unfit','value':'accept','effect':'NoSchedule'}"
#define NODE(taints)                                                                               \
    "{'metadata':{'name':'n0','resourceVersion':'7'},'spec':{'taints':[" taints "]}}"
#define PATCH(taints) "{'metadata':{'resourceVersion':'7'},'spec':{'taints':[" taints "]}}"

static void test_taint(void **state)
{
    static const struct {
        const char *node;
        bool unfit;
        unsigned conflicts;
        int rc;
        const char *patch;
    } rows[] = {
        {NODE("{'key':'x'}"), true, 0, 1, PATCH("{'key':'x'}," OURS)},
        {NODE("{'key':'x'}," OURS), false, 0, 1, PATCH("{'key':'x'}")},
        {NODE(OURS), true, 0, 0, NULL},
        {NODE("{'key':'x'}"), false, 0, 0, NULL},
        {NODE(""), true, 1, 1, PATCH(OURS)}, /* read again */
        {NODE(""), true, UINT32_MAX, -EBUSY, NULL},
        {NULL, true, 0, -EACCES, NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cluster cluster = {0};
        struct drarun_error err = {0};
        world.node = rows[i].node;
        world.conflicts = rows[i].conflicts;
        world.reads = 0;
        world.patch = NULL;
        assert_int_equal(accept_taint(&cluster, "n0", rows[i].unfit, &err), rows[i].rc);
        assert_int_equal(-err.code, rows[i].rc < 0 ? rows[i].rc : 0);
        if (rows[i].conflicts)
            assert_true(world.reads > 1);
        CLEANUP(json_decrefp) json_t *wanted = rows[i].patch ? quoted_json(rows[i].patch, 0) : NULL;
        assert_true(wanted ? json_equal(world.patch, wanted) : !world.patch);
        json_decref(world.patch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_taint)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
