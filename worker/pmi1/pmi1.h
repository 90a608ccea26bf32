/* SPDX-License-Identifier: Apache-2.0 */
/* PMI-1's "simple" wire protocol (MPICH src/pmi, doc: "PMI v1 wire protocol"), for MPICH and Intel
 * MPI: a pure state machine per rank over bytes, and the key-value space of the job. Knows nothing
 * of sockets, loops or trees: bytes in, bytes out, and two requests to its owner (barrier, abort).
 */
#ifndef DRARUN_WORKER_PMI1_H
#define DRARUN_WORKER_PMI1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/buf.h"
#include "worker/job/spawn_request.h"

/* As announced by get_maxes, bytes with NUL: MPICH's own launcher says the same since 2010, so
 * every client lives with it. More would gain nothing: MPICH 3.4 to 4.0 build lines in 1024 bytes
 * and lower the value limit to 1024 - kvsname - key - 30 = 674 themselves
 * (src/pmi/simple/simple_pmi.c), and MPICH before 3.4 cuts a longer line in silence. */
#define PMI1_KVSNAME_MAX 256u
#define PMI1_KEY_MAX 64u
#define PMI1_VALUE_ANNOUNCED 1024u
/* The longest value of ours that every client can read, with NUL: those clients read no longer one.
 */
#define PMI1_VALUE_SAFE 674u
/* What is accepted from a rank all the same; it reads its own kind's values. */
#define PMI1_VALUE_MAX 4096u
#define PMI1_LINE_MAX 8192u /* a longer line is refused */
/* What one rank may add to the space, which its agent holds and all agents get, until it begins
 * again: MPICH puts a few keys of some hundred bytes for each rank, and has new names for them
 * then. Of keys and values, in bytes. */
#define PMI1_RANK_KEYS_MAX 4096u
#define PMI1_RANK_BYTES_MAX (1u << 20)
/* Of the lines of one MPI_Comm_spawn. */
#define PMI1_SPAWN_BYTES_MAX (4u << 20)

/* ---- key-value space, one for each agent; grows by barriers ---- */
struct pmi1_kvs;
/* name: the kvsname that ranks are told. NULL without memory, or when it is too long. */
struct pmi1_kvs *pmi1_kvs_new(const char *name);
void pmi1_kvs_free(struct pmi1_kvs *kvs);
/* -ENOMEM, or -EINVAL for a key that is empty, too long or holds " ", "=" or a control character,
 * and for a value that is too long or holds a newline. A later put of a key replaces it. Hash
 * table: 100,000 keys must be fast. */
int pmi1_kvs_put(struct pmi1_kvs *kvs, const char *key, const char *value);
/* NULL when missing; borrowed until the key is put again. */
const char *pmi1_kvs_get(const struct pmi1_kvs *kvs, const char *key);
/* Appends the puts since the last call, encoded, for the other agents; then they count as sent. */
void pmi1_kvs_take_new(struct pmi1_kvs *kvs, struct buf *out);
/* Merges concatenated encodings of pmi1_kvs_take_new (any number, from any agent); -EPROTO when
 * they are malformed (nothing of the malformed rest is merged). Bounds-checked: foreign bytes. */
int pmi1_kvs_merge(struct pmi1_kvs *kvs, const void *data, size_t length, struct drarun_error *err);

/* What is put or merged from now on is of another round than before; what is put before the first
 * call is of none. */
void pmi1_kvs_begin(struct pmi1_kvs *kvs);
/* Removes what is of earlier rounds, and was not put again since. */
void pmi1_kvs_forget(struct pmi1_kvs *kvs);

/* ---- one rank's connection ---- */
enum pmi1_name { PMI1_PUBLISH = 1, PMI1_LOOKUP, PMI1_UNPUBLISH };

/* Called from within pmi1_conn_input; they may call pmi1_barrier_out, and must not free a
 * connection. */
struct pmi1_owner {
    /* The rank entered the barrier; the owner answers with pmi1_barrier_out on every local
     * connection when all ranks of the job have entered and the kvs is merged. */
    void (*barrier)(void *arg, uint32_t rank);
    /* The rank asks for the end of the job. */
    void (*abort)(void *arg, uint32_t rank, int status, const char *text);
    /* The value of a key that nobody has put, as the server itself may give one, or NULL; borrowed
     * until the next call. May be NULL itself. */
    const char *(*lookup)(void *arg, const char *key);
    /* The rank asks for more ranks: request, whose rank is to be set, is borrowed. The owner
     * answers with pmi1_spawned, at once or later. */
    void (*spawn)(void *arg, uint32_t rank, struct spawn_request *request);
    /* The rank publishes the port, asks for it, or takes it back (port "" then). The owner answers
     * with pmi1_named, at once or later. May be NULL: refused. */
    void (*name)(void *arg, uint32_t rank, enum pmi1_name what, const char *service,
                 const char *port);
    /* The rank has put more than a rank may: told once, each such put is refused. May be NULL. */
    void (*full)(void *arg, uint32_t rank);
    /* The rank has finalized before and begins again: told once until pmi1_conn_forget. May be
     * NULL. */
    void (*again)(void *arg, uint32_t rank);
    void *arg;
};

struct pmi1_conn;
/* universe: ranks that there may be in all; appnum: program number; kvs borrowed and shared by all
 * connections. */
struct pmi1_conn *pmi1_conn_new(uint32_t rank, uint32_t universe, uint32_t appnum,
                                struct pmi1_kvs *kvs, const struct pmi1_owner *owner);
void pmi1_conn_free(struct pmi1_conn *conn);
/* Consumes bytes from the rank and appends replies to out. -EPROTO for what is no PMI-1 (the error
 * shows the line); the connection is then dead. The kvs commands of PMI 1.0 are answered with an rc
 * that MPICH turns into an MPI error. */
int pmi1_conn_input(struct pmi1_conn *conn, const void *data, size_t length, struct buf *out,
                    struct drarun_error *err);
/* The answer to barrier_in. A bug (assert) when the rank is in no barrier. */
void pmi1_barrier_out(struct pmi1_conn *conn, struct buf *out);
/* The answer to pmi1_owner.spawn. A bug (assert) when the rank does not wait for it. */
void pmi1_spawned(struct pmi1_conn *conn, bool good, struct buf *out);
/* The answer to pmi1_owner.name; port: of a look-up that found it. The same. */
void pmi1_named(struct pmi1_conn *conn, bool good, const char *port, struct buf *out);
bool pmi1_conn_initialized(const struct pmi1_conn *conn); /* has sent init */
bool pmi1_conn_finalized(const struct pmi1_conn *conn);   /* and has not sent init again */
bool pmi1_conn_in_barrier(const struct pmi1_conn *conn);
/* What the rank had put before it began again is removed from the space: it may do so again. */
void pmi1_conn_forget(struct pmi1_conn *conn);

#endif
