/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas and limit ranges against what a job creates. */
#include "jobs/manifests/namespace_fit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"

/* JSON with ' in place of ". */
static char *quoted(const char *text)
{
    char *copy = strdup(text);
    for (char *c = copy; c && *c; c++)
        *c = *c == '\'' ? '"' : *c;
    assert_non_null(copy);
    return copy;
}

static json_t *list(const char *items)
{
    char text[2000];
    snprintf(text, sizeof text, "[%s]", items);
    cleanup_free char *json = quoted(text);
    json_t *value = json_loads(json, 0, NULL);
    assert_non_null(value);
    return value;
}

/* why: NULL for admitted; note: a part of the notes, NULL for none. */
static void check_of(const char *classes, bool known, unsigned minor, const char *spec,
                     const char *quotas, const char *ranges, const char *why, const char *note)
{
    struct drarun_error err = {0};
    struct job_spec job;
    struct strlist notes = STRLIST_INIT;
    char text[2000], *got = NULL;
    snprintf(text, sizeof text, "{'metadata': {'name': 'j'}, 'spec': {%s}}", spec);
    cleanup_free char *document = quoted(text);
    if (spec_parse("job", document, strlen(document), &job, &err) < 0)
        fail_msg("%s", err.text);
    CLEANUP(json_decrefp) json_t *q = list(quotas);
    CLEANUP(json_decrefp) json_t *r = list(ranges);
    CLEANUP(json_decrefp) json_t *c = list(classes);
    CLEANUP(json_decrefp) json_t *n = list("{'status': {'allocatable': {'cpu': '8'}}}");
    const struct namespace_rules rules = {.quotas = q,
                                          .limit_ranges = r,
                                          .classes = c,
                                          .classes_known = known,
                                          .nodes = n,
                                          .minor = minor};
    if (namespace_fit(&job, &rules, &got, &notes, &err) < 0)
        fail_msg("%s", err.text);
    if (!got != !why || (got && strcmp(got, why) != 0))
        fail_msg("%s, %s: \"%s\"; expected \"%s\"", quotas, ranges, got ? got : "(admitted)",
                 why ? why : "(admitted)");
    bool noted = false;
    for (size_t i = 0; i < notes.count; i++)
        noted |= note && strstr(notes.items[i], note);
    if (note ? !noted : notes.count > 0)
        fail_msg("%s: notes: %s", quotas, notes.count ? notes.items[0] : "(none)");
    free(got);
    strlist_done(&notes);
    job_spec_done(&job);
}

static void check_with(const char *classes, unsigned minor, const char *spec, const char *quotas,
                       const char *ranges, const char *why, const char *note)
{
    check_of(classes, false, minor, spec, quotas, ranges, why, note);
}

/* There are no other classes. */
static void check_known(const char *classes, unsigned minor, const char *spec, const char *quotas,
                        const char *ranges, const char *why, const char *note)
{
    check_of(classes, true, minor, spec, quotas, ranges, why, note);
}

static void check(const char *spec, const char *quotas, const char *ranges, const char *why,
                  const char *note)
{
    check_with("", 0, spec, quotas, ranges, why, note);
}

#define SHORT "'image': 'i', 'command': ['c'], "
#define TWO SHORT "'workers': 2"
#define GPUS TWO ", 'devices': {'gpus': {'count': 8, 'resource': 'nvidia.com/gpu'}}"
#define CLAIMS_BY(more)                                                                            \
    TWO ", 'devices': {" more "'gpus': {'count': 4, 'class': 'gpu.nvidia.com'}, 'nics': "          \
        "{'count': 2, 'class': 'dranet'}}"
#define CLAIMS CLAIMS_BY("")
#define EITHER                                                                                     \
    TWO ", 'devices': {'gpus': {'count': 2, 'firstAvailable': [{'class': 'gpu.nvidia.com', "       \
        "'selector': 'true'}, {'class': 'gpu.nvidia.com'}, {'class': 'mig.nvidia.com'}]}}"
/* the worker's container says how much of both */
#define SAYS                                                                                       \
    "'workers': 4, 'template': {'spec': {'containers': [{'name': 'w', 'image': 'i', 'command': "   \
    "['c'], 'resources': {'requests': {'cpu': '2', 'memory': '8Gi'}, 'limits': {'cpu': '4', "      \
    "'memory': '8Gi'}}}]}}"
