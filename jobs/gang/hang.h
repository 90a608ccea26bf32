/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks never do what a job waits for: judged from looks at every rank, each with how far it
 * is (lib/base/progress). Pure; the caller has the clock. Times are milliseconds. */
#ifndef DRARUN_JOBS_HANG_H
#define DRARUN_JOBS_HANG_H

#include <stdbool.h>
#include <stdint.h>

struct hang_look {
    bool stopped;    /* by SIGSTOP or SIGTSTP */
    bool alone;      /* it works by itself... */
    uint64_t cpu_us; /* ...and this is what it has used: what grows is no hang */
    uint64_t step;   /* 0: it has told none */
};

enum hang_kind {
    HANG_NONE = 0,
    HANG_STOPPED, /* these, while others are not */
    HANG_BEHIND,  /* nobody moves, and these have not come as far as the others */
};

struct hang;

/* after_ms: from the last movement to a hang; longer where single steps take long, five times the
 * longest of them. Stopped ranks count after half of it. NULL without memory. */
struct hang *hang_new(uint32_t ranks, int64_t after_ms);
void hang_free(struct hang *hang);

/* One rank's; look NULL: it has ended, and nobody waits for it. */
void hang_see(struct hang *hang, uint32_t rank, const struct hang_look *look, int64_t now_ms);
/* This look is late_ms late, which is time that nobody has hung for. Not more is forgiven: else a
 * hang would never be seen where all looks are late. */
void hang_skip(struct hang *hang, int64_t late_ms, int64_t now_ms);

/* After all ranks were seen. ret_ranks: room for all of them; *ret_count of it are named, in
 * order, 0 with HANG_NONE. */
enum hang_kind hang_judge(struct hang *hang, int64_t now_ms, uint32_t *ret_ranks,
                          uint32_t *ret_count);
/* Since when, for people: of that rank. */
int64_t hang_lasts_ms(const struct hang *hang, uint32_t rank, int64_t now_ms);

#endif
