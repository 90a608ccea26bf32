/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/gang/hang.h"

#include <stdlib.h>

#define STEPS_OF_START 3u /* meeting takes its time, which says nothing about later steps */
#define TIMES_LONGEST 5

struct seen {
    struct hang_look look;
    int64_t moved_ms;   /* its step, or its work alone */
    int64_t stopped_ms; /* since when; 0: it is not */
    bool known, ended;
};

struct hang {
    uint32_t ranks;
    int64_t after_ms, moved_ms, longest_ms; /* moved_ms: of any rank; 0: nothing was seen yet */
    struct seen seen[];
};

struct hang *hang_new(uint32_t ranks, int64_t after_ms)
{
    struct hang *hang = calloc(1, sizeof *hang + ranks * sizeof hang->seen[0]);
    if (hang) {
        hang->ranks = ranks;
        hang->after_ms = after_ms;
    }
    return hang;
}

void hang_free(struct hang *hang)
{
    free(hang);
}

static bool has_moved(const struct seen *seen, const struct hang_look *look)
{
    return !seen->known || look->step != seen->look.step ||
           (look->alone && look->cpu_us != seen->look.cpu_us);
}

static void move(struct hang *hang, struct seen *seen, uint64_t step, int64_t now_ms)
{
    int64_t took = now_ms - hang->moved_ms;
    if (hang->moved_ms && step > STEPS_OF_START && took > hang->longest_ms)
        hang->longest_ms = took;
    hang->moved_ms = seen->moved_ms = now_ms;
}

void hang_see(struct hang *hang, uint32_t rank, const struct hang_look *look, int64_t now_ms)
{
    if (rank >= hang->ranks)
        return;
    struct seen *seen = &hang->seen[rank];
    if (!look) {
        if (!seen->ended)
            move(hang, seen, 0, now_ms);
        seen->ended = true;
        return;
    }
    seen->ended = false;
    if (has_moved(seen, look))
        move(hang, seen, look->step, now_ms);
    seen->stopped_ms = !look->stopped ? 0 : seen->stopped_ms ? seen->stopped_ms : now_ms;
    seen->look = *look;
    seen->known = true;
}

static void skip(int64_t *time_ms, int64_t late_ms, int64_t now_ms)
{
    if (*time_ms)
        *time_ms = now_ms - *time_ms < late_ms ? now_ms : *time_ms + late_ms;
}

void hang_skip(struct hang *hang, int64_t late_ms, int64_t now_ms)
{
    skip(&hang->moved_ms, late_ms, now_ms);
    for (uint32_t i = 0; i < hang->ranks; i++) {
        skip(&hang->seen[i].moved_ms, late_ms, now_ms);
        skip(&hang->seen[i].stopped_ms, late_ms, now_ms);
    }
}

static uint32_t find_stopped(const struct hang *hang, int64_t now_ms, uint32_t *ret_ranks)
{
    uint32_t count = 0, running = 0;
    for (uint32_t i = 0; i < hang->ranks; i++) {
        const struct seen *seen = &hang->seen[i];
        if (!seen->known || seen->ended)
            continue;
        if (seen->stopped_ms && now_ms - seen->stopped_ms >= hang->after_ms / 2)
            ret_ranks[count++] = i;
        else if (!seen->stopped_ms)
            running++;
    }
    return running > 0 ? count : 0;
}

static uint32_t find_behind(const struct hang *hang, uint32_t *ret_ranks)
{
    uint64_t least = UINT64_MAX, most = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < hang->ranks; i++) {
        const struct seen *seen = &hang->seen[i];
        if (!seen->known || seen->ended)
            continue;
        least = seen->look.step < least ? seen->look.step : least;
        most = seen->look.step > most ? seen->look.step : most;
    }
    for (uint32_t i = 0; i < hang->ranks && least < most; i++)
        if (hang->seen[i].known && !hang->seen[i].ended && hang->seen[i].look.step == least)
            ret_ranks[count++] = i;
    return count;
}

enum hang_kind hang_judge(struct hang *hang, int64_t now_ms, uint32_t *ret_ranks,
                          uint32_t *ret_count)
{
    int64_t wait = hang->longest_ms * TIMES_LONGEST;
    *ret_count = find_stopped(hang, now_ms, ret_ranks);
    if (*ret_count > 0)
        return HANG_STOPPED;
    wait = wait > hang->after_ms ? wait : hang->after_ms;
    if (now_ms - hang->moved_ms < wait)
        return HANG_NONE;
    *ret_count = find_behind(hang, ret_ranks);
    return *ret_count > 0 ? HANG_BEHIND : HANG_NONE;
}

int64_t hang_lasts_ms(const struct hang *hang, uint32_t rank, int64_t now_ms)
{
    const struct seen *seen = &hang->seen[rank];
    return now_ms - (seen->stopped_ms ? seen->stopped_ms : seen->moved_ms);
}
