/* SPDX-License-Identifier: Apache-2.0 */
/* What Kubernetes 1.37's allocator does otherwise than 1.36's: for each rule a small cluster that
 * tells the two apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "lib/dra/predict_private.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

/* A claim for one worker on devices of the drivers "a" and "b", whose classes have their names. */
struct question {
    const char *slices; /* bodies of ResourceSlice specs, with commas between them */
    const char *claim;  /* spec.devices */
    const char *held;   /* results of a claim that is there; NULL: none */
};

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    if (!json)
        fail_msg("%s at %d: %s", error.text, error.position, text);
    return json;
}

static json_t *slices_of(const char *specs)
{
    char name[32];
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    buf_printf(&text, "[%s]", specs);
    json_t *list = parse(text.data), *all = json_array(), *spec;
    size_t i;
    json_array_foreach(list, i, spec)
    {
        snprintf(name, sizeof name, "slice-%02zu", i);
        json_array_append_new(all, json_pack("{s:s, s:{s:s}, s:O}", "kind", "ResourceSlice",
                                             "metadata", "name", name, "spec", spec));
    }
    json_decref(list);
    return all;
}

static json_t *class_of(const char *driver)
{
    char expression[64];
    snprintf(expression, sizeof expression, "device.driver == '%s'", driver);
    return json_pack("{s:{s:s}, s:{s:[{s:{s:s}}]}}", "metadata", "name", driver, "spec",
                     "selectors", "cel", "expression", expression);
}

/* "one two", the devices in their order, those that share capacity with what they take of it
 * ("one=500m"); "": no room; "stop": the scheduler gives up; "not modelled". */
static void ask(const struct question *q, unsigned minor, char *ret, size_t size)
{
    struct drarun_error err = {0};
    struct slices slices;
    struct prediction p;
    CLEANUP(buf_done) struct buf text = BUF_INIT, said = BUF_INIT;
    json_t *document = slices_of(q->slices), *claim, *claims;
    buf_printf(&text, "{\"devices\": %s}", q->claim);
    claim = parse(text.data);
    text.len = 0;
    buf_printf(&text, "[{\"status\": {\"allocation\": {\"devices\": {\"results\": [%s]}}}}]",
               q->held ? q->held : "");
    claims = parse(text.data);
    json_t *classes = json_pack("[o, o]", class_of("a"), class_of("b"));
    json_t *labels = json_pack("{s:{}}", "n");
    assert_int_equal(slices_read(document, &slices, &err), 0);
    const struct predict_cluster cluster = {.slices = &slices,
                                            .classes = classes,
                                            .claims = claims,
                                            .node_labels = labels,
                                            .minor = minor};
    int rc = predict(claim, 1, &cluster, &p, &err);
    const char *why = rc < 0 ? err.text : p.shortage ? p.shortage : "";
    if (strstr(why, "the scheduler gives up"))
        buf_add_str(&said, "stop");
    else if (rc < 0 && strstr(why, "not modelled"))
        buf_add_str(&said, "not modelled");
    else if (rc < 0)
        fail_msg("%s", why);
    for (size_t i = 0; rc == 0 && p.placed && i < json_array_size(p.workers[0].results); i++) {
        const json_t *one = json_array_get(p.workers[0].results, i);
        const json_t *share = json_object_get(json_object_get(one, "consumedCapacity"), "share");
        buf_printf(&said, "%s%s%s%s", i ? " " : "",
                   json_string_value(json_object_get(one, "device")), share ? "=" : "",
                   share ? json_string_value(share) : "");
    }
    snprintf(ret, size, "%s", said.data ? said.data : "");
    if (rc == 0)
        prediction_done(&p);
    slices_done(&slices);
    json_decref(document);
    json_decref(claim);
    json_decref(claims);
    json_decref(classes);
    json_decref(labels);
}

/* 1.35 is taken for 1.36; a version that is not known and one that is newer do as the newest. */
static void check(const struct question *q, const char *in_36, const char *in_37)
{
    static const unsigned minors[] = {35, 36, 37, PREDICT_MINOR_NEWEST + 1, 0};
    char said[200];
    for (size_t i = 0; i < ARRAY_LEN(minors); i++) {
        ask(q, minors[i], said, sizeof said);
        const char *wanted = minors[i] == 35 || minors[i] == 36 ? in_36 : in_37;
        if (strcmp(said, wanted) != 0)
            fail_msg("1.%u: expected \"%s\", got \"%s\"", minors[i], wanted, said);
    }
}

#define POOL(driver, count, rest)                                                                  \
    "{\"driver\": \"" driver "\", \"pool\": {\"name\": \"pool\", \"generation\": 1, "              \
    "\"resourceSliceCount\": " count "}, " rest "}"
