/* SPDX-License-Identifier: Apache-2.0 */
/* CEL as Kubernetes' Dynamic Resource Allocation uses it in selectors: an expression over one
 * device that is true, false or an error. docs/design/012-cel.md says what is supported and how it
 * is held against the API server's own code.
 *
 * Compile once, evaluate often. A compiled program and a device are read-only: threads may share
 * them. Errors have the kind SPEC and name line and column of the expression. */
#ifndef DRARUN_CEL_CEL_H
#define DRARUN_CEL_CEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/cleanup.h"

enum {
    CEL_MAX_LENGTH = 10 << 10, /* bytes of an expression: CELSelectorExpressionMaxLength */
    CEL_MAX_COST = 1000000,    /* of one evaluation: CELSelectorExpressionMaxCost */
};

struct cel_program;
struct cel_device;

/* NULL and the error when the expression does not compile in the API server, or when it uses
 * something that we have not ("not supported: ..."). The program keeps no pointer to
 * text. */
struct cel_program *cel_compile(const char *text, struct drarun_error *err);
void cel_program_free(struct cel_program *program);
/* What one evaluation costs at worst, as the API server estimates it; UINT64_MAX: no bound. */
uint64_t cel_program_estimate(const struct cel_program *program);
/* Whether that is within CEL_MAX_COST: -E2BIG when the API server would call it too complex. */
int cel_program_admit(const struct cel_program *program, struct drarun_error *err);
/* Whether the API server lets an expression into a claim or class. -EINVAL: it does not compile;
 * -E2BIG: it is too long or too complex; -EOPNOTSUPP: it uses what we have not, so that nothing can
 * be said. */
int cel_admit(const char *text, struct drarun_error *err);
DEFINE_CLEANUP(struct cel_program, cel_program_free)

/* json: an entry of spec.devices of a ResourceSlice, of v1 or v1beta2, or of v1beta1, where all
 * lies under "basic". Attributes without a domain belong to the driver's. Nothing is kept of the
 * JSON. A version that is none makes each evaluation an error, as upstream. */
struct cel_device *cel_device_new(const char *driver, const json_t *json, struct drarun_error *err);
void cel_device_free(struct cel_device *device);
DEFINE_CLEANUP(struct cel_device, cel_device_free)

/* 0 and whether the device matches; -E2BIG: over the cost limit; -EINVAL: an error such as an
 * attribute that the device has not, which makes the scheduler give up on the claim; -ENOMEM. */
int cel_eval_device(const struct cel_program *program, const struct cel_device *device,
                    bool *ret_match, struct drarun_error *err);

/* The same, with what it cost. */
int cel_eval_cost(const struct cel_program *program, const struct cel_device *device,
                  bool *ret_match, uint64_t *ret_cost, struct drarun_error *err);

/* The terms that "&&" joins at the top, in their order: which of them ruled a device out? An
 * expression without "&&" is one term. The text is the source's, borrowed from the program. */
size_t cel_term_count(const struct cel_program *program);
const char *cel_term_text(const struct cel_program *program, size_t term);
int cel_eval_term(const struct cel_program *program, size_t term, const struct cel_device *device,
                  bool *ret_match, struct drarun_error *err);

#endif
