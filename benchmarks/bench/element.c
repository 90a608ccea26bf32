/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/element.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/base/cleanup.h"

/* Of a floating-point type narrower than C's: IEEE 754's layout with these widths. */
struct narrow {
    unsigned exponent_bits, fraction_bits;
    bool finite; /* E4M3 has no infinities: the largest exponent holds numbers (OCP 8-bit, 5.2) */
};

static const struct {
    const char *name;
    size_t size;
    double whole_max;
    struct narrow narrow;
} types[ELEMENTS] = {
    [ELEMENT_INT8] = {"int8", 1, 127, {0}},
    [ELEMENT_UINT8] = {"uint8", 1, 255, {0}},
    [ELEMENT_INT32] = {"int32", 4, 0x7fffffff, {0}},
    [ELEMENT_UINT32] = {"uint32", 4, 0xffffffff, {0}},
    [ELEMENT_INT64] = {"int64", 8, 0x1p53, {0}}, /* what a double tells apart */
    [ELEMENT_UINT64] = {"uint64", 8, 0x1p53, {0}},
    [ELEMENT_HALF] = {"half", 2, 0x1p11, {5, 10, false}},
    [ELEMENT_FLOAT] = {"float", 4, 0x1p24, {0}},
    [ELEMENT_DOUBLE] = {"double", 8, 0x1p53, {0}},
    [ELEMENT_BFLOAT16] = {"bfloat16", 2, 0x1p8, {8, 7, false}},
    [ELEMENT_F8E4M3] = {"f8e4m3", 1, 0x1p4, {4, 3, true}},
    [ELEMENT_F8E5M2] = {"f8e5m2", 1, 0x1p3, {5, 2, false}},
};

static const char *const reductions[REDUCTIONS] = {"sum", "prod", "max", "min", "avg", "mulsum"};

const char *element_name(enum element type)
{
    return types[type].name;
}

size_t element_size(enum element type)
{
    return types[type].size;
}

double element_whole_max(enum element type)
{
    return types[type].whole_max;
}

int element_find(const char *name, enum element *ret_type)
{
    for (unsigned i = 0; i < ELEMENTS; i++) {
        if (strcmp(name, types[i].name) == 0) {
            *ret_type = (enum element)i;
            return 0;
        }
    }
    return -ENOENT;
}

const char *reduction_name(enum reduction op)
{
    return reductions[op];
}

int reduction_find(const char *name, enum reduction *ret_op)
{
    for (unsigned i = 0; i < REDUCTIONS; i++) {
        if (strcmp(name, reductions[i]) == 0) {
            *ret_op = (enum reduction)i;
            return 0;
        }
    }
    return -ENOENT;
}

/* ---- narrow floating point ---- */

static uint32_t narrow_pack(const struct narrow *n, double value)
{
    const int bias = (1 << (n->exponent_bits - 1)) - 1, least = 1 - bias;
    const int top = (1 << n->exponent_bits) - (n->finite ? 1 : 2) - bias; /* largest exponent */
    uint32_t sign = signbit(value) ? 1u << (n->exponent_bits + n->fraction_bits) : 0;
    uint32_t nan = (1u << (n->exponent_bits + n->fraction_bits)) - 1;
    int exponent;
    if (isnan(value))
        return sign | nan;
    uint32_t over = n->finite ? nan : ((1u << n->exponent_bits) - 1) << n->fraction_bits;
    value = fabs(value);
    if (value == 0)
        return sign;
    if (isinf(value))
        return sign | over;
    frexp(value, &exponent);
    exponent--; /* value is 1.x times two to this */
    if (exponent < least)
        exponent = least;
    double units = nearbyint(ldexp(value, (int)n->fraction_bits - exponent));
    if (units >= ldexp(1, (int)n->fraction_bits + 1)) {
        units /= 2;
        exponent++;
    }
    if (exponent > top)
        return sign | over;
    uint32_t whole = (uint32_t)units, one = 1u << n->fraction_bits;
    return whole < one ? sign | whole
                       : sign | (uint32_t)(exponent + bias) << n->fraction_bits | (whole - one);
}

