/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/manifests/agent_claim.h"
#include "jobs/manifests/render.h"
#include "lib/base/cleanup.h"

#define CONTAINER "{\"name\":\"main\",\"image\":\"i\",\"command\":[\"c\"]"

static struct job_spec job(const char *template)
{
    struct spec_role *role = calloc(1, sizeof *role);
    assert_non_null(role);
    *role = (struct spec_role){
        .workers = 2,
        .gpus = {.count = 2, .class = "gpu.drarun.dev"},
        .nics = {.count = 2, .class = "rdma.drarun.dev"},
        .align = SPEC_ALIGN_PREFERRED,
        .nccl_profile = "auto",
        .template = json_loads(template, 0, NULL),
    };
    assert_non_null(role->template);
    return (struct job_spec){
        .name = "job",
        .workers = 2,
        .roles = role,
        .role_count = 1,
        .claims = SPEC_CLAIMS_DIRECT,
        .document = json_object(),
        .ttl_after_finished = -1,
    };
}

static void done(struct job_spec *spec)
{
    json_decref(spec->roles[0].template);
    free(spec->roles);
    json_decref(spec->document);
}

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    if (!json)
        fail_msg("%s: %s", error.text, text);
    return json;
}

static json_t *classes(void)
{
    return parse("[{\"metadata\":{\"name\":\"gpu.drarun.dev\"},\"spec\":{\"selectors\":[{\"cel\":{"
                 "\"expression\":\"device.driver == 'gpu.drarun.dev'\"}}]}},"
                 "{\"metadata\":{\"name\":\"rdma.drarun.dev\"},\"spec\":{\"selectors\":[{\"cel\":{"
                 "\"expression\":\"device.driver == 'nic.drarun.dev'\"}}]}},"
                 "{\"metadata\":{\"name\":\"any\"},\"spec\":{\"selectors\":[{\"cel\":{"
                 "\"expression\":\"device.driver.endsWith('.dev') || device.driver == "
                 "'nic.drarun.dev'\"}}]}},"
                 "{\"metadata\":{\"name\":\"other\"},\"spec\":{\"selectors\":[{\"cel\":{"
                 "\"expression\":\"device.driver == 'dra.net'\"}}]}}]");
}

/* A slice of one device; agent NULL: without the attribute. */
static json_t *slice(const char *driver, const char *node, const char *agent)
{
    json_t *attributes = json_object();
    if (agent)
        json_object_set_new(attributes, "drarun.dev/agent", json_pack("{s:s}", "string", agent));
    return json_pack("{s:s, s:s, s:{s:o}, s:{s:s, s:s, s:{s:s, s:i, s:i}, s:[{s:s, s:o}]}}",
                     "apiVersion", "resource.k8s.io/v1", "kind", "ResourceSlice", "metadata",
                     "name", json_sprintf("%s-%s", node, driver), "spec", "driver", driver,
                     "nodeName", node, "pool", "name", node, "generation", 1, "resourceSliceCount",
                     1, "devices", "name", "d", "attributes", attributes);
}

