/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/pairing/pairing.h"

#include <stdbool.h>

/* At most 64 pairs: 65 of a class never outweigh one of the next. The order in the lists comes
 * last: its sum is at most 64 * 63. 65^5 * 4096 * 64 stays under 2^49. */
#define BASE 65
#define ORDER 4096

int64_t pairing_cost(uint32_t row, uint32_t column, uint8_t class)
{
    int64_t cost = 0;
    if (class > 0) {
        cost = 1;
        for (uint8_t c = 1; c < class; c++)
            cost *= BASE;
    }
    return cost * ORDER + (row > column ? row - column : column - row);
}

/* One-based, with 0 for "none": the usual form of the shortest augmenting path method. */
struct solver {
    uint32_t rows, columns; /* rows <= columns */
    int64_t cost[PAIRING_MAX + 1][PAIRING_MAX + 1];
    int64_t u[PAIRING_MAX + 1], v[PAIRING_MAX + 1];
    uint32_t match[PAIRING_MAX + 1], way[PAIRING_MAX + 1];
};

/* One row more in the matching. */
static void augment(struct solver *s, uint32_t row)
{
    int64_t least[PAIRING_MAX + 1];
    bool used[PAIRING_MAX + 1] = {false};
    uint32_t at = 0;
    for (uint32_t j = 0; j <= s->columns; j++)
        least[j] = INT64_MAX;
    s->match[0] = row;
    do {
        int64_t delta = INT64_MAX;
        uint32_t i = s->match[at], next = 0;
        used[at] = true;
        for (uint32_t j = 1; j <= s->columns; j++) {
            if (used[j])
                continue;
            int64_t reduced = s->cost[i][j] - s->u[i] - s->v[j];
            if (reduced < least[j]) {
                least[j] = reduced;
                s->way[j] = at;
            }
            if (least[j] < delta) {
                delta = least[j];
                next = j;
            }
        }
        for (uint32_t j = 0; j <= s->columns; j++) {
            if (used[j]) {
                s->u[s->match[j]] += delta;
                s->v[j] -= delta;
            } else if (least[j] != INT64_MAX) {
                least[j] -= delta;
            }
        }
        at = next;
    } while (s->match[at] != 0);
    for (; at != 0; at = s->way[at])
        s->match[at] = s->match[s->way[at]];
}

int64_t pairing_assign(uint32_t rows, uint32_t columns,
                       const uint8_t classes[PAIRING_MAX][PAIRING_MAX], uint32_t *ret_columns)
{
    struct solver s;
    bool turned = rows > columns;
    int64_t total = 0;
    s.rows = turned ? columns : rows;
    s.columns = turned ? rows : columns;
    for (uint32_t j = 0; j <= s.columns; j++) {
        s.u[j] = s.v[j] = 0;
        s.match[j] = s.way[j] = 0;
    }
    for (uint32_t i = 1; i <= s.rows; i++)
        for (uint32_t j = 1; j <= s.columns; j++)
            s.cost[i][j] = turned ? pairing_cost(j - 1, i - 1, classes[j - 1][i - 1])
                                  : pairing_cost(i - 1, j - 1, classes[i - 1][j - 1]);
    for (uint32_t i = 1; i <= s.rows; i++)
        augment(&s, i);
    for (uint32_t r = 0; r < rows; r++)
        ret_columns[r] = PAIRING_NONE;
    for (uint32_t j = 1; j <= s.columns; j++) {
        if (s.match[j] == 0)
            continue;
        total += s.cost[s.match[j]][j];
        ret_columns[turned ? j - 1 : s.match[j] - 1] = turned ? s.match[j] - 1 : j - 1;
    }
    return total;
}
