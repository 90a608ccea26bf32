/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ports that ranks publish by PMI-1, for all agents of the job. */
#ifndef DRARUN_LAUNCHER_JOB_NAMES_H
#define DRARUN_LAUNCHER_JOB_NAMES_H

#include "lib/wire/wire.pb-c.h"

/* What ranks may have published at a time, in all. */
#define JOB_NAMES_MAX 4096u

struct job_names;

struct job_names *job_names_new(void);
void job_names_free(struct job_names *names);
/* A name exists once. The reply's port is borrowed until the next call. */
void job_names_ask(struct job_names *names, const Drarun__Wire__NameRequest *request,
                   Drarun__Wire__NameReply *ret_reply);

#endif
