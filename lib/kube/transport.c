/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/transport.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/need_memory.h"
#include "lib/kube/client.h"
#include "lib/kube/warning.h"

#define RENEW_MS 60000    /* between two connections that are left: the server may just be slow */
#define LATER_MAX_S 86400 /* of Retry-After, which is a number of any size */

/* Connections, and what goes over them. */
struct pool {
    TAILQ_ENTRY(pool) link; /* in transport.retired */
    struct transport *transport;
    CURLM *multi;
    struct event *timer; /* libcurl's */
    TAILQ_HEAD(, exchange) exchanges;
    int64_t heard_ms; /* when something came last; 0: never */
};

struct transport {
    struct event_base *base;
    /* HTTP/2, and HTTP/1.1 by choice: beside one of these libcurl stops sharing the others. */
    struct pool *shared, *alone;
    TAILQ_HEAD(, pool) retired; /* take no new exchanges, and end with those that they have */
    int64_t renewed_ms;         /* `shared`; 0: never */
    struct event *deliver; /* made active when something waits in `ready` from outside libcurl */
    TAILQ_HEAD(, exchange) ready; /* with data or an end to hand on */
    uint64_t connections;
};

struct exchange {
    TAILQ_ENTRY(exchange) link;    /* in transport.ready */
    TAILQ_ENTRY(exchange) in_pool; /* in pool.exchanges */
    struct transport *transport;
    struct pool *pool;
    struct exchange_events events;
    void *arg;
    CURL *easy;
    struct curl_slist *connect_to;
    struct buf body; /* kept, or not yet handed on */
    size_t answer_max;
    bool stream, connect_only, is_ready, paused, has_head, ended, too_large;
    bool sent;       /* the request has gone out, or part of it.. */
    int64_t sent_ms; /* ..at this time */
    bool again;      /* libcurl would have sent it a second time */
    bool refused;    /* HTTP/2: the server said that it did not look at it */
    CURLcode code;
    char text[CURL_ERROR_SIZE];
};

static void set_ready(struct exchange *x)
{
    if (!x->is_ready)
        TAILQ_INSERT_TAIL(&x->transport->ready, x, link);
    x->is_ready = true;
}

static void unset_ready(struct exchange *x)
{
    if (x->is_ready)
        TAILQ_REMOVE(&x->transport->ready, x, link);
    x->is_ready = false;
}

static bool is_retired(const struct pool *pool)
{
    return pool != pool->transport->shared && pool != pool->transport->alone;
}

static void exchange_free(struct exchange *x)
{
    unset_ready(x);
    TAILQ_REMOVE(&x->pool->exchanges, x, in_pool);
    if (is_retired(x->pool) && TAILQ_EMPTY(&x->pool->exchanges))
        event_active(x->transport->deliver, 0, 0); /* which frees it */
    curl_multi_remove_handle(x->pool->multi, x->easy);
    curl_easy_cleanup(x->easy);
    curl_slist_free_all(x->connect_to);
    buf_done(&x->body);
    free(x);
}

static int64_t retry_after(CURL *easy)
{
    struct curl_header *header = NULL;
    curl_off_t seconds = 0;
    if (curl_easy_header(easy, "Retry-After", 0, CURLH_HEADER, -1, &header) != CURLHE_OK ||
        curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) != CURLE_OK)
        return -1;
    return (int64_t)(seconds < LATER_MAX_S ? seconds : LATER_MAX_S) * 1000;
}

