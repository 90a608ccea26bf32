/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/ranks/worker_ranges.h"

void worker_ranges(const uint32_t *workers, uint32_t count, uint32_t max, struct buf *out)
{
    uint32_t ranges = 0;
    for (uint32_t i = 0; i < count;) {
        uint32_t n = 1;
        while (i + n < count && workers[i + n] == workers[i] + n)
            n++;
        if (ranges == max) {
            buf_add_str(out, ",...");
            return;
        }
        buf_add_str(out, ranges++ ? "," : "");
        buf_printf(out, "%u", workers[i]);
        if (n > 1)
            buf_printf(out, "-%u", workers[i + n - 1]);
        i += n;
    }
}
