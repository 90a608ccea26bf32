/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/accept/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/timestamp.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"

#define VERSION 1
#define SUFFIX ".jsonl"
#define NAME_MAX_KEPT 256
#define SIZE_MAX_READ ((size_t)64 << 20)

struct record {
    char dir[PATH_MAX], path[PATH_MAX + NAME_MAX_KEPT], run[9];
    json_t *answers; /* by key_of() */
    json_t *nodes;   /* {name: uid} of this run */
    FILE *file;
    size_t known;
};

static const char *const outcome_names[] = {
    [ACCEPT_MEASURED] = "measured", [ACCEPT_FAILED] = "failed", [ACCEPT_NOT_RUN] = "not run"};

void record_free(struct record *r)
{
    if (!r)
        return;
    if (r->file)
        fclose(r->file);
    json_decref(r->answers);
    json_decref(r->nodes);
    free(r);
}

const char *record_path(const struct record *r)
{
    return r->path;
}

const char *record_run(const struct record *r)
{
    return r->run;
}

size_t record_known(const struct record *r)
{
    return r->known;
}

int record_default_dir(char *path, size_t size, struct drarun_error *err)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (state && state[0] == '/')
        n = snprintf(path, size, "%s/drarun/accept", state);
    else if (home && home[0] == '/')
        n = snprintf(path, size, "%s/.local/state/drarun/accept", home);
    if (n < 0 || (size_t)n >= size)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "there is no place for the record: neither XDG_STATE_HOME nor HOME is "
                          "set; name a directory with --records");
    return 0;
}

/* ---- reading ---- */

static void key_of(unsigned wave, const char *node, const char *partner, char *key, size_t size)
{
    snprintf(key, size, "%u %s %s", wave, node, partner ? partner : "");
}

/* Calls fn with each line that is whole JSON; one that is cut ends the file. */
static int each_line(const char *path, void (*fn)(const json_t *line, void *arg), void *arg,
                     struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    int rc = file_read_named(path, SIZE_MAX_READ, &text, err);
    if (rc < 0)
        return error_prefix(err, "%s", path);
    for (char *line = text.data; line && *line;) {
        char *end = strchr(line, '\n');
        if (!end)
            break;
        CLEANUP(json_decrefp) json_t *value = json_loadb(line, (size_t)(end - line), 0, NULL);
        if (!json_is_object(value))
            break;
        fn(value, arg);
        line = end + 1;
    }
    return 0;
}

struct reading {
    json_t *begin, *end, *answers;
};

