/* SPDX-License-Identifier: Apache-2.0 */
/* The model on small machines; the rules are those of docs/design/017-derivation-rules.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/derive/nccl/nccl_topology.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

/* A machine: a word for each GPU with the class of each NIC (P: PIX, X: PXB, H: PHB, S: SYS). */
static struct nccl_model machine(const char *classes)
{
    struct nccl_model m = {.version = NCCL_VERSION(2, 28, 9),
                           .nvlink = true,
                           .gdr = true,
                           .pxn = true,
                           .gdr_c2c = -1,
                           .pxn_c2c = -1,
                           .gdr_level = -1,
                           .inter_socket = 22};
    uint32_t n = 0;
    for (const char *c = classes; *c; c++) {
        if (*c == ' ') {
            m.gpus++;
            n = 0;
            continue;
        }
        m.classes[m.gpus][n] = *c == 'P'   ? NCCL_PATH_PIX
                               : *c == 'X' ? NCCL_PATH_PXB
                               : *c == 'H' ? NCCL_PATH_PHB
                                           : NCCL_PATH_SYS;
        m.nic_gbs[n++] = 50;
        m.nics = n;
    }
    m.gpus++;
    for (uint32_t g = 0; g < m.gpus; g++)
        m.nvml[g] = g;
    return m;
}

/* A word for each GPU: its NICs in order, the path of the first, "-" without GPUDirect. */
static void expect(const char *rule, const struct nccl_model *m, const char *want)
{
    struct nccl_result result;
    struct buf got = BUF_INIT;
    nccl_model_run(m, &result);
    for (uint32_t g = 0; g < m->gpus; g++) {
        buf_add_str(&got, g ? " " : "");
        for (uint32_t i = 0; i < result.count[g]; i++)
            buf_printf(&got, "%u", result.use[g][i].nic);
        if (result.count[g] > 0)
            buf_printf(&got, "%s%s", nccl_path_name(result.use[g][0].path),
                       result.use[g][0].gdr ? "" : "-");
    }
    if (strcmp(got.data ? got.data : "", want) != 0)
        fail_msg("%s: expected \"%s\", got \"%s\"", rule, want, got.data);
    buf_done(&got);
}

static void choice(void **unused)
{
    static const struct {
        const char *rule, *classes, *want;
    } table[] = {
        {"one of each", "P", "0PIX"},
        {"own switch", "PS SP", "0PIX 1PIX"},
        {"T2 all of the local ones", "PPPP", "0123PIX"},
        {"T2 rounded up", "PPP PPP", "01PIX 12PIX"},
        {"T3 mirrored over two", "PP PP", "0PIX 1PIX"},
        {"T3 mirrored over four", "PPPP PPPP PPPP PPPP", "0PIX 2PIX 1PIX 3PIX"},
        {"T3 mirrored over eight, two each", "PPPPPPPP PPPPPPPP PPPPPPPP PPPPPPPP",
         "01PIX 45PIX 23PIX 67PIX"},
        {"T1 the smaller type", "HXP", "2PIX"},
        {"T1 the host bridge before the sockets", "SH", "1PHB-"},
        {"nested switches", "X", "0PXB"},
        {"P1 over a peer", "P S", "0PIX 0PXN"},
        {"P3 not over a peer behind the bridge", "H S", "0PHB- 0SYS-"},
        {"P5 distant NICs idle", "PSSS SPSS SSSH SSHS", "0PIX 1PIX 01PXN 10PXN"},
        {"shared", "P P", "0PIX 0PIX"},
    };
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct nccl_model m = machine(table[i].classes);
        expect(table[i].rule, &m, table[i].want);
    }
}

static void rotation(void **unused)
{
    struct nccl_model m = machine("SSSP SSSP PPPS PPPS");
    (void)unused;
    /* three NICs beside the GPUs 2 and 3: no power of two, the start is the index itself */
    expect("T3 2.28", &m, "3PIX 3PIX 20PIX 01PIX");
    m.version = NCCL_VERSION(2, 30, 4);
    expect("T3 2.30.4", &m, "3PIX 3PIX 20PIX 01PIX");
    m.version = NCCL_VERSION(2, 30, 7);
    expect("T3 2.30.7", &m, "3PIX 3PIX 01PIX 12PIX");
    m = machine("PPPP PPPP");
    expect("T4 sees two", &m, "01PIX 23PIX");
    m.nvml[0] = 2;
    m.nvml[1] = 3;
    expect("T4 sees four", &m, "12PIX 30PIX");
}

