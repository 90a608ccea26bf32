/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/sweep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/number.h"

static const char *const names[] = {"align", "gpus", "nics", "workers", "ranks-per-worker"};

void sweep_done(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++)
        free(sweep->over[i].text);
    *sweep = (struct sweep){0};
}

static const char *known_name(const char *text, size_t length)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0)
            return names[i];
    return NULL;
}

static uint32_t number_of(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10); /* sweep_read has checked it */
}

static int check_value(const struct sweep_over *over, const char *value, struct drarun_error *err)
{
    char what[64];
    int64_t number;
    snprintf(what, sizeof what, "--sweep %s", over->name);
    if (over->name != names[0])
        return number_parse(what, value, 1, 65536, &number, err);
    if (strcmp(value, "required") == 0 || strcmp(value, "preferred") == 0 ||
        strcmp(value, "none") == 0)
        return 0;
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "%s: expected required, preferred or none, got \"%s\"", what, value);
}

static int read_over(const char *item, struct sweep_over *over, struct drarun_error *err)
{
    size_t length = strcspn(item, "=");
    *over = (struct sweep_over){.name = known_name(item, length)};
    if (!over->name || !item[length] || !item[length + 1])
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "--sweep %s: expected NAME=VALUE,VALUE with align, gpus, nics, workers or "
            "ranks-per-worker",
            item);
    char *rest = over->text = strdup(item + length + 1);
    if (!rest)
        return error_set(err, ENOMEM, "out of memory");
    for (char *value; (value = strsep(&rest, ","));) {
        if (over->count == SWEEP_VALUES_MAX)
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--sweep %s: more than %u values",
                              over->name, SWEEP_VALUES_MAX);
        int rc = check_value(over, value, err);
        if (rc < 0) {
            err->kind = DRARUN_ERR_USAGE;
            return rc;
        }
        over->values[over->count++] = value;
    }
    return 0;
}

int sweep_read(const struct strlist *items, struct sweep *ret_sweep, struct drarun_error *err)
{
    CLEANUP(sweep_done) struct sweep sweep = {.cases = 1};
    for (size_t i = 0; i < items->count; i++) {
        if (sweep.count == SWEEP_OVER_MAX)
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--sweep: at most %u of them",
                              SWEEP_OVER_MAX);
        struct sweep_over *over = &sweep.over[sweep.count++];
        int rc = read_over(items->items[i], over, err);
        if (rc < 0)
            return rc;
        for (size_t k = 0; k + 1 < sweep.count; k++)
            if (sweep.over[k].name == over->name)
                return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--sweep %s: it is there twice",
                                  over->name);
        sweep.cases *= over->count;
    }
    if (sweep.cases > SWEEP_CASES_MAX)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--sweep: %zu jobs, and %u are the most",
                          sweep.cases, SWEEP_CASES_MAX);
    *ret_sweep = sweep;
    sweep = (struct sweep){0};
    return 0;
}

/* ---- a case ---- */

static const char *value_of(const struct sweep *sweep, size_t over, size_t index)
{
    for (size_t i = sweep->count - 1; i > over; i--)
        index /= sweep->over[i].count;
    return sweep->over[over].values[index % sweep->over[over].count];
}

void sweep_choose(const struct sweep *sweep, size_t index, struct bench_choice *choice)
{
    for (size_t i = 0; i < sweep->count; i++) {
        const char *name = sweep->over[i].name, *value = value_of(sweep, i, index);
        if (name == names[0])
            choice->align = value;
        else if (name == names[1])
            choice->gpus = number_of(value);
        else if (name == names[2])
            choice->nics = number_of(value);
        else if (name == names[3])
            choice->workers = number_of(value);
        else
            choice->per_worker = number_of(value);
    }
}

void sweep_label(const struct sweep *sweep, size_t index, struct buf *out)
{
    for (size_t i = 0; i < sweep->count; i++)
        buf_printf(out, "%s%s=%s", i ? " " : "", sweep->over[i].name, value_of(sweep, i, index));
}