#define QUOTA(hard, used)                                                                          \
    "{'metadata': {'name': 'q'}, 'spec': {'hard': {" hard "}}, 'status': {'used': {" used "}}}"
#define RANGE(limit) "{'metadata': {'name': 'r'}, 'spec': {'limits': [{" limit "}]}}"

static void test_counts(void **state)
{
    (void)state;
    check(TWO, "", "", NULL, NULL);
    check(TWO, QUOTA("'pods': '3'", "'pods': '0'"), "", NULL, NULL); /* and the launcher's */
    check(TWO, QUOTA("'pods': '3'", "'pods': '1'"), "",
          "ResourceQuota q: pods: the job asks for 3, 1 of 3 are used", NULL);
    check(TWO, QUOTA("'count/pods': '2'", ""), "",
          "ResourceQuota q: count/pods: the job asks for 3, 0 of 2 are used", NULL);
    check(TWO, QUOTA("'count/jobs.batch': '0'", ""), "",
          "ResourceQuota q: count/jobs.batch: the job asks for 1, 0 of 0 are used", NULL);
    check(TWO, QUOTA("'secrets': '1', 'services': '0'", ""), "", NULL, NULL);
}

static void test_devices(void **state)
{
    static const char claims[] = "'count/resourceclaims.resource.k8s.io': ";
    char quota[400];
    (void)state;
    check(GPUS, QUOTA("'requests.nvidia.com/gpu': '16'", "'requests.nvidia.com/gpu': '8'"), "",
          "ResourceQuota q: requests.nvidia.com/gpu: the job asks for 16, 8 of 16 are used", NULL);
    check(GPUS, QUOTA("'requests.nvidia.com/gpu': '16'", "'requests.nvidia.com/gpu': '0'"), "",
          NULL, NULL);
    snprintf(quota, sizeof quota, QUOTA("%s'2'", ""), claims);
    check(CLAIMS, quota, "", NULL, NULL);
    snprintf(quota, sizeof quota, QUOTA("%s'1'", ""), claims);
    check(CLAIMS, quota, "",
          "ResourceQuota q: count/resourceclaims.resource.k8s.io: the job asks for 2, 0 of 1 are "
          "used",
          NULL);
    check(CLAIMS, QUOTA("'dranet.deviceclass.resource.k8s.io/devices': '4'", ""), "", NULL, NULL);
    check(CLAIMS, QUOTA("'gpu.nvidia.com.deviceclass.resource.k8s.io/devices': '7'", ""), "",
          "ResourceQuota q: gpu.nvidia.com.deviceclass.resource.k8s.io/devices: the job asks for "
          "8, 0 of 7 are used",
          NULL);
    /* of alternatives the most that any takes of the class */
    check(EITHER, QUOTA("'gpu.nvidia.com.deviceclass.resource.k8s.io/devices': '4'", ""), "", NULL,
          NULL);
    check(EITHER, QUOTA("'gpu.nvidia.com.deviceclass.resource.k8s.io/devices': '3'", ""), "",
          "ResourceQuota q: gpu.nvidia.com.deviceclass.resource.k8s.io/devices: the job asks for "
          "4, 0 of 3 are used",
          NULL);
    check(EITHER, QUOTA("'mig.nvidia.com.deviceclass.resource.k8s.io/devices': '3'", ""), "",
          "ResourceQuota q: mig.nvidia.com.deviceclass.resource.k8s.io/devices: the job asks for "
          "4, 0 of 3 are used",
          NULL);
    check(CLAIMS_BY("'claims': 'template', "),
          QUOTA("'gpu.nvidia.com.deviceclass.resource.k8s.io/devices': '8'", ""), "", NULL, NULL);
}

#define CLASS(name, resource)                                                                      \
    "{'metadata': {'name': '" name "'}, 'spec': {'extendedResourceName': '" resource "'}}"

