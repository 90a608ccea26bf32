/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/preflight/reach.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/preflight/fabric.h"
#include "jobs/derive/nccl/gid_table.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"
#include "lib/topo/rdma_text.h"

#define BROKEN_SHOWN 64u /* pairs in the document; the matrix has all */
#define SEED_MASK INT64_MAX

/* ---- one pair, as a table ---- */

enum stage {
    STAGE_OPENING = 1, /* addresses of both are awaited */
    STAGE_ACCEPTING,   /* the receiver connects */
    STAGE_WRITING,     /* the writer connects and writes */
    STAGE_WROTE,       /* all was acknowledged; the receiver has not told of it */
    STAGE_SAW,         /* the receiver has all; no acknowledgement was told */
    STAGE_OVER,
};

enum event {
    EVENT_ADDRESSES = 1, /* both are known */
    EVENT_ACCEPTED,
    EVENT_WROTE,
    EVENT_SAW,
};

static const struct {
    enum stage stage;
    enum event event;
    enum stage next;
} steps[] = {
    {STAGE_OPENING, EVENT_ADDRESSES, STAGE_ACCEPTING},
    {STAGE_ACCEPTING, EVENT_ACCEPTED, STAGE_WRITING},
    {STAGE_WRITING, EVENT_WROTE, STAGE_WROTE},
    {STAGE_WRITING, EVENT_SAW, STAGE_SAW},
    {STAGE_WROTE, EVENT_SAW, STAGE_OVER},
    {STAGE_SAW, EVENT_WROTE, STAGE_OVER},
};

struct pair {
    struct reach_pair told;
    enum stage stage;
    char *why;
};

struct rail {
    char label[96], device[64], address[48];
    uint32_t port, gid;
    const char *untried;
    json_t *in, *out;    /* addresses of its ends, for the other side's process */
    struct pair *writes; /* in which it is the writer; NULL: no other worker has such a rail */
    struct pair *reads;  /* in which it is written to; NULL: none */
};

struct worker {
    struct rail *rails;
    size_t count;
    uint32_t next, role;
    bool begun;
    char *gone; /* why nothing comes of it; NULL */
};

struct reach {
    struct worker *workers;
    struct pair *pairs;
    size_t count, pair_count, open;
    uint64_t seed;
    int64_t limit_ms;
    reach_send_fn send;
    void *arg;
    bool failed; /* no memory */
};

/* ---- building ---- */

struct reach *reach_new(uint32_t workers, const uint32_t *rank_order, uint64_t seed,
                        int64_t limit_ms, reach_send_fn send, void *arg)
{
    struct reach *reach = calloc(1, sizeof *reach);
    if (reach)
        reach->workers = calloc(workers, sizeof *reach->workers);
    if (!reach || !reach->workers) {
        free(reach);
        return NULL;
    }
    reach->count = workers;
    reach->seed = seed;
    reach->limit_ms = limit_ms;
    reach->send = send;
    reach->arg = arg;
    for (uint32_t i = 0; i < workers; i++) {
        uint32_t next = (i + 1) % workers;
        uint32_t a = rank_order ? rank_order[i] : i, b = rank_order ? rank_order[next] : next;
        reach->workers[a].next = b;
    }
    return reach;
}

void reach_free(struct reach *reach)
{
    if (!reach)
        return;
    for (size_t w = 0; w < reach->count; w++) {
        struct worker *worker = &reach->workers[w];
        for (size_t r = 0; r < worker->count; r++) {
            json_decref(worker->rails[r].in);
            json_decref(worker->rails[r].out);
        }
        free(worker->rails);
        free(worker->gone);
    }
    for (size_t i = 0; i < reach->pair_count; i++)
        free(reach->pairs[i].why);
    free(reach->workers);
    free(reach->pairs);
    free(reach);
}

