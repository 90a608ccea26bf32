/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/gang/gang.h"
#include "jobs/gang/waiting.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define WORKERS_MAX 64
#define START_MS INT64_C(1700000000000)

static const struct spec_timeouts timeouts = {.queue = 60000,
                                              .nodes = 50000,
                                              .allocation = 40000,
                                              .image_pull = 30000,
                                              .start = 20000,
                                              .total = 0};

/* ---- workers in one letter each ---- */

static char no_secret_text[] =
    "MountVolume.SetUp failed for volume \"v\" : secret \"nope\" not found";
static const struct news no_secret = {
    .items[NEWS_MOUNT_FAILED] = {.text = no_secret_text, .at_ms = START_MS, .count = 2, .same = 2}};

static char backoff_text[] = "pod didn't trigger scale-up: 1 in backoff after failed scale-up";
static char ordered_text[] = "pod triggered scale-up: [{a4-pool 0->1 (max: 4)}]";
static const struct news ordered = {
    .items[NEWS_SCALE_UP] = {.text = ordered_text, .at_ms = START_MS + 2000, .count = 1}};
static const struct news refused = {
    .items[NEWS_SCALE_UP] = {.text = ordered_text, .at_ms = START_MS + 2000, .count = 1},
    .items[NEWS_NO_SCALE_UP] = {.text = backoff_text, .at_ms = START_MS + 20000, .count = 1}};

static struct pod_state worker_of(char letter)
{
    struct pod_state w = {.phase = POD_ABSENT, .claim = CLAIM_ABSENT, .exit_code = -1};
    w.container = "worker";
    w.image = "example/app:1";
    w.image_of = POD_IMAGE_RANKS;
    w.name = "job-w";
    switch (letter) {
    case '.': /* nothing there */
        return w;
    case 'V': /* its pod was deleted before anybody looked */
        w.vanished = true;
        return w;
    case 'k': /* its claim is there, and no pod */
        w.claim = CLAIM_PENDING;
        return w;
    case 'g': /* gated by somebody */
        w.phase = POD_GATED;
        w.claim = CLAIM_PENDING;
        return w;
    case 'n': /* the scheduler has not looked */
    case 'u': /* it has, and found no node */
    case 'U': /* the same, and a node comes */
        w.phase = POD_UNSCHEDULED;
        w.claim = CLAIM_PENDING;
        w.unschedulable = letter != 'n';
        w.node_comes = letter == 'U';
        w.ordered_ms = letter == 'U' ? INT64_MAX : 0; /* its Event has no time */
        w.reason = w.unschedulable ? "Unschedulable" : NULL;
        w.message = w.unschedulable ? "0/4 nodes are available: 4 cannot allocate all claims. "
                                      "preemption: 0/4 nodes are available."
                                    : NULL;
        return w;
    case 'h': /* it has, and holds it back with its gang */
        w = worker_of('u');
        w.group = "job-w";
        w.message = "pod group is unschedulable, waiting for minCount pods from a gang to be "
                    "scheduled";
        return w;
    case 'O': /* a node was ordered after 2 s */
    case 'R': /* and later refused */
        w = worker_of('u');
        w.node_comes = letter == 'O';
        w.ordered_ms = START_MS + 2000;
        w.news = letter == 'O' ? &ordered : &refused;
        return w;
    case 'A': /* each node has a worker already */
        w = worker_of('u');
        w.message = "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. "
                    "preemption: 0/2 nodes are available.";
        return w;
    case 'C': /* a class that does not exist */
        w = worker_of('u');
        w.message = "0/4 nodes are available: request gpu-0: device class gpu.example.com does not "
                    "exist. preemption: 0/4 nodes are available.";
        return w;
    case 'T': /* no template */
        w = worker_of('n');
        w.claim = CLAIM_NO_TEMPLATE;
        w.claim_message = "resource claim template \"job-w\": not found";
        return w;
    case 'Q': /* its claim is refused */
        w = worker_of('n');
        w.claim = CLAIM_REFUSED;
        w.claim_message = "exceeded quota: q";
        return w;
    default:
        w.phase = POD_BOUND;
        w.claim = CLAIM_ALLOCATED;
        w.devices = 2;
        w.node = "node-a";
    }
    switch (letter) {
    case 'b':
        return w;
    case 'S': /* its claim has lost its devices, or never had any */
        w.claim = CLAIM_PENDING;
        w.devices = 0;
        return w;
    case 'm': /* a volume cannot be mounted */
        w.news = &no_secret;
        return w;
    case 'p': /* an image comes */
        w.phase = POD_PULLING;
        w.image_comes = true;
        return w;
    case 'i': /* an image whose name is none */
        w.phase = POD_PULLING;
        w.failing = true;
        w.reason = "InvalidImageName";
        return w;
    case 'c': /* a container cannot be made */
        w.phase = POD_CREATING;
        w.failing = true;
        w.reason = "CreateContainerConfigError";
        w.message = "secret \"job-key\" not found";
        return w;
    case 'w': /* a sidecar has ended, and is started again */
    case 'W': /* too often */
        w.phase = POD_CREATING;
        w.failing = letter == 'W';
        w.container = "log";
        w.reason = POD_RESTARTS;
        w.message = "back-off 10s restarting failed container=log";
        return w;
    case 'K': /* its runtime has no image volumes */
        w.phase = POD_CREATING;
        w.failing = true;
        w.image_volume = true;
        w.reason = "CreateContainerError";
        w.message = "failed to mkdir \"\"";
        return w;
    case 'e': /* exited with 3 */
        w.phase = POD_ENDED;
        w.end = POD_END_EXIT;
        w.exit_code = 3;
        w.message = NULL;
        return w;
    case 'X': /* the kernel did not start its program */
        w.phase = POD_ENDED;
        w.end = POD_END_EXIT;
        w.exit_code = POD_RUNTIME_STATUS;
        w.message = NULL;
        return w;
    case 's': /* could not be started */
        w.phase = POD_ENDED;
        w.end = POD_END_START;
        w.message = "exec format error";
        return w;
    default:
        w.phase = POD_RUNNING;
        w.ip = "10.0.0.1";
    }
    switch (letter) {
    case 'r':
        return w;
    case 'v': /* is being evicted */
        w.disrupted = true;
        w.deleting = true;
        w.end = POD_END_EVICTED;
        return w;
    case 'd': /* is being deleted */
        w.deleting = true;
        return w;
    case 'x': /* its node does not answer */
        w.not_ready = true;
        return w;
    default:
        fail_msg("no worker is '%c'", letter);
    }
    return w;
}

