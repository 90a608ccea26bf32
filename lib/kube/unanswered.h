/* SPDX-License-Identifier: Apache-2.0 */
/* That the server has answered nothing for a while, for people (client.h). Private to lib/kube. */
#ifndef DRARUN_KUBE_UNANSWERED_H
#define DRARUN_KUBE_UNANSWERED_H

#include <event2/event.h>
#include <stdbool.h>
#include "lib/kube/client.h"

struct unanswered { /* zeroed: nobody is told, and reads have no limit of their own */
    kube_unanswered_fn fn;
    void *arg;
    struct event *timer;
    bool told;
    int64_t since_ms;     /* when the first call without an answer was begun; 0: there is none */
    int64_t reads_end_ms; /* of those before the first answer; 0: no limit */
    char why[256];        /* why the last try had no answer; "": none has failed */
};

void unanswered_done(struct unanswered *unanswered);
/* A call begins. Returns when it ends at the latest, given its own end. */
int64_t unanswered_begin(struct unanswered *unanswered, bool read, int64_t end_ms);
/* Reads have a limit of their own, and nothing was answered yet. */
bool unanswered_is_limited(const struct unanswered *unanswered);
/* A try had no answer; the server has answered one; no call is under way any more. */
void unanswered_note_failure(struct unanswered *unanswered, const char *why);
void unanswered_note_answer(struct unanswered *unanswered);
void unanswered_note_idle(struct unanswered *unanswered);

#endif
