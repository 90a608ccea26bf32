/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics for Prometheus, by libevent's evhttp in the loop of who serves them. Read-only and
 * bounded: METRICS_GUESTS connections, each for at most METRICS_STAY_S, with requests of
 * METRICS_HEAD_MAX bytes without a body. Further ones wait in the kernel. Loop thread only. */
#ifndef DRARUN_METRICS_METRICS_SERVER_H
#define DRARUN_METRICS_METRICS_SERVER_H

#include <event2/event.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

#define METRICS_GUESTS 16
#define METRICS_STAY_S 10
#define METRICS_HEAD_MAX 8192

struct metrics_server;

/* Appends what is to be served (Prometheus text format 0.0.4); nothing: there is none now. */
typedef void (*metrics_server_fn)(void *arg, struct buf *out);

/* Listens on all addresses. -EADDRINUSE and others of bind(2), kind DRARUN_ERR_INFRASTRUCTURE. */
int metrics_server_new(struct event_base *base, uint16_t port, metrics_server_fn fn, void *arg,
                       struct metrics_server **ret_server, struct drarun_error *err);
void metrics_server_free(struct metrics_server *server);
DEFINE_CLEANUP(struct metrics_server, metrics_server_free)

#endif
