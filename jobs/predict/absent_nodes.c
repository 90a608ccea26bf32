/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/predict/absent_nodes.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/doc/doc.h"
#include "lib/doc/value.h"

#define POOLS_MAX 4 /* that are named */

/* ---- classes that nobody publishes ---- */

/* "class gpu.nvidia.com"; what it is requested as where the class has no selector. */
static const char *class_of(const struct predict_need *need)
{
    for (size_t t = 0; t < need->term_count; t++)
        if (strncmp(need->terms[t].where, "class ", strlen("class ")) == 0)
            return need->terms[t].where;
    return need->requests;
}

static bool is_named_before(const struct prediction *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (predict_need_is_absent(&p->needs[i]) &&
            strcmp(class_of(&p->needs[i]), class_of(&p->needs[n])) == 0)
            return true;
    return false;
}

static void add_classes(const struct prediction *p, struct buf *out)
{
    for (size_t n = 0; n < p->need_count; n++) {
        if (!predict_need_is_absent(&p->needs[n]) || is_named_before(p, n))
            continue;
        buf_printf(out, "%s%s", out->len ? " and " : "no node publishes devices of ",
                   class_of(&p->needs[n]));
    }
    if (out->len)
        buf_add_str(out, ": a pool that has no node yet publishes none");
}

bool absent_nodes_lack_class(const struct prediction *prediction)
{
    for (size_t n = 0; n < prediction->need_count; n++)
        if (predict_need_is_absent(&prediction->needs[n]))
            return true;
    return false;
}

/* ---- pools that may grow ---- */

struct pools {
    struct buf text;
    size_t count;
    bool known; /* somebody says which pools there are */
};

/* False: enough are named. */
static bool begin_pool(struct pools *pools, const char *before)
{
    pools->count++;
    if (pools->count <= POOLS_MAX)
        buf_add_str(&pools->text, pools->count == 1 ? before : ", ");
    return pools->count <= POOLS_MAX;
}

static void end_pools(struct pools *pools)
{
    if (pools->count > POOLS_MAX)
        buf_printf(&pools->text, " and %zu more", pools->count - POOLS_MAX);
}

/* GKE names groups by their whole addresses. */
static const char *short_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

static void add_group(const json_t *group, struct pools *pools)
{
    const json_t *health = json_object_get(group, "health");
    const json_t *scale_up = json_object_get(group, "scaleUp");
    json_int_t target = json_integer_value(json_object_get(health, "cloudProviderTarget"));
    json_int_t most = json_integer_value(json_object_get(health, "maxSize"));
    const char *name = value_text(group, "name");
    if (!name || target >= most || !begin_pool(pools, "cluster-autoscaler may add nodes to "))
        return;
    buf_printf(&pools->text, "%s (%lld of at most %lld", short_name(name), (long long)target,
               (long long)most);
    if (strcmp(value_text_or(scale_up, "status", ""), "Backoff") == 0)
        buf_printf(&pools->text, "; in backoff: %s",
                   value_text_or(json_object_get(scale_up, "backoffInfo"), "errorCode",
                                 "no reason given"));
    buf_add_str(&pools->text, ")");
}

/* The ConfigMap's text is ClusterAutoscalerStatus in YAML (pkg/clusterstate/api of
 * cluster-autoscaler 1.30 and later). What cannot be read is not known. */
static void read_status(const json_t *map, struct pools *pools)
{
    const char *text = value_text(json_object_get(map, "data"), "status");
    CLEANUP(doc_freep) struct doc *doc = NULL;
    if (!text ||
        doc_parse(AUTOSCALER_STATUS, text, strlen(text), DOC_FORMAT_YAML, NULL, &doc, NULL) < 0 ||
        doc_count(doc) != 1)
        return;
    const json_t *groups = json_object_get(doc_root(doc, 0), "nodeGroups");
    size_t i;
    json_t *group;
    pools->known |= json_is_array(groups);
    json_array_foreach(groups, i, group) add_group(group, pools);
    end_pools(pools);
}

static void read_autoscaler(const json_t *config_maps, struct pools *pools)
{
    size_t i;
    json_t *map;
    json_array_foreach(config_maps, i, map)
    {
        const json_t *metadata = json_object_get(map, "metadata");
        if (strcmp(value_text_or(metadata, "name", ""), AUTOSCALER_STATUS) == 0)
            read_status(map, pools);
    }
}

static bool is_not_ready(const json_t *pool)
{
    const json_t *list = json_object_get(json_object_get(pool, "status"), "conditions");
    return strcmp(value_text_or(value_find(list, "type", "Ready"), "status", ""), "False") == 0;
}

/* One with replicas does not follow pods. */
static bool may_grow(const json_t *pool)
{
    return strncmp(value_text_or(pool, "apiVersion", ""), "karpenter.sh/",
                   strlen("karpenter.sh/")) == 0 &&
           !json_object_get(json_object_get(pool, "metadata"), "deletionTimestamp") &&
           !json_object_get(json_object_get(pool, "spec"), "replicas") && !is_not_ready(pool);
}

static void read_karpenter(const json_t *node_pools, bool claims, struct pools *pools)
{
    size_t i;
    json_t *pool;
    json_array_foreach(node_pools, i, pool)
    {
        if (may_grow(pool) && begin_pool(pools, "Karpenter may add nodes of its NodePools "))
            buf_add_str(&pools->text,
                        value_text_or(json_object_get(pool, "metadata"), "name", "?"));
    }
    end_pools(pools);
    if (pools->count > 0 && claims)
        buf_add_str(&pools->text, " (for claims only with --ignore-dra-requests=false)");
}

/* ---- both ---- */

static void add_part(struct buf *out, const struct buf *part)
{
    if (part->len)
        buf_printf(out, "%s%s", out->len ? "; " : "", part->data);
    out->failed |= part->failed;
}

char *absent_nodes_words(const struct prediction *prediction, const struct absent_nodes *known,
                         bool claims)
{
    CLEANUP(buf_done) struct buf out = BUF_INIT;
    CLEANUP(buf_done) struct buf classes = BUF_INIT;
    struct pools autoscaler = {.text = BUF_INIT}, karpenter = {.text = BUF_INIT};
    read_autoscaler(known->config_maps, &autoscaler);
    read_karpenter(known->node_pools, claims, &karpenter);
    bool grows = autoscaler.count > 0 || karpenter.count > 0;
    if (grows || !autoscaler.known)
        add_classes(prediction, &classes);
    add_part(&out, &classes);
    add_part(&out, &autoscaler.text);
    add_part(&out, &karpenter.text);
    if (grows && claims)
        buf_add_str(&out, "; which devices they would have is not known");
    buf_done(&autoscaler.text);
    buf_done(&karpenter.text);
    return out.failed || out.len == 0 ? NULL : buf_take(&out);
}
