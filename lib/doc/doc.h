/* SPDX-License-Identifier: Apache-2.0 */
/* Documents: YAML or JSON text as jansson values that remember where each of them stood.
 *
 * YAML is read as Kubernetes reads it (sigs.k8s.io/yaml over goyaml.v2: resolve.go of v2.4.2):
 * plain yes, no, on, off, y and n are booleans, 0755 is octal, 1_000 a number, 2025-01-01 a text,
 * "<<" merges, a number without fraction is an integer. Otherwise than goyaml.v2, and as YAML 1.1
 * says, what stands in a mapping itself always wins over what it merges. Stricter than that, each
 * with a message: duplicate keys (unless last_wins), tags, keys that are not texts or whole
 * numbers, numbers beyond 64 bits, .inf and .nan, NUL and invalid UTF-8, anchors that contain
 * themselves, aliases that expand beyond a limit, depth and size. JSON is RFC 8259, also several
 * documents behind one another (as Kubernetes' device metadata files are).
 *
 * Pure; jansson's values must not be changed while their places are asked for. One thread at a
 * time. */
#ifndef DRARUN_DOC_DOC_H
#define DRARUN_DOC_DOC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/cleanup.h"

#define DOC_SIZE_MAX ((size_t)10 << 20)
#define DOC_DEPTH_MAX 64u       /* containers in containers */
#define DOC_ALIASED_MAX 100000u /* values that aliases and merges may add, in all */

struct doc_limits {
    size_t size;    /* bytes of text */
    uint32_t depth; /* at most DOC_DEPTH_MAX */
    uint32_t aliased;
    bool last_wins; /* of keys that are the same, as kubectl has it; doc_duplicate tells of them */
};

extern const struct doc_limits doc_limits_default;

enum doc_format {
    DOC_FORMAT_GUESS =
        0, /* JSON when its name ends in .json or its text begins like a JSON object */
    DOC_FORMAT_YAML,
    DOC_FORMAT_JSON,
};

struct doc_place { /* both from 1, columns in characters; 0: not known */
    uint32_t line, column;
};

struct doc;

/* name stands in messages ("job.yaml"). limits: NULL for the default. Errors have kind
 * DRARUN_ERR_SPEC and begin with NAME:LINE:COLUMN. */
int doc_parse(const char *name, const char *text, size_t len, enum doc_format format,
              const struct doc_limits *limits, struct doc **ret_doc, struct drarun_error *err);
void doc_free(struct doc *doc);
DEFINE_CLEANUP(struct doc, doc_free)

const char *doc_name(const struct doc *doc);

struct doc_duplicate {
    char *key;
    struct doc_place first, at; /* of the one that lost, and of the next */
};

/* In the order of the text, borrowed until doc_free; none unless last_wins. */
const struct doc_duplicate *doc_duplicates(const struct doc *doc, size_t *ret_count);

/* Documents of the text; those that hold nothing are not counted. A root is any JSON value. */
size_t doc_count(const struct doc *doc);
json_t *doc_root(const struct doc *doc, size_t i); /* borrowed until doc_free */
struct doc_place doc_root_place(const struct doc *doc, size_t i);

/* Where a member's key and value stand; {0, 0} when the container is not the document's. The time
 * is linear in the object's members: for messages. */
struct doc_place doc_member_place(const struct doc *doc, const json_t *object, const char *key,
                                  struct doc_place *ret_key_place);
struct doc_place doc_item_place(const struct doc *doc, const json_t *array, size_t index);

#endif
