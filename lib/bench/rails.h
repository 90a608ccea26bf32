/* SPDX-License-Identifier: Apache-2.0 */
/* Which NIC is slow: ranks of several hosts meet those that have the same place on another host,
 * so that each pair goes over one NIC at each end and those of a rail go over the same switches. A
 * rank that is slow there, and as fast as others on its own host, has a slow NIC. Pure. */
#ifndef DRARUN_LIB_BENCH_RAILS_H
#define DRARUN_LIB_BENCH_RAILS_H

#include "lib/bench/slowest.h"

/* Each of `count` meets every other one once: in each of these rounds everybody has one partner,
 * itself where it pauses (circle method). */
unsigned rounds_of(unsigned count);
unsigned round_partner(unsigned who, unsigned round, unsigned count);

struct rails {
    unsigned ranks, hosts, each; /* each: ranks of a host, and rails; 0: hosts have not as many */
    unsigned *host, *rail;       /* of each rank; a host's first rank has rail 0 */
    unsigned *rank;              /* hosts times each: by host and rail */
};

/* hosts: what each rank calls its own. 0 or -ENOMEM. */
int rails_of(const char *const *hosts, unsigned ranks, struct rails *ret_rails);
void rails_done(struct rails *rails);

/* With less than four hosts a rank meets neighbours of its partner too: of two ends alone nobody
 * knows which is slow. */
unsigned rails_rounds(const struct rails *rails);
unsigned rails_partner(const struct rails *rails, unsigned rank, unsigned round);

struct rails_host {
    unsigned host;
    double seconds, usual; /* of its fastest rail */
};

struct rails_slow {
    struct slowest_rank *nics; /* the slowest first; those of hosts that are named stand there */
    size_t nic_count;
    struct rails_host *hosts; /* all rails are slow: what they share */
    size_t host_count;
    struct slowest_pair *paths; /* between NICs that are not slow themselves */
    size_t path_count;
    size_t pairs_seen, suspects; /* as slowest_find's */
};

/* far, near: as slowest_find's, of the pairs above and of pairs on one host. Ranks that are slow on
 * their own host too are not here. 0 or -ENOMEM. */
int rails_find(const struct rails *rails, const double *far, const double *near,
               struct rails_slow *ret_slow);
void rails_slow_done(struct rails_slow *slow);

#endif
