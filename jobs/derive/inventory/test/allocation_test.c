/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what the API server and the drivers wrote: slices, devices, allocations, probes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/derive/inventory/allocation.h"
#include "jobs/derive/inventory/device.h"
#include "jobs/derive/inventory/probe.h"
#include "lib/dra/slices.h"

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, JSON_DECODE_ANY, &error);
    if (!json)
        fail_msg("%s: %s", error.text, text);
    return json;
}

#define SLICE(name, generation, count, devices)                                                    \
    "{\"kind\": \"ResourceSlice\", \"metadata\": {\"name\": \"" name "\"}, \"spec\": "             \
    "{\"driver\": \"dra.net\", \"nodeName\": \"n\", \"pool\": {\"name\": \"n\", "                  \
    "\"generation\": " generation ", \"resourceSliceCount\": " count "}, \"devices\": [" devices   \
    "]}}"
#define NIC(name, numa)                                                                            \
    "{\"name\": \"" name "\", \"attributes\": {\"dra.net/rdma\": {\"bool\": true}, "               \
    "\"dra.net/numaNode\": {\"int\": " numa "}}}"

static void newest_generation_wins(void **unused)
{
    struct slices slices;
    size_t count = 0;
    (void)unused;
    json_t *document =
        parse("[" SLICE("old", "1", "1", NIC("a", "0") "," NIC("gone", "0")) "," SLICE(
            "new-1", "2", "3", NIC("a", "1")) "," SLICE("new-2", "2", "3", NIC("b", "1")) "]");
    assert_int_equal(slices_read(document, &slices, NULL), 0);
    assert_null(slices_find(&slices, "dra.net", "n", "gone"));
    assert_non_null(slices_find(&slices, "dra.net", "n", "b"));
    struct device device;
    assert_int_equal(device_read(slices_find(&slices, "dra.net", "n", "a"), &device, NULL), 0);
    assert_int_equal(device.numa, 1);
    const struct slice_pool *pool = slices_pool(&slices, "dra.net", "n");
    assert_int_equal(pool->generation, 2);
    assert_true(slice_pool_incomplete(pool)); /* 2 of 3 */
    slices_of_node(&slices, "n", &count);
    assert_int_equal(count, 2);
    slices_of_node(&slices, "other", &count);
    assert_int_equal(count, 0);
    slices_done(&slices);
    json_decref(document);
}

#define POOL(pool, devices)                                                                        \
    "{\"kind\": \"ResourceSlice\", \"metadata\": {\"name\": \"" pool                               \
    "\"}, \"spec\": {\"driver\": \"dra.net\", \"pool\": {\"name\": \"" pool                        \
    "\", \"generation\": 1, \"resourceSliceCount\": 1}, \"devices\": [" devices "]}}"
#define BARE_NIC(name) "{\"name\": \"" name "\"}"

/* A driver takes attributes back while a pod has the NIC; nodes and devices come, and nodes go. */
static void slices_of_two_times(void **unused)
{
    struct slices earlier, later, joined;
    (void)unused;
    struct device device;
    json_t *before = parse("[" POOL("kept", NIC("a", "1")) "," POOL("gone", NIC("a", "1")) "," POOL(
        "grown", NIC("a", "1") "," NIC("c", "1") "," NIC("d", "1")) "]");
    json_t *after = parse("[" POOL("kept", BARE_NIC("a")) "," POOL(
        "grown", BARE_NIC("a") "," BARE_NIC("b") "," NIC("d", "2")) "," POOL("new",
                                                                             NIC("a", "1")) "]");
    assert_int_equal(slices_read(before, &earlier, NULL), 0);
    assert_int_equal(slices_read(after, &later, NULL), 0);
    json_t *document = slices_join(&earlier, &later);
    slices_done(&earlier);
    slices_done(&later);
    json_decref(before);
    json_decref(after);
    assert_int_equal(slices_read(document, &joined, NULL), 0);
    assert_int_equal(joined.device_count, 7);
    assert_non_null(slices_find(&joined, "dra.net", "kept", "a")->attributes);
    assert_non_null(slices_find(&joined, "dra.net", "gone", "a")->attributes);
    assert_non_null(slices_find(&joined, "dra.net", "grown", "a")->attributes);
    assert_null(slices_find(&joined, "dra.net", "grown", "b")->attributes);
    assert_non_null(slices_find(&joined, "dra.net", "grown", "c")->attributes);
    assert_int_equal(device_read(slices_find(&joined, "dra.net", "grown", "d"), &device, NULL), 0);
    assert_int_equal(device.numa, 2); /* it is another one now */
    assert_false(slice_pool_incomplete(slices_pool(&joined, "dra.net", "grown")));
    assert_non_null(slices_find(&joined, "dra.net", "new", "a")->attributes);
    slices_done(&joined);
    json_decref(document);
}

