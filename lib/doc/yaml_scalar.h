/* SPDX-License-Identifier: Apache-2.0 */
/* What a plain YAML scalar means to Kubernetes (goyaml.v2's resolve.go). Pure. */
#ifndef DRARUN_DOC_YAML_SCALAR_H
#define DRARUN_DOC_YAML_SCALAR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum yaml_kind {
    YAML_KIND_TEXT = 1,
    YAML_KIND_NULL,
    YAML_KIND_BOOL,
    YAML_KIND_INTEGER,
    YAML_KIND_REAL,
    YAML_KIND_MERGE,     /* << */
    YAML_KIND_TOO_LARGE, /* a whole number beyond 64 bits */
    YAML_KIND_NO_JSON,   /* .inf, .nan */
};

struct yaml_scalar {
    enum yaml_kind kind;
    bool boolean;
    json_int_t integer;
    double real;
};

struct yaml_scalar yaml_resolve(const char *text, size_t len);

#endif
