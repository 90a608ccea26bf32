/* SPDX-License-Identifier: Apache-2.0 */
/* stdin of an agent's ranks: one queue that every open pipe reads at its own pace; the slowest one
 * decides when bytes are done with. Loop thread only; SIGPIPE is ignored. */
#ifndef DRARUN_WORKER_RANK_INPUT_H
#define DRARUN_WORKER_RANK_INPUT_H

#include <stddef.h>
#include <event2/event.h>
#include "drarun/error.h"

/* Called from rank_input_feed, rank_input_drop and the loop. */
typedef void (*rank_input_done_fn)(void *arg, size_t bytes);

struct rank_input;

struct rank_input *rank_input_new(struct event_base *base, size_t slots, rank_input_done_fn done,
                                  void *arg);
void rank_input_free(struct rank_input *in);

/* Makes the pipe of a rank, which gets what is fed from now on; the caller closes the rank's end.
 * Returns -errno. */
int rank_input_open(struct rank_input *in, size_t slot, int *ret_fd);
/* The rank wants no more. Any slot may be dropped, at any time. */
void rank_input_drop(struct rank_input *in, size_t slot);
/* length 0 is the end: pipes close when they have got all before. -ENOMEM, or -EPIPE after the
 * end. */
int rank_input_feed(struct rank_input *in, const void *data, size_t length);

#endif
