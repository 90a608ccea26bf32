/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmi1.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/number.h"
#include "worker/pmi1_kvs.h"

struct pmi1_conn {
    uint32_t rank, size, appnum;
    struct pmi1_kvs *kvs;
    struct pmi1_owner owner;
    struct buf in; /* what has come of the current line, and lines behind it */
    bool initialized, finalized, in_barrier, dead;
    bool in_spawn;                 /* between mcmd=spawn and endcmd */
    int64_t spawns, spawns_so_far; /* of the current MPI_Comm_spawn_multiple */
};

struct pmi1_conn *pmi1_conn_new(uint32_t rank, uint32_t size, uint32_t appnum, struct pmi1_kvs *kvs,
                                const struct pmi1_owner *owner)
{
    struct pmi1_conn *conn = calloc(1, sizeof *conn);
    if (conn)
        *conn = (struct pmi1_conn){
            .rank = rank, .size = size, .appnum = appnum, .kvs = kvs, .owner = *owner};
    return conn;
}

void pmi1_conn_free(struct pmi1_conn *conn)
{
    if (!conn)
        return;
    buf_done(&conn->in);
    free(conn);
}

bool pmi1_conn_initialized(const struct pmi1_conn *conn)
{
    return conn->initialized;
}

bool pmi1_conn_finalized(const struct pmi1_conn *conn)
{
    return conn->finalized;
}

bool pmi1_conn_in_barrier(const struct pmi1_conn *conn)
{
    return conn->in_barrier;
}

void pmi1_barrier_out(struct pmi1_conn *conn, struct buf *out)
{
    assert(conn->in_barrier);
    conn->in_barrier = false;
    buf_add_str(out, "cmd=barrier_out\n");
}

/* ---- fields: NAME=VALUE between single spaces ---- */

/* The value behind " NAME=", up to the end of the line; NULL when there is none. */
static const char *field_rest(const char *line, const char *name)
{
    size_t length = strlen(name);
    for (const char *p = strchr(line, ' '); p; p = strchr(p, ' ')) {
        p++;
        if (strncmp(p, name, length) == 0 && p[length] == '=')
            return p + length + 1;
    }
    return NULL;
}

/* The same up to the next space, copied; false when it is missing or does not fit. */
static bool field(const char *line, const char *name, char *text, size_t size)
{
    const char *value = field_rest(line, name);
    size_t length = value ? strcspn(value, " ") : 0;
    if (!value || length >= size)
        return false;
    memcpy(text, value, length);
    text[length] = '\0';
    return true;
}

static bool field_number(const char *line, const char *name, int64_t *ret_value)
{
    char text[24];
    return field(line, name, text, sizeof text) &&
           number_parse(name, text, INT32_MIN, INT32_MAX, ret_value, NULL) == 0;
}

/* ---- commands ---- */

struct request {
    struct pmi1_conn *conn;
    const char *line;
    struct buf *out;
};

/* A command that names another job's space; one without a name means ours. */
static bool other_kvs(const struct request *request)
{
    char name[PMI1_KVSNAME_MAX];
    return field_rest(request->line, "kvsname") &&
           (!field(request->line, "kvsname", name, sizeof name) ||
            strcmp(name, pmi1_kvs_name(request->conn->kvs)) != 0);
}

static int do_init(const struct request *request)
{
    int64_t version = 0;
    bool good = field_number(request->line, "pmi_version", &version) && version == 1;
    /* 1.1 whatever the client has: with 1.2 it would ask for barriers of groups */
    buf_printf(request->out, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=%d\n",
               good ? 0 : -1);
    if (good) {
        request->conn->initialized = true;
        request->conn->finalized = false; /* MPICH 5 starts anew after its last session */
    }
    return 0;
}

static int do_maxes(const struct request *request)
{
    buf_printf(request->out, "cmd=maxes kvsname_max=%u keylen_max=%u vallen_max=%u\n",
               PMI1_KVSNAME_MAX, PMI1_KEY_MAX, PMI1_VALUE_ANNOUNCED);
    return 0;
}

static int do_appnum(const struct request *request)
{
    buf_printf(request->out, "cmd=appnum appnum=%u\n", request->conn->appnum);
    return 0;
}