/* Devices of claims count as the extended resource of their class, too. */
static void test_extended_resources(void **state)
{
    static const char named[] = CLASS("gpu.nvidia.com", "nvidia.com/gpu");
    static const char both[] =
        CLASS("gpu.nvidia.com", "nvidia.com/gpu") ", " CLASS("dranet", "a.b/nic");
    static const char either[] =
        CLASS("gpu.nvidia.com", "nvidia.com/gpu") ", " CLASS("mig.nvidia.com", "a.b/mig");
    static const char seven[] = QUOTA("'requests.nvidia.com/gpu': '7'", "");
    static const char implicit[] =
        QUOTA("'requests.deviceclass.resource.kubernetes.io/gpu.nvidia.com': '7'", "");
    (void)state;
    check_with(named, 36, CLAIMS, seven, "",
               "ResourceQuota q: requests.nvidia.com/gpu: the job asks for 8, 0 of 7 are used",
               NULL);
    check_with(named, 36, CLAIMS, implicit, "",
               "ResourceQuota q: requests.deviceclass.resource.kubernetes.io/gpu.nvidia.com: the "
               "job asks for 8, 0 of 7 are used",
               NULL);
    check_with(named, 35, CLAIMS, seven, "", NULL, NULL);
    check_with(both, 36, CLAIMS, QUOTA("'requests.nvidia.com/gpu': '8'", ""), "", NULL, NULL);
    check_with(named, 36, CLAIMS, QUOTA("'requests.nvidia.com/gpu': '8'", ""), "", NULL,
               "requests.nvidia.com/gpu of ResourceQuota q"); /* NICs may be GPUs, too */
    check_with(CLASS("dranet", "a.b/nic"), 36, CLAIMS, seven, "", NULL,
               "requests.nvidia.com/gpu of ResourceQuota q");
    check_with(CLASS("dranet", "a.b/nic"), 35, CLAIMS, seven, "", NULL, NULL);
    check_known(CLASS("dranet", "a.b/nic"), 36, CLAIMS, seven, "", NULL, NULL);
    check_with(either, 36, EITHER, seven, "", NULL, NULL);
    check_with("", 36, CLAIMS, seven, "", NULL, "requests.nvidia.com/gpu of ResourceQuota q");
    check_with("", 36, GPUS, QUOTA("'requests.nvidia.com/gpu': '16'", ""), "", NULL, NULL);
    /* the scheduler's claims for those of pods, charged beyond the pods themselves */
    check_with(named, 36, GPUS, QUOTA("'requests.nvidia.com/gpu': '16'", ""), "", NULL, NULL);
    check_with(named, 36, GPUS, QUOTA("'count/resourceclaims.resource.k8s.io': '1'", ""), "",
               "ResourceQuota q: count/resourceclaims.resource.k8s.io: the job asks for 2, 0 of 1 "
               "are used",
               NULL);
    check_with(named, 36, GPUS,
               QUOTA("'gpu.nvidia.com.deviceclass.resource.k8s.io/devices': '15'", ""), "",
               "ResourceQuota q: gpu.nvidia.com.deviceclass.resource.k8s.io/devices: the job asks "
               "for 16, 0 of 15 are used",
               NULL);
    check_with(named, 35, GPUS,
               QUOTA("'gpu.nvidia.com.deviceclass.resource.k8s.io/devices': '15'", ""), "", NULL,
               NULL);
}

static void test_amounts(void **state)
{
    (void)state;
    check(SAYS, QUOTA("'limits.cpu': '17'", "'limits.cpu': '0'"), "", NULL, NULL);
    check(SAYS, QUOTA("'limits.cpu': '16'", "'limits.cpu': '0'"), "",
          "ResourceQuota q: limits.cpu: the job asks for 16.5, 0 of 16 are used", NULL);
    check(SAYS, QUOTA("'cpu': '9'", "'cpu': '250m'"), "", NULL, NULL);
    check(SAYS, QUOTA("'requests.memory': '32Gi'", ""), "",
          "ResourceQuota q: requests.memory: the job asks for 32.5039Gi, 0 of 32Gi are used", NULL);
    check(TWO, QUOTA("'requests.cpu': '100'", ""), "",
          "ResourceQuota q: container worker of a worker's pod says no requests.cpu, which the "
          "quota demands of all",
          NULL);
}

static void test_amounts_of_the_pod(void **state)
{
    static const char said[] = SHORT "'workers': 2, 'launcher': {'resources': {'requests': {'cpu': "
                                     "'250m'}, 'limits': {'cpu': '1'}}}, 'template': {'spec': "
                                     "{'resources': {'requests': {'cpu': '4'}, 'limits': {'cpu': "
                                     "'5'}}}}";
    (void)state;
    check(said, QUOTA("'requests.cpu': '8250m', 'limits.cpu': '11'", ""), "", NULL, NULL);
    check(said, QUOTA("'requests.cpu': '8'", ""), "",
          "ResourceQuota q: requests.cpu: the job asks for 8.25, 0 of 8 are used", NULL);
    check(said, QUOTA("'limits.cpu': '10'", ""), "",
          "ResourceQuota q: limits.cpu: the job asks for 11, 0 of 10 are used", NULL);
}

