/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake of a WebSocket, with the example of RFC 6455 §1.3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/unconst.h"
#include "lib/kube/socket_upgrade.h"

static void test_request(void **state)
{
    struct curl_slist token = {unconst("Authorization: Bearer t"), NULL};
    struct curl_slist expect = {unconst("Expect: "), &token};
    struct curl_slist accept = {unconst("Accept: application/json"), &expect};
    struct upgrade upgrade;
    struct buf out = BUF_INIT;
    (void)state;
    assert_int_equal(upgrade_request(&upgrade, "https://host:6443/prefix", "/api/v1/x?a=b", "p, q",
                                     &accept, &out, NULL),
                     0);
    assert_ptr_equal(strstr(out.data, "GET /prefix/api/v1/x?a=b HTTP/1.1\r\nHost: host:6443\r\n"),
                     out.data);
    assert_non_null(strstr(out.data, "\r\nSec-WebSocket-Protocol: p, q\r\n"));
    assert_non_null(strstr(out.data, "\r\nAuthorization: Bearer t\r\n\r\n"));
    assert_null(strstr(out.data, "Expect"));
    assert_null(strstr(out.data, "Accept:"));
    buf_done(&out);

    struct curl_slist named = {unconst("Host: other"), NULL};
    assert_int_equal(upgrade_request(&upgrade, "https://host", "/x", "p", &named, &out, NULL), 0);
    assert_ptr_equal(strstr(out.data, "GET /x HTTP/1.1\r\nHost: other\r\nUpgrade"), out.data);
    buf_done(&out);
}

#define ACCEPT "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"

static void test_answer(void **state)
{
    static const struct {
        const char *text, *protocol;
        int rc, status;
    } rows[] = {
        {"", NULL, 0, 0},
        {"HTTP/1.1 101 Switching Protocols\r\n" ACCEPT, NULL, 0, 0},
        {"HTTP/1.1 101 Switching Protocols\r\n" ACCEPT "\r\nframes", "", 1, 101},
        {"HTTP/1.1 101 S\r\nsec-websocket-protocol:  v5\r\n" ACCEPT "\r\n", "v5", 1, 101},
        {"HTTP/1.1 101 S\r\nSec-WebSocket-Accept: x\r\n\r\n", NULL, -EPROTO, 0},
        {"HTTP/1.1 101 S\r\n\r\n", NULL, -EPROTO, 0},
        {"HTTP/1.1 403 Forbidden\r\n\r\n{}", "", 1, 403},
        {"SSH-2.0-OpenSSH\r\n\r\n", NULL, -EPROTO, 0},
        {"HTTP/1.1 abc\r\n\r\n", NULL, -EPROTO, 0},
    };
    const struct upgrade upgrade = {.key = "dGhlIHNhbXBsZSBub25jZQ=="};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct upgrade_answer answer = {0};
        int rc = upgrade_read(&upgrade, rows[i].text, strlen(rows[i].text), &answer, NULL);
        if (rc != rows[i].rc || answer.status != rows[i].status ||
            (rc == 1 && strcmp(answer.protocol, rows[i].protocol) != 0))
            fail_msg("%s: %d, status %d, %s", rows[i].text, rc, answer.status, answer.protocol);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
