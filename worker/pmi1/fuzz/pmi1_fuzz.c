/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank writes, and what another agent sends as keys: arbitrary bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/pmi1/pmi1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct rig {
    struct pmi1_conn *conn;
    struct buf out;
};

/* As with one rank alone: the barrier ends within the call that entered it. */
static void on_barrier(void *arg, uint32_t rank)
{
    struct rig *rig = arg;
    (void)rank;
    pmi1_barrier_out(rig->conn, &rig->out);
}

static void on_abort(void *arg, uint32_t rank, int status, const char *text)
{
    (void)arg, (void)rank, (void)status;
    if (strchr(text, '\n'))
        abort();
}

static void on_spawn(void *arg, uint32_t rank, struct spawn_request *request)
{
    struct rig *rig = arg;
    Drarun__Wire__SpawnRequest *message = spawn_message_new(request, 1);
    (void)rank;
    pmi1_spawned(rig->conn, message && request->count % 2 == 1, &rig->out);
    spawn_message_free(message);
}

static void on_name(void *arg, uint32_t rank, enum pmi1_name what, const char *service,
                    const char *port)
{
    struct rig *rig = arg;
    (void)rank, (void)what;
    pmi1_named(rig->conn, strlen(service) % 2 == 1, port, &rig->out);
}

/* Every reply is one line of its own, whatever the rank has put. */
static void check_replies(const struct buf *out)
{
    for (size_t at = 0; at < out->len;) {
        const char *line = out->data + at;
        const char *newline = memchr(line, '\n', out->len - at);
        if (!newline || newline - line < 4 || memcmp(line, "cmd=", 4) != 0)
            abort();
        at += (size_t)(newline - line) + 1;
    }
}

/* What one agent encodes another can merge. */
static void check_travel(struct pmi1_kvs *kvs)
{
    struct buf sent = BUF_INIT;
    struct pmi1_kvs *there = pmi1_kvs_new("there");
    pmi1_kvs_take_new(kvs, &sent);
    if (there && !sent.failed && pmi1_kvs_merge(there, sent.data, sent.len, NULL) != 0)
        abort();
    pmi1_kvs_free(there);
    buf_done(&sent);
}

static void speak(struct rig *rig, const uint8_t *data, size_t size)
{
    size_t chunk = 1 + size % 97; /* lines arrive in pieces */
    for (size_t at = 0; at < size; at += chunk) {
        size_t length = size - at < chunk ? size - at : chunk;
        if (pmi1_conn_input(rig->conn, data + at, length, &rig->out, NULL) < 0)
            break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rig rig = {0};
    const struct pmi1_owner owner = {
        .barrier = on_barrier, .abort = on_abort, .spawn = on_spawn, .name = on_name, .arg = &rig};
    struct pmi1_kvs *kvs = pmi1_kvs_new("drarun.job.0"), *foreign = pmi1_kvs_new("foreign");
    rig.conn = kvs ? pmi1_conn_new(0, 1, 0, kvs, &owner) : NULL;
    if (rig.conn && foreign) {
        speak(&rig, data, size);
        check_replies(&rig.out);
        check_travel(kvs);
        pmi1_kvs_merge(foreign, data, size, NULL);
    }
    pmi1_conn_free(rig.conn);
    pmi1_kvs_free(kvs);
    pmi1_kvs_free(foreign);
    buf_done(&rig.out);
    return 0;
}
