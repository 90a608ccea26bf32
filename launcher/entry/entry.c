/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/entry/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/spec/rendezvous.h"
#include "launcher/entry/lead.h"
#include "launcher/job/local_agent.h"
#include "launcher/programs/agent_program.h"
#include "launcher/programs/remote.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/wire/dial.h"
#include "lib/wire/key_file.h"

#define KEY_VARIABLE "DRARUN_KEY"
#define AGENT_LEAVES_MS 3000

struct entry {
    const struct entry_options *options;
    char hostname[256];
    char *fqdn; /* NULL: none */
    struct rendezvous rendezvous;
    struct tls_key key;
    bool have_key;
    int door;
};

static void done(struct entry *e)
{
    explicit_bzero(&e->key, sizeof e->key);
    rendezvous_done(&e->rendezvous);
    close_fd(&e->door);
    free(e->fqdn);
}

/* ---- who we are ---- */

static int find_peers(struct entry *e, struct drarun_error *err)
{
    gethostname(e->hostname, sizeof e->hostname - 1);
    e->fqdn = remote_api()->own_name(e->hostname);
    const struct rendezvous_facts facts = {
        .peers = e->options->peers,
        .index = e->options->index,
        .workers = e->options->workers,
        .port = (uint16_t)e->options->port,
        .lws_leader = getenv("LWS_LEADER_ADDRESS"),
        .lws_size = getenv("LWS_GROUP_SIZE"),
        .lws_index = getenv("LWS_WORKER_INDEX"),
        .completion_index = getenv("JOB_COMPLETION_INDEX"),
        .hostname = e->hostname,
        .fqdn = e->fqdn,
    };
    return rendezvous_find(&facts, &e->rendezvous, err);
}

/* ---- the key ---- */

static int take_key(struct entry *e, struct drarun_error *err)
{
    int rc = key_env_take(KEY_VARIABLE, &e->key, err);
    if (e->options->key_file)
        rc = key_file_read(e->options->key_file, &e->key, err);
    e->have_key = rc == 0;
    return rc == -ENOENT && !e->options->key_file ? 0 : rc;
}

/* Where others cannot come. */
static int stay_home(struct entry *e, struct drarun_error *err)
{
    char host[256];
    uint16_t port = 0;
    int rc = address_split(e->rendezvous.addresses.items[0], host, sizeof host, &port, err);
    if (rc < 0)
        return rc;
    strlist_done(&e->rendezvous.addresses);
    e->rendezvous.addresses = (struct strlist)STRLIST_INIT;
    strlist_addf(&e->rendezvous.addresses, "127.0.0.1:%u", port);
    return e->rendezvous.addresses.failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* Alone, the agent is dialled from this very pod: a key of the moment will do, on the loopback. */
static int check_key(struct entry *e, struct drarun_error *err)
{
    if (e->have_key)
        return 0;
    if (e->rendezvous.addresses.count > 1)
        return error_kind(
            err, DRARUN_ERR_USAGE, EACCES,
            "without a key nothing listens beyond the loopback, and there are %zu "
            "workers: set " KEY_VARIABLE " from a Secret (64 hexadecimal digits, as "
            "\"openssl rand -hex 32\" prints), the same in all pods, or give --key-file",
            e->rendezvous.addresses.count);
    if (getrandom(e->key.bytes, sizeof e->key.bytes, 0) != (ssize_t)sizeof e->key.bytes)
        return error_set(err, errno, "getrandom: %s", strerror(errno));
    return stay_home(e, err);
}

/* ---- the agent ---- */

/* Of all addresses; without a key of the loopback's. */
static int open_door(struct entry *e, struct drarun_error *err)
{
    const char *own = e->rendezvous.addresses.items[e->rendezvous.index];
    char address[64], host[256];
    uint16_t port = 0;
    int rc = address_split(own, host, sizeof host, &port, err);
    if (rc == 0) {
        snprintf(address, sizeof address, "%s:%u", e->have_key ? "" : "127.0.0.1", port);
        rc = listen_on(address, &e->door, &port, err);
    }
    return rc < 0 ? error_prefix(err, "worker %u (%s)", e->rendezvous.index, own) : 0;
}

/* Returns only to say why it did not become drarun-worker. */
static int become_agent(struct entry *e, const char *program, struct drarun_error *err)
{
    char door[16], key[16], limit[32];
    int key_fd = -1;
    int rc = local_agent_pass_key(&e->key, &key_fd, err);
    if (rc < 0)
        return rc;
    fcntl(key_fd, F_SETFD, 0);
    fcntl(e->door, F_SETFD, 0);
    snprintf(door, sizeof door, "%d", e->door);
    snprintf(key, sizeof key, "%d", key_fd);
    /* that of worker 0 ends with its launcher, whatever that waits for */
    int64_t await_ms = e->options->start_timeout_ms * (e->rendezvous.index == 0 ? 2 : 1);
    snprintf(limit, sizeof limit, "%jdms", (intmax_t)await_ms);
    char worker[16];
    snprintf(worker, sizeof worker, "%u", e->rendezvous.index);
    if (setenv("DRARUN_WORKER", worker, 1) < 0)
        return error_set(err, ENOMEM, "out of memory");
    const char *argv[] = {program,
                          "--listen-fd",
                          door,
                          "--key-fd",
                          key,
                          "--entry",
                          e->rendezvous.addresses.items[0],
                          "--await",
                          limit,
                          e->options->verbose ? "-v" : NULL,
                          NULL};
    execv(program, unconst(argv));
    return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, errno, "cannot start %.300s: %s", program,
                      strerror(errno));
}

