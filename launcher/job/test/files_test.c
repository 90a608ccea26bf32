/* SPDX-License-Identifier: Apache-2.0 */
/* Files that agents send, in the folder beside the report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/job/files.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/unconst.h"
#include "lib/wire/frame.h"

static char folder[256];

static int make_folder(void **state)
{
    (void)state;
    return dir_make_temporary("job-files", folder, sizeof folder, NULL);
}

static int remove_folder(void **state)
{
    (void)state;
    return tree_remove(AT_FDCWD, folder);
}

static struct job_files *open_files(const char *report)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, report);
    struct job_files *files = job_files_new(path, 2, NULL);
    assert_non_null(files);
    return files;
}

static int give(struct job_files *files, uint32_t worker, const char *name, const char *data,
                size_t length, bool cut)
{
    Drarun__Wire__File message = DRARUN__WIRE__FILE__INIT;
    message.name = unconst(name);
    message.data.data = unconst(data);
    message.data.len = length;
    message.cut = cut;
    return job_files_take(files, worker, &message, NULL);
}

static void check_file(const char *name, const char *expected)
{
    char path[400];
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(file_read(AT_FDCWD, path, 1 << 20, &text, NULL), 0);
    assert_string_equal(text.data ? text.data : "", expected);
}

/* In pieces; a file of an earlier job is not added to. */
static void pieces(void **state)
{
    (void)state;
    for (int job = 0; job < 2; job++) {
        struct job_files *files = open_files("r.json");
        assert_int_equal(give(files, 1, "a.log", "one ", 4, false), 0);
        assert_int_equal(give(files, 1, "a.log", "two", 3, false), 0);
        assert_int_equal(give(files, 0, "a.log", "other", 5, false), 0);
        assert_int_equal(give(files, 1, "b.log", "", 0, true), 0);
        CLEANUP(json_decrefp) json_t *told = job_files_json(files);
        assert_int_equal(json_integer_value(json_object_get(told, "files")), 3);
        assert_int_equal(json_integer_value(json_object_get(told, "bytes")), 12);
        const json_t *cut = json_object_get(told, "cut");
        assert_int_equal(json_array_size(cut), 1);
        assert_int_equal(json_integer_value(json_array_get(cut, 0)), 1);
        job_files_free(files);
    }
    check_file("r.json.inspector/worker-1/a.log", "one two");
    check_file("r.json.inspector/worker-0/a.log", "other");
    check_file("r.json.inspector/worker-1/b.log", "");
}

static void names_that_are_none(void **state)
{
    static const char *const names[] = {"", ".", "..", "a/b", "/etc/passwd", ".hidden", "../a"};
    struct job_files *files = open_files("n");
    char name[300];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(give(files, 0, names[i], "x", 1, false), -EPROTO);
    memset(name, 'a', sizeof name);
    name[256] = '\0';
    assert_int_equal(give(files, 0, name, "x", 1, false), -EPROTO);
    job_files_free(files);
}

static void more_than_it_may(void **state)
{
    struct job_files *files = open_files("m");
    cleanup_free char *data = calloc(1, FRAME_DATA_MAX);
    (void)state;
    assert_non_null(data);
    for (unsigned i = 0; i < WIRE_COLLECT_MAX / FRAME_DATA_MAX; i++)
        assert_int_equal(give(files, 0, "a", data, FRAME_DATA_MAX, false), 0);
    assert_int_equal(give(files, 0, "a", data, 1, false), -EPROTO);
    assert_int_equal(give(files, 1, "a", data, 1, false), 0);
    job_files_free(files);
}

/* A link where the file would be: nothing is written behind it, and the job goes on. */
static void links_are_not_followed(void **state)
{
    struct job_files *files = open_files("l");
    char path[300], target[300];
    (void)state;
    snprintf(target, sizeof target, "%s/target", folder);
    snprintf(path, sizeof path, "%s/l.inspector/worker-0", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/l.inspector/worker-0/a", folder);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(give(files, 0, "a", "x", 1, false), 0);
    assert_int_equal(access(target, F_OK), -1);
    CLEANUP(json_decrefp) json_t *told = job_files_json(files);
    assert_int_equal(json_integer_value(json_object_get(told, "files")), 0);
    job_files_free(files);
}

/* A named pipe there, which nobody reads: the launcher does not wait for a reader. */
static void pipes_are_left_alone(void **state)
{
    struct job_files *files = open_files("p");
    char path[300];
    (void)state;
    snprintf(path, sizeof path, "%s/p.inspector/worker-0", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/p.inspector/worker-0/a", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(give(files, 0, "a", "x", 1, false), 0);
    assert_int_equal(give(files, 0, "b", "x", 1, false), 0);
    CLEANUP(json_decrefp) json_t *told = job_files_json(files);
    assert_int_equal(json_integer_value(json_object_get(told, "files")), 1);
    job_files_free(files);
}

static void no_folder(void **state)
{
    struct drarun_error err = {0};
    (void)state;
    assert_null(job_files_new("/proc/nothing/r", 1, &err));
    assert_non_null(strstr(err.text, "/proc/nothing"));
}

/* Further ones are left out; the last one may go on. */
static void more_files_than_it_may(void **state)
{
    struct job_files *files = open_files("many");
    char name[32] = "";
    (void)state;
    for (unsigned i = 0; i < WIRE_COLLECT_FILES_MAX; i++) {
        snprintf(name, sizeof name, "f%u", i);
        assert_int_equal(give(files, 1, name, "a", 1, false), 0);
    }
    json_t *json = job_files_json(files);
    assert_null(json_object_get(json, "cut"));
    json_decref(json);
    assert_int_equal(give(files, 1, name, "b", 1, false), 0);
    assert_int_equal(give(files, 1, "more", "a", 1, false), 0);
    assert_int_equal(give(files, 0, "f0", "a", 1, false), 0);
    json = job_files_json(files);
    assert_int_equal(json_integer_value(json_object_get(json, "files")),
                     WIRE_COLLECT_FILES_MAX + 1);
    assert_int_equal(json_array_size(json_object_get(json, "cut")), 1);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(json, "cut"), 0)), 1);
    json_decref(json);
    job_files_free(files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces),
        cmocka_unit_test(names_that_are_none),
        cmocka_unit_test(more_than_it_may),
        cmocka_unit_test(links_are_not_followed),
        cmocka_unit_test(no_folder),
        cmocka_unit_test(more_files_than_it_may),
        cmocka_unit_test(pipes_are_left_alone),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
