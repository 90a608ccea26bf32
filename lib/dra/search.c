/* SPDX-License-Identifier: Apache-2.0 */
/* One claim on one node: the scheduler's exhaustive search, in its order, with its side effects
 * (allocateOne and allocateDevice in structured/internal/experimental). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/dra/predict_private.h"
#include "lib/dra/quantity_read.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"

/* Devices tried before giving up on a node. The scheduler has a deadline instead (10 s). */
#define STEPS_MAX 200000

enum step {
    STEP_ERROR = -1, /* err is filled */
    STEP_NO = 0,
    STEP_DONE,
    STEP_TOO_MANY, /* more results than a claim may have: other alternatives may need fewer */
    STEP_STOP,     /* the scheduler gives up; err is filled */
    STEP_TOO_HARD,
};

struct picked {
    size_t request, choice, candidate;
};

/* What allocationMode All comes to: the first of them, and how many there are. */
struct everything {
    size_t count;
    size_t candidates[PREDICT_RESULTS_MAX];
};

struct search {
    const struct predict_claim *claim;
    struct predict_view *view;
    struct everything *all[PREDICT_REQUESTS_MAX][PREDICT_ALTERNATIVES_MAX];
    uint8_t *used; /* by candidate */
    struct predict_shares taking;
    struct predict_constraint_state constraints[PREDICT_CONSTRAINTS_MAX];
    struct picked picked[PREDICT_RESULTS_MAX];
    size_t picked_count;
    size_t steps;
    bool no_room;  /* a device was passed over for its counters or capacity */
    bool no_match; /* or for a constraint */
    struct drarun_error *err;
};

static struct predict_device *device_at(const struct search *s, size_t candidate)
{
    return &s->view->inventory->devices[s->view->candidates[candidate].device];
}

static uint8_t verdict_of(const struct search *s, const struct predict_choice *choice,
                          size_t candidate)
{
    const struct predict_kind *kind = &s->claim->kinds[choice->kind];
    return kind->admits[s->view->candidates[candidate].device];
}

static enum step give_up(struct search *s, const char *request, const char *why)
{
    error_kind(s->err, DRARUN_ERR_CAPACITY, EAGAIN,
               "node %s: request %s: %s: the scheduler gives up on the claim while that is so",
               s->view->node, request, why);
    return STEP_STOP;
}

/* STEP_DONE: the device may be chosen for what it is; STEP_NO: it may not. */
static enum step selectable(struct search *s, const struct predict_choice *choice, size_t candidate)
{
    uint8_t says = verdict_of(s, choice, candidate);
    if (says & PREDICT_FAILS) {
        predict_admit_failure(unconst(&s->claim->kinds[choice->kind]), device_at(s, candidate),
                              s->err);
        return STEP_STOP;
    }
    return (says & PREDICT_ADMITTED) && s->view->candidates[candidate].here ? STEP_DONE : STEP_NO;
}

static enum step has_capacity_beside(struct search *s, const struct predict_choice *choice,
                                     size_t candidate, const struct predict_shares *taken,
                                     const struct predict_shares *taking)
{
    int rc = predict_capacity_fits(&s->view->inventory->rules, device_at(s, candidate),
                                   choice->capacity, taken, s->view->candidates[candidate].device,
                                   taking, candidate, s->err);
    s->no_room = s->no_room || rc == 0;
    return rc < 0 ? STEP_ERROR : rc ? STEP_DONE : STEP_NO;
}

static enum step has_capacity(struct search *s, const struct predict_choice *choice,
                              size_t candidate)
{
    return has_capacity_beside(s, choice, candidate, &s->view->inventory->shares, &s->taking);
}

/* Whether allocationMode All lists the device: whether it is full, too, matters by all_needs_room
 * alone. */
static enum step has_capacity_for_all(struct search *s, const struct predict_choice *choice,
                                      size_t candidate)
{
    static const struct predict_shares none;
    return s->view->inventory->rules.all_needs_room
               ? has_capacity(s, choice, candidate)
               : has_capacity_beside(s, choice, candidate, &none, &none);
}

static bool in_use(const struct search *s, const struct predict_choice *choice, size_t candidate)
{
    if (s->used[candidate])
        return true;
    return !choice->admin && (device_at(s, candidate)->taken & PREDICT_TAKEN_WHOLE);
}

/* The shared device is in use by this claim or another, and its counters are charged. */
static bool shared_already(const struct search *s, size_t candidate)
{
    uint8_t use =
        s->view->inventory->rules.use_by_capacity ? PREDICT_TAKEN_CAPACITY : PREDICT_TAKEN_SHARE;
    bool found = device_at(s, candidate)->taken & use;
    for (size_t i = 0; !found && i < s->picked_count; i++)
        found = s->picked[i].candidate == candidate;
    return found;
}

