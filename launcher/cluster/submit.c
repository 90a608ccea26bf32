/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "jobs/claims.h"
#include "jobs/install.h"
#include "jobs/render.h"
#include "launcher/cluster/offer.h"
#include "launcher/cluster/reap.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

int submit_name_secret(const char *job, char name[SUBMIT_SECRET_SIZE], struct drarun_error *err)
{
    uint32_t unique;
    if (getrandom(&unique, sizeof unique, 0) != (ssize_t)sizeof unique)
        return error_set(err, errno, "getrandom: %s", strerror(errno));
    snprintf(name, SUBMIT_SECRET_SIZE, "%s-key-%08x", job, unique);
    return 0;
}

static int ask_account(struct cluster *cluster, const char *namespace, struct cluster_read *account,
                       struct drarun_error *err)
{
    const struct kube_target target = {
        .resource = &kube_service_accounts, .namespace_ = namespace, .name = INSTALL_ACCOUNT};
    return cluster_read_start(cluster, &target, account, err);
}

/* The account that the launcher's pod runs as: made where it is missing and we may. */
static int ensure_install(struct cluster *cluster, const char *namespace,
                          struct cluster_read *account, struct drarun_error *err)
{
    struct kube_target target = {.namespace_ = namespace};
    struct drarun_error missing = {0};
    int rc = cluster_read_end(cluster, account, NULL, &missing);
    if (rc != -ENOENT)
        return 0; /* it is there, or we may not look: the Job's Events will tell */
    CLEANUP(json_decrefp) json_t *list = install_manifests(namespace);
    size_t i;
    json_t *manifest;
    rc = list ? 0 : error_set(err, ENOMEM, "out of memory");
    json_array_foreach(list, i, manifest)
    {
        target.resource =
            kube_resource_find(json_string_value(json_object_get(manifest, "apiVersion")),
                               json_string_value(json_object_get(manifest, "kind")));
        if (rc == 0)
            rc = cluster_create(cluster, &target, manifest, NULL, err);
        if (rc == -EEXIST) {
            *err = (struct drarun_error){0};
            rc = 0;
        }
    }
    if (rc < 0)
        return error_prefix(err,
                            "namespace %s lacks what drarun needs once: let somebody who may run "
                            "drarun install -n %s | kubectl apply --server-side -f -",
                            namespace, namespace);
    log_note("namespace %s: made the account, role and network policy that drarun needs once",
             namespace);
    return 0;
}

static int make_key(char text[65], struct drarun_error *err)
{
    unsigned char bytes[32];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(err, errno, "getrandom: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof bytes);
    return 0;
}

int submit_job(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
               const char *image, char **ret_uid, struct drarun_error *err)
{
    CLEANUP(cluster_read_drop) struct cluster_read account = {0};
    char key[65], secret[SUBMIT_SECRET_SIZE];
    struct render_options render = {
        .attempt = 1, .namespace = namespace, .image = image, .key = key, .secret = secret};
    int rc = make_key(key, err);
    if (rc == 0)
        rc = submit_name_secret(spec->name, secret, err);
    if (rc == 0)
        rc = ask_account(cluster, namespace, &account, err);
    if (rc == 0)
        rc = cluster_discover(cluster, err);
    if (rc == 0 && claims_wanted(spec))
        rc = cluster_need_claims(cluster, err);
    if (rc == 0)
        offer_look(cluster, spec);
    render.api = cluster->api;
    render.agent = cluster->agent.agent[0] ? &cluster->agent : NULL;
    render.image_volume = cluster->image_volume;
    render.delivery = cluster->delivery;
    render.metrics_port = cluster->metrics_port;
    render.pod_groups = cluster->pod_groups;
    if (rc == 0)
        rc = ensure_install(cluster, namespace, &account, err);
    if (rc == 0)
        rc = reap_create(cluster, spec, &render, ret_uid, err);
    if (rc == 0)
        reap_abandoned(cluster, namespace);
    explicit_bzero(key, sizeof key);
    return rc;
}
