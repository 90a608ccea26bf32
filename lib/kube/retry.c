/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/retry.h"

bool retry_in_doubt(const struct retry_facts *facts)
{
    if (facts->status == 0)
        return facts->sent;
    /* an API server that is overloaded or starting says Retry-After; it has done nothing then */
    return facts->status >= 500 && facts->retry_after_ms < 0;
}

bool retry_wanted(const struct retry_facts *facts)
{
    if (facts->hopeless)
        return false;
    if (facts->status == 0)
        return !facts->sent || facts->repeatable;
    if (facts->status == 429)
        return true;
    /* quotas are counted by an object of their own, on which creates at the same time meet
     * (kubernetes#67761): nothing was created */
    if (facts->status == 409)
        return facts->conflict;
    if (facts->status == 401 || facts->status == 403)
        return facts->passes;
    /* 501 and 505 are answers that stay */
    if (facts->status < 500 || facts->status == 501 || facts->status == 505)
        return false;
    return facts->retry_after_ms >= 0 || facts->repeatable;
}

int64_t retry_pause_ms(unsigned next, int64_t max_ms, int64_t retry_after_ms, double chance)
{
    int64_t pause = RETRY_FIRST_MS;
    for (unsigned i = 2; i < next && pause < max_ms; i++)
        pause *= 2;
    if (pause > max_ms)
        pause = max_ms;
    pause = pause / 2 + (int64_t)((double)pause * chance);
    if (retry_after_ms > RETRY_AFTER_MAX_MS)
        retry_after_ms = RETRY_AFTER_MAX_MS;
    if (retry_after_ms > 0 && pause < retry_after_ms)
        pause = retry_after_ms + (int64_t)((double)RETRY_FIRST_MS * chance);
    return pause;
}

unsigned retry_count_rereads(unsigned before, int64_t since_ms)
{
    return since_ms < RETRY_PEACE_MS ? before + 1 : 1;
}
