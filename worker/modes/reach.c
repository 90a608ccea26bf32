/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for each rail that is opened and each end that is connected: the kernel takes a second
 * to find that an address does not answer, and eight rails have no eight of them. */
#include "worker/modes/reach.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/verbs/reach_rail.h"

#define RAILS_MAX 64u
#define LIMIT_MS_MAX 3600000
#define LINE_MAX_BYTES ((size_t)64 << 10)

struct rail {
    char *device;
    uint32_t port, gid;
    struct reach_rail *open; /* NULL: not yet, or it failed */
    bool accepts, writes;    /* it was told to */
};

static struct { /* of the process, which does nothing else */
    pthread_mutex_t lock;
    struct rail rails[RAILS_MAX];
    size_t count;
    int64_t limit_ms;
} reach = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- telling ---- */

/* A line at once, so that those of threads do not mix. A reader that does not read any more has
 * gone. */
static void tell_take(json_t *line)
{
    cleanup_free char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    json_decref(line);
    size_t length = text ? strlen(text) : 0;
    if (!text)
        return;
    text[length] = '\n'; /* in place of its end */
    pthread_mutex_lock(&reach.lock);
    if (fd_write_all(STDOUT_FILENO, text, length + 1) < 0)
        _exit(1);
    pthread_mutex_unlock(&reach.lock);
}

static json_t *of_rail(size_t rail)
{
    return json_pack("{s:i}", "rail", (int)rail);
}

/* step: "open", "accepted", "wrote", "saw". */
static void tell_done(size_t rail, const char *step, bool done, const struct reach_failure *failure)
{
    json_t *line = of_rail(rail);
    json_object_set_new(line, step, json_boolean(done));
    if (!done) {
        json_object_set_new(line, "fault", json_string(reach_fault_name(failure->fault)));
        json_object_set_new(line, "code", json_integer(failure->code));
        json_object_set_new(line, "why", json_string(failure->why));
    }
    tell_take(line);
}

/* ---- addresses ---- */

static json_t *address_json(const struct reach_address *a)
{
    char gid[2 * sizeof a->gid + 1];
    for (size_t i = 0; i < sizeof a->gid; i++)
        snprintf(gid + 2 * i, 3, "%02x", a->gid[i]);
    return json_pack("{s:I, s:I, s:I, s:I, s:b, s:s, s:I, s:I}", "qp", (json_int_t)a->qp, "psn",
                     (json_int_t)a->psn, "lid", (json_int_t)a->lid, "mtu", (json_int_t)a->mtu,
                     "global", a->global, "gid", gid, "at", (json_int_t)a->at, "key",
                     (json_int_t)a->key);
}

static bool number_at(const json_t *object, const char *key, json_int_t most, json_int_t *ret)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || number > most)
        return false;
    *ret = number;
    return true;
}

