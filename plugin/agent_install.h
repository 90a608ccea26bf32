/* SPDX-License-Identifier: Apache-2.0 */
/* The host's copies of the programs that outlive this plugin: what containers that are starting
 * need of it must be there while it is not. */
#ifndef DRARUN_PLUGIN_AGENT_INSTALL_H
#define DRARUN_PLUGIN_AGENT_INSTALL_H

#include <event2/event.h>
#include "drarun/error.h"
#include "lib/base/agent_offer.h"

/* Copies a program to a path, in one step, as it may be starting; nothing when it is the same. */
int program_install(const char *from, const char *to, struct drarun_error *err);

/* Whether what lies there can be started: not from a file system that is mounted noexec, as /var is
 * on some hosts. A mount of a file from there forbids it likewise. -ENOEXEC, and what the option
 * that names another place is called. */
int program_check_place(const char *path, const char *option, struct drarun_error *err);

/* Asks the agent for its version and copies it to DIR/OFFER/drarun-worker. Containers that have the
 * one before keep it: a copy is replaced, never written to, and a version that others cannot work
 * with lies in another folder. Runs the loop for as long as that takes, 10 s at most. -ENOEXEC:
 * nothing can be run from that file system, in a container neither. -EINTR: somebody ended the
 * loop. */
int agent_install(struct event_base *base, const char *from, const char *dir,
                  char ret_offer[AGENT_OFFER_SIZE], struct drarun_error *err);

#endif
