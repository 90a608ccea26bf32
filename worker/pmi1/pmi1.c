/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmi1/pmi1.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/number.h"
#include "worker/pmi1/kvs.h"

struct pmi1_conn {
    uint32_t rank, universe, appnum;
    struct pmi1_kvs *kvs;
    struct pmi1_owner owner;
    struct buf in; /* what has come of the current line, and lines behind it */
    bool initialized, finalized, in_barrier, dead;
    uint32_t keys, bytes;          /* that it has added to kvs, since it began again */
    bool full;                     /* which was told */
    bool again;                    /* it began again, which was told */
    bool in_spawn;                 /* between mcmd=spawn and endcmd */
    bool awaits_spawn;             /* between that and pmi1_spawned */
    enum pmi1_name awaits_name;    /* between the command and pmi1_named; 0: none */
    int64_t spawns, spawns_so_far; /* of the current MPI_Comm_spawn_multiple */
    struct spawn_request *spawn;   /* what has come of it; NULL: none, or it is refused */
    uint32_t spawn_bytes;
    char spawn_key[PMI1_KEY_MAX]; /* of the value in the next line */
};

struct pmi1_conn *pmi1_conn_new(uint32_t rank, uint32_t universe, uint32_t appnum,
                                struct pmi1_kvs *kvs, const struct pmi1_owner *owner)
{
    struct pmi1_conn *conn = calloc(1, sizeof *conn);
    if (conn)
        *conn = (struct pmi1_conn){
            .rank = rank, .universe = universe, .appnum = appnum, .kvs = kvs, .owner = *owner};
    return conn;
}

