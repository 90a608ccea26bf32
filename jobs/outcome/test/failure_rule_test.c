/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from an end: rules of a spec over ends as cause_json tells them. */
#include "jobs/outcome/failure_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/spec/spec.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"
#include "lib/base/test/quoted_json.h"

static const struct cause_restart again = {.retry = true}, elsewhere = {.retry = true,
                                                                        .avoid_node = true,
                                                                        .new_claims = true};

/* Of a job whose failurePolicy this is. */
static struct job_spec with_policy(const char *policy)
{
    char text[1000];
    struct job_spec spec;
    struct drarun_error err = {0};
    snprintf(text, sizeof text, "image: i\ncommand: [c]\nfailurePolicy: {%s}\n", policy);
    if (spec_parse("job.yaml", text, strlen(text), &spec, &err) < 0)
        fail_msg("%s\n%s", text, err.text);
    return spec;
}

static const struct {
    const char *policy, *end;
    struct cause_restart table;
    struct failure_decision wanted;
} decisions[] = {
    /* without rules */
    {"restarts: 1",
     "{'status': 7, 'cause': {'kind': 'exit', 'rank': 1, 'exit': 7}}",
     again,
     {true, FAILURE_COUNT_RESTARTS, false, false, -1}},
    {"restarts: 1",
     "{'status': 70, 'cause': {'kind': 'pod', 'end': 'node-lost'}}",
     elsewhere,
     {true, FAILURE_COUNT_RESTARTS, true, true, -1}},
    {"restarts: 1",
     "{'status': 124, 'cause': {'kind': 'timeout'}}",
     {0},
     {false, FAILURE_COUNT_RESTARTS, false, false, -1}},
    /* with a number for the infrastructure */
    {"infrastructureRestarts: 9",
     "{'status': 70, 'cause': {'kind': 'pod', 'end': 'evicted'}}",
     again,
     {true, FAILURE_COUNT_INFRASTRUCTURE, false, false, -1}},
    {"infrastructureRestarts: 9",
     "{'status': 70, 'cause': {'kind': 'launcher-lost'}}",
     again,
     {true, FAILURE_COUNT_INFRASTRUCTURE, false, false, -1}},
    {"infrastructureRestarts: 9",
     "{'status': 137, 'cause': {'kind': 'pod', 'end': 'oom'}}",
     again,
     {true, FAILURE_COUNT_RESTARTS, false, false, -1}},
    {"infrastructureRestarts: 9",
     "{'status': 7, 'cause': {'kind': 'exit', 'rank': 0}}",
     again,
     {true, FAILURE_COUNT_RESTARTS, false, false, -1}},
    /* by the exit status that a rank made */
    {"rules: [{\"on\": {exitCodes: [3, 7]}, action: fail}]",
     "{'status': 7, 'cause': {'kind': 'exit', 'rank': 1}}",
     again,
     {false, FAILURE_COUNT_RESTARTS, false, false, 0}},
    {"rules: [{\"on\": {exitCodes: [137]}, action: ignore}]",
     "{'status': 137, 'cause': {'kind': 'signal', 'rank': 1, 'signal': 9}}",
     again,
     {true, FAILURE_COUNT_NONE, false, false, 0}},
    {"rules: [{\"on\": {exitCodes: [70]}, action: fail}]",
     "{'status': 70, 'cause': {'kind': 'pod', 'end': 'evicted', 'exit': 70}}",
     again,
     {true, FAILURE_COUNT_RESTARTS, false, false, -1}}, /* no rank's */
    /* by what happened */
    {"rules: [{\"on\": {cause: oom}, action: fail}]",
     "{'status': 137, 'cause': {'kind': 'signal', 'rank': 1, 'oom': true}}",
     again,
     {false, FAILURE_COUNT_RESTARTS, false, false, 0}},
    {"rules: [{\"on\": {cause: oom}, action: fail}]",
     "{'status': 137, 'cause': {'kind': 'signal', 'rank': 1, 'oom': false}}",
     again,
     {true, FAILURE_COUNT_RESTARTS, false, false, -1}},
    {"rules: [{\"on\": {cause: pod}, action: ignore}]",
     "{'status': 70, 'cause': {'kind': 'pod', 'end': 'evicted'}}",
     again,
     {true, FAILURE_COUNT_NONE, false, false, 0}},
    {"rules: [{\"on\": {cause: exit}, action: fail}]",
     "{'status': 70, 'cause': {'kind': 'pod', 'end': 'exit'}}",
     again,
     {true, FAILURE_COUNT_RESTARTS, false, false, -1}}, /* the agent's */
    {"rules: [{\"on\": {cause: failure}, action: restart}]",
     "{'status': 76, 'cause': {'kind': 'failure'}}",
     {0},
     {true, FAILURE_COUNT_RESTARTS, false, false, 0}},
    /* nodes */
    {"rules: [{\"on\": {exitCodes: [7]}, action: restart, node: avoid}]",
     "{'status': 7, 'cause': {'kind': 'exit', 'rank': 1}}",
     again,
     {true, FAILURE_COUNT_RESTARTS, true, true, 0}},
    {"rules: [{\"on\": {cause: node-lost}, action: restart, node: keep}]",
     "{'status': 70, 'cause': {'kind': 'pod', 'end': 'node-lost'}}",
     elsewhere,
     {true, FAILURE_COUNT_RESTARTS, false, true, 0}},
    /* the first that fits */
    {"rules: [{\"on\": {cause: abort}, action: fail}, {\"on\": {exitCodes: [7]}, action: ignore}, "
     "{\"on\": {cause: exit}, action: fail}]",
     "{'status': 7, 'cause': {'kind': 'exit', 'rank': 1}}",
     again,
     {true, FAILURE_COUNT_NONE, false, false, 1}},
    {"rules: [{\"on\": {cause: exit}, action: fail}]",
     "{'status': 70, 'cause': null}",
     again,
     {true, FAILURE_COUNT_RESTARTS, false, false, -1}},
};

