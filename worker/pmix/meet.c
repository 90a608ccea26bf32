/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives with ranks of other jobs of the user (docs/design/037-spawn.md). The job's own ranks
 * enter a collective with what they have put. The agent of the first of them has the launcher
 * exchange that for the parts of the other jobs, and a second collective distributes these. Each
 * agent then knows everything about the other ranks that anyone here may ask for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/sha256.h"
#include "lib/base/unconst.h"
#include "worker/pmix/far.h"
#include "worker/pmix/host_private.h"

/* For a rank that never commits what it puts: the library answers only once it has. */
#define MODEX_MS 5000

struct meeting {
    struct meeting *next;
    struct pmix_host *host;
    struct upcall *upcall;
    uint64_t id; /* of its questions to the library */
    struct coll_range *ranges;
    size_t count;
    char name[SHA256_TEXT_SIZE]; /* of the members, in all jobs */
    char *key;                   /* of the collective of the job's own ranks */
    struct strlist nspaces;      /* of other jobs */
    struct buf part;             /* ours: of this agent, then of the job */
    uint32_t open;               /* modex that the library has not answered */
    struct event *timer;
    bool refused; /* the part does not fit */
};

static bool is_connect(const struct meeting *meeting)
{
    return meeting->upcall->kind == UPCALL_CONNECT;
}

static bool is_fence(const struct meeting *meeting)
{
    return meeting->upcall->kind == UPCALL_FENCE;
}

static void meeting_free(struct meeting *meeting)
{
    struct meeting **link = &meeting->host->meetings;
    while (*link && *link != meeting)
        link = &(*link)->next;
    if (*link)
        *link = meeting->next;
    if (meeting->timer)
        event_free(meeting->timer);
    strlist_done(&meeting->nspaces);
    buf_done(&meeting->part);
    free(meeting->ranges);
    free(meeting->key);
    free(meeting);
}

void pmix_drop_meetings(struct pmix_host *host)
{
    while (host->meetings) {
        if (host->meetings->upcall)
            upcall_answer(host->meetings->upcall, PMIX_ERR_UNREACH);
        meeting_free(host->meetings);
    }
    far_drop(host);
}

/* ---- the other jobs' ranks ---- */

static pmix_status_t take_part(const struct meeting *meeting, const Drarun__Wire__MeetPart *part)
{
    struct pmix_host *host = meeting->host;
    pmix_status_t status = PMIX_SUCCESS;
    for (size_t i = 0; status == PMIX_SUCCESS && i < part->n_groups; i++)
        status = strlist_has(&meeting->nspaces, part->groups[i]->nspace)
                     ? far_add(host, part->groups[i])
                     : PMIX_ERR_BAD_PARAM;
    for (size_t i = 0; status == PMIX_SUCCESS && i < part->n_ranks; i++) {
        const Drarun__Wire__FarRank *wire = part->ranks[i];
        status = far_put(host, wire);
        if (status == PMIX_ERR_NOT_FOUND) /* they have not connected before */
            status = is_connect(meeting) ? PMIX_ERR_BAD_PARAM : PMIX_SUCCESS;
    }
    return status;
}

/* ---- the end ---- */

static const char *kind_of(const struct meeting *meeting)
{
    return is_connect(meeting) ? "connect" : "leave";
}

/* Open MPI disconnects by a fence. For others that may be none: what is known of the ranks stays
 * for a while. */
static void leave_all(const struct meeting *meeting, bool forget)
{
    for (size_t i = 0; i < meeting->nspaces.count; i++)
        far_leave(meeting->host, meeting->nspaces.items[i], forget);
    far_remove_old(meeting->host);
}

/* Other agents and jobs go on, and would wait for our ranks. */
static void fail(const struct meeting *meeting, pmix_status_t status)
{
    struct drarun_error err = {0};
    pmix_error(&err, status, "PMIx: connect with another job");
    meeting->host->owner.failed(meeting->host->owner.arg, &err);
}

/* What each job has given to the fence, in no particular order. */
static void answer_data(struct meeting *meeting, pmix_status_t status,
                        const Drarun__Wire__MeetPart *part)
{
    struct buf all = BUF_INIT;
    for (size_t i = 0; part && i < part->n_data; i++)
        buf_add(&all, part->data[i].data, part->data[i].len);
    if (all.failed)
        status = PMIX_ERR_NOMEM;
    upcall_answer_data(TAKE_PTR(meeting->upcall), status, all.data,
                       status == PMIX_SUCCESS ? all.len : 0);
    buf_done(&all);
}