static int64_t date(CURL *easy)
{
    struct curl_header *header = NULL;
    if (curl_easy_header(easy, "Date", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
        return 0;
    time_t seconds = curl_getdate(header->value, NULL);
    return seconds > 0 ? (int64_t)seconds * 1000 : 0;
}

static void add_warnings(CURL *easy, struct strlist *out)
{
    struct curl_header *header = NULL;
    for (size_t i = 0; curl_easy_header(easy, "Warning", i, CURLH_HEADER, -1, &header) == CURLHE_OK;
         i++)
        warning_add_texts(header->value, out);
}

static const char *text_of(struct exchange *x, CURLcode code)
{
    if (x->too_large)
        snprintf(x->text, sizeof x->text, "the answer is larger than %zu MiB", x->answer_max >> 20);
    else if (x->again)
        return "the connection was lost";
    return x->text[0] ? x->text : curl_easy_strerror(code);
}

/* ---- pools ---- */

static void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    if (pool->multi)
        curl_multi_cleanup(pool->multi);
    if (pool->timer)
        event_free(pool->timer);
    free(pool);
}

static void free_retired(struct transport *t)
{
    struct pool *pool = TAILQ_FIRST(&t->retired);
    while (pool) {
        struct pool *next = TAILQ_NEXT(pool, link);
        if (TAILQ_EMPTY(&pool->exchanges)) {
            TAILQ_REMOVE(&t->retired, pool, link);
            pool_free(pool);
        }
        pool = next;
    }
}

static struct pool *pool_new(struct transport *t);

/* Whether nothing at all has come since the request of an exchange that is out of time now. */
static bool is_silent(const struct exchange *x)
{
    const struct transport *t = x->transport;
    int64_t now = clock_ms();
    return x->code == CURLE_OPERATION_TIMEDOUT && x->pool == t->shared && x->sent &&
           x->pool->heard_ms <= x->sent_ms && now - x->sent_ms >= KUBE_UNHEARD_MS &&
           (!t->renewed_ms || now - t->renewed_ms >= RENEW_MS);
}

/* What lies before the server, or its kernel, may keep up a connection whose other side hangs or is
 * gone, and libcurl sends all requests over the one that it has: new ones get a new connection.
 * Streams, which would wait for the end of their time, begin again on that one. */
static void renew_shared(struct transport *t)
{
    struct pool *old = t->shared, *fresh = pool_new(t);
    struct exchange *x;
    if (!fresh)
        return;
    t->shared = fresh;
    t->renewed_ms = clock_ms();
    TAILQ_INSERT_TAIL(&t->retired, old, link);
    TAILQ_FOREACH (x, &old->exchanges, in_pool) {
        if (!x->stream || x->ended)
            continue;
        snprintf(x->text, sizeof x->text, "the server has been silent for %d s",
                 KUBE_UNHEARD_MS / 1000);
        x->code = CURLE_RECV_ERROR;
        x->ended = true;
        set_ready(x);
    }
}

/* ---- the end of an exchange ---- */

static void finish(struct exchange *x)
{
    long status = 0;
    if (is_silent(x))
        renew_shared(x->transport);
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    CURLcode code = x->too_large ? CURLE_FILESIZE_EXCEEDED : x->again ? CURLE_RECV_ERROR : x->code;
    if (status >= 300) /* the head says it all, also when a server that refuses us hangs up */
        code = CURLE_OK;
    CLEANUP(strlist_done) struct strlist warnings = STRLIST_INIT;
    add_warnings(x->easy, &warnings);
    struct exchange_result result = {.code = code,
                                     .text = text_of(x, code),
                                     .status = (int)status,
                                     .retry_after_ms = retry_after(x->easy),
                                     .date_ms = date(x->easy),
                                     .sent = x->sent,
                                     .body = &x->body,
                                     .warnings = &warnings};
    /* libcurl shall not look at what the owner lent it once done() is called */
    curl_multi_remove_handle(x->pool->multi, x->easy);
    x->events.done(&result, x->arg);
    exchange_free(x);
}

static bool has_success(CURL *easy)
{
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300;
}

/* Hands on what has come. Any callback may end any exchange, so that the list is begun again each
 * time; x itself is protected by having left it. */
static void deliver(struct transport *t)
{
    struct exchange *x;
    while ((x = TAILQ_FIRST(&t->ready))) {
        unset_ready(x);
        if (x->has_head) {
            x->has_head = false;
            set_ready(x); /* before the call: it may free x */
            x->events.head(x->arg);
        } else if (x->stream && x->body.len > 0 && has_success(x->easy)) {
            struct buf part = x->body;
            x->body = (struct buf)BUF_INIT;
            if (x->ended)
                set_ready(x);
            x->events.data(part.data, part.len, x->arg);
            buf_done(&part);
        } else if (x->ended && x->connect_only && x->code == CURLE_OK) {
            x->ended = false; /* libcurl finds the connection as long as the handle is its own */
            x->events.connected(x->arg);
        } else if (x->ended) {
            finish(x);
        }
    }
}

static void take_ended(const struct pool *pool)
{
    int left = 0;
    for (CURLMsg *message; (message = curl_multi_info_read(pool->multi, &left));) {
        struct exchange *x = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&x);
        x->code = message->data.result;
        x->ended = true;
        set_ready(x);
    }
}

