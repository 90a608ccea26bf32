/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/array.h"
#include "lib/bench/runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void runs_done(struct runs *runs)
{
    for (size_t i = 0; i < runs->count; i++) {
        result_done(&runs->list[i]->result);
        strlist_done(&runs->list[i]->notes);
        free(runs->list[i]);
    }
    free(runs->list);
    *runs = (struct runs){0};
}

struct run *runs_add(struct runs *runs)
{
    struct run **list = array_room(runs->list, runs->count, &runs->cap, sizeof *list);
    if (!list)
        return NULL;
    runs->list = list;
    struct run *run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    result_init(&run->result);
    return runs->list[runs->count++] = run;
}

/* "after 2 sizes" */
static void progress(const struct result *r, char *text, size_t size)
{
    size_t count = result_measured(r);
    if (count == 0)
        snprintf(text, size, "before it measured anything");
    else
        snprintf(text, size, "after %zu size%s", count, count == 1 ? "" : "s");
}

bool run_is_incomplete(const struct run *run, struct strlist *why)
{
    const struct result *r = &run->result;
    const struct result_failure *f = &r->failure;
    char reached[40];
    progress(r, reached, sizeof reached);
    bool of_test = strncmp(f->kind, "test", strlen("test")) == 0;
    if (of_test && !r->ended)
        strlist_addf(why, "the run failed%s%s %s: %s", f->host[0] ? " on " : "", f->host, reached,
                     f->text);
    else if (of_test)
        strlist_addf(why, "the run failed%s%s: %s", f->host[0] ? " on " : "", f->host, f->text);
    else if (f->kind[0])
        strlist_addf(why, "the job failed: %s", f->text);
    else if (!r->ended)
        strlist_addf(why, "the run did not end, %s: %s", reached, run->missing);
    if (f->kind[0] && f->cause[0])
        strlist_addf(why, "before it NCCL warned on %s", f->cause);
    return f->kind[0] || !r->ended;
}
