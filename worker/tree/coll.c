/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/tree/coll.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/wire/frame.h"

/* Data that a peer may make us hold for one collective: above any real modex (1 M ranks x 4 KiB).
 */
#define COLL_DATA_MAX ((size_t)4 * 1024 * 1024 * 1024)

enum part_state { PART_NOT_NEEDED = 0, PART_AWAITED, PART_ARRIVED };

/* What one child's subtree contributes. */
struct part {
    enum part_state state;
    struct buf data;
};

struct coll_op {
    LIST_ENTRY(coll_op) entry;
    char *key;
    struct coll_range *ranges;
    size_t range_count;
    Drarun__Wire__Range *wire_ranges; /* the same, made before they are needed: what has been */
    Drarun__Wire__Range **members;    /* gathered must not be lost for lack of memory */
    bool member;                      /* this agent has member ranks */
    bool top;                         /* this agent is the lowest above all members */
    bool entered;                     /* this agent's own contribution is here */
    bool sent_up;
    bool given_up; /* before all parts were there */
    bool finished; /* and kept for the parts that are still to come up */
    int status;
    uint32_t awaited;   /* children whose part is missing */
    struct part *parts; /* by child index */
    struct buf own;
    struct buf result; /* of pieces that come down */
    coll_done_fn done;
    void *done_arg;
};

struct coll {
    const struct tree *tree;
    const struct rankmap *map;
    coll_send_fn send;
    void *arg;
    coll_missed_fn missed;
    void *missed_arg;
    uint64_t contexts; /* numbers given out here */
    LIST_HEAD(, coll_op) ops;
};

struct coll *coll_new(const struct tree *tree, const struct rankmap *map, coll_send_fn send,
                      void *arg)
{
    struct coll *coll = calloc(1, sizeof *coll);
    if (!coll)
        return NULL;
    *coll = (struct coll){.tree = tree, .map = map, .send = send, .arg = arg};
    LIST_INIT(&coll->ops);
    return coll;
}

static void op_free(struct coll *coll, struct coll_op *op)
{
    for (uint32_t i = 0; op->parts && i < tree_child_count(coll->tree); i++)
        buf_done(&op->parts[i].data);
    buf_done(&op->own);
    buf_done(&op->result);
    free(op->parts);
    free(op->members);
    free(op->wire_ranges);
    free(op->ranges);
    free(op->key);
    free(op);
}

static void op_remove(struct coll *coll, struct coll_op *op)
{
    LIST_REMOVE(op, entry);
    op_free(coll, op);
}

void coll_free(struct coll *coll)
{
    if (!coll)
        return;
    while (!LIST_EMPTY(&coll->ops))
        op_remove(coll, LIST_FIRST(&coll->ops));
    free(coll);
}

void coll_on_missed(struct coll *coll, coll_missed_fn missed, void *arg)
{
    coll->missed = missed;
    coll->missed_arg = arg;
}

static struct coll_op *op_find(struct coll *coll, const char *key)
{
    struct coll_op *op;
    LIST_FOREACH (op, &coll->ops, entry)
        if (strcmp(op->key, key) == 0)
            return op;
    return NULL;
}

/* A member worker makes every child on its way to this agent awaited. */
static void mark_worker(struct coll *coll, struct coll_op *op, uint32_t worker, uint32_t *top)
{
    const struct tree *tree = coll->tree;
    *top = *top == TREE_NONE ? worker : tree_common(tree, *top, worker);
    if (worker == tree->self) {
        op->member = true;
        return;
    }
    uint32_t hop = tree_next_hop(tree, worker);
    uint32_t child = tree_child_index(tree, hop);
    if (child != TREE_NONE && op->parts[child].state == PART_NOT_NEEDED) {
        op->parts[child].state = PART_AWAITED;
        op->awaited++;
    }
}

/* Walks the workers of the member ranks, block by block rather than rank by rank. */
static void mark_members(struct coll *coll, struct coll_op *op)
{
    const struct rankmap *map = coll->map;
    uint32_t top = TREE_NONE, last = TREE_NONE;
    for (size_t b = 0; b < map->block_count; b++) {
        const struct rank_block *block = &map->blocks[b];
        bool in = op->range_count == 0;
        for (size_t r = 0; r < op->range_count && !in; r++)
            in = op->ranges[r].first < block->first + block->count &&
                 block->first < op->ranges[r].first + op->ranges[r].count;
        if (in && block->worker != last)
            mark_worker(coll, op, block->worker, &top);
        if (in)
            last = block->worker;
    }
    op->top = top == coll->tree->self;
}

static void set_ranges(struct coll_op *op, const struct coll_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        op->ranges[i] = ranges[i];
        drarun__wire__range__init(&op->wire_ranges[i]);
        op->wire_ranges[i].first = ranges[i].first;
        op->wire_ranges[i].count = ranges[i].count;
        op->members[i] = &op->wire_ranges[i];
    }
    op->range_count = count;
}