int reach_add_rail(struct reach *reach, uint32_t worker, const char *device, uint32_t port,
                   uint32_t gid, const char *address, const char *untried)
{
    struct worker *w = &reach->workers[worker];
    struct rail *grown = reallocarray(w->rails, w->count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    w->rails = grown;
    struct rail *rail = &w->rails[w->count++];
    *rail = (struct rail){.port = port, .gid = gid, .untried = untried};
    snprintf(rail->device, sizeof rail->device, "%s", device);
    snprintf(rail->address, sizeof rail->address, "%s", address);
    if (port == 1)
        snprintf(rail->label, sizeof rail->label, "%s", rail->device);
    else
        snprintf(rail->label, sizeof rail->label, "%s, port %u", rail->device, port);
    return 0;
}

/* ---- of a plan ---- */

static bool is_local(const char *address)
{
    return strncmp(address, "fe80:", 5) == 0 || strncmp(address, "169.254.", 8) == 0;
}

/* Of a device that the plan's probe does not show, as software RDMA: the first port's. -1: none. */
static int32_t told_gid(const json_t *verbs, bool ipv6, char *address, size_t size)
{
    size_t i;
    json_t *gid;
    const json_t *port = json_array_get(json_object_get(verbs, "ports"), 0);
    json_array_foreach(json_object_get(port, "gidTable"), i, gid)
    {
        const char *text = value_text_or(gid, "address", "fe80:");
        json_int_t index = json_integer_value(json_object_get(gid, "index"));
        if (strcmp(value_text_or(gid, "type", ""), "RoCE v2") != 0 || is_local(text) ||
            (strchr(text, ':') != NULL) != ipv6 || index < 0 || index > UINT8_MAX)
            continue;
        snprintf(address, size, "%s", text);
        return (int32_t)index;
    }
    return -1;
}

static const struct topo_gid *gid_at(const struct topo_port *port, int32_t index)
{
    for (size_t i = 0; index >= 0 && i < port->gid_count; i++)
        if (port->gids[i].index == (uint32_t)index)
            return &port->gids[i];
    return NULL;
}

/* As the check of the NIC alone has told already (nic_check.h). */
static const char not_opened[] = "it could not be opened";
static const char link_down[] = "its link is down";

static bool is_told(const char *untried)
{
    return untried == not_opened || untried == link_down;
}

static bool is_inferred(const json_t *verbs)
{
    return value_text_or(verbs, "inferred", "")[0] != '\0';
}

/* The address that the ranks use, as variables_gid.c chooses it. */
static int add_port(struct reach *reach, uint32_t worker, const struct plan *plan,
                    const struct fabric_rail *rail, const json_t *verbs)
{
    const struct inventory_nic *nic = rail->nic;
    const struct topo_port *port = rail->port;
    const char *device = fabric_device(rail);
    bool ethernet = nic && strcmp(nic->link_layer, "Ethernet") == 0;
    struct gid_table table = {.ipv4 = -1, .ipv6 = -1, .local = -1};
    char address[48] = "";
    if (!nic)
        return reach_add_rail(reach, worker, device, 1, 0, "", link_down);
    if (is_inferred(verbs))
        return reach_add_rail(reach, worker, device, port ? port->number : 1, 0, "", not_opened);
    if (json_is_true(json_object_get(verbs, "iwarp")))
        return reach_add_rail(reach, worker, device, port ? port->number : 1, 0, "",
                              "iWARP connects by the connection manager, which is not tried");
    if (!ethernet)
        return reach_add_rail(reach, worker, device, port ? port->number : 1, 0, "", NULL);
    if (port)
        gid_table_read(port, &table);
    int32_t index = plan->roce_ipv6 ? table.ipv6 : table.ipv4;
    if (index < 0)
        index = table.local >= 0 ? table.local : nic->gid;
    const struct topo_gid *gid = port ? gid_at(port, index) : NULL;
    if (gid)
        gid_format(gid->bytes, address);
    if (index < 0 && !port)
        index = told_gid(verbs, plan->roce_ipv6, address, sizeof address);
    return reach_add_rail(reach, worker, device, port ? port->number : 1,
                          index < 0 ? 0 : (uint32_t)index, address,
                          index < 0 ? "it is not known which GID has its address" : NULL);
}

int reach_add_plan(struct reach *reach, uint32_t first, uint32_t role, const struct plan *plan,
                   const json_t *const *inspections)
{
    int rc = 0;
    for (uint32_t w = 0; rc == 0 && w < plan->worker_count; w++) {
        cleanup_free struct fabric_rail *rails = NULL;
        size_t count = 0;
        const json_t *verbs = json_object_get(inspections[first + w], "verbs"); /* 018 */
        reach->workers[first + w].role = role;
        rc = fabric_rails(&plan->workers[w], &rails, &count);
        for (size_t r = 0; rc == 0 && r < count; r++)
            rc = add_port(reach, first + w, plan, &rails[r],
                          value_find(verbs, "device", fabric_device(&rails[r])));
    }
    return rc;
}

/* ---- ends of pairs ---- */

__attribute__((format(printf, 4, 5))) static void
end_pair(struct reach *reach, struct pair *pair, enum reach_result result, const char *format, ...)
{
    if (pair->stage == STAGE_OVER)
        return;
    pair->stage = STAGE_OVER;
    pair->told.result = result;
    reach->open--;
    if (!format)
        return;
    va_list args;
    va_start(args, format);
    if (vasprintf(&pair->why, format, args) < 0)
        pair->why = NULL, reach->failed = true;
    va_end(args);
    pair->told.why = pair->why;
}

void reach_give_up(struct reach *reach, uint32_t worker, const char *why)
{
    struct worker *w = &reach->workers[worker];
    if (!w->gone)
        w->gone = strdup(why);
    for (size_t i = 0; i < reach->pair_count; i++) {
        struct pair *pair = &reach->pairs[i];
        if (pair->told.from == worker || pair->told.to == worker)
            end_pair(reach, pair, REACH_UNKNOWN, "worker %u: %s", worker, why);
    }
}

/* ---- the beginning ---- */

/* The next worker that has the rail. One of the writer's own role should have it, so that one that
 * has not is a finding; workers of other roles may have fewer rails, and are passed over. */
static uint32_t opposite(const struct reach *reach, uint32_t writer, uint32_t rail)
{
    const struct worker *workers = reach->workers;
    uint32_t w = workers[writer].next;
    while (w != writer && rail >= workers[w].count && workers[w].role != workers[writer].role)
        w = workers[w].next;
    return w;
}

static void add_pair(struct reach *reach, uint32_t writer, uint32_t rail)
{
    uint32_t to = opposite(reach, writer, rail);
    if (to == writer)
        return;
    struct pair *pair = &reach->pairs[reach->pair_count++];
    *pair = (struct pair){.told = {.from = writer, .to = to, .rail = rail}, .stage = STAGE_OPENING};
    reach->workers[writer].rails[rail].writes = pair;
    if (rail < reach->workers[to].count)
        reach->workers[to].rails[rail].reads = pair;
}

static int make_pairs(struct reach *reach)
{
    size_t count = 0;
    for (size_t w = 0; w < reach->count; w++)
        count += reach->workers[w].count;
    reach->pairs = calloc(count + 1, sizeof *reach->pairs);
    if (!reach->pairs)
        return -ENOMEM;
    for (uint32_t w = 0; w < reach->count; w++)
        for (uint32_t r = 0; r < reach->workers[w].count; r++)
            add_pair(reach, w, r);
    reach->open = reach->pair_count;
    return 0;
}

/* Pairs of which it is known already that they cannot be tried. */
static void end_untried(struct reach *reach)
{
    for (size_t i = 0; i < reach->pair_count; i++) {
        struct pair *pair = &reach->pairs[i];
        const struct worker *from = &reach->workers[pair->told.from];
        const struct worker *to = &reach->workers[pair->told.to];
        uint32_t rail = pair->told.rail;
        const char *untried = from->rails[rail].untried;
        pair->told.echo =
            is_told(untried) || (rail < to->count && is_told(to->rails[rail].untried));
        if (rail >= to->count)
            end_pair(reach, pair, REACH_UNKNOWN, "worker %u has %zu rails", pair->told.to,
                     to->count);
        else if (untried || to->rails[rail].untried)
            end_pair(reach, pair, REACH_UNKNOWN, "%s of worker %u: %s",
                     (untried ? from : to)->rails[rail].label,
                     untried ? pair->told.from : pair->told.to,
                     untried ? untried : to->rails[rail].untried);
        else if (from->gone || to->gone)
            end_pair(reach, pair, REACH_UNKNOWN, "worker %u: %s",
                     from->gone ? pair->told.from : pair->told.to,
                     from->gone ? from->gone : to->gone);
    }
}

static void send_take(struct reach *reach, uint32_t worker, json_t *line)
{
    cleanup_free char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    json_decref(line);
    reach->failed |= !text;
    if (text)
        reach->send(reach->arg, worker, text);
}

static json_t *rails_json(const struct worker *worker)
{
    json_t *list = json_array();
    for (size_t r = 0; r < worker->count; r++)
        json_array_append_new(list, json_pack("{s:s, s:i, s:i}", "device", worker->rails[r].device,
                                              "port", (int)worker->rails[r].port, "gid",
                                              (int)worker->rails[r].gid));
    return list;
}

/* Whose pairs are all over already has nothing to do. */
static bool has_work(const struct reach *reach, uint32_t worker)
{
    for (size_t i = 0; i < reach->pair_count; i++)
        if (reach->pairs[i].stage != STAGE_OVER &&
            (reach->pairs[i].told.from == worker || reach->pairs[i].told.to == worker))
            return true;
    return false;
}

int reach_begin(struct reach *reach)
{
    int rc = make_pairs(reach);
    if (rc < 0)
        return rc;
    end_untried(reach);
    for (uint32_t w = 0; w < reach->count; w++) {
        struct worker *worker = &reach->workers[w];
        if (worker->gone || !has_work(reach, w))
            continue;
        worker->begun = true;
        send_take(reach, w,
                  json_pack("{s:o, s:I}", "rails", rails_json(worker), "limitMs",
                            (json_int_t)reach->limit_ms));
    }
    return reach->failed ? -ENOMEM : 0;
}

/* ---- lines ---- */

static const struct rail *rail_of(const struct reach *reach, uint32_t worker, uint32_t rail)
{
    return &reach->workers[worker].rails[rail];
}

static void send_connect(struct reach *reach, const struct pair *pair, bool write)
{
    uint32_t rail = pair->told.rail;
    uint64_t seed =
        (reach->seed + (uint64_t)(pair - reach->pairs) * UINT64_C(0x9e3779b97f4a7c15)) & SEED_MASK;
    const json_t *address = write ? rail_of(reach, pair->told.to, rail)->in
                                  : rail_of(reach, pair->told.from, rail)->out;
    send_take(reach, write ? pair->told.from : pair->told.to,
              json_pack("{s:i, s:O, s:I}", "rail", (int)rail, write ? "write" : "accept", address,
                        "seed", (json_int_t)seed));
}

/* False: that cannot come now. */
static bool advance(struct reach *reach, struct pair *pair, enum event event)
{
    if (pair->stage == STAGE_OVER)
        return true; /* it came too late to matter */
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        if (steps[i].stage != pair->stage || steps[i].event != event)
            continue;
        if (steps[i].next == STAGE_OVER)
            end_pair(reach, pair, REACH_REACHED, NULL);
        pair->stage = steps[i].next;
        if (pair->stage == STAGE_ACCEPTING || pair->stage == STAGE_WRITING)
            send_connect(reach, pair, pair->stage == STAGE_WRITING);
        return true;
    }
    return false;
}

