/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/meet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/wire/frame.h"

/* What the parts of the other jobs may have together: one message carries them. */
#define PARTS_MAX (FRAME_MAX - 64u * 1024)
#define JOBS_MAX 64u /* other jobs in one collective */
#define FAILED (-1)  /* PMIX_ERROR, for the others */

/* A job that a collective is with. */
struct other {
    char job[USER_NAMES_JOB_SIZE];
    char uid[80]; /* for people */
    int fd;       /* user_names_state */
    bool there;
    struct buf part;
};

struct meet {
    struct meet *next;
    uint32_t worker; /* that asked */
    uint64_t id;
    Drarun__Wire__MeetKind kind;
    char *name; /* of parts, before the job's own */
    struct other *others;
    size_t count;
};

/* A job that this one is connected with. */
struct peer {
    struct peer *next;
    char job[USER_NAMES_JOB_SIZE];
    char uid[80]; /* for people */
    int fd;
    uint32_t times;
};

struct meets {
    struct user_names *user;
    struct meet_owner owner;
    char *self;
    bool announced;
    struct meet *open; /* that await others */
    struct peer *peers;
};

struct meets *meets_new(struct user_names *user, const char *self, const struct meet_owner *owner)
{
    struct meets *meets = calloc(1, sizeof *meets);
    if (!meets)
        return NULL;
    *meets = (struct meets){.user = user, .owner = *owner, .self = strdup(self)};
    if (meets->self)
        return meets;
    free(meets);
    return NULL;
}

static void meet_free(struct meet *meet)
{
    for (size_t i = 0; i < meet->count; i++) {
        close_fd(&meet->others[i].fd);
        buf_done(&meet->others[i].part);
    }
    free(meet->others);
    free(meet->name);
    free(meet);
}
DEFINE_CLEANUP(struct meet, meet_free)

void meets_free(struct meets *meets)
{
    if (!meets)
        return;
    while (meets->open) {
        struct meet *next = meets->open->next;
        meet_free(meets->open);
        meets->open = next;
    }
    while (meets->peers) {
        struct peer *next = meets->peers->next;
        close_fd(&meets->peers->fd);
        free(meets->peers);
        meets->peers = next;
    }
    free(meets->self);
    free(meets);
}

/* ---- who is who ---- */

/* malloc'ed; NULL without memory. */
static char *service_of(const char *what, const char *of, size_t length)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "%s %.*s", what, (int)length, of);
    return buf_take(&text);
}

int meets_announce(struct meets *meets, struct drarun_error *err)
{
    cleanup_free char *service = service_of("job", meets->self, strlen(meets->self));
    if (meets->announced)
        return 0;
    if (!service)
        return error_set(err, ENOMEM, "out of memory");
    int rc = user_names_publish(meets->user, service, "", 0, false, NULL, err);
    meets->announced = rc == 0;
    return rc;
}

/* How the namespaces of its job begin: "drarun.UID.ATTEMPT". 0: it is not one of drarun's. */
static size_t job_length(const char *nspace)
{
    size_t length = strcspn(nspace, ".");
    for (int i = 0; i < 2 && nspace[length] == '.'; i++)
        length += 1 + strcspn(nspace + length + 1, ".");
    return strncmp(nspace, "drarun.", strlen("drarun.")) == 0 ? length : 0;
}

static bool has_other(const struct meet *meet, const char *job)
{
    for (size_t i = 0; i < meet->count; i++)
        if (strcmp(meet->others[i].job, job) == 0)
            return true;
    return false;
}

static int add_other(const struct meets *meets, struct meet *meet, const char *nspace,
                     struct drarun_error *err)
{
    struct other other = {.fd = -1, .part = BUF_INIT};
    struct buf nothing = BUF_INIT;
    size_t length = job_length(nspace);
    cleanup_free char *service = service_of("job", nspace, length);
    if (!service)
        return error_set(err, ENOMEM, "out of memory");
    int rc = length > 0 ? user_names_lookup(service, &nothing, other.job, err) : -ENOENT;
    buf_done(&nothing);
    if (rc == 0 && strcmp(other.job, user_names_job(meets->user, err)) == 0)
        rc = -ENOENT; /* ranks of our own that have ended */
    if (rc == -ENOENT)
        return error_set(err, ENOENT,
                         "no job of this user on this machine has ranks in the PMIx namespace %s",
                         nspace);
    if (rc < 0 || has_other(meet, other.job))
        return rc;
    if (meet->count >= JOBS_MAX)
        return error_set(err, E2BIG, "more than %u other jobs take part", JOBS_MAX);
    other.fd = user_names_open_job(meets->user, other.job);
    if (other.fd == -ENOENT)
        return error_set(err, ENOENT, "the job of the PMIx namespace %s has ended", nspace);
    if (other.fd < 0)
        return error_set(err, -other.fd, "watch the job of the PMIx namespace %s: %s", nspace,
                         strerror(-other.fd));
    const char *uid = nspace + strlen("drarun.");
    snprintf(other.uid, sizeof other.uid, "%.*s", (int)strcspn(uid, "."), uid);
    meet->others[meet->count++] = other;
    return 0;
}