/* ---- taking a device, and taking that back ---- */

struct undo {
    bool counters, marked;
    size_t constraints; /* of the claim's: those before this one were added */
    size_t shares;      /* how many there were before */
};

static void give_back(struct search *s, size_t request, const struct predict_choice *choice,
                      size_t candidate, const struct undo *undo)
{
    s->taking.count = undo->shares;
    if (undo->marked)
        s->used[candidate] = 0;
    for (size_t c = undo->constraints; c-- > 0;)
        if (choice->constraints >> c & 1)
            predict_constraint_remove(&s->claim->constraints[c], &s->constraints[c], request);
    if (undo->counters)
        predict_counters_return(s->view, candidate);
}

static bool add_constraints(struct search *s, size_t request, const struct predict_choice *choice,
                            size_t candidate, struct undo *undo)
{
    for (size_t c = 0; c < s->claim->constraint_count; c++) {
        if ((choice->constraints >> c & 1) &&
            !predict_constraint_add(&s->view->inventory->rules, &s->claim->constraints[c],
                                    &s->constraints[c], request, &device_at(s, candidate)->slice))
            return false;
        undo->constraints = c + 1;
    }
    return true;
}

static enum step share_capacity(struct search *s, const struct predict_choice *choice,
                                size_t candidate)
{
    json_t *consumed = NULL, *value;
    const char *name;
    if (predict_capacity_consumed(&s->view->inventory->rules, device_at(s, candidate),
                                  choice->capacity, &consumed, s->err) < 0)
        return STEP_ERROR;
    enum step step = STEP_DONE;
    json_object_foreach(consumed, name, value)
    {
        struct cel_quantity quantity;
        /* the name in the device's own capacity outlives the search */
        const char *own = json_object_iter_key(
            json_object_iter_at(unconst(device_at(s, candidate)->slice.capacity), name));
        if (quantity_read(value, name, &quantity, s->err) < 0 ||
            predict_shares_add(&s->taking, candidate, own, &quantity) < 0)
            step = STEP_ERROR;
    }
    json_decref(consumed);
    return step;
}

/* allocateDevice; must: allocationMode All, where a constraint that fails ends everything. */
static enum step take_device(struct search *s, size_t request, size_t choice_index,
                             size_t candidate, bool must, struct undo *undo)
{
    const struct predict_choice *choice = &s->claim->requests[request].choices[choice_index];
    bool multiple = device_at(s, candidate)->multiple;
    *undo = (struct undo){.shares = s->taking.count};
    if (in_use(s, choice, candidate))
        return STEP_NO;
    if (!(multiple && shared_already(s, candidate))) {
        int rc = predict_counters_take(s->view, candidate);
        s->no_room = s->no_room || rc == 0;
        if (rc < 0)
            error_kind(s->err, DRARUN_ERR_SPEC, ERANGE, "shared counters of more than 38 digits");
        if (rc <= 0)
            return rc < 0 ? STEP_ERROR : STEP_NO;
        undo->counters = true;
    }
    enum step step = verdict_of(s, choice, candidate) & PREDICT_TAINTED ? STEP_NO : STEP_DONE;
    if (step == STEP_DONE && !add_constraints(s, request, choice, candidate, undo)) {
        s->no_match = true;
        step = must ? give_up(s, s->claim->requests[request].name,
                              "asks for all devices, of which a constraint excludes one")
                    : STEP_NO;
    }
    if (step == STEP_DONE)
        step = has_capacity(s, choice, candidate);
    if (step == STEP_DONE && multiple)
        step = share_capacity(s, choice, candidate);
    if (step != STEP_DONE) {
        give_back(s, request, choice, candidate, undo);
        return step;
    }
    undo->marked = !multiple;
    s->used[candidate] = !multiple;
    s->picked[s->picked_count++] = (struct picked){request, choice_index, candidate};
    return STEP_DONE;
}

/* ---- the search ---- */

static enum step next_request(struct search *s, size_t request);
static enum step fill_request(struct search *s, size_t request, size_t choice, size_t number,
                              size_t from);

/* Takes a candidate and goes on with the rest. */
static enum step take_and_go_on(struct search *s, size_t request, size_t choice, size_t number,
                                size_t candidate, bool must)
{
    struct undo undo;
    enum step step = take_device(s, request, choice, candidate, must, &undo);
    if (step != STEP_DONE)
        return step;
    step = fill_request(s, request, choice, number + 1, candidate + 1);
    if (step == STEP_DONE)
        return step;
    s->picked_count--;
    give_back(s, request, &s->claim->requests[request].choices[choice], candidate, &undo);
    return step;
}

