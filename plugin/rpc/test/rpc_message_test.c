/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plugin/rpc/rpc_message.h"

static void requests_are_exactly_one_message(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        size_t length;
        enum rpc_status status;
        size_t message;
    } table[] = {
        {"\0\0\0\0\0", 5, RPC_OK, 0},
        {"\0\0\0\0\2ab", 7, RPC_OK, 2},
        {"", 0, RPC_INTERNAL, 0},
        {"\0\0\0\0", 4, RPC_INTERNAL, 0},
        {"\0\0\0\0\3ab", 7, RPC_INTERNAL, 0},
        {"\0\0\0\0\1ab", 7, RPC_INTERNAL, 0},
        {"\0\377\377\377\377ab", 7, RPC_INTERNAL, 0},
        {"\1\0\0\0\0", 5, RPC_UNIMPLEMENTED, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const uint8_t *body = (const uint8_t *)table[i].body, *message = NULL;
        const char *why = NULL;
        size_t length = 99;
        assert_int_equal(rpc_message_open(body, table[i].length, &message, &length, &why),
                         table[i].status);
        if (table[i].status == RPC_OK) {
            assert_ptr_equal(message, body + RPC_PREFIX);
            assert_int_equal(length, table[i].message);
        } else {
            assert_non_null(why);
            assert_int_equal(length, 99);
        }
    }
}

static void messages_are_read_as_they_were_written(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    const uint8_t *message = NULL;
    const char *why = NULL;
    size_t length = 0;
    char large[70000] = {0};
    rpc_message_add(&out, large, sizeof large);
    assert_int_equal(rpc_message_open((const uint8_t *)out.data, out.len, &message, &length, &why),
                     RPC_OK);
    assert_int_equal(length, sizeof large);
    buf_done(&out);
}

static void texts_are_escaped(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    rpc_message_escape(&out, "100 % of \"\xc3\xa9\"\n~");
    assert_string_equal(out.data, "100 %25 of \"%C3%A9\"%0A~");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_exactly_one_message),
        cmocka_unit_test(messages_are_read_as_they_were_written),
        cmocka_unit_test(texts_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