/* ---- jobs that are connected ---- */

static struct peer *find_peer(const struct meets *meets, const char *job)
{
    struct peer *peer = meets->peers;
    while (peer && strcmp(peer->job, job) != 0)
        peer = peer->next;
    return peer;
}

static void remove_peer(struct meets *meets, struct peer *gone)
{
    struct peer **at = &meets->peers;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    close_fd(&gone->fd);
    free(gone);
}

/* Takes the descriptor of the other job. */
static bool connect_with(struct meets *meets, struct other *other)
{
    struct peer *peer = find_peer(meets, other->job);
    if (!peer) {
        if (!(peer = calloc(1, sizeof *peer)))
            return false;
        *peer = (struct peer){.next = meets->peers, .fd = take_fd(&other->fd)};
        memcpy(peer->job, other->job, sizeof peer->job);
        memcpy(peer->uid, other->uid, sizeof peer->uid);
        meets->peers = peer;
    }
    peer->times++;
    return true;
}

static void leave(struct meets *meets, const struct other *other)
{
    struct peer *peer = find_peer(meets, other->job);
    if (peer && --peer->times == 0)
        remove_peer(meets, peer);
}

static void look_at_peers(struct meets *meets)
{
    struct peer *next;
    for (struct peer *peer = meets->peers; peer; peer = next) {
        struct drarun_error err = {0};
        enum user_names_state state = user_names_state(peer->fd);
        next = peer->next;
        if (state == USER_NAMES_LIVES)
            continue;
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ECONNRESET,
                   "job %s has failed, and ranks of this job are connected with its ranks "
                   "(MPI_Comm_connect): see the messages of that job",
                   peer->uid);
        remove_peer(meets, peer);
        if (state == USER_NAMES_DIED)
            meets->owner.failed(meets->owner.arg, &err);
    }
}

/* ---- a collective ---- */

/* Of one job, for another. */
static char *part_service(const struct meet *meet, const char *from, const char *to)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "%s %s %s", meet->name, from, to);
    return buf_take(&text);
}

/* The part of another job, if it is there and can be taken. -EAGAIN: not yet. */
static int look_for_part(const struct meets *meets, struct meet *meet, struct other *other,
                         struct drarun_error *err)
{
    char job[USER_NAMES_JOB_SIZE];
    const char *own = user_names_job(meets->user, err);
    cleanup_free char *service = own ? part_service(meet, other->job, own) : NULL;
    enum user_names_state state = user_names_state(other->fd); /* before: it may end meanwhile */
    if (!service)
        return error_set(err, ENOMEM, "out of memory");
    int rc = user_names_lookup(service, &other->part, job, err);
    if (rc == -ENOENT && state == USER_NAMES_LIVES)
        return -EAGAIN;
    if (rc == -ENOENT)
        return error_set(err, ECONNRESET, "job %s has ended", other->uid);
    other->there = rc == 0;
    return rc;
}

static int look_for_parts(const struct meets *meets, struct meet *meet, struct drarun_error *err)
{
    size_t bytes = 0;
    int rc = 0;
    for (size_t i = 0; i < meet->count; i++) {
        struct other *other = &meet->others[i];
        int one = other->there ? 0 : look_for_part(meets, meet, other, err);
        if (one < 0 && one != -EAGAIN)
            return one;
        rc = one < 0 ? one : rc;
        bytes += other->part.len;
    }
    return bytes > PARTS_MAX
               ? error_set(err, EMSGSIZE, "the other jobs send more than %u bytes", PARTS_MAX)
               : rc;
}

static void answer(struct meets *meets, uint32_t worker, uint64_t id, const struct meet *meet,
                   const struct drarun_error *err)
{
    Drarun__Wire__MeetReply reply = DRARUN__WIRE__MEET_REPLY__INIT;
    size_t count = err->code == 0 && meet ? meet->count : 0;
    cleanup_free ProtobufCBinaryData *parts = calloc(count + 1, sizeof *parts);
    for (size_t i = 0; parts && i < count; i++)
        parts[i] =
            (ProtobufCBinaryData){meet->others[i].part.len, (uint8_t *)meet->others[i].part.data};
    reply.id = id;
    reply.code = parts ? err->code : ENOMEM;
    reply.text = parts ? unconst(err->text) : unconst("out of memory");
    reply.n_parts = parts ? count : 0;
    reply.parts = parts;
    meets->owner.met(meets->owner.arg, worker, &reply);
}

