/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in jansson's values, where anything else counts as missing: for the cluster's objects and
 * other documents that are read with tolerance. Strict reading is lib/doc/reader.h. Borrowed texts
 * live as long as the value. Pure. */
#ifndef DRARUN_DOC_VALUE_H
#define DRARUN_DOC_VALUE_H

#include <jansson.h>

/* NULL: object is none, or has no text there. */
const char *value_text(const json_t *object, const char *key);
/* `otherwise` also where the text is empty. */
const char *value_text_or(const json_t *object, const char *key, const char *otherwise);
/* A new reference; null for NULL and for an empty text. */
json_t *value_of_text(const char *text);

#endif
