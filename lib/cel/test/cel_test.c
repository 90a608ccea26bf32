// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "lib/cel/cel.h"

static const char DEVICE[] =
    "{'name': 'gpu-3', 'allowMultipleAllocations': true, 'attributes': {"
    " 'model': {'string': 'H100'}, 'index': {'int': 3}, 'cuda': {'version': '12.4.1'},"
    " 'dra.net/rdma': {'bool': true}, 'dra.net/ifName': {'string': 'gpu2rdma0'},"
    " 'tags': {'strings': ['a', 'b']}},"
    " 'capacity': {'memory': {'value': '80Gi'}, 'dra.net/rate': {'value': '400G'}}}";

static struct cel_device *device_of(const char *text)
{
    char json[2048];
    struct drarun_error err = {0};
    struct cel_device *device;
    json_t *parsed;

    snprintf(json, sizeof(json), "%s", text);
    for (char *c = json; (c = strchr(c, '\''));)
        *c = '"';
    parsed = json_loads(json, 0, NULL);
    assert_non_null(parsed);
    device = cel_device_new("gpu.example.com", parsed, &err);
    if (!device)
        fail_msg("%s", err.text);
    json_decref(parsed);
    return device;
}

enum outcome { YES, NO, ERROR, REFUSED, COST };

struct row {
    const char *text;
    enum outcome outcome;
};

static enum outcome outcome_of(const char *text, const struct cel_device *device,
                               struct drarun_error *err)
{
    struct cel_program *program = cel_compile(text, err);
    enum outcome outcome;
    bool match = false;
    int rc;

    if (!program)
        return REFUSED;
    rc = cel_eval_device(program, device, &match, err);
    outcome = rc == 0 ? (match ? YES : NO) : rc == -E2BIG ? COST : ERROR;
    cel_program_free(program);
    return outcome;
}

static void check_rows(const struct row *rows, size_t count)
{
    struct cel_device *device = device_of(DEVICE);

    for (size_t i = 0; i < count; i++) {
        struct drarun_error err = {0};
        enum outcome outcome = outcome_of(rows[i].text, device, &err);
        if (outcome != rows[i].outcome)
            fail_msg("%s: outcome %d, expected %d (%s)", rows[i].text, outcome, rows[i].outcome,
                     err.text);
    }
    cel_device_free(device);
}

static void test_device(void **state)
{
    static const struct row rows[] = {
        {"device.driver == 'gpu.example.com'", YES},
        {"device.allowMultipleAllocations", YES},
        {"device.attributes['dra.net'].rdma", YES},
        {"device.attributes['gpu.example.com'].model == 'H100'", YES},
        {"device.attributes['gpu.example.com'].index == 3", YES},
        {"device.attributes['gpu.example.com'].tags.exists(t, t == 'b')", YES},
        {"device.attributes['dra.net'].absent", ERROR},
        {"device.attributes['absent'].absent", ERROR},
        {"size(device.attributes['absent']) == 0", YES},
        {"'absent' in device.attributes", NO},
        {"has(device.attributes['dra.net'].absent)", NO},
        {"device.attributes['dra.net'].?absent.orValue(true)", YES},
        {"device.capacity['gpu.example.com'].memory == quantity('80Gi')", YES},
        {"device.capacity['dra.net'].rate.isGreaterThan(quantity('399G'))", YES},
        {"device.attributes['gpu.example.com'].cuda.isLessThan(semver('12.10.0'))", YES},
        {"device.attributes['gpu.example.com'].model", ERROR},
    };

    (void)state;
    check_rows(rows, ARRAY_LEN(rows));
}

/* As Go and RE2, which look at the product of repetitions within each other before they make
 * anything of it; each of these took hours here. */
static void test_repetitions_have_a_bound(void **state)
{
    static const struct row rows[] = {
        {"'x'.matches('((((){1000}){1000}){1000}){1000}')", REFUSED},
        {"'x'.matches('(((((a{0}){1000}){1000}){1000}){1000}){1000}')", REFUSED},
        {"'x'.matches('(((((a{0}){1000})*){1000})?){1000}')", REFUSED},
        {"'x'.matches('(((|){1000}x){1000}){1000}')", REFUSED},
        {"'x'.matches('(b|(c{30}){40})')", REFUSED},
        {"'x'.matches('((a{10}){10}){11}')", REFUSED},
        {"'x'.matches('((a{10}){10}){10}')", NO},
        {"'x'.matches('(a{600}){1,}')", NO},
        {"'x'.matches('(a{600}){2,}')", REFUSED},
        {"'x'.matches('((){1000}()()x(){1000}(){0})*x{1,1}(y{1000}){0}$')", YES},
        {"'x'.matches('^(x{0})(){5}$')", NO},
        {"''.matches('^(x{0})(){5}$')", YES},
    };
    clock_t begun = clock();

    (void)state;
    check_rows(rows, ARRAY_LEN(rows));
    assert_true((double)(clock() - begun) / CLOCKS_PER_SEC < 1);
}

