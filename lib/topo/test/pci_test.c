/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/topo/pci.h"

static void parses_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says; /* NULL: refused */
    } cases[] = {
        {"0000:8f:00.0", "0000:8f:00.0"},
        {"8f:1f.7", "0000:8f:1f.7"},
        {"0000:8F:00.0", "0000:8f:00.0"},
        {"10000:e1:00.0", "10000:e1:00.0"},
        {"ffffffff:ff:1f.7", "ffffffff:ff:1f.7"},
        {"00000000:8F:00.0", "0000:8f:00.0"}, /* as nvidia-smi writes it */
        {"fffffffff:ff:1f.7", NULL},
        {"0000:8f:20.0", NULL},
        {"0000:8f:00.8", NULL},
        {"0000:8f:00", NULL},
        {"0000:8f:00.0 ", NULL},
        {"0000:8f:0.0", NULL},
        {"000:8f:00.0", NULL},
        {"-000:8f:00.0", NULL},
        {"", NULL},
        {":", NULL},
        {"pci0000:8f", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pci_addr addr;
        struct drarun_error err = {0};
        char text[PCI_ADDR_TEXT];
        int rc = pci_addr_parse(cases[i].text, &addr, &err);
        if (rc != (cases[i].says ? 0 : -EINVAL))
            fail_msg("\"%s\": %d", cases[i].text, rc);
        if (rc < 0) {
            assert_non_null(strstr(err.text, cases[i].text));
            continue;
        }
        pci_addr_format(addr, text);
        assert_string_equal(text, cases[i].says);
    }
    assert_true(pci_root_valid("pci0000:8c") && pci_root_valid("pci10000:00"));
    assert_false(pci_root_valid("pci0000:8c/") || pci_root_valid("pci") ||
                 pci_root_valid("0000:8c"));
}

static void parses_speeds(void **state)
{
    (void)state;
    assert_int_equal(pci_speed_parse("32.0 GT/s PCIe"), 32000);
    assert_int_equal(pci_speed_parse("2.5 GT/s PCIe"), 2500);
    assert_int_equal(pci_speed_parse("8 GT/s"), 8000); /* Linux before 5.7 */
    assert_int_equal(pci_speed_parse("Unknown"), 0);
    assert_int_equal(pci_speed_parse("99999.0 GT/s"), 0);
    assert_int_equal(pci_speed_parse(""), 0);
}

static struct pci_place place(const char *path, int numa)
{
    struct pci_place p;
    struct drarun_error err = {0};
    if (pci_place_from_path(path, &p, &err) < 0)
        fail_msg("%s", err.text);
    p.numa = numa;
    return p;
}

#define ROOT1 "sys/devices/pci0000:8c/0000:8c:01.0/"
#define UP1 ROOT1 "0000:8d:00.0/"

static void places_functions(void **state)
{
    (void)state;
    struct pci_place p = place(UP1 "0000:8e:00.0/0000:8f:00.0/net/eth0", 0);
    char text[PCI_ADDR_TEXT];
    pci_addr_format(p.addr, text);
    assert_string_equal(text, "0000:8f:00.0");
    assert_string_equal(p.root, "pci0000:8c");
    assert_int_equal(p.bridge_count, 3);
    pci_addr_format(p.bridges[0], text);
    assert_string_equal(text, "0000:8e:00.0");
    pci_addr_format(p.bridges[2], text);
    assert_string_equal(text, "0000:8c:01.0");
    pci_place_done(&p);
    /* Hyper-V: one host bridge inside another's tree */
    p = place("sys/devices/LNXSYSTM:00/pci0000:00/0000:00:07.0/VMBUS:00/x/pci0101:00/0101:00:00.0",
              0);
    assert_string_equal(p.root, "pci0101:00");
    assert_int_equal(p.bridge_count, 0);
    pci_place_done(&p);
    struct pci_place untouched = {.numa = 7};
    assert_int_equal(pci_place_from_path("sys/devices/virtual/net/lo", &untouched, NULL), -ENOENT);
    assert_int_equal(pci_place_from_path("0000:8f:00.0", &untouched, NULL), -ENOENT); /* no root */
    assert_int_equal(pci_place_from_path("", &untouched, NULL), -ENOENT);
    assert_int_equal(untouched.numa, 7);
}

