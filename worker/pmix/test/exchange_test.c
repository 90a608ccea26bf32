/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/pmix/exchange.h"

#define PORT "1398145024.0:1867592541"

/* Keys as Open MPI 4.1 and 5.0 make them (ompi/dpm/dpm.c, ompi/communicator/comm_cid.c). */
static void test_keys_of_open_mpi(void **state)
{
    static const char *const pairs[][2] = {/* calls, answers */
                                           {PORT ":connect", PORT ":accept"},
                                           {PORT ":nextcid:send:0", PORT ":nextcid:recv:0"},
                                           {PORT ":activate:send:1", PORT ":activate:recv:1"}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const char *calls = pairs[i][0], *answers = pairs[i][1];
        assert_true(exchange_is_pair(calls, answers));
        assert_true(exchange_is_pair(answers, calls));
        assert_true(exchange_calls(calls, answers));
        assert_false(exchange_calls(answers, calls));
        assert_true(exchange_answers(answers, calls));
        assert_false(exchange_answers(calls, answers));
    }
}

static void test_keys_that_are_no_pair(void **state)
{
    static const char *const others[][2] = {
        {PORT ":connect", PORT ":connect"},               /* the same */
        {PORT ":connect", "1398145024.0:17:accept"},      /* another port of the process */
        {PORT ":nextcid:send:0", PORT ":nextcid:recv:1"}, /* another step */
        {PORT ":connect", PORT ":nextcid:recv:0"},        /* of another kind */
        {"left", "right"},                                /* of no port */
        {"left", ""},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(exchange_is_pair(others[i][0], others[i][1]));
        assert_false(exchange_calls(others[i][1], others[i][0]));
        assert_false(exchange_answers(others[i][0], others[i][1]));
    }
}

static void test_answers_have_one_reader(void **state)
{
    struct buf name = BUF_INIT;
    pmix_proc_t caller;
    (void)state;
    PMIX_LOAD_PROCID(&caller, "drarun.a.0", 3);
    exchange_name_answer(&name, PORT ":accept", &caller);
    assert_string_equal(name.data, PORT ":accept for drarun.a.0.3");
    buf_done(&name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_of_open_mpi),
        cmocka_unit_test(test_keys_that_are_no_pair),
        cmocka_unit_test(test_answers_have_one_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