/* The later slices are of two generations, since the driver is writing the new ones. */
static void slices_of_a_pool_that_is_written(void **unused)
{
    struct slices earlier, later, joined;
    (void)unused;
    json_t *before = parse("[" SLICE("old", "1", "1", NIC("a", "1")) "]");
    json_t *after = parse(
        "[" SLICE("old", "1", "1", BARE_NIC("a")) "," SLICE("new", "2", "2", NIC("b", "1")) "]");
    assert_int_equal(slices_read(before, &earlier, NULL), 0);
    assert_int_equal(slices_read(after, &later, NULL), 0);
    json_t *document = slices_join(&earlier, &later);
    assert_int_equal(slices_read(document, &joined, NULL), 0);
    assert_int_equal(joined.device_count, 2);
    assert_non_null(slices_find(&joined, "dra.net", "n", "a")->attributes);
    assert_non_null(slices_find(&joined, "dra.net", "n", "b"));
    slices_done(&joined);
    slices_done(&earlier);
    slices_done(&later);
    json_decref(document);
    json_decref(before);
    json_decref(after);
}

#define POOLS 10000

/* A slice of a pool that should have two. */
static json_t *half(const char *name, int pool, int generation)
{
    return json_pack("{s:{s:o}, s:{s:s, s:{s:o, s:i, s:i}, s:[{s:s}]}}", "metadata", "name",
                     json_sprintf("%s-%d", name, pool), "spec", "driver", "d", "pool", "name",
                     json_sprintf("p-%05d", pool), "generation", generation, "resourceSliceCount",
                     2, "devices", "name", name);
}

/* Each pool has both of its slices and one that is left of the generation before; the last pool
 * lacks one. */
static void pools_of_a_large_cluster(void **unused)
{
    json_t *document = json_array();
    struct slices slices;
    (void)unused;
    for (int pool = 0; pool < POOLS; pool++) {
        json_array_append_new(document, half("old", pool, 1));
        json_array_append_new(document, half("a", pool, 2));
        if (pool + 1 < POOLS)
            json_array_append_new(document, half("b", pool, 2));
    }
    assert_int_equal(slices_read(document, &slices, NULL), 0);
    assert_int_equal(slices.part_count, 3 * POOLS - 1);
    assert_int_equal(slices.pool_count, POOLS);
    for (size_t i = 0; i < POOLS; i++) {
        assert_int_equal(slices.pools[i].expected, 2);
        assert_int_equal(slices.pools[i].seen, i + 1 < POOLS ? 2 : 1);
    }
    assert_string_equal(slices.pools[POOLS - 1].name, "p-09999");
    assert_true(slice_pool_incomplete(&slices.pools[POOLS - 1]));
    slices_done(&slices);
    json_decref(document);
}