static void on_distributed(void *arg, int status, const void *data, size_t length, uint64_t context)
{
    struct meeting *meeting = arg;
    Drarun__Wire__MeetPart *part = NULL;
    (void)context;
    status = pmix_collective_status(status);
    if (status == PMIX_SUCCESS && !(part = drarun__wire__meet_part__unpack(NULL, length, data)))
        status = PMIX_ERR_UNPACK_FAILURE;
    if (status == PMIX_SUCCESS)
        status = part->status;
    if (status == PMIX_SUCCESS && (status = take_part(meeting, part)) != PMIX_SUCCESS)
        fail(meeting, status);
    bool left = status == PMIX_SUCCESS && !is_connect(meeting);
    bool fence = is_fence(meeting);
    if (fence)
        answer_data(meeting, status, part);
    else
        upcall_answer(TAKE_PTR(meeting->upcall), status);
    if (left)
        leave_all(meeting, !fence);
    if (part)
        drarun__wire__meet_part__free_unpacked(part, NULL);
    meeting_free(meeting);
}

static void distribute(struct meeting *meeting, pmix_status_t status, const void *data,
                       size_t length)
{
    struct pmix_host *host = meeting->host;
    struct drarun_error err = {0};
    struct buf key = BUF_INIT;
    buf_printf(&key, "%s/2", meeting->key);
    if (key.failed || coll_enter(host->coll, key.data, meeting->ranges, meeting->count, status,
                                 data, length, on_distributed, meeting, &err) < 0) {
        pmix_collective_failed(host, TAKE_PTR(meeting->upcall), "connect",
                               key.failed ? NULL : &err);
        meeting_free(meeting);
    }
    buf_done(&key);
}

/* ---- the launcher ---- */

static pmix_status_t status_of(int code)
{
    switch (code) {
    case 0:
        return PMIX_SUCCESS;
    case ENOENT:
        return PMIX_ERR_NOT_FOUND;
    case ECONNRESET:
        return PMIX_ERR_LOST_CONNECTION;
    case ENOMEM:
        return PMIX_ERR_NOMEM;
    case EMSGSIZE:
        return PMIX_ERR_OUT_OF_RESOURCE;
    default:
        return PMIX_ERR_NOT_SUPPORTED;
    }
}

void pmix_host_met(struct pmix_host *host, void *token, const Drarun__Wire__MeetReply *reply)
{
    struct meeting *meeting = token;
    struct buf parts = BUF_INIT;
    pmix_status_t status = reply ? status_of(reply->code) : PMIX_ERR_UNREACH;
    (void)host;
    if (status == PMIX_SUCCESS && meeting->refused)
        status = PMIX_ERR_OUT_OF_RESOURCE;
    if (status != PMIX_SUCCESS && !meeting->refused)
        log_error("PMIx: ranks cannot %s another job: %s",
                  is_connect(meeting) ? "connect with" : "disconnect from",
                  reply ? reply->text
                        : "the launcher does not answer, or is of an earlier release");
    for (size_t i = 0; status == PMIX_SUCCESS && i < reply->n_parts; i++)
        buf_add(&parts, reply->parts[i].data, reply->parts[i].len);
    if (status == PMIX_SUCCESS && is_fence(meeting)) /* the own ranks' data, too */
        buf_add(&parts, meeting->part.data, meeting->part.len);
    if (parts.failed)
        status = PMIX_ERR_NOMEM;
    distribute(meeting, status, parts.data, status == PMIX_SUCCESS ? parts.len : 0);
    buf_done(&parts);
}

static void add_packed(struct buf *out, const Drarun__Wire__MeetPart *part)
{
    size_t size = drarun__wire__meet_part__get_packed_size(part);
    cleanup_free uint8_t *bytes = malloc(size + 1);
    out->failed |= !bytes;
    if (bytes)
        buf_add(out, bytes, drarun__wire__meet_part__pack(part, bytes));
}

static bool has_member(const struct meeting *meeting, const struct rank_group *group)
{
    for (size_t i = 0; i < meeting->count; i++) {
        const struct coll_range *range = &meeting->ranges[i];
        if (range->first < group->first + group->map.ranks &&
            group->first < range->first + range->count)
            return true;
    }
    return false;
}

static void add_group(const struct pmix_host *host, const struct rank_group *group, struct buf *out)
{
    const struct rankmap *map = &group->map;
    Drarun__Wire__MeetPart part = DRARUN__WIRE__MEET_PART__INIT;
    Drarun__Wire__FarGroup wire = DRARUN__WIRE__FAR_GROUP__INIT, *only = &wire;
    cleanup_free Drarun__Wire__Block *blocks = calloc(map->block_count, sizeof *blocks);
    cleanup_free Drarun__Wire__Block **list = calloc(map->block_count, sizeof *list);
    if (!blocks || !list) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < map->block_count; i++) {
        blocks[i] = (Drarun__Wire__Block)DRARUN__WIRE__BLOCK__INIT;
        blocks[i].first = map->blocks[i].first;
        blocks[i].count = map->blocks[i].count;
        blocks[i].worker = map->blocks[i].worker;
        blocks[i].app = map->blocks[i].app;
        list[i] = &blocks[i];
    }
    wire.nspace = unconst(group->nspace);
    wire.n_blocks = map->block_count;
    wire.blocks = list;
    wire.n_hosts = map->workers;
    wire.hosts = host->job->nodes;
    wire.apps = map->apps;
    part.n_groups = 1;
    part.groups = &only;
    add_packed(out, &part);
}

