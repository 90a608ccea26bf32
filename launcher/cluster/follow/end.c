/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow/end.h"

#include <stddef.h>
#include <string.h>

/* HOST_PID: a launcher in no pod (run --here) has written to its own terminal. */
static bool is_elsewhere(const char *leader)
{
    return strchr(leader, '_') != NULL;
}

/* The list of pods may be late with one that was never in it. */
static bool is_gone(const struct follow_end_facts *facts, bool was_there)
{
    return facts->leader && facts->pods_known && !facts->leader_is_there && !facts->open &&
           (was_there || facts->silent_ms >= FOLLOW_END_GONE_MS);
}

enum follow_end follow_end_judge(const struct follow_end_facts *facts)
{
    const char *leader = facts->leader, *pod = facts->pod;
    bool of_leader = pod && (!leader || strcmp(pod, leader) == 0);
    if (of_leader && (facts->recorded || facts->closed))
        return FOLLOW_END_READ;
    if (leader && is_elsewhere(leader))
        return FOLLOW_END_READ;
    if (!leader && !pod && facts->pods_known && !facts->pod_is_coming)
        return FOLLOW_END_READ; /* it ended without a launcher */
    if (facts->refused || is_gone(facts, of_leader) || facts->silent_ms >= FOLLOW_END_SILENT_MS)
        return FOLLOW_END_LOST;
    return FOLLOW_END_AWAITED;
}

int64_t follow_end_next_ms(int64_t silent_ms)
{
    if (silent_ms < FOLLOW_END_GONE_MS)
        return FOLLOW_END_GONE_MS - silent_ms;
    return silent_ms < FOLLOW_END_SILENT_MS ? FOLLOW_END_SILENT_MS - silent_ms : 0;
}
