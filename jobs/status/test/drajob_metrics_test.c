/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/status/drajob_metrics.h"
#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"

#define NOW_MS INT64_C(1700000100000) /* 2023-11-14T22:15:00Z */

static const char objects[] =
    "[{'metadata': {'namespace': 'train', 'creationTimestamp': '2023-11-14T22:10:00Z'},"
    "  'status': {'state': 'Running', 'launcherUID': 'u1'}},"
    " {'metadata': {'namespace': 'train', 'creationTimestamp': '2023-11-14T22:14:18Z'}},"
    " {'metadata': {'namespace': 'train', 'creationTimestamp': '2023-11-14T22:14:30Z'},"
    "  'status': {'state': 'Pending'}},"
    " {'metadata': {'namespace': 'train', 'creationTimestamp': '2023-11-14T22:11:00Z'},"
    "  'status': {'state': 'Running', 'launcherUID': 'u2'}},"
    " {'metadata': {'namespace': 'b', 'creationTimestamp': '2023-11-14T22:01:00Z'},"
    "  'status': {'state': 'Pending', 'launcherUID': 'u3'}},"
    " {'metadata': {'namespace': 'b', 'creationTimestamp': '2023-11-14T22:00:00Z'},"
    "  'spec': {'managedBy': 'example.com/other'}}]";

static const char head[] =
    "# HELP drarun_controller_info Which controller this is.\n"
    "# TYPE drarun_controller_info gauge\n"
    "drarun_controller_info{version=\"1.2.3\",instance_name=\"pod \\\"a\\\"\"} 1\n"
    "# HELP drarun_controller_leads 1 for the controller that holds the Lease.\n"
    "# TYPE drarun_controller_leads gauge\n";

static const char jobs[] = "# HELP drarun_controller_due DraJobs that it is to look at now.\n"
                           "# TYPE drarun_controller_due gauge\n"
                           "drarun_controller_due 3\n"
                           "# HELP drarun_controller_jobs DraJobs that it manages, by state.\n"
                           "# TYPE drarun_controller_jobs gauge\n"
                           "drarun_controller_jobs{namespace=\"train\",state=\"Running\"} 2\n"
                           "drarun_controller_jobs{namespace=\"train\",state=\"New\"} 1\n"
                           "drarun_controller_jobs{namespace=\"train\",state=\"Pending\"} 1\n"
                           "drarun_controller_jobs{namespace=\"b\",state=\"Pending\"} 1\n"
                           "# HELP drarun_controller_oldest_pending_seconds Longest time that a "
                           "DraJob has waited for its objects.\n"
                           "# TYPE drarun_controller_oldest_pending_seconds gauge\n"
                           "drarun_controller_oldest_pending_seconds 42.000\n"
                           "# HELP drarun_controller_ceded_namespaces Namespaces whose DraJobs it "
                           "leaves to a controller of their own.\n"
                           "# TYPE drarun_controller_ceded_namespaces gauge\n"
                           "drarun_controller_ceded_namespaces 2\n";

static const char counts[] =
    "# HELP drarun_controller_ended_total Jobs whose end was written, by state.\n"
    "# TYPE drarun_controller_ended_total counter\n"
    "drarun_controller_ended_total{namespace=\"train\",state=\"Failed\"} 2\n"
    "drarun_controller_ended_total{namespace=\"train\",state=\"Succeeded\"} 0\n"
    "drarun_controller_ended_total{namespace=\"train\",state=\"Cancelled\"} 0\n"
    "drarun_controller_ended_total{namespace=\"b\",state=\"Succeeded\"} 1\n"
    "drarun_controller_ended_total{namespace=\"b\",state=\"Failed\"} 0\n"
    "drarun_controller_ended_total{namespace=\"b\",state=\"Cancelled\"} 0\n"
    "# HELP drarun_controller_created_total Jobs whose objects were made.\n"
    "# TYPE drarun_controller_created_total counter\n"
    "drarun_controller_created_total 5\n"
    "# HELP drarun_controller_refused_total Specs that were refused.\n"
    "# TYPE drarun_controller_refused_total counter\n"
    "drarun_controller_refused_total 4\n"
    "# HELP drarun_controller_create_errors_total Attempts to make a job's objects that failed; "
    "they are repeated.\n"
    "# TYPE drarun_controller_create_errors_total counter\n"
    "drarun_controller_create_errors_total 3\n"
    "# HELP drarun_controller_status_errors_total Statuses that could not be written; that is "
    "repeated.\n"
    "# TYPE drarun_controller_status_errors_total counter\n"
    "drarun_controller_status_errors_total 2\n"
    "# HELP drarun_controller_expired_total DraJobs that were deleted after their time to live.\n"
    "# TYPE drarun_controller_expired_total counter\n"
    "drarun_controller_expired_total 1\n"
    "# HELP drarun_controller_looks_total Looks at a DraJob.\n"
    "# TYPE drarun_controller_looks_total counter\n"
    "drarun_controller_looks_total 70\n"
    "# HELP drarun_controller_look_seconds_total Time that these looks took together.\n"
    "# TYPE drarun_controller_look_seconds_total counter\n"
    "drarun_controller_look_seconds_total 1.250\n";

static void count_objects(struct drajob_census *census)
{
    CLEANUP(json_decrefp) json_t *list = quoted_json(objects, 0);
    size_t i;
    const json_t *each;
    json_array_foreach(list, i, each) drajob_census_add(census, each);
}

static void end(struct drajob_tally *tally, const char *namespace, const char *state)
{
    CLEANUP(json_decrefp) json_t *status = json_pack("{s:s}", "state", state);
    drajob_tally_end(tally, namespace, status);
}