static void test_errors_and_logic(void **state)
{
    static const struct row rows[] = {
        {"device.attributes['x'].y || true", YES},
        {"device.attributes['x'].y && false", NO},
        {"device.attributes['x'].y && true", ERROR},
        {"9223372036854775807 + 1 > 0", ERROR},
        {"-9223372036854775808 < 0", YES},
        {"1u - 2u == 0u", ERROR},
        {"1 / 0 == 1", ERROR},
        {"1 == 1.0", REFUSED},
        {"dyn(1) == 1.0", YES},
        {"1 < 1.5", YES},
        {"cel.bind(never, 1 / 0, true)", YES},
        {"[0, 1].exists(x, 1 / x == 1)", YES},
        {"[1, 0].all(x, 1 / x == 2)", NO},
        {"[2, 3].exists_one(x, x > 2)", YES},
        {"[1, 2].map(x, x * 2) == [2, 4]", YES},
        {"[1, 2, 3].filter(x, x != 2) == [1, 3]", YES},
    };

    (void)state;
    check_rows(rows, ARRAY_LEN(rows));
}

static void test_quantities_and_versions(void **state)
{
    static const struct row rows[] = {
        {"quantity('50k').add(20).sub(quantity('100k')).sub(-50000).compareTo(quantity('20')) == 0",
         YES},
        {"quantity('1') == quantity('1000m')", YES},
        {"quantity('1').add(0) == quantity('1')", YES},
        {"quantity('1') == quantity('1').add(0)", ERROR}, // as upstream
        {"quantity('1k') == dyn(1000)", ERROR},
        {"quantity('1k') != dyn(1000)", YES},
        {"quantity('1.5Ki').isInteger()", NO}, // as upstream, though it is 1536
        {"quantity('1536').asInteger() == 1536", YES},
        {"quantity('0.0000000001') == quantity('1n')", YES},
        {"quantity('16Ei') == quantity('9223372036854775807')", YES},
        {"sign(quantity('-3')) == -1", YES},
        {"quantity('200K') == quantity('1')", ERROR},
        {"isQuantity('1e3') && !isQuantity('1,3') && !isQuantity('K')", YES},
        {"quantity('Mi') == quantity('0') && isQuantity('.') && !isQuantity('Ei')",
         YES}, // upstream's
        {"semver('1.0.0-alpha').isLessThan(semver('1.0.0-alpha.1'))", YES},
        {"semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))", YES},
        {"semver('v01.02', true) == semver('1.2.0')", YES},
        {"semver('1.2.3+a') == semver('1.2.3+b')", YES},
        {"isSemver('1.2') || isSemver('01.2.3')", NO},
        {"semver('1.2') == semver('1.2')", ERROR},
    };

    (void)state;
    check_rows(rows, ARRAY_LEN(rows));
}

static void test_patterns(void **state)
{
    static const struct row rows[] = {
        {"'gpu2rdma0'.matches('^gpu[0-9]+rdma[0-9]$')", YES},
        {"'xgpu'.matches('^gpu')", NO},
        {"'NVIDIA'.matches('(?i)nvidia')", YES},
        {"'aaa'.matches('^a{2}$')", NO},
        {"'aaa'.matches('^a{2,}$')", YES},
        {"'a{'.matches('^a{$')", YES},
        {"'größe'.matches('^gr.ße$')", YES},
        {"'a b'.matches(r'^\\w\\s\\w$')", YES},
        {"'a-b'.matches('[^-a-z]')", NO},
        {"''.matches('^(?:a|)$')", YES},
        {"'a\\nb'.matches('a.b')", NO},
        {"'a\\nb'.matches('(?s)a.b')", YES},
        {"'x'.matches('[[:alpha:]]') && '-'.matches('[[:punct:]]')", YES},
        {"'foo bar'.matches(r'\\bbar\\b')", YES},
        {"'x'.matches('a**')", REFUSED},
        {"'x'.matches('[z-a]')", REFUSED},
        {"'x'.matches('x{1001}')", REFUSED},
        {"'x'.matches(device.driver + '(')", ERROR},
        // exponential for a matcher that goes back
        {"'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'.matches('^(a|a)*(a*)*$')", NO},
    };

    (void)state;
    check_rows(rows, ARRAY_LEN(rows));
}