static int fork_agent(struct entry *e, const char *program, pid_t *ret_pid,
                      struct drarun_error *err)
{
    pid_t self = getpid();
    pid_t pid = fork();
    if (pid < 0)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, errno, "cannot start drarun-worker: %s",
                          strerror(errno));
    if (pid == 0) {
        struct drarun_error why = {0};
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        setsid(); /* a terminal's signals are ours */
        if (getppid() == self && become_agent(e, program, &why) < 0)
            log_error("join: %s", why.text);
        _exit(70);
    }
    close_fd(&e->door);
    *ret_pid = pid;
    return 0;
}

/* False: it is still there then. */
static bool await_agent(pid_t pid, int64_t until_ms)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    while (waitpid(pid, NULL, WNOHANG) == 0) { /* else gone, or reaped by the engine */
        if (clock_ms() >= until_ms)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

/* It leaves by itself, having been told the job's end. */
static void end_agent(pid_t pid)
{
    if (await_agent(pid, clock_ms() + AGENT_LEAVES_MS))
        return;
    kill(pid, SIGTERM);
    if (await_agent(pid, clock_ms() + AGENT_LEAVES_MS))
        return;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static int lead(struct entry *e, const char *program, int *ret_status, struct drarun_error *err)
{
    pid_t agent = 0;
    int rc = fork_agent(e, program, &agent, err);
    if (rc < 0)
        return rc;
    const struct entry_lead leading = {
        .options = e->options, .rendezvous = &e->rendezvous, .key = &e->key, .agent = agent};
    rc = entry_lead(&leading, ret_status, err);
    if (rc < 0)
        kill(agent, SIGTERM);
    end_agent(agent);
    return rc;
}

static int run(struct entry *e, int *ret_status, struct drarun_error *err)
{
    char program[PATH_MAX];
    int rc = take_key(e, err); /* first: nobody is to find it in our environment */
    if (rc == 0)
        rc = find_peers(e, err);
    if (rc == 0)
        rc = check_key(e, err);
    if (rc == 0)
        rc = program_find_agent(program, err);
    if (rc == 0)
        rc = open_door(e, err);
    if (rc < 0)
        return rc;
    const struct rendezvous *r = &e->rendezvous;
    log_note("worker %u of %zu (%s, told by %s)%s", r->index, r->addresses.count,
             r->addresses.items[r->index], r->source, r->index == 0 ? ", which leads" : "");
    return r->index == 0 ? lead(e, program, ret_status, err) : become_agent(e, program, err);
}

int entry_run(const struct entry_options *options)
{
    struct entry e = {.options = options, .door = -1};
    struct drarun_error err = {0};
    int status = 0;
    prctl(PR_SET_DUMPABLE, 0); /* a rank of the same user must not read the key here */
    if (run(&e, &status, &err) < 0) {
        log_error("join: %s", err.text);
        status = error_exit_status(err.kind);
    }
    done(&e);
    return status;
}
