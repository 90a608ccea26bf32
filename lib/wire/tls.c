/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* RFC 8446 appendix B.4: the PSK's hash must be the suite's */
static const unsigned char suite_id[] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */
static const char identity[] = "drarun";

struct tls_context {
    SSL_CTX *ssl;
    enum tls_side side;
    struct tls_key key;
};

static struct tls_context *context_of(SSL *ssl)
{
    return SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
}

static SSL_SESSION *new_session(SSL *ssl)
{
    struct tls_context *context = context_of(ssl);
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, suite_id);
    SSL_SESSION *session = SSL_SESSION_new();
    if (session && cipher &&
        SSL_SESSION_set1_master_key(session, context->key.bytes, sizeof context->key.bytes) &&
        SSL_SESSION_set_cipher(session, cipher) &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

static int use_key(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_length,
                   SSL_SESSION **session)
{
    (void)md;
    *session = new_session(ssl);
    *id = (const unsigned char *)identity;
    *id_length = sizeof identity - 1;
    return *session != NULL;
}

static int find_key(SSL *ssl, const unsigned char *id, size_t id_length, SSL_SESSION **session)
{
    *session = NULL;
    if (id_length == sizeof identity - 1 && memcmp(id, identity, id_length) == 0)
        *session = new_session(ssl);
    return 1; /* no session: the handshake falls back to certificates, of which there are none */
}

void tls_ignore_configuration(void)
{
    OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
}

struct tls_context *tls_context_new(const struct tls_key *key, enum tls_side side,
                                    struct drarun_error *err)
{
    struct tls_context *context = calloc(1, sizeof *context);
    SSL_CTX *ssl = SSL_CTX_new(side == TLS_CLIENT ? TLS_client_method() : TLS_server_method());
    if (!context || !ssl) {
        free(context);
        SSL_CTX_free(ssl);
        const char *why = ERR_reason_error_string(ERR_peek_last_error());
        error_set(err, ENOMEM, "TLS: cannot make a context: %s", why ? why : "out of memory");
        return NULL;
    }
    *context = (struct tls_context){.ssl = ssl, .side = side, .key = *key};
    SSL_CTX_set_app_data(ssl, context);
    SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(ssl, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_num_tickets(ssl, 0);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    /* an end without close_notify is an ordinary end of a killed peer; frames carry their length */
    SSL_CTX_set_options(ssl, SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (side == TLS_CLIENT) {
        SSL_CTX_set_psk_use_session_callback(ssl, use_key);
        /* a server that does not hold the key could only offer a certificate: refuse that */
        SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    } else {
        SSL_CTX_set_psk_find_session_callback(ssl, find_key);
    }
    return context;
}

void tls_context_free(struct tls_context *context)
{
    if (!context)
        return;
    SSL_CTX_free(context->ssl);
    OPENSSL_cleanse(context, sizeof *context);
    free(context);
}

/* Called before each read of the socket's BIO; it becomes an error when the handshake is too long.
 * The library itself would hold 128 KiB for every peer that announces a first message so long. */
static long limit_handshake(BIO *bio, int operation, const char *bytes, size_t size, int argi,
                            long argl, int rc, size_t *processed)
{
    const SSL *ssl = (const SSL *)BIO_get_callback_arg(bio);
    (void)bytes, (void)argi, (void)argl, (void)processed;
    if (operation != BIO_CB_READ || SSL_is_init_finished(ssl) ||
        BIO_number_read(bio) + size <= TLS_HANDSHAKE_MAX)
        return rc;
    BIO_clear_retry_flags(bio);
    ERR_raise(ERR_LIB_SSL, SSL_R_EXCESSIVE_MESSAGE_SIZE);
    return -1;
}

struct bufferevent *tls_open_take(struct tls_context *context, struct event_base *base, int fd,
                                  struct drarun_error *err)
{
    SSL *ssl = SSL_new(context->ssl);
    enum bufferevent_ssl_state state = BUFFEREVENT_SSL_ACCEPTING;
    if (context->side == TLS_CLIENT)
        state = BUFFEREVENT_SSL_CONNECTING;
    struct bufferevent *bev = NULL;
    if (ssl && evutil_make_socket_nonblocking(fd) == 0)
        bev = bufferevent_openssl_socket_new(base, fd, ssl, state, BEV_OPT_CLOSE_ON_FREE);
    if (!bev) {
        SSL_free(ssl);
        close(fd);
        error_set(err, ENOMEM, "TLS: cannot open a connection");
        return NULL;
    }
    bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    BIO_set_callback_arg(SSL_get_rbio(ssl), (char *)ssl);
    BIO_set_callback_ex(SSL_get_rbio(ssl), limit_handshake);
    return bev;
}

bool tls_has_proved(struct bufferevent *bev)
{
    return SSL_is_init_finished(bufferevent_openssl_get_ssl(bev));
}

bool tls_failure(struct bufferevent *bev, char *text, size_t size)
{
    unsigned long code;
    bool broke = false; /* SSL_get_error() says SSL_ERROR_SYSCALL, which libevent adds */
    while ((code = bufferevent_get_openssl_error(bev)) != 0 && ERR_GET_LIB(code) == 0)
        broke |= code == SSL_ERROR_SYSCALL;
    text[0] = '\0';
    if (code == 0)
        return broke;
    int alert = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET : -1;
    if (alert >= 0) { /* OpenSSL's reason names a version: "sslv3 alert illegal parameter" */
        snprintf(text, size, "the peer sent the TLS alert \"%s\"",
                 SSL_alert_desc_string_long(alert));
        return true;
    }
    const char *reason =
        ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);
    snprintf(text, size, "%s", reason ? reason : "unknown TLS error");
    return true;
}