static void refuses_chains_without_end(void **state)
{
    (void)state;
    char path[2048] = "sys/devices/pci0000:00";
    for (int i = 0; i < 40; i++)
        snprintf(path + strlen(path), sizeof path - strlen(path), "/0000:%02x:00.0", i);
    struct pci_place p;
    assert_int_equal(pci_place_from_path(path, &p, NULL), -ENOENT);
}

static const struct {
    const char *a, *b;
    int numa_a, numa_b;
    bool c2c;
    size_t numas;
    const char *path;
} distances[] = {
    {UP1 "0000:8e:00.0/0000:8f:00.0", UP1 "0000:8e:00.0/0000:8f:00.0", 0, 0, false, 2, "X"},
    {UP1 "0000:8e:00.0/0000:8f:00.0", UP1 "0000:8e:01.0/0000:90:00.0", 0, 0, false, 2, "PIX"},
    {UP1 "0000:8e:00.0/0000:8f:00.0", UP1 "0000:8e:00.0/0000:8f:00.1", 0, 0, false, 2, "PIX"},
    {ROOT1 "0000:8d:00.0", ROOT1 "0000:8d:00.1", 0, 0, false, 2, "PIX"},
    {UP1 "0000:8e:00.0/0000:8f:00.0", UP1 "0000:8e:01.0/0000:90:00.0/0000:91:00.0/0000:92:00.0", 0,
     0, false, 2, "PXB"},
    {"d/pci0000:00/0000:00:01.0/0000:01:00.0", "d/pci0000:00/0000:00:02.0/0000:02:00.0", 0, 0,
     false, 2, "PHB"},
    {"d/pci0000:00/0000:00:03.0", "d/pci0000:00/0000:00:04.0", -1, -1, false, 2, "PHB"},
    {"d/pci0000:00/0000:00:03.0", "d/pci0000:10/0000:10:04.0", 1, 1, false, 2, "NODE"},
    {"d/pci0000:00/0000:00:03.0", "d/pci0000:10/0000:10:04.0", 1, 1, true, 2, "P2C"},
    {"d/pci0000:00/0000:00:03.0", "d/pci0000:10/0000:10:04.0", 0, 1, true, 2, "SYS"},
    {"d/pci0000:00/0000:00:03.0", "d/pci0000:10/0000:10:04.0", 0, 1, false, 2, "SYS"},
    {"d/pci0000:00/0000:00:03.0", "d/pci0000:10/0000:10:04.0", -1, 1, false, 2, "?"},
    {"d/pci0000:00/0000:00:03.0", "d/pci0000:10/0000:10:04.0", -1, -1, false, 1, "NODE"},
    {"d/pci0000:00/0000:00:03.0", "d/pci0000:10/0000:10:04.0", -1, -1, false, 0, "?"},
};

static void measures_distance(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(distances); i++) {
        struct pci_place a = place(distances[i].a, distances[i].numa_a);
        struct pci_place b = place(distances[i].b, distances[i].numa_b);
        bool c2c = distances[i].c2c;
        enum topo_path path = pci_path(&a, &b, c2c, distances[i].numas);
        if (strcmp(topo_path_name(path), distances[i].path) != 0)
            fail_msg("%s %s: %s", distances[i].a, distances[i].b, topo_path_name(path));
        assert_int_equal(pci_path(&b, &a, c2c, distances[i].numas), path);
        pci_place_done(&a);
        pci_place_done(&b);
    }
}

/* From attributes alone: the root is known, what is below it is not. */
static void says_when_switches_are_unknown(void **state)
{
    (void)state;
    struct pci_place a = {.addr = {0, 0x8f, 0, 0}, .numa = 0, .root = "pci0000:8c"};
    struct pci_place b = {.addr = {0, 0x91, 0, 0}, .numa = 0, .root = "pci0000:8c"};
    assert_int_equal(pci_path(&a, &b, false, 2), TOPO_PATH_ROOT);
    snprintf(b.root, sizeof b.root, "pci0000:93");
    assert_int_equal(pci_path(&a, &b, false, 2), TOPO_PATH_NODE);
    a.root[0] = b.root[0] = '\0';
    assert_int_equal(pci_path(&a, &b, false, 2), TOPO_PATH_NODE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_addresses),  cmocka_unit_test(parses_speeds),
        cmocka_unit_test(places_functions),  cmocka_unit_test(refuses_chains_without_end),
        cmocka_unit_test(measures_distance), cmocka_unit_test(says_when_switches_are_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
