/* SPDX-License-Identifier: Apache-2.0 */
/* What the user asked for, as values: filled by the verb, read by the job engine. Strings that are
 * not in a strlist are borrowed from the command line. */
#ifndef DRARUN_LAUNCHER_REQUEST_H
#define DRARUN_LAUNCHER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/strlist.h"

/* struct job_request.stdin_rank, as in wire.proto's Launch. */
#define REQUEST_STDIN_NONE (-1)
#define REQUEST_STDIN_ALL (-2)

/* One program of the job. */
struct request_program {
    uint32_t ranks;     /* 0: not said */
    struct strlist env; /* "NAME=VALUE", or "NAME" for the launcher's own value */
    const char *wd;     /* NULL: not said */
    char *const *argv;  /* argc strings, not NULL-terminated */
    size_t argc;
};

struct job_request {
    struct request_program *programs;
    size_t program_count;

    uint32_t workers;    /* agents on this machine; 0: not said */
    uint32_t per_worker; /* most ranks of one worker; 0: not said */
    uint32_t radix;      /* of the agents' tree */
    const char *agents;  /* HOST:PORT,... ; NULL: agents are started here */
    const char *key_file;

    bool launch_env; /* environment alone, no PMIx */
    const char *bind;
    bool report_bindings;
    int32_t stdin_rank;

    bool label;
    const char *output_dir;
    bool json;
    const char *report_path;

    int64_t timeout_ms; /* 0: none */
    int64_t kill_after_ms;
    int64_t start_timeout_ms; /* 0: not said */

    uint32_t verbose; /* how often -v was given */
    bool quiet;
    bool help;
    bool version;
};

void request_done(struct job_request *request);

/* The job needs agents that are dialled over TLS. */
bool request_is_remote(const struct job_request *request);

#endif