void pmi1_conn_free(struct pmi1_conn *conn)
{
    if (!conn)
        return;
    buf_done(&conn->in);
    spawn_request_free(conn->spawn);
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

static void begin_again(struct pmi1_conn *conn)
{
    conn->finalized = false;
    if (conn->again)
        return;
    conn->again = true;
    conn->full = false;
    conn->keys = conn->bytes = 0;
    if (conn->owner.again)
        conn->owner.again(conn->owner.arg, conn->rank);
}

void pmi1_conn_forget(struct pmi1_conn *conn)
{
    conn->again = false;
}

static int do_init(const struct request *request)
{
    int64_t version = 0;
    bool good = field_number(request->line, "pmi_version", &version) && version == 1;
    /* 1.1 whatever the client has: with 1.2 it would ask for barriers of groups */
    buf_printf(request->out, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=%d\n",
               good ? 0 : -1);
    if (good)
        request->conn->initialized = true;
    if (good && request->conn->finalized) /* MPICH 5, after its last session */
        begin_again(request->conn);
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
    buf_printf(request->out, "cmd=universe_size size=%u\n", request->conn->universe);
    return 0;
}

/* Intel MPI's extension; without hosts it finds its neighbours by itself. */
static int do_ranks2hosts(const struct request *request)
{
    buf_add_str(request->out, "cmd=put_ranks2hosts 0 0\n");
    return 0;
}

/* -EDQUOT: it is more than a rank may put. A value that replaces another counts by what it is
 * longer. */
static int put(struct pmi1_conn *conn, const char *key, const char *value)
{
    const char *before = pmi1_kvs_get(conn->kvs, key);
    size_t length = strlen(value), old = before ? strlen(before) : 0;
    size_t more = (before ? 0 : strlen(key)) + (length > old ? length - old : 0);
    uint32_t keys = conn->keys + !before;
    if (keys > PMI1_RANK_KEYS_MAX || more > PMI1_RANK_BYTES_MAX - conn->bytes)
        return -EDQUOT;
    int rc = pmi1_kvs_put(conn->kvs, key, value);
    if (rc == 0) {
        conn->keys = keys;
        conn->bytes += (uint32_t)more;
    }
    return rc;
}

static void refuse_put(const struct request *request)
{
    struct pmi1_conn *conn = request->conn;
    buf_printf(request->out,
               "cmd=put_result rc=-1 msg=a_rank_may_put_%u_keys_and_%u_bytes_at_most\n",
               PMI1_RANK_KEYS_MAX, PMI1_RANK_BYTES_MAX);
    if (!conn->full && conn->owner.full)
        conn->owner.full(conn->owner.arg, conn->rank);
    conn->full = true;
}

static int do_put(const struct request *request)
{
    char key[PMI1_KEY_MAX];
    const char *value = field_rest(request->line, "value"); /* may hold spaces and "=" */
    bool good = value && field(request->line, "key", key, sizeof key) && !other_kvs(request);
    int rc = good ? put(request->conn, key, value) : -EINVAL;
    if (rc == -ENOMEM)
        return rc;
    if (rc == -EDQUOT)
        refuse_put(request);
    else
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

/* ---- names of ports ---- */

void pmi1_named(struct pmi1_conn *conn, bool good, const char *port, struct buf *out)
{
    static const char *const replies[] = {[PMI1_PUBLISH] = "publish_result",
                                          [PMI1_LOOKUP] = "lookup_result",
                                          [PMI1_UNPUBLISH] = "unpublish_result"};
    assert(conn->awaits_name);
    const char *reply = replies[conn->awaits_name];
    if (!good)
        buf_printf(out, "cmd=%s rc=-1 msg=no_such_name\n", reply);
    else if (conn->awaits_name == PMI1_LOOKUP)
        buf_printf(out, "cmd=%s rc=0 msg=success port=%s\n", reply, port);
    else
        buf_printf(out, "cmd=%s rc=0 msg=success\n", reply);
    conn->awaits_name = 0;
}

/* The service may hold spaces; the port may not. */
static int do_name(const struct request *request, enum pmi1_name what)
{
    struct pmi1_conn *conn = request->conn;
    const char *service = field_rest(request->line, "service");
    const char *end = service && what == PMI1_PUBLISH ? strstr(service, " port=") : NULL;
    if (conn->awaits_name)
        return -EPROTO;
    conn->awaits_name = what;
    if (!conn->owner.name || !service || !service[0] || (what == PMI1_PUBLISH && !end)) {
        pmi1_named(conn, false, "", request->out);
        return 0;
    }
    cleanup_free char *name = end ? strndup(service, (size_t)(end - service)) : strdup(service);
    if (!name)
        return -ENOMEM;
    conn->owner.name(conn->owner.arg, conn->rank, what, name, end ? end + strlen(" port=") : "");
    return 0;
}

static int do_publish(const struct request *request)
{
    return do_name(request, PMI1_PUBLISH);
}

static int do_unpublish(const struct request *request)
{
    return do_name(request, PMI1_UNPUBLISH);
}

static int do_lookup(const struct request *request)
{
    return do_name(request, PMI1_LOOKUP);
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
    {"publish_name", do_publish, NULL},
    {"unpublish_name", do_unpublish, NULL},
    {"lookup_name", do_lookup, NULL},
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

void pmi1_spawned(struct pmi1_conn *conn, bool good, struct buf *out)
{
    assert(conn->awaits_spawn);
    conn->awaits_spawn = false;
    buf_add_str(out, good ? "cmd=spawn_result rc=0 msg=success\n"
                          : "cmd=spawn_result rc=-1 msg=not_started\n");
}

/* The value of "PREFIX<number>=VALUE"; NULL: another line. */
static const char *numbered(const char *line, const char *prefix)
{
    size_t length = strlen(prefix);
    if (strncmp(line, prefix, length) != 0 || !isdigit((unsigned char)line[length]))
        return NULL;
    const char *rest = line + length + strspn(line + length, "0123456789");
    return *rest == '=' ? rest + 1 : NULL;
}

static int spawn_number(const char *line, const char *name, int64_t *ret_value)
{
    size_t length = strlen(name);
    if (strncmp(line, name, length) != 0 || line[length] != '=')
        return 0;
    return number_parse(name, line + length + 1, 1, INT32_MAX, ret_value, NULL);
}

static void note_key(struct pmi1_conn *conn, const char *key)
{
    size_t length = strlen(key);
    bool fits = length < sizeof conn->spawn_key;
    memcpy(conn->spawn_key, fits ? key : "", fits ? length + 1 : 1);
}

/* What one line says of the last program. -EINVAL: it cannot be. */
static int spawn_field(struct pmi1_conn *conn, struct spawn_program *program, const char *line)
{
    const char *value;
    int64_t count = program->count;
    int rc = spawn_number(line, "nprocs", &count);
    program->count = (uint32_t)count;
    if (rc == 0 && strncmp(line, "execname=", 9) == 0 && program->argv.count == 0)
        strlist_add(&program->argv, line + 9);
    else if (rc == 0 && (value = numbered(line, "arg")))
        strlist_add(&program->argv, value);
    else if (rc == 0 &&
             ((value = numbered(line, "preput_key_")) || (value = numbered(line, "info_key_"))))
        note_key(conn, value);
    else if (rc == 0 && (value = numbered(line, "preput_val_")))
        strlist_addf(&program->preput, "%s=%s", conn->spawn_key, value);
    else if (rc == 0 && (value = numbered(line, "info_val_")))
        rc = spawn_request_info(conn->spawn, program, conn->spawn_key, value);
    return program->argv.failed || program->preput.failed ? -ENOMEM : rc;
}

static bool spawn_is_complete(const struct spawn_request *request)
{
    for (size_t i = 0; request && i < request->count; i++)
        if (request->programs[i].argv.count == 0 || !request->programs[i].argv.items[0][0])
            return false;
    return request && request->count > 0;
}

static void refuse_spawn(struct pmi1_conn *conn)
{
    spawn_request_free(conn->spawn);
    conn->spawn = NULL;
}

static void spawn_end(struct pmi1_conn *conn, struct buf *out)
{
    conn->in_spawn = false;
    if (conn->spawns_so_far < conn->spawns)
        return;
    struct spawn_request *request = conn->spawn;
    conn->spawn = NULL;
    conn->spawn_bytes = 0;
    conn->awaits_spawn = true;
    if (spawn_is_complete(request) && spawn_request_find(request) == 0 && conn->owner.spawn)
        conn->owner.spawn(conn->owner.arg, conn->rank, request);
    else
        pmi1_spawned(conn, false, out);
    spawn_request_free(request);
}

static void spawn_line(struct pmi1_conn *conn, const char *line, struct buf *out)
{
    struct spawn_request *request = conn->spawn;
    if (strcmp(line, "endcmd") == 0) {
        spawn_end(conn, out);
        return;
    }
    conn->spawn_bytes += (uint32_t)strlen(line);
    int rc = spawn_number(line, "totspawns", &conn->spawns);
    if (rc == 0)
        rc = spawn_number(line, "spawnssofar", &conn->spawns_so_far);
    if (rc == 0 && request)
        rc = conn->spawn_bytes > PMI1_SPAWN_BYTES_MAX
                 ? -EDQUOT
                 : spawn_field(conn, &request->programs[request->count - 1], line);
    if (rc < 0)
        refuse_spawn(conn);
}

static void spawn_begin(struct pmi1_conn *conn)
{
    bool first = conn->spawns_so_far >= conn->spawns;
    if (first) {
        refuse_spawn(conn);
        conn->spawn = spawn_request_new(0);
    }
    conn->in_spawn = true;
    conn->spawns = conn->spawns_so_far = 1;
    conn->spawn_key[0] = '\0';
    if (conn->spawn && !spawn_request_add(conn->spawn))
        refuse_spawn(conn);
}

/* ---- lines ---- */

static int run_line(struct pmi1_conn *conn, const char *line, struct buf *out)
{
    if (conn->in_spawn) {
        spawn_line(conn, line, out);
        return 0;
    }
    if (strcmp(line, "mcmd=spawn") == 0 && conn->initialized && !conn->awaits_spawn) {
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