static double narrow_unpack(const struct narrow *n, uint32_t bits)
{
    const int bias = (1 << (n->exponent_bits - 1)) - 1;
    uint32_t fraction = bits & ((1u << n->fraction_bits) - 1);
    uint32_t exponent = bits >> n->fraction_bits & ((1u << n->exponent_bits) - 1);
    double sign = bits >> (n->exponent_bits + n->fraction_bits) & 1 ? -1 : 1;
    uint32_t last = (1u << n->exponent_bits) - 1;
    if (exponent == last && (!n->finite || fraction == (1u << n->fraction_bits) - 1))
        return fraction ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - (int)n->fraction_bits);
    return sign *
           ldexp((1u << n->fraction_bits) + fraction, (int)exponent - bias - (int)n->fraction_bits);
}

/* ---- elements ---- */

#define STORE(ctype)                                                                               \
    do {                                                                                           \
        ctype v = (ctype)value;                                                                    \
        memcpy(to, &v, sizeof v);                                                                  \
    } while (0)

void element_store(enum element type, void *to, double value)
{
    switch (type) {
    case ELEMENT_INT8:
    case ELEMENT_UINT8:
        STORE(uint8_t);
        break;
    case ELEMENT_INT32:
        STORE(int32_t);
        break;
    case ELEMENT_UINT32:
        STORE(uint32_t);
        break;
    case ELEMENT_INT64:
        STORE(int64_t);
        break;
    case ELEMENT_UINT64:
        STORE(uint64_t);
        break;
    case ELEMENT_FLOAT:
        STORE(float);
        break;
    case ELEMENT_DOUBLE:
        STORE(double);
        break;
    case ELEMENT_HALF:
    case ELEMENT_BFLOAT16: {
        uint16_t bits = (uint16_t)narrow_pack(&types[type].narrow, value);
        memcpy(to, &bits, sizeof bits);
        break;
    }
    default: {
        uint8_t bits = (uint8_t)narrow_pack(&types[type].narrow, value);
        memcpy(to, &bits, sizeof bits);
    }
    }
}

#define LOAD(ctype)                                                                                \
    do {                                                                                           \
        ctype v;                                                                                   \
        memcpy(&v, from, sizeof v);                                                                \
        return (double)v;                                                                          \
    } while (0)

double element_load(enum element type, const void *from)
{
    switch (type) {
    case ELEMENT_INT8:
        LOAD(int8_t);
    case ELEMENT_UINT8:
        LOAD(uint8_t);
    case ELEMENT_INT32:
        LOAD(int32_t);
    case ELEMENT_UINT32:
        LOAD(uint32_t);
    case ELEMENT_INT64:
        LOAD(int64_t);
    case ELEMENT_UINT64:
        LOAD(uint64_t);
    case ELEMENT_FLOAT:
        LOAD(float);
    case ELEMENT_DOUBLE:
        LOAD(double);
    case ELEMENT_HALF:
    case ELEMENT_BFLOAT16: {
        uint16_t bits;
        memcpy(&bits, from, sizeof bits);
        return narrow_unpack(&types[type].narrow, bits);
    }
    default: {
        uint8_t bits;
        memcpy(&bits, from, sizeof bits);
        return narrow_unpack(&types[type].narrow, bits);
    }
    }
}

static double step(enum reduction op, double a, double b)
{
    switch (op) {
    case REDUCE_PROD:
        return a * b;
    case REDUCE_MAX:
        return a > b ? a : b;
    case REDUCE_MIN:
        return a < b ? a : b;
    default:
        return a + b;
    }
}

void element_reduce(enum element type, enum reduction op, void *into, const void *from,
                    size_t count)
{
    size_t size = element_size(type);
    char *to = into;
    const char *with = from;
    for (size_t i = 0; i < count; i++, to += size, with += size)
        element_store(type, to, step(op, element_load(type, to), element_load(type, with)));
}
