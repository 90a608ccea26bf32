/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/outcome/failure_rule.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

/* What a rank did, which the job's exit status tells. */
static bool is_of_a_rank(const json_t *cause)
{
    return json_object_get(cause, "rank") != NULL;
}

static bool is_kind(const json_t *cause, const char *word)
{
    if (strcmp(word, "oom") == 0 && json_is_true(json_object_get(cause, "oom")))
        return true;
    if (strcmp(value_text_or(cause, "kind", ""), word) == 0)
        return true;
    bool of_a_pod =
        strcmp(value_text_or(cause, "kind", ""), "pod") == 0 && strcmp(word, "exit") != 0;
    return of_a_pod && strcmp(value_text_or(cause, "end", ""), word) == 0;
}

static bool fits(const struct failure_rule *rule, const json_t *end)
{
    const json_t *cause = json_object_get(end, "cause");
    json_int_t status = json_integer_value(json_object_get(end, "status"));
    if (!json_is_object(cause))
        return false;
    if (rule->on_cause)
        return is_kind(cause, rule->on_cause);
    return is_of_a_rank(cause) && status > 0 && status <= FAILURE_EXIT_CODE_MAX &&
           rule->on_codes[status];
}

/* Not the program's doing, and not the spec's. */
static bool is_infrastructure(const json_t *cause)
{
    static const char *const own[] = {"exit", "oom", "deadline"};
    const char *kind = value_text_or(cause, "kind", "");
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strcmp(value_text_or(cause, "end", ""), own[i]) == 0)
            return false;
    return strcmp(kind, "pod") == 0 || strcmp(kind, "failure") == 0 ||
           strcmp(kind, "launcher-lost") == 0;
}

static enum failure_count count_of(const struct failure_policy *policy, const json_t *end)
{
    return policy->apart && is_infrastructure(json_object_get(end, "cause"))
               ? FAILURE_COUNT_INFRASTRUCTURE
               : FAILURE_COUNT_RESTARTS;
}

static void apply(const struct failure_rule *rule, struct failure_decision *decision)
{
    decision->restart = rule->action != FAILURE_FAIL;
    if (rule->action == FAILURE_IGNORE)
        decision->count = FAILURE_COUNT_NONE;
    if (rule->node)
        decision->avoid_node = rule->node == FAILURE_NODE_AVOID;
    decision->new_claims |= decision->avoid_node; /* they hold devices of that node */
}

struct failure_decision failure_decide(const struct failure_policy *policy, const json_t *end,
                                       struct cause_restart table)
{
    struct failure_decision decision = {
        .restart = table.retry,
        .count = count_of(policy, end),
        .avoid_node = table.avoid_node,
        .new_claims = table.new_claims,
        .rule = -1,
    };
    for (size_t i = 0; i < policy->count; i++) {
        if (!fits(&policy->rules[i], end))
            continue;
        apply(&policy->rules[i], &decision);
        decision.rule = (int)i;
        break;
    }
    return decision;
}

uint32_t failure_allowed(const struct job_spec *spec, enum failure_count count)
{
    switch (count) {
    case FAILURE_COUNT_RESTARTS:
        return spec->restarts;
    case FAILURE_COUNT_INFRASTRUCTURE:
        return spec->failure.infrastructure_restarts;
    default:
        return UINT32_MAX;
    }
}

bool failure_launcher_is_last(const struct job_spec *spec, const uint32_t used[FAILURE_COUNTS])
{
    CLEANUP(json_decrefp)
    json_t *end =
        json_pack("{s:i, s:{s:s}}", "status", error_exit_status(DRARUN_ERR_INFRASTRUCTURE), "cause",
                  "kind", "launcher-lost");
    struct failure_decision next =
        failure_decide(&spec->failure, end, (struct cause_restart){.retry = true});
    return !next.restart || used[next.count] >= failure_allowed(spec, next.count);
}
