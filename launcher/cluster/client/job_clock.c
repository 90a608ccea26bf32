/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/job_clock.h"

#include <stdatomic.h>
#include <time.h>

#include "lib/base/clock.h"

int64_t lead_now(void)
{
    static _Atomic int64_t kept;
    int64_t offset = kept, none = 0;
    struct timespec now;
    if (!offset) {
        clock_gettime(CLOCK_REALTIME, &now);
        offset = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - clock_ms();
        if (!atomic_compare_exchange_strong(&kept, &none, offset))
            offset = none; /* another thread was first */
    }
    return clock_ms() + offset;
}