static struct coll_op *op_new(struct coll *coll, const char *key, const struct coll_range *ranges,
                              size_t count)
{
    struct coll_op *op = calloc(1, sizeof *op);
    if (!op)
        return NULL;
    op->key = strdup(key);
    op->parts = calloc(tree_child_count(coll->tree) + 1, sizeof *op->parts);
    op->ranges = calloc(count + 1, sizeof *op->ranges);
    op->wire_ranges = calloc(count + 1, sizeof *op->wire_ranges);
    op->members = calloc(count + 1, sizeof *op->members);
    if (!op->key || !op->parts || !op->ranges || !op->wire_ranges || !op->members) {
        op_free(coll, op);
        return NULL;
    }
    set_ranges(op, ranges, count);
    mark_members(coll, op);
    LIST_INSERT_HEAD(&coll->ops, op, entry);
    return op;
}

/* Sends data in pieces below the frame limit. */
static void send_pieces(struct coll *coll, uint32_t to, Drarun__Wire__Collective *message,
                        const struct buf *data)
{
    size_t offset = 0;
    do {
        size_t piece = data->len - offset;
        if (piece > FRAME_DATA_MAX)
            piece = FRAME_DATA_MAX;
        message->data.data = (uint8_t *)data->data + offset;
        message->data.len = piece;
        offset += piece;
        message->more = offset < data->len;
        coll->send(coll->arg, to, message);
    } while (message->more);
}

static void send_up(struct coll *coll, struct coll_op *op)
{
    Drarun__Wire__Collective message = DRARUN__WIRE__COLLECTIVE__INIT;
    message.key = op->key;
    message.up = true;
    message.n_members = op->range_count;
    message.members = op->members;
    message.status = op->status;
    op->sent_up = true;
    send_pieces(coll, tree_parent(coll->tree), &message, &op->own);
    buf_done(&op->own);
}

/* In place of a part that is not complete. */
static void send_nothing_up(struct coll *coll, struct coll_op *op)
{
    buf_done(&op->own);
    send_up(coll, op);
}

/* Hands the result to the children that have members and to this agent's own caller. When it was
 * given up, children may still send their parts: each sends one, which takes it off the list. */
static void finish(struct coll *coll, struct coll_op *op, const struct buf *data, uint64_t context,
                   bool forward)
{
    Drarun__Wire__Collective message = DRARUN__WIRE__COLLECTIVE__INIT;
    message.key = op->key;
    message.status = op->status;
    message.context = context;
    message.over = op->status != 0;
    message.n_members = message.over ? op->range_count : 0;
    message.members = op->members;
    for (uint32_t i = 0; forward && i < tree_child_count(coll->tree); i++)
        if (op->parts[i].state != PART_NOT_NEEDED)
            send_pieces(coll, tree_child(coll->tree, i), &message, data);
    bool last = op->awaited == 0;
    op->finished = true;
    if (last)
        LIST_REMOVE(op, entry); /* first: done may enter the next one */
    if (op->done)
        op->done(op->done_arg, op->status, data->data, data->len, context);
    else if (op->member && coll->missed)
        coll->missed(coll->missed_arg, op->key, op->ranges, op->range_count);
    if (last)
        op_free(coll, op);
}

/* The status of a collective whose data are incomplete; the ranks' only have numbers. */
static int no_memory(const struct coll_op *op)
{
    log_error("collective %s: out of memory", op->key);
    return -ENOMEM;
}

static void advance(struct coll *coll, struct coll_op *op)
{
    if (op->awaited > 0 || (op->member && !op->entered) || op->sent_up)
        return;
    bool failed = false;
    for (uint32_t i = 0; i < tree_child_count(coll->tree); i++) {
        failed |= op->parts[i].data.failed;
        buf_add(&op->own, op->parts[i].data.data, op->parts[i].data.len);
        buf_done(&op->parts[i].data);
    }
    if ((failed || op->own.failed) && op->status == 0)
        op->status = no_memory(op);
    if (!op->top) {
        send_up(coll, op);
        return;
    }
    struct buf all = op->own;
    op->own = (struct buf)BUF_INIT;
    /* the high half says who gave the number, so that no two agents give the same */
    uint64_t context = ((uint64_t)coll->tree->self + 1) << 32 | (uint32_t)++coll->contexts;
    finish(coll, op, &all, context, true);
    buf_done(&all);
}

int coll_enter(struct coll *coll, const char *key, const struct coll_range *ranges, size_t count,
               int status, const void *data, size_t length, coll_done_fn done, void *arg,
               struct drarun_error *err)
{
    struct coll_op *op = op_find(coll, key);
    if (!op)
        op = op_new(coll, key, ranges, count);
    if (!op)
        return error_set(err, ENOMEM, "collective %s: out of memory", key);
    if (op->entered || op->finished || !op->member)
        return error_set(err, EINVAL, "collective %s: entered %s", key,
                         op->entered    ? "twice"
                         : op->finished ? "after its end"
                                        : "by an agent without members");
    op->entered = true;
    op->done = done;
    op->done_arg = arg;
    if (status != 0 && op->status == 0)
        op->status = status;
    buf_add(&op->own, data, length);
    advance(coll, op);
    return 0;
}