/* The number-th device of a request, at from or after it. */
static enum step fill_request(struct search *s, size_t request, size_t choice_index, size_t number,
                              size_t from)
{
    const struct predict_choice *choice = &s->claim->requests[request].choices[choice_index];
    const struct everything *all = s->all[request][choice_index];
    size_t wanted = all ? all->count : choice->count;
    if (all && all->count == 0)
        return STEP_NO;
    if (number >= wanted)
        return next_request(s, request + 1);
    if (s->picked_count + wanted - number > PREDICT_RESULTS_MAX)
        return STEP_TOO_MANY;
    if (all)
        return take_and_go_on(s, request, choice_index, number, all->candidates[number], true);
    for (size_t at = from; at < s->view->count; at++) {
        if (in_use(s, choice, at))
            continue;
        enum step step = selectable(s, choice, at);
        if (step == STEP_DONE)
            step = has_capacity(s, choice, at);
        if (step == STEP_NO)
            continue;
        if (step == STEP_DONE && ++s->steps > STEPS_MAX)
            return STEP_TOO_HARD;
        if (step == STEP_DONE)
            step = take_and_go_on(s, request, choice_index, number, at, false);
        if (step != STEP_NO)
            return step;
    }
    return STEP_NO;
}

static enum step next_request(struct search *s, size_t request)
{
    if (request == s->claim->request_count)
        return STEP_DONE;
    const struct predict_request *here = &s->claim->requests[request];
    if (!here->choices[0].subrequest)
        return fill_request(s, request, 0, 0, 0);
    bool only_too_many = true;
    for (size_t c = 0; c < here->choice_count; c++) {
        enum step step = fill_request(s, request, c, 0, 0);
        if (step != STEP_TOO_MANY && step != STEP_NO)
            return step;
        only_too_many = only_too_many && step == STEP_TOO_MANY;
    }
    return only_too_many ? STEP_TOO_MANY : STEP_NO;
}

/* ---- before the search ---- */

static enum step list_all(struct search *s, size_t request, size_t choice_index)
{
    const struct predict_request *asks = &s->claim->requests[request];
    const struct predict_choice *choice = &asks->choices[choice_index];
    char why[256];
    for (size_t p = 0; p < s->view->pool_count; p++) {
        const struct predict_view_pool *pool = &s->view->pools[p];
        const struct predict_pool *own = &s->view->inventory->pools[pool->pool];
        if (!pool->broken)
            continue;
        snprintf(why, sizeof why, "asks for all devices, and pool %.100s %s",
                 s->view->inventory->slices->parts[own->first].pool, pool->broken);
        return give_up(s, asks->name, why);
    }
    struct everything *all = s->all[request][choice_index] = calloc(1, sizeof *all);
    if (!all) {
        error_set(s->err, ENOMEM, "out of memory");
        return STEP_ERROR;
    }
    for (size_t at = 0; at < s->view->count; at++) {
        enum step step = selectable(s, choice, at);
        if (step == STEP_DONE)
            step = has_capacity_for_all(s, choice, at);
        if (step != STEP_DONE && step != STEP_NO)
            return step;
        if (step == STEP_DONE && all->count < PREDICT_RESULTS_MAX)
            all->candidates[all->count] = at;
        all->count += step == STEP_DONE;
    }
    return STEP_DONE;
}

/* validateDeviceRequest of every request, and the least number of results. */
static enum step prepare_requests(struct search *s)
{
    size_t total = 0;
    for (size_t r = 0; r < s->claim->request_count; r++) {
        const struct predict_request *request = &s->claim->requests[r];
        size_t least = SIZE_MAX;
        for (size_t c = 0; c < request->choice_count; c++) {
            const struct predict_choice *choice = &request->choices[c];
            enum step step = choice->all ? list_all(s, r, c) : STEP_DONE;
            if (step != STEP_DONE)
                return step;
            size_t count = choice->all ? s->all[r][c]->count : choice->count;
            least = count < least ? count : least;
        }
        total += least;
    }
    if (total > PREDICT_RESULTS_MAX)
        return give_up(s, s->claim->requests[0].name,
                       "the claim would get more than 32 devices, the most that it can hold");
    return STEP_DONE;
}

/* ---- why not ---- */

static size_t count_admitted(const struct search *s, const struct predict_choice *choice,
                             bool only_free)
{
    size_t n = 0;
    for (size_t at = 0; at < s->view->count; at++)
        n += verdict_of(s, choice, at) == PREDICT_ADMITTED && s->view->candidates[at].here &&
             !(only_free && (device_at(s, at)->taken & PREDICT_TAKEN_WHOLE));
    return n;
}

