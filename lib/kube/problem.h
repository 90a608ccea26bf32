/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP statuses, Status objects and libcurl's codes as errors: the one file that converts them.
 * Private to lib/kube; pure. */
#ifndef DRARUN_KUBE_PROBLEM_H
#define DRARUN_KUBE_PROBLEM_H

#include <jansson.h>
#include "drarun/error.h"
#include "lib/kube/transport.h"

/* A Status object of that status, which is no 2xx; NULL: none. */
int problem_from_status(int status, const json_t *object, struct drarun_error *err);
/* An answer whose status is no 2xx. object: what its body (length bytes, may be NULL) is as JSON,
 * or NULL. Where that is no Status, as of a proxy, the error has the first words of the body. */
int problem_from_answer(int status, const char *body, size_t length, const json_t *object,
                        struct drarun_error *err);
/* No whole answer; server: whom it was asked of. */
int problem_from_curl(CURLcode code, const char *text, const char *server,
                      struct drarun_error *err);
/* Trying again would give the same. */
bool problem_is_hopeless(CURLcode code);
/* The server says which verb no role allows: a 403, and not one of quota or admission. */
bool problem_is_by_role(int status, const json_t *object);
/* "reason" of a Status object; "" when it is none. Borrowed from object. */
const char *problem_reason(const json_t *object);

#endif
