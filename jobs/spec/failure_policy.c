/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/spec/failure_policy.h"

#include <stdlib.h>

#include "jobs/spec/spec_fields.h"
#include "lib/base/nearest.h"

void failure_policy_done(struct failure_policy *policy)
{
    free(policy->rules);
    *policy = (struct failure_policy){0};
}

static void read_codes(const struct reader_node *node, struct failure_rule *rule)
{
    int64_t code = 0;
    if (reader_list(node, 1) < 0)
        return;
    if (json_array_size(node->value) > FAILURE_EXIT_CODE_MAX)
        reader_fail(node, "at most %d exit statuses", FAILURE_EXIT_CODE_MAX);
    for (size_t i = 0; i < json_array_size(node->value); i++) {
        struct reader_node item = reader_item(node, i);
        if (reader_integer(&item, 1, FAILURE_EXIT_CODE_MAX, &code) == 0)
            rule->on_codes[code] = true;
    }
}

static void read_cause(const struct reader_node *node, struct failure_rule *rule)
{
    int index = 0;
    if (reader_choice(node, FAILURE_CAUSES, &index) == 0)
        rule->on_cause = json_string_value(node->value);
}

/* Words that the format has, and this release does not. */
static bool is_later(const struct reader_node *node, const char *words)
{
    const char *text = json_string_value(node->value);
    if (!text || !words_has(words, text))
        return false;
    reader_fail(node, "%s is not supported yet", text);
    return true;
}

static bool explain_condition(const struct reader_node *on, const char *key)
{
    if (!words_has("hang fabric notice", key))
        return false;
    reader_unknown_key(on, key, "%s is not supported yet: exitCodes or cause", key);
    return true;
}

static void read_on(const struct reader_node *node, struct failure_rule *rule)
{
    struct reader_node codes, cause;
    if (reader_object(node) < 0)
        return;
    reader_known_or(node, "exitCodes cause", explain_condition);
    bool has_codes = reader_get(node, "exitCodes", &codes);
    bool has_cause = reader_get(node, "cause", &cause);
    if (has_codes && has_cause)
        reader_fail_key(node, "cause", "one condition a rule: exitCodes or cause");
    else if (json_object_size(node->value) == 0)
        reader_missing(node, "a condition is missing: exitCodes or cause");
    if (has_codes)
        read_codes(&codes, rule);
    if (has_cause)
        read_cause(&cause, rule);
}

static void read_rule(const struct reader_node *node, struct failure_rule *rule)
{
    struct reader_node on, action, scope, where;
    int index = 0;
    if (reader_object(node) < 0)
        return;
    reader_known(node, "on action scope node");
    if (reader_get(node, "on", &on))
        read_on(&on, rule);
    else
        reader_missing(node, "on is missing: what the rule is for, as {\"on\": {exitCodes: [3]}}");
    if (!reader_get(node, "action", &action))
        reader_missing(node, "action is missing: restart, fail or ignore");
    else if (!is_later(&action, "checkpoint") &&
             reader_choice(&action, "restart fail ignore", &index) == 0)
        rule->action = (enum failure_action)(index + 1);
    if (reader_get(node, "scope", &scope) && !is_later(&scope, "ranks worker"))
        reader_choice(&scope, "job", &index);
    if (reader_get(node, "node", &where) && reader_choice(&where, "avoid keep", &index) == 0)
        rule->node = (enum failure_node)(index + 1);
    if (rule->action == FAILURE_FAIL && rule->node)
        reader_fail_key(node, "node", "there is no next attempt after fail");
}

void spec_read_failure_rules(const struct reader_node *node, void *field)
{
    struct failure_policy *policy = field;
    if (reader_list(node, 1) < 0)
        return;
    size_t count = json_array_size(node->value);
    if (count > FAILURE_RULES_MAX) {
        reader_fail(node, "at most %d rules, got %zu", FAILURE_RULES_MAX, count);
        return;
    }
    policy->rules = calloc(count, sizeof *policy->rules);
    if (!policy->rules) {
        node->reader->texts.failed = true;
        return;
    }
    policy->count = count;
    for (size_t i = 0; i < count; i++) {
        struct reader_node item = reader_item(node, i);
        read_rule(&item, &policy->rules[i]);
    }
}

/* `restarts` in it is the one at the top, which is its short form. */
void spec_check_failure_policy(const struct reader_node *spec, struct spec_raw *raw)
{
    struct reader_node policy, given, top;
    if (!reader_get(spec, "failurePolicy", &policy) || !json_is_object(policy.value))
        return;
    raw->s.failure.apart = reader_get(&policy, "infrastructureRestarts", &given);
    if (raw->s.failure.on_rank_failure == FAILURE_OF_RANK_CONTINUE &&
        raw->s.launch == SPEC_LAUNCH_MPIRUN)
        reader_fail_key(&policy, "onRankFailure",
                        "your mpirun starts the ranks: leave it out and use mpirun's own option, "
                        "or use launch: pmix");
    if (!reader_get(&policy, "restarts", &given))
        return;
    if (reader_get(spec, "restarts", &top))
        reader_fail_key(&policy, "restarts",
                        "is also at the top, spec.restarts, which means the same: give one");
    raw->s.restarts = raw->policy_restarts;
}
