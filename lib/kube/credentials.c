/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/credentials.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/kube/exec_plugin.h"
#include "lib/kube/kubeconfig.h"

#define RETRY_S 5  /* after a renewal that failed */
#define RENEW_S 30 /* before it expires; a tenth of its time when that is less */

struct credentials {
    struct event_base *base;
    struct kube_config *config; /* its files are refreshed in place */
    char *token;                /* of config->token without white space */
    unsigned token_version;
    TAILQ_HEAD(, credential_waiter) waiters; /* for the plugin */
    struct exec_plugin *plugin;              /* that runs */
    struct exec_credential given;            /* by it, when has_given */
    bool has_given;
    unsigned given_count, round;
    unsigned told_version; /* of a provider's token that is refused, and one more; 0: none */
    int64_t renew_s;       /* since 1970; 0: never */
};

int credentials_new(struct event_base *base, const struct kube_config *config,
                    struct credentials **ret_credentials, struct drarun_error *err)
{
    struct credentials *c = calloc(1, sizeof *c);
    if (!c)
        return error_set(err, ENOMEM, "out of memory");
    c->base = base;
    c->config = unconst(config);
    c->token_version = UINT32_MAX;
    TAILQ_INIT(&c->waiters);
    *ret_credentials = c;
    return 0;
}

static void wipe(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(*text);
    *text = NULL;
}

void credentials_free(struct credentials *c)
{
    if (!c)
        return;
    wipe(&c->token);
    exec_plugin_free(c->plugin);
    exec_credential_done(&c->given);
    free(c);
}

/* Somebody has used kubectl, and it has renewed the token of an OIDC provider. */
static void refresh_provided(struct kube_config *config)
{
    struct kept_file *file = &config->provided, *token = &config->token;
    unsigned before = file->version;
    struct buf next = BUF_INIT;
    if (kept_file_refresh(file, NULL) < 0 || file->version == before)
        return;
    bool fresh =
        kubeconfig_provided_token(&file->content, file->path, config->provided_user, &next) == 0 &&
        strcmp(next.data, token->content.data) != 0;
    struct buf *old = fresh ? &token->content : &next;
    if (old->data)
        explicit_bzero(old->data, old->cap);
    buf_done(old);
    if (!fresh)
        return;
    token->content = next;
    token->version++;
}

static int refresh_files(struct kube_config *config, struct drarun_error *err)
{
    refresh_provided(config);
    struct kept_file *files[] = {&config->ca, &config->certificate, &config->key, &config->token};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        int rc = kept_file_refresh(files[i], err);
        /* what was read before may still be good: rotation may have it gone for a moment */
        if (rc < 0 && files[i]->content.len == 0)
            return rc;
    }
    return 0;
}

static int trim_token(struct credentials *c, struct drarun_error *err)
{
    const struct kept_file *file = &c->config->token;
    const char *from = file->content.data;
    if (c->token_version == file->version)
        return 0;
    while (isspace((unsigned char)*from))
        from++;
    size_t length = strlen(from);
    while (length && isspace((unsigned char)from[length - 1]))
        length--;
    wipe(&c->token);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)from[i] <= ' ' || (unsigned char)from[i] >= 0x7f)
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "%s: a token has no blanks and control characters",
                              file->path ? file->path : "token");
    c->token = strndup(from, length);
    if (!c->token)
        return error_set(err, ENOMEM, "out of memory");
    c->token_version = file->version;
    return 0;
}

static const struct buf *content(const struct kept_file *file)
{
    return file->content.len ? &file->content : NULL;
}

/* Each that waits now asks again or hears err. Any of them may withdraw others or begin to wait,
 * which is for the next round then. */
static void wake(struct credentials *c, const struct drarun_error *err)
{
    unsigned round = c->round++;
    struct credential_waiter *waiter;
    while ((waiter = TAILQ_FIRST(&c->waiters)) && waiter->round == round) {
        credentials_withdraw(c, waiter);
        waiter->fn(err, waiter->arg);
    }
}

/* It worked before, so that this may pass: a token service that is overloaded, a login that
 * somebody renews. What it gave is used until it expires. Returns NULL then, else the error for
 * those that wait, who may try again. */
