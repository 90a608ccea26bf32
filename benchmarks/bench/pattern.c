/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/pattern.h"

#include <math.h>
#include <string.h>

#define PERIOD 256u /* values repeat: a power of two that no rank's data fits into by a shift */

static uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

static bool is_whole(enum element type)
{
    return type <= ELEMENT_UINT64;
}

/* One in `stride` ranks, another at each place. */
static bool is_chosen(unsigned rank, size_t place, unsigned round, unsigned stride)
{
    return (rank + place + round) % stride == 0;
}

static unsigned stride_for(unsigned ranks, double most)
{
    unsigned room = most < 1 ? 1 : (unsigned)fmin(most, 1 << 20),
             stride = (ranks + room - 1) / room;
    return stride < 2 ? 2 : stride; /* not all alike */
}

double pattern_scalar(unsigned rank)
{
    return 1 + rank % 2;
}

/* Up to which the values themselves may add up. */
static double sum_max(const struct pattern *p)
{
    return element_whole_max(p->type) / (p->op == REDUCE_MULSUM ? 2 : 1);
}

/* Sums stay below what the type holds exactly. */
static double summand(const struct pattern *p, unsigned rank, size_t place, uint32_t random)
{
    double room = fmin(sum_max(p), 0x1p20) / p->ranks;
    if (room >= 2)
        return random % (uint32_t)fmin(room, 64);
    return is_chosen(rank, place, p->round, stride_for(p->ranks, sum_max(p)));
}

/* Ones, and so few twos that the product is a power of two that the type has. */
static double factor(const struct pattern *p, unsigned rank, size_t place)
{
    unsigned twos = is_whole(p->type) ? (unsigned)fmin(log2(element_whole_max(p->type)), 30) : 6;
    return is_chosen(rank, place, p->round, stride_for(p->ranks, twos)) ? 2 : 1;
}

static double value(const struct pattern *p, unsigned rank, size_t place)
{
    uint32_t random = mix((uint32_t)(place % PERIOD) * 0x9e3779b9u + mix(rank * 31u + p->round));
    if (p->ranks == 1 || p->op == REDUCE_MAX || p->op == REDUCE_MIN)
        return random % ((uint32_t)fmin(element_whole_max(p->type), 100) + 1);
    return p->op == REDUCE_PROD ? factor(p, rank, place) : summand(p, rank, place, random);
}

static double reduced(const struct pattern *p, size_t place)
{
    double result = value(p, 0, place); /* its factor is 1 */
    for (unsigned rank = 1; rank < p->ranks; rank++) {
        double next = value(p, rank, place) * (p->op == REDUCE_MULSUM ? pattern_scalar(rank) : 1);
        result = p->op == REDUCE_PROD  ? result * next
                 : p->op == REDUCE_MAX ? fmax(result, next)
                 : p->op == REDUCE_MIN ? fmin(result, next)
                                       : result + next;
    }
    if (p->op != REDUCE_AVG)
        return result;
    result /= p->ranks;
    return is_whole(p->type) ? trunc(result) : result;
}

/* The values have a period at every rank, in which they are made once: is_chosen has another one,
 * whose strides are met by the least common multiple being tried. */
size_t pattern_period(const struct pattern *p)
{
    size_t stride = 1;
    if (p->ranks > 1 && p->op == REDUCE_PROD)
        stride = stride_for(p->ranks,
                            is_whole(p->type) ? fmin(log2(element_whole_max(p->type)), 30) : 6);
    else if (p->ranks > 1 && p->op != REDUCE_MAX && p->op != REDUCE_MIN)
        stride = stride_for(p->ranks, sum_max(p));
    return PERIOD * stride;
}

static void fill(const struct pattern *p,
                 double (*value_of)(const struct pattern *, unsigned, size_t), unsigned rank,
                 size_t first, size_t count, void *to)
{
    size_t size = element_size(p->type), period = pattern_period(p),
           made = count < period ? count : period;
    char *at = to;
    for (size_t i = 0; i < made; i++)
        element_store(p->type, at + i * size, value_of(p, rank, first + i));
    for (size_t done = made; done < count;) { /* by what is there, twice as much each time */
        size_t n = done < count - done ? done : count - done;
        memcpy(at + done * size, at, n * size);
        done += n;
    }
}

static double reduced_value(const struct pattern *p, unsigned rank, size_t place)
{
    (void)rank;
    return reduced(p, place);
}

void pattern_fill(const struct pattern *p, unsigned rank, size_t first, size_t count, void *to)
{
    fill(p, value, rank, first, count, to);
}

void pattern_reduced(const struct pattern *p, size_t first, size_t count, void *to)
{
    fill(p, reduced_value, 0, first, count, to);
}

double pattern_tolerance(const struct pattern *p)
{
    if (p->op != REDUCE_AVG || is_whole(p->type))
        return 0;
    return 4 / element_whole_max(p->type) * (p->ranks > 1);
}

size_t pattern_wrong(enum element type, double tolerance, const void *got, const void *want,
                     size_t count)
{
    size_t size = element_size(type), wrong = 0;
    const char *a = got, *b = want;
    if (memcmp(got, want, count * size) == 0)
        return 0;
    for (size_t i = 0; i < count; i++, a += size, b += size) {
        if (memcmp(a, b, size) == 0)
            continue;
        double x = element_load(type, a), y = element_load(type, b);
        wrong += !(tolerance > 0 && fabs(x - y) <= tolerance * fabs(y));
    }
    return wrong;
}