static void the_offer_of_all_nodes_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *nics, *gpus; /* the classes */
        const char *offers[3];   /* by nic of n0, nic of n1, gpu of n0: "-": no slice */
        const char *driver, *says;
    } cases[] = {
        {"rdma.drarun.dev", NULL, {"v1-a", "v1-a", "-"}, "nic.drarun.dev", ""},
        {"rdma.drarun.dev", NULL, {"v1-a", "-", "-"}, "nic.drarun.dev", ""},
        {"rdma.drarun.dev", NULL, {"-", "-", "-"}, NULL, ""},
        {"rdma.drarun.dev", NULL, {NULL, NULL, "v1-a"}, NULL, ""},
        {"rdma.drarun.dev", NULL, {"v1-a", NULL, "-"}, NULL, "node n1 none"},
        {"rdma.drarun.dev", NULL, {"v1-a", "v1-b", "-"}, NULL, "node n1 v1-b"},
        {"rdma.drarun.dev", NULL, {"v2-a", "v2-a", "-"}, NULL, "speaks version 1"},
        {"rdma.drarun.dev", NULL, {"v11-a", "v11-a", "-"}, NULL, "speaks version 1"},
        {"rdma.drarun.dev", NULL, {"no/path", "no/path", "-"}, NULL, ""},
        {"rdma.drarun.dev", "gpu.drarun.dev", {"v1-a", NULL, "v1-a"}, "gpu.drarun.dev", ""},
        {NULL, "gpu.drarun.dev", {"-", "-", "v1-a"}, "gpu.drarun.dev", ""},
        {"any", NULL, {"v1-a", "v1-a", "v1-a"}, NULL, "gpu.drarun.dev of node n0"},
    };
    static const char *const drivers[] = {"nic.drarun.dev", "nic.drarun.dev", "gpu.drarun.dev"};
    static const char *const nodes[] = {"n0", "n1", "n0"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job_spec spec = job("{\"spec\":{\"containers\":[" CONTAINER "}]}}");
        struct agent_claim found = {0};
        struct slices slices = {0};
        struct buf why = BUF_INIT;
        json_t *list = json_array(), *of = classes();
        spec.roles[0].nics =
            (struct spec_devices){.count = cases[i].nics ? 1 : 0, .class = cases[i].nics};
        spec.roles[0].gpus =
            (struct spec_devices){.count = cases[i].gpus ? 1 : 0, .class = cases[i].gpus};
        for (size_t s = 0; s < 3; s++)
            if (!cases[i].offers[s] || strcmp(cases[i].offers[s], "-") != 0)
                json_array_append_new(list, slice(drivers[s], nodes[s], cases[i].offers[s]));
        assert_int_equal(slices_read(list, &slices, NULL), 0);
        bool yes = agent_claim_find(&spec, &slices, of, 1, &found, &why);
        if (yes != (cases[i].driver != NULL) || !strstr(why.data ? why.data : "", cases[i].says))
            fail_msg("case %zu: %d, %s", i, yes, why.data ? why.data : "");
        if (yes)
            assert_string_equal(found.driver, cases[i].driver);
        buf_done(&why);
        slices_done(&slices);
        json_decref(list);
        json_decref(of);
        done(&spec);
    }
}

static void slices_are_read_for_classes_of_ours_alone(void **state)
{
    (void)state;
    struct job_spec spec = job("{\"spec\":{\"containers\":[" CONTAINER "}]}}");
    json_t *of = classes();
    assert_true(agent_claim_concerns(&spec, of));
    spec.roles[0].nics.class = "other";
    spec.roles[0].gpus.class = "other";
    assert_false(agent_claim_concerns(&spec, of));
    assert_false(agent_claim_concerns(&spec, NULL));
    json_decref(of);
    done(&spec);
}

