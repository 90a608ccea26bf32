/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor, of most programs their standard input, on its way to a rank, or to all: read only
 * as fast as the agents pass it on, only while somebody wants it, and never from a terminal that
 * belongs to another job of the shell. Loop thread only. */
#ifndef DRARUN_LAUNCHER_INPUT_H
#define DRARUN_LAUNCHER_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <event2/event.h>

struct input_owner {
    /* The next bytes; length 0 is the end. To every agent that takes part. */
    void (*data)(void *arg, const void *data, size_t length);
    void *arg;
};

struct input;

/* False when it is closed or /dev/null: then no rank needs a pipe. */
bool input_is_there(int fd);

/* fd is borrowed, and its flags stay as they are. agents: how many take part. NULL without memory.
 * Nothing is read before input_start. */
struct input *input_new(struct event_base *base, int fd, uint32_t agents,
                        const struct input_owner *owner);
void input_free(struct input *input);

void input_start(struct input *input);
/* Nobody wants it any more; final. */
void input_stop(struct input *input);
/* The agent (counted among those that take part) has passed on so many bytes. False when it had not
 * been given as many. */
bool input_passed(struct input *input, uint32_t agent, uint64_t bytes);
/* We may have come to the foreground (SIGCONT). */
void input_look(struct input *input);

#endif