static bool read_address(const json_t *object, struct reach_address *ret_address)
{
    struct reach_address a = {.global = json_is_true(json_object_get(object, "global"))};
    const char *gid = json_string_value(json_object_get(object, "gid"));
    json_int_t qp, psn, lid, mtu, at, key;
    if (!number_at(object, "qp", 0xffffff, &qp) || !number_at(object, "psn", 0xffffff, &psn) ||
        !number_at(object, "lid", 0xffff, &lid) || !number_at(object, "mtu", 4096, &mtu) ||
        !number_at(object, "at", INT64_MAX, &at) || !number_at(object, "key", UINT32_MAX, &key) ||
        !gid || strlen(gid) != 2 * sizeof a.gid || strspn(gid, "0123456789abcdef") != strlen(gid))
        return false;
    for (size_t i = 0; i < sizeof a.gid; i++) {
        char byte[3] = {gid[2 * i], gid[2 * i + 1], '\0'};
        a.gid[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    a.qp = (uint32_t)qp, a.psn = (uint32_t)psn, a.lid = (uint32_t)lid, a.mtu = (uint32_t)mtu;
    a.at = (uint64_t)at, a.key = (uint32_t)key;
    *ret_address = a;
    return true;
}

/* ---- threads ---- */

struct task {
    void (*run)(const struct task *task);
    size_t rail;
    struct reach_address peer;
    uint64_t seed;
};

static void run_open(const struct task *task)
{
    struct rail *rail = &reach.rails[task->rail];
    struct reach_rail *opened = NULL;
    struct reach_failure failure = {0};
    if (!reach_rail_open(rail->device, rail->port, rail->gid, &opened, &failure)) {
        tell_done(task->rail, "open", false, &failure);
        return;
    }
    struct reach_address in, out;
    reach_rail_address(opened, REACH_IN, &in);
    reach_rail_address(opened, REACH_OUT, &out);
    pthread_mutex_lock(&reach.lock);
    rail->open = opened;
    pthread_mutex_unlock(&reach.lock);
    json_t *line = of_rail(task->rail);
    json_object_set_new(line, "in", address_json(&in));
    json_object_set_new(line, "out", address_json(&out));
    tell_take(line);
}

static void run_accept(const struct task *task)
{
    struct reach_rail *rail = reach.rails[task->rail].open;
    struct reach_failure failure = {0};
    bool done = reach_rail_accept(rail, &task->peer, &failure);
    tell_done(task->rail, "accepted", done, &failure);
    if (!done)
        return;
    done = reach_rail_await(rail, task->seed, &failure);
    tell_done(task->rail, "saw", done, &failure);
}

static void run_write(const struct task *task)
{
    struct reach_failure failure = {0};
    bool done = reach_rail_write(reach.rails[task->rail].open, &task->peer, task->seed,
                                 reach.limit_ms / 2, &failure);
    tell_done(task->rail, "wrote", done, &failure);
}

static void *run_task(void *arg)
{
    cleanup_free struct task *task = arg;
    task->run(task);
    return NULL;
}

static int start(const struct task *task, struct drarun_error *err)
{
    pthread_t thread;
    struct task *own = malloc(sizeof *own);
    if (!own)
        return error_set(err, ENOMEM, "out of memory");
    *own = *task;
    int code = pthread_create(&thread, NULL, run_task, own);
    if (code) {
        free(own);
        return error_set(err, code, "no thread for a rail: %s", strerror(code));
    }
    pthread_detach(thread);
    return 0;
}

/* ---- being told ---- */

static int on_rails(const json_t *line, struct drarun_error *err)
{
    size_t i;
    json_t *item;
    const json_t *rails = json_object_get(line, "rails");
    json_int_t limit = 0, port = 0, gid = 0;
    if (reach.count > 0 || json_array_size(rails) == 0 || json_array_size(rails) > RAILS_MAX ||
        !number_at(line, "limitMs", LIMIT_MS_MAX, &limit))
        return error_set(err, EPROTO, "rails: a second list, none, too many, or no limitMs");
    reach.limit_ms = limit;
    json_array_foreach(rails, i, item)
    {
        const char *device = json_string_value(json_object_get(item, "device"));
        if (!device || !number_at(item, "port", UINT8_MAX, &port) ||
            !number_at(item, "gid", UINT8_MAX, &gid))
            return error_set(err, EPROTO, "rails[%zu]: no device, port and gid", i);
        struct rail *rail = &reach.rails[reach.count++];
        *rail =
            (struct rail){.device = strdup(device), .port = (uint32_t)port, .gid = (uint32_t)gid};
        if (!rail->device)
            return error_set(err, ENOMEM, "out of memory");
    }
    int rc = 0;
    for (i = 0; rc == 0 && i < reach.count; i++)
        rc = start(&(struct task){.run = run_open, .rail = i}, err);
    return rc;
}

static int on_connect(const json_t *line, bool write, struct drarun_error *err)
{
    struct task task = {.run = write ? run_write : run_accept};
    json_int_t index = 0, seed = 0;
    if (!number_at(line, "rail", (json_int_t)reach.count - 1, &index) ||
        !number_at(line, "seed", INT64_MAX, &seed) ||
        !read_address(json_object_get(line, write ? "write" : "accept"), &task.peer))
        return error_set(err, EPROTO, "no rail, seed and address");
    struct rail *rail = &reach.rails[index];
    bool *told = write ? &rail->writes : &rail->accepts;
    pthread_mutex_lock(&reach.lock);
    bool ready = rail->open && !*told;
    pthread_mutex_unlock(&reach.lock);
    if (!ready)
        return error_set(err, EPROTO, "rail %d is not open, or was told that before", (int)index);
    *told = true;
    task.rail = (size_t)index;
    task.seed = (uint64_t)seed;
    return start(&task, err);
}

static int on_line(const char *text, size_t length, struct drarun_error *err)
{
    json_error_t why;
    CLEANUP(json_decrefp) json_t *line = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (json_object_get(line, "rails"))
        return on_rails(line, err);
    if (json_object_get(line, "accept") || json_object_get(line, "write"))
        return on_connect(line, json_object_get(line, "write") != NULL, err);
    return error_set(err, EPROTO, "neither rails, accept nor write");
}

int reach_serve(void)
{
    struct drarun_error err = {0};
    char *text = NULL;
    size_t size = 0;
    ssize_t length;
    int rc = 0;
    while (rc == 0 && (length = getline(&text, &size, stdin)) > 0)
        rc = (size_t)length > LINE_MAX_BYTES
                 ? error_set(&err, EMSGSIZE, "a line of %zd bytes", length)
                 : on_line(text, (size_t)length, &err);
    free(text);
    if (rc < 0)
        log_error("--reach: %s", err.text);
    /* threads may be in calls that never return */
    _exit(rc < 0 ? error_exit_status(DRARUN_ERR_INFRASTRUCTURE) : 0);
}