static void act(struct pool *pool, curl_socket_t fd, int what)
{
    int running = 0;
    curl_multi_socket_action(pool->multi, fd, what, &running);
    take_ended(pool);
    deliver(pool->transport);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
    act(arg, fd,
        ((what & EV_READ) ? CURL_CSELECT_IN : 0) | ((what & EV_WRITE) ? CURL_CSELECT_OUT : 0));
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static void on_deliver(evutil_socket_t fd, short what, void *arg)
{
    struct transport *t = arg;
    (void)fd;
    (void)what;
    take_ended(t->shared);
    take_ended(t->alone);
    deliver(t);
    free_retired(t);
}

static int set_timer(CURLM *multi, long timeout_ms, void *arg)
{
    const struct pool *pool = arg;
    struct timeval after = timeval_from_ms(timeout_ms);
    (void)multi;
    if (timeout_ms < 0)
        return event_del(pool->timer);
    return event_add(pool->timer, &after);
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    struct pool *pool = arg;
    struct event *event = socket_arg;
    (void)easy;
    if (event)
        event_free(event);
    if (what == CURL_POLL_REMOVE) {
        curl_multi_assign(pool->multi, fd, NULL);
        return 0;
    }
    short interest = (short)(((what & CURL_POLL_IN) ? EV_READ : 0) |
                             ((what & CURL_POLL_OUT) ? EV_WRITE : 0) | EV_PERSIST);
    event = event_new(pool->transport->base, fd, interest, on_socket, pool);
    curl_multi_assign(pool->multi, fd, event);
    return event && event_add(event, NULL) == 0 ? 0 : -1;
}

/* libcurl tells nowhere else why it sends a request again (transfer.c, Curl_retry_request). */
static int on_debug(CURL *easy, curl_infotype type, char *text, size_t length, void *arg)
{
    static const char refused[] = "REFUSED_STREAM";
    struct exchange *x = arg;
    (void)easy;
    if (type == CURLINFO_TEXT && length >= sizeof refused - 1 &&
        memcmp(text, refused, sizeof refused - 1) == 0)
        x->refused = true;
    return 0;
}

/* Called before the request goes out. When a connection that was used before ends without an
 * answer, libcurl would send the request again by itself, also one that must not be repeated. Only
 * after REFUSED_STREAM it is right: so go those that a GOAWAY overtook. */
static int on_request(void *arg, char *there, char *here, int there_port, int here_port)
{
    struct exchange *x = arg;
    (void)there;
    (void)here;
    (void)there_port;
    (void)here_port;
    if (x->sent && !x->refused)
        x->again = true;
    x->sent = true;
    x->sent_ms = clock_ms();
    x->refused = false;
    return x->again ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct exchange *x = arg;
    size_t length = size * count;
    x->pool->heard_ms = clock_ms();
    if (x->paused)
        return CURL_WRITEFUNC_PAUSE; /* they come again when it goes on */
    if (length > x->answer_max - x->body.len) {
        x->too_large = true;
        return 0;
    }
    buf_add(&x->body, bytes, length);
    if (x->stream)
        set_ready(x);
    return x->body.failed ? 0 : length;
}

/* Called with each line of a head; the last one is empty. Of several heads (100, a proxy's) only
 * that of the answer is a 2xx, but for CONNECT's, which SUPPRESS_CONNECT_HEADERS keeps away. */
static size_t on_header(char *bytes, size_t size, size_t count, void *arg)
{
    struct exchange *x = arg;
    size_t length = size * count;
    x->pool->heard_ms = clock_ms();
    if (x->stream && length > 0 && (bytes[0] == '\r' || bytes[0] == '\n') && has_success(x->easy) &&
        x->events.head) {
        x->has_head = true;
        set_ready(x);
    }
    return length;
}

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transport *t = arg;
    unsigned silence_ms = KUBE_SILENCE_MS;
    (void)purpose;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd < 0)
        return CURL_SOCKET_BAD;
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof silence_ms);
    t->connections++;
    return fd;
}

