/* SPDX-License-Identifier: Apache-2.0 */
/* The file beside an order that says where its device was put. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lib/base/file.h"
#include "plugin/attach/place.h"

static void make_order(char dir[32], struct attach_order *order)
{
    snprintf(dir, 32, "/tmp/place_test.XXXXXX");
    assert_non_null(mkdtemp(dir));
    *order = (struct attach_order){.claim_uid = "u", .device = "d"};
    snprintf(order->path, sizeof order->path, "%s/u.d.json", dir);
}

static void test_kept(void **state)
{
    const struct place place = {.device = 4,
                                .inode = 4026532000,
                                .cookie = UINT64_C(1) << 40,
                                .index = 7,
                                .kind = "veth",
                                .peer = 8,
                                .peer_ns = 0,
                                .port = 1};
    struct attach_order order;
    struct drarun_error err = {0};
    struct place read;
    char dir[32];
    (void)state;
    make_order(dir, &order);
    place_load(&order, &read);
    assert_true(read.inode == 0 && read.peer_ns == -1 && read.port == -1);
    if (place_save(&order, &place, &err) < 0)
        fail_msg("%s", err.text);
    place_load(&order, &read);
    assert_true(place_same(&place, &read));
    assert_int_equal(read.index, 7);
    assert_string_equal(read.kind, "veth");
    assert_int_equal(read.peer, 8);
    assert_int_equal(read.peer_ns, 0);
    assert_int_equal(read.port, 1);
    tree_remove(AT_FDCWD, dir);
}

/* Another release's, during an update of the plugin. */
static void test_of_a_release_without_ports(void **state)
{
    static const char text[] = "{\"version\":1,\"device\":4,\"inode\":9,\"cookie\":1,\"index\":7,"
                               "\"kind\":\"\",\"peer\":0,\"peerNs\":-1}";
    struct attach_order order;
    struct place read;
    char dir[32], path[64];
    (void)state;
    make_order(dir, &order);
    snprintf(path, sizeof path, "%s/u.d.place", dir);
    assert_int_equal(file_replace(path, text, sizeof text - 1, 0600, FILE_AFTER_ANYTHING, NULL), 0);
    place_load(&order, &read);
    assert_int_equal(read.inode, 9);
    assert_int_equal(read.index, 7);
    assert_int_equal(read.port, -1);
    tree_remove(AT_FDCWD, dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kept),
                                       cmocka_unit_test(test_of_a_release_without_ports)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
