/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/agent_claim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/manifests/pod_merge.h"
#include "lib/dra/predict.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

#define GPU_DRIVER "gpu.drarun.dev"
#define NIC_DRIVER "nic.drarun.dev"

/* ---- as a text ---- */

static bool is_ours(const char *driver)
{
    return strcmp(driver, GPU_DRIVER) == 0 || strcmp(driver, NIC_DRIVER) == 0;
}

int agent_claim_parse(const char *text, struct agent_claim *ret_claim, struct drarun_error *err)
{
    struct agent_claim claim = {0};
    size_t length = strcspn(text, "=");
    if (length < sizeof claim.driver && text[length] == '=' &&
        strlen(text + length + 1) < sizeof claim.agent) {
        memcpy(claim.driver, text, length);
        snprintf(claim.agent, sizeof claim.agent, "%s", text + length + 1);
    }
    if (!is_ours(claim.driver) || !agent_offer_valid(claim.agent))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "expected DRIVER=AGENT, as " NIC_DRIVER
                          "=v1-pmix-5.0.7 (the attribute " AGENT_OFFER_ATTRIBUTE
                          " of its devices), got \"%.80s\"",
                          text);
    *ret_claim = claim;
    return 0;
}

void agent_claim_text(const struct agent_claim *claim, char ret_text[AGENT_CLAIM_TEXT_MAX])
{
    snprintf(ret_text, AGENT_CLAIM_TEXT_MAX, "%s=%s", claim->driver, claim->agent);
}

/* ---- whether ---- */

static const json_t *lists_claim(const json_t *container)
{
    const json_t *claims = json_object_get(json_object_get(container, "resources"), "claims");
    return value_find(claims, "name", POD_MERGE_CLAIM);
}

static bool fits(const struct spec_role *role)
{
    static const char *const lists[] = {"containers", "initContainers"};
    const json_t *pod = spec_role_pod(role), *container;
    if (!claims_wanted_by(role) || spec_role_wants_bench(role)) /* a claim brings the agent alone */
        return false;
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        size_t i;
        json_array_foreach(json_object_get(pod, lists[l]), i, container)
        {
            const json_t *claim = lists_claim(container);
            if (claim && (l > 0 || i > 0 || json_object_get(claim, "request")))
                return false;
        }
    }
    return true;
}

bool agent_claim_fits(const struct job_spec *spec)
{
    return spec->role_count == 1 && fits(&spec->roles[0]);
}

static bool names_us(const json_t *class)
{
    const json_t *selector;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(class, "spec"), "selectors"), i, selector)
    {
        const char *text =
            json_string_value(json_object_get(json_object_get(selector, "cel"), "expression"));
        if (text && (strstr(text, GPU_DRIVER) || strstr(text, NIC_DRIVER)))
            return true;
    }
    return false;
}

static bool wants_class(const struct spec_devices *devices, const char *name)
{
    bool wanted = devices->class && strcmp(devices->class, name) == 0;
    for (size_t i = 0; i < devices->choice_count; i++)
        wanted |= strcmp(devices->choices[i].class, name) == 0;
    return wanted;
}

bool agent_claim_concerns(const struct job_spec *spec, const json_t *classes)
{
    const json_t *class;
    size_t i;
    json_array_foreach(classes, i, class)
    {
        const char *name =
            json_string_value(json_object_get(json_object_get(class, "metadata"), "name"));
        for (uint32_t r = 0; name && r < spec->role_count; r++)
            if ((wants_class(&spec->roles[r].gpus, name) ||
                 wants_class(&spec->roles[r].nics, name)) &&
                names_us(class))
                return true;
    }
    return false;
}

/* ---- which ---- */

struct survey {
    struct agent_claim found; /* of the first device */
    const char *node;         /* of that one */
    size_t devices;
    bool any, mixed;
    struct buf why;
};

static void on_device(const struct slice_device *device, void *arg)
{
    struct survey *s = arg;
    const char *agent = json_string_value(
        json_object_get(json_object_get(device->attributes, AGENT_OFFER_ATTRIBUTE), "string"));
    const char *node = device->node ? device->node : device->pool;
    if (!is_ours(device->driver) || !agent || !agent_offer_valid(agent))
        agent = "";
    s->any |= *agent;
    if (s->devices++ == 0) {
        snprintf(s->found.driver, sizeof s->found.driver, "%s", device->driver);
        snprintf(s->found.agent, sizeof s->found.agent, "%s", agent);
        s->node = node;
    } else if (!s->mixed && (strcmp(agent, s->found.agent) != 0 ||
                             strcmp(device->driver, s->found.driver) != 0)) {
        s->mixed = true;
        buf_printf(&s->why, "%s of node %s brings %s, %s of node %s %s", s->found.driver, s->node,
                   s->found.agent[0] ? s->found.agent : "none", device->driver, node,
                   *agent ? agent : "none");
    }
}

