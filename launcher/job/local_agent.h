/* SPDX-License-Identifier: Apache-2.0 */
/* drarun-worker processes of this machine: start, reaping, and what to do when one died. */
#ifndef DRARUN_LAUNCHER_LOCAL_AGENT_H
#define DRARUN_LAUNCHER_LOCAL_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include "drarun/error.h"
#include "launcher/programs/signals.h"
#include "lib/wire/tls.h"

struct local_agents {
    const char *program;           /* path of drarun-worker */
    const struct signals *signals; /* NULL: they are as they were given to us */
    struct rlimit files;           /* RLIMIT_NOFILE for the agents, as it was given to us */
};

/* Raises our own limit of open files as far as we may: many agents need many. */
void local_agent_raise_limit(struct local_agents *agents);

/* Starts one on a socketpair; *ret_fd is our end. The agent runs in a process group of its own, so
 * that a terminal's ^C reaches us alone, and gets SIGTERM when we die. */
int local_agent_start(const struct local_agents *agents, pid_t *ret_pid, int *ret_fd,
                      struct drarun_error *err);

/* Starts one that listens on 127.0.0.1 for TLS with that key; *ret_port is where. It can be dialled
 * at once, since the socket listens before the agent runs. */
int local_agent_listen(const struct local_agents *agents, const struct tls_key *key, pid_t *ret_pid,
                       uint16_t *ret_port, struct drarun_error *err);

/* The same for one that serves job after job, until it gets SIGTERM. */
int local_agent_keep(const struct local_agents *agents, const struct tls_key *key, pid_t *ret_pid,
                     uint16_t *ret_port, struct drarun_error *err);

/* *ret_fd is the end of a pipe that the agent reads the key from (--key-fd): never in argv, the
 * environment or a file. */
int local_agent_pass_key(const struct tls_key *key, int *ret_fd, struct drarun_error *err);

/* "exited with 70", "was killed by SIGKILL", from a status of waitpid. */
void local_agent_describe(int wait_status, char *text, size_t size);

/* SIGKILLs every child of this process (which is a child subreaper, so that orphans of a dead agent
 * come to it) except those for which is_agent returns true, with all their descendants; reaps what
 * it can. Returns how many children were found. */
size_t local_agent_sweep(bool (*is_agent)(pid_t pid, void *arg), void *arg);

#endif