#define ON(node) "\"nodeName\": \"" node "\", "
#define DEVICES(list) "\"devices\": [" list "]"
#define WITH(name, rest) "{\"name\": \"" name "\", " rest "}"
#define ROOTS(list) "\"attributes\": {\"k8s.io/root\": {\"strings\": [" list "]}}"
#define SHARED "\"allowMultipleAllocations\": true"
#define SETS(count)                                                                                \
    "\"sharedCounters\": [{\"name\": \"set\", \"counters\": {\"c\": {\"value\": \"" count "\"}}}]"
#define USES(count)                                                                                \
    "\"consumesCounters\": [{\"counterSet\": \"set\", \"counters\": {\"c\": {\"value\": \"" count  \
    "\"}}}]"
#define REQUEST(name, rest) "{\"name\": \"" name "\", \"exactly\": {" rest "}}"
#define OF(driver) "\"deviceClassName\": \"" driver "\""
#define ALL OF("a") ", \"allocationMode\": \"All\""

static void distinct_devices_of_one_request(void **state)
{
    /* three differs from two, the latest, and not from one */
    static const struct question q = {
        .slices = POOL("a", "1",
                       ON("n") DEVICES(WITH("one", ROOTS("\"r0\"")) ", " WITH(
                           "two", ROOTS("\"r1\"")) ", " WITH("three", ROOTS("\"r0\"")))),
        .claim = "{\"requests\": [" REQUEST(
            "r", OF("a") ", \"count\": 3") "], \"constraints\": ["
                                           "{\"distinctAttribute\": \"k8s.io/root\"}]}",
    };
    (void)state;
    check(&q, "one two three", "");
}

static void values_that_a_device_ruled_out(void **state)
{
    /* one and two leave r0, which none has beside them: the search gives two up, and r1 is back */
    static const struct question q = {
        .slices = POOL(
            "a", "1",
            ON("n") DEVICES(
                WITH("one", ROOTS("\"r0\", \"r1\"")) ", " WITH("two", ROOTS("\"r0\"")) ", " WITH(
                    "three", ROOTS("\"r1\"")) ", " WITH("four", ROOTS("\"r1\"")))),
        .claim = "{\"requests\": [" REQUEST(
            "r", OF("a") ", \"count\": 3") "], \"constraints\": ["
                                           "{\"matchAttribute\": \"k8s.io/root\"}]}",
    };
    (void)state;
    check(&q, "", "one three four");
}

#define GIVEN(device, rest)                                                                        \
    "{\"driver\": \"a\", \"pool\": \"pool\", \"device\": \"" device "\", \"shareID\": \"x\"" rest  \
    "}"

static void all_devices_of_which_one_is_full(void **state)
{
    static const struct question q = {
        .slices = POOL(
            "a", "1",
            ON("n") DEVICES(
                WITH("full", SHARED ", \"capacity\": {\"memory\": {\"value\": \"8\"}}") ", " WITH(
                    "free", "\"attributes\": {}"))),
        .claim = "{\"requests\": [" REQUEST("r", ALL) "]}",
        .held = GIVEN("full", ", \"consumedCapacity\": {\"memory\": \"8\"}"),
    };
    (void)state;
    check(&q, "free", "");
}

static void counters_of_another_node(void **state)
{
    /* of the pool that is not n's, a slice is missing */
    static const struct question q = {
        .slices =
            POOL("a", "1",
                 ON("n") DEVICES(WITH(
                     "one", "\"attributes\": {}"))) ", "
                                                    "{\"driver\": \"b\", \"pool\": {\"name\": "
                                                    "\"other\", \"generation\": 1, "
                                                    "\"resourceSliceCount\": 2}, \"nodeSelector\": "
                                                    "{\"nodeSelectorTerms\": [{"
                                                    "\"matchExpressions\": [{\"key\": \"zone\", "
                                                    "\"operator\": \"Exists\"}]}]}, " SETS("1") "}",
        .claim = "{\"requests\": [" REQUEST("r", ALL) "]}",
    };
    (void)state;
    check(&q, "stop", "one");
}

static void counters_of_a_share_without_capacity(void **state)
{
    static const struct question q = {
        .slices = POOL("a", "2", ON("n") DEVICES(WITH("one", SHARED ", " USES("1")))) ", " POOL(
            "a", "2", ON("n") SETS("1")),
        .claim = "{\"requests\": [" REQUEST("r", OF("a")) "]}",
        .held = GIVEN("one", ""),
    };
    (void)state;
    check(&q, "", "one");
}