static void slices_that_are_wrong(void **unused)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"3", "expected a ResourceSlice"},
        {"{\"kind\": \"Pod\"}", "got kind Pod"},
        {"{\"kind\": \"List\", \"items\": 3}", "expected an array"},
        {"{\"metadata\": {\"name\": \"s\"}, \"spec\": {}}", "ResourceSlice s: no spec.driver"},
        {"{\"spec\": {\"driver\": \"d\"}}", "no spec.pool.name"},
        {"{\"spec\": {\"driver\": \"d\", \"pool\": {\"name\": \"p\"}, \"devices\": {}}}",
         "spec.devices: expected an array"},
        {"{\"spec\": {\"driver\": \"d\", \"pool\": {\"name\": \"p\"}, \"devices\": [{}]}}",
         "spec.devices[0]: no name"},
        {"[" SLICE("x", "1", "2", NIC("a", "0")) "," SLICE("x", "1", "2", NIC("a", "1")) "]",
         "ResourceSlice x: device a is there twice in one generation"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct slices slices;
        struct drarun_error err = {0};
        json_t *document = parse(cases[i].text);
        assert_int_equal(slices_read(document, &slices, &err), -EINVAL);
        if (!strstr(err.text, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
        json_decref(document);
    }
}

/* Slices of one pool with one name for two devices: it may be either, and the others are known. */
static void a_name_that_is_there_twice(void **unused)
{
    struct slices slices;
    size_t count = 0;
    (void)unused;
    json_t *document = parse("[" SLICE("x", "1", "2", NIC("a", "0") "," NIC("b", "0")) "," SLICE(
        "y", "1", "2", NIC("a", "1") "," NIC("c", "0")) "]");
    assert_int_equal(slices_read(document, &slices, NULL), 0);
    assert_null(slices_find(&slices, "dra.net", "n", "a"));
    assert_non_null(slices_find(&slices, "dra.net", "n", "b"));
    assert_non_null(slices_find(&slices, "dra.net", "n", "c"));
    slices_of_node(&slices, "n", &count);
    assert_int_equal(count, 2);
    slices_done(&slices);
    json_decref(document);
}

static int read_attributes(const char *driver, const char *attributes, struct device *ret_device,
                           struct drarun_error *err)
{
    static json_t *kept; /* the device borrows from it */
    json_decref(kept);
    kept = parse(attributes);
    struct slice_device slice = {.driver = driver, .pool = "p", .name = "d", .attributes = kept};
    static struct slice_device last;
    last = slice;
    return device_read(&last, ret_device, err);
}

static void history_of_the_drivers(void **unused)
{
    struct device d;
    (void)unused;
    /* gpu.nvidia.com 25.3: index, no address; 25.8: pcieBusID; later the standard key */
    assert_int_equal(read_attributes("gpu.nvidia.com",
                                     "{\"type\": {\"string\": \"gpu\"}, \"index\": {\"int\": 3}}",
                                     &d, NULL),
                     0);
    assert_int_equal(d.kind, DEVICE_GPU);
    assert_int_equal(d.index, 3);
    assert_true(d.pci == PCI_NONE);
    assert_int_equal(read_attributes("gpu.nvidia.com",
                                     "{\"type\": {\"string\": \"gpu\"}, \"pcieBusID\": "
                                     "{\"string\": \"0008:06:00.0\"}}",
                                     &d, NULL),
                     0);
    assert_true(d.pci == pci_parse("0008:06:00.0"));
    /* dra.net up to 0.5: the address in four parts */
    assert_int_equal(
        read_attributes("dra.net",
                        "{\"dra.net/rdma\": {\"bool\": true}, \"dra.net/pciAddressDomain\": "
                        "{\"string\": \"0000\"}, \"dra.net/pciAddressBus\": {\"string\": \"91\"}, "
                        "\"dra.net/pciAddressDevice\": {\"string\": \"00\"}, "
                        "\"dra.net/pciAddressFunction\": {\"string\": \"1\"}}",
                        &d, NULL),
        0);
    assert_true(d.pci == pci_parse("0000:91:00.1"));
    assert_true(d.rdma);
    /* the managed driver publishes dra.net's keys under its own name; a list of NUMA nodes */
    assert_int_equal(read_attributes("mrdma.google.com",
                                     "{\"dra.net/rdmaDevice\": {\"string\": \"mlx5_3\"}, "
                                     "\"resource.kubernetes.io/numaNode\": {\"ints\": [6, 4]}}",
                                     &d, NULL),
                     0);
    assert_int_equal(d.kind, DEVICE_NIC);
    assert_string_equal(d.ibdev, "mlx5_3");
    assert_int_equal(d.numa, 6);
    assert_int_equal(read_attributes("compute-domain.nvidia.com",
                                     "{\"type\": {\"string\": \"channel\"}}", &d, NULL),
                     0);
    assert_int_equal(d.kind, DEVICE_CHANNEL);
}

static void contradictions_are_errors(void **unused)
{
    static const struct {
        const char *attributes, *says;
    } cases[] = {
        {"{\"dra.net/pciAddress\": {\"string\": \"0000:91:00.0\"}, "
         "\"resource.kubernetes.io/pciBusID\": {\"string\": \"0000:92:00.0\"}}",
         "pciBusID is 0000:92:00.0"},
        {"{\"dra.net/numaNode\": {\"int\": 0}, \"resource.kubernetes.io/numaNode\": {\"int\": 1}}",
         "numaNode is 1 in one domain and 0"},
        {"{\"dra.net/pciAddress\": {\"string\": \"0000:91:0\"}}", "no PCI address"},
        {"{\"dra.net/numaNode\": {\"int\": 70000}}", "numaNode: expected 0 to"},
        {"{\"dra.net/pciAddress\": {\"string\": \"0000:91:00.0\"}, "
         "\"pciAddressDomain\": {\"string\": \"0000\"}, \"pciAddressBus\": {\"string\": \"92\"}, "
         "\"pciAddressDevice\": {\"string\": \"00\"}, \"pciAddressFunction\": {\"string\": \"0\"}}",
         "pciAddress 0000:91:00.0 contradicts pciAddressBus and the like"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct device d;
        struct drarun_error err = {0};
        assert_int_equal(read_attributes("dra.net", cases[i].attributes, &d, &err), -EINVAL);
        if (!strstr(err.text, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
    }
}

static void pci_addresses(void **unused)
{
    static const char *const wrong[] = {
        "",          "0000:8f:00",    "8f:00.8",       "0000:8f:20.0",
        "x:8f:00.0", "0000:8f:00.0 ", "0000:8f:00.0.0"};
    char text[32];
    (void)unused;
    pci_format(pci_parse("0000:8f:1f.7"), text, sizeof text);
    assert_string_equal(text, "0000:8f:1f.7");
    assert_true(pci_parse("8f:00.0") == pci_parse("0000:8f:00.0"));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_true(pci_parse(wrong[i]) == PCI_NONE);
}

#define CLAIM(status)                                                                              \
    "{\"kind\": \"ResourceClaim\", \"metadata\": {\"name\": \"c\"}, \"status\": " status "}"

static void an_allocation(void **unused)
{
    struct allocation a;
    (void)unused;
    json_t *claim = parse(CLAIM(
        "{\"allocation\": {\"devices\": {\"results\": [{\"request\": \"nic/fast\", \"driver\": "
        "\"dra.net\", \"pool\": \"n\", \"device\": \"d\"}, {\"request\": \"look\", \"driver\": "
        "\"dra.net\", \"pool\": \"n\", \"device\": \"e\", \"adminAccess\": true}]}, "
        "\"nodeSelector\": {\"nodeSelectorTerms\": [{\"matchFields\": [{\"key\": "
        "\"metadata.name\", \"operator\": \"In\", \"values\": [\"n\"]}]}]}}, \"devices\": "
        "[{\"driver\": \"dra.net\", \"pool\": \"n\", \"device\": \"d\", \"networkData\": "
        "{\"interfaceName\": \"eth1\"}}]}"));
    assert_int_equal(allocation_read(claim, &a, NULL), 0);
    assert_int_equal(a.count, 1); /* administrators' access gives nobody a device */
    assert_string_equal(a.results[0].request, "nic/fast");
    assert_string_equal(a.results[0].pod_name, "eth1");
    assert_string_equal(a.node, "n");
    allocation_done(&a);
    json_decref(claim);
}

static void no_allocation(void **unused)
{
    struct allocation a;
    struct drarun_error err = {0};
    (void)unused;
    json_t *claim = parse(CLAIM("{}"));
    assert_int_equal(allocation_read(claim, &a, &err), -EAGAIN);
    assert_non_null(strstr(err.text, "claim c is not allocated"));
    json_decref(claim);
    claim = parse(CLAIM("{\"allocation\": {\"devices\": {\"results\": [{\"request\": \"r\"}]}}}"));
    assert_int_equal(allocation_read(claim, &a, &err), -EINVAL);
    assert_non_null(strstr(err.text, "results[0]: expected request, driver, pool and device"));
    json_decref(claim);
    claim = parse("{\"kind\": \"Pod\"}");
    assert_int_equal(allocation_read(claim, &a, &err), -EINVAL);
    json_decref(claim);
}

static void claims_of_a_pod(void **unused)
{
    struct strlist names = STRLIST_INIT;
    (void)unused;
    json_t *pod = parse(
        "{\"spec\": {\"resourceClaims\": [{\"name\": \"x\", \"resourceClaimName\": \"a\"}]}, "
        "\"status\": {\"resourceClaimStatuses\": [{\"name\": \"y\", \"resourceClaimName\": \"b\"}, "
        "{\"name\": \"x\", \"resourceClaimName\": \"a\"}], \"extendedResourceClaimStatus\": "
        "{\"resourceClaimName\": \"c\"}}}");
    allocation_pod_claims(pod, &names);
    assert_int_equal(names.count, 3);
    assert_true(strlist_has(&names, "a") && strlist_has(&names, "b") && strlist_has(&names, "c"));
    strlist_done(&names);
    json_decref(pod);
}

static void probes_that_are_wrong(void **unused)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"[]", "expected an object"},
        {"{\"files\": []}", "files: expected"},
        {"{\"ibdevs\": {\"mlx5_0\": 3}}", "ibdevs: expected"},
        {"{\"visibleIbdevs\": [3]}", "visibleIbdevs: expected"},
        {"{\"numaCpus\": {\"x\": \"0-3\"}}", "numaCpus: expected"},
        {"{\"numaCpus\": {\"4294967295\": \"0-3\"}}", "numaCpus: expected"},
        {"{\"topoFilePairs\": [[\"0001:00:00.0\"]]}", "topoFilePairs: expected"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct probe probe;
        struct drarun_error err = {0};
        json_t *document = parse(cases[i].text);
        assert_int_equal(probe_read(document, &probe, &err), -EINVAL);
        if (!strstr(err.text, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
        json_decref(document);
    }
}

static void gpus_of_claims(void **state)
{
    (void)state;
    json_t *claims = json_loads(
        "[{\"status\": {\"allocation\": {\"devices\": {\"results\": [{\"request\": \"gpu-0\"},"
        "{\"request\": \"gpu\"}, {\"request\": \"nic-0\"}, {}]}}}}, {\"status\": {}}, {}]",
        0, NULL);
    assert_int_equal(allocation_count_gpus(claims), 2);
    assert_int_equal(allocation_count_gpus(NULL), 0);
    json_decref(claims);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newest_generation_wins),
        cmocka_unit_test(pools_of_a_large_cluster),
        cmocka_unit_test(slices_of_two_times),
        cmocka_unit_test(slices_of_a_pool_that_is_written),
        cmocka_unit_test(slices_that_are_wrong),
        cmocka_unit_test(a_name_that_is_there_twice),
        cmocka_unit_test(contradictions_are_errors),
        cmocka_unit_test(pci_addresses),
        cmocka_unit_test(an_allocation),
        cmocka_unit_test(no_allocation),
        cmocka_unit_test(claims_of_a_pod),
        cmocka_unit_test(gpus_of_claims),
        cmocka_unit_test(probes_that_are_wrong),
        cmocka_unit_test(history_of_the_drivers),
    };
    return cmocka_run_group_tests_name("allocation", tests, NULL, NULL);
}
