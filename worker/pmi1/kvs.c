/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmi1/kvs.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/fnv.h"

struct entry {
    char *key, *value;
    bool fresh;     /* put here since the last pmi1_kvs_take_new */
    uint32_t round; /* in which it was put last; 0: of none */
};

struct pmi1_kvs {
    char *name;
    struct entry *entries; /* in the order of the first puts */
    size_t count, cap;
    uint32_t *slots;   /* open addressing: index into entries plus 1, 0 is free */
    size_t slot_count; /* a power of two, at least twice count */
    size_t fresh;
    uint32_t round;
};

struct pmi1_kvs *pmi1_kvs_new(const char *name)
{
    if (strlen(name) >= PMI1_KVSNAME_MAX)
        return NULL;
    struct pmi1_kvs *kvs = calloc(1, sizeof *kvs);
    if (!kvs)
        return NULL;
    kvs->slot_count = 64;
    kvs->slots = calloc(kvs->slot_count, sizeof *kvs->slots);
    kvs->name = strdup(name);
    if (!kvs->slots || !kvs->name) {
        pmi1_kvs_free(kvs);
        return NULL;
    }
    return kvs;
}

void pmi1_kvs_free(struct pmi1_kvs *kvs)
{
    if (!kvs)
        return;
    for (size_t i = 0; i < kvs->count; i++) {
        free(kvs->entries[i].key);
        free(kvs->entries[i].value);
    }
    free(kvs->entries);
    free(kvs->slots);
    free(kvs->name);
    free(kvs);
}

const char *pmi1_kvs_name(const struct pmi1_kvs *kvs)
{
    return kvs->name;
}

/* ---- the table ---- */

static uint64_t hash(const char *key)
{
    uint64_t h = fnv1a_64(key, strlen(key));
    return h ^ h >> 32;
}

/* The slot that holds key, or the free one where it belongs. */
static uint32_t *find_slot(uint32_t *slots, size_t slot_count, const struct entry *entries,
                           const char *key)
{
    size_t i = hash(key) & (slot_count - 1);
    while (slots[i] != 0 && strcmp(entries[slots[i] - 1].key, key) != 0)
        i = (i + 1) & (slot_count - 1);
    return &slots[i];
}

static struct entry *find(const struct pmi1_kvs *kvs, const char *key)
{
    uint32_t *slot = find_slot(kvs->slots, kvs->slot_count, kvs->entries, key);
    return *slot ? &kvs->entries[*slot - 1] : NULL;
}

static int grow_slots(struct pmi1_kvs *kvs)
{
    size_t slot_count = kvs->slot_count * 2;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < kvs->count; i++)
        *find_slot(slots, slot_count, kvs->entries, kvs->entries[i].key) = (uint32_t)i + 1;
    free(kvs->slots);
    kvs->slots = slots;
    kvs->slot_count = slot_count;
    return 0;
}

static int make_room(struct pmi1_kvs *kvs)
{
    if (kvs->count >= UINT32_MAX - 1)
        return -ENOMEM;
    struct entry *entries = array_room(kvs->entries, kvs->count, &kvs->cap, sizeof *entries);
    if (!entries)
        return -ENOMEM;
    kvs->entries = entries;
    return (kvs->count + 1) * 2 > kvs->slot_count ? grow_slots(kvs) : 0;
}

static int insert(struct pmi1_kvs *kvs, const char *key, const char *value, struct entry **ret)
{
    int rc = make_room(kvs);
    if (rc < 0)
        return rc;
    cleanup_free char *key_copy = strdup(key);
    cleanup_free char *value_copy = strdup(value);
    if (!key_copy || !value_copy)
        return -ENOMEM;
    assert(kvs->entries);
    uint32_t *slot = find_slot(kvs->slots, kvs->slot_count, kvs->entries, key);
    struct entry *entry = &kvs->entries[kvs->count++];
    *slot = (uint32_t)kvs->count;
    *entry = (struct entry){
        .key = TAKE_PTR(key_copy), .value = TAKE_PTR(value_copy), .round = kvs->round};
    *ret = entry;
    return 0;
}

/* A newline would end the reply that carries the text; the rest would split its fields. */
static bool good_key(const char *key)
{
    size_t length = strlen(key);
    for (const char *p = key; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == '=')
            return false;
    return length > 0 && length < PMI1_KEY_MAX;
}

static bool good_value(const char *value)
{
    return strlen(value) < PMI1_VALUE_MAX && !strchr(value, '\n');
}