static void test_ranges(void **state)
{
    (void)state;
    check(TWO, QUOTA("'requests.cpu': '100'", ""),
          RANGE("'type': 'Container', 'defaultRequest': {'cpu': '1'}"), NULL, NULL);
    check(TWO, QUOTA("'limits.memory': '100Gi'", ""),
          RANGE("'type': 'Container', 'max': {'memory': '2Gi'}"), NULL, NULL);
    check(SAYS, "", RANGE("'type': 'Container', 'max': {'memory': '8Gi'}"), NULL, NULL);
    check(SAYS, "", RANGE("'type': 'Container', 'max': {'memory': '4Gi'}"),
          "LimitRange r: container w of a worker's pod is out of the bounds of memory, at most 4Gi "
          "is allowed",
          NULL);
    check(SAYS, "", RANGE("'type': 'Pod', 'max': {'cpu': '3'}"),
          "LimitRange r: a worker's pod is out of the bounds of cpu, at most 3 is allowed", NULL);
    check(SAYS, "", RANGE("'type': 'Pod', 'max': {'cpu': 3}"),
          "LimitRange r: a worker's pod is out of the bounds of cpu, at most 3 is allowed", NULL);
    check(TWO, "", RANGE("'type': 'Pod', 'min': {'memory': '1Mi'}"),
          "LimitRange r: a worker's pod says nothing of memory, at least 1Mi is allowed", NULL);
    check(SAYS, "", RANGE("'type': 'Container', 'maxLimitRequestRatio': {'cpu': '2'}"), NULL, NULL);
    check(SAYS, "", RANGE("'type': 'Container', 'maxLimitRequestRatio': {'cpu': '1500m'}"),
          "LimitRange r: container w of a worker's pod has a limit of cpu that is 2 times its "
          "request, a ratio of at most 1.5 is allowed",
          NULL);
    check(SAYS, "", RANGE("'type': 'Pod', 'maxLimitRequestRatio': {'memory': '1', 'cpu': '1'}"),
          "LimitRange r: a worker's pod has a limit of cpu that is 2 times its request, a ratio of "
          "at most 1 is allowed",
          NULL);
    check(
        TWO, "", RANGE("'type': 'Container', 'maxLimitRequestRatio': {'memory': '2'}"),
        "LimitRange r: container worker of a worker's pod says no request of memory, a ratio of at "
        "most 2 is allowed",
        NULL);
    check(TWO, "", RANGE("'type': 'PersistentVolumeClaim', 'max': {'storage': '1'}"), NULL, NULL);
}

static void test_which(void **state)
{
    static const char of_b[] = "{'metadata': {'name': 'q', 'namespace': 'b'}, 'spec': {'hard': "
                               "{'pods': '1'}}, 'status': {'used': {}}}";
    static const char both[] = "{'metadata': {'name': 'q', 'namespace': 'a'}, 'spec': {'hard': "
                               "{}}, 'status': {'used': {}}}, {'metadata': {'name': 'q', "
                               "'namespace': 'b'}, 'spec': {'hard': {'pods': '1'}}, 'status': "
                               "{'used': {}}}";
    (void)state;
    check(TWO, of_b, "", "ResourceQuota q: pods: the job asks for 3, 0 of 1 are used", NULL);
    check(TWO, both, "", NULL, "several namespaces");
    check(TWO, "{'metadata': {'name': 'q'}, 'spec': {'hard': {'pods': '9'}}}", "", NULL,
          "used of ResourceQuota q");
    check(TWO,
          "{'metadata': {'name': 'q'}, 'spec': {'hard': {'pods': '1'}, 'scopes': "
          "['BestEffort']}}",
          "", NULL, "pods of some scope");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_extended_resources),
        cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_amounts_of_the_pod),
        cmocka_unit_test(test_which),
    };
    return cmocka_run_group_tests_name("namespace_fit", tests, NULL, NULL);
}