/* The other jobs fail, too. */
static void refuse_part(struct meeting *meeting)
{
    Drarun__Wire__MeetPart part = DRARUN__WIRE__MEET_PART__INIT;
    log_error("PMIx: ranks have put %zu bytes, and %u fit into what another job gets: they cannot "
              "connect with it",
              meeting->part.len, PMIX_ROUTED_MAX);
    part.status = PMIX_ERR_OUT_OF_RESOURCE;
    buf_reset(&meeting->part);
    add_packed(&meeting->part, &part);
    meeting->refused = true;
}

static void on_gathered(void *arg, int status, const void *data, size_t length, uint64_t context)
{
    struct meeting *meeting = arg;
    struct pmix_host *host = meeting->host;
    Drarun__Wire__MeetPart part = DRARUN__WIRE__MEET_PART__INIT;
    Drarun__Wire__MeetRequest request = DRARUN__WIRE__MEET_REQUEST__INIT;
    struct buf key = BUF_INIT;
    (void)context;
    if (rankmap_worker(&host->job->map, meeting->ranges[0].first) != host->tree->self) {
        distribute(meeting, PMIX_SUCCESS, NULL, 0);
        return;
    }
    buf_reset(&meeting->part);
    buf_add(&meeting->part, data, length);
    part.status = pmix_collective_status(status);
    add_packed(&meeting->part, &part);
    for (uint32_t i = 0; is_connect(meeting) && i < host->job->group_count; i++)
        if (has_member(meeting, host->job->groups[i]))
            add_group(host, host->job->groups[i], &meeting->part);
    buf_printf(&key, "%s %s %s", kind_of(meeting), meeting->name, strrchr(meeting->key, '#'));
    if (meeting->part.len > PMIX_ROUTED_MAX)
        refuse_part(meeting);
    if (key.failed || meeting->part.failed) {
        fail(meeting, PMIX_ERR_NOMEM);
        distribute(meeting, PMIX_ERR_NOMEM, NULL, 0);
    } else {
        request.key = key.data;
        request.kind = is_connect(meeting) ? DRARUN__WIRE__MEET_KIND__MEET_CONNECT
                                           : DRARUN__WIRE__MEET_KIND__MEET_LEAVE;
        request.n_nspaces = meeting->nspaces.count;
        request.nspaces = meeting->nspaces.items;
        request.part.data = (uint8_t *)meeting->part.data;
        request.part.len = meeting->part.len;
        host->owner.meet(host->owner.arg, &request, meeting);
    }
    buf_done(&key);
}

/* ---- the own ranks ---- */

static void gather(struct meeting *meeting)
{
    struct pmix_host *host = meeting->host;
    struct drarun_error err = {0};
    ProtobufCBinaryData data = {meeting->upcall->length, (uint8_t *)meeting->upcall->data};
    Drarun__Wire__MeetPart part = DRARUN__WIRE__MEET_PART__INIT;
    part.n_data = data.len > 0;
    part.data = &data;
    add_packed(&meeting->part, &part);
    if (meeting->part.failed ||
        coll_enter(host->coll, meeting->key, meeting->ranges, meeting->count,
                   pmix_local_status(meeting->upcall), meeting->part.data, meeting->part.len,
                   on_gathered, meeting, &err) < 0) {
        pmix_collective_failed(host, TAKE_PTR(meeting->upcall), "connect",
                               meeting->part.failed ? NULL : &err);
        meeting_free(meeting);
    }
}

static void gather_once(struct meeting *meeting)
{
    meeting->id = 0; /* answers that are still to come are too late */
    if (meeting->timer)
        event_free(TAKE_PTR(meeting->timer));
    gather(meeting);
}

static void on_silence(evutil_socket_t fd, short what, void *arg)
{
    struct meeting *meeting = arg;
    (void)fd, (void)what;
    log_note("PMIx: %u ranks here have not committed what they put within %d s: ranks of "
             "other jobs will not see it",
             meeting->open, MODEX_MS / 1000);
    gather_once(meeting);
}

