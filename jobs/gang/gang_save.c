/* SPDX-License-Identifier: Apache-2.0 */
/* A gang over a restart of the launcher. */
#include "jobs/gang/gang.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/plain.h"

static json_t *save_times(const int64_t *times, size_t count, const char *(*name)(unsigned i))
{
    json_t *object = json_object();
    for (unsigned i = 1; object && i < count; i++)
        if (times[i] != 0 && json_object_set_new(object, name(i), json_integer(times[i])) < 0) {
            json_decref(object);
            return NULL;
        }
    return object;
}

static const char *phase_at(unsigned i)
{
    return gang_phase_name((enum gang_phase)i);
}

static const char *clock_at(unsigned i)
{
    return gang_clock_name((enum gang_clock)i);
}

json_t *gang_save(const struct gang *gang)
{
    return json_pack(
        "{s:s, s:I, s:I, s:o, s:I, s:I, s:I, s:s, s:I, s:o, s:o, s:s}", "phase",
        gang_phase_name(gang->phase), "phaseSince", (json_int_t)gang->phase_since_ms, "since",
        (json_int_t)gang->since_ms, "seed", json_sprintf("%016llx", (unsigned long long)gang->seed),
        "tries", (json_int_t)gang->tries, "step", (json_int_t)gang->step, "resume",
        (json_int_t)gang->resume_ms, "ticking", gang_clock_name(gang->ticking), "tickingSince",
        (json_int_t)gang->ticking_since_ms, "spent",
        save_times(gang->spent_ms, GANG_CLOCK_COUNT, clock_at), "timings",
        save_times(gang->timings_ms, GANG_ENDED + 1, phase_at), "reason", gang->reason);
}

static void load_times(const json_t *object, int64_t *times, size_t count,
                       const char *(*name)(unsigned i))
{
    for (unsigned i = 1; i < count; i++) {
        json_int_t value = json_integer_value(json_object_get(object, name(i)));
        if (value > 0)
            times[i] = value;
    }
}

static void load_time(const json_t *object, const char *key, int64_t *ret_ms)
{
    json_int_t value = json_integer_value(json_object_get(object, key));
    if (value > 0)
        *ret_ms = value;
}

static unsigned load_word(const json_t *object, const char *key, size_t count,
                          const char *(*name)(unsigned i), unsigned fallback)
{
    const char *word = json_string_value(json_object_get(object, key));
    for (unsigned i = 1; word && i < count; i++)
        if (strcmp(word, name(i)) == 0)
            return i;
    return fallback;
}

void gang_load(struct gang *gang, const json_t *saved)
{
    int64_t tries = gang->tries, step = gang->step;
    const char *seed = json_string_value(json_object_get(saved, "seed"));
    gang->phase = load_word(saved, "phase", GANG_ENDED + 1, phase_at, gang->phase);
    gang->ticking = load_word(saved, "ticking", GANG_CLOCK_COUNT, clock_at, gang->ticking);
    load_time(saved, "phaseSince", &gang->phase_since_ms);
    load_time(saved, "since", &gang->since_ms);
    load_time(saved, "resume", &gang->resume_ms);
    load_time(saved, "tickingSince", &gang->ticking_since_ms);
    load_time(saved, "tries", &tries);
    load_time(saved, "step", &step);
    gang->tries = (uint32_t)tries;
    gang->step = (unsigned)step;
    if (seed)
        gang->seed = strtoull(seed, NULL, 16);
    load_times(json_object_get(saved, "spent"), gang->spent_ms, GANG_CLOCK_COUNT, clock_at);
    load_times(json_object_get(saved, "timings"), gang->timings_ms, GANG_ENDED + 1, phase_at);
    const char *reason = json_string_value(json_object_get(saved, "reason"));
    utf8_copy(gang->reason, sizeof gang->reason, reason ? reason : "");
}