static void policy(void **unused)
{
    struct nccl_model m = machine("PPP PPP");
    (void)unused;
    m.policy = NCCL_DEVS_ALL;
    expect("T2 ALL", &m, "012PIX 120PIX");
    m.policy = NCCL_DEVS_MAX;
    m.policy_max = 1;
    expect("T2 MAX:1", &m, "0PIX 1PIX");
    m.policy_max = 9;
    expect("T2 MAX:9", &m, "012PIX 120PIX");
    m.policy_max = 0; /* no number: as AUTO */
    expect("T2 MAX:0", &m, "01PIX 12PIX");
}

static void bandwidth(void **unused)
{
    struct nccl_model m = machine("PH");
    (void)unused;
    m.nic_gbs[0] = 25;
    expect("T1 the faster NIC", &m, "1PHB-");
    m.nic_gbs[1] = 25;
    expect("T1 equal speed: the type", &m, "0PIX");
    m = machine("PH");
    m.nic_gbs[0] = 48; /* PCIe carries no more */
    m.nic_gbs[1] = 100;
    expect("T1 PCIe limits", &m, "0PIX");
    m = machine("SH");
    m.nic_gbs[0] = 100;
    m.nic_gbs[1] = 12.5;
    expect("T1 the sockets' link limits", &m, "0SYS-");
    m.inter_socket = 10;
    expect("T1 a slower link", &m, "1PHB-");
}

static void through_peers(void **unused)
{
    struct nccl_model m = machine("P S");
    (void)unused;
    m.nvlink = false;
    expect("P2 no NVLink", &m, "0PIX 0SYS-");
    m.nvlink = true;
    m.pxn = false;
    expect("P2 NCCL_PXN_DISABLE", &m, "0PIX 0SYS-");
    m.pxn = true;
    m.gdr = false;
    expect("P4 the relay has no GPUDirect", &m, "0PHB- 0SYS-");
    m.gdr = true;
    m.gdr_level = NCCL_PATH_LOC;
    expect("G4 the relay's distance counts", &m, "0PHB- 0SYS-");
    m.gdr_level = NCCL_PATH_PIX;
    expect("G4 PXN is no distance", &m, "0PIX 0PXN");
}

static void gpudirect(void **unused)
{
    static const struct {
        const char *classes;
        int level;
        const char *want;
    } table[] = {
        {"P", NCCL_PATH_PIX, "0PIX"},
        {"X", NCCL_PATH_PIX, "0PHB-"},
        {"X", NCCL_PATH_PXB, "0PXB"},
        {"H", NCCL_PATH_PXB, "0PHB-"},
        {"H", NCCL_PATH_PHB, "0PHB"},
        {"S", NCCL_PATH_PHB, "0SYS-"},
        {"S", NCCL_PATH_SYS, "0SYS"},
        {"P", NCCL_PATH_LOC, "0PHB-"},
        {"X", -1, "0PXB"},
        {"H", -1, "0PHB-"},
    };
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct nccl_model m = machine(table[i].classes);
        m.gdr_level = table[i].level;
        expect("G2", &m, table[i].want);
    }
    struct nccl_model m = machine("P");
    m.gdr = false;
    expect("G1", &m, "0PHB-");
}

