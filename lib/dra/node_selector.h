/* SPDX-License-Identifier: Apache-2.0 */
/* Node selectors, after k8s.io/component-helpers/scheduling/corev1/nodeaffinity: terms are
 * alternatives, what is in a term must all hold, and an empty term matches nothing. Pure. */
#ifndef DRARUN_DRA_NODE_SELECTOR_H
#define DRARUN_DRA_NODE_SELECTOR_H

#include <jansson.h>

/* Whether a node selector (nodeSelectorTerms) matches; labels: NULL when not known. -EAGAIN: that
 * depends on labels which are not known; -EINVAL: an operator that is not known. */
int node_selector_matches(const json_t *selector, const char *node, const json_t *labels);

#endif
