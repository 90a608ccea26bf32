/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/checkpoint.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/fnv.h"
#include "lib/doc/reader.h"

#define SIZE_MAX_BYTES ((size_t)4 << 20)
#define SUFFIX ".json"

#define LEFT_S 60

bool checkpoint_uid_valid(const char *uid)
{
    size_t length = strlen(uid);
    if (length == 0 || length > 63)
        return false;
    for (const char *c = uid; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-')
            return false;
    return true;
}

void checkpoint_path(const char *dir, const char *uid, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/%s" SUFFIX, dir, uid);
}

json_t *checkpoint_document(const char *driver, const char *namespace_, const char *name,
                            const char *uid, const char *pod_uid)
{
    return json_pack("{s:i, s:i, s:s, s:{s:s, s:s, s:s}, s:s, s:[]}", "version", CHECKPOINT_VERSION,
                     "readable", 1, "driver", driver, "claim", "namespace", namespace_, "name",
                     name, "uid", uid, "pod", pod_uid, "devices");
}

bool checkpoint_add_take(json_t *document, const char *request, const char *pool,
                         const char *device, bool admin, json_t *order, json_t *record)
{
    json_t *entry = json_pack("{s:s, s:s, s:s, s:b}", "request", request, "pool", pool, "device",
                              device, "admin", (int)admin);
    bool ok = entry;
    if (order)
        ok = json_object_set_new(entry, "order", order) == 0 && ok;
    if (record)
        ok = json_object_set_new(entry, "record", record) == 0 && ok;
    if (!ok) {
        json_decref(entry);
        return false;
    }
    return json_array_append_new(json_object_get(document, "devices"), entry) == 0;
}

bool checkpoint_set_device_cdi(json_t *document, const char *id)
{
    json_t *list = json_object_get(document, "devices");
    json_t *last = json_array_get(list, json_array_size(list) - 1);
    return json_object_set_new(last, "cdi", json_string(id)) == 0;
}

bool checkpoint_set_boot(json_t *document, const char *boot)
{
    return json_object_set_new(document, "boot", json_string(boot)) == 0;
}

bool checkpoint_of_boot(const struct checkpoint *checkpoint, const char *boot)
{
    return !checkpoint->boot || strcmp(checkpoint->boot, boot) == 0;
}

bool checkpoint_set_cdi(json_t *document, json_t *spec)
{
    return json_object_set(document, "cdi", spec) == 0;
}

bool checkpoint_set_metadata(json_t *document, json_t *list)
{
    return json_object_set(document, "metadata", list) == 0;
}

/* A bit that flips inside a value leaves good JSON: {"sum":"0123456789abcdef",..} says what all
 * bytes behind that comma give. Older plugins pass over the key; newer ones that reckon otherwise
 * take another. */
#define SUM_HEAD "{\"sum\":\""
#define SUM_DIGITS 16u
#define SUM_LENGTH (sizeof SUM_HEAD - 1 + SUM_DIGITS + 2)

static int check_sum(const char *text, size_t length, struct drarun_error *err)
{
    char found[SUM_DIGITS + 1];
    const char *said = text + sizeof SUM_HEAD - 1;
    if (length < SUM_LENGTH || memcmp(text, SUM_HEAD, sizeof SUM_HEAD - 1) != 0)
        return 0; /* of a plugin that wrote none */
    snprintf(found, sizeof found, "%016" PRIx64, fnv1a_64(text + SUM_LENGTH, length - SUM_LENGTH));
    return memcmp(said, found, SUM_DIGITS) == 0
               ? 0
               : error_set(err, EINVAL,
                           "it is not as it was written: expected the sum %.16s, found %s", said,
                           found);
}

int checkpoint_save(const json_t *document, const char *dir, const char *uid,
                    struct drarun_error *err)
{
    char path[512];
    struct buf file = BUF_INIT;
    checkpoint_path(dir, uid, path, sizeof path);
    cleanup_free char *text = json_dumps(document, JSON_COMPACT);
    if (text)
        buf_printf(&file, SUM_HEAD "%016" PRIx64 "\",%s", fnv1a_64(text + 1, strlen(text + 1)),
                   text + 1);
    int rc = text && !file.failed
                 ? file_replace(path, file.data, file.len, 0600, FILE_AFTER_WHOLE, err)
                 : error_set(err, ENOMEM, "out of memory");
    buf_done(&file);
    return rc;
}

static void read_device(const struct reader_node *node, struct checkpoint_device *device)
{
    struct reader_node member;
    if (reader_object(node) < 0)
        return;
    const struct {
        const char *key;
        const char **to;
    } texts[] = {
        {"request", &device->request}, {"pool", &device->pool}, {"device", &device->device}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (!reader_get(node, texts[i].key, &member))
            reader_fail_key(node, texts[i].key, "it is missing");
        else
            reader_text(&member, texts[i].to);
    }
    if (reader_get(node, "admin", &member))
        reader_bool(&member, &device->admin);
    if (reader_get(node, "cdi", &member))
        reader_text(&member, &device->cdi);
    if (reader_get(node, "order", &member) && reader_object(&member) == 0)
        device->order = member.value;
    if (reader_get(node, "record", &member) && reader_object(&member) == 0)
        device->record = member.value;
}

static void read_claim(const struct reader_node *root, struct checkpoint *checkpoint)
{
    struct reader_node claim, member;
    if (!reader_get(root, "claim", &claim) || reader_object(&claim) < 0) {
        reader_fail_key(root, "claim", "it is missing");
        return;
    }
    const struct {
        const char *key;
        const char **to;
    } texts[] = {{"namespace", &checkpoint->namespace_},
                 {"name", &checkpoint->name},
                 {"uid", &checkpoint->uid}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (!reader_get(&claim, texts[i].key, &member))
            reader_fail_key(&claim, texts[i].key, "it is missing");
        else
            reader_text(&member, texts[i].to);
    }
}

static void read_version(const struct reader_node *root)
{
    struct reader_node member;
    int64_t readable = 0;
    if (!reader_get(root, "readable", &member))
        reader_fail_key(root, "readable", "it is missing");
    else
        reader_integer(&member, 1, INT32_MAX, &readable);
}

/* Whether we can undo what its writer did. Before it is read: of what a newer one wrote nothing
 * else that could be said would be true. */
static int check_version(const json_t *document, struct drarun_error *err)
{
    const json_t *readable = json_object_get(document, "readable");
    if (!json_is_integer(readable) || json_integer_value(readable) <= CHECKPOINT_VERSION)
        return 0;
    return error_set(
        err, EPROTO,
        "a newer plugin wrote this, and only version %lld or later can undo it, this one "
        "is %d: run that one until its pods have ended",
        (long long)json_integer_value(readable), CHECKPOINT_VERSION);
}

static int read_document(struct reader *reader, struct checkpoint *checkpoint)
{
    struct reader_node root = reader_value(reader, checkpoint->document, NULL), list, member;
    if (reader_object(&root) < 0)
        return 0;
    read_version(&root);
    read_claim(&root, checkpoint);
    if (!reader_get(&root, "driver", &member))
        reader_fail_key(&root, "driver", "it is missing");
    else
        reader_text(&member, &checkpoint->driver);
    if (reader_get(&root, "boot", &member))
        reader_text(&member, &checkpoint->boot);
    if (reader_get(&root, "cdi", &member) && reader_object(&member) == 0)
        checkpoint->cdi = member.value;
    else
        reader_fail_key(&root, "cdi", "it is missing");
    if (reader_get(&root, "metadata", &member) && reader_list(&member, 0) == 0)
        checkpoint->metadata = member.value;
    if (!reader_get(&root, "devices", &list) || reader_list(&list, 0) < 0) {
        reader_fail_key(&root, "devices", "it is missing");
        return 0;
    }
    checkpoint->count = json_array_size(list.value);
    checkpoint->devices = calloc(checkpoint->count + 1, sizeof *checkpoint->devices);
    if (!checkpoint->devices)
        return -ENOMEM;
    for (size_t i = 0; i < checkpoint->count; i++) {
        struct reader_node item = reader_item(&list, i);
        read_device(&item, &checkpoint->devices[i]);
    }
    return 0;
}

int checkpoint_of(json_t *document, struct checkpoint **ret_checkpoint, struct drarun_error *err)
{
    CLEANUP(checkpoint_freep) struct checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    struct reader reader;
    if (!checkpoint)
        return error_set(err, ENOMEM, "out of memory");
    checkpoint->document = json_incref(document);
    reader_init(&reader, NULL, true);
    int rc = read_document(&reader, checkpoint);
    rc = rc < 0 ? error_set(err, -rc, "out of memory") : reader_result(&reader, err);
    reader_done(&reader);
    if (rc == 0)
        *ret_checkpoint = TAKE_PTR(checkpoint);
    return rc;
}

int checkpoint_parse(const char *name, const char *text, size_t length,
                     struct checkpoint **ret_checkpoint, struct drarun_error *err)
{
    json_error_t where;
    CLEANUP(json_decrefp)
    json_t *document = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (!document)
        return error_set(err, EINVAL, "%s:%d:%d: %s", name, where.line, where.column, where.text);
    int rc = check_sum(text, length, err); /* its version may be what has changed */
    if (rc == 0)
        rc = check_version(document, err);
    if (rc == 0)
        rc = checkpoint_of(document, ret_checkpoint, err);
    return rc < 0 ? error_prefix(err, "%s", name) : 0;
}

int checkpoint_load(const char *dir, const char *uid, struct checkpoint **ret_checkpoint,
                    struct drarun_error *err)
{
    char path[512];
    struct buf text = BUF_INIT;
    checkpoint_path(dir, uid, path, sizeof path);
    int rc = file_read(AT_FDCWD, path, SIZE_MAX_BYTES, &text, err);
    if (rc == 0)
        rc = checkpoint_parse(path, text.data ? text.data : "", text.len, ret_checkpoint, err);
    buf_done(&text);
    return rc;
}

char *checkpoint_text(const char *dir, const char *uid)
{
    char path[512];
    struct buf text = BUF_INIT;
    checkpoint_path(dir, uid, path, sizeof path);
    if (file_read(AT_FDCWD, path, SIZE_MAX_BYTES, &text, NULL) == 0 && text.data)
        return text.data;
    buf_done(&text);
    return NULL;
}

void checkpoint_free(struct checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    json_decref(checkpoint->document);
    free(checkpoint->devices);
    free(checkpoint);
}

int checkpoint_remove(const char *dir, const char *uid, struct drarun_error *err)
{
    char path[512];
    checkpoint_path(dir, uid, path, sizeof path);
    int rc = file_remove_atomic(path, err);
    if (rc < 0)
        return rc;
    cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && fsync(fd) == 0 ? 0 : error_set(err, errno, "%s: %s", dir, strerror(errno));
}

int checkpoint_list(const char *dir, struct strlist *uids, struct drarun_error *err)
{
    cleanup_dir DIR *open_dir = opendir(dir);
    struct dirent *entry;
    if (!open_dir)
        return errno == ENOENT ? 0 : error_set(err, errno, "%s: %s", dir, strerror(errno));
    while ((entry = readdir(open_dir))) {
        size_t length = strlen(entry->d_name), suffix = sizeof SUFFIX - 1;
        char uid[64];
        if (length <= suffix || length - suffix >= sizeof uid ||
            strcmp(entry->d_name + length - suffix, SUFFIX) != 0)
            continue;
        memcpy(uid, entry->d_name, length - suffix);
        uid[length - suffix] = '\0';
        if (checkpoint_uid_valid(uid))
            strlist_add(uids, uid);
    }
    return uids->failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* "UID.json.XXXXXX", as file_write_atomic() names it. */
static bool is_temporary(const char *name)
{
    const char *suffix = strstr(name, SUFFIX ".");
    return suffix && suffix > name && strlen(suffix) == sizeof SUFFIX - 1 + sizeof ".XXXXXX" - 1;
}

void checkpoint_clean(const char *dir)
{
    cleanup_dir DIR *open_dir = opendir(dir);
    struct dirent *entry;
    struct timespec now, up;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    time_t age = up.tv_sec < LEFT_S ? up.tv_sec : LEFT_S;
    while (open_dir && (entry = readdir(open_dir))) {
        struct stat st;
        if (is_temporary(entry->d_name) &&
            fstatat(dirfd(open_dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            st.st_ctime < now.tv_sec - age)
            unlinkat(dirfd(open_dir), entry->d_name, 0);
    }
}
