/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>

#include "benchmarks/bench/element.h"

static double through(enum element type, double value)
{
    char memory[9];
    element_store(type, memory + 1, value); /* unaligned */
    return element_load(type, memory + 1);
}

static void test_names(void **state)
{
    enum element type;
    enum reduction op;
    (void)state;
    for (unsigned i = 0; i < ELEMENTS; i++) {
        assert_int_equal(element_find(element_name((enum element)i), &type), 0);
        assert_int_equal(type, i);
    }
    for (unsigned i = 0; i < REDUCTIONS; i++) {
        assert_int_equal(reduction_find(reduction_name((enum reduction)i), &op), 0);
        assert_int_equal(op, i);
    }
    assert_int_equal(element_find("char", &type), -ENOENT);
    assert_int_equal(reduction_find("", &op), -ENOENT);
}

static void test_whole_numbers_survive(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ELEMENTS; i++) {
        double most = element_whole_max((enum element)i);
        for (double v = 0; v <= most && v < 3000; v++)
            assert_true(through((enum element)i, v) == v);
        assert_true(through((enum element)i, most) == most);
    }
    /* and the next one does not */
    assert_true(through(ELEMENT_HALF, 2049) == 2048);
    assert_true(through(ELEMENT_BFLOAT16, 257) == 256);
    assert_true(through(ELEMENT_F8E4M3, 17) == 16);
    assert_true(through(ELEMENT_F8E5M2, 9) == 8);
}

/* Bit patterns of IEEE 754 binary16, of bfloat16, and of OCP's 8-bit formats (OFP8 1.0, tables 1
 * and 2). */
static void test_bits(void **state)
{
    static const struct {
        enum element type;
        double value;
        uint32_t bits;
    } known[] = {
        {ELEMENT_HALF, 1, 0x3c00},        {ELEMENT_HALF, -2, 0xc000},
        {ELEMENT_HALF, 65504, 0x7bff},    {ELEMENT_HALF, 0x1p-24, 0x0001},
        {ELEMENT_HALF, 65520, 0x7c00},    {ELEMENT_HALF, 0.333251953125, 0x3555},
        {ELEMENT_BFLOAT16, 1, 0x3f80},    {ELEMENT_BFLOAT16, 0x1p-133, 0x0001},
        {ELEMENT_F8E4M3, 448, 0x7e},      {ELEMENT_F8E4M3, 0x1p-9, 0x01},
        {ELEMENT_F8E4M3, 1, 0x38},        {ELEMENT_F8E4M3, 500, 0x7f},
        {ELEMENT_F8E5M2, 57344, 0x7b},    {ELEMENT_F8E5M2, 0x1p-16, 0x01},
        {ELEMENT_F8E5M2, INFINITY, 0x7c},
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint16_t bits = 0;
        element_store(known[i].type, &bits, known[i].value);
        assert_int_equal(bits, known[i].bits);
    }
    assert_true(isnan(through(ELEMENT_F8E4M3, NAN)) && isnan(through(ELEMENT_HALF, NAN)));
    assert_true(through(ELEMENT_HALF, 65520) == INFINITY);
}

/* Every bit pattern of the narrow types is what packing its value gives. */
static void test_all_patterns(void **state)
{
    static const enum element narrow[] = {ELEMENT_HALF, ELEMENT_BFLOAT16, ELEMENT_F8E4M3,
                                          ELEMENT_F8E5M2};
    (void)state;
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++) {
        uint32_t count = 1u << 8 * element_size(narrow[i]);
        for (uint32_t bits = 0; bits < count; bits++) {
            uint16_t given = (uint16_t)bits, back = 0;
            double value = element_load(narrow[i], &given);
            if (isnan(value))
                continue;
            element_store(narrow[i], &back, value);
            assert_int_equal(back, bits);
        }
    }
}

static void test_reduce(void **state)
{
    float into[2] = {3, -1}, from[2] = {4, 5};
    uint8_t a = 200, b = 100;
    (void)state;
    element_reduce(ELEMENT_FLOAT, REDUCE_SUM, into, from, 2);
    assert_true(into[0] == 7 && into[1] == 4);
    element_reduce(ELEMENT_FLOAT, REDUCE_MIN, into, from, 2);
    assert_true(into[0] == 4 && into[1] == 4);
    element_reduce(ELEMENT_UINT8, REDUCE_MAX, &a, &b, 1);
    assert_int_equal(a, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),  cmocka_unit_test(test_whole_numbers_survive),
        cmocka_unit_test(test_bits),   cmocka_unit_test(test_all_patterns),
        cmocka_unit_test(test_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
