/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/problem.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/plain.h"
#include "lib/doc/value.h"
#include "lib/kube/call.h"

#define WORDS_MAX 160 /* bytes of a body that is no Status */

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

/* The first line of a text, and of a page in HTML, which starts with a tag, its first words, mostly
 * its title. Returns its length; 0: none. */
static size_t first_words(const char *body, size_t length, const char **ret_words)
{
    bool is_page = false, in_tag = false;
    size_t from = 0, end;
    for (; from < length && (in_tag || isspace((unsigned char)body[from]) || body[from] == '<');
         from++) {
        is_page |= body[from] == '<';
        in_tag = body[from] == '<' || (in_tag && body[from] != '>');
    }
    for (end = from; end < length && body[end] != '\n' && !(is_page && body[end] == '<');)
        end++;
    while (end > from && isspace((unsigned char)body[end - 1]))
        end--;
    *ret_words = body + from;
    return end - from;
}

/* They are a stranger's: plain, and few. "502 Bad Gateway" says again what stands before it. */
static void add_words(int status, const char *body, size_t length, struct drarun_error *err)
{
    const char *words = NULL;
    char text[WORDS_MAX + 1], number[16];
    size_t used = strlen(err->text), size = first_words(body, length, &words);
    int digits = snprintf(number, sizeof number, "%d ", status);
    if (size > (size_t)digits && memcmp(words, number, (size_t)digits) == 0) {
        words += digits;
        size -= (size_t)digits;
    }
    size = utf8_cut(words, size, WORDS_MAX);
    memcpy(text, words, size);
    text[size] = '\0';
    plain_text(text, size);
    if (size > 0 && strcmp(text, "Unauthorized") != 0)
        snprintf(err->text + used, sizeof err->text - used, ": %s", text);
}

int problem_from_answer(int status, const char *body, size_t length, const json_t *object,
                        struct drarun_error *err)
{
    int rc = problem_from_status(status, object, err);
    if (err && length > 0 && strcmp(value_text_or(object, "kind", ""), "Status") != 0)
        add_words(status, body, length, err);
    return rc;
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
