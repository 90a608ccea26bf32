/* SPDX-License-Identifier: Apache-2.0 */
/* How the two parsers of lib/doc hand over what they read: events in the order of the text. Private
 * to lib/doc. Every function returns 0 or -errno with err filled. */
#ifndef DRARUN_DOC_BUILD_H
#define DRARUN_DOC_BUILD_H

#include "lib/doc/doc.h"

struct entry { /* of a container, in its order */
    struct doc_place key, value;
};

struct places {
    const json_t *container;
    struct entry *entries;
    size_t count;
};

struct root {
    json_t *value;
    struct doc_place place;
};

struct doc {
    char *name;
    struct root *roots;
    size_t root_count, root_cap;
    struct places *places; /* by container: open addressing, place_cap is a power of two or 0 */
    size_t place_count, place_cap;
    struct doc_duplicate *duplicates;
    size_t duplicate_count, duplicate_cap;
};

struct frame { /* an open container */
    json_t *container;
    struct doc_place at;
    struct entry *entries;
    size_t count, cap;
    char *key; /* of the value to come, in an object */
    struct doc_place key_place;
    bool merge;     /* the value to come stands behind "<<" */
    json_t *merges; /* what "<<" named: an array, or NULL */
    size_t anchor;  /* for the YAML parser: number of its anchor from 1, or 0 */
};

struct builder {
    struct doc *doc;
    const struct doc_limits *limits;
    struct frame frames[DOC_DEPTH_MAX];
    uint32_t depth;
    uint32_t aliased; /* values added so far */
    size_t walked;    /* members, for keys that are given twice and merges */
};

/* "NAME:LINE:COLUMN: text" with kind DRARUN_ERR_SPEC. */
int build_error(const struct builder *b, struct doc_place at, struct drarun_error *err,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Is the next thing in the open object a key? */
bool build_wants_key(const struct builder *b);
/* The value to come stands behind "<<". */
void build_merge_key(struct builder *b, struct doc_place at);
bool build_in_merge(const struct builder *b);
int build_key(struct builder *b, const char *key, struct doc_place at, struct drarun_error *err);
/* Takes the value, on failure too; NULL is an allocation that failed. */
int build_value_take(struct builder *b, json_t *value, struct doc_place at,
                     struct drarun_error *err);
int build_open(struct builder *b, bool object, struct doc_place at, struct drarun_error *err);
int build_close(struct builder *b, struct drarun_error *err);
/* A deep copy of a finished value with its places; at: of the alias. */
int build_copy(struct builder *b, const json_t *value, struct doc_place at, json_t **ret_copy,
               struct drarun_error *err);
void build_done(struct builder *b);

/* places.c. Keeps those of a container's entries, which it takes on success. A container whose
 * address is known already is a new one: what "<<" named may be gone by now. */
int places_keep(struct doc *doc, const json_t *container, struct entry **entries, size_t count,
                struct drarun_error *err);
/* The places of a container's entries, or NULL. */
const struct places *places_find(const struct doc *doc, const json_t *container);

int yaml_read(struct builder *b, const char *text, size_t len, struct drarun_error *err);
int json_read(struct builder *b, const char *text, size_t len, struct drarun_error *err);

#endif