static void reading_done(struct reading *r)
{
    json_decref(r->begin);
    json_decref(r->end);
    json_decref(r->answers);
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void on_line(const json_t *line, void *arg)
{
    struct reading *r = arg;
    const char *kind = text_at(line, "kind");
    char key[600];
    if (strcmp(kind, "begin") == 0 && !r->begin)
        r->begin = json_incref(unconst(line));
    else if (strcmp(kind, "end") == 0)
        r->end = json_incref(unconst(line));
    if (strcmp(kind, "test") != 0)
        return;
    key_of((unsigned)json_integer_value(json_object_get(line, "wave")), text_at(line, "node"),
           json_string_value(json_object_get(line, "partner")), key, sizeof key);
    json_object_set(r->answers, key, unconst(line));
}

static int read_run(const char *path, struct reading *ret, struct drarun_error *err)
{
    *ret = (struct reading){.answers = json_object()};
    return each_line(path, on_line, ret, err);
}

/* ---- the directory ---- */

static int is_run(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > strlen(SUFFIX) && length < NAME_MAX_KEPT &&
           strcmp(entry->d_name + length - strlen(SUFFIX), SUFFIX) == 0;
}

static void free_entries(struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
}

static bool is_same(const struct reading *r, const json_t *nodes, const json_t *order)
{
    return r->begin && !r->end && json_equal(json_object_get(r->begin, "nodes"), nodes) &&
           json_equal(json_object_get(r->begin, "order"), order) &&
           json_integer_value(json_object_get(r->begin, "version")) == VERSION;
}

/* The process that writes a record holds its lock; without locks on that file system, none does. */
static int lock(const struct record *r, struct drarun_error *err)
{
    if (flock(fileno(r->file), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return 0;
    return error_set(err, EBUSY,
                     "another drarun accept is running these tests: it writes %s; wait for it, or "
                     "give --again to run them beside it",
                     r->path);
}

/* Until it is closed, none but this process looks for a record or begins one: else two that start
 * together would each begin their own. Without locks on that file system it holds off nobody. */
static int lock_dir(const struct record *r, struct drarun_error *err)
{
    int fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, errno, "%s: %s", r->dir, strerror(errno));
    while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
        ;
    return fd;
}

/* The newest by name, which begins with its time. 1: found. */
static int find_unfinished(struct record *r, const json_t *nodes, const json_t *order,
                           struct drarun_error *err)
{
    struct dirent **entries = NULL;
    int count = scandir(r->dir, &entries, is_run, alphasort), found = 0;
    if (count < 0)
        return error_set(err, errno, "%s: %s", r->dir, strerror(errno));
    for (int i = count - 1; i >= 0 && found == 0; i--) {
        struct drarun_error unread = {0};
        CLEANUP(reading_done) struct reading reading = {0};
        snprintf(r->path, sizeof r->path, "%s/%s", r->dir, entries[i]->d_name);
        if (read_run(r->path, &reading, &unread) < 0 || !is_same(&reading, nodes, order))
            continue;
        found = 1;
        snprintf(r->run, sizeof r->run, "%s", text_at(reading.begin, "run"));
        json_decref(r->answers);
        r->answers = json_incref(reading.answers);
        r->known = json_object_size(r->answers);
    }
    free_entries(entries, count);
    return found;
}

/* ---- writing ---- */

static int write_line(struct record *r, json_t *line_take, struct drarun_error *err)
{
    char now[TIMESTAMP_SIZE];
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    timestamp_format((int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000, now, sizeof now);
    int rc = json_object_set_new(line_take, "at", json_string(now));
    char *text = rc == 0 ? json_dumps(line_take, JSON_COMPACT) : NULL;
    json_decref(line_take);
    if (!text)
        return error_set(err, ENOMEM, "out of memory");
    rc = fprintf(r->file, "%s\n", text) < 0 || fflush(r->file) != 0 || fsync(fileno(r->file)) < 0;
    free(text);
    return rc ? error_set(err, errno, "%s: %s", r->path, strerror(errno)) : 0;
}

static int begin_new(struct record *r, const json_t *nodes, const json_t *order,
                     struct drarun_error *err)
{
    uint32_t unique;
    time_t now = time(NULL);
    struct tm utc;
    char stamp[32];
    if (getrandom(&unique, sizeof unique, 0) != (ssize_t)sizeof unique)
        return error_set(err, errno, "getrandom: %s", strerror(errno));
    gmtime_r(&now, &utc);
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
    snprintf(r->run, sizeof r->run, "%08x", unique);
    snprintf(r->path, sizeof r->path, "%s/%s-%s" SUFFIX, r->dir, stamp, r->run);
    r->file = fopen(r->path, "wxe");
    if (!r->file)
        return error_set(err, errno, "%s: %s", r->path, strerror(errno));
    int rc = lock(r, err);
    if (rc < 0)
        return rc;
    return write_line(r,
                      json_pack("{s:s, s:i, s:s, s:O, s:O}", "kind", "begin", "version", VERSION,
                                "run", r->run, "nodes", nodes, "order", order),
                      err);
}

/* Behind the last whole line: what was cut off is written over. */
static int go_on(struct record *r, struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    if (!(r->file = fopen(r->path, "r+e")))
        return error_set(err, errno, "%s: %s", r->path, strerror(errno));
    int rc = lock(r, err);
    if (rc < 0)
        return rc;
    rc = file_read_named(r->path, SIZE_MAX_READ, &text, err);
    if (rc < 0)
        return error_prefix(err, "%s", r->path);
    const char *last = text.len ? memrchr(text.data, '\n', text.len) : NULL;
    if (fseek(r->file, last ? last + 1 - text.data : 0, SEEK_SET) < 0 ||
        ftruncate(fileno(r->file), ftell(r->file)) < 0)
        return error_set(err, errno, "%s: %s", r->path, strerror(errno));
    return 0;
}

int record_open(const char *dir, const json_t *nodes, const json_t *order, bool again,
                struct record **ret, struct drarun_error *err)
{
    CLEANUP(record_freep) struct record *r = calloc(1, sizeof *r);
    if (!r || !(r->answers = json_object()))
        return error_set(err, ENOMEM, "out of memory");
    r->nodes = json_incref(unconst(nodes));
    snprintf(r->dir, sizeof r->dir, "%s", dir);
    int rc = dirs_make(r->dir, 0755, err);
    cleanup_close int locked = rc == 0 ? lock_dir(r, err) : -1;
    if (rc == 0 && locked < 0)
        rc = locked;
    if (rc == 0 && !again)
        rc = find_unfinished(r, nodes, order, err);
    if (rc == 0)
        rc = begin_new(r, nodes, order, err);
    else if (rc > 0)
        rc = go_on(r, err);
    if (rc < 0)
        return rc;
    *ret = TAKE_PTR(r);
    return 0;
}

bool record_find(const struct record *r, unsigned wave, const char *const names[2],
                 struct accept_answer *ret_answer)
{
    char key[600];
    key_of(wave, names[0], names[1], key, sizeof key);
    const json_t *line = json_object_get(r->answers, key);
    if (!line)
        return false;
    const char *outcome = text_at(line, "outcome");
    const json_t *busbw = json_object_get(line, "busbw");
    *ret_answer = (struct accept_answer){.outcome = ACCEPT_NOT_RUN,
                                         .ran = !!busbw,
                                         .refused = json_is_true(json_object_get(line, "refused")),
                                         .busbw = json_number_value(busbw)};
    for (size_t i = 0; i < ARRAY_LEN(outcome_names); i++)
        if (strcmp(outcome, outcome_names[i]) == 0)
            ret_answer->outcome = (enum accept_outcome)i;
    snprintf(ret_answer->reason, sizeof ret_answer->reason, "%s", text_at(line, "reason"));
    snprintf(ret_answer->not_looked, sizeof ret_answer->not_looked, "%s",
             text_at(line, "notLooked"));
    return true;
}

int record_add(struct record *r, unsigned wave, const char *const names[2],
               const struct accept_answer *answer, struct drarun_error *err)
{
    json_t *line =
        json_pack("{s:s, s:i, s:s, s:s*, s:s}", "kind", "test", "wave", (int)wave, "node", names[0],
                  "partner", names[1], "outcome", outcome_names[answer->outcome]);
    if (answer->outcome == ACCEPT_MEASURED || answer->ran)
        json_object_set_new(line, "busbw", json_real(answer->busbw));
    if (answer->refused)
        json_object_set_new(line, "refused", json_true());
    if (answer->reason[0])
        json_object_set_new(line, "reason", value_of_words(answer->reason));
    if (answer->not_looked[0])
        json_object_set_new(line, "notLooked", value_of_words(answer->not_looked));
    return write_line(r, line, err);
}

int record_end(struct record *r, const json_t *verdict, struct drarun_error *err)
{
    json_t *line = json_deep_copy(verdict);
    json_object_set_new(line, "kind", json_string("end"));
    return write_line(r, line, err);
}

/* ---- history ---- */

/* The node of that name in the earlier run is this run's, too. */
static bool is_same_node(const struct record *r, const json_t *begin, const char *name)
{
    const char *uid = text_at(r->nodes, name);
    return uid[0] && strcmp(text_at(json_object_get(begin, "nodes"), name), uid) == 0;
}

static void count_run(const struct record *r, const struct reading *run, json_t *history)
{
    size_t i;
    json_t *node;
    json_array_foreach(json_object_get(run->end, "nodes"), i, node)
    {
        const char *name = text_at(node, "name");
        json_t *entry = json_object_get(history, name);
        if (!is_same_node(r, run->begin, name))
            continue;
        if (!entry) {
            json_object_set_new(history, name, json_pack("{s:i, s:i}", "runs", 0, "bad", 0));
            entry = json_object_get(history, name);
        }
        json_int_t runs = json_integer_value(json_object_get(entry, "runs"));
        json_int_t bad = json_integer_value(json_object_get(entry, "bad"));
        json_object_set_new(entry, "runs", json_integer(runs + 1));
        json_object_set_new(entry, "bad",
                            json_integer(bad + (strcmp(text_at(node, "state"), "bad") == 0)));
    }
}

json_t *record_history(const struct record *r)
{
    struct dirent **entries = NULL;
    json_t *history = json_object();
    int count = scandir(r->dir, &entries, is_run, alphasort);
    for (int i = 0; i < count; i++) {
        char path[sizeof r->path];
        struct drarun_error unread = {0};
        CLEANUP(reading_done) struct reading reading = {0};
        snprintf(path, sizeof path, "%s/%s", r->dir, entries[i]->d_name);
        if (strcmp(path, r->path) != 0 && read_run(path, &reading, &unread) == 0 && reading.end)
            count_run(r, &reading, history);
    }
    free_entries(entries, count > 0 ? count : 0);
    return history;
}