static int put(struct pmi1_kvs *kvs, const char *key, const char *value, struct entry **ret)
{
    if (!good_key(key) || !good_value(value))
        return -EINVAL;
    struct entry *entry = find(kvs, key);
    if (!entry)
        return insert(kvs, key, value, ret);
    char *copy = strdup(value);
    if (!copy)
        return -ENOMEM;
    free(entry->value);
    entry->value = copy;
    entry->round = entry->round > 0 ? kvs->round : 0;
    *ret = entry;
    return 0;
}

int pmi1_kvs_put(struct pmi1_kvs *kvs, const char *key, const char *value)
{
    struct entry *entry = NULL;
    int rc = put(kvs, key, value, &entry);
    if (rc < 0)
        return rc;
    kvs->fresh += !entry->fresh;
    entry->fresh = true;
    return 0;
}

const char *pmi1_kvs_get(const struct pmi1_kvs *kvs, const char *key)
{
    const struct entry *entry = find(kvs, key);
    return entry ? entry->value : NULL;
}

bool pmi1_kvs_entry(const struct pmi1_kvs *kvs, size_t index, const char **ret_key,
                    const char **ret_value)
{
    if (index >= kvs->count)
        return false;
    *ret_key = kvs->entries[index].key;
    *ret_value = kvs->entries[index].value;
    return true;
}

/* ---- rounds ---- */

void pmi1_kvs_begin(struct pmi1_kvs *kvs)
{
    kvs->round++;
}

void pmi1_kvs_forget(struct pmi1_kvs *kvs)
{
    size_t kept = 0;
    for (size_t i = 0; i < kvs->count; i++) {
        struct entry *entry = &kvs->entries[i];
        if (entry->round == 0 || entry->round == kvs->round || entry->fresh) {
            kvs->entries[kept++] = *entry;
            continue;
        }
        free(entry->key);
        free(entry->value);
    }
    kvs->count = kept;
    memset(kvs->slots, 0, kvs->slot_count * sizeof *kvs->slots);
    for (size_t i = 0; i < kept; i++)
        *find_slot(kvs->slots, kvs->slot_count, kvs->entries, kvs->entries[i].key) =
            (uint32_t)i + 1;
}

/* ---- between agents: lengths of key and value, 32 bits each in network order, then both ---- */

#define HEADER 8u

static void encode(const struct entry *entry, struct buf *out)
{
    size_t key = strlen(entry->key), value = strlen(entry->value);
    uint32_t lengths[2] = {htonl((uint32_t)key), htonl((uint32_t)value)};
    buf_add(out, lengths, HEADER);
    buf_add(out, entry->key, key);
    buf_add(out, entry->value, value);
}

void pmi1_kvs_take_new(struct pmi1_kvs *kvs, struct buf *out)
{
    for (size_t i = 0; i < kvs->count && kvs->fresh > 0; i++) {
        if (!kvs->entries[i].fresh)
            continue;
        encode(&kvs->entries[i], out);
        kvs->entries[i].fresh = false;
        kvs->fresh--;
    }
}

/* Copies length bytes that hold no NUL. */
static bool copy_text(const char *data, size_t length, char *text)
{
    memcpy(text, data, length);
    text[length] = '\0';
    return strlen(text) == length;
}

/* Merges the entry at data; returns its encoded size or -errno. */
static int merge_one(struct pmi1_kvs *kvs, const char *data, size_t left)
{
    uint32_t lengths[2];
    char key[PMI1_KEY_MAX], value[PMI1_VALUE_MAX];
    if (left < HEADER)
        return -EPROTO;
    memcpy(lengths, data, HEADER);
    size_t key_length = ntohl(lengths[0]), value_length = ntohl(lengths[1]);
    if (key_length >= sizeof key || value_length >= sizeof value ||
        left - HEADER < key_length + value_length)
        return -EPROTO;
    if (!copy_text(data + HEADER, key_length, key) ||
        !copy_text(data + HEADER + key_length, value_length, value))
        return -EPROTO;
    struct entry *entry = NULL;
    int rc = put(kvs, key, value, &entry);
    if (rc < 0)
        return rc == -EINVAL ? -EPROTO : rc;
    return (int)(HEADER + key_length + value_length);
}

int pmi1_kvs_merge(struct pmi1_kvs *kvs, const void *data, size_t length, struct drarun_error *err)
{
    for (size_t at = 0; at < length;) {
        int rc = merge_one(kvs, (const char *)data + at, length - at);
        if (rc == -EPROTO)
            return error_set(err, EPROTO, "PMI-1 keys: malformed at byte %zu of %zu", at, length);
        if (rc < 0)
            return error_set(err, -rc, "PMI-1 keys: %s", strerror(-rc));
        at += (size_t)rc;
    }
    return 0;
}
