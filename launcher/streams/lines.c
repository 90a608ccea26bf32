/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/streams/lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/buf.h"

struct chunk {
    STAILQ_ENTRY(chunk) link;
    uint32_t agent;
    uint32_t rank;
    uint32_t came; /* how often the clock had been started */
    bool partial;
    bool broken; /* the line that it begins has waited long enough, and is not waited for */
    size_t length;
    char data[];
};

STAILQ_HEAD(chunk_list, chunk);

/* A line whose end has not come. */
struct unfinished {
    struct chunk *first; /* NULL: there is none */
    size_t length;
};

#define SHORT_MAX ((size_t)16 * 1024) /* of progress bars; the rest of a longer line is to come */

#define BROKEN 1u /* this line was waited for long enough */
#define ENDED 2u  /* it will never be finished */

struct lines {
    struct lines_owner owner;
    enum lines_form form;
    uint32_t ranks;
    int width;        /* digits of the highest rank */
    int64_t open;     /* the rank whose line is unfinished and waited for; -1: none */
    int64_t cursor;   /* the rank whose unfinished line stands last in the stream; -1: none */
    uint8_t *passive; /* by rank: reasons why its unfinished line holds nobody up */
    struct chunk_list queue;
    struct unfinished *unfinished; /* by rank: its line in the queue */
    uint32_t starts;               /* of the owner's clock */
    struct buf text;
    bool failed; /* labels are missing */
};

static int digits(uint32_t number)
{
    int n = 1;
    while (number >= 10) {
        number /= 10;
        n++;
    }
    return n;
}

struct lines *lines_new(uint32_t ranks, enum lines_form form, const struct lines_owner *owner)
{
    struct lines *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->owner = *owner;
    l->form = form;
    l->ranks = ranks;
    l->width = digits(ranks > 0 ? ranks - 1 : 0);
    l->open = l->cursor = -1;
    STAILQ_INIT(&l->queue);
    l->passive = calloc(ranks + 1, 1);
    l->unfinished = calloc(ranks + 1, sizeof *l->unfinished);
    if (!l->passive || !l->unfinished) {
        lines_free(l);
        return NULL;
    }
    return l;
}

int lines_grow(struct lines *l, uint32_t ranks)
{
    if (ranks <= l->ranks)
        return 0;
    uint8_t *passive = realloc(l->passive, ranks + 1u);
    if (!passive)
        return -ENOMEM;
    memset(passive + l->ranks, 0, ranks + 1u - l->ranks);
    l->passive = passive;
    struct unfinished *unfinished = realloc(l->unfinished, (ranks + 1u) * sizeof *unfinished);
    if (!unfinished)
        return -ENOMEM;
    memset(unfinished + l->ranks, 0, (ranks + 1u - l->ranks) * sizeof *unfinished);
    l->unfinished = unfinished;
    l->ranks = ranks;
    return 0;
}

void lines_free(struct lines *l)
{
    if (!l)
        return;
    while (!STAILQ_EMPTY(&l->queue)) {
        struct chunk *chunk = STAILQ_FIRST(&l->queue);
        STAILQ_REMOVE_HEAD(&l->queue, link);
        free(chunk);
    }
    buf_done(&l->text);
    free(l->passive);
    free(l->unfinished);
    free(l);
}

/* The bytes with a label at the start of each line; a line that was cut off gets its newline. */
static void render(struct lines *l, uint32_t rank, const char *data, size_t length, bool partial)
{
    buf_reset(&l->text);
    bool at_start = l->cursor != (int64_t)rank;
    if (at_start && l->cursor >= 0)
        buf_add_str(&l->text, "\n");
    while (length > 0) {
        const char *newline = memchr(data, '\n', length);
        size_t n = newline ? (size_t)(newline - data) + 1 : length;
        if (at_start)
            buf_printf(&l->text, "[%*u] ", l->width, rank);
        buf_add(&l->text, data, n);
        at_start = newline != NULL;
        data += n;
        length -= n;
    }
    if (!partial && !at_start)
        buf_add_str(&l->text, "\n");
}

static bool is_framed(const struct lines *l)
{
    return l->form >= LINES_FRAMED;
}

static void frame(struct lines *l, uint32_t rank, const char *data, size_t length)
{
    buf_reset(&l->text);
    while (length > 0) {
        const char *newline = memchr(data, '\n', length);
        size_t n = newline ? (size_t)(newline - data) : length;
        buf_printf(&l->text, "[%u%s%s] ", rank, l->form == LINES_FRAMED_ERR ? ":err" : "",
                   newline ? "" : "+");
        buf_add(&l->text, data, n);
        buf_add_str(&l->text, "\n");
        n += newline != NULL;
        data += n;
        length -= n;
    }
}

/* Without memory for labels the bytes still count more than they do, but the owner is told. */
static void put(struct lines *l, uint32_t agent, uint32_t rank, const char *data, size_t length,
                bool partial)
{
    if (is_framed(l))
        frame(l, rank, data, length);
    else if (l->form == LINES_LABELLED)
        render(l, rank, data, length, partial);
    l->failed |= l->text.failed;
    bool whole = l->form != LINES_PLAIN && !l->text.failed;
    l->owner.emit(l->owner.arg, agent, length, whole ? l->text.data : data,
                  whole ? l->text.len : length);
    if (is_framed(l))
        return;
    if (!partial) {
        l->cursor = -1;
        l->passive[rank] &= (uint8_t)~BROKEN;
        if (l->open == (int64_t)rank)
            l->open = -1;
        return;
    }
    l->cursor = rank;
    if (!l->passive[rank] && l->open < 0)
        l->open = rank;
}

