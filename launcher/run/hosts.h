/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts as mpirun and mpiexec name them: -H a:2,b:2 and host files. Here the agents are the hosts.
 */
#ifndef DRARUN_LAUNCHER_HOSTS_H
#define DRARUN_LAUNCHER_HOSTS_H

#include <stdbool.h>
#include "drarun/error.h"
#include "launcher/job/request.h"

/* One after the other: "a", "a:4", "[::1]:4", separated by commas; or of a host file's text, a line
 * each, "a slots=4" or "a:4". Borrows nothing. */
struct hosts {
    struct host {
        char name[256];
        uint32_t slots; /* 0: not said */
    } * list;
    size_t count;
};

/* shown is the option, for messages. A host that is named again has one slot more; in a file, its
 * "slots=N" may be given once, in the first line that names it. */
int hosts_parse(const char *shown, const char *text, struct hosts *ret_hosts,
                struct drarun_error *err);
int hosts_parse_file(const char *path, const char *text, struct hosts *ret_hosts,
                     struct drarun_error *err);
void hosts_done(struct hosts *hosts);

/* Whether it is a name or an address of this machine. No look-up. */
bool hosts_is_here(const char *name);

/* Chooses among request->agents what request->hosts and request->hostfile name, in that order, and
 * the ranks of each; without agents the hosts must be this machine, and say how many ranks there
 * are. request->per_host counts where there are several workers. Kind DRARUN_ERR_USAGE. */
int hosts_use(struct job_request *request, struct drarun_error *err);

#endif
