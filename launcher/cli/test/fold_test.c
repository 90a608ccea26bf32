/* SPDX-License-Identifier: Apache-2.0 */
/* Where a line of a text is broken, and which lines are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "lib/base/cleanup.h"
#include "launcher/cli/fold.h"

static void test_lines(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ""},
        {"\n\n", "\n\n"},
        {"fits in twenty cols.\n", "fits in twenty cols.\n"},
        {"does not fit in twenty columns\nthe next\n",
         "does not fit in\n    twenty columns\nthe next\n"},
        {"  indented words are longer than that",
         "  indented words are\n      longer than\n      that"},
        {"a row  of a table that is long\n", "a row  of a table that is long\n"},
        {"one  more  of a table that is long\n", "one  more  of a table that is long\n"},
        {"a row of a table with an empty column  \n", "a row of a table with an empty column  \n"},
        {"  limit   of which there are several words\n",
         "  limit   of which\n          there are\n          several\n          words\n"},
        {" \033[31mno\033[0m   but it goes on below\n",
         " \033[31mno\033[0m   but it goes on\n      below\n"},
        {"  NCCL_IB_HCA==mlx5_0:1,mlx5_1:1 and more\n",
         "  NCCL_IB_HCA==mlx5_0:1,mlx5_1:1 and more\n"},
        {"because device.attributes[\"dra.net\"].rdma == true holds\n",
         "because\n    device.attributes[\"dra.net\"].rdma\n    == true holds\n"},
        {"\033[31mfailed\033[0m: six more wor\n", "\033[31mfailed\033[0m: six more wor\n"},
        {"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 "
         "\xc3\xa4\xc3\xa4\xc3\xa4"
         "\xc3\xa4 \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\n",
         "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 "
         "\xc3\xa4\xc3\xa4\xc3\xa4"
         "\xc3\xa4 \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\n"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out = BUF_INIT;
        fold_add(cases[i].text, strlen(cases[i].text), 20, &out);
        assert_string_equal(out.data ? out.data : "", cases[i].expected);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines)};
    return cmocka_run_group_tests_name("fold", tests, NULL, NULL);
}