static void look_for_addresses(struct reach *reach, struct pair *pair)
{
    if (pair->stage == STAGE_OPENING && rail_of(reach, pair->told.from, pair->told.rail)->out &&
        rail_of(reach, pair->told.to, pair->told.rail)->in)
        advance(reach, pair, EVENT_ADDRESSES);
}

static bool take_addresses(struct reach *reach, uint32_t worker, uint32_t rail, const json_t *line)
{
    struct rail *own = &reach->workers[worker].rails[rail];
    json_t *in = json_object_get(line, "in"), *out = json_object_get(line, "out");
    if (own->in || !json_is_object(in) || !json_is_object(out))
        return false;
    own->in = json_incref(in);
    own->out = json_incref(out);
    if (own->writes)
        look_for_addresses(reach, own->writes);
    if (own->reads)
        look_for_addresses(reach, own->reads);
    return true;
}

static const char *way_to(const struct rail *rail, char *text, size_t size)
{
    if (!rail->address[0])
        return "";
    snprintf(text, size, " to %s", rail->address);
    return text;
}

static void fail_pair(struct reach *reach, struct pair *pair, uint32_t teller, const json_t *line)
{
    enum reach_fault fault = reach_fault_find(value_text_or(line, "fault", ""));
    const char *why = value_text_or(line, "why", "no reason was reported");
    uint32_t rail = pair->told.rail;
    const struct rail *own = rail_of(reach, teller, rail);
    const struct rail *other =
        rail_of(reach, teller == pair->told.from ? pair->told.to : pair->told.from, rail);
    char way[64];
    pair->told.fault = pair->stage == STAGE_OVER ? pair->told.fault : fault;
    switch (fault) {
    case REACH_FAULT_OPEN:
    case REACH_FAULT_PORT:
        end_pair(reach, pair, REACH_FAILED, "%s of worker %u cannot be used: %s", own->label,
                 teller, why);
        return;
    case REACH_FAULT_ROUTE:
        end_pair(reach, pair, REACH_FAILED, "worker %u has no way%s: %s", teller,
                 way_to(other, way, sizeof way), why);
        return;
    case REACH_FAULT_RETRY:
        end_pair(reach, pair, REACH_FAILED, "packets%s are not acknowledged: %s",
                 way_to(other, way, sizeof way), why);
        return;
    case REACH_FAULT_RNR:
        end_pair(reach, pair, REACH_FAILED, "the receiver was never ready: %s", why);
        return;
    case REACH_FAULT_ACCESS:
        end_pair(reach, pair, REACH_FAILED, "the receiver refused the write: %s", why);
        return;
    case REACH_FAULT_DATA:
        end_pair(reach, pair, REACH_FAILED, "the data that arrived differ from those sent, %s",
                 why);
        return;
    default:
        end_pair(reach, pair, REACH_FAILED, "the write failed: %s", why);
    }
}

