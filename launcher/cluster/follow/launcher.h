/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher of a job that is followed, while nothing comes of it: why it does not start, whether
 * it is silent, and when that is given up. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FOLLOW_LAUNCHER_H
#define DRARUN_LAUNCHER_CLUSTER_FOLLOW_LAUNCHER_H

#include "launcher/cluster/follow/pod.h"
#include "launcher/cluster/client/launcher_silence.h"

#define FOLLOW_WAITED_MS 2000 /* before something is said of waiting */
#define FOLLOW_LAUNCHER_WAIT "waiting for the launcher to start"

struct follow_launcher {
    struct kube_client *client; /* borrowed, as is pod */
    struct follow_pod *pod;
    void (*changed)(void *arg);               /* something is to be looked at */
    void (*say)(void *arg, const char *text); /* to the user */
    void *arg;
    struct kube_watch *events; /* of the namespace, once one is late or silent; NULL: not yet */
    bool tells_all; /* also what is awaited while nothing fails: no status line shows it */
    char *told;     /* what was said last, without what changes with each try; NULL: nothing */
    struct kube_call *asking; /* for its Lease */
    int64_t ask_ms;           /* when to ask next; 0: as soon as it has had the time to take it */
    int64_t silent_since_ms;  /* when it was first found silent; 0: it is not */
    struct launcher_silence silence;
    bool silent; /* twice: an API server that was away has not taken its renewal yet */
    bool said_silent, said_lost;
};

/* Of a launcher that has not started since since_ms: says why, and again when that is something
 * else. timeouts: of the spec; NULL: nobody's patience ends. *ret_again_ms: when to look again; 0:
 * when something has changed. Negative: it is given up, with the error. */
int follow_launcher_starts(struct follow_launcher *launcher, const struct spec_timeouts *timeouts,
                           int64_t since_ms, int64_t now, int64_t *ret_again_ms,
                           struct drarun_error *err);
/* Of one that leads: asks for its Lease now and then, and says that it is silent, that its node
 * does not answer, why the pod that is to follow it does not start, and that it renews the Lease
 * again. final: the job has no restarts left, and
 * this process is its client. *ret_again_ms as above. Negative: nobody will lead it, with the
 * error. */
int follow_launcher_answers(struct follow_launcher *launcher, bool final, int64_t now,
                            int64_t *ret_again_ms, struct drarun_error *err);
/* That it is silent; nothing else. */
void follow_launcher_words(const struct follow_launcher *launcher, struct buf *out);

/* Frees what it holds. */
void follow_launcher_done(struct follow_launcher *launcher);

#endif
