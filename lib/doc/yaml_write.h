/* SPDX-License-Identifier: Apache-2.0 */
/* jansson values as YAML in block style, which doc_parse (and kubectl) reads back as the same
 * values: texts that would be read as something else are quoted, several lines become a literal
 * block. */
#ifndef DRARUN_DOC_YAML_WRITE_H
#define DRARUN_DOC_YAML_WRITE_H

#include <jansson.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

/* Appends one document, without "---". Members in their order. */
int yaml_write(const json_t *value, struct buf *out, struct drarun_error *err);

/* Of the library that does it. */
const char *yaml_library_version(void);

#endif