static struct curl_blob blob(const struct buf *pem)
{
    return (struct curl_blob){.data = pem->data, .len = pem->len, .flags = CURL_BLOB_COPY};
}

/* The certificates that this machine trusts. Distributions differ in the place, and a static
 * program runs on all of them (the list is that of Go's crypto/x509, thus kubectl's). NULL:
 * libcurl's own. */
static const char *trusted_file(void)
{
    static const char *const places[] = {"/etc/ssl/certs/ca-certificates.crt",
                                         "/etc/pki/tls/certs/ca-bundle.crt",
                                         "/etc/ssl/ca-bundle.pem",
                                         "/etc/pki/tls/cacert.pem",
                                         "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
                                         "/etc/ssl/cert.pem"};
    const char *said = getenv("SSL_CERT_FILE");
    if (said && said[0])
        return said;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (access(places[i], R_OK) == 0)
            return places[i];
    return NULL;
}

static void set_tls(CURL *easy, const struct exchange_request *request)
{
    const char *trusted = request->ca || request->insecure ? NULL : trusted_file();
    struct curl_blob part;
    if (request->ca) {
        part = blob(request->ca);
        curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &part);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (trusted)
        curl_easy_setopt(easy, CURLOPT_CAINFO, trusted);
    if (request->insecure) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (request->certificate) {
        part = blob(request->certificate);
        curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &part);
        curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
        part = blob(request->key);
        curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &part);
        curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
    }
}

static void set_connection(struct exchange *x, const struct exchange_request *request)
{
    CURL *easy = x->easy;
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L); /* share the one connection that is being made */
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 10L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, x->transport);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)KUBE_CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, request->proxy);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, ""); /* the environment was asked: proxy.h */
    if (request->connect_to)
        x->connect_to = curl_slist_append(NULL, request->connect_to);
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, x->connect_to);
}

static void set_alone(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 0L);
}

/* HTTP/2 cannot be upgraded, and a proxy is to pass on what it does not know. */
static void set_connect_only(CURL *easy)
{
    set_alone(easy);
    curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
}

static void set_request(struct exchange *x, const struct exchange_request *request)
{
    x->answer_max = request->answer_max;
    CURL *easy = x->easy;
    curl_easy_setopt(easy, CURLOPT_URL, request->url);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "drarun/" DRARUN_VERSION);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
    if (!request->stream) /* packed, the events of a watch would wait for each other */
        curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    if (request->body) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_debug);
    curl_easy_setopt(easy, CURLOPT_DEBUGDATA, x);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, x);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, x->text);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, x);
}

