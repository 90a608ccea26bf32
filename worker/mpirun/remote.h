/* SPDX-License-Identifier: Apache-2.0 */
/* `launch: mpirun`: what the user's mpirun would start by ssh goes through the agents
 * (docs/design/020-mpirun.md). Each agent takes requests of its own worker's processes at a socket
 * in the session directory and passes them on along the tree; the programs are started by a server,
 * the worker's rank (serve.h), so that they end as ranks do. Loop thread only. */
#ifndef DRARUN_WORKER_REMOTE_H
#define DRARUN_WORKER_REMOTE_H

#include <event2/event.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "lib/wire/wire.pb-c.h"
#include "worker/job/agent_job.h"

struct remote;

/* Passes a message on; to this very worker, too. */
typedef void (*remote_route_fn)(void *arg, Drarun__Wire__Routed *message);

/* Opens the socket and writes host files and the client's link into the session directory. */
struct remote *remote_new(struct event_base *base, const struct agent_job *job,
                          const char *session_dir, remote_route_fn route, void *arg,
                          struct drarun_error *err);
void remote_free(struct remote *remote);

/* What makes mpirun, mpiexec and mpiexec.hydra ask us, for rank 0; what the user has set stays. */
void remote_environment(const struct remote *remote, struct strlist *env);

/* The server's end of a connection to us, for the rank that is one: the caller closes it when the
 * rank was started. *ret_argv: NULL-terminated; the array is the caller's, the strings are ours. */
int remote_server(struct remote *remote, char ***ret_argv, int *ret_fd, struct drarun_error *err);

/* A message for this worker; false for other kinds. What is for its server, and comes before that,
 * waits for it. */
bool remote_routed(struct remote *remote, const Drarun__Wire__Routed *message);
/* Ends what this worker was asked to start; a server that begins later ends at once. */
void remote_end(struct remote *remote);

/* Index of the worker that a host file calls so, or -1. Pure. */
int64_t remote_find_host(const Drarun__Wire__Launch *launch, const char *host);
/* How the host files call a worker; size as for a host name. Pure. */
void remote_host_name(const Drarun__Wire__Launch *launch, uint32_t worker, char *text, size_t size);

#endif
