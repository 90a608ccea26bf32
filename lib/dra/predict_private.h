/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the prediction share: predict.c (nodes and workers), request.c (the claim),
 * admit.c (selectors), inventory.c (devices, pools and nodes), taken.c (claims and taint rules that
 * are there already), view.c (what one node sees), counter.c and capacity.c (shares of devices),
 * constraint.c, search.c (one claim on one node), shape.c (nodes that are alike), and rules.c (what
 * differs between versions). */
#ifndef DRARUN_DRA_PREDICT_PRIVATE_H
#define DRARUN_DRA_PREDICT_PRIVATE_H

#include <stdbool.h>
#include "lib/dra/predict.h"
#include "lib/base/strlist.h"
#include "lib/cel/quantity.h"

#define PREDICT_REQUESTS_MAX 32u    /* of a claim: DeviceRequestsMaxSize */
#define PREDICT_RESULTS_MAX 32u     /* AllocationResultsMaxSize */
#define PREDICT_ALTERNATIVES_MAX 8u /* FirstAvailableDeviceRequestMaxSize */
#define PREDICT_CONSTRAINTS_MAX 32u /* DeviceConstraintsMaxSize */

/* What a class and selectors say of a device. */
enum {
    PREDICT_ADMITTED = 1, /* selectors match */
    PREDICT_FAILS = 2,    /* a selector fails: the scheduler gives up when it gets there */
    PREDICT_TAINTED = 4,  /* and a taint is not tolerated */
};

struct predict_filters;

/* Requests with the same class, selectors and tolerations share one. */
struct predict_kind {
    const char *class;
    const json_t *selectors; /* array, or NULL */
    const json_t *tolerations;
    uint8_t *admits; /* by index into the inventory's devices */
    size_t failing;  /* devices with PREDICT_FAILS */
    struct predict_filters *filters;
    struct predict_need need;
};

/* One way to meet a request. */
struct predict_choice {
    const char *subrequest; /* of a firstAvailable; NULL otherwise */
    size_t kind;
    uint32_t count;
    bool all, admin;
    const json_t *capacity; /* capacity.requests: name -> quantity; NULL */
    uint32_t constraints;   /* bits: those that apply */
};

struct predict_request {
    const char *name;
    const char *words; /* for people; NULL: its name */
    struct predict_choice choices[PREDICT_ALTERNATIVES_MAX];
    size_t choice_count;
};

struct predict_constraint {
    const char *attribute;
    bool distinct; /* distinctAttribute; matchAttribute otherwise */
};

struct predict_claim {
    struct predict_request requests[PREDICT_REQUESTS_MAX];
    size_t request_count;
    struct predict_constraint constraints[PREDICT_CONSTRAINTS_MAX];
    size_t constraint_count;
    struct predict_kind kinds[PREDICT_REQUESTS_MAX * PREDICT_ALTERNATIVES_MAX];
    size_t kind_count;
};

/* ---- rules.c ---- */
/* What the allocator of a version does that the newest does not (docs/design/014-prediction.md). */
struct predict_rules {
    bool distinct_from_latest; /* distinctAttribute sees the latest device of each request alone */
    bool losses_stay;    /* matchAttribute: values that a device ruled out do not come back when
                          * the search gives that device up */
    bool all_needs_room; /* allocationMode All leaves out shared devices that are full */
    bool counters_everywhere; /* slices with shared counters matter to every node */
    bool use_by_capacity;     /* a shared device is in use where capacity of it is; where not, its
                               * counters are charged again */
    bool
        counters_by_name; /* pools of one name have their counters in common, of whatever drivers */
    bool whole_capacity;  /* capacity is rounded to whole numbers and written in BinarySI */
};
/* 0: the newest that is known. */
struct predict_rules predict_rules_of(unsigned minor);

/* ---- request.c ---- */
int predict_claim_read(const json_t *claim, struct predict_claim *ret_claim,
                       struct drarun_error *err);
void predict_claim_done(struct predict_claim *claim);

/* ---- inventory.c ---- */
enum { /* how an allocated claim holds a device */
       PREDICT_TAKEN_WHOLE = 1,
       PREDICT_TAKEN_SHARE = 2,
       PREDICT_TAKEN_CAPACITY = 4, /* a share that says how much of which capacity */
};

struct predict_device {
    struct slice_device slice;
    const json_t *body;
    bool current;           /* of its pool's newest generation */
    bool multiple;          /* allowMultipleAllocations */
    bool binds;             /* has bindingConditions, so that its pool comes after those without */
    bool policy;            /* some of its capacity has a requestPolicy */
    const json_t *consumes; /* consumesCounters, NULL where there is nothing in it */
    uint8_t taken;
    json_t *rules; /* taints that DeviceTaintRules add, owned; NULL */
};

