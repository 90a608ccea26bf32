/* SPDX-License-Identifier: Apache-2.0 */
/* When a request is sent again, and after which pause. Pure: time and chance come in as values. */
#ifndef DRARUN_KUBE_RETRY_H
#define DRARUN_KUBE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#define RETRY_FIRST_MS 100
#define RETRY_MAX_MS 5000
#define RETRY_AFTER_MAX_MS 60000 /* what a proxy says of an outage, it may say for hours */
#define RETRY_PEACE_MS 120000    /* without a list that is read again: the next is the first */

struct retry_facts {
    int status;             /* 0: no whole answer */
    int64_t retry_after_ms; /* negative: not said */
    bool sent;              /* some of it may have reached the server */
    bool repeatable;        /* may be sent again though it was perhaps processed */
    bool passes;            /* a refusal (401, 403) that may pass: client_refusal_passes */
    bool conflict;          /* 409 of a create, of an object that is not there yet */
    bool hopeless;          /* no answer, for a reason that stays: a certificate that is refused */
};

/* Whether the request may go out again. */
bool retry_wanted(const struct retry_facts *facts);
/* Was it perhaps processed? */
bool retry_in_doubt(const struct retry_facts *facts);
/* The pause before try number `next` (from 2), doubling up to max_ms; chance in [0, 1). As long as
 * the server asked for, but no more than RETRY_AFTER_MAX_MS. */
int64_t retry_pause_ms(unsigned next, int64_t max_ms, int64_t retry_after_ms, double chance);
/* Counts the full lists that follow one another because the server had forgotten where a watch was:
 * before, and one more now, since_ms after the last. A list after RETRY_PEACE_MS is the first
 * again. The first is read at once, the others after growing pauses. */
unsigned retry_count_rereads(unsigned before, int64_t since_ms);

#endif