static int do_kvsname(const struct request *request)
{
    buf_printf(request->out, "cmd=my_kvsname kvsname=%s\n", pmi1_kvs_name(request->conn->kvs));
    return 0;
}

static int do_universe(const struct request *request)
{
    buf_printf(request->out, "cmd=universe_size size=%u\n", request->conn->size);
    return 0;
}

/* Intel MPI's extension; without hosts it finds its neighbours by itself. */
static int do_ranks2hosts(const struct request *request)
{
    buf_add_str(request->out, "cmd=put_ranks2hosts 0 0\n");
    return 0;
}

static int do_put(const struct request *request)
{
    char key[PMI1_KEY_MAX];
    const char *value = field_rest(request->line, "value"); /* may hold spaces and "=" */
    bool good = value && field(request->line, "key", key, sizeof key) && !other_kvs(request);
    int rc = good ? pmi1_kvs_put(request->conn->kvs, key, value) : -EINVAL;
    if (rc == -ENOMEM)
        return rc;
    buf_add_str(request->out, rc == 0 ? "cmd=put_result rc=0 msg=success\n"
                                      : "cmd=put_result rc=-1 msg=invalid_argument\n");
    return 0;
}

static int do_get(const struct request *request)
{
    char key[PMI1_KEY_MAX];
    bool good = field(request->line, "key", key, sizeof key) && !other_kvs(request);
    const char *value = good ? pmi1_kvs_get(request->conn->kvs, key) : NULL;
    const struct pmi1_owner *owner = &request->conn->owner;
    if (good && !value && owner->lookup)
        value = owner->lookup(owner->arg, key);
    if (value)
        buf_printf(request->out, "cmd=get_result rc=0 msg=success value=%s\n", value);
    else
        buf_add_str(request->out, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
    return 0;
}

static int do_getbyidx(const struct request *request)
{
    int64_t index = -1;
    const char *key, *value;
    bool good = field_number(request->line, "idx", &index) && index >= 0 && !other_kvs(request);
    if (good && pmi1_kvs_entry(request->conn->kvs, (size_t)index, &key, &value))
        buf_printf(request->out, "cmd=getbyidx_results rc=0 nextidx=%d key=%s val=%s\n",
                   (int)index + 1, key, value);
    else
        buf_add_str(request->out, "cmd=getbyidx_results rc=-1 reason=no_more_keyvals\n");
    return 0;
}

static int do_barrier(const struct request *request)
{
    struct pmi1_conn *conn = request->conn;
    if (conn->in_barrier)
        return -EPROTO;
    conn->in_barrier = true;
    conn->owner.barrier(conn->owner.arg, conn->rank);
    return 0;
}

static int do_finalize(const struct request *request)
{
    request->conn->finalized = true;
    buf_add_str(request->out, "cmd=finalize_ack\n");
    return 0;
}

static int do_abort(const struct request *request)
{
    struct pmi1_conn *conn = request->conn;
    int64_t status = 1;
    field_number(request->line, "exitcode", &status);
    const char *text = field_rest(request->line, "message");
    if (!text || strcmp(text, "abort") == 0) /* MPICH 5's stub for any text */
        text = "";
    conn->owner.abort(conn->owner.arg, conn->rank, (int)status, text);
    return 0;
}

/* What we have not; the name of the reply is the command's third column below. */
static int refuse(const struct request *request, const char *reply)
{
    buf_printf(request->out, "cmd=%s rc=-1 msg=not_supported\n", reply);
    return 0;
}

static const struct command {
    const char *name;
    int (*run)(const struct request *request); /* 0, -EPROTO or -ENOMEM; NULL: refused */
    const char *refusal;
} commands[] = {
    {"init", do_init, NULL},
    {"get_maxes", do_maxes, NULL},
    {"get_appnum", do_appnum, NULL},
    {"get_my_kvsname", do_kvsname, NULL},
    {"get_universe_size", do_universe, NULL},
    {"get_ranks2hosts", do_ranks2hosts, NULL},
    {"put", do_put, NULL},
    {"get", do_get, NULL},
    {"getbyidx", do_getbyidx, NULL},
    {"barrier_in", do_barrier, NULL},
    {"finalize", do_finalize, NULL},
    {"abort", do_abort, NULL},
    {"publish_name", NULL, "publish_result"},
    {"unpublish_name", NULL, "unpublish_result"},
    {"lookup_name", NULL, "lookup_result"},
    {"create_kvs", NULL, "newkvs"},
    {"destroy_kvs", NULL, "kvs_destroyed"},
};

static const struct command *find_command(const char *line)
{
    if (strncmp(line, "cmd=", 4) != 0)
        return NULL;
    size_t length = strcspn(line + 4, " ");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strlen(commands[i].name) == length && strncmp(line + 4, commands[i].name, length) == 0)
            return &commands[i];
    return NULL;
}

