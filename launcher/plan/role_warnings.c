/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/plan/role_warnings.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/cleanup.h"
#include "lib/base/strlist.h"

struct entry {              /* a wording of one role's plan */
    struct warning warning; /* its detail is the plan's */
    size_t at;              /* in places, which are in the order of roles */
};

struct collection {
    const char *role; /* whose plan it is */
    struct entry *list;
    size_t count, cap;
    struct strlist places; /* "trainer (workers 0-7)" */
    bool failed;
};

static void take(const struct warning *warning, const char *workers, void *arg)
{
    struct collection *c = arg;
    struct entry *list = array_room(c->list, c->count, &c->cap, sizeof *list);
    if (!list) {
        c->failed = true;
        return;
    }
    c->list = list;
    c->list[c->count] = (struct entry){*warning, c->count};
    c->count++;
    if (workers[0])
        strlist_addf(&c->places, "%s (%s)", c->role, workers);
    else
        strlist_add(&c->places, c->role);
}

static int compare_words(const struct warning *a, const struct warning *b)
{
    int order = strcmp(warning_name(a->code), warning_name(b->code));
    return order != 0 ? order : strcmp(a->detail, b->detail);
}

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = compare_words(&x->warning, &y->warning);
    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

static bool is_shown(const struct preview *preview)
{
    return preview->predicted && preview->planned && !preview->prediction.shortage &&
           !preview->plan.refusal.code;
}

static void show(const struct collection *c, struct buf *out)
{
    for (size_t i = 0, n; i < c->count; i += n) {
        const struct warning *warning = &c->list[i].warning;
        for (n = 1; i + n < c->count && compare_words(warning, &c->list[i + n].warning) == 0;)
            n++;
        buf_printf(out, "  %s, role%s ", warning_name(warning->code), n > 1 ? "s" : "");
        for (size_t k = 0; k < n; k++)
            buf_printf(out, "%s%s", k ? ", " : "", c->places.items[c->list[i + k].at]);
        buf_printf(out, ": %s\n", warning->detail);
    }
}

void role_warnings_text(const struct job_spec *spec, const struct preview *previews, uint32_t count,
                        struct buf *out)
{
    struct collection c = {.places = STRLIST_INIT};
    for (uint32_t r = 0; r < count; r++) {
        c.role = spec->roles[r].name;
        if (is_shown(&previews[r]))
            c.failed |= warnings_each_wording(&previews[r].plan.warnings, take, &c) < 0;
    }
    if (c.count > 0 && !c.failed && !c.places.failed) {
        qsort(c.list, c.count, sizeof *c.list, compare);
        buf_add_str(out, "\nWarnings:\n");
        show(&c, out);
    }
    out->failed |= c.failed || c.places.failed;
    strlist_done(&c.places);
    free(c.list);
}