int exchange_start(struct transport *t, const struct exchange_request *request,
                   const struct exchange_events *events, void *arg, struct exchange **ret_exchange,
                   struct drarun_error *err)
{
    struct exchange *x = calloc(1, sizeof *x);
    if (!x || !(x->easy = curl_easy_init())) {
        free(x);
        return error_set(err, ENOMEM, "out of memory");
    }
    x->transport = t;
    x->pool = request->alone || request->connect_only ? t->alone : t->shared;
    TAILQ_INSERT_TAIL(&x->pool->exchanges, x, in_pool);
    x->events = *events;
    x->arg = arg;
    x->stream = request->stream;
    x->connect_only = request->connect_only;
    set_connection(x, request);
    if (request->alone)
        set_alone(x->easy);
    if (x->connect_only)
        set_connect_only(x->easy);
    set_tls(x->easy, request);
    set_request(x, request);
    CURLMcode code = curl_multi_add_handle(x->pool->multi, x->easy);
    if (code != CURLM_OK) {
        exchange_free(x);
        return error_set(err, code == CURLM_OUT_OF_MEMORY ? ENOMEM : EIO, "libcurl: %s",
                         curl_multi_strerror(code));
    }
    *ret_exchange = x;
    return 0;
}

void exchange_cancel(struct exchange *x)
{
    if (x)
        exchange_free(x);
}

void exchange_pause(struct exchange *x, bool pause)
{
    if (x->paused == pause)
        return;
    x->paused = pause;
    if (!pause)
        curl_easy_pause(x->easy, CURLPAUSE_CONT);
    if (!TAILQ_EMPTY(&x->transport->ready)) /* continuing may have brought something at once */
        event_active(x->transport->deliver, 0, 0);
}

int exchange_socket(const struct exchange *x)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    return curl_easy_getinfo(x->easy, CURLINFO_ACTIVESOCKET, &fd) == CURLE_OK ? fd : -1;
}

ssize_t exchange_read(struct exchange *x, void *bytes, size_t length)
{
    size_t n = 0;
    CURLcode code = curl_easy_recv(x->easy, bytes, length, &n);
    return code == CURLE_OK ? (ssize_t)n : code == CURLE_AGAIN ? -EAGAIN : -EIO;
}

ssize_t exchange_write(struct exchange *x, const void *bytes, size_t length)
{
    size_t n = 0;
    CURLcode code = curl_easy_send(x->easy, bytes, length, &n);
    return code == CURLE_OK ? (ssize_t)n : code == CURLE_AGAIN ? -EAGAIN : -EIO;
}

uint64_t transport_connections(const struct transport *t)
{
    return t->connections;
}

void kube_end_without_memory(void)
{
    curl_global_init_mem(CURL_GLOBAL_DEFAULT, need_memory, free, need_more_memory, need_copy,
                         need_zeroed_memory);
}

/* NULL: out of memory. */
static struct pool *pool_new(struct transport *t)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    TAILQ_INIT(&pool->exchanges);
    pool->transport = t;
    pool->timer = event_new(t->base, -1, 0, on_timer, pool);
    pool->multi = curl_multi_init();
    if (!pool->timer || !pool->multi) {
        pool_free(pool);
        return NULL;
    }
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    return pool;
}

int transport_new(struct event_base *base, struct transport **ret_transport,
                  struct drarun_error *err)
{
    struct transport *t = calloc(1, sizeof *t);
    if (!t)
        return error_set(err, ENOMEM, "out of memory");
    TAILQ_INIT(&t->ready);
    TAILQ_INIT(&t->retired);
    t->base = base;
    t->deliver = event_new(base, -1, 0, on_deliver, t);
    if (!t->deliver || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
        !(t->shared = pool_new(t)) || !(t->alone = pool_new(t))) {
        transport_free(t);
        return error_set(err, ENOMEM, "libcurl cannot be set up: out of memory");
    }
    *ret_transport = t;
    return 0;
}

void transport_free(struct transport *t)
{
    if (!t)
        return;
    free_retired(t);
    pool_free(t->shared);
    pool_free(t->alone);
    if (t->deliver)
        event_free(t->deliver);
    free(t);
}
