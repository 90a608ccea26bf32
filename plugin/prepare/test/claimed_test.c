/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "plugin/prepare/claimed.h"

#define DRIVER "nic.drarun.dev"

/* A claim of two NICs and somebody else's GPU; the parts that a case leaves out are NULL. */
static json_t *claim_of(const char *allocation, const char *reserved)
{
    json_error_t where;
    json_t *claim = json_pack("{s:{s:s, s:s, s:s}, s:{}}", "metadata", "namespace", "train", "name",
                              "job-w-0", "uid", "u-1", "status");
    json_t *status = json_object_get(claim, "status");
    if (allocation)
        json_object_set_new(status, "allocation", json_loads(allocation, 0, &where));
    if (reserved)
        json_object_set_new(status, "reservedFor", json_loads(reserved, 0, &where));
    return claim;
}

#define RESULT(request, driver, pool, device)                                                      \
    "{\"request\":\"" request "\",\"driver\":\"" driver "\",\"pool\":\"" pool                      \
    "\",\"device\":\"" device "\"}"
#define NICS                                                                                       \
    RESULT("gpu", "gpu.nvidia.com", "other", "gpu-0")                                              \
    "," RESULT("nic", DRIVER, "n0", "a") "," RESULT("nic/fast", DRIVER, "n0", "b")
#define PODS "[{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"pu\"}]"

static void results_of_the_driver_alone(void **state)
{
    (void)state;
    struct claimed claimed = {0};
    struct drarun_error err = {0};
    json_t *claim = claim_of("{\"devices\":{\"results\":[" NICS "]}}", PODS);
    assert_int_equal(claimed_read(claim, "u-1", DRIVER, "n0", &claimed, &err), 0);
    assert_int_equal(claimed.count, 2);
    assert_string_equal(claimed.devices[0].device, "a");
    assert_string_equal(claimed.devices[1].request, "nic/fast");
    assert_null(claimed.devices[0].config);
    assert_string_equal(claimed.pod, "p");
    assert_string_equal(claimed.pod_uid, "pu");
    claimed_done(&claimed);
    json_decref(claim);
}

/* A claim that pods share is reserved for each, and for one that has ended a while longer. */
static void any_of_its_pods(void **state)
{
    (void)state;
    struct claimed claimed = {0};
    json_t *claim =
        claim_of("{\"devices\":{\"results\":[" NICS "]}}",
                 "[{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"pu\"},"
                 "{\"apiGroup\":\"x\",\"resource\":\"pods\",\"name\":\"o\",\"uid\":\"ou\"},"
                 "{\"resource\":\"pods\",\"name\":\"q\",\"uid\":\"qu\"}]");
    assert_int_equal(claimed_read(claim, "u-1", DRIVER, "n0", &claimed, NULL), 0);
    assert_string_equal(claimed.pod, "p");
    assert_true(claimed_take_pod(&claimed, claim, 1));
    assert_string_equal(claimed.pod, "q");
    assert_string_equal(claimed.pod_uid, "qu");
    assert_false(claimed_take_pod(&claimed, claim, 2));
    assert_string_equal(claimed.pod, "q");
    claimed_done(&claimed);
    json_decref(claim);
}

static const char *is_of(const json_t *config)
{
    return json_string_value(json_object_get(config, "is"));
}

