/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/credentials.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"

struct credentials {
    struct event_base *base;
    struct kube_config *config; /* its files are refreshed in place */
    char *token;                /* of config->token without white space */
    unsigned token_version;
};

int credentials_new(struct event_base *base, const struct kube_config *config,
                    struct credentials **ret_credentials, struct drarun_error *err)
{
    struct credentials *c = calloc(1, sizeof *c);
    if (!c)
        return error_set(err, ENOMEM, "out of memory");
    c->base = base;
    c->config = (struct kube_config *)config;
    c->token_version = UINT32_MAX;
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
    free(c);
}

static int refresh_files(struct kube_config *config, struct drarun_error *err)
{
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

int credentials_get(struct credentials *c, struct identity *ret_identity,
                    struct credential_waiter *waiter, struct drarun_error *err)
{
    (void)waiter;
    int rc = refresh_files(c->config, err);
    if (rc == 0 && c->config->token.content.len)
        rc = trim_token(c, err);
    if (rc < 0)
        return error_prefix(err, "credentials of %s", c->config->name);
    *ret_identity = (struct identity){.token = c->token,
                                      .ca = content(&c->config->ca),
                                      .certificate = content(&c->config->certificate),
                                      .key = content(&c->config->key),
                                      .generation = c->config->token.version};
    return 0;
}

void credentials_withdraw(struct credentials *c, struct credential_waiter *waiter)
{
    (void)c;
    waiter->waiting = false;
}

bool credentials_refused(struct credentials *c, unsigned generation)
{
    kept_file_refresh(&c->config->token, NULL);
    return c->config->token.version != generation;
}