/* Other jobs fail with this one, or see its end. */
static void fail(const struct meets *meets, struct drarun_error *err)
{
    err->kind = DRARUN_ERR_INFRASTRUCTURE;
    error_prefix(err, "connect with another job");
    meets->owner.failed(meets->owner.arg, err);
}

/* False: others are awaited. */
static bool finish(struct meets *meets, struct meet *meet)
{
    struct drarun_error err = {0};
    int rc = look_for_parts(meets, meet, &err);
    if (rc == -EAGAIN)
        return false;
    for (size_t i = 0; rc == 0 && i < meet->count; i++) {
        if (meet->kind == DRARUN__WIRE__MEET_KIND__MEET_CONNECT &&
            !connect_with(meets, &meet->others[i]))
            rc = error_set(&err, ENOMEM, "out of memory");
        if (meet->kind == DRARUN__WIRE__MEET_KIND__MEET_LEAVE)
            leave(meets, &meet->others[i]);
    }
    if (rc == 0)
        err = (struct drarun_error){0};
    answer(meets, meet->worker, meet->id, meet, &err);
    if (rc < 0 && rc != -ECONNRESET) /* the others have our part, and count on us */
        fail(meets, &err);
    return true;
}

static int publish_part(const struct meets *meets, const struct meet *meet, const char *other,
                        const void *part, size_t length, struct drarun_error *err)
{
    const char *own = user_names_job(meets->user, err);
    if (!own)
        return -err->code;
    cleanup_free char *service = part_service(meet, own, other);
    return service ? user_names_publish(meets->user, service, part, length, true, other, err)
                   : error_set(err, ENOMEM, "out of memory");
}

/* Those that are known to take part must not wait for us. False: one of them will, or has got our
 * part, and counts on us. */
static bool publish_failure(const struct meets *meets, const struct meet *meet)
{
    uint8_t packed[32];
    struct drarun_error err = {0};
    Drarun__Wire__MeetPart part = DRARUN__WIRE__MEET_PART__INIT;
    bool good = true;
    part.status = FAILED;
    size_t length = drarun__wire__meet_part__pack(&part, packed);
    for (size_t i = 0; i < meet->count; i++)
        good = publish_part(meets, meet, meet->others[i].job, packed, length, &err) == 0 && good;
    return good;
}

static int enter(struct meets *meets, struct meet *meet, const char *pmix,
                 const Drarun__Wire__MeetRequest *request, const struct drarun_error *unseen,
                 struct drarun_error *err)
{
    struct buf name = BUF_INIT;
    int rc = 0;
    if (!user_names_job(meets->user, err) || meets_announce(meets, err) < 0)
        return -err->code;
    buf_printf(&name, "part %s %s", pmix, request->key);
    meet->name = buf_take(&name);
    meet->others = calloc(request->n_nspaces + 1, sizeof *meet->others);
    if (!meet->name || !meet->others)
        return error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < request->n_nspaces; i++) {
        rc = add_other(meets, meet, request->nspaces[i], err);
        if (rc < 0)
            return rc;
    }
    if (unseen->code && meet->count > 0)
        return error_kind(err, unseen->kind, unseen->code, "%s", unseen->text);
    for (size_t i = 0; rc == 0 && i < meet->count; i++)
        rc = publish_part(meets, meet, meet->others[i].job, request->part.data, request->part.len,
                          err);
    return rc;
}

void meets_ask(struct meets *meets, uint32_t worker, const char *pmix,
               const Drarun__Wire__MeetRequest *request, const struct drarun_error *unseen)
{
    struct drarun_error err = {0};
    CLEANUP(meet_freep) struct meet *meet = calloc(1, sizeof *meet);
    if (meet)
        *meet = (struct meet){.worker = worker, .id = request->id, .kind = request->kind};
    int rc = meet ? enter(meets, meet, pmix, request, unseen, &err)
                  : error_set(&err, ENOMEM, "out of memory");
    if (rc < 0) {
        answer(meets, worker, request->id, NULL, &err);
        if (meet && meet->name && !publish_failure(meets, meet))
            fail(meets, &err);
        return;
    }
    if (!finish(meets, meet)) {
        meet->next = meets->open;
        meets->open = TAKE_PTR(meet);
    }
}

bool meets_await(const struct meets *meets)
{
    return meets->open || meets->peers;
}

void meets_look(struct meets *meets)
{
    struct meet **at = &meets->open;
    while (*at) {
        struct meet *meet = *at;
        if (!finish(meets, meet)) {
            at = &meet->next;
            continue;
        }
        *at = meet->next;
        meet_free(meet);
    }
    look_at_peers(meets);
}
