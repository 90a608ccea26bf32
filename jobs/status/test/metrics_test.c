/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/status/metrics.h"
#include "lib/base/cleanup.h"

#define NOW_MS INT64_C(1700000100000) /* 2023-11-14T22:15:00Z */
#define JOB "{namespace=\"train\",job=\"all \\\"reduce\\\"\\\\\\n\""

static const char document[] =
    "{\"namespace\": \"train\", \"name\": \"all \\\"reduce\\\"\\\\\\n\", \"phase\": \"placing\","
    " \"created\": \"2023-11-14T22:14:00.500Z\", \"ranks\": 8, \"restarts\": 1, \"tries\": 3,"
    " \"exit\": null, \"workers\": {\"count\": 4, \"running\": 2, \"claims\": 4, \"allocated\": 3},"
    " \"timings\": {\"queued\": 1500, \"placing\": 41000, \"sleeping\": 1},"
    " \"waiting\": {\"reasons\": [{\"since\": \"2023-11-14T22:14:30.000Z\"},"
    " {\"since\": \"2023-11-14T22:14:19.000Z\"}, {}]}}";

static const char expected[] =
    "# HELP drarun_job_phase 1 for the phase that the job is in.\n"
    "# TYPE drarun_job_phase gauge\n"
    "drarun_job_phase" JOB ",phase=\"queued\"} 0\n"
    "drarun_job_phase" JOB ",phase=\"placing\"} 1\n"
    "drarun_job_phase" JOB ",phase=\"pulling\"} 0\n"
    "drarun_job_phase" JOB ",phase=\"starting\"} 0\n"
    "drarun_job_phase" JOB ",phase=\"running\"} 0\n"
    "drarun_job_phase" JOB ",phase=\"releasing\"} 0\n"
    "drarun_job_phase" JOB ",phase=\"ended\"} 0\n"
    "# HELP drarun_job_phase_seconds Time that the job has spent in each phase.\n"
    "# TYPE drarun_job_phase_seconds gauge\n"
    "drarun_job_phase_seconds" JOB ",phase=\"queued\"} 1.5\n"
    "drarun_job_phase_seconds" JOB ",phase=\"placing\"} 41\n"
    "# HELP drarun_job_workers Workers of the job, by state.\n"
    "# TYPE drarun_job_workers gauge\n"
    "drarun_job_workers" JOB ",state=\"wanted\"} 4\n"
    "drarun_job_workers" JOB ",state=\"running\"} 2\n"
    "# HELP drarun_job_claims ResourceClaims of the job, by state.\n"
    "# TYPE drarun_job_claims gauge\n"
    "drarun_job_claims" JOB ",state=\"wanted\"} 4\n"
    "drarun_job_claims" JOB ",state=\"allocated\"} 3\n"
    "# HELP drarun_job_ranks Ranks of the job.\n"
    "# TYPE drarun_job_ranks gauge\n"
    "drarun_job_ranks" JOB "} 8\n"
    "# HELP drarun_job_restarts_total Attempts after ranks had started.\n"
    "# TYPE drarun_job_restarts_total counter\n"
    "drarun_job_restarts_total" JOB "} 1\n"
    "# HELP drarun_job_releases_total How often devices were released because not all "
    "workers could be placed.\n"
    "# TYPE drarun_job_releases_total counter\n"
    "drarun_job_releases_total" JOB "} 3\n"
    "# HELP drarun_job_waiting_seconds How long the job waits for the same thing.\n"
    "# TYPE drarun_job_waiting_seconds gauge\n"
    "drarun_job_waiting_seconds" JOB "} 41\n"
    "# HELP drarun_job_created_timestamp_seconds When the job was created.\n"
    "# TYPE drarun_job_created_timestamp_seconds gauge\n"
    "drarun_job_created_timestamp_seconds" JOB "} 1700000040.5\n";

static void all_of_them(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    CLEANUP(json_decrefp) json_t *doc = json_loads(document, 0, NULL);
    assert_non_null(doc);
    metrics_text(doc, NOW_MS, &text);
    assert_string_equal(text.data, expected);
    buf_done(&text);
}

static void of_an_ended_job(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    CLEANUP(json_decrefp)
    json_t *doc = json_pack("{s:s, s:s, s:i}", "name", "a", "phase", "ended", "exit", 137);
    metrics_text(doc, NOW_MS, &text);
    assert_non_null(
        strstr(text.data, "\ndrarun_job_phase{namespace=\"\",job=\"a\",phase=\"ended\"} 1\n"));
    assert_non_null(strstr(text.data, "\ndrarun_job_exit_status{namespace=\"\",job=\"a\"} 137\n"));
    assert_null(strstr(text.data, "drarun_job_workers"));
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_of_them),
                                       cmocka_unit_test(of_an_ended_job)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
