/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/doc/fields.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/number.h"
#include "lib/base/nearest.h"

static void default_one(const struct field *f, char *at)
{
    const char *text = f->fallback;
    int64_t ms = 0;
    if (f->kind == FIELD_GROUP)
        fields_default(f->group, at);
    if (!text)
        return;
    switch (f->kind) {
    case FIELD_TEXT:
        *(const char **)at = text;
        break;
    case FIELD_COUNT:
        *(uint32_t *)at = (uint32_t)strtoul(text, NULL, 10);
        break;
    case FIELD_INTEGER:
        *(int64_t *)at = strtoll(text, NULL, 10);
        break;
    case FIELD_BOOL:
        *(bool *)at = strcmp(text, "true") == 0;
        break;
    case FIELD_DURATION:
        duration_parse(f->key, text, &ms, NULL);
        *(int64_t *)at = ms;
        break;
    case FIELD_CHOICE:
        *(int *)at = words_index(f->choices, text, strlen(text)) + 1;
        break;
    default:
        break;
    }
}

void fields_default(const struct field_table *table, void *target)
{
    for (size_t i = 0; i < table->count; i++)
        default_one(&table->list[i], (char *)target + table->list[i].offset);
}

static void read_number(const struct field *f, const struct reader_node *node, char *at)
{
    int64_t number = 0;
    if (reader_integer(node, f->min, f->max, &number) < 0)
        return;
    if (f->kind == FIELD_COUNT)
        *(uint32_t *)at = (uint32_t)number;
    else
        *(int64_t *)at = number;
}

/* YAML 1.1 reads the word off as false, here and in kubectl. */
static bool is_off(const struct field *f, const struct reader_node *node)
{
    return json_is_false(node->value) && words_index(f->choices, "off", strlen("off")) >= 0;
}

static void read_choice(const struct field *f, const struct reader_node *node, char *at)
{
    int index = 0;
    if (is_off(f, node))
        *(int *)at = words_index(f->choices, "off", strlen("off")) + 1;
    else if (reader_choice(node, f->choices, &index) == 0)
        *(int *)at = index + 1;
}

static void read_one(const struct field *f, const struct reader_node *node, char *at)
{
    switch (f->kind) {
    case FIELD_TEXT:
        reader_text(node, (const char **)at);
        break;
    case FIELD_COUNT:
    case FIELD_INTEGER:
        read_number(f, node, at);
        break;
    case FIELD_BOOL:
        reader_bool(node, (bool *)at);
        break;
    case FIELD_DURATION:
        reader_duration(node, (int64_t *)at);
        break;
    case FIELD_CHOICE:
        read_choice(f, node, at);
        break;
    case FIELD_GROUP:
        fields_read(f->group, node, at);
        break;
    case FIELD_OBJECT:
        if (reader_object(node) == 0)
            *(json_t **)at = json_incref(node->value);
        break;
    case FIELD_TEXT_MAP:
        if (reader_text_map(node) == 0)
            *(json_t **)at = json_incref(node->value);
        break;
    case FIELD_CALL:
        f->read(node, at);
        break;
    }
}

const struct field *fields_find(const struct field_table *table, const char *key)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->list[i].key, key) == 0)
            return &table->list[i];
    return NULL;
}

void fields_read_one(const struct field *field, const struct reader_node *object, void *target)
{
    struct reader_node node;
    if (reader_get(object, field->key, &node))
        read_one(field, &node, (char *)target + field->offset);
}

void fields_known(const struct field_table *table, const struct reader_node *object)
{
    struct buf words = BUF_INIT;
    for (size_t i = 0; i < table->count; i++)
        buf_printf(&words, "%s%s", i ? " " : "", table->list[i].key);
    if (words.failed)
        object->reader->texts.failed = true;
    else
        reader_known_or(object, words.data, table->explain);
    buf_done(&words);
}

bool fields_read(const struct field_table *table, const struct reader_node *object, void *target)
{
    if (reader_object(object) < 0)
        return false;
    for (size_t i = 0; i < table->count; i++)
        fields_read_one(&table->list[i], object, target);
    fields_known(table, object);
    return true;
}