static void test_cost(void **state)
{
    static const char list[] = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    char text[1024];
    struct cel_device *device = device_of(DEVICE);
    struct cel_program *program = cel_compile("device.attributes['dra.net'].rdma", NULL);
    uint64_t cost = 0;
    bool match;

    (void)state;
    assert_int_equal(cel_eval_cost(program, device, &match, &cost, NULL), 0);
    assert_int_equal(cost, 4); // device, attributes, the domain, the name
    cel_program_free(program);
    snprintf(text, sizeof(text),
             "%s.all(a, %s.all(b, %s.all(c, %s.all(d, %s.all(e, %s.all(f, f > 0))))))", list, list,
             list, list, list, list);
    assert_int_equal(outcome_of(text, device, NULL), COST);
    snprintf(text, sizeof(text), "false && %s.all(a, a > 0)", list);
    assert_int_equal(outcome_of(text, device, NULL), NO);
    cel_device_free(device);
}

/* The text of each refusal names the place and what is wrong there. */
static void test_refusals(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"device.attributes[\"dra.net\"].rdma ==", "column 37: the expression ends"},
        {"true &&\n  (1 == 1", "line 2, column 10: the expression ends where \")\""},
        {"true\n&& devise.driver == ''", "line 2, column 4: there is no variable \"devise\""},
        {"device.color == 'red'", "column 1: a device has no field \"color\""},
        {"device.driver", "column 1: expected bool, got string"},
        {"device.driver.startsWith(1)", "column 1: startsWith does not take (string, int)"},
        {"true && duration('1s') == x", "column 9: not supported: duration"},
        {"url('x') == url('y')", "column 1: not supported: url"},
        {"[1].all(i, v, true)", "column 15: not supported: all with two variables"},
        {"[1].exists(i, v, true)", "not supported: exists with two variables"},
        {"[1].exists_one(i, v, true)", "not supported: exists_one with two variables"},
        {"[1].existsOne(i, v, true)", "not supported: existsOne with two variables"},
        {"[1].transformList(i, v, v) == []", "not supported: transformList (a macro of two"},
        {"[1].transformList(i, v, true, v) == []", "not supported: transformList (a macro of two"},
        {"[1].transformMap(i, v, v) == []", "not supported: transformMap (a macro of two"},
        {"[1].transformMapEntry(i, v, v) == []",
         "not supported: transformMapEntry (a macro of two"},
        {"[1].sortBy(i, i) == []", "not supported: sortBy (a macro)"},
        {"device.driver.matches('(')", "column 23: the pattern \"(\" has"},
        {"device.driver.matches('\\\\pL')", "not supported"},
        {"int('x') == 1 || true", "column 1: int() cannot convert this string"},
        {"true # false", "column 6: '#' is not part of CEL"},
        {"'a", "column 1: the string has no end"},
        {"has(device)", "column 5: has() takes a field"},
        {"[1, 'a'].size() == 2", "column 5: expected int, got string"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        struct cel_program *program = cel_compile(rows[i].text, &err);
        if (program || !strstr(err.text, rows[i].error))
            fail_msg("%s: %s", rows[i].text, program ? "compiled" : err.text);
        assert_int_equal(err.kind, DRARUN_ERR_SPEC);
    }
}

static void test_limits(void **state)
{
    size_t size = CEL_MAX_LENGTH + 2;
    cleanup_free char *text = calloc(1, size);
    struct drarun_error err = {0};
    struct cel_program *program;

    (void)state;
    memset(text, ' ', size - 1);
    memcpy(text, "true", 4);
    assert_null(cel_compile(text, &err));
    assert_non_null(strstr(err.text, "of at most 10240"));
    text[CEL_MAX_LENGTH] = '\0';
    program = cel_compile(text, &err);
    assert_non_null(program);
    cel_program_free(program);
    memset(text, '(', CEL_MAX_LENGTH);
    assert_null(cel_compile(text, &err));
    assert_non_null(strstr(err.text, "nested more than 250 deep"));
}

static void test_terms(void **state)
{
    static const char *const texts[] = {
        "device.driver == 'gpu.example.com'",
        "device.attributes['gpu.example.com'].model == 'B200'",
        "(true || false)",
    };
    struct cel_device *device = device_of(DEVICE);
    struct cel_program *program =
        cel_compile("device.driver == 'gpu.example.com' &&\n"
                    "(device.attributes['gpu.example.com'].model == 'B200' && (true || false))",
                    NULL);
    static const bool matches[] = {true, false, true};

    (void)state;
    assert_non_null(program);
    assert_int_equal(cel_term_count(program), 3);
    for (size_t i = 0; i < 3; i++) {
        bool match = !matches[i];
        assert_string_equal(cel_term_text(program, i), texts[i]);
        assert_int_equal(cel_eval_term(program, i, device, &match, NULL), 0);
        assert_int_equal(match, matches[i]);
    }
    assert_null(cel_term_text(program, 3));
    assert_int_equal(cel_eval_term(program, 3, device, &(bool){false}, NULL), -ERANGE);
    cel_program_free(program);
    cel_device_free(device);
}

