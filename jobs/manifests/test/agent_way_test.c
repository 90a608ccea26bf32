/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "jobs/manifests/agent_way.h"
#include "lib/base/cleanup.h"

static const struct {
    const char *pod, *text;
} cases[] = {
    {"{\"spec\":{\"volumes\":[{\"name\":\"scratch\",\"emptyDir\":{}}]}}", "by its claim"},
    {"{}", "by its claim"},
    {"{\"spec\":{\"volumes\":[{\"name\":\"drarun\",\"image\":{\"reference\":\"r/drarun:1\"}}]}}",
     "by an image volume of r/drarun:1"},
    {"{\"spec\":{\"volumes\":[{\"name\":\"drarun\",\"emptyDir\":{}}],\"initContainers\":["
     "{\"name\":\"other\",\"image\":\"o\"},{\"name\":\"drarun-agent\",\"image\":\"r/drarun:1\"}]}}",
     "copied by an init container of r/drarun:1"},
    {"{\"spec\":{\"initContainers\":[{\"name\":\"drarun-agent\"}]}}",
     "copied by an init container of ?"},
};

static void as_the_pod_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out = BUF_INIT;
        json_t *pod = json_loads(cases[i].pod, 0, NULL);
        assert_non_null(pod);
        agent_way_text(pod, &out);
        assert_string_equal(out.data, cases[i].text);
        buf_done(&out);
        json_decref(pod);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_pod_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
