/* SPDX-License-Identifier: Apache-2.0 */
/* What predict.c (nodes and workers), predict_request.c (the claim), predict_admit.c (selectors)
 * and predict_search.c (one claim on one node) share. */
#ifndef DRARUN_JOBS_PREDICT_PRIVATE_H
#define DRARUN_JOBS_PREDICT_PRIVATE_H

#include <stdbool.h>
#include "jobs/predict.h"

#define PREDICT_REQUESTS_MAX 32u    /* of a claim: DeviceRequestsMaxSize */
#define PREDICT_RESULTS_MAX 32u     /* AllocationResultsMaxSize */
#define PREDICT_ALTERNATIVES_MAX 8u /* FirstAvailableDeviceRequestMaxSize */
#define PREDICT_CONSTRAINTS_MAX 32u /* DeviceConstraintsMaxSize */

/* What a class and selectors admit; requests with the same ones share it. */
struct predict_kind {
    const char *class;
    const json_t *selectors; /* array, or NULL */
    const json_t *tolerations;
    uint8_t *admits; /* by index into slices->devices */
    struct predict_need need;
};

/* One way to meet a request. */
struct predict_choice {
    const char *subrequest; /* of a firstAvailable; NULL otherwise */
    size_t kind;
    uint32_t count;
    bool all;
};

struct predict_request {
    const char *name;
    struct predict_choice choices[PREDICT_ALTERNATIVES_MAX];
    size_t choice_count;
    uint32_t constraints; /* bits: those that name this request */
};

struct predict_claim {
    struct predict_request requests[PREDICT_REQUESTS_MAX];
    size_t request_count;
    const char *attributes[PREDICT_CONSTRAINTS_MAX]; /* matchAttribute of each constraint */
    size_t constraint_count;
    struct predict_kind kinds[PREDICT_REQUESTS_MAX * PREDICT_ALTERNATIVES_MAX];
    size_t kind_count;
};

/* predict_request.c */
int predict_claim_read(const json_t *claim, struct predict_claim *ret_claim,
                       struct drarun_error *err);
void predict_claim_done(struct predict_claim *claim);

/* predict_admit.c: fills admits and need of every kind. */
int predict_admit(struct predict_claim *claim, const struct slices *slices, const json_t *classes,
                  struct drarun_error *err);

/* predict_search.c */
struct predict_found {
    size_t count;
    struct {
        size_t request, choice, device; /* device: index into slices->devices */
    } results[PREDICT_RESULTS_MAX];
};

enum predict_fit {
    PREDICT_FITS = 1,
    PREDICT_TOO_FEW,  /* not enough devices that are admitted */
    PREDICT_TAKEN,    /* enough, but earlier workers have them */
    PREDICT_NO_MATCH, /* enough and free, but no choice of them meets the constraints */
    PREDICT_TOO_HARD, /* gave up on finding that out */
};

/* The claim on the devices [first, first + count), of which those marked in taken (by index into
 * slices->devices) are given away. *ret_request: the request that failed, for TOO_FEW and TAKEN. */
enum predict_fit predict_search(const struct predict_claim *claim, const struct slices *slices,
                                size_t first, size_t count, const uint8_t *taken,
                                struct predict_found *ret_found, size_t *ret_request);

#endif
