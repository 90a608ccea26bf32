/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/launcher_pod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define POD(name, labels, owner, state)                                                            \
    "{\"metadata\":{\"name\":\"" name "\",\"labels\":{\"drarun.dev/job\":\"job\"" labels           \
    "},\"ownerReferences\":[{\"uid\":\"" owner                                                     \
    "\"}]},\"status\":{\"containerStatuses\":[{\"state\":" state "}]}}"
#define ENDED(how, at) "{\"terminated\":{" how ",\"finishedAt\":\"2026-11-21T15:24:" at "Z\"}}"

static void test_how_the_last_one_ended(void **state)
{
    static const struct {
        const char *pods, *words;
    } cases[] = {
        {"", ""},
        {POD("job-a", "", "uid", "{\"running\":{}}"), ""},
        {POD("job-a", "", "uid", ENDED("\"exitCode\":70,\"reason\":\"Error\"", "42")),
         "pod job-a ended with status 70"},
        {POD("job-a", "", "uid",
             ENDED("\"exitCode\":69,\"reason\":\"Error\",\"message\":\"no Role\"", "42")),
         "pod job-a ended with status 69: no Role"},
        {POD("job-a", "", "uid", ENDED("\"exitCode\":137,\"reason\":\"OOMKilled\"", "42")),
         "pod job-a: OOMKilled"},
        /* the later one, whatever their order */
        {POD("job-b", "", "uid", ENDED("\"exitCode\":2", "43")) "," POD(
             "job-a", "", "uid", ENDED("\"exitCode\":1", "42")),
         "pod job-b ended with status 2"},
        /* a worker, and the launcher of an earlier Job */
        {POD("job-w-0", ",\"drarun.dev/worker\":\"0\"", "uid", ENDED("\"exitCode\":1", "42")), ""},
        {POD("job-a", "", "other", ENDED("\"exitCode\":1", "42")), ""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf text = BUF_INIT, words = BUF_INIT;
        buf_printf(&text, "{\"items\":[%s]}", cases[i].pods);
        CLEANUP(json_decrefp) json_t *list = json_loads(text.data, 0, NULL);
        assert_non_null(list);
        launcher_pod_add_end(list, "uid", &words);
        assert_string_equal(words.data ? words.data : "", cases[i].words);
        buf_done(&text);
        buf_done(&words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_how_the_last_one_ended)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