/* ---- scenes ---- */

struct look {
    int64_t at; /* ms after the start */
    const char *workers;
    const char *phase; /* afterwards */
    enum gang_action action;
    const char *event;
    int64_t next; /* after the start; -1: when something changes */
    const char *clock;
    uint32_t inspected;
};

#define LOOKS_MAX 14

static const struct scene {
    const char *name;
    const char *group; /* PodGroup job-w; NULL: not read */
    unsigned steps, next_step;
    enum gang_forecast forecast;
    bool scheduler_waits, spread;
    int64_t total;
    struct look looks[LOOKS_MAX];
    enum drarun_errkind kind; /* of the last look's error */
    const char *text;
} scenes[] = {
    {.name = "all goes well",
     .looks = {{0, "....", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "....", "placing", GANG_WAIT, "none", 40000, "allocation", 0},
               {100, "nnnn", "placing", GANG_WAIT, "none", 40000, "allocation", 0},
               {300, "bbnn", "placing", GANG_WAIT, "none", 40000, "allocation", 0},
               {400, "pbbb", "pulling", GANG_WAIT, "placed", 400, "imagePull", 0},
               {400, "pbbb", "pulling", GANG_WAIT, "none", 30400, "imagePull", 0},
               {900, "rrrp", "pulling", GANG_WAIT, "none", 30400, "imagePull", 0},
               {950, "rrrr", "starting", GANG_WAIT, "up", 950, "start", 0},
               {960, "rrrr", "starting", GANG_WAIT, "none", 20950, "start", 3},
               {990, "rrrr", "running", GANG_START, "checked", -1, "none", 4},
               {9000, "rrrr", "running", GANG_WAIT, "none", -1, "none", 4}}},
    {.name = "the queue's clock stands for itself, and starts the others anew",
     .looks = {{0, "gg", "queued", GANG_WAIT, "none", 60000, "queue", 0},
               {50000, "nn", "placing", GANG_WAIT, "admitted", 50000, "allocation", 0},
               {60000, "nn", "placing", GANG_WAIT, "none", 90000, "allocation", 0},
               {65000, "gg", "queued", GANG_WAIT, "suspended", 65000, "queue", 0},
               {66000, "gg", "queued", GANG_WAIT, "none", 75000, "queue", 0},
               {70000, "nn", "placing", GANG_WAIT, "admitted", 70000, "allocation", 0},
               {71000, "nn", "placing", GANG_WAIT, "none", 110000, "allocation", 0}}},
    {.name = "queue deadline",
     .looks = {{0, "gg", "queued", GANG_WAIT, "none", 60000, "queue", 0},
               {60000, "gg", "ended", GANG_FAIL, "deadline", -1, "none", 0}},
     .kind = DRARUN_ERR_CAPACITY,
     .text = "0 of 2 workers were admitted within 1 min (timeouts.queue)"},
    {.name = "a part is given back once nothing has moved for the grace time",
     .looks = {{0, "rrnn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "rrnn", "placing", GANG_WAIT, "none", 40000, "allocation", 0},
               {1000, "rruu", "placing", GANG_WAIT, "none", 6000, "none", 0},
               {4000, "rruu", "placing", GANG_WAIT, "none", 6000, "none", 0},
               {5000, "rrru", "placing", GANG_WAIT, "none", 10000, "none", 0},
               {9999, "rrru", "placing", GANG_WAIT, "none", 10000, "none", 0},
               {10000, "rrru", "releasing", GANG_RELEASE_AND_RETRY, "blocked", -2, "none", 0},
               {10100, "ddd.", "releasing", GANG_WAIT, "none", -2, "none", 0},
               {12000, "ddd.", "releasing", GANG_WAIT, "none", 40000, "allocation", 0},
               {12400, "...k", "releasing", GANG_WAIT, "none", 40000, "allocation", 0},
               {12500, "....", "queued", GANG_CREATE, "resumed", 72500, "queue", 0},
               {12600, "nnnn", "placing", GANG_WAIT, "admitted", 12600, "allocation", 0},
               /* 100 ms in the queue do not count */
               {12700, "nnnn", "placing", GANG_WAIT, "none", 40100, "allocation", 0}}},
    {.name = "who holds nothing waits for capacity, and gives nothing back",
     .looks = {{0, "uuuu", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "uuuu", "placing", GANG_WAIT, "none", 5000, "none", 0},
               {6000, "uuuu", "placing", GANG_WAIT, "none", 40000, "allocation", 0},
               {40000, "uuuu", "ended", GANG_FAIL, "deadline", -1, "none", 0}},
     .kind = DRARUN_ERR_CAPACITY,
     .text = "0 of 4 workers have claims and nodes within 40 s (timeouts.allocation): 4 nodes: 4 "
             "cannot allocate all claims"},
    {.name = "the deadline comes before the next try knows why",
     .looks = {{0, "uuu", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "bbu", "placing", GANG_WAIT, "none", 5000, "none", 0},
               {5000, "bbu", "releasing", GANG_RELEASE_AND_RETRY, "blocked", -2, "none", 0},
               {40000, "...", "ended", GANG_FAIL, "deadline", -1, "none", 0}},
     .kind = DRARUN_ERR_CAPACITY,
     .text = "0 of 3 workers have claims and nodes within 40 s (timeouts.allocation): 4 nodes: 4 "
             "cannot allocate all claims (from the try before this one)"},
    {.name = "one worker per node, and too few nodes",
     .looks = {{0, "AAA", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {40000, "AAA", "ended", GANG_FAIL, "deadline", -1, "none", 0}},
     .spread = true,
     .kind = DRARUN_ERR_CAPACITY,
     .text = "0 of 3 workers have claims and nodes within 40 s (timeouts.allocation): 3 workers, "
             "one per node by placement.spread; 2 nodes fit; placement.spread: none lets them "
             "share nodes"},
    {.name = "never while a node is being added; its clock is its own",
     .looks = {{0, "rrUU", "placing", GANG_WAIT, "admitted", 0, "nodes", 0},
               {0, "rrUU", "placing", GANG_WAIT, "none", 50000, "nodes", 0},
               {30000, "rrUU", "placing", GANG_WAIT, "none", 50000, "nodes", 0},
               {31000, "rruu", "placing", GANG_WAIT, "none", 36000, "none", 0},
               {32000, "rrUU", "placing", GANG_WAIT, "none", 51000, "nodes", 0},
               {51000, "rrUU", "ended", GANG_FAIL, "deadline", -1, "none", 0}},
     .kind = DRARUN_ERR_CAPACITY,
     .text = "2 of 4 workers have claims and nodes; the requested nodes did not come within 50 s "
             "(timeouts.nodes): 4 nodes: 4 cannot allocate all claims"},
    {.name = "the nodes' clock counts from the first order, whatever is said since",
     .looks = {{0, "uu", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "uu", "placing", GANG_WAIT, "none", 5000, "none", 0},
               {3000, "Ou", "placing", GANG_WAIT, "none", 52000, "nodes", 0},
               {20000, "Ru", "placing", GANG_WAIT, "none", 25000, "none", 0},
               {30000, "Ru", "placing", GANG_WAIT, "none", 52000, "nodes", 0},
               {45000, "Ou", "placing", GANG_WAIT, "none", 52000, "nodes", 0},
               {52000, "Ru", "ended", GANG_FAIL, "deadline", -1, "none", 0}},
     .kind = DRARUN_ERR_CAPACITY,
     .text = "0 of 2 workers have claims and nodes; the requested nodes did not come within 50 s "
             "(timeouts.nodes): the autoscaler: pod didn't trigger scale-up: 1 in backoff after "
             "failed scale-up"},
    {.name = "the time before the order was allocation's, and so is that after its node",
     .looks = {{0, "uu", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {3000, "Ou", "placing", GANG_WAIT, "none", 52000, "nodes", 0},
               {4000, "bn", "placing", GANG_WAIT, "none", 42000, "allocation", 0}}},
    {.name = "never while an image is on its way",
     .looks = {{0, "rpuu", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "rpuu", "placing", GANG_WAIT, "none", 40000, "allocation", 0},
               {20000, "rpuu", "placing", GANG_WAIT, "none", 40000, "allocation", 0},
               {21000, "rruu", "placing", GANG_WAIT, "none", 26000, "none", 0},
               {26000, "rruu", "releasing", GANG_RELEASE_AND_RETRY, "blocked", -2, "none", 0}}},
    {.name = "the ladder's next step, at once where no node ever could",
     .steps = 2,
     .forecast = GANG_FORECAST_NEVER,
     .looks = {{0, "nnnn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {500, "uuuu", "releasing", GANG_NEXT_STEP, "no-node", 40000, "allocation", 0},
               {600, "....", "queued", GANG_CREATE, "resumed", 60600, "queue", 0}}},
    {.name = "no next step where none places more workers",
     .steps = 2,
     .forecast = GANG_FORECAST_NEVER,
     .next_step = GANG_STEP_NONE,
     .looks = {{0, "nnnn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {500, "uuuu", "placing", GANG_WAIT, "none", 5500, "none", 0},
               {5500, "uuuu", "placing", GANG_WAIT, "none", 40000, "allocation", 0},
               {40000, "uuuu", "ended", GANG_FAIL, "deadline", -1, "none", 0}},
     .kind = DRARUN_ERR_CAPACITY,
     .text = "0 of 4 workers have claims and nodes within 40 s (timeouts.allocation): 4 nodes: 4 "
             "cannot allocate all claims"},
    {.name = "no next step while the slices are being read",
     .steps = 2,
     .forecast = GANG_FORECAST_AWAITED,
     .looks = {{0, "nnnn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {500, "ruuu", "placing", GANG_WAIT, "none", 5500, "none", 0},
               {5500, "ruuu", "placing", GANG_WAIT, "none", 40000, "allocation", 0},
               {40000, "ruuu", "ended", GANG_FAIL, "deadline", -1, "none", 0}},
     .kind = DRARUN_ERR_CAPACITY,
     .text = "1 of 4 workers have claims and nodes within 40 s (timeouts.allocation): 4 nodes: 4 "
             "cannot allocate all claims"},
    {.name = "the ladder's next step after the grace time, then a retry",
     .steps = 2,
     .looks = {{0, "nnnn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {500, "ruuu", "placing", GANG_WAIT, "none", 5500, "none", 0},
               {5500, "ruuu", "releasing", GANG_NEXT_STEP, "no-node", 40000, "allocation", 0},
               {5600, "....", "queued", GANG_CREATE, "resumed", 65600, "queue", 0},
               {5600, "....", "placing", GANG_WAIT, "admitted", 5600, "allocation", 0},
               {6000, "ruuu", "placing", GANG_WAIT, "none", 11000, "none", 0},
               {11000, "ruuu", "releasing", GANG_RELEASE_AND_RETRY, "blocked", -2, "none", 0}}},
    {.name = "no next step while the scheduler holds all back from what others have",
     .steps = 2,
     .forecast = GANG_FORECAST_FULL,
     .scheduler_waits = true,
     .looks = {{0, "nnnn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {500, "uuuu", "placing", GANG_WAIT, "none", 5500, "none", 0},
               {5500, "uuuu", "placing", GANG_WAIT, "none", 30500, "none", 0},
               {20000, "bbbb", "pulling", GANG_WAIT, "placed", 20000, "imagePull", 0}}},
    {.name = "the error of a gang that the scheduler holds back has its group's words",
     .group = "{\"status\": {\"conditions\": [{\"type\": \"PodGroupScheduled\", \"status\": "
              "\"False\", \"reason\": \"Unschedulable\", \"message\": \"no luck\"}]}}",
     .scheduler_waits = true,
     .looks = {{0, "nnnn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {500, "hhuh", "placing", GANG_WAIT, "none", 5500, "none", 0},
               {40000, "hhuh", "ended", GANG_FAIL, "deadline", -1, "none", 0}},
     .kind = DRARUN_ERR_CAPACITY,
     .text = "0 of 4 workers have claims and nodes within 40 s (timeouts.allocation): PodGroup "
             "job-w cannot be scheduled (Unschedulable): no luck"},
    {.name = "what a scheduler has bound in part all the same is given back",
     .forecast = GANG_FORECAST_FULL,
     .scheduler_waits = true,
     .looks = {{0, "nnnn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {500, "bbuu", "placing", GANG_WAIT, "none", 5500, "none", 0},
               {5500, "bbuu", "placing", GANG_WAIT, "none", 30500, "none", 0},
               {30500, "bbuu", "releasing", GANG_RELEASE_AND_RETRY, "blocked", -2, "none", 0}}},
    {.name = "a worker is evicted before the ranks have started",
     .looks = {{0, "rrrr", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "rrrr", "pulling", GANG_WAIT, "placed", 0, "imagePull", 0},
               {0, "rrrr", "starting", GANG_WAIT, "up", 0, "start", 0},
               {5000, "rrvr", "releasing", GANG_RELEASE_AND_RETRY, "lost", -2, "none", 2}}},
    {.name = "a pod that vanishes without a trace",
     .looks = {{0, "nnnn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {500, "n.nn", "releasing", GANG_RELEASE_AND_RETRY, "lost", -2, "none", 0}}},
    {.name = "a pod that vanished before the first look",
     .looks = {{0, "n.nn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {500, "nVnn", "releasing", GANG_RELEASE_AND_RETRY, "lost", -2, "none", 0}}},
    {.name = "the only pod vanished before the first look",
     .looks = {{0, "V", "releasing", GANG_RELEASE_AND_RETRY, "lost", -2, "none", 0}}},
    {.name = "a node that does not answer",
     .looks = {{0, "rrrr", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {500, "rxrr", "releasing", GANG_RELEASE_AND_RETRY, "lost", -2, "none", 0}}},
    {.name = "news of a claim that come after its pod's",
     .looks = {{0, "nnnn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {500, "bSnn", "placing", GANG_WAIT, "none", 10500, "none", 0},
               {900, "bbnn", "placing", GANG_WAIT, "none", 40000, "allocation", 0},
               {11000, "bbnn", "placing", GANG_WAIT, "none", 40000, "allocation", 0}}},
    {.name = "a pod that has its node, and a claim without devices",
     .looks = {{0, "nnnn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {500, "bSnn", "placing", GANG_WAIT, "none", 10500, "none", 0},
               {10500, "bSnn", "releasing", GANG_RELEASE_AND_RETRY, "lost", -2, "none", 0}}},
    {.name = "an image's name",
     .looks = {{0, "bbbi", "ended", GANG_FAIL, "fatal", -1, "none", 0}},
     .kind = DRARUN_ERR_SPEC,
     .text = "worker 3 on node-a: image example/app:1 of the ranks is not a valid name"},
    {.name = "a class that does not exist",
     .looks = {{0, "nnnn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {500, "CCCC", "ended", GANG_FAIL, "fatal", -1, "none", 0}},
     .kind = DRARUN_ERR_SPEC,
     .text = "worker 0: device class gpu.example.com does not exist: install the driver that "
             "brings it, or name another under spec.devices (kubectl get deviceclasses)"},
    {.name = "a template may come after its pods",
     .looks = {{0, "TT", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "TT", "placing", GANG_WAIT, "none", 10000, "none", 0},
               {900, "nn", "placing", GANG_WAIT, "none", 40000, "allocation", 0}}},
    {.name = "no template",
     .looks = {{0, "nT", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "nT", "placing", GANG_WAIT, "none", 10000, "none", 0},
               {10000, "nT", "ended", GANG_FAIL, "fatal", -1, "none", 0}},
     .kind = DRARUN_ERR_CLUSTER,
     .text = "worker 1: its claim cannot be made: resource claim template \"job-w\": not found"},
    {.name = "a quota whose count is behind",
     .looks = {{0, "nQ", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "nQ", "placing", GANG_WAIT, "none", 10000, "none", 0},
               {9000, "nn", "placing", GANG_WAIT, "none", 40000, "allocation", 0}}},
    {.name = "quota",
     .looks = {{0, "nQ", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "nQ", "placing", GANG_WAIT, "none", 10000, "none", 0},
               {10000, "nQ", "ended", GANG_FAIL, "fatal", -1, "none", 0}},
     .kind = DRARUN_ERR_CLUSTER,
     .text = "worker 1: its claim is refused: exceeded quota: q"},
    {.name = "a Secret that comes later is waited for, one that does not is told",
     .looks = {{0, "bbbb", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "bbbb", "pulling", GANG_WAIT, "placed", 0, "imagePull", 0},
               {1000, "bbbc", "pulling", GANG_WAIT, "none", 11000, "none", 0},
               {2000, "bbbr", "pulling", GANG_WAIT, "none", 30000, "imagePull", 0},
               {3000, "cccr", "pulling", GANG_WAIT, "none", 13000, "none", 0},
               {13000, "cccr", "ended", GANG_FAIL, "fatal", -1, "none", 0}},
     .kind = DRARUN_ERR_SPEC,
     .text = "worker 0 on node-a: container worker cannot be made: CreateContainerConfigError: "
             "secret \"job-key\" not found"},
    {.name = "a sidecar that ends is started again, as long as that may help",
     .looks = {{0, "bbbb", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "bbbb", "pulling", GANG_WAIT, "placed", 0, "imagePull", 0},
               {1000, "rrrw", "pulling", GANG_WAIT, "none", 30000, "imagePull", 0},
               {12000, "rrrw", "pulling", GANG_WAIT, "none", 30000, "imagePull", 0},
               {13000, "rrrW", "pulling", GANG_WAIT, "none", 23000, "none", 0},
               {23000, "rrrW", "ended", GANG_FAIL, "fatal", -1, "none", 0}},
     .kind = DRARUN_ERR_SPEC,
     .text = "worker 3 on node-a: container log ends again and again: CrashLoopBackOff: back-off "
             "10s restarting failed container=log; its log says why: kubectl logs job-w -c log "
             "--previous"},
    {.name = "a runtime without image volumes",
     .looks = {{0, "KKKK", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "KKKK", "pulling", GANG_WAIT, "placed", 0, "imagePull", 0},
               {0, "KKKK", "pulling", GANG_WAIT, "none", 10000, "none", 0},
               {10000, "KKKK", "ended", GANG_FAIL, "fatal", -1, "none", 0}},
     .kind = DRARUN_ERR_SPEC,
     .text = "worker 0 on node-a: container worker cannot be made: CreateContainerError: failed to "
             "mkdir \"\"; if the node's container runtime has no image volumes, as containerd "
             "before 2.1, set DRARUN_AGENT=copy"},
    {.name = "an agent that ends at once",
     .looks = {{0, "rrre", "ended", GANG_FAIL, "fatal", -1, "none", 0}},
     .kind = DRARUN_ERR_INFRASTRUCTURE,
     .text = "worker 3 on node-a: container worker ended with status 3 before any rank had "
             "started; its log says more: kubectl logs job-w -c worker"},
    {.name = "an agent of an image for another architecture",
     .looks = {{0, "rrrX", "ended", GANG_FAIL, "fatal", -1, "none", 0}},
     .kind = DRARUN_ERR_INFRASTRUCTURE,
     .text = "worker 3 on node-a: container worker ended with status 255 before any rank had "
             "started" POD_RUNTIME_WORDS "; its log says more: kubectl logs job-w -c worker"},
    {.name = "an agent that cannot be started",
     .looks = {{0, "srrr", "ended", GANG_FAIL, "fatal", -1, "none", 0}},
     .kind = DRARUN_ERR_INFRASTRUCTURE,
     .text = "worker 0 on node-a: container worker could not be started: its image has no program "
             "for the architecture of this node (exec format error); drarun's own image can have "
             "several: scripts/image --also"},
    {.name = "image deadline",
     .looks = {{0, "rrrp", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "rrrp", "pulling", GANG_WAIT, "placed", 0, "imagePull", 0},
               {30000, "rrrp", "ended", GANG_FAIL, "deadline", -1, "none", 0}},
     .kind = DRARUN_ERR_INFRASTRUCTURE,
     .text = "3 of 4 workers have their images and run within 30 s (timeouts.imagePull): worker 3 "
             "on node-a: image example/app:1 of the ranks is being pulled"},
    {.name = "deadline of a pod that the kubelet cannot start",
     .looks = {{0, "rpmr", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "rpmr", "pulling", GANG_WAIT, "placed", 0, "imagePull", 0},
               {30000, "rpmr", "ended", GANG_FAIL, "deadline", -1, "none", 0}},
     .kind = DRARUN_ERR_INFRASTRUCTURE,
     .text = "2 of 4 workers have their images and run within 30 s (timeouts.imagePull): worker 2 "
             "on node-a: a volume cannot be mounted: MountVolume.SetUp failed for volume \"v\" : "
             "secret \"nope\" not found (pod job-w); create the Secret, or correct the volume in "
             "spec.template"},
    {.name = "start deadline",
     .looks = {{0, "rr", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "rr", "pulling", GANG_WAIT, "placed", 0, "imagePull", 0},
               {0, "rr", "starting", GANG_WAIT, "up", 0, "start", 0},
               {20000, "rr", "ended", GANG_FAIL, "deadline", -1, "none", 1}},
     .kind = DRARUN_ERR_INFRASTRUCTURE,
     .text = "1 of 2 workers have started and reported what they hold within 20 s "
             "(timeouts.start)"},
    {.name = "what has come while nobody looked is not too late",
     .looks = {{0, "gg", "queued", GANG_WAIT, "none", 60000, "queue", 0},
               {70000, "nn", "placing", GANG_WAIT, "admitted", 70000, "allocation", 0},
               {70000, "nn", "placing", GANG_WAIT, "none", 110000, "allocation", 0},
               {120000, "bp", "pulling", GANG_WAIT, "placed", 120000, "imagePull", 0},
               {160000, "rr", "starting", GANG_WAIT, "up", 160000, "start", 0},
               {190000, "rr", "running", GANG_START, "checked", -1, "none", 2}}},
    {.name = "workers that a queue takes back after the deadline wait again",
     .looks = {{0, "nn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "nn", "placing", GANG_WAIT, "none", 40000, "allocation", 0},
               {50000, "gg", "queued", GANG_WAIT, "suspended", 50000, "queue", 0}}},
    {.name = "what has come and goes again is too late",
     .looks = {{0, "nn", "placing", GANG_WAIT, "admitted", 0, "allocation", 0},
               {0, "nn", "placing", GANG_WAIT, "none", 40000, "allocation", 0},
               {50000, "rd", "ended", GANG_FAIL, "deadline", -1, "none", 0}},
     .kind = DRARUN_ERR_CAPACITY,
     .text = "1 of 2 workers have claims and nodes within 40 s (timeouts.allocation)"},
    {.name = "total deadline, without the time in the queue",
     .total = 15000,
     .looks = {{0, "gg", "queued", GANG_WAIT, "none", 60000, "queue", 0},
               {9000, "rr", "placing", GANG_WAIT, "admitted", 9000, "total", 0},
               {9000, "rr", "pulling", GANG_WAIT, "placed", 9000, "total", 0},
               {9000, "rr", "starting", GANG_WAIT, "up", 9000, "total", 2},
               {9000, "rr", "running", GANG_START, "checked", 24000, "total", 2},
               {23999, "rr", "running", GANG_WAIT, "none", 24000, "total", 2},
               {24000, "rr", "ended", GANG_FAIL, "deadline", -1, "none", 2}},
     .kind = DRARUN_ERR_TIMEOUT,
     .text = "the job did not end within 15 s (timeouts.total)"},
};

static uint32_t fill(const char *letters, struct pod_state *workers)
{
    uint32_t count = 0;
    for (; letters[count]; count++)
        workers[count] = worker_of(letters[count]);
    return count;
}

static void check_look(const struct scene *scene, const struct look *look, size_t number,
                       struct gang *gang, struct gang_decision *decision)
{
    struct pod_state workers[WORKERS_MAX];
    struct drarun_error err = {0};
    struct spec_timeouts limits = timeouts;
    limits.total = scene->total;
    CLEANUP(json_decrefp)
    json_t *object = scene->group ? json_loads(scene->group, 0, NULL) : NULL;
    const struct waiting_group group = {.name = "job-w", .object = object};
    struct gang_input input = {.now_ms = START_MS + look->at,
                               .timeouts = &limits,
                               .workers = workers,
                               .count = fill(look->workers, workers),
                               .inspected = look->inspected,
                               .steps = scene->steps ? scene->steps : 1,
                               .scheduler_waits = scene->scheduler_waits,
                               .spread = scene->spread,
                               .forecast = scene->forecast,
                               .next_step = scene->next_step,
                               .group = object ? &group : NULL};
    if (gang_decide(gang, &input, decision, &err) < 0)
        fail_msg("%s: look %zu: %s", scene->name, number, err.text);
    int64_t next = decision->next_ms == INT64_MAX ? -1 : decision->next_ms - START_MS;
    int64_t expected = look->next == -2 ? look->at + decision->pause_ms : look->next;
    if (look->next == -2 && decision->action == GANG_WAIT)
        expected = gang->resume_ms - START_MS;
    if (strcmp(gang_phase_name(decision->phase), look->phase) != 0 ||
        decision->action != look->action || strcmp(decision->event, look->event) != 0 ||
        next != expected || strcmp(gang_clock_name(decision->clock), look->clock) != 0)
        fail_msg("%s: look %zu at %" PRId64 ": phase %s action %d event %s next %" PRId64
                 " (expected %" PRId64 ") clock %s, error %s",
                 scene->name, number, look->at, gang_phase_name(decision->phase), decision->action,
                 decision->event, next, expected, gang_clock_name(decision->clock),
                 decision->error.text);
}

static void the_table(void **state)
{
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(scenes); s++) {
        const struct scene *scene = &scenes[s];
        struct gang gang;
        struct gang_decision decision = {0};
        gang_init(&gang, gang_seed("uid", 1), START_MS);
        for (size_t l = 0; l < LOOKS_MAX && scene->looks[l].workers; l++) {
            check_look(scene, &scene->looks[l], l, &gang, &decision);
            /* a restart of the launcher between any two looks changes nothing */
            CLEANUP(json_decrefp) json_t *saved = gang_save(&gang);
            struct gang copy = gang;
            gang_load(&copy, saved);
            assert_memory_equal(&copy, &gang, sizeof gang);
        }
        assert_int_equal(decision.error.kind, scene->kind);
        if (scene->text)
            assert_string_equal(decision.error.text, scene->text);
    }
}

/* Steps that no slices can meet are not tried, and a forecast of nothing skips none. */
static void impossible_steps_are_skipped(void **state)
{
    static const struct {
        enum gang_forecast forecast;
        unsigned next, expected;
    } cases[] = {{GANG_FORECAST_NEVER, 2, 2},
                 {GANG_FORECAST_NEVER, 1, 1},
                 {GANG_FORECAST_NEVER, 0, 1},
                 {GANG_FORECAST_NEVER, 3, 1},
                 {GANG_FORECAST_UNKNOWN, 2, 1},
                 {GANG_FORECAST_FULL, 2, 1},
                 {GANG_FORECAST_UNKNOWN, GANG_STEP_NONE, 1}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pod_state worker = worker_of('u');
        struct gang gang;
        struct gang_decision decision = {0};
        struct gang_input input = {.now_ms = START_MS,
                                   .timeouts = &timeouts,
                                   .workers = &worker,
                                   .count = 1,
                                   .steps = 3,
                                   .forecast = cases[i].forecast,
                                   .next_step = cases[i].next};
        gang_init(&gang, 1, START_MS);
        for (int look = 0; look < 4 && decision.action != GANG_NEXT_STEP; look++) {
            assert_int_equal(gang_decide(&gang, &input, &decision, NULL), 0);
            input.now_ms += look == 0 ? 0 : GANG_GRACE_MS;
        }
        assert_int_equal(decision.action, GANG_NEXT_STEP);
        assert_int_equal(decision.step, cases[i].expected);
    }
}

/* The times of a first load into an empty gang. */
static void a_restart(void **state)
{
    (void)state;
    struct gang gang, other;
    gang_init(&gang, gang_seed("uid", 1), START_MS);
    gang.phase = GANG_RELEASING;
    gang.tries = 3;
    gang.step = 1;
    gang.resume_ms = START_MS + 70;
    gang.ticking = GANG_CLOCK_ALLOCATION;
    gang.ticking_since_ms = START_MS + 10;
    gang.spent_ms[GANG_CLOCK_QUEUE] = 10;
    gang.timings_ms[GANG_QUEUED] = 10;
    CLEANUP(json_decrefp) json_t *saved = gang_save(&gang);
    gang_init(&other, 0, START_MS + 99999);
    gang_load(&other, saved);
    assert_memory_equal(&other, &gang, sizeof gang);
    gang_init(&other, 7, START_MS);
    gang_init(&gang, 7, START_MS);
    CLEANUP(json_decrefp)
    json_t *strange = json_pack("{s:i, s:[], s:s}", "phase", 3, "spent", "ticking", "tomorrow");
    gang_load(&other, strange);
    assert_memory_equal(&other, &gang, sizeof gang);
}

/* A launcher that gives its workers back leaves the time of its queue's clock open: it begins when
 * the next one has the job, however long after. */
static void a_clock_that_begins_later(void **state)
{
    (void)state;
    struct gang gang, other;
    gang_init(&gang, 1, START_MS);
    gang.ticking_since_ms = 0;
    CLEANUP(json_decrefp) json_t *saved = gang_save(&gang);
    gang_init(&other, 1, START_MS + 99999);
    gang_load(&other, saved);
    assert_true(other.phase == GANG_QUEUED && other.phase_since_ms == START_MS);
    assert_true(other.ticking == GANG_CLOCK_QUEUE && other.ticking_since_ms == START_MS + 99999);
}

/* The deadline that a worker's placing has, once it is admitted at that time. */
static int64_t admit(struct gang *gang, const struct spec_timeouts *limits, int64_t now_ms)
{
    struct pod_state worker = worker_of('u');
    struct gang_decision decision;
    const struct gang_input input = {
        .now_ms = now_ms, .timeouts = limits, .workers = &worker, .count = 1, .steps = 1};
    do
        assert_int_equal(gang_decide(gang, &input, &decision, NULL), 0);
    while (decision.changed);
    assert_int_equal(gang->phase, GANG_PLACING);
    return gang_total_end(gang, limits->total);
}

/* Time in the queue does not count, whichever attempt was queued; the other time does. */
static void the_total_of_all_attempts(void **state)
{
    (void)state;
    const struct spec_timeouts limits = {.queue = 100000, .total = 50000};
    struct gang gang;
    gang_init(&gang, 1, START_MS);
    assert_true(admit(&gang, &limits, START_MS + 90000) == START_MS + 140000);
    gang_init_next(&gang, 2, START_MS + 110000); /* 20 s of it are over */
    assert_true(admit(&gang, &limits, START_MS + 180000) == START_MS + 210000);
    gang_init_next(&gang, 3, START_MS + 190000);
    gang_init_next(&gang, 4, START_MS + 195000); /* while it is queued */
    assert_true(admit(&gang, &limits, START_MS + 200000) == START_MS + 220000);
    assert_true(gang_total_end(&gang, 0) == INT64_MAX);
    assert_true(gang_total_end(&gang, INT64_MAX) == INT64_MAX);
}

/* A status document that others have written must not keep the next one from being written. */
static void a_long_reason(void **state)
{
    (void)state;
    struct gang gang;
    char reason[2 * GANG_REASON_MAX] = "a";
    for (size_t i = 1; i + 3 < sizeof reason; i += 3)
        memcpy(reason + i, "\xe6\x97\xa5", 4);
    CLEANUP(json_decrefp) json_t *saved = json_pack("{s:s}", "reason", reason);
    gang_init(&gang, 1, START_MS);
    gang_load(&gang, saved);
    assert_true(strlen(gang.reason) > GANG_REASON_MAX - 5);
    CLEANUP(json_decrefp) json_t *again = gang_save(&gang);
    assert_non_null(again);
}

static void pauses_grow(void **state)
{
    (void)state;
    struct gang gang;
    struct gang_decision d;
    gang_init(&gang, gang_seed("uid", 1), START_MS);
    struct spec_timeouts none = {0};
    struct pod_state workers[2] = {worker_of('r'), worker_of('u')};
    struct pod_state gone[2] = {worker_of('.'), worker_of('.')};
    struct gang_input input = {.now_ms = START_MS, .timeouts = &none, .count = 2, .steps = 1};
    int64_t bound = GANG_PAUSE_MIN_MS;
    for (int i = 0; i < 12; i++) {
        input.workers = workers;
        do {
            assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
            if (d.next_ms > input.now_ms && d.next_ms < INT64_MAX)
                input.now_ms = d.next_ms;
        } while (d.action != GANG_RELEASE_AND_RETRY);
        assert_true(d.pause_ms >= bound / 2 && d.pause_ms <= bound);
        bound = bound * 2 < GANG_PAUSE_MAX_MS ? bound * 2 : GANG_PAUSE_MAX_MS;
        input.workers = gone;
        do {
            assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
            if (d.next_ms > input.now_ms && d.next_ms < INT64_MAX)
                input.now_ms = d.next_ms;
        } while (d.action != GANG_CREATE);
    }
    assert_int_equal(gang.tries, 12);
    assert_int_not_equal(gang_seed("a", 1), gang_seed("a", 2));
    assert_int_not_equal(gang_seed("a", 1), gang_seed("b", 1));
}

/* The API server was away, and the kubelet says what it says of an object that does not exist. */
static void kubelet_that_could_not_ask(void **state)
{
    (void)state;
    static const char *const messages[] = {
        "secret \"job-key\" not found",
        "failed to sync secret cache: timed out waiting for the condition",
        "failed to sync configmap cache: timed out waiting for the condition",
    };
    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        struct gang gang;
        struct gang_decision d;
        struct pod_state worker = worker_of('c');
        struct gang_input input = {
            .now_ms = START_MS, .timeouts = &timeouts, .workers = &worker, .count = 1, .steps = 1};
        worker.message = messages[i];
        gang_init(&gang, 1, START_MS);
        do
            assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
        while (d.changed);
        input.now_ms += GANG_CONFIG_GRACE_MS;
        assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
        assert_int_equal(d.action, i == 0 ? GANG_FAIL : GANG_WAIT);
    }
}

/* A worker whose claim has gone gets no other; one whose class has gone finds no device. */
static void objects_deleted_under_it(void **state)
{
    (void)state;
    struct gang gang;
    struct gang_decision d;
    struct pod_state workers[2] = {worker_of('n'), worker_of('n')};
    struct gang_input input = {
        .now_ms = START_MS, .timeouts = &timeouts, .workers = workers, .count = 2, .steps = 1};
    gang_init(&gang, 1, START_MS);
    do
        assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
    while (d.changed);
    workers[1].claim = CLAIM_ABSENT;
    assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
    assert_int_equal(d.action, GANG_RELEASE_AND_RETRY);

    workers[1] = worker_of('r');
    workers[1].claim = CLAIM_DELETING; /* before the launcher had looked at anything */
    gang_init(&gang, 1, START_MS);
    do
        assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
    while (d.changed && d.action == GANG_WAIT);
    assert_int_equal(d.action, GANG_RELEASE_AND_RETRY);

    workers[0] = workers[1] = worker_of('u');
    input.no_class = "gpu.example.com";
    gang_init(&gang, 1, START_MS);
    assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
    assert_int_equal(d.action, GANG_FAIL);
    assert_int_equal(error_exit_status(d.error.kind), 65);
    assert_non_null(strstr(d.error.text, "worker 0: device class gpu.example.com does not exist"));
    workers[0] = workers[1] = worker_of('b'); /* they have theirs */
    gang_init(&gang, 1, START_MS);
    assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
    assert_int_equal(d.action, GANG_WAIT);
}

/* As a launcher does that hears of nothing new for so long. */
static void decide_for(struct gang *gang, struct gang_input *input, int64_t ms,
                       struct gang_decision *ret_d)
{
    do
        assert_int_equal(gang_decide(gang, input, ret_d, NULL), 0);
    while (ret_d->changed && ret_d->action == GANG_WAIT);
    input->now_ms += ms;
    assert_int_equal(gang_decide(gang, input, ret_d, NULL), 0);
}

/* What a phase does not say: a pull that failed too often. */
static void facts_of_others(void **state)
{
    (void)state;
    struct gang gang;
    struct gang_decision d;
    struct pod_state workers[2] = {worker_of('b'), worker_of('p')};
    struct gang_input input = {
        .now_ms = START_MS, .timeouts = &timeouts, .workers = workers, .count = 2, .steps = 1};

    struct news news = {0};
    for (int count = 1; count <= GANG_PULL_TRIES; count++) {
        CLEANUP(json_decrefp)
        json_t *event = json_pack("{s:s, s:s, s:s, s:i}", "reason", "Failed", "message",
                                  "Failed to pull image \"example/app:1\": not found",
                                  "lastTimestamp", "2026-11-21T15:00:00Z", "count", count);
        assert_true(news_add(&news, event));
        workers[1].reason = "ErrImagePull";
        workers[1].news = &news;
        gang_init(&gang, 1, START_MS);
        assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
        assert_int_equal(d.action, count < GANG_PULL_TRIES ? GANG_WAIT : GANG_FAIL);
    }
    assert_string_equal(
        d.error.text,
        "worker 1 on node-a: image example/app:1 of the ranks could not be pulled in 4 tries: "
        "Failed to pull image \"example/app:1\": not found");
    assert_int_equal(error_exit_status(d.error.kind), 65);
    news_done(&news);

    CLEANUP(json_decrefp)
    json_t *quota = json_pack("{s:s, s:s}", "reason", "FailedCreate", "message",
                              "Error creating: pods \"job-w-0-x\" is forbidden: exceeded quota: q");
    assert_true(news_add(&news, quota));
    input.job = &news;
    workers[0] = worker_of('.');
    workers[1] = worker_of('.');
    gang_init(&gang, 1, START_MS);
    decide_for(&gang, &input, 9999, &d);
    assert_int_equal(d.action, GANG_WAIT);
    workers[0] = worker_of('n'); /* one was made: the others have their time anew */
    decide_for(&gang, &input, 9999, &d);
    assert_int_equal(d.action, GANG_WAIT);
    decide_for(&gang, &input, 1, &d);
    assert_int_equal(d.action, GANG_FAIL);
    assert_non_null(strstr(d.error.text, "exceeded quota"));

    workers[0] = worker_of('.');
    input.later_try = true; /* it has been enough before: tried again until the time is over */
    int64_t since = input.now_ms;
    uint32_t tries = 0;
    gang_init(&gang, 1, since);
    for (;;) {
        assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
        if (d.action == GANG_FAIL)
            break;
        tries += d.action == GANG_RELEASE_AND_RETRY;
        if (d.action != GANG_CREATE)
            input.now_ms = d.next_ms;
    }
    assert_in_range(tries, 2, 4);
    assert_int_equal(d.error.kind, DRARUN_ERR_CAPACITY);
    assert_non_null(strstr(d.error.text, "(timeouts.allocation): the workers' pods are refused: "));
    assert_non_null(strstr(d.error.text, "exceeded quota: q"));
    input.later_try = false;
    news_done(&news);

    CLEANUP(json_decrefp)
    json_t *security =
        json_pack("{s:s, s:{s:s, s:s}, s:s}", "reason", "FailedCreate", "involvedObject", "kind",
                  "Job", "namespace", "train", "message",
                  "Error creating: pods \"job-w-0-x\" is forbidden: violates PodSecurity "
                  "\"baseline:latest\": hostPath volumes (volume \"drarun-gib\")");
    assert_true(news_add(&news, security));
    workers[0] = worker_of('.');
    gang_init(&gang, 1, START_MS);
    decide_for(&gang, &input, GANG_CONFIG_GRACE_MS, &d);
    assert_int_equal(d.action, GANG_FAIL);
    assert_string_equal(
        d.error.text,
        "the workers' pods are refused: namespace train enforces Pod Security "
        "\"baseline:latest\", which forbids pod \"job-w-0-x\": hostPath volumes (volume "
        "\"drarun-gib\"): take it out of the job, or kubectl label --overwrite namespace train "
        "pod-security.kubernetes.io/enforce=privileged");
    assert_int_equal(error_exit_status(d.error.kind), 69);
    news_done(&news);
}

/* What the launcher could not create it creates again, as often as the time allows: a quota that
 * is used up, or whose count is behind a deletion. */
static void refused_workers_come_again(void **state)
{
    (void)state;
    static const char why[] = "403: pods \"job-w-0\" is forbidden: exceeded quota: few";
    struct gang gang;
    struct gang_decision d;
    struct pod_state workers[2] = {worker_of('.'), worker_of('.')};
    struct gang_input input = {
        .now_ms = START_MS, .timeouts = &timeouts, .workers = workers, .count = 2, .steps = 1};
    int tries = 0;
    gang_init(&gang, 1, START_MS);
    input.refused = why;
    for (;;) {
        assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
        if (d.action == GANG_FAIL)
            break;
        tries += d.action == GANG_RELEASE_AND_RETRY;
        if (d.action != GANG_CREATE) /* refused again at once */
            input.now_ms = d.next_ms;
    }
    assert_in_range(tries, 4, 10);
    assert_int_equal(input.now_ms - START_MS, timeouts.allocation);
    assert_int_equal(d.error.kind, DRARUN_ERR_CAPACITY);
    assert_string_equal(d.error.text,
                        "0 of 2 workers have claims and nodes within 40 s (timeouts.allocation): "
                        "403: pods \"job-w-0\" is forbidden: exceeded quota: few");

    gang_init(&gang, 1, START_MS);
    input.now_ms = START_MS;
    assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
    assert_string_equal(d.event, "lost");
    input.now_ms = gang.resume_ms;
    assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
    assert_int_equal(d.action, GANG_CREATE);
    input.refused = NULL; /* it could be */
    workers[0] = workers[1] = worker_of('r');
    for (int i = 0; i < 4; i++)
        assert_int_equal(gang_decide(&gang, &input, &d, NULL), 0);
    assert_int_equal(d.phase, GANG_STARTING);
}

/* Of a launcher's pod, whose clocks nobody else keeps. */
static void launcher_has_the_same_clocks(void **state)
{
    static const struct {
        char pod;
        int64_t waited, limit;
        int rc;
        enum drarun_errkind kind;
        const char *text;
    } cases[] = {
        {'u', 39999, 40000, 0, 0, ""},
        {'u', 40000, 40000, -ETIME, DRARUN_ERR_CAPACITY,
         "the launcher has not started within 40 s (timeouts.allocation)"},
        {'U', 49999, 50000, 0, 0, ""},
        {'U', 50000, 50000, -ETIME, DRARUN_ERR_CAPACITY,
         "the launcher has not started within 50 s (timeouts.nodes)"},
        {'p', 30000, 30000, -ETIME, DRARUN_ERR_INFRASTRUCTURE,
         "the launcher has not started within 30 s (timeouts.imagePull)"},
        {'i', 0, 30000, -ECANCELED, DRARUN_ERR_SPEC,
         "image example/app:1 of the ranks is not a valid name"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct drarun_error err = {0};
        struct pod_state pod = worker_of(cases[i].pod);
        int64_t limit;
        assert_int_equal(gang_judge_launcher(&pod, &timeouts, cases[i].waited, &limit, &err),
                         cases[i].rc);
        assert_int_equal(limit, cases[i].limit);
        assert_int_equal(err.kind, cases[i].kind);
        assert_string_equal(err.text, cases[i].text);
        if (cases[i].rc != -ECANCELED)
            assert_int_equal(gang_judge_launcher(&pod, NULL, INT64_MAX, &limit, &err), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launcher_has_the_same_clocks),
        cmocka_unit_test(the_table),
        cmocka_unit_test(impossible_steps_are_skipped),
        cmocka_unit_test(a_restart),
        cmocka_unit_test(a_clock_that_begins_later),
        cmocka_unit_test(the_total_of_all_attempts),
        cmocka_unit_test(a_long_reason),
        cmocka_unit_test(pauses_grow),
        cmocka_unit_test(facts_of_others),
        cmocka_unit_test(refused_workers_come_again),
        cmocka_unit_test(kubelet_that_could_not_ask),
        cmocka_unit_test(objects_deleted_under_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