static void start_waiting(struct lines *l)
{
    l->starts++;
    l->owner.waiting(l->owner.arg, true);
}

static bool may_pass(const struct lines *l, uint32_t rank)
{
    return l->open < 0 || l->open == (int64_t)rank;
}

/* Its unfinished line holds nobody up any more. */
static void let_pass(struct lines *l, uint32_t rank)
{
    l->passive[rank] |= BROKEN;
    if (l->open == (int64_t)rank)
        l->open = -1;
}

/* It was put, and is out of the queue. */
static void forget(struct lines *l, const struct chunk *chunk)
{
    struct unfinished *line = &l->unfinished[chunk->rank];
    if (line->first != chunk)
        return;
    line->first = NULL;
    if (chunk->broken)
        let_pass(l, chunk->rank);
}

static void note(struct lines *l, struct chunk *chunk)
{
    struct unfinished *line = &l->unfinished[chunk->rank];
    if (!chunk->partial) {
        line->first = NULL;
        return;
    }
    if (!line->first)
        *line = (struct unfinished){.first = chunk};
    line->length += chunk->length;
}

/* Emits, in order, the chunks that need not wait any longer. */
static void release(struct lines *l)
{
    if (STAILQ_EMPTY(&l->queue))
        return;
    struct chunk *chunk = STAILQ_FIRST(&l->queue);
    struct chunk *passed_over = NULL;
    while (chunk) {
        struct chunk *next = STAILQ_NEXT(chunk, link);
        if (may_pass(l, chunk->rank)) {
            bool was_open = l->open >= 0;
            STAILQ_REMOVE(&l->queue, chunk, chunk, link);
            put(l, chunk->agent, chunk->rank, chunk->data, chunk->length, chunk->partial);
            forget(l, chunk);
            free(chunk);
            if (was_open && l->open < 0 && passed_over) {
                next = STAILQ_FIRST(&l->queue);
                passed_over = NULL;
            }
        } else if (!passed_over) {
            passed_over = chunk;
        }
        chunk = next;
    }
    /* off and on again: the clock runs for the line that is waited for now */
    l->owner.waiting(l->owner.arg, false);
    if (!STAILQ_EMPTY(&l->queue))
        start_waiting(l);
}

static int wait_in_line(struct lines *l, uint32_t agent, uint32_t rank, const void *data,
                        size_t length, bool partial)
{
    struct chunk *chunk = malloc(sizeof *chunk + length);
    if (!chunk)
        return -ENOMEM;
    *chunk = (struct chunk){
        .agent = agent, .rank = rank, .came = l->starts, .partial = partial, .length = length};
    memcpy(chunk->data, data, length);
    bool first = STAILQ_EMPTY(&l->queue);
    STAILQ_INSERT_TAIL(&l->queue, chunk, link);
    note(l, chunk);
    if (first)
        start_waiting(l);
    return 0;
}

int lines_add(struct lines *l, uint32_t agent, uint32_t rank, const void *data, size_t length,
              bool partial)
{
    if (!may_pass(l, rank))
        return wait_in_line(l, agent, rank, data, length, partial);
    put(l, agent, rank, data, length, partial);
    if (l->open < 0)
        release(l);
    return l->failed ? -ENOMEM : 0;
}

void lines_rank_ended(struct lines *l, uint32_t rank)
{
    l->passive[rank] |= ENDED; /* also what of it still waits */
    if (l->form == LINES_LABELLED && l->cursor == (int64_t)rank) {
        l->owner.emit(l->owner.arg, 0, 0, "\n", 1); /* stands for no byte of any agent */
        l->cursor = -1;
    }
    if (l->open != (int64_t)rank)
        return;
    l->open = -1;
    release(l);
}

/* Others whose line is unfinished as well, and has waited for as long: were each waited for in its
 * turn, progress bars of many ranks would keep all output back for as many seconds. */
static void break_others(struct lines *l)
{
    for (struct chunk *chunk = STAILQ_FIRST(&l->queue); chunk; chunk = STAILQ_NEXT(chunk, link)) {
        const struct unfinished *line = &l->unfinished[chunk->rank];
        chunk->broken |=
            line->first == chunk && line->length <= SHORT_MAX && chunk->came != l->starts;
    }
}

void lines_break(struct lines *l)
{
    if (l->open < 0)
        return;
    let_pass(l, (uint32_t)l->open);
    break_others(l);
    release(l);
}

/* Lines of which one piece came need no turn of their own: there may be one of each rank. */
static void break_single(struct lines *l)
{
    for (struct chunk *chunk = STAILQ_FIRST(&l->queue); chunk; chunk = STAILQ_NEXT(chunk, link)) {
        const struct unfinished *line = &l->unfinished[chunk->rank];
        chunk->broken |= line->first == chunk && line->length == chunk->length;
    }
}

void lines_finish(struct lines *l)
{
    break_single(l);
    while (l->open >= 0 && !STAILQ_EMPTY(&l->queue)) {
        let_pass(l, (uint32_t)l->open);
        release(l);
    }
    if (l->cursor >= 0)
        lines_rank_ended(l, (uint32_t)l->cursor);
}
