/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmix/handshake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "lib/base/buf.h"

/* As OpenPMIx sends it: header, security module, credential, kind, for tools user and group, name,
 * version and modules. */
static struct buf message(unsigned char kind, const char *nspace, uint32_t credential)
{
    struct buf body = BUF_INIT, all = BUF_INIT;
    const uint8_t size[4] = {(uint8_t)(credential >> 24), (uint8_t)(credential >> 16),
                             (uint8_t)(credential >> 8), (uint8_t)credential};
    const int32_t header[2] = {-1, 0};
    buf_add(&body, "native", 7);
    buf_add(&body, size, sizeof size);
    buf_add(&body, "12345678", 8);
    buf_add(&body, &kind, 1);
    if (kind != 0)
        buf_add(&body, "uuuugggg", 8);
    if (nspace) {
        buf_add(&body, nspace, strlen(nspace) + 1);
        buf_add(&body, "\0\0\1\2", 4);
    }
    buf_add(&body, "5.0.5\0v41\0\1hash", 16);
    uint64_t length = body.len;
    buf_add(&all, header, sizeof header);
    buf_add(&all, &length, sizeof length);
    buf_add(&all, body.data, body.len);
    buf_done(&body);
    return all;
}

static void clients_and_tools(void **state)
{
    static const struct {
        unsigned char kind;
        const char *nspace;
        bool client, tool, named;
    } cases[] = {
        {0, "drarun.a.0", true, false, true},  {1, NULL, false, false, false},
        {3, NULL, false, true, false},         {4, "drarun.a.0", false, true, true},
        {5, "drarun.a.0", false, false, true}, {6, NULL, false, false, false},
        {9, "x", false, false, true},          {77, NULL, false, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct handshake claim;
        struct buf all = message(cases[i].kind, cases[i].nspace, 8);
        assert_int_equal(handshake_length(all.data), all.len);
        assert_int_equal(handshake_read(all.data, all.len, &claim), 0);
        assert_int_equal(claim.client, cases[i].client);
        assert_int_equal(claim.tool, cases[i].tool);
        assert_int_equal(claim.named, cases[i].named);
        assert_string_equal(claim.nspace, cases[i].nspace ? cases[i].nspace : "");
        assert_int_equal(claim.rank, cases[i].named ? 0x102 : 0);
        buf_done(&all);
    }
}

static void what_is_none(void **state)
{
    char name[300];
    struct handshake claim;
    (void)state;
    struct buf all = message(0, "drarun.a.0", 8);
    for (size_t cut = 0; cut < HANDSHAKE_HEADER + 7 + 4 + 8 + 1 + 11 + 4; cut++)
        assert_int_equal(handshake_read(all.data, cut, &claim), -EPROTO);
    buf_done(&all);
    all = message(0, "drarun.a.0", 1u << 31);
    assert_int_equal(handshake_read(all.data, all.len, &claim), -EPROTO);
    buf_done(&all);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    all = message(0, name, 8);
    assert_int_equal(handshake_read(all.data, all.len, &claim), -EPROTO);
    buf_done(&all);
}

static void lengths(void **state)
{
    uint64_t header[2] = {0};
    (void)state;
    assert_int_equal(handshake_length(header), 0);
    header[1] = HANDSHAKE_MAX - HANDSHAKE_HEADER;
    assert_int_equal(handshake_length(header), HANDSHAKE_MAX);
    header[1]++;
    assert_int_equal(handshake_length(header), 0);
    header[1] = UINT64_MAX;
    assert_int_equal(handshake_length(header), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_and_tools),
        cmocka_unit_test(what_is_none),
        cmocka_unit_test(lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
