/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a DraJob document as tables, and the struct that they fill. Private to jobs/spec. */
#ifndef DRARUN_JOBS_SPEC_FIELDS_H
#define DRARUN_JOBS_SPEC_FIELDS_H

#include "jobs/spec/spec.h"
#include "lib/doc/fields.h"

struct spec_raw {
    struct job_spec s;
    struct spec_role above; /* what the top says for all roles */
    const char *success;
    const char *api_version, *kind;
    uint32_t policy_restarts; /* failurePolicy.restarts */
};

extern const struct field_table spec_fields; /* of `spec` alone */

/* A role under inspection: what it says itself, and the top. Without `roles` both are the node of
 * `spec`. */
struct spec_role_nodes {
    const struct reader_node *own, *above;
};

/* Where a role's key stands: in itself or at the top; false: in neither. */
bool spec_role_get(const struct spec_role_nodes *at, const char *key, struct reader_node *ret_node);
/* The node that has it; where neither does, the role's own. */
const struct reader_node *spec_role_holder(const struct spec_role_nodes *at, const char *key);

/* Findings beyond the single value: what goes together, names, limits. spec: the node of `spec`;
 * root: of the document, the same node for a spec alone. */
void spec_check(const struct reader_node *root, const struct reader_node *spec,
                struct spec_raw *raw);

/* A list of rules into a failure_policy. */
void spec_read_failure_rules(const struct reader_node *node, void *field);
/* Those of failurePolicy as a whole; fills in restarts. */
void spec_check_failure_policy(const struct reader_node *spec, struct spec_raw *raw);

/* Those of the pod; makes its template of the short form and what is written as template. */
void spec_check_template(const struct spec_role_nodes *at, struct spec_role *role);

/* Of the short form (jobs/spec/spec_short.c); the field is not written, as the template is made of
 * the document. */
void spec_read_text(const struct reader_node *node, void *field);
void spec_read_words(const struct reader_node *node, void *field);
void spec_read_command(const struct reader_node *node, void *field);
/* A finding where the command is what import writes for a program that it has not found. */
void spec_check_placeholder(const struct reader_node *command);
void spec_read_env(const struct reader_node *node, void *field);
void spec_read_env_from(const struct reader_node *node, void *field);
void spec_read_resources(const struct reader_node *node, void *field);
void spec_read_volumes(const struct reader_node *node, void *field);
void spec_read_tolerations(const struct reader_node *node, void *field);
void spec_read_text_map(const struct reader_node *node, void *field);
void spec_read_pull_secrets(const struct reader_node *node, void *field);
/* Adds the finding for a key that `spec` does not have: what a DraJob calls that of another job, or
 * where Kubernetes has it in a pod. False: neither knows the key, and nothing was added. */
bool spec_explain_key(const struct reader_node *spec, const char *key);

#endif
