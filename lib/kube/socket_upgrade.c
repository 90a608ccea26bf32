/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/socket_upgrade.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "lib/base/error.h"
#include "lib/kube/base64.h"

#define ACCEPT_SUFFIX "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" /* RFC 6455 §1.3 */

static int encode(const void *data, size_t length, char *text, size_t size)
{
    struct buf out = BUF_INIT;
    base64_encode(data, length, &out);
    bool ok = !out.failed && out.len < size;
    if (ok)
        memcpy(text, out.data, out.len + 1);
    buf_done(&out);
    return ok ? 0 : -ENOMEM;
}

static const char *host_header(const struct curl_slist *headers)
{
    for (; headers; headers = headers->next)
        if (strncasecmp(headers->data, "Host: ", 6) == 0)
            return headers->data + 6;
    return NULL;
}

static bool is_passed_on(const char *line)
{
    const char *colon = strchr(line, ':');
    if (!colon || colon[1 + strspn(colon + 1, " ")] == '\0')
        return false;
    return strncasecmp(line, "Accept:", 7) != 0 && strncasecmp(line, "Host:", 5) != 0;
}

int upgrade_request(struct upgrade *upgrade, const char *url, const char *target,
                    const char *protocols, const struct curl_slist *headers, struct buf *out,
                    struct drarun_error *err)
{
    unsigned char nonce[16];
    const char *scheme = strstr(url, "://"), *host = scheme ? scheme + 3 : url;
    int host_length = (int)strcspn(host, "/");
    const char *named = host_header(headers);
    if (getrandom(nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        return error_set(err, errno, "getrandom: %s", strerror(errno));
    if (encode(nonce, sizeof nonce, upgrade->key, sizeof upgrade->key) < 0)
        return error_set(err, ENOMEM, "out of memory");
    buf_printf(out, "GET %s%s HTTP/1.1\r\n", host + host_length, target);
    if (named)
        buf_printf(out, "Host: %s\r\n", named);
    else
        buf_printf(out, "Host: %.*s\r\n", host_length, host);
    buf_printf(out,
               "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: %s\r\n"
               "User-Agent: drarun/" DRARUN_VERSION "\r\n",
               upgrade->key, protocols);
    for (; headers; headers = headers->next)
        if (is_passed_on(headers->data))
            buf_printf(out, "%s\r\n", headers->data);
    buf_add_str(out, "\r\n");
    return out->failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* ---- the answer ---- */

/* The value of a header in a head; length 0 when it is not there. */
static const char *find_header(const char *head, size_t length, const char *name,
                               size_t *ret_length)
{
    size_t name_length = strlen(name);
    const char *end = head + length;
    for (const char *line = head; line < end;) {
        const char *stop = memmem(line, (size_t)(end - line), "\r\n", 2);
        size_t whole = stop ? (size_t)(stop - line) : (size_t)(end - line);
        if (whole > name_length && line[name_length] == ':' &&
            strncasecmp(line, name, name_length) == 0) {
            const char *value = line + name_length + 1;
            while (value < line + whole && *value == ' ')
                value++;
            *ret_length = (size_t)(line + whole - value);
            return value;
        }
        line += whole + 2;
    }
    *ret_length = 0;
    return "";
}

static bool accepts(const struct upgrade *upgrade, const char *value, size_t length)
{
    char text[sizeof upgrade->key + sizeof ACCEPT_SUFFIX], wanted[32];
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_length = 0;
    int n = snprintf(text, sizeof text, "%s" ACCEPT_SUFFIX, upgrade->key);
    return EVP_Digest(text, (size_t)n, digest, &digest_length, EVP_sha1(), NULL) == 1 &&
           encode(digest, digest_length, wanted, sizeof wanted) == 0 && strlen(wanted) == length &&
           memcmp(wanted, value, length) == 0;
}

static void read_extent(const char *head, struct upgrade_answer *answer)
{
    size_t length = 0;
    const char *value = find_header(head, answer->length, "Transfer-Encoding", &length);
    answer->chunked = length >= 7 && strncasecmp(value + length - 7, "chunked", 7) == 0;
    value = find_header(head, answer->length, "Content-Length", &length);
    answer->announced = -1;
    if (length > 0 && length < 10 && strspn(value, "0123456789") == length)
        answer->announced = strtol(value, NULL, 10); /* the head's end stops it */
}

int upgrade_read(const struct upgrade *upgrade, const char *text, size_t length,
                 struct upgrade_answer *ret_answer, struct drarun_error *err)
{
    struct upgrade_answer answer = {0};
    const char *end = length ? memmem(text, length, "\r\n\r\n", 4) : NULL;
    size_t value_length = 0;
    if (!end && length < UPGRADE_HEAD_MAX)
        return 0;
    if (!end || length < 12 || strncmp(text, "HTTP/1.", 7) != 0 || text[8] != ' ' ||
        strspn(text + 9, "0123456789") != 3)
        return error_kind(err, DRARUN_ERR_CLUSTER, EPROTO, "the answer is no HTTP/1.1");
    answer.length = (size_t)(end - text) + 4;
    answer.status = (text[9] - '0') * 100 + (text[10] - '0') * 10 + (text[11] - '0');
    const char *value = find_header(text, answer.length, "Sec-WebSocket-Accept", &value_length);
    if (answer.status == 101 && !accepts(upgrade, value, value_length))
        return error_kind(err, DRARUN_ERR_CLUSTER, EPROTO,
                          "the answer belongs to another WebSocket: is a proxy in between?");
    value = find_header(text, answer.length, "Sec-WebSocket-Protocol", &value_length);
    if (value_length < sizeof answer.protocol)
        memcpy(answer.protocol, value, value_length);
    read_extent(text, &answer);
    *ret_answer = answer;
    return 1;
}

/* RFC 9112 §7.1, without trailers. */
static bool read_chunks(const char *text, size_t length, struct buf *body)
{
    for (;;) {
        const char *stop = length ? memmem(text, length, "\r\n", 2) : NULL;
        if (!stop)
            return false;
        size_t digits = strspn(text, "0123456789abcdefABCDEF");
        size_t head = (size_t)(stop - text) + 2;
        unsigned long size = strtoul(text, NULL, 16);
        if (digits == 0 || digits > 8 || size == 0)
            return true; /* its end, or nothing that could be followed */
        text += head;
        length -= head;
        buf_add(body, text, size < length ? size : length);
        if (length < size + 2)
            return false;
        text += size + 2;
        length -= size + 2;
    }
}

bool upgrade_read_body(const struct upgrade_answer *answer, const char *text, size_t length,
                       struct buf *body)
{
    if (answer->chunked)
        return read_chunks(text, length, body);
    bool whole = answer->announced >= 0 && length >= (size_t)answer->announced;
    if (length > 0)
        buf_add(body, text, whole ? (size_t)answer->announced : length);
    return whole;
}
