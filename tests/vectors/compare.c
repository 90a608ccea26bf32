/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/vectors/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/doc/value.h"

#define TOLERANCE 0.0006 /* scores are rounded to three or four digits */

static void differ(struct strlist *out, const char *path, const json_t *expected, const json_t *got)
{
    char *e = expected ? json_dumps(expected, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    char *g = got ? json_dumps(got, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    strlist_addf(out, "%s: expected %.300s, got %.300s", path, e ? e : "nothing",
                 g ? g : "nothing");
    free(e);
    free(g);
}

static void compare(const json_t *expected, const json_t *got, const char *path,
                    struct strlist *out);

static void compare_objects(const json_t *expected, const json_t *got, const char *path,
                            struct strlist *out)
{
    const char *key;
    json_t *value;
    char below[512];
    value_foreach(expected, key, value)
    {
        if (strcmp(key, "ncclOracle") == 0 || strcmp(key, "warnings") == 0)
            continue;
        snprintf(below, sizeof below, "%s.%s", path, key);
        compare(value, json_object_get(got, key), below, out);
    }
    value_foreach(got, key, value)
    {
        snprintf(below, sizeof below, "%s.%s", path, key);
        if (!json_object_get(expected, key) && strcmp(key, "warnings") != 0)
            differ(out, below, NULL, value);
    }
}

static void compare_arrays(const json_t *expected, const json_t *got, const char *path,
                           struct strlist *out)
{
    size_t i;
    json_t *value;
    char below[512];
    if (json_array_size(expected) != json_array_size(got)) {
        differ(out, path, expected, got);
        return;
    }
    json_array_foreach(expected, i, value)
    {
        snprintf(below, sizeof below, "%s[%zu]", path, i);
        compare(value, json_array_get(got, i), below, out);
    }
}

static void compare(const json_t *expected, const json_t *got, const char *path,
                    struct strlist *out)
{
    if (json_is_object(expected) && json_is_object(got))
        compare_objects(expected, got, path, out);
    else if (json_is_array(expected) && json_is_array(got))
        compare_arrays(expected, got, path, out);
    else if (json_is_number(expected) && json_is_number(got)) {
        if (fabs(json_number_value(expected) - json_number_value(got)) > TOLERANCE)
            differ(out, path, expected, got);
    } else if (!json_equal(expected, got))
        differ(out, path, expected, got);
}

/* How often code and worker of `warning` are in the list. */
static size_t occurrences(const json_t *list, const json_t *warning)
{
    size_t i, count = 0;
    json_t *other;
    json_array_foreach(list, i, other) count +=
        json_equal(json_object_get(other, "code"), json_object_get(warning, "code")) &&
        json_equal(json_object_get(other, "worker"), json_object_get(warning, "worker"));
    return count;
}

static void compare_warnings(const json_t *expected, const json_t *got, bool strict,
                             struct strlist *out)
{
    size_t i;
    json_t *warning;
    json_array_foreach(expected, i, warning)
    {
        size_t wanted = occurrences(expected, warning), there = occurrences(got, warning);
        if (there == 0 || (strict && there != wanted))
            differ(out, "warnings", warning, there ? got : NULL);
    }
    json_array_foreach(got, i, warning) if (occurrences(expected, warning) == 0)
        differ(out, "warnings", NULL, warning);
}

void compare_plans(const json_t *expected, const json_t *got, bool strict,
                   struct strlist *differences)
{
    const json_t *refuse = json_object_get(expected, "refuse");
    const json_t *refused = json_object_get(got, "refuse");
    if (json_is_object(refuse) && json_is_object(refused)) {
        if (!json_equal(json_object_get(refuse, "code"), json_object_get(refused, "code")) ||
            !json_equal(json_object_get(refuse, "worker"), json_object_get(refused, "worker")))
            differ(differences, "refuse", refuse, refused);
    } else {
        compare(expected, got, "", differences);
    }
    compare_warnings(json_object_get(expected, "warnings"), json_object_get(got, "warnings"),
                     strict, differences);
}
