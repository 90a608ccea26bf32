/* SPDX-License-Identifier: Apache-2.0 */
/* A struct read from an object by a table of its keys. The table is also what holds documentation
 * and schema against the parser: every key, its kind, range, words and default stand in it once. */
#ifndef DRARUN_DOC_FIELDS_H
#define DRARUN_DOC_FIELDS_H

#include "lib/doc/reader.h"

enum field_kind {
    FIELD_TEXT = 1, /* const char *, borrowed from the document */
    FIELD_COUNT,    /* uint32_t from min to max */
    FIELD_INTEGER,  /* int64_t from min to max */
    FIELD_BOOL,
    FIELD_DURATION, /* int64_t, milliseconds */
    FIELD_CHOICE,   /* an enum: the word's number in choices, from 1; false is "off" */
    FIELD_GROUP,    /* an object by the table group, its fields at offset */
    FIELD_OBJECT,   /* json_t *, a new reference to an object whose content is not looked at */
    FIELD_TEXT_MAP, /* the same, and its values are texts */
    FIELD_CALL,     /* read() with the field at offset */
};

struct field;

struct field_table {
    const struct field *list;
    size_t count;
    /* adds the finding for a key that the table does not have; false: it added none */
    bool (*explain)(const struct reader_node *object, const char *key);
};

typedef void (*field_read_fn)(const struct reader_node *node, void *field);

struct field {
    const char *key;
    enum field_kind kind;
    size_t offset;
    int64_t min, max;
    const char *choices;  /* separated by spaces */
    const char *fallback; /* as it would be written; NULL: none */
    const struct field_table *group;
    field_read_fn read;
};

/* What the fallbacks say, for groups too. For a FIELD_CALL the fallback is words for the reader and
 * what is at offset stays. */
void fields_default(const struct field_table *table, void *target);

const struct field *fields_find(const struct field_table *table, const char *key);
/* Reads the member of that field, where the object has it, with its findings. */
void fields_read_one(const struct field *field, const struct reader_node *object, void *target);
/* A finding for each key of the object that the table does not have. */
void fields_known(const struct field_table *table, const struct reader_node *object);

/* Reads the members that are there; findings go to the node's reader. False when the node is no
 * object. */
bool fields_read(const struct field_table *table, const struct reader_node *object, void *target);

#endif