static void a_claim_that_others_list_cannot_bring_it(void **state)
{
    (void)state;
#define LISTS(more) ",\"resources\":{\"claims\":[{\"name\":\"devices\"" more "}]}}"
    static const struct {
        const char *template;
        bool fits;
    } cases[] = {
        {"{\"spec\":{\"containers\":[" CONTAINER "}]}}", true},
        {"{\"spec\":{\"containers\":[" CONTAINER LISTS("") "]}}", true},
        {"{\"spec\":{\"containers\":[" CONTAINER "},{\"name\":\"b\"}]}}", true},
        {"{\"spec\":{\"containers\":[" CONTAINER LISTS(",\"request\":\"gpu\"") "]}}", false},
        {"{\"spec\":{\"containers\":[" CONTAINER "},{\"name\":\"b\"" LISTS("") "]}}", false},
        {"{\"spec\":{\"containers\":[" CONTAINER
         "}],\"initContainers\":[{\"name\":\"b\"" LISTS("") "]}}",
         false},
        {"{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\",\"command\":[\"sh\",\"-c\","
         "\"exec " SPEC_BENCH " all_reduce\"]}]}}",
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job_spec spec = job(cases[i].template);
        assert_int_equal(agent_claim_fits(&spec), cases[i].fits);
        done(&spec);
    }
}

/* The rendered claim or template, and the pod's spec. */
static void rendered(const struct job_spec *spec, const struct render_options *options,
                     json_t **ret_claim, json_t **ret_pod)
{
    json_t *list = NULL, *object;
    size_t i;
    *ret_claim = *ret_pod = NULL;
    assert_int_equal(render_job(spec, options, &list, NULL), 0);
    json_array_foreach(list, i, object)
    {
        const char *kind = json_string_value(json_object_get(object, "kind"));
        json_t *inner = json_object_get(object, "spec");
        if (strcmp(kind, "ResourceClaim") == 0)
            *ret_claim = inner;
        else if (strcmp(kind, "ResourceClaimTemplate") == 0)
            *ret_claim = json_object_get(inner, "spec");
        else if (strcmp(kind, "Pod") == 0)
            *ret_pod = inner;
        else if (strcmp(kind, "Job") == 0 && json_object_get(inner, "completions"))
            *ret_pod = json_object_get(json_object_get(inner, "template"), "spec");
    }
    json_incref(*ret_claim);
    json_incref(*ret_pod);
    json_decref(list);
}

static void pods_have_neither_init_container_nor_volume(void **state)
{
    (void)state;
    const struct agent_claim agent = {"nic.drarun.dev", "v1-pmix-5.0.7"};
    static const enum spec_claims modes[] = {SPEC_CLAIMS_DIRECT, SPEC_CLAIMS_TEMPLATE};
    static const enum claims_api apis[] = {CLAIMS_API_V1, CLAIMS_API_V1BETA1};
    for (size_t mode = 0; mode < 2; mode++)
        for (size_t a = 0; a < 2; a++) {
            struct render_options options = {.api = apis[a], .attempt = 1, .agent = &agent};
            struct job_spec spec = job("{\"spec\":{\"containers\":[" CONTAINER "}]}}");
            json_t *claim = NULL, *pod = NULL;
            spec.claims = modes[mode];
            rendered(&spec, &options, &claim, &pod);
            assert_null(json_object_get(pod, "initContainers"));
            assert_null(json_object_get(pod, "volumes"));
            json_t *first = json_array_get(json_object_get(pod, "containers"), 0);
            assert_null(json_object_get(first, "volumeMounts"));
            assert_string_equal(
                json_string_value(json_array_get(json_object_get(first, "command"), 0)),
                AGENT_OFFER_PROGRAM);
            cleanup_free char *text = json_dumps(claim, JSON_COMPACT);
            assert_non_null(strstr(
                text, "\"config\":[{\"requests\":[\"nic-0\",\"nic-1\"],\"opaque\":{\"driver\":"
                      "\"nic.drarun.dev\",\"parameters\":{\"agent\":\"v1-pmix-5.0.7\","
                      "\"apiVersion\":\"drarun.dev/v1alpha1\",\"kind\":\"WorkerAgent\","
                      "\"sharedMemory\":{}}}}]"));
            size_t selectors = 0;
            for (const char *t = text; (t = strstr(t, ".?agent.orValue(")); t++)
                selectors++;
            assert_int_equal(selectors, 2); /* of the NICs */
            json_decref(claim);
            json_decref(pod);
            done(&spec);
        }
}

/* The API server knows no selectors beside firstAvailable. */
static void each_alternative_selects_the_offer(void **state)
{
    (void)state;
    const struct agent_claim agent = {"nic.drarun.dev", "v1-a"};
    static const enum claims_api apis[] = {CLAIMS_API_V1, CLAIMS_API_V1BETA2, CLAIMS_API_V1BETA1};
    struct spec_choice choices[] = {{.class = "rdma.drarun.dev"}, {.class = "any"}};
    struct job_spec spec = job("{\"spec\":{\"containers\":[" CONTAINER "}]}}");
    spec.roles[0].gpus = (struct spec_devices){0};
    spec.roles[0].nics = (struct spec_devices){
        .count = 1, .class = "rdma.drarun.dev", .choices = choices, .choice_count = 2};
    for (size_t a = 0; a < sizeof apis / sizeof *apis; a++) {
        json_t *claim = NULL;
        assert_int_equal(claims_spec(&spec.roles[0], apis[a], 0, &claim, NULL), 0);
        assert_int_equal(agent_claim_add(&agent, &spec.roles[0], claim, NULL), 0);
        json_t *devices = json_object_get(claim, "devices");
        json_t *request = json_array_get(json_object_get(devices, "requests"), 0);
        json_t *list = json_object_get(request, "firstAvailable");
        assert_int_equal(json_object_size(request), 2); /* and its name */
        assert_int_equal(json_array_size(list), 2);
        for (size_t i = 0; i < 2; i++) {
            const json_t *selectors = json_object_get(json_array_get(list, i), "selectors");
            assert_int_equal(json_array_size(selectors), 1);
        }
        assert_int_equal(json_array_size(json_object_get(devices, "config")), 1);
        json_decref(claim);
    }
    done(&spec);
}

static void what_the_user_mounts_at_dev_shm_stays(void **state)
{
    (void)state;
    const struct agent_claim agent = {"gpu.drarun.dev", "v1-a"};
    const struct render_options options = {.api = CLAIMS_API_V1, .attempt = 1, .agent = &agent};
    struct job_spec spec =
        job("{\"spec\":{\"containers\":[" CONTAINER
            ",\"volumeMounts\":[{\"name\":\"s\",\"mountPath\":\"/dev/shm\"}]}],\"volumes\":[{"
            "\"name\":\"s\",\"emptyDir\":{}}]}}");
    json_t *claim = NULL, *pod = NULL;
    rendered(&spec, &options, &claim, &pod);
    cleanup_free char *text = json_dumps(claim, JSON_COMPACT);
    assert_null(strstr(text, "sharedMemory"));
    assert_int_equal(json_array_size(json_object_get(pod, "volumes")), 1);
    json_decref(claim);
    json_decref(pod);
    done(&spec);
}

static void as_a_text(void **state)
{
    (void)state;
    struct agent_claim claim = {0};
    struct drarun_error err = {0};
    char text[AGENT_CLAIM_TEXT_MAX];
    static const char *const bad[] = {
        "",     "x", "nic.drarun.dev", "dra.net=v1-a", "nic.drarun.dev=", "nic.drarun.dev=a/b",
        "=v1-a"};
    assert_int_equal(agent_claim_parse("gpu.drarun.dev=v1-a", &claim, NULL), 0);
    agent_claim_text(&claim, text);
    assert_string_equal(text, "gpu.drarun.dev=v1-a");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(agent_claim_parse(bad[i], &claim, &err), -EINVAL);
    assert_non_null(strstr(err.text, "expected DRIVER=AGENT"));
    struct job_spec spec = job("{\"spec\":{\"containers\":[" CONTAINER "}]}}");
    json_t *of = NULL;
    spec.roles[0].gpus = (struct spec_devices){0};
    assert_int_equal(claims_spec(&spec.roles[0], CLAIMS_API_V1, 0, &of, NULL), 0);
    assert_int_equal(agent_claim_add(&claim, &spec.roles[0], of, &err), -EINVAL);
    assert_non_null(strstr(err.text, "claims no GPUs"));
    json_decref(of);
    done(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_offer_of_all_nodes_is_found),
        cmocka_unit_test(slices_are_read_for_classes_of_ours_alone),
        cmocka_unit_test(a_claim_that_others_list_cannot_bring_it),
        cmocka_unit_test(pods_have_neither_init_container_nor_volume),
        cmocka_unit_test(each_alternative_selects_the_offer),
        cmocka_unit_test(what_the_user_mounts_at_dev_shm_stays),
        cmocka_unit_test(as_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