static void the_last_configuration_of_a_source_counts(void **state)
{
    (void)state;
    struct claimed claimed = {0};
    json_t *claim = claim_of(
        "{\"devices\":{\"results\":[" NICS "],\"config\":["
        "{\"source\":\"FromClass\",\"opaque\":{\"driver\":\"" DRIVER
        "\",\"parameters\":{\"is\":\"first\"}}},"
        "{\"source\":\"FromClass\",\"opaque\":{\"driver\":\"" DRIVER
        "\",\"parameters\":{\"is\":\"class\"}}},"
        "{\"source\":\"FromClaim\",\"requests\":[\"nic/fast\"],\"opaque\":{\"driver\":\"" DRIVER
        "\",\"parameters\":{\"is\":\"sub\"}}},"
        "{\"source\":\"FromClaim\",\"requests\":[\"gpu\"],\"opaque\":{\"driver\":\"" DRIVER
        "\",\"parameters\":{\"is\":\"not ours\"}}},"
        "{\"source\":\"FromClaim\",\"opaque\":{\"driver\":\"gpu.nvidia.com\","
        "\"parameters\":{\"is\":\"other\"}}}]}}",
        PODS);
    assert_int_equal(claimed_read(claim, "u-1", DRIVER, "n0", &claimed, NULL), 0);
    assert_string_equal(is_of(claimed.devices[0].of_class), "class");
    assert_null(claimed.devices[0].config);
    assert_string_equal(is_of(claimed.devices[1].of_class), "class");
    assert_string_equal(is_of(claimed.devices[1].config), "sub");
    claimed_done(&claimed);
    json_decref(claim);
}

static void what_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *uid, *allocation, *reserved;
        int code;
        const char *says;
    } table[] = {
        {"u-2", "{\"devices\":{\"results\":[" NICS "]}}", PODS, ESTALE,
         "another one by now, of UID u-1"},
        {"u-1", NULL, PODS, EAGAIN, "it is not allocated"},
        {"u-1", "{\"devices\":{\"results\":[" NICS "]}}", NULL, EAGAIN, "reserved for no pod"},
        {"u-1", "{\"devices\":{\"results\":[" NICS "]}}",
         "[{\"apiGroup\":\"x\",\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"pu\"}]", EAGAIN,
         "reserved for no pod"},
        {"u-1", "{\"devices\":{\"results\":[" RESULT("nic", DRIVER, "n1", "a") "]}}", PODS, EINVAL,
         "device a is of pool n1, and this node has pool n0"},
        {"u-1", "{\"devices\":{\"results\":[" RESULT("gpu", "x", "n0", "a") "]}}", PODS, EINVAL,
         "no device of driver nic.drarun.dev"},
        {"u-1", "{\"devices\":{\"results\":[{\"driver\":\"" DRIVER "\"}]}}", PODS, EINVAL,
         "without request"},
        {"u-1", "{\"devices\":{\"results\":[" RESULT("../../etc/x", DRIVER, "n0", "a") "]}}", PODS,
         EINVAL, "\"../../etc/x\", which is no name of a request"},
        {"u-1", "{\"devices\":{\"results\":[" RESULT("nic/../x", DRIVER, "n0", "a") "]}}", PODS,
         EINVAL, "no name of a request"},
        {"u-1", "{\"devices\":{\"results\":[" RESULT("nic/", DRIVER, "n0", "a") "]}}", PODS, EINVAL,
         "no name of a request"},
        {"u-1", "{\"devices\":{\"results\":[" RESULT("a\\nb", DRIVER, "n0", "a") "]}}", PODS,
         EINVAL, "no name of a request"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct claimed claimed = {0};
        struct drarun_error err = {0};
        json_t *claim = claim_of(table[i].allocation, table[i].reserved);
        assert_int_equal(claimed_read(claim, table[i].uid, DRIVER, "n0", &claimed, &err),
                         -table[i].code);
        assert_non_null(strstr(err.text, table[i].says));
        assert_non_null(strstr(err.text, "claim train/job-w-0: "));
        assert_null(claimed.devices);
        json_decref(claim);
    }
}

static void what_is_no_claim(void **state)
{
    (void)state;
    struct claimed claimed = {0};
    json_t *nothing = json_object();
    assert_int_equal(claimed_read(NULL, "u", DRIVER, "n0", &claimed, NULL), -EINVAL);
    assert_int_equal(claimed_read(nothing, "u", DRIVER, "n0", &claimed, NULL), -EINVAL);
    json_decref(nothing);
}