/* Capacity of a device that allocated claims consume. */
struct predict_share {
    size_t device; /* index into the inventory's devices, of the view's candidates in a search */
    const char *capacity;
    struct cel_quantity quantity;
};

struct predict_shares {
    struct predict_share *list;
    size_t count, cap;
};

struct predict_pool {
    size_t first, end;    /* of its slices in slices->parts */
    bool spread;          /* a slice with devices is for several nodes */
    bool counters;        /* a slice has shared counters */
    bool counters_spread; /* and is for several nodes */
    bool consumes;        /* a device consumes counters */
};

struct predict_local { /* a pool with a slice of a node's own */
    const char *node;
    size_t pool;
};

enum {
    PREDICT_PART_COUNTERS = 1,   /* has shared counters, and so no devices that count */
    PREDICT_PART_PER_DEVICE = 2, /* its devices choose nodes each for itself */
};

struct predict_inventory {
    const struct slices *slices;
    struct predict_rules rules;
    const json_t *node_labels;      /* name -> labels, or NULL */
    bool classes_known;             /* as in struct predict_cluster */
    struct predict_device *devices; /* in the order of the slices and of each */
    size_t device_count;
    size_t *part_first;         /* by part: its first device; one more at the end */
    uint8_t *part_is;           /* by part: PREDICT_PART_... */
    struct predict_pool *pools; /* by driver and name, as the scheduler goes through them */
    size_t pool_count;
    struct predict_local *locals; /* by node, then pool */
    size_t local_count;
    const char **nodes; /* by name */
    size_t node_count;
    struct predict_shares shares; /* by device */
    bool claims;                  /* there were claims before the job */
    bool binding;                 /* any device binds */
    struct strlist notes;         /* what the prediction leaves open */
};

int predict_inventory_build(const struct predict_cluster *cluster,
                            struct predict_inventory *ret_inventory, struct drarun_error *err);
