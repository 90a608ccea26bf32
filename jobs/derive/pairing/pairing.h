/* SPDX-License-Identifier: Apache-2.0 */
/* The best one-to-one pairing of GPUs and NICs over the distance of each pair: the fewest pairs of
 * the worst class, then of the next one, and so on; among those the order of both lists is kept as
 * far as it can be. Exact (shortest augmenting paths). Pure. */
#ifndef DRARUN_JOBS_PAIRING_H
#define DRARUN_JOBS_PAIRING_H

#include <stddef.h>
#include <stdint.h>

#define PAIRING_MAX 64u
#define PAIRING_CLASSES 6u /* a class is 0 (best) to 5 */
#define PAIRING_NONE UINT32_MAX

/* The order that pairing_assign minimises: lower is better; comparable for one rows x columns. */
int64_t pairing_cost(uint32_t row, uint32_t column, uint8_t class);

/* classes[row][column]; rows and columns at most PAIRING_MAX. ret_columns[row] is the column of the
 * row, PAIRING_NONE where there are more rows than columns. Returns the total cost. */
int64_t pairing_assign(uint32_t rows, uint32_t columns,
                       const uint8_t classes[PAIRING_MAX][PAIRING_MAX], uint32_t *ret_columns);

#endif