/* ---- the pod ---- */

#define POD(node, uid, spec, status)                                                               \
    "{\"metadata\":{\"name\":\"p\",\"uid\":\"" uid "\"},\"spec\":{\"nodeName\":\"" node "\"" spec  \
    "},\"status\":{" status "}}"
#define NAMED ",\"resourceClaims\":[{\"name\":\"nics\",\"resourceClaimName\":\"job-w-0\"}]"
#define CONTAINER(claims) "{\"name\":\"c\",\"resources\":{\"claims\":[" claims "]}}"

static void a_container_must_list_the_claim(void **state)
{
    (void)state;
    static const struct {
        const char *pod;
        int code;
        const char *says;
    } table[] = {
        {POD("n0", "pu", NAMED ",\"containers\":[" CONTAINER("{\"name\":\"nics\"}") "]", ""), 0,
         ""},
        {POD("n0", "pu",
             NAMED ",\"containers\":[" CONTAINER("") "],\"initContainers\":[" CONTAINER(
                 "{\"name\":\"nics\",\"request\":\"nic\"}") "]",
             ""),
         0, ""},
        {POD("n0", "pu",
             ",\"resourceClaims\":[{\"name\":\"t\",\"resourceClaimTemplateName\":\"x\"}],"
             "\"containers\":[" CONTAINER("{\"name\":\"t\"}") "]",
             "\"resourceClaimStatuses\":[{\"name\":\"t\",\"resourceClaimName\":\"job-w-0\"}]"),
         0, ""},
        {POD("n0", "pu", "", "\"extendedResourceClaimStatus\":{\"resourceClaimName\":\"job-w-0\"}"),
         0, ""},
        {POD("n0", "pu", NAMED ",\"containers\":[" CONTAINER("") "]", ""), EINVAL,
         "add to the container: resources: {claims: [{name: nics}]}"},
        {POD("n0", "pu",
             NAMED ",\"containers\":[" CONTAINER("{\"name\":\"nics\",\"request\":\"gpu\"}") "]",
             ""),
         EINVAL, "lists request nic of claim job-w-0"},
        {POD("n0", "pu", ",\"containers\":[" CONTAINER("{\"name\":\"nics\"}") "]", ""), EINVAL,
         "does not name claim job-w-0"},
        {POD("n0", "pu",
             NAMED ",\"hostNetwork\":true,\"hostUsers\":false,\"containers\":[" CONTAINER(
                 "{\"name\":\"nics\"}") "]",
             ""),
         0, ""},
        {POD("n1", "pu", NAMED, ""), EINVAL, "is on node n1, not on n0"},
        {POD("n0", "other", NAMED, ""), ESTALE, "another one by now"},
        {"{}", ESTALE, "another one by now"},
    };
    struct claimed claimed = {0};
    json_t *claim = claim_of("{\"devices\":{\"results\":[" NICS "]}}", PODS);
    assert_int_equal(claimed_read(claim, "u-1", DRIVER, "n0", &claimed, NULL), 0);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct drarun_error err = {0};
        json_error_t where;
        json_t *pod = json_loads(table[i].pod, 0, &where);
        assert_non_null(pod);
        assert_int_equal(claimed_check_pod(&claimed, pod, "n0", &err), -table[i].code);
        assert_non_null(strstr(err.text, table[i].says));
        assert_int_equal(claimed.host_network, strstr(table[i].pod, "hostNetwork") != NULL);
        assert_int_equal(claimed.user_namespace, strstr(table[i].pod, "hostUsers") != NULL);
        json_decref(pod);
    }
    claimed_done(&claimed);
    json_decref(claim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_of_the_driver_alone),
        cmocka_unit_test(any_of_its_pods),
        cmocka_unit_test(the_last_configuration_of_a_source_counts),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(what_is_no_claim),
        cmocka_unit_test(a_container_must_list_the_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