/* why: set where a node offers something that is not enough. */
static bool survey(const struct spec_role *role, const struct predict_cluster *cluster,
                   const char *kind, unsigned major, struct agent_claim *ret_claim, struct buf *why)
{
    char speaks[16];
    struct survey s = {.why = BUF_INIT};
    CLEANUP(json_decrefp) json_t *claim = NULL;
    int rc = claims_spec(role, CLAIMS_API_V1, claims_attempts_of(role) - 1, &claim, NULL);
    if (rc == 0)
        rc = predict_devices(claim, cluster, kind, on_device, &s, NULL);
    int length = snprintf(speaks, sizeof speaks, "v%u-", major);
    bool spoken = strncmp(s.found.agent, speaks, (size_t)length) == 0;
    bool found = rc == 0 && s.devices > 0 && !s.mixed && spoken;
    if (rc == 0 && s.any && !found) {
        buf_reset(why);
        if (s.mixed)
            buf_add(why, s.why.data, s.why.len);
        else
            buf_printf(why,
                       "the nodes bring %s, and this release speaks version %u of the protocol",
                       s.found.agent, major);
    }
    buf_done(&s.why);
    if (found)
        *ret_claim = s.found;
    return found;
}

bool agent_claim_find(const struct job_spec *spec, const struct slices *slices,
                      const json_t *classes, unsigned major, struct agent_claim *ret_claim,
                      struct buf *why)
{
    const struct predict_cluster cluster = {.slices = slices, .classes = classes};
    const struct spec_role *role = &spec->roles[0];
    const struct spec_devices *const kinds[] = {&role->nics, &role->gpus};
    static const char *const names[] = {"nic", "gpu"};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i]->class && survey(role, &cluster, names[i], major, ret_claim, why))
            return true;
    return false;
}

/* ---- the claim ---- */

static bool mounts_shm(const struct spec_role *role)
{
    const json_t *mounts = json_object_get(spec_role_container(role), "volumeMounts");
    return value_find(mounts, "mountPath", "/dev/shm") != NULL;
}

/* Keys in their order: 010. */
static json_t *configuration(const struct agent_claim *claim, const struct spec_role *role,
                             json_t *requests)
{
    json_t *parameters = json_pack("{s:s, s:s, s:s, s:o*}", "agent", claim->agent, "apiVersion",
                                   AGENT_OFFER_API, "kind", AGENT_OFFER_KIND, "sharedMemory",
                                   mounts_shm(role) ? NULL : json_object());
    return json_pack("{s:O, s:{s:s, s:o}}", "requests", requests, "opaque", "driver", claim->driver,
                     "parameters", parameters);
}

static int add_selector(json_t *fields, const struct agent_claim *claim)
{
    json_t *list = json_object_get(fields, "selectors");
    if (!list && json_object_set_new(fields, "selectors", list = json_array()) < 0)
        return -1;
    return json_array_append_new(
        list, json_pack("{s:{s:o}}", "cel", "expression",
                        json_sprintf("device.attributes[\"drarun.dev\"].?agent.orValue(\"\") == "
                                     "\"%s\"",
                                     claim->agent)));
}

/* Of alternatives each has selectors, and the request itself has none. */
static int select_offer(json_t *request, const struct agent_claim *claim)
{
    json_t *exactly = json_object_get(request, "exactly"), *choice;
    json_t *choices = json_object_get(request, "firstAvailable");
    int rc = choices ? 0 : add_selector(exactly ? exactly : request, claim); /* v1beta1 */
    size_t i;
    json_array_foreach(choices, i, choice)
    {
        if (rc == 0)
            rc = add_selector(choice, claim);
    }
    return rc;
}

int agent_claim_add(const struct agent_claim *claim, const struct spec_role *role,
                    json_t *claim_spec, struct drarun_error *err)
{
    const char *kind = strcmp(claim->driver, GPU_DRIVER) == 0 ? "gpu" : "nic";
    json_t *devices = json_object_get(claim_spec, "devices"), *request;
    CLEANUP(json_decrefp) json_t *names = json_array();
    int rc = names ? 0 : -1;
    size_t i;
    json_array_foreach(json_object_get(devices, "requests"), i, request)
    {
        json_t *name = json_object_get(request, "name");
        if (rc == 0 && strncmp(json_string_value(name), kind, strlen(kind)) == 0)
            rc = select_offer(request, claim) | json_array_append(names, name);
    }
    if (rc == 0 && json_array_size(names) == 0)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "agent by the claim: the job claims no %s, which %s would bring it with",
                          strcmp(kind, "gpu") == 0 ? "GPUs" : "NICs", claim->driver);
    json_t *list = json_object_get(devices, "config");
    if (rc == 0 && !list)
        rc = json_object_set_new(devices, "config", list = json_array());
    if (rc == 0)
        rc = json_array_append_new(list, configuration(claim, role, names));
    return rc < 0 ? error_set(err, ENOMEM, "claim: out of memory") : 0;
}