static void test_v1beta1(void **state)
{
    struct cel_device *device =
        device_of("{'name': 'd', 'basic': {'attributes': {'x': {'int': 1}},"
                  " 'capacity': {'m': {'value': '1k'}, 'n': '2k', 'o': {'value': 3}}}}");

    (void)state;
    assert_int_equal(outcome_of("device.attributes['gpu.example.com'].x == 1", device, NULL), YES);
    assert_int_equal(
        outcome_of("device.capacity['gpu.example.com'].m == quantity('1000')", device, NULL), YES);
    assert_int_equal(
        outcome_of("device.capacity['gpu.example.com'].n == quantity('2000')", device, NULL), YES);
    assert_int_equal(
        outcome_of("device.capacity['gpu.example.com'].o == quantity('3')", device, NULL), YES);
    cel_device_free(device);
}

static void test_bad_devices(void **state)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"{\"attributes\": {\"x\": {\"int\": \"1\"}}}", "attribute x: expected an integer"},
        {"{\"attributes\": {\"x\": {\"strings\": \"1\"}}}", "attribute x: expected a list"},
        {"{\"capacity\": {\"m\": {\"value\": \"8GB\"}}}", "capacity m: expected a quantity"},
        {"{\"basic\": 1}", "expected a device"},
        {"[]", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        json_t *json = json_loads(rows[i].json, 0, NULL);
        struct cel_device *device = cel_device_new("d", json, &err);
        if (device || (rows[i].error && !strstr(err.text, rows[i].error)))
            fail_msg("%s: %s", rows[i].json, device ? "taken" : err.text);
        json_decref(json);
    }
}

/* A version that is none is the evaluation's error, as upstream, and names the attribute. */
static void test_broken_version(void **state)
{
    struct cel_device *device = device_of("{'attributes': {'v': {'version': '1.2'}}}");
    struct drarun_error err = {0};

    (void)state;
    assert_int_equal(outcome_of("true", device, &err), ERROR);
    assert_non_null(strstr(err.text, "attribute v: \"1.2\" is not a semantic version"));
    cel_device_free(device);
}

#define NAME "device.attributes['a'].name"

/* What the API server estimates, as tests/cel-oracle says. */
static void test_estimates(void **state)
{
    static const struct {
        const char *expression;
        uint64_t estimate;
    } rows[] = {
        {"true", 0},
        {"device.driver == 'gpu.nvidia.com'", 4},
        {NAME " == 'x'", 5},
        {"has(" NAME ")", 3},
        {NAME ".matches('^gpu[0-9]+$')", 25},
        {"device.capacity['a'].memory.compareTo(quantity('80Gi')) >= 0", 7},
        {"device.attributes['a'].all(n, n.startsWith('x'))", 164},
        {"device.attributes.exists(d, device.attributes[d].exists(n, n.contains('gpu')))", 9507},
        {NAME ".split('').map(c, c + c).size() > 3", UINT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        CLEANUP(cel_program_freep)
        struct cel_program *program = cel_compile(rows[i].expression, &err);
        if (!program || cel_program_estimate(program) != rows[i].estimate)
            fail_msg("%s: %s, %llu", rows[i].expression, program ? "compiled" : err.text,
                     program ? (unsigned long long)cel_program_estimate(program) : 0ull);
    }
}

static void test_admission(void **state)
{
    static const struct {
        const char *expression;
        int rc;
        const char *says;
    } rows[] = {
        {NAME " == 'x'", 0, ""},
        {"devise", -EINVAL, "column 1"},
        {"true && ip('1.2.3.4').isCanonical()", -EOPNOTSUPP, "not supported: ip"},
        {NAME ".split('').map(c, c + c).size() > 3", -E2BIG, "there is no bound"},
        {"device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, "
         "device.attributes.all(d, a + b < c + d))))",
         -E2BIG, "of the 1000000 that the API server allows"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        if (cel_admit(rows[i].expression, &err) != rows[i].rc || !strstr(err.text, rows[i].says))
            fail_msg("%s: %d %s", rows[i].expression, err.code, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_repetitions_have_a_bound),
        cmocka_unit_test(test_errors_and_logic),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_terms),
        cmocka_unit_test(test_v1beta1),
        cmocka_unit_test(test_bad_devices),
        cmocka_unit_test(test_broken_version),
        cmocka_unit_test(test_quantities_and_versions),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_estimates),
        cmocka_unit_test(test_admission),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