/* Found, or new with the members that the message names. */
static struct coll_op *op_of_message(struct coll *coll, const Drarun__Wire__Collective *message)
{
    struct coll_op *op = op_find(coll, message->key);
    if (op)
        return op;
    cleanup_free struct coll_range *ranges = calloc(message->n_members + 1, sizeof *ranges);
    for (size_t i = 0; ranges && i < message->n_members; i++)
        ranges[i] = (struct coll_range){message->members[i]->first, message->members[i]->count};
    return ranges ? op_new(coll, message->key, ranges, message->n_members) : NULL;
}

/* Tells the agents above, to the one that decides. What has come so far is dropped. */
static void give_up(struct coll *coll, struct coll_op *op, int status)
{
    const struct buf none = BUF_INIT;
    Drarun__Wire__Collective message = DRARUN__WIRE__COLLECTIVE__INIT;
    if (op->given_up || op->finished)
        return;
    op->given_up = true;
    if (op->status == 0)
        op->status = status;
    if (op->top) {
        finish(coll, op, &none, 0, true);
        return;
    }
    if (!op->sent_up)
        send_nothing_up(coll, op);
    message.key = op->key;
    message.up = true;
    message.over = true;
    message.status = op->status;
    coll->send(coll->arg, tree_parent(coll->tree), &message);
}

void coll_give_up(struct coll *coll, const char *key, int status)
{
    struct coll_op *op = op_find(coll, key);
    if (op)
        give_up(coll, op, status);
}

/* Without the collective here, its result is on the way down. */
static int message_over(struct coll *coll, const Drarun__Wire__Collective *message,
                        struct drarun_error *err)
{
    if (message->status == 0)
        return error_set(err, EPROTO, "collective %s: given up without a status", message->key);
    coll_give_up(coll, message->key, message->status);
    return 0;
}

static int message_up(struct coll *coll, uint32_t from, const Drarun__Wire__Collective *message,
                      struct drarun_error *err)
{
    uint32_t child = tree_child_index(coll->tree, from);
    if (child == TREE_NONE)
        return error_set(err, EPROTO, "a contribution from worker %u, which is not a child", from);
    if (message->over)
        return message_over(coll, message, err);
    struct coll_op *op = op_of_message(coll, message);
    if (!op)
        return error_set(err, ENOMEM, "collective %s: out of memory", message->key);
    struct part *part = &op->parts[child];
    if (part->state != PART_AWAITED || part->data.len + message->data.len > COLL_DATA_MAX)
        return error_set(err, EPROTO, "collective %s: unexpected data from worker %u", message->key,
                         from);
    if (!op->sent_up && !op->finished)
        buf_add(&part->data, message->data.data, message->data.len);
    if (message->status != 0 && op->status == 0)
        op->status = message->status;
    if (message->more)
        return 0;
    part->state = PART_ARRIVED;
    op->awaited--;
    if (!op->finished)
        advance(coll, op);
    else if (op->awaited == 0)
        op_remove(coll, op);
    return 0;
}

/* The collective of a result: one that waits for it, or that has failed before its members here
 * have entered; the agent above still gets their part. */
static int find_result_op(struct coll *coll, const Drarun__Wire__Collective *message,
                          struct coll_op **ret_op, struct drarun_error *err)
{
    struct coll_op *op = op_find(coll, message->key);
    bool early = message->over && message->status != 0 && (!op || !op->sent_up);
    if (!op && early && !(op = op_of_message(coll, message)))
        return error_set(err, ENOMEM, "collective %s: out of memory", message->key);
    if (!op || op->finished || op->top || (!op->sent_up && !early))
        return error_set(err, EPROTO, "collective %s: a result that no rank here waits for",
                         message->key);
    if (early)
        send_nothing_up(coll, op);
    *ret_op = op;
    return 0;
}

/* Pieces are passed on as they come; the last one completes this agent's part. */
static int message_down(struct coll *coll, uint32_t from, const Drarun__Wire__Collective *message,
                        struct drarun_error *err)
{
    if (from != tree_parent(coll->tree))
        return error_set(err, EPROTO, "collective %s: a result from worker %u, which is not above",
                         message->key, from);
    struct coll_op *op = NULL;
    int rc = find_result_op(coll, message, &op, err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < tree_child_count(coll->tree); i++)
        if (op->parts[i].state != PART_NOT_NEEDED)
            coll->send(coll->arg, tree_child(coll->tree, i), message);
    op->status = message->status;
    if (op->member)
        buf_add(&op->result, message->data.data, message->data.len);
    if (message->more)
        return 0;
    if (op->result.failed && op->status == 0)
        op->status = no_memory(op);
    struct buf all = op->result;
    op->result = (struct buf)BUF_INIT;
    finish(coll, op, &all, message->context, false);
    buf_done(&all);
    return 0;
}

int coll_message(struct coll *coll, uint32_t from, const Drarun__Wire__Collective *message,
                 struct drarun_error *err)
{
    return message->up ? message_up(coll, from, message, err)
                       : message_down(coll, from, message, err);
}