static bool take_step(struct reach *reach, uint32_t worker, uint32_t rail, const json_t *line)
{
    static const struct {
        const char *key;
        enum event event;
        bool writer;
    } keys[] = {{"accepted", EVENT_ACCEPTED, false},
                {"wrote", EVENT_WROTE, true},
                {"saw", EVENT_SAW, false}};
    const struct rail *own = rail_of(reach, worker, rail);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const json_t *done = json_object_get(line, keys[i].key);
        struct pair *pair = keys[i].writer ? own->writes : own->reads;
        if (!done)
            continue;
        if (!pair || !json_is_boolean(done))
            return false;
        if (json_is_true(done))
            return advance(reach, pair, keys[i].event);
        fail_pair(reach, pair, worker, line);
        return true;
    }
    return false;
}

/* Both pairs of a rail that cannot be opened fail, and one of them tells it. */
static bool take_unopened(struct reach *reach, uint32_t worker, uint32_t rail, const json_t *line)
{
    const struct rail *own = rail_of(reach, worker, rail);
    if (!json_is_false(json_object_get(line, "open")))
        return false;
    if (own->writes)
        fail_pair(reach, own->writes, worker, line);
    if (own->reads && own->reads->stage != STAGE_OVER) {
        fail_pair(reach, own->reads, worker, line);
        own->reads->told.echo = own->writes != NULL;
    }
    return true;
}