static void chip_to_chip(void **unused)
{
    static const struct {
        uint32_t version;
        int c2c, level;
        const char *want;
    } table[] = {
        {NCCL_VERSION(2, 26, 6), -1, -1, "0PHB-"}, /* NCCL_NET_GDR_C2C is 0 there */
        {NCCL_VERSION(2, 26, 6), 1, -1, "0PHB"},
        {NCCL_VERSION(2, 26, 6), 1, NCCL_PATH_PIX, "0PHB"},
        {NCCL_VERSION(2, 27, 3), -1, -1, "0P2C"},
        {NCCL_VERSION(2, 28, 9), -1, NCCL_PATH_PIX, "0P2C"},
        {NCCL_VERSION(2, 28, 9), 0, -1, "0P2C-"},
        {NCCL_VERSION(2, 29, 2), -1, -1, "0P2C"},
        {NCCL_VERSION(2, 29, 2), -1, NCCL_PATH_PIX, "0P2C-"},
        {NCCL_VERSION(2, 30, 7), -1, NCCL_PATH_PXB, "0P2C-"},
        {NCCL_VERSION(2, 30, 7), -1, NCCL_PATH_P2C, "0P2C"},
        {NCCL_VERSION(2, 30, 7), 0, -1, "0P2C-"},
    };
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct nccl_model m = machine("H");
        m.c2c = true;
        m.version = table[i].version;
        m.gdr_c2c = table[i].c2c;
        m.gdr_level = table[i].level;
        expect("G3", &m, table[i].want);
    }
    struct nccl_model m = machine("H S");
    m.c2c = true;
    m.version = NCCL_VERSION(2, 27, 7);
    expect("P3 2.27", &m, "0P2C 0SYS-");
    m.pxn_c2c = 1;
    expect("P3 NCCL_PXN_C2C=1", &m, "0P2C 0PXN");
    m.pxn_c2c = -1;
    m.version = NCCL_VERSION(2, 28, 9);
    expect("P3 2.28", &m, "0P2C 0PXN");
    m.pxn_c2c = 0;
    expect("P3 NCCL_PXN_C2C=0", &m, "0P2C 0SYS-");
}

static void levels(void **unused)
{
    static const struct {
        const char *text;
        uint32_t version;
        int want;
    } table[] = {
        {"LOC", NCCL_VERSION_NEWEST, NCCL_PATH_LOC},
        {"PIX", NCCL_VERSION_NEWEST, NCCL_PATH_PIX},
        {"SYS", NCCL_VERSION_NEWEST, NCCL_PATH_SYS},
        {"0", NCCL_VERSION_NEWEST, NCCL_PATH_LOC},
        {"1", NCCL_VERSION_NEWEST, NCCL_PATH_PIX},
        {"2", NCCL_VERSION_NEWEST, NCCL_PATH_PXB},
        {"3", NCCL_VERSION_NEWEST, NCCL_PATH_PHB},
        {"4", NCCL_VERSION_NEWEST, NCCL_PATH_SYS},
        {"99", NCCL_VERSION_NEWEST, NCCL_PATH_SYS},
        {"pix", NCCL_VERSION_NEWEST, -1},
        {"", NCCL_VERSION_NEWEST, -1},
        {"-1", NCCL_VERSION_NEWEST, -1},
        {"P2C", NCCL_VERSION(2, 27, 3), NCCL_PATH_P2C},
        {"P2C", NCCL_VERSION(2, 26, 6), -1},
        {"C2C", NCCL_VERSION(2, 26, 2), NCCL_PATH_C2C},
        {"C2C", NCCL_VERSION(2, 25, 1), -1},
    };
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (nccl_level_parse(table[i].text, table[i].version) != table[i].want)
            fail_msg("level \"%s\" of %u", table[i].text, table[i].version);
}

static void versions(void **unused)
{
    static const struct {
        const char *text;
        uint32_t want;
    } table[] = {
        {"2.28.9", NCCL_VERSION(2, 28, 9)},
        {"2.27", NCCL_VERSION(2, 27, 0)},
        {"2.30.7-1", NCCL_VERSION(2, 30, 7)},
        {"2.30.7+cuda13", NCCL_VERSION(2, 30, 7)},
        {"2", 0},
        {"", 0},
        {"2.x", 0},
        {"v2.28", 0},
        {"2.100.1", 0},
        {"2.28.", 0},
    };
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (nccl_version_parse(table[i].text) != table[i].want)
            fail_msg("version \"%s\"", table[i].text);
}

static void nothing_to_use(void **unused)
{
    struct nccl_model m = {.version = NCCL_VERSION_NEWEST, .gpus = 2};
    struct nccl_result result;
    (void)unused;
    memset(&result, 0xff, sizeof result);
    nccl_model_run(&m, &result);
    assert_int_equal(result.count[0], 0);
    assert_int_equal(result.count[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choice),        cmocka_unit_test(rotation),
        cmocka_unit_test(policy),        cmocka_unit_test(bandwidth),
        cmocka_unit_test(through_peers), cmocka_unit_test(gpudirect),
        cmocka_unit_test(chip_to_chip),  cmocka_unit_test(levels),
        cmocka_unit_test(versions),      cmocka_unit_test(nothing_to_use),
    };
    return cmocka_run_group_tests_name("nccl_topology", tests, NULL, NULL);
}