static void test_decisions(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(decisions); i++) {
        struct job_spec spec = with_policy(decisions[i].policy);
        json_t *end = quoted_json(decisions[i].end, 0);
        struct failure_decision got = failure_decide(&spec.failure, end, decisions[i].table);
        const struct failure_decision *wanted = &decisions[i].wanted;
        if (got.restart != wanted->restart || got.count != wanted->count ||
            got.avoid_node != wanted->avoid_node || got.new_claims != wanted->new_claims ||
            got.rule != wanted->rule)
            fail_msg("%s of %s: restart %d, count %d, avoid %d, new claims %d, rule %d",
                     decisions[i].policy, decisions[i].end, got.restart, got.count, got.avoid_node,
                     got.new_claims, got.rule);
        json_decref(end);
        job_spec_done(&spec);
    }
}

/* Every word that a rule may name is the kind of a cause that may be tried again, or the end of a
 * pod. */
static void test_words(void **state)
{
    static const char kinds[] = "exit signal abort no-finalize no-init failure launcher-lost pod";
    const char *at = FAILURE_CAUSES;
    size_t length;
    (void)state;
    for (const char *word; (word = words_next(&at, &length));) {
        bool known = words_index(kinds, word, length) >= 0;
        for (int end = POD_END_EXIT; end <= POD_END_UNKNOWN; end++) {
            const char *name = pod_end_name((enum pod_end)end);
            known |= strlen(name) == length && strncmp(name, word, length) == 0;
        }
        if (!known)
            fail_msg("%.*s is no cause", (int)length, word);
    }
    for (int end = POD_END_EXIT; end <= POD_END_UNKNOWN; end++) {
        const char *name = pod_end_name((enum pod_end)end);
        if (end != POD_END_DEADLINE && !words_has(FAILURE_CAUSES, name))
            fail_msg("a rule cannot name %s", name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_decisions),
                                       cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