void pmix_on_member_modex(struct pmix_host *host, struct upcall *upcall)
{
    struct meeting *meeting = host->meetings;
    while (meeting && meeting->id != upcall->id)
        meeting = meeting->next;
    if (meeting && upcall->status == PMIX_SUCCESS) {
        Drarun__Wire__MeetPart part = DRARUN__WIRE__MEET_PART__INIT;
        Drarun__Wire__FarRank rank = DRARUN__WIRE__FAR_RANK__INIT, *only = &rank;
        rank.nspace = upcall->proc.nspace;
        rank.rank = upcall->proc.rank;
        rank.modex.data = (uint8_t *)upcall->data;
        rank.modex.len = upcall->length;
        part.n_ranks = 1;
        part.ranks = &only;
        add_packed(&meeting->part, &part);
    }
    upcall_free(upcall);
    if (meeting && --meeting->open == 0)
        gather_once(meeting);
}

static void ask_members(struct meeting *meeting)
{
    struct pmix_host *host = meeting->host;
    struct timeval limit = timeval_from_ms(MODEX_MS);
    meeting->id = ++host->next_id;
    meeting->open = 1; /* until all are asked */
    for (size_t i = 0; i < meeting->count; i++)
        for (uint32_t k = 0; k < meeting->ranges[i].count; k++) {
            uint32_t rank = meeting->ranges[i].first + k;
            if (agent_job_local_index(host->job, rank) >= 0 &&
                pmix_ask_modex(host, rank, UPCALL_MEMBER_MODEX, meeting->id, host->tree->self))
                meeting->open++;
        }
    if (--meeting->open == 0) {
        gather_once(meeting);
        return;
    }
    meeting->timer = evtimer_new(host->base, on_silence, meeting);
    if (meeting->timer)
        evtimer_add(meeting->timer, &limit);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The members' names in order, in one of fixed length. False: out of memory. */
static bool name_members(const struct upcall *upcall, char ret_name[SHA256_TEXT_SIZE])
{
    struct strlist names = STRLIST_INIT;
    struct buf text = BUF_INIT;
    for (size_t i = 0; i < upcall->proc_count; i++) {
        buf_reset(&text);
        buf_printf(&text, "%s %u\n", upcall->procs[i].nspace, upcall->procs[i].rank);
        strlist_add(&names, text.data ? text.data : "");
    }
    buf_reset(&text);
    if (names.count > 0)
        qsort(names.items, names.count, sizeof *names.items, compare_names);
    for (size_t i = 0; i < names.count; i++)
        if (i == 0 || strcmp(names.items[i - 1], names.items[i]) != 0)
            buf_printf(&text, "%s", names.items[i]);
    bool good = !names.failed && !text.failed;
    if (good)
        sha256_text(text.data, text.len, ret_name);
    buf_done(&text);
    strlist_done(&names);
    return good;
}

/* The job's own members, and where the others are. */
static int split_members(struct meeting *meeting)
{
    const struct pmix_host *host = meeting->host;
    const struct upcall *upcall = meeting->upcall;
    cleanup_free pmix_proc_t *own = calloc(upcall->proc_count + 1, sizeof *own);
    size_t count = 0;
    if (!own)
        return -ENOMEM;
    for (size_t i = 0; i < upcall->proc_count; i++)
        if (agent_job_group_named(host->job, upcall->procs[i].nspace))
            own[count++] = upcall->procs[i];
        else if (!strlist_has(&meeting->nspaces, upcall->procs[i].nspace))
            strlist_add(&meeting->nspaces, upcall->procs[i].nspace);
    if (meeting->nspaces.failed)
        return -ENOMEM;
    return pmix_members(host, own, count, &meeting->ranges, &meeting->count);
}

bool pmix_is_far(const struct pmix_host *host, const struct upcall *upcall)
{
    for (size_t i = 0; i < upcall->proc_count; i++)
        if (!agent_job_group_named(host->job, upcall->procs[i].nspace))
            return true;
    return false;
}

void pmix_on_meet(struct pmix_host *host, struct upcall *upcall)
{
    struct meeting *meeting = calloc(1, sizeof *meeting);
    int rc = -ENOMEM;
    if (meeting) {
        *meeting = (struct meeting){.next = host->meetings, .host = host, .upcall = upcall};
        host->meetings = meeting;
        rc = split_members(meeting);
    }
    if (rc == 0 && name_members(upcall, meeting->name))
        meeting->key = pmix_collective_key(host, kind_of(meeting), meeting->name, meeting->ranges,
                                           meeting->count);
    if (rc == 0 && meeting->key) {
        if (is_connect(meeting) || is_fence(meeting))
            ask_members(meeting);
        else
            gather(meeting);
        return;
    }
    if (meeting)
        meeting->upcall = NULL;
    if (rc == -EINVAL)
        upcall_answer(upcall, PMIX_ERR_BAD_PARAM);
    else
        pmix_collective_failed(host, upcall, "connect", NULL);
    if (meeting)
        meeting_free(meeting);
}