void predict_inventory_done(struct predict_inventory *inventory);
/* Adds a note once. */
void predict_note(struct predict_inventory *inventory, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int predict_shares_add(struct predict_shares *shares, size_t device, const char *capacity,
                       const struct cel_quantity *quantity);

/* ---- taken.c ---- */
/* Marks what the allocated claims hold, and what the rules taint. */
int predict_take_claims(struct predict_inventory *inventory, const json_t *claims,
                        struct drarun_error *err);
int predict_apply_rules(struct predict_inventory *inventory, const json_t *rules,
                        struct drarun_error *err);
/* As a claim with these status.allocation.devices.results would. */
int predict_take_results(struct predict_inventory *inventory, const json_t *results,
                         struct drarun_error *err);

/* ---- admit.c: fills admits and need of every kind ---- */
int predict_admit(struct predict_claim *claim, struct predict_inventory *inventory,
                  const json_t *classes, struct drarun_error *err);
/* Why a selector fails on a device that has PREDICT_FAILS. */
int predict_admit_failure(struct predict_kind *kind, const struct predict_device *device,
                          struct drarun_error *err);
void predict_filters_free(struct predict_filters *filters);

/* ---- view.c ---- */
struct predict_candidate {
    size_t device;               /* index into the inventory's devices */
    bool here;                   /* false: its slice chooses nodes per device, and not this one */
    size_t first_use, use_count; /* of counters */
};

struct predict_counter {
    size_t pool; /* of the view */
    const char *set, *name;
    struct cel_quantity available, used;
};

struct predict_use {
    size_t counter;
    struct cel_quantity quantity;
};

struct predict_view_pool {
    size_t pool;        /* of the inventory */
    const char *broken; /* why none of its devices may be given; NULL */
    int64_t generation;
    bool all; /* all slices of the generation are looked at for counters */
    size_t first_counter, counter_count;
    bool asked;   /* its counters were asked for, and owner is known */
    size_t owner; /* the pool of the view whose counters its devices take */
};

/* What one node sees: its pools, and of those that are whole the devices in their order. */
struct predict_view {
    struct predict_inventory *inventory;
    const char *node;
    struct predict_view_pool *pools;
    size_t pool_count;
    struct predict_candidate *candidates;
    size_t count;
    struct predict_counter *counters;
    size_t counter_count;
    struct predict_use *uses;
    size_t use_count;
    size_t candidate_cap, counter_cap, use_cap, pool_cap;
    size_t *shared; /* pools of the inventory that every node looks at */
    size_t shared_count;
};

/* Reuses the memory of an earlier view of the same inventory; start with all zero. */
int predict_view_build(struct predict_view *view, struct predict_inventory *inventory,
                       const char *node, struct drarun_error *err);
void predict_view_done(struct predict_view *view);

/* ---- counter.c ---- */
/* Room for a candidate's counters: takes it and returns 1, or returns 0. -ERANGE: numbers that are
 * too long to add. */
int predict_counters_take(struct predict_view *view, size_t candidate);
void predict_counters_return(struct predict_view *view, size_t candidate);
/* Fills the counters of a pool of the view whose sets are in the given slices, less what allocated
 * devices use, and the uses of its candidates from first_candidate. */
int predict_counters_build(struct predict_view *view, struct predict_view_pool *pool,
                           const size_t *parts, size_t part_count, size_t first_candidate,
                           struct drarun_error *err);

/* ---- capacity.c ---- */
/* Whether what a request asks of a device's capacity fits beside the shares that are taken of it:
 * 1 or 0, or -errno. With consumed it tells what would be: name -> quantity, the caller's. */
int predict_capacity_fits(const struct predict_rules *rules, const struct predict_device *device,
                          const json_t *requests, const struct predict_shares *taken,
                          size_t taken_device, const struct predict_shares *taking,
                          size_t taking_device, struct drarun_error *err);
int predict_capacity_consumed(const struct predict_rules *rules,
                              const struct predict_device *device, const json_t *requests,
                              json_t **ret_consumed, struct drarun_error *err);

/* ---- constraint.c ---- */
/* The state of one constraint while devices are added and taken back, last one first. */
struct predict_constraint_state {
    size_t devices;
    const json_t *attributes[PREDICT_RESULTS_MAX]; /* by device, in the order of adding */
    uint64_t common[PREDICT_RESULTS_MAX]; /* matchAttribute: elements of the first that the devices
                                           * up to this one share; losses_stay: [0] alone */
    const json_t *of_request[PREDICT_REQUESTS_MAX]; /* distinct_from_latest: by request */
};
bool predict_constraint_add(const struct predict_rules *rules,
                            const struct predict_constraint *constraint,
                            struct predict_constraint_state *state, size_t request,
                            const struct slice_device *device);
void predict_constraint_remove(const struct predict_constraint *constraint,
                               struct predict_constraint_state *state, size_t request);
/* What a constraint looks at of a device; NULL: the device has none. */
const json_t *predict_constraint_attribute(const struct predict_constraint *constraint,
                                           const struct slice_device *device);

/* ---- search.c ---- */
struct predict_found {
    size_t count;
    struct {
        size_t request, choice, device; /* device: index into the inventory's devices */
    } results[PREDICT_RESULTS_MAX];
};

enum predict_fit {
    PREDICT_FITS = 1,
    PREDICT_TOO_FEW,  /* not enough devices that are admitted */
    PREDICT_TAKEN,    /* enough, but claims or earlier workers have them */
    PREDICT_NO_MATCH, /* enough and free, but no choice of them meets the constraints */
    PREDICT_USED_UP,  /* enough, but their shared counters or capacity are used up */
    PREDICT_BROKEN,   /* and a pool is incomplete or invalid */
    PREDICT_TOO_HARD, /* gave up on finding that out */
    PREDICT_STOPS,    /* the scheduler gives up on the claim; err says why */
};

/* The claim on a node, as allocator.Allocate has it. *ret_request: the request that failed, for
 * TOO_FEW and TAKEN; *ret_steps: how many devices were tried. -ENOMEM and -ERANGE are errors; err
 * is filled for PREDICT_STOPS too. */
int predict_search(const struct predict_claim *claim, struct predict_view *view,
                   struct predict_found *ret_found, size_t *ret_request, size_t *ret_steps,
                   struct drarun_error *err);

/* ---- shape.c ---- */
#define PREDICT_SHAPES_MAX 16u

struct predict_shape {
    char *text; /* bytes, owned */
    size_t length;
    enum predict_fit fit;
    size_t request;
};

/* Of one claim: what nodes without a solution look like. */
struct predict_shapes {
    struct predict_shape list[PREDICT_SHAPES_MAX];
    size_t count;
};

/* What was found of a node that is like this one; 0: none is known. */
enum predict_fit predict_shapes_find(const struct predict_shapes *shapes,
                                     const struct predict_claim *claim,
                                     const struct predict_view *view, size_t *ret_request);
/* Without memory, room, or a shape it does nothing. */
void predict_shapes_add(struct predict_shapes *shapes, const struct predict_claim *claim,
                        const struct predict_view *view, enum predict_fit fit, size_t request);
void predict_shapes_done(struct predict_shapes *shapes);

#endif
