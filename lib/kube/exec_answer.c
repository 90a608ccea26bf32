/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/exec_answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/error.h"
#include "lib/kube/base64.h"

static void wipe_buf(struct buf *b)
{
    if (b->data)
        explicit_bzero(b->data, b->cap);
    buf_done(b);
}

void exec_credential_done(struct exec_credential *credential)
{
    if (credential->token)
        explicit_bzero(credential->token, strlen(credential->token));
    free(credential->token);
    wipe_buf(&credential->certificate);
    wipe_buf(&credential->key);
    *credential = (struct exec_credential){0};
}

static json_t *cluster_info(const struct kube_config *config)
{
    struct buf ca = BUF_INIT;
    if (config->ca.content.len)
        base64_encode(config->ca.content.data, config->ca.content.len, &ca);
    json_t *info =
        json_pack("{s:s, s:s*, s:s*, s:s*, s:O*}", "server", config->server, "tls-server-name",
                  config->tls_server_name, "certificate-authority-data", ca.data, "proxy-url",
                  config->proxy_url, "config", config->cluster_extension);
    if (info && config->insecure)
        json_object_set_new(info, "insecure-skip-tls-verify", json_true());
    buf_done(&ca);
    return info;
}

char *exec_info(const struct kube_config *config, bool interactive)
{
    json_t *info = json_pack("{s:s, s:s, s:{s:b}}", "kind", "ExecCredential", "apiVersion",
                             config->exec->api_version, "spec", "interactive", interactive);
    if (info && config->exec->provide_cluster)
        json_object_set_new(json_object_get(info, "spec"), "cluster", cluster_info(config));
    char *text = info ? json_dumps(info, JSON_COMPACT) : NULL;
    json_decref(info);
    return text;
}

static int zone_s(const char *text, int64_t *ret_s)
{
    char sign;
    int hours, minutes, length = 0;
    if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0) {
        *ret_s = 0;
        return 0;
    }
    if (sscanf(text, "%c%2d:%2d%n", &sign, &hours, &minutes, &length) != 3 || text[length] ||
        length != 6 || !strchr("+-", sign))
        return -EINVAL;
    *ret_s = (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    return 0;
}

int time_from_rfc3339(const char *text, int64_t *ret_s)
{
    struct tm at = {0};
    int length = 0;
    int64_t offset = 0;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &at.tm_year, &at.tm_mon, &at.tm_mday, &at.tm_hour,
               &at.tm_min, &at.tm_sec, &length) != 6 ||
        length != 19 || strspn(text, "0123456789-T:") < 19)
        return -EINVAL;
    text += length;
    if (*text == '.')
        text += 1 + strspn(text + 1, "0123456789");
    if (zone_s(text, &offset) < 0)
        return -EINVAL;
    at.tm_year -= 1900;
    at.tm_mon -= 1;
    if (at.tm_mon < 0 || at.tm_mon > 11 || at.tm_mday < 1 || at.tm_mday > 31 || at.tm_hour > 23 ||
        at.tm_min > 59 || at.tm_sec > 60)
        return -EINVAL;
    *ret_s = (int64_t)timegm(&at) - offset;
    return 0;
}

static int bad(struct drarun_error *err, const char *text)
{
    return error_kind(err, DRARUN_ERR_CLUSTER, EACCES, "its answer %s", text);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && *text ? text : NULL;
}

static int read_status(const json_t *status, struct exec_credential *credential,
                       struct drarun_error *err)
{
    const char *token = text_of(status, "token");
    const char *certificate = text_of(status, "clientCertificateData");
    const char *key = text_of(status, "clientKeyData");
    const char *expires = text_of(status, "expirationTimestamp");
    if (!token && !certificate && !key)
        return bad(err, "has neither status.token nor status.clientCertificateData");
    for (const char *c = token; c && *c; c++)
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
            return bad(err, "has a status.token with blanks or control characters");
    if (!certificate != !key)
        return bad(err, "has one of status.clientCertificateData and status.clientKeyData, "
                        "expected both");
    if (expires && time_from_rfc3339(expires, &credential->expires_s) < 0)
        return bad(err, "has a status.expirationTimestamp that is no RFC 3339 time");
    if (certificate) {
        buf_add_str(&credential->certificate, certificate);
        buf_add_str(&credential->key, key);
    }
    if ((token && !(credential->token = strdup(token))) || credential->certificate.failed ||
        credential->key.failed)
        return error_set(err, ENOMEM, "out of memory");
    return 0;
}

static int check_version(const json_t *answer, const char *api_version, struct drarun_error *err)
{
    const char *kind = text_of(answer, "kind"), *version = text_of(answer, "apiVersion");
    if (!kind || strcmp(kind, "ExecCredential") != 0)
        return bad(err, "is no ExecCredential");
    if (!version || strcmp(version, api_version) != 0)
        return error_kind(err, DRARUN_ERR_CLUSTER, EACCES,
                          "its answer has apiVersion %.60s, the kubeconfig expects %s",
                          version ? version : "none", api_version);
    if (!json_is_object(json_object_get(answer, "status")))
        return bad(err, "has no status");
    return 0;
}

int exec_answer_read(const char *text, size_t length, const char *api_version,
                     struct exec_credential *ret_credential, struct drarun_error *err)
{
    struct exec_credential credential = {0};
    json_t *answer = json_loadb(text, length, 0, NULL);
    if (!answer)
        return bad(err, length ? "is no JSON" : "is empty");
    int rc = check_version(answer, api_version, err);
    if (rc == 0)
        rc = read_status(json_object_get(answer, "status"), &credential, err);
    json_decref(answer);
    if (rc < 0)
        exec_credential_done(&credential);
    else
        *ret_credential = credential;
    return rc;
}
