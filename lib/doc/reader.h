/* SPDX-License-Identifier: Apache-2.0 */
/* Typed reading of a document. Every finding is kept with its place and path:
 *
 *     job.yaml:12:7: spec.workers: expected an integer of at least 1, got "two"
 *
 * Strict readers (our own documents) refuse unknown keys and null; tolerant ones (the cluster's)
 * take both for absent. A node is a place in the document; nodes live on the caller's stack, a
 * child must not outlive its parent. Reads return 0, or -EINVAL when a finding was added; ret_x is
 * untouched then. Not thread-safe. */
#ifndef DRARUN_DOC_READER_H
#define DRARUN_DOC_READER_H

#include <stdarg.h>
#include "lib/base/strlist.h"
#include "lib/doc/doc.h"

#define READER_FINDINGS_MAX 20 /* kept unless max is set to more; further ones are only counted */
#define READER_MAX 200

/* What kind of mistake a finding is. */
enum reader_code {
    READER_REFUSED = 1, /* does not go together with another value, or breaks a rule */
    READER_UNKNOWN_KEY,
    READER_WRONG_VALUE, /* of another type, or none of those that are known */
    READER_MISSING,
};

struct reader_finding {
    struct doc_place at;
    char *path;     /* "spec.workers" */
    size_t message; /* where in the line the message itself begins */
    enum reader_code code;
};

struct reader {
    const struct doc *doc; /* NULL for a value without text: findings have a path only */
    bool tolerant;
    size_t max;           /* findings to keep, at most READER_MAX */
    size_t findings;      /* all */
    struct strlist texts; /* the first of them, a line each, in the order of the text */
    struct reader_finding list[READER_MAX]; /* of the texts */
};

struct reader_node {
    struct reader *reader;
    const struct reader_node *parent; /* NULL: the root */
    json_t *value;                    /* borrowed */
    const char *key;                  /* in the parent, an object */
    size_t index;                     /* in the parent, a list */
    struct doc_place root_place;
};

/* "unknown-key": for programs. */
const char *reader_code_name(enum reader_code code);

void reader_init(struct reader *r, const struct doc *doc, bool tolerant);
void reader_done(struct reader *r);
/* 0, or -EINVAL (-ENOMEM) with the first finding as text, "(and N more)", kind DRARUN_ERR_SPEC. */
int reader_result(const struct reader *r, struct drarun_error *err);

struct reader_node reader_root(struct reader *r, size_t document);
/* A value of no document, for tests and parts; its path begins with name (may be NULL). */
struct reader_node reader_value(struct reader *r, json_t *value, const char *name);

/* The member, false when it is absent (tolerant: or null). The node must be an object. */
bool reader_get(const struct reader_node *object, const char *key, struct reader_node *ret_node);
struct reader_node reader_item(const struct reader_node *list, size_t index);

/* No memory for what was read: reader_result is -ENOMEM, whatever was found. */
void reader_fail_memory(const struct reader_node *node);
/* Findings: at the value, at a member's key. */
int reader_fail(const struct reader_node *node, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int reader_fail_key(const struct reader_node *object, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* At the key of a member that the object shall not have. */
int reader_unknown_key(const struct reader_node *object, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* At what has no such member, which the message begins with: "count is missing". */
int reader_missing(const struct reader_node *node, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "expected WHAT, got VALUE". */
int reader_expected(const struct reader_node *node, const char *what);

int reader_object(const struct reader_node *node);
int reader_list(const struct reader_node *node, size_t min);
int reader_text(const struct reader_node *node, const char **ret_text); /* not empty; borrowed */
int reader_bool(const struct reader_node *node, bool *ret_value);
bool reader_whole(const json_t *value, int64_t *ret_value); /* also when written as 2.0 */
int reader_integer(const struct reader_node *node, int64_t min, int64_t max, int64_t *ret_value);
/* "90s", "1.5m", "1h30m" or whole seconds: milliseconds. */
int reader_duration(const struct reader_node *node, int64_t *ret_ms);
/* One of the words, separated by spaces: its number from 0. */
int reader_choice(const struct reader_node *node, const char *words, int *ret_index);
int reader_texts(const struct reader_node *node,
                 struct strlist *texts); /* a list of texts, added */
/* An object whose values are all texts. */
int reader_text_map(const struct reader_node *node);

/* Strict: a finding for each key that is none of the words, with the nearest of them. */
void reader_known(const struct reader_node *object, const char *words);
/* The same, where explain may add the finding itself and return true; NULL: none. */
void reader_known_or(const struct reader_node *object, const char *words,
                     bool (*explain)(const struct reader_node *object, const char *key));

#endif
