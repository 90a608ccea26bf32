/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/notes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/cleanup.h"

struct note {
    char *text;
    uint32_t worker;
    size_t number; /* of arrival */
    uint32_t first_worker;
    size_t first_number; /* of the first with these words */
};

int notes_add(struct notes *notes, uint32_t worker, const char *text)
{
    size_t length = strlen(text);
    if (notes->count == NOTES_MAX || notes->bytes + length > NOTES_BYTES_MAX)
        return -ENOSPC;
    struct note *list = array_room(notes->list, notes->count, &notes->cap, sizeof *list);
    if (!list)
        return -ENOMEM;
    notes->list = list;
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    notes->list[notes->count] =
        (struct note){.text = copy, .worker = worker, .number = notes->count};
    notes->count++;
    notes->bytes += length;
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const struct note *x = a, *y = b;
    return x->worker != y->worker ? (x->worker > y->worker) - (x->worker < y->worker)
                                  : (x->number > y->number) - (x->number < y->number);
}

static int by_words(const void *a, const void *b)
{
    const struct note *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : by_number(a, b);
}

static int by_first(const void *a, const void *b)
{
    const struct note *x = a, *y = b;
    if (x->first_worker != y->first_worker)
        return x->first_worker > y->first_worker ? 1 : -1;
    if (x->first_number != y->first_number)
        return x->first_number > y->first_number ? 1 : -1;
    return by_number(a, b);
}

/* The number of notes that say the same, from the first one on. */
static size_t alike(const struct note *list, size_t count)
{
    size_t n = 1;
    while (n < count && strcmp(list[0].text, list[n].text) == 0)
        n++;
    return n;
}

static void say(const struct note *list, size_t count, note_fn fn, void *arg)
{
    cleanup_free uint32_t *workers = calloc(count, sizeof *workers);
    uint32_t some = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && list[i].worker == list[i - 1].worker)
            continue;
        if (workers)
            workers[some++] = list[i].worker;
        else
            fn(&list[i].worker, 1, list[i].text, arg);
    }
    if (workers)
        fn(workers, some, list[0].text, arg);
}

void notes_take(struct notes *notes, note_fn fn, void *arg)
{
    struct notes all = *notes;
    *notes = (struct notes){0}; /* fn may lead to more */
    if (all.count > 1)
        qsort(all.list, all.count, sizeof *all.list, by_words);
    for (size_t i = 0, n; i < all.count; i += n) {
        n = alike(&all.list[i], all.count - i);
        for (size_t k = i; k < i + n; k++) {
            all.list[k].first_worker = all.list[i].worker;
            all.list[k].first_number = all.list[i].number;
        }
    }
    if (all.count > 1)
        qsort(all.list, all.count, sizeof *all.list, by_first);
    for (size_t i = 0, n; i < all.count; i += n) {
        n = alike(&all.list[i], all.count - i);
        say(&all.list[i], n, fn, arg);
    }
    notes_done(&all);
}

void notes_done(struct notes *notes)
{
    for (size_t i = 0; i < notes->count; i++)
        free(notes->list[i].text);
    free(notes->list);
    *notes = (struct notes){0};
}
