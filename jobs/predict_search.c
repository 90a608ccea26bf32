/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "jobs/predict_private.h"

/* Devices tried before giving up on a node. The scheduler has a deadline instead (10 s). */
#define STEPS_MAX 200000

struct slot {
    size_t request, choice;
    bool again; /* the same request's next device: only later ones, since their order is nothing */
};

struct search {
    const struct predict_claim *claim;
    const struct slices *slices;
    size_t first, count;
    const uint8_t *taken;
    uint8_t *used;   /* by index from first */
    uint8_t *choice; /* of each request */
    struct slot slots[PREDICT_RESULTS_MAX];
    size_t slot_count;
    const json_t *pins[PREDICT_CONSTRAINTS_MAX]; /* the value that a constraint's devices share */
    size_t chosen[PREDICT_RESULTS_MAX];          /* index from first, by slot */
    size_t steps;
};

static bool is_domain(const char *name, const char *slash, const char *driver)
{
    size_t length = (size_t)(slash - name);
    return strlen(driver) == length && memcmp(name, driver, length) == 0;
}

/* By its full name, or by its own when the domain is the driver's (lookupAttribute in
 * structured/internal/experimental/constraint.go). */
static const json_t *attribute(const struct slice_device *device, const char *name)
{
    const json_t *value = json_object_get(device->attributes, name);
    const char *slash = strchr(name, '/');
    if (!value && slash && is_domain(name, slash, device->driver))
        value = json_object_get(device->attributes, slash + 1);
    return value;
}

static const struct predict_choice *choice_of(const struct search *s, size_t request)
{
    return &s->claim->requests[request].choices[s->choice[request]];
}

static bool is_free(const struct search *s, const struct predict_kind *kind, size_t at)
{
    return kind->admits[s->first + at] && !s->taken[s->first + at] && !s->used[at];
}

/* Sets the pins that this device is the first to set; returns them, or false in *ret_fits. */
static uint32_t pin(struct search *s, uint32_t constraints, const struct slice_device *device,
                    bool *ret_fits)
{
    uint32_t set = 0;
    *ret_fits = true;
    for (size_t c = 0; c < s->claim->constraint_count && *ret_fits; c++) {
        if (!(constraints >> c & 1))
            continue;
        const json_t *value = attribute(device, s->claim->attributes[c]);
        if (!value || (s->pins[c] && !json_equal(s->pins[c], value)))
            *ret_fits = false;
        else if (!s->pins[c]) {
            s->pins[c] = value;
            set |= 1u << c;
        }
    }
    return set;
}

static void unpin(struct search *s, uint32_t set)
{
    for (size_t c = 0; set >> c && c < s->claim->constraint_count; c++)
        if (set >> c & 1)
            s->pins[c] = NULL;
}

static bool fill(struct search *s, size_t slot)
{
    if (slot == s->slot_count)
        return true;
    const struct slot *here = &s->slots[slot];
    const struct predict_request *request = &s->claim->requests[here->request];
    const struct predict_kind *kind = &s->claim->kinds[choice_of(s, here->request)->kind];
    for (size_t at = here->again ? s->chosen[slot - 1] + 1 : 0; at < s->count; at++) {
        if (!is_free(s, kind, at))
            continue;
        if (++s->steps > STEPS_MAX)
            return false;
        bool fits;
        uint32_t set = pin(s, request->constraints, &s->slices->devices[s->first + at], &fits);
        if (fits) {
            s->used[at] = 1;
            s->chosen[slot] = at;
            if (fill(s, slot + 1))
                return true;
            s->used[at] = 0;
        }
        unpin(s, set);
    }
    return false;
}

/* A request's devices, then those that share a constraint with it, so that a wrong beginning is
 * found out at once and not after all others were chosen. */
static void add_request(struct search *s, size_t request, uint8_t *added, const uint32_t *counts)
{
    const struct predict_claim *claim = s->claim;
    added[request] = 1;
    for (uint32_t i = 0; i < counts[request]; i++)
        s->slots[s->slot_count++] = (struct slot){request, s->choice[request], i > 0};
    for (size_t other = 0; other < claim->request_count; other++)
        if (!added[other] &&
            (claim->requests[other].constraints & claim->requests[request].constraints))
            add_request(s, other, added, counts);
}

