/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/problem.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"
#include "lib/kube/call.h"

const char *problem_reason(const json_t *object)
{
    return strcmp(value_text_or(object, "kind", ""), "Status") == 0
               ? value_text_or(object, "reason", "")
               : "";
}

static int code_of(int status, const char *reason)
{
    static const struct {
        int status, code;
    } table[] = {{400, EINVAL}, {401, EACCES}, {403, EACCES}, {404, ENOENT},
                 {409, EBUSY},  {410, ESTALE}, {415, EINVAL}, {422, EINVAL},
                 {429, EAGAIN}, {504, EAGAIN}, {413, EFBIG}};
    if (status == 409 && strcmp(reason, "AlreadyExists") == 0)
        return EEXIST;
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].status == status)
            return table[i].code;
    return status < 500 || status == 501 || status == 505 ? ENOTSUP : EIO;
}

/* The server's words name user, verb, resource and namespace. */
bool problem_is_by_role(int status, const json_t *object)
{
    const char *message = value_text_or(object, "message", "");
    const char *verb = status == 403 ? strstr(message, " cannot ") : NULL;
    return verb && strstr(verb, " resource \"");
}

int problem_from_status(int status, const json_t *object, struct drarun_error *err)
{
    const char *message = value_text_or(object, "message", "");
    const char *cure = status == 401 ? "the server does not know us by these credentials" : "";
    if (*message && strcmp(message, "Unauthorized") != 0)
        return error_kind(err, DRARUN_ERR_CLUSTER, code_of(status, problem_reason(object)),
                          "%d: %s%s", status, message,
                          problem_is_by_role(status, object) ? ": a Role must allow it" : "");
    return error_kind(err, DRARUN_ERR_CLUSTER, code_of(status, problem_reason(object)), "%d%s%s",
                      status, *cure ? ": " : "", cure);
}

static int code_of_curl(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return EHOSTUNREACH;
    case CURLE_COULDNT_CONNECT:
        return ECONNREFUSED;
    case CURLE_OPERATION_TIMEDOUT:
        return ETIMEDOUT;
    case CURLE_OUT_OF_MEMORY:
        return ENOMEM;
    case CURLE_FILESIZE_EXCEEDED:
        return EFBIG;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        return EKEYREJECTED;
    default:
        return ECONNRESET;
    }
}

bool problem_is_hopeless(CURLcode code)
{
    int is = code_of_curl(code);
    return is == EKEYREJECTED || is == EFBIG || code == CURLE_URL_MALFORMAT ||
           code == CURLE_UNSUPPORTED_PROTOCOL;
}

int problem_from_curl(CURLcode code, const char *text, const char *server, struct drarun_error *err)
{
    enum drarun_errkind kind =
        problem_is_hopeless(code) ? DRARUN_ERR_CLUSTER : DRARUN_ERR_INFRASTRUCTURE;
    return error_kind(err, kind, code_of_curl(code), "%s: %s", server, text);
}

bool kube_is_away(const struct drarun_error *err)
{
    return err->kind == DRARUN_ERR_INFRASTRUCTURE &&
           (err->code == EHOSTUNREACH || err->code == ECONNREFUSED || err->code == ECONNRESET ||
            err->code == ETIMEDOUT);
}

bool kube_may_answer_later(const struct drarun_error *err)
{
    return kube_is_away(err) ||
           (err->kind == DRARUN_ERR_CLUSTER && (err->code == EIO || err->code == EAGAIN));
}