static const struct drarun_error *renewal_failed(struct credentials *c, int64_t now,
                                                 const struct drarun_error *err,
                                                 struct drarun_error *ret_late)
{
    if (c->has_given && (!c->given.expires_s || now < c->given.expires_s)) {
        log_verbose("%s", err->text);
        c->renew_s = now + RETRY_S;
        if (c->given.expires_s && c->given.expires_s < c->renew_s)
            c->renew_s = c->given.expires_s;
        return NULL;
    }
    *ret_late = *err;
    ret_late->code = EAGAIN;
    return ret_late;
}

static void on_given(struct exec_credential *credential, const struct drarun_error *err, void *arg)
{
    struct credentials *c = arg;
    struct drarun_error late = {0};
    int64_t now = (int64_t)time(NULL);
    c->plugin = NULL;
    if (credential) {
        exec_credential_done(&c->given);
        c->given = *credential;
        c->given_count++;
        int64_t left = c->given.expires_s - now;
        c->renew_s =
            c->given.expires_s ? now + left - (left / 10 < RENEW_S ? left / 10 : RENEW_S) : 0;
        c->has_given = !c->given.expires_s || left > 0;
        if (!c->has_given)
            error_kind(&late, DRARUN_ERR_CLUSTER, EACCES,
                       "credential plugin %.200s of %.150s: what it gave has expired already; is "
                       "this machine's clock right?",
                       c->config->exec->command, c->config->name);
    }
    if (err && c->given_count > 0)
        err = renewal_failed(c, now, err, &late);
    wake(c, err ? err : late.code ? &late : NULL);
}

static int ask_plugin(struct credentials *c, struct credential_waiter *waiter,
                      struct drarun_error *err)
{
    if (!c->plugin) {
        int rc = exec_plugin_start(c->base, c->config, on_given, c, &c->plugin, err);
        if (rc < 0)
            return rc;
    }
    waiter->waiting = true;
    waiter->round = c->round;
    TAILQ_INSERT_TAIL(&c->waiters, waiter, link);
    return -EINPROGRESS;
}

static void add_given(const struct credentials *c, struct identity *identity)
{
    identity->token = c->given.token;
    if (c->given.certificate.len) {
        identity->certificate = &c->given.certificate;
        identity->key = &c->given.key;
    }
}

int credentials_get(struct credentials *c, struct identity *ret_identity,
                    struct credential_waiter *waiter, struct drarun_error *err)
{
    int rc = refresh_files(c->config, err);
    if (rc == 0 && c->config->token.content.len)
        rc = trim_token(c, err);
    if (rc < 0)
        return error_prefix(err, "credentials of %s", c->config->name);
    if (c->config->exec && (!c->has_given || (c->renew_s && (int64_t)time(NULL) >= c->renew_s)))
        return ask_plugin(c, waiter, err);
    struct identity identity = {.token = c->token,
                                .ca = content(&c->config->ca),
                                .certificate = content(&c->config->certificate),
                                .key = content(&c->config->key),
                                .generation = c->config->token.version + c->given_count};
    if (c->config->exec)
        add_given(c, &identity);
    *ret_identity = identity;
    return 0;
}

void credentials_withdraw(struct credentials *c, struct credential_waiter *waiter)
{
    if (waiter->waiting)
        TAILQ_REMOVE(&c->waiters, waiter, link);
    waiter->waiting = false;
}

/* Of an OIDC provider, which we do not ask. */
static void tell_old(struct credentials *c)
{
    if (c->told_version == c->config->token.version + 1)
        return;
    c->told_version = c->config->token.version + 1;
    log_note("%s: the server refuses the id-token of user %s, which may have expired: kubectl "
             "renews it (kubectl version), and it is read again then",
             c->config->name, c->config->provided_user);
}

bool credentials_refused(struct credentials *c, unsigned generation)
{
    kept_file_refresh(&c->config->token, NULL);
    refresh_provided(c->config);
    if (c->config->provided.path && c->config->token.version + c->given_count == generation)
        tell_old(c);
    if (c->config->exec && c->given_count == generation)
        c->has_given = false;
    return c->config->exec || c->config->token.version + c->given_count != generation;
}
