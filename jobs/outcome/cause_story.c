/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/outcome/cause_private.h"
#include "lib/base/buf.h"
#include "lib/base/plain.h"

/* In place of a text that there was no memory for; never freed. */
static char lost[] = "(out of memory)";

static void free_text(char *text)
{
    if (text != lost)
        free(text);
}

/* A copy that a terminal and JSON can take, without carriage returns. */
static char *clean_copy(const char *text, size_t length)
{
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < length; i++)
        if (text[i] != '\r')
            buf_add(&out, text + i, 1);
    if (out.data)
        plain_text(out.data, out.len);
    char *copy = buf_take(&out);
    buf_done(&out);
    return copy ? copy : lost;
}

char *cause_clean_text(const char *text)
{
    return text && text[0] ? clean_copy(text, strlen(text)) : NULL;
}

bool cause_has_rank(enum cause_kind kind)
{
    return kind >= CAUSE_EXIT && kind <= CAUSE_NO_INIT;
}

void cause_story_done(struct cause_story *story)
{
    free_text(story->host);
    free_text(story->pod);
    free_text(story->text);
    free_text(story->advice);
    free_text(story->tail);
    *story = (struct cause_story){0};
}

struct cause_story cause_story_of_end(const struct cause_end *end, enum cause_kind kind)
{
    return (struct cause_story){
        .kind = kind,
        .rank = end->rank,
        .worker = end->worker,
        .code = end->code,
        .signo = end->signo,
        .core = end->core,
        .oom = end->oom,
        .ran_us = end->ran_us,
        .host = cause_clean_text(end->host),
        .advice = cause_clean_text(end->advice),
        .tail = end->stderr_tail_length > 0 ? clean_copy(end->stderr_tail, end->stderr_tail_length)
                                            : NULL,
    };
}

struct cause_story cause_story_copy(const struct cause_story *story)
{
    struct cause_story copy = *story;
    copy.host = cause_clean_text(story->host);
    copy.pod = cause_clean_text(story->pod);
    copy.text = cause_clean_text(story->text);
    copy.advice = cause_clean_text(story->advice);
    copy.tail = cause_clean_text(story->tail);
    return copy;
}

bool cause_story_may_echo(const struct cause_story *story)
{
    return story->kind == CAUSE_EXIT || story->kind == CAUSE_ABORT ||
           story->kind == CAUSE_NO_FINALIZE ||
           (story->kind == CAUSE_SIGNAL && story->signo == SIGABRT);
}

bool cause_tell_take(struct cause *cause, struct cause_story *story)
{
    if (cause->first.kind != CAUSE_NONE) {
        cause_story_done(story);
        return false;
    }
    cause->first = *story;
    *story = (struct cause_story){0};
    return true;
}