int reach_take(struct reach *reach, uint32_t worker, const char *text, struct drarun_error *err)
{
    json_error_t why;
    CLEANUP(json_decrefp) json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    const json_t *number = json_object_get(line, "rail");
    json_int_t rail = json_integer_value(number);
    const struct worker *w = &reach->workers[worker];
    if (!w->begun || !json_is_integer(number) || rail < 0 || (uint64_t)rail >= w->count)
        return error_set(err, EPROTO,
                         "its process for NICs reports on a rail that it was not given: %.80s",
                         text);
    bool known = json_object_get(line, "in") ? take_addresses(reach, worker, (uint32_t)rail, line)
                 : json_object_get(line, "open")
                     ? take_unopened(reach, worker, (uint32_t)rail, line)
                     : take_step(reach, worker, (uint32_t)rail, line);
    if (!known)
        return error_set(err, EPROTO, "its process for NICs reports a step that is not due: %.80s",
                         text);
    return reach->failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* ---- the end ---- */

static void expire(struct reach *reach, struct pair *pair)
{
    uint32_t from = pair->told.from, to = pair->told.to, rail = pair->told.rail;
    const struct rail *writer = rail_of(reach, from, rail), *reader = rail_of(reach, to, rail);
    double seconds = (double)reach->limit_ms / 1000;
    switch (pair->stage) {
    case STAGE_OPENING:
        end_pair(reach, pair, REACH_UNKNOWN, "after %g s worker %u had not opened %s", seconds,
                 writer->out ? to : from, writer->out ? reader->label : writer->label);
        return;
    case STAGE_ACCEPTING:
        end_pair(reach, pair, REACH_UNKNOWN, "after %g s worker %u had not connected %s", seconds,
                 to, reader->label);
        return;
    case STAGE_WROTE:
        end_pair(reach, pair, REACH_UNKNOWN, "after %g s worker %u had not seen the data on %s",
                 seconds, to, reader->label);
        return;
    default:
        end_pair(reach, pair, REACH_UNKNOWN,
                 "after %g s worker %u had not reported the result of its writes on %s", seconds,
                 from, writer->label);
    }
}

void reach_expire(struct reach *reach)
{
    for (size_t i = 0; i < reach->pair_count; i++)
        if (reach->pairs[i].stage != STAGE_OVER)
            expire(reach, &reach->pairs[i]);
}

bool reach_over(const struct reach *reach)
{
    return reach->open == 0;
}

size_t reach_pair_count(const struct reach *reach)
{
    return reach->pair_count;
}

const struct reach_pair *reach_pair_at(const struct reach *reach, size_t index)
{
    return &reach->pairs[index].told;
}

const char *reach_rail_label(const struct reach *reach, uint32_t worker, uint32_t rail)
{
    const struct worker *w = &reach->workers[worker];
    return rail < w->count ? w->rails[rail].label : "";
}

/* ---- as a document ---- */

static json_t *end_json(const struct reach *reach, uint32_t worker, uint32_t rail)
{
    const struct worker *w = &reach->workers[worker];
    json_t *object = json_pack("{s:i}", "worker", (int)worker);
    if (rail < w->count) {
        json_object_set_new(object, "device", json_string(w->rails[rail].device));
        json_object_set_new(object, "port", json_integer(w->rails[rail].port));
    }
    return object;
}

static json_t *matrix_json(const struct reach *reach, size_t rails)
{
    static const char letters[] = {
        [REACH_OPEN] = '?', [REACH_REACHED] = '.', [REACH_FAILED] = 'x', [REACH_UNKNOWN] = '?'};
    json_t *matrix = json_array();
    cleanup_free char *row = calloc(1, rails + 1);
    for (size_t w = 0; row && w < reach->count; w++) {
        const struct worker *worker = &reach->workers[w];
        for (size_t r = 0; r < rails; r++) {
            const struct pair *pair = r < worker->count ? worker->rails[r].writes : NULL;
            row[r] = pair ? letters[pair->told.result] : '-';
        }
        json_array_append_new(matrix, json_string(row));
    }
    return matrix;
}

json_t *reach_json(const struct reach *reach, int64_t ms)
{
    size_t counts[REACH_UNKNOWN + 1] = {0}, rails = 0;
    json_t *broken = json_array();
    for (size_t w = 0; w < reach->count; w++)
        rails = reach->workers[w].count > rails ? reach->workers[w].count : rails;
    for (size_t i = 0; i < reach->pair_count; i++) {
        const struct reach_pair *pair = &reach->pairs[i].told;
        counts[pair->result]++;
        if (pair->result == REACH_REACHED || json_array_size(broken) == BROKEN_SHOWN)
            continue;
        json_array_append_new(broken, json_pack("{s:o, s:o, s:s, s:s, s:s}", "from",
                                                end_json(reach, pair->from, pair->rail), "to",
                                                end_json(reach, pair->to, pair->rail), "result",
                                                pair->result == REACH_FAILED ? "failed" : "unknown",
                                                "fault", reach_fault_name(pair->fault), "why",
                                                pair->why ? pair->why : ""));
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "ms", (json_int_t)ms,
                     "workers", (json_int_t)reach->count, "rails", (json_int_t)rails, "pairs",
                     (json_int_t)reach->pair_count, "reached", (json_int_t)counts[REACH_REACHED],
                     "failed", (json_int_t)counts[REACH_FAILED], "unknown",
                     (json_int_t)(counts[REACH_UNKNOWN] + counts[REACH_OPEN]), "matrix",
                     matrix_json(reach, rails), "broken", broken);
}