static void assert_text(const struct drajob_metrics *metrics, const char *leads, const char *middle)
{
    struct buf out = BUF_INIT, expected = BUF_INIT;
    buf_printf(&expected, "%s%s%s%s", head, leads, middle, counts);
    drajob_metrics_text(metrics, &out);
    assert_false(out.failed);
    assert_string_equal(out.data, expected.data);
    buf_done(&out);
    buf_done(&expected);
}

static void test_leader_and_follower(void **state)
{
    struct drajob_census census = {0};
    struct drajob_tally tally = {.looks = 70,
                                 .look_ms = 1250,
                                 .created = 5,
                                 .refused = 4,
                                 .not_created = 3,
                                 .not_written = 2,
                                 .expired = 1};
    (void)state;
    count_objects(&census);
    end(&tally, "train", "Failed");
    end(&tally, "b", "Succeeded");
    end(&tally, "train", "Failed");
    struct drajob_metrics metrics = {.version = "1.2.3",
                                     .instance = "pod \"a\"",
                                     .leads = true,
                                     .due = 3,
                                     .ceded = 2,
                                     .now_ms = NOW_MS,
                                     .census = &census,
                                     .tally = &tally};
    assert_text(&metrics, "drarun_controller_leads 1\n", jobs);
    metrics = (struct drajob_metrics){.version = "1.2.3", .instance = "pod \"a\"", .tally = &tally};
    assert_text(&metrics, "drarun_controller_leads 0\n",
                "# HELP drarun_controller_due DraJobs that it is to look at now.\n"
                "# TYPE drarun_controller_due gauge\n"
                "drarun_controller_due 0\n");
    drajob_census_done(&census);
    json_decref(tally.ended);
}

/* What the leader tells of one DraJob. */
static void tell_of(const json_t *object, struct buf *out)
{
    struct drajob_census census = {0};
    struct drajob_tally tally = {0};
    drajob_census_add(&census, object);
    const struct drajob_metrics metrics = {.version = "1",
                                           .instance = "i",
                                           .leads = true,
                                           .now_ms = NOW_MS,
                                           .census = &census,
                                           .tally = &tally};
    drajob_metrics_text(&metrics, out);
    drajob_census_done(&census);
}

/* Nothing waits: no age, whatever the clocks of the two machines say. */
static void test_none_and_a_later_clock(void **state)
{
    static const char *const cases[] = {
        "{\"metadata\": {\"namespace\": \"a\"}}",
        "{\"metadata\": {\"namespace\": \"a\", \"creationTimestamp\": \"2024-11-14T22:10:00Z\"}}",
        "{\"metadata\": {\"namespace\": \"a\", \"creationTimestamp\": \"soon\"}}"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out = BUF_INIT;
        CLEANUP(json_decrefp) json_t *object = json_loads(cases[i], 0, NULL);
        tell_of(object, &out);
        assert_non_null(strstr(out.data, "drarun_controller_oldest_pending_seconds 0.000\n"));
        assert_non_null(strstr(out.data, "{namespace=\"a\",state=\"New\"} 1\n"));
        buf_done(&out);
    }
}

/* An alert would tell of one that was suspended, or wrong, for long; one that is deleted gets no
 * objects. */
static void test_since_when_one_waits(void **state)
{
#define CREATED "'creationTimestamp': '2023-11-13T22:15:00Z'"
#define ACCEPTED                                                                                   \
    "{'type': 'Accepted', 'status': 'True', 'lastTransitionTime': '2023-11-14T22:14:00Z'}"
#define SUSPENDED(status)                                                                          \
    "{'type': 'Suspended', 'status': '" status "', 'lastTransitionTime': '2023-11-14T22:14:30Z'}"
#define PENDING(conditions) "'status': {'state': 'Pending', 'conditions': [" conditions "]}}"
    static const struct {
        const char *object, *seconds;
    } cases[] = {
        {"{'metadata': {'generation': 1, " CREATED "}}", "86400.000"},
        {"{'metadata': {'generation': 2, " CREATED "}}", "86400.000"},
        {"{'metadata': {'generation': 1, " CREATED "}, " PENDING(ACCEPTED), "86400.000"},
        {"{'metadata': {'generation': 2, " CREATED "}, " PENDING(ACCEPTED), "60.000"},
        {"{'metadata': {'generation': 3, " CREATED "}, " PENDING(ACCEPTED ", " SUSPENDED("False")),
         "30.000"},
        {"{'metadata': {'generation': 3, " CREATED "}, " PENDING(SUSPENDED("True")), "86400.000"},
        {"{'metadata': {'deletionTimestamp': '2023-11-14T22:10:00Z', " CREATED "}}", "0.000"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out = BUF_INIT;
        char line[80];
        CLEANUP(json_decrefp) json_t *object = quoted_json(cases[i].object, 0);
        tell_of(object, &out);
        snprintf(line, sizeof line, "\ndrarun_controller_oldest_pending_seconds %s\n",
                 cases[i].seconds);
        if (!strstr(out.data, line))
            fail_msg("%s: expected %s, got %s", cases[i].object, line, out.data);
        buf_done(&out);
    }
}

static void test_uncounted_objects_fail(void **state)
{
    const struct drajob_census census = {.failed = true};
    const struct drajob_tally tally = {0};
    const struct drajob_metrics metrics = {
        .version = "1", .instance = "i", .census = &census, .tally = &tally};
    struct buf out = BUF_INIT;
    (void)state;
    drajob_metrics_text(&metrics, &out);
    assert_true(out.failed);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leader_and_follower),
        cmocka_unit_test(test_none_and_a_later_clock),
        cmocka_unit_test(test_since_when_one_waits),
        cmocka_unit_test(test_uncounted_objects_fail),
    };
    return cmocka_run_group_tests_name("drajob_metrics", tests, NULL, NULL);
}