static size_t admitted(const struct search *s, const struct predict_kind *kind, bool only_free)
{
    size_t n = 0;
    for (size_t at = 0; at < s->count; at++)
        n += kind->admits[s->first + at] && !(only_free && s->taken[s->first + at]);
    return n;
}

/* How many devices each request takes here, and whether there can be enough. */
static enum predict_fit count_devices(const struct search *s, uint32_t *counts, size_t *ret_request)
{
    const struct predict_claim *claim = s->claim;
    size_t total = 0, wanted[PREDICT_REQUESTS_MAX * PREDICT_ALTERNATIVES_MAX] = {0};
    for (size_t r = 0; r < claim->request_count; r++) {
        const struct predict_choice *choice = choice_of(s, r);
        const struct predict_kind *kind = &claim->kinds[choice->kind];
        size_t there = admitted(s, kind, false), left = admitted(s, kind, true);
        size_t count = choice->all ? there : choice->count;
        wanted[choice->kind] += count;
        *ret_request = r;
        if (count == 0 || there < wanted[choice->kind])
            return PREDICT_TOO_FEW;
        if (left < wanted[choice->kind])
            return PREDICT_TAKEN;
        if ((total += count) > PREDICT_RESULTS_MAX)
            return PREDICT_TOO_FEW;
        counts[r] = (uint32_t)count;
    }
    return PREDICT_FITS;
}

static void report(const struct search *s, struct predict_found *found)
{
    found->count = 0;
    for (size_t r = 0; r < s->claim->request_count; r++) /* in the order of the claim */
        for (size_t i = 0; i < s->slot_count; i++)
            if (s->slots[i].request == r) {
                found->results[found->count].request = r;
                found->results[found->count].choice = s->slots[i].choice;
                found->results[found->count++].device = s->first + s->chosen[i];
            }
}

static enum predict_fit try_choices(struct search *s, struct predict_found *ret_found,
                                    size_t *ret_request)
{
    uint32_t counts[PREDICT_REQUESTS_MAX];
    uint8_t added[PREDICT_REQUESTS_MAX] = {0};
    enum predict_fit fit = count_devices(s, counts, ret_request);
    if (fit != PREDICT_FITS)
        return fit;
    s->slot_count = 0;
    s->steps = 0;
    memset(s->pins, 0, sizeof s->pins);
    memset(s->used, 0, s->count);
    for (size_t r = 0; r < s->claim->request_count; r++)
        if (!added[r])
            add_request(s, r, added, counts);
    if (!fill(s, 0))
        return s->steps > STEPS_MAX ? PREDICT_TOO_HARD : PREDICT_NO_MATCH;
    report(s, ret_found);
    return PREDICT_FITS;
}

/* The next combination of alternatives, the last request's changing first; false after the last. */
static bool next_choices(struct search *s)
{
    for (size_t r = s->claim->request_count; r-- > 0;) {
        if (++s->choice[r] < s->claim->requests[r].choice_count)
            return true;
        s->choice[r] = 0;
    }
    return false;
}

enum predict_fit predict_search(const struct predict_claim *claim, const struct slices *slices,
                                size_t first, size_t count, const uint8_t *taken,
                                struct predict_found *ret_found, size_t *ret_request)
{
    uint8_t choice[PREDICT_REQUESTS_MAX] = {0};
    uint8_t *used = calloc(count + 1, 1);
    struct search s = {.claim = claim,
                       .slices = slices,
                       .first = first,
                       .count = count,
                       .taken = taken,
                       .used = used,
                       .choice = choice};
    enum predict_fit best = PREDICT_TOO_HARD;
    bool more = used != NULL;
    for (size_t tries = 0; more && tries < 4096; tries++) {
        size_t request = 0;
        enum predict_fit fit = try_choices(&s, ret_found, &request);
        if (tries == 0 || fit == PREDICT_FITS) {
            best = fit;
            *ret_request = request;
        }
        more = fit != PREDICT_FITS && next_choices(&s);
    }
    free(used);
    return best;
}