static void counters_of_two_drivers(void **state)
{
    /* the set of driver a counts for the device of driver b, too, where it is asked for first */
    static const struct question q = {
        .slices = POOL("a", "2", ON("n") DEVICES(WITH("one", USES("1")))) ", " POOL(
            "a", "2",
            ON("n") SETS("1")) ", " POOL("b", "2",
                                         ON("n") DEVICES(
                                             WITH("two", USES("1")))) ", " POOL("b", "2",
                                                                                ON("n") SETS("9")),
        .claim = "{\"requests\": [" REQUEST("r", OF("a")) ", " REQUEST("s", OF("b")) "]}",
    };
    static const struct question other = {
        .slices = POOL("a", "2", ON("n") DEVICES(WITH("one", USES("5")))) ", " POOL(
            "a", "2",
            ON("n") SETS("1")) ", " POOL("b", "2",
                                         ON("n") DEVICES(
                                             WITH("two", USES("1")))) ", " POOL("b", "2",
                                                                                ON("n") SETS("9")),
        .claim = "{\"requests\": [" REQUEST("s", OF("b")) ", " REQUEST("r", OF("a")) "]}",
    };
    (void)state;
    check(&q, "", "one two");
    check(&other, "two one", "");
}

#define OF_SHARE(range)                                                                            \
    POOL("a", "1",                                                                                 \
         ON("n") DEVICES(WITH("one", SHARED ", \"capacity\": {\"share\": {\"value\": "             \
                                            "\"4k\", \"requestPolicy\": {\"default\": \"1\", "     \
                                            "\"validRange\": " range "}}}")))
#define SHARE(amount)                                                                              \
    "{\"requests\": [" REQUEST("r", OF("a") ", \"capacity\": {\"requests\": {\"share\": \"" amount \
                                            "\"}}") "]}"
#define HALVES "{\"min\": \"500m\", \"step\": \"250m\"}"
#define STEP(step, rest) "{\"min\": \"1\", \"step\": \"" step "\"" rest "}"
#define ONES STEP("1", "")

static void capacity_in_fractions(void **state)
{
    static const struct {
        const char *slices, *claim, *in_36, *in_37;
    } rows[] = {
        {OF_SHARE(HALVES), SHARE("600m"), "one=1", "one=750m"},
        {OF_SHARE(HALVES), SHARE("800m"), "one=1", "one=1"},
        /* in the format of the step */
        {OF_SHARE(ONES), SHARE("2000"), "one=2000", "one=2k"},
        {OF_SHARE(STEP("1e0", "")), SHARE("2000"), "one=2000", "one=2e3"},
        {OF_SHARE(STEP("1Ki", "")), SHARE("1000"), "one=1025", "one=1025"},
        {OF_SHARE(STEP("1023", "")), SHARE("1001"), "one=1Ki", "one=1024"},
        {OF_SHARE(STEP("1500m", "")), SHARE("2"), "one=3", "one=2500m"},
        /* what has no thousandths, in 64 bits */
        {OF_SHARE(HALVES), SHARE("1500001u"), "one=2", "stop"},
        {OF_SHARE(STEP("9223372036854775807m", "")), SHARE("2"), "", "stop"},
        /* a bound that has none: whole numbers, in 64 bits */
        {OF_SHARE(STEP("1", ", \"max\": \"10P\"")), SHARE("1500001u"), "one=2", "one=2"},
        {OF_SHARE(STEP("1", ", \"max\": \"10P\"")), SHARE("2k"), "one=2000", "one=2k"},
        {OF_SHARE(STEP("1", ", \"max\": \"20E\"")), SHARE("10E"), "not modelled", "stop"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct question q = {.slices = rows[i].slices, .claim = rows[i].claim};
        check(&q, rows[i].in_36, rows[i].in_37);
    }
}

static void versions_as_they_are_written(void **state)
{
    static const struct {
        const char *text;
        unsigned minor; /* 0: not a version */
    } rows[] = {
        {"1.36", 36},
        {"v1.37.2", 37},
        {"v1.34.1-gke.1829001", 34},
        {"1.9", 9},
        {"1.37.0-alpha.1", 37},
        {"", 0},
        {"1", 0},
        {"1.", 0},
        {"v1.x", 0},
        {"1.36+", 0},
        {"2.36", 0},
        {"1.0", 0},
        {"1.-36", 0},
        {"1.36 ", 0},
        {"36", 0},
        {"1.99999999999999", 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unsigned minor = 0;
        int rc = predict_minor_parse(rows[i].text, &minor);
        if (minor != rows[i].minor || (rc == 0) != (rows[i].minor != 0))
            fail_msg("\"%s\": %d, %u", rows[i].text, rc, minor);
    }
    assert_int_equal(predict_minor_followed(0), PREDICT_MINOR_NEWEST);
    assert_int_equal(predict_minor_followed(PREDICT_MINOR_NEWEST + 1), PREDICT_MINOR_NEWEST);
    assert_int_equal(predict_minor_followed(36), 36);
    assert_int_equal(predict_minor_followed(34), PREDICT_MINOR_OLDEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distinct_devices_of_one_request),
        cmocka_unit_test(values_that_a_device_ruled_out),
        cmocka_unit_test(all_devices_of_which_one_is_full),
        cmocka_unit_test(counters_of_another_node),
        cmocka_unit_test(counters_of_a_share_without_capacity),
        cmocka_unit_test(counters_of_two_drivers),
        cmocka_unit_test(capacity_in_fractions),
        cmocka_unit_test(versions_as_they_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