/* ---- spawn: mcmd=spawn, fields a line each, endcmd; once for each program ---- */

static void spawn_line(struct pmi1_conn *conn, const char *line, struct buf *out)
{
    if (strncmp(line, "totspawns=", 10) == 0)
        number_parse("totspawns", line + 10, 1, INT32_MAX, &conn->spawns, NULL);
    if (strncmp(line, "spawnssofar=", 12) == 0)
        number_parse("spawnssofar", line + 12, 1, INT32_MAX, &conn->spawns_so_far, NULL);
    if (strcmp(line, "endcmd") != 0)
        return;
    conn->in_spawn = false;
    if (conn->spawns_so_far >= conn->spawns)
        buf_add_str(out, "cmd=spawn_result rc=-1 msg=not_supported\n");
}

static void spawn_begin(struct pmi1_conn *conn)
{
    conn->in_spawn = true;
    conn->spawns = conn->spawns_so_far = 1;
}

/* ---- lines ---- */

static int run_line(struct pmi1_conn *conn, const char *line, struct buf *out)
{
    if (conn->in_spawn) {
        spawn_line(conn, line, out);
        return 0;
    }
    if (strcmp(line, "mcmd=spawn") == 0 && conn->initialized) {
        spawn_begin(conn);
        return 0;
    }
    const struct command *command = find_command(line);
    /* a client whose init fails may abort, and does nothing else before */
    bool early = command && (command->run == do_init || command->run == do_abort);
    if (!command || (!conn->initialized && !early))
        return -EPROTO;
    struct request request = {conn, line, out};
    return command->run ? command->run(&request) : refuse(&request, command->refusal);
}

/* At most the first 80 bytes of what a rank sent, for the error. */
static int line_error(const char *line, size_t length, struct drarun_error *err)
{
    char shown[81];
    size_t n = length < sizeof shown - 1 ? length : sizeof shown - 1;
    for (size_t i = 0; i < n; i++)
        shown[i] = isprint((unsigned char)line[i]) ? line[i] : '?';
    shown[n] = '\0';
    return error_set(err, EPROTO, "unexpected line \"%s\"%s", shown, n < length ? "..." : "");
}

/* Runs the complete lines of the input; *ret_used says how far it got. */
static int run_lines(struct pmi1_conn *conn, struct buf *out, size_t *ret_used,
                     struct drarun_error *err)
{
    size_t used = 0;
    int rc = 0;
    for (;;) {
        char *line = conn->in.data + used;
        size_t left = conn->in.len - used;
        char *end = memchr(line, '\n', left);
        size_t length = end ? (size_t)(end - line) : left;
        if (length > PMI1_LINE_MAX)
            rc = line_error(line, length, err);
        if (rc < 0 || !end)
            break;
        *end = '\0';
        rc = strlen(line) == length ? run_line(conn, line, out) : -EPROTO;
        if (rc == -EPROTO)
            rc = line_error(line, length, err);
        else if (rc < 0)
            rc = error_set(err, -rc, "%s", strerror(-rc));
        used += length + 1;
    }
    *ret_used = used;
    return rc;
}

int pmi1_conn_input(struct pmi1_conn *conn, const void *data, size_t length, struct buf *out,
                    struct drarun_error *err)
{
    size_t used = 0;
    if (conn->dead)
        return error_set(err, EPROTO, "the connection has failed before");
    buf_add(&conn->in, data, length);
    int rc = 0;
    if (conn->in.failed)
        rc = error_set(err, ENOMEM, "out of memory");
    else if (conn->in.len > 0)
        rc = run_lines(conn, out, &used, err);
    if (rc == 0 && out->failed)
        rc = error_set(err, ENOMEM, "out of memory");
    conn->dead = rc < 0;
    if (rc == 0)
        buf_consume(&conn->in, used);
    return rc;
}
