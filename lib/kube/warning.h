/* SPDX-License-Identifier: Apache-2.0 */
/* What an API server warns of beside its answer: Warning headers (RFC 7234, 5.5). Pure. Private to
 * lib/kube. */
#ifndef DRARUN_KUBE_WARNING_H
#define DRARUN_KUBE_WARNING_H

#include "lib/base/strlist.h"

/* Adds the texts of one header's value, `299 - "text"`, of which there may be several with commas
 * between. Behind what is no such warning nothing is read; an API server writes no dates. */
void warning_add_texts(const char *value, struct strlist *out);

#endif
