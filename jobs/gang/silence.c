/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/gang/silence.h"

#define NET_PER_S 2048u     /* a worker's share of pings and keep-alives */
#define CPU_US_PER_S 20000u /* 2 % of a CPU: waiting programs wake up now and then */
#define FALLBACK_BYTES (UINT64_C(256) << 20)
#define FALLBACK_PART 10u

/* Counters may restart, as when a container was replaced: that is growth, too. */
static uint64_t grown(uint64_t now, uint64_t before)
{
    return now >= before ? now - before : now;
}

static bool moves(const struct silence *s, const struct silence_counts *now, uint32_t workers,
                  int64_t ms)
{
    uint64_t span_ms = ms > 0 ? (uint64_t)ms : 1;
    uint64_t quiet_bytes = NET_PER_S * (uint64_t)workers * span_ms / 1000;
    uint64_t quiet_us = CPU_US_PER_S * (uint64_t)workers * span_ms / 1000;
    uint64_t bytes =
        grown(now->net_bytes, s->before.net_bytes) + grown(now->loop_bytes, s->before.loop_bytes);
    return grown(now->output_bytes, s->before.output_bytes) > 0 ||
           grown(now->rdma_bytes, s->before.rdma_bytes) > quiet_bytes || bytes > quiet_bytes ||
           grown(now->cpu_us, s->before.cpu_us) > quiet_us;
}

enum silence_event silence_step(struct silence *s, const struct silence_counts *counts,
                                uint32_t workers, int64_t now_ms, int64_t hang_after_ms)
{
    bool first = !s->begun;
    if (first)
        s->first = *counts;
    bool moved = first || moves(s, counts, workers, now_ms - s->at_ms);
    s->begun = true;
    s->before = *counts;
    s->at_ms = now_ms;
    if (moved) {
        bool hung = s->hangs;
        s->moved_ms = now_ms;
        s->hangs = false;
        return hung ? SILENCE_RESUMED : SILENCE_NOTHING;
    }
    if (s->hangs || hang_after_ms <= 0 || now_ms - s->moved_ms < hang_after_ms)
        return SILENCE_NOTHING;
    s->hangs = true;
    return SILENCE_HANGS;
}

int64_t silence_lasts_ms(const struct silence *s, int64_t now_ms)
{
    return s->begun ? now_ms - s->moved_ms : 0;
}

uint64_t silence_net_bytes(const struct silence *s)
{
    return grown(s->before.net_bytes, s->first.net_bytes);
}

uint64_t silence_rdma_bytes(const struct silence *s)
{
    return grown(s->before.rdma_bytes, s->first.rdma_bytes);
}

bool silence_fell_back(struct silence *s, uint32_t workers)
{
    uint64_t net = silence_net_bytes(s), rdma = silence_rdma_bytes(s);
    if (s->fallen || net < FALLBACK_BYTES * workers || rdma >= net / FALLBACK_PART)
        return false;
    s->fallen = true;
    return true;
}
