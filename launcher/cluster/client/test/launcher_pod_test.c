/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/launcher_pod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define POD_BESIDE(name, labels, owner, others, state)                                             \
    "{\"metadata\":{\"name\":\"" name "\",\"labels\":{\"drarun.dev/job\":\"job\"" labels           \
    "},\"ownerReferences\":[{\"uid\":\"" owner "\"}]},\"status\":{\"containerStatuses\":[" others  \
    "{\"name\":\"launcher\",\"state\":" state "}]}}"
#define POD(name, labels, owner, state) POD_BESIDE(name, labels, owner, "", state)
/* The kubelet sorts them by their names. */
#define PROXY(state) "{\"name\":\"istio-proxy\",\"state\":" state "},"
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
        /* what admission has put beside it says nothing of its end */
        {POD_BESIDE("job-a", "", "uid", PROXY("{\"running\":{}}"),
                    ENDED("\"exitCode\":137,\"reason\":\"OOMKilled\"", "42")),
         "pod job-a: OOMKilled"},
        {POD_BESIDE("job-a", "", "uid", PROXY(ENDED("\"exitCode\":0", "42")), "{\"running\":{}}"),
         ""},
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

static void test_whether_it_has_begun(void **state)
{
    static const struct {
        const char *pod;
        bool begun;
    } cases[] = {
        {POD("a", "", "uid", "{\"waiting\":{}}"), false},
        {POD("a", "", "uid", "{\"running\":{}}"), true},
        {POD_BESIDE("a", "", "uid", PROXY("{\"running\":{}}"), "{\"waiting\":{}}"), false},
        {POD_BESIDE("a", "", "uid", PROXY("{\"waiting\":{}}"), "{\"running\":{}}"), true},
        {"{\"status\":{\"containerStatuses\":[]}}", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(json_decrefp) json_t *pod = json_loads(cases[i].pod, 0, NULL);
        assert_non_null(pod);
        assert_int_equal(launcher_pod_has_begun(pod), cases[i].begun);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_how_the_last_one_ended),
                                       cmocka_unit_test(test_whether_it_has_begun)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
