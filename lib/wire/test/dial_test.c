/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/test/skip.h"
#include "lib/wire/dial.h"

#define PATIENCE_MS 60000

static void addresses_are_split(void **state)
{
    static const struct {
        const char *address, *host;
        uint16_t port;
    } good[] = {
        {"127.0.0.1:7173", "127.0.0.1", 7173},
        {"[::1]:1", "::1", 1},
        {"node-3.example:65535", "node-3.example", 65535},
        {":0", "", 0},
        {"[fe80::1%eth0]:80", "fe80::1%eth0", 80},
        {"[]:5", "", 5},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        char host[32];
        uint16_t port = 1;
        struct drarun_error err = {0};
        if (address_split(good[i].address, host, sizeof host, &port, &err) < 0)
            fail_msg("%s: %s", good[i].address, err.text);
        assert_string_equal(host, good[i].host);
        assert_int_equal(port, good[i].port);
    }
}

static void bad_addresses_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "host",
        "host:",
        "host:http",
        "host:65536",
        "host:-1",
        "::1:7173",
        "fe80::1:80",
        "[::1]",
        "[::1]7173",
        "host: 80",
        "host:80 ",
        "0123456789012345678901234567890123456789:80",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char host[32] = "kept";
        uint16_t port = 77;
        struct drarun_error err = {0};
        if (address_split(bad[i], host, sizeof host, &port, &err) == 0)
            fail_msg("\"%s\" is accepted", bad[i]);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
        assert_non_null(strstr(err.text, bad[i]));
        assert_int_equal(port, 77);
    }
}

static void only_numeric_addresses_are_dialled(void **state)
{
    struct drarun_error err = {0};
    int fd = -1;
    (void)state;
    assert_int_equal(dial_start("localhost:80", &fd, &err), -EINVAL);
    assert_non_null(strstr(err.text, "numeric"));
    assert_int_equal(fd, -1);
}

static void loopback_is_known(void **state)
{
    static const struct {
        const char *address;
        bool loopback;
    } cases[] = {
        {"127.0.0.1:7173", true},
        {"127.0.1.1:7173", true},
        {"127.255.0.9:1", true},
        {"[::1]:7173", true},
        {"[::ffff:127.0.0.1]:1", true},
        {"10.0.0.1:7173", false},
        {"128.0.0.1:7173", false},
        {"[fd77::1]:7173", false},
        {"[::ffff:10.0.0.1]:1", false},
        {"0.0.0.0:1", false},
        {"[::]:1", false},
        {"localhost:7173", false},
        {"127.0.0.1", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (address_is_loopback(cases[i].address) != cases[i].loopback)
            fail_msg("%s", cases[i].address);
}

/* Towards one of its own addresses a machine has that address. */
static void own_address_towards_another(void **state)
{
    char text[32], small[8] = "";
    (void)state;
    assert_int_equal(address_towards("127.0.0.1:80", 7173, text, sizeof text), 0);
    assert_string_equal(text, "127.0.0.1:7173");
    if (address_towards("[::1]:80", 7173, text, sizeof text) == 0)
        assert_string_equal(text, "[::1]:7173");
    assert_int_equal(address_towards("127.0.0.1:80", 7173, small, sizeof small), -ENAMETOOLONG);
    assert_int_equal(address_towards("localhost:80", 7173, text, sizeof text), -EINVAL);
}

/* Dials the address, and a message comes in at the door. */
static void comes_in(int door, const char *address)
{
    struct drarun_error err = {0};
    cleanup_close int out = -1;
    char bytes[3] = "";
    if (dial_start(address, &out, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(fcntl(out, F_GETFD) & FD_CLOEXEC);
    struct pollfd ready = {.fd = door, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
    cleanup_close int in = accept(door, NULL, NULL);
    assert_true(in >= 0);
    ready = (struct pollfd){.fd = out, .events = POLLOUT};
    assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
    assert_int_equal(write(out, "hi", 2), 2);
    assert_int_equal(read(in, bytes, 2), 2);
    assert_string_equal(bytes, "hi");
}

static void connected_both_ways(const char *at)
{
    struct drarun_error err = {0};
    cleanup_close int door = -1;
    uint16_t port = 0;
    char address[64];
    if (listen_on(at, &door, &port, &err) < 0) {
        if (err.code == EADDRNOTAVAIL || err.code == EAFNOSUPPORT)
            skip_for("no IPv6 on this machine");
        fail_msg("%s", err.text);
    }
    assert_true(port > 0);
    assert_true(fcntl(door, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(door, F_GETFL) & O_NONBLOCK);
    snprintf(address, sizeof address, "%.*s:%u", (int)(strlen(at) - 2), at, port);
    comes_in(door, address);
}

static void over_ipv4(void **state)
{
    (void)state;
    connected_both_ways("127.0.0.1:0");
}

static void over_ipv6(void **state)
{
    (void)state;
    connected_both_ways("[::1]:0");
}

/* As an agent's in a pod, which has an address of one family or of both. */
static void all_addresses_are_those_of_both_families(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "[::1]"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        struct drarun_error err = {0};
        cleanup_close int own = -1, door = -1;
        uint16_t port = 0;
        char address[64];
        snprintf(address, sizeof address, "%s:0", hosts[i]);
        if (listen_on(address, &own, &port, NULL) < 0)
            skip_for("no IPv6 on this machine");
        if (listen_on(":0", &door, &port, &err) < 0)
            fail_msg("%s", err.text);
        snprintf(address, sizeof address, "%s:%u", hosts[i], port);
        comes_in(door, address);
    }
}

static void taken_port_is_named(void **state)
{
    struct drarun_error err = {0};
    cleanup_close int door = -1;
    int second = -1;
    uint16_t port = 0;
    char address[64];
    (void)state;
    assert_int_equal(listen_on("127.0.0.1:0", &door, &port, &err), 0);
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    assert_int_equal(listen_on(address, &second, &port, &err), -EADDRINUSE);
    assert_non_null(strstr(err.text, address));
    assert_int_equal(second, -1);
    snprintf(address, sizeof address, ":%u", port);
    assert_int_equal(listen_on(address, &second, &port, &err), -EADDRINUSE);
    assert_non_null(strstr(err.text, address));
    assert_int_equal(second, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_split),
        cmocka_unit_test(bad_addresses_are_refused),
        cmocka_unit_test(only_numeric_addresses_are_dialled),
        cmocka_unit_test(loopback_is_known),
        cmocka_unit_test(own_address_towards_another),
        cmocka_unit_test(over_ipv4),
        cmocka_unit_test(over_ipv6),
        cmocka_unit_test(all_addresses_are_those_of_both_families),
        cmocka_unit_test(taken_port_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