static bool any_shared(const struct search *s, const struct predict_choice *choice)
{
    for (size_t at = 0; at < s->view->count; at++)
        if (verdict_of(s, choice, at) == PREDICT_ADMITTED && device_at(s, at)->multiple)
            return true;
    return false;
}

/* What can be told by counting the devices of each kind, without a search. PREDICT_FITS: nothing
 * speaks against it. Of an alternative only the first is looked at, so for those it is no proof. */
static enum predict_fit count_devices(const struct search *s, size_t *ret_request)
{
    size_t wanted[PREDICT_REQUESTS_MAX * PREDICT_ALTERNATIVES_MAX] = {0};
    for (size_t r = 0; r < s->claim->request_count; r++) {
        const struct predict_choice *choice = &s->claim->requests[r].choices[0];
        size_t there = count_admitted(s, choice, false), left = count_admitted(s, choice, true);
        *ret_request = r;
        if (there == 0)
            return PREDICT_TOO_FEW;
        if (choice->admin || any_shared(s, choice)) /* these need no device of their own */
            continue;
        wanted[choice->kind] += choice->all ? there : choice->count;
        if (there < wanted[choice->kind])
            return PREDICT_TOO_FEW;
        if (left < wanted[choice->kind])
            return PREDICT_TAKEN;
    }
    return PREDICT_FITS;
}

/* Counting is proof where every request has one way to be met, no selector fails and nothing that
 * the scheduler would stop at comes before. */
static bool counting_is_proof(const struct search *s)
{
    for (size_t r = 0; r < s->claim->request_count; r++) {
        const struct predict_choice *choice = &s->claim->requests[r].choices[0];
        if (choice->subrequest || choice->all || s->claim->kinds[choice->kind].failing ||
            (choice->capacity && !s->view->inventory->rules.whole_capacity))
            return false;
    }
    return true;
}

static bool any_broken(const struct predict_view *view)
{
    for (size_t p = 0; p < view->pool_count; p++)
        if (view->pools[p].broken)
            return true;
    return false;
}

static enum predict_fit explain_no_fit(const struct search *s, enum predict_fit counted)
{
    if (counted != PREDICT_FITS)
        return counted;
    if (any_broken(s->view))
        return PREDICT_BROKEN;
    return s->no_room && !s->no_match ? PREDICT_USED_UP : PREDICT_NO_MATCH;
}

static void copy_found(const struct search *s, struct predict_found *found)
{
    found->count = s->picked_count;
    for (size_t i = 0; i < s->picked_count; i++) {
        found->results[i].request = s->picked[i].request;
        found->results[i].choice = s->picked[i].choice;
        found->results[i].device = s->view->candidates[s->picked[i].candidate].device;
    }
}

static int search_node(struct search *s, struct predict_found *ret_found, size_t *ret_request)
{
    enum step step = prepare_requests(s);
    if (step == STEP_STOP || step == STEP_ERROR)
        return step == STEP_STOP ? PREDICT_STOPS : -s->err->code;
    enum predict_fit counted = count_devices(s, ret_request);
    if (counted != PREDICT_FITS && counting_is_proof(s))
        return any_broken(s->view) ? PREDICT_BROKEN : counted;
    step = next_request(s, 0);
    switch (step) {
    case STEP_DONE:
        copy_found(s, ret_found);
        return PREDICT_FITS;
    case STEP_TOO_MANY:
        give_up(s, s->claim->requests[0].name, "every alternative needs more than 32 devices");
        return PREDICT_STOPS;
    case STEP_STOP:
        return PREDICT_STOPS;
    case STEP_TOO_HARD:
        return PREDICT_TOO_HARD;
    case STEP_ERROR:
        return -s->err->code;
    default:
        return explain_no_fit(s, counted);
    }
}

int predict_search(const struct predict_claim *claim, struct predict_view *view,
                   struct predict_found *ret_found, size_t *ret_request, size_t *ret_steps,
                   struct drarun_error *err)
{
    struct search *s = calloc(1, sizeof *s);
    int rc = -ENOMEM;
    *ret_request = 0;
    *ret_steps = 0;
    if (s)
        s->used = calloc(view->count + 1, 1);
    if (s && s->used) {
        s->claim = claim;
        s->view = view;
        s->err = err;
        rc = search_node(s, ret_found, ret_request);
        *ret_steps = s->steps;
    } else {
        error_set(err, ENOMEM, "out of memory");
    }
    for (size_t r = 0; s && r < claim->request_count; r++)
        for (size_t c = 0; c < claim->requests[r].choice_count; c++)
            free(s->all[r][c]);
    if (s) {
        free(s->used);
        free(s->taking.list);
    }
    free(s);
    return rc;
}
