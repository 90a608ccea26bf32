/* SPDX-License-Identifier: Apache-2.0 */
/* When a launcher counts as silent, and what is said of it. */
#include "launcher/cluster/client/launcher_silence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define RENEWED_MS 1795274682500 /* 2026-11-21T15:24:42.5Z */
#define RENEWED "\"renewTime\":\"2026-11-21T15:24:42.500000Z\",\"leaseDurationSeconds\":60"
#define HELD "{\"spec\":{\"holderIdentity\":\"a-x2k8f\"," RENEWED "}}"

static void test_silent_or_not(void **state)
{
    static const struct {
        const char *lease;
        int64_t after_ms;
        bool silent;
    } cases[] = {
        {HELD, 24999, false},
        {HELD, 25000, true},
        {HELD, -60000, false}, /* its launcher's clock is fast */
        {"{}", 25000, false},
        {"{\"spec\":{\"holderIdentity\":\"\"," RENEWED "}}", 25000, false}, /* given back */
        {"{\"spec\":{" RENEWED "}}", 25000, false},
        {"{\"spec\":{\"holderIdentity\":7," RENEWED "}}", 25000, false},
        {"{\"spec\":{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":60}}", 25000, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(launcher_silence_done) struct launcher_silence silence = {0};
        CLEANUP(json_decrefp) json_t *lease = json_loads(cases[i].lease, 0, NULL);
        assert_non_null(lease);
        assert_int_equal(launcher_silence_of_lease(lease, RENEWED_MS + cases[i].after_ms, &silence),
                         cases[i].silent);
    }
}

#define POD(ready, more)                                                                           \
    "{\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Running\",\"conditions\":["           \
    "{\"type\":\"ContainersReady\",\"status\":\"True\"},"                                          \
    "{\"type\":\"Ready\",\"status\":\"" ready "\"}" more "],\"containerStatuses\":["               \
    "{\"name\":\"launcher\",\"state\":{\"running\":{}}}]}}"
#define EVICTED                                                                                    \
    ",{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":\"DeletionByTaintManager\"}"
#define SAID "launcher a-x2k8f on n1 has not renewed its Lease for 31 s"

static void test_words(void **state)
{
    static const struct {
        const char *pod, *words;
    } cases[] = {
        {NULL, "launcher a-x2k8f has not renewed its Lease for 31 s"},
        {POD("True", ""), SAID},
        {POD("False", ""), SAID ": its node does not answer"},
        {POD("False", EVICTED), SAID ": its node does not answer"},
        {POD("True", EVICTED), SAID},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(launcher_silence_done) struct launcher_silence silence = {0};
        CLEANUP(json_decrefp) json_t *lease = json_loads(HELD, 0, NULL);
        CLEANUP(json_decrefp) json_t *pod = cases[i].pod ? json_loads(cases[i].pod, 0, NULL) : NULL;
        struct buf out = BUF_INIT;
        assert_true(launcher_silence_of_lease(lease, RENEWED_MS + 31900, &silence));
        if (pod)
            launcher_silence_add_pod(&silence, pod);
        launcher_silence_text(&silence, &out);
        assert_string_equal(out.data, cases[i].words);
        buf_done(&out);
        CLEANUP(json_decrefp) json_t *json = launcher_silence_json(&silence);
        assert_string_equal(json_string_value(json_object_get(json, "text")), cases[i].words);
        assert_int_equal(json_integer_value(json_object_get(json, "seconds")), 31);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_silent_or_not),
                                       cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
