/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/alloc/kept.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/wire/tls.h"

#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

/* Jobs in the host's network share ports with others on the node: MASTER_PORT is of their own. */
static void pods_in_the_hosts_network(void **state)
{
    static const struct {
        const char *pod;
        bool on_host;
    } rows[] = {{"", false}, {"\"hostNetwork\":false,", false}, {"\"hostNetwork\":true,", true}};
    char folder[] = "/tmp/kept_test.XXXXXX", path[64], program[] = "true";
    char *argv[] = {program, NULL};
    (void)state;
    assert_non_null(mkdtemp(folder));
    write_file(folder, KEPT_KEY_FILE, KEY);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request_program programs[] = {{.argv = argv}};
        struct job_request request = {.programs = programs, .program_count = 1};
        struct drarun_error err = {0};
        char text[1024];
        snprintf(text, sizeof text,
                 "{\"job\":\"s\",\"uid\":\"u\",\"attempt\":1,\"document\":{\"apiVersion\":"
                 "\"drarun.dev/v1alpha1\",\"kind\":\"DraJob\",\"metadata\":{\"name\":\"s\"},"
                 "\"spec\":{\"template\":{\"spec\":{%s\"containers\":[{\"image\":\"i\","
                 "\"command\":[\"true\"]}]}}}},\"workers\":[{\"pod\":\"s-w-0\",\"node\":\"n0\","
                 "\"address\":\"10.0.0.1:7173\",\"dial\":\"10.0.0.1:7173\",\"claims\":[]}]}",
                 rows[i].pod);
        write_file(folder, KEPT_FILE, text);
        int rc = kept_use(folder, &request, &err);
        assert_string_equal(err.text, "");
        assert_int_equal(rc, 0);
        assert_int_equal(request.pods->on_host, rows[i].on_host);
        kept_free(request.kept);
    }
    snprintf(path, sizeof path, "%s/" KEPT_FILE, folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/" KEPT_KEY_FILE, folder);
    unlink(path);
    rmdir(folder);
}

/* ---- what the file says ---- */

#define WORKER(n)                                                                                  \
    "{'pod':'s-w-" #n "','node':'n" #n "','address':'10.0.0." #n ":7173','dial':'127.0.0.1:700" #n \
    "','claims':[]}"
#define SPEC(more, command)                                                                        \
    "'document':{'apiVersion':'drarun.dev/v1alpha1','kind':'DraJob','metadata':{'name':'s'},"      \
    "'spec':{" more "'template':{'spec':{'containers':[{'image':'i','command':" command "}]}}}}"
#define HEAD "'job':'s','uid':'u-1','attempt':3,"
#define TWO SPEC("'workers':2,", "['true']")

struct folder {
    char path[64];
    struct request_program programs[2];
    struct job_request request;
    char *argv[2];
    char program[16];
};

static void folder_init(struct folder *f, const char *document)
{
    *f = (struct folder){.path = "/tmp/kept_test.XXXXXX", .program = "true"};
    assert_non_null(mkdtemp(f->path));
    f->argv[0] = f->program;
    f->programs[0].argv = f->programs[1].argv = f->argv;
    f->request = (struct job_request){.programs = f->programs, .program_count = 1};
    cleanup_free char *text = strdup(document);
    assert_non_null(text);
    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    write_file(f->path, KEPT_KEY_FILE, KEY);
    write_file(f->path, KEPT_FILE, text);
}

static void folder_done(struct folder *f)
{
    kept_free(f->request.kept);
    assert_int_equal(tree_remove(AT_FDCWD, f->path), 0);
}

static void folders_that_have_pods(void **state)
{
    struct folder f;
    char path[128], longest[PATH_MAX + 1];
    (void)state;
    folder_init(&f, "");
    assert_true(kept_is_there(f.path));
    snprintf(path, sizeof path, "%s/" KEPT_FILE, f.path);
    unlink(path);
    assert_false(kept_is_there(f.path));
    memset(longest, '/', PATH_MAX);
    longest[PATH_MAX] = '\0';
    assert_false(kept_is_there(longest));
    folder_done(&f);
}

static void what_pods_a_job_runs_on(void **state)
{
    struct folder f;
    struct drarun_error err = {0};
    (void)state;
    folder_init(&f, "{" HEAD TWO ",'rankOrder':[1,0],'workers':[" WORKER(0) "," WORKER(1) "]}");
    int rc = kept_use(f.path, &f.request, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    const struct request_pods *pods = f.request.pods;
    assert_non_null(f.request.kept);
    assert_non_null(pods);
    assert_non_null(pods->base);
    assert_true(pods->kept);
    assert_false(pods->entry);
    assert_int_equal(pods->attempt, 3);
    assert_int_equal(pods->workers, 2);
    static const uint8_t first[] = {0, 1, 2, 3};
    assert_memory_equal(pods->key->bytes, first, sizeof first);
    for (int i = 0; i < 2; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "10.0.0.%d:7173", i);
        assert_string_equal(pods->addresses[i], expected);
        snprintf(expected, sizeof expected, "127.0.0.1:700%d", i);
        assert_string_equal(pods->dials[i], expected);
        snprintf(expected, sizeof expected, "s-w-%d", i);
        assert_string_equal(pods->pods[i], expected);
        snprintf(expected, sizeof expected, "n%d", i);
        assert_string_equal(pods->nodes[i], expected);
        assert_int_equal(pods->rank_order[i], 1 - i);
    }
    /* each job has a name of its own: the allocation's, and six letters */
    assert_memory_equal(pods->uid, "u-1.", 4);
    assert_int_equal(strlen(pods->uid), 10);
    assert_int_equal(f.request.programs[0].ranks, 2);
    folder_done(&f);
}

/* What is no permutation of the workers counts as none. */
static void ranks_in_the_order_of_workers(void **state)
{
    static const char *const orders[] = {"", "'rankOrder':[],", "'rankOrder':[1],",
                                         "'rankOrder':[2,1,0],", "'rankOrder':null,"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        struct folder f;
        struct drarun_error err = {0};
        char text[1024];
        snprintf(text, sizeof text, "{" HEAD "%s" TWO ",'workers':[" WORKER(0) "," WORKER(1) "]}",
                 orders[i]);
        folder_init(&f, text);
        assert_int_equal(kept_use(f.path, &f.request, &err), 0);
        assert_null(f.request.pods->rank_order);
        folder_done(&f);
    }
}

static void files_that_are_no_allocation(void **state)
{
    static const struct {
        const char *text;
        int kind, code;
        const char *says; /* behind the folder, where it is named */
    } rows[] = {
        {"", DRARUN_ERR_USAGE, EINVAL, "/kept.json is no allocation's file: '[' or '{' expected"},
        {"{}", DRARUN_ERR_USAGE, EINVAL, "/kept.json is no allocation's file: it has no workers"},
        {"{" HEAD TWO ",'workers':[]}", DRARUN_ERR_USAGE, EINVAL,
         "/kept.json is no allocation's file: it has no workers"},
        {"{" HEAD "'workers':[" WORKER(0) "]}", 0, EINVAL, "the allocation's file has no spec"},
        {"{" HEAD TWO ",'workers':[" WORKER(0) "]}", 0, EINVAL,
         "the allocation's file has not the workers of its spec"},
        {"{" HEAD TWO ",'workers':[" WORKER(0) "," WORKER(1) "," WORKER(2) "]}", 0, EINVAL,
         "the allocation's file has not the workers of its spec"},
        {"{" HEAD TWO
         ",'workers':[" WORKER(0) ",{'pod':'s-w-1','node':'n1','lost':'its node is gone'}]}",
         DRARUN_ERR_INFRASTRUCTURE, ENOENT,
         "worker 1 (pod s-w-1 on n1) of the allocation s is lost: its node is gone; end this shell "
         "and begin another allocation"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct folder f;
        struct drarun_error err = {0};
        folder_init(&f, rows[i].text);
        assert_int_equal(kept_use(f.path, &f.request, &err), -rows[i].code);
        assert_int_equal(err.kind, rows[i].kind);
        const char *says = err.text;
        if (strncmp(says, f.path, strlen(f.path)) == 0)
            says += strlen(f.path);
        if (strncmp(says, rows[i].says, strlen(rows[i].says)) != 0)
            fail_msg("row %zu: %s", i, err.text);
        assert_null(f.request.kept);
        assert_null(f.request.pods);
        folder_done(&f);
    }
}

/* What the command line does not say, the spec does. */
static void what_the_spec_says_of_ranks(void **state)
{
    static const struct {
        const char *spec;
        uint32_t per_worker, ranks, per_host, slots; /* of the command line */
        const char *hosts;
        bool env, mpirun;
        size_t programs;
        bool is_env, is_mpirun;
        uint32_t is_ranks, is_per_worker, is_slots;
    } rows[] = {
        {"", 0, 0, 0, 0, NULL, false, false, 1, false, false, 2, 0, 0},
        {"'ranksPerWorker':3,", 0, 0, 0, 0, NULL, false, false, 1, false, false, 6, 0, 0},
        {"'ranksPerWorker':3,", 0, 4, 0, 0, NULL, false, false, 1, false, false, 4, 0, 0},
        {"'ranksPerWorker':3,", 5, 0, 0, 0, NULL, false, false, 1, false, false, 0, 5, 0},
        {"'ranksPerWorker':3,", 0, 0, 1, 0, NULL, false, false, 1, false, false, 0, 3, 0},
        {"'ranksPerWorker':3,", 0, 0, 0, 0, "a", false, false, 1, false, false, 0, 3, 0},
        {"'ranksPerWorker':3,", 0, 0, 0, 0, NULL, false, false, 2, false, false, 0, 0, 0},
        {"'ranksPerWorker':3,", 0, 0, 0, 0, NULL, false, true, 1, false, true, 0, 3, 0},
        {"'launch':'env',", 0, 0, 0, 0, NULL, false, false, 1, true, false, 2, 0, 0},
        {"'launch':'env',", 0, 0, 0, 0, NULL, false, true, 1, false, true, 0, 0, 0},
        {"", 0, 0, 0, 9, NULL, true, false, 1, true, false, 2, 0, 9},
        {"'slots':7,", 0, 0, 0, 0, NULL, false, false, 1, false, false, 2, 0, 7},
        {"'slots':7,", 0, 0, 0, 9, NULL, false, false, 1, false, false, 2, 0, 9},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct folder f;
        struct drarun_error err = {0};
        char text[1024];
        snprintf(
            text, sizeof text,
            "{" HEAD SPEC("'workers':2,%s", "['true']") ",'workers':[" WORKER(0) "," WORKER(1) "]}",
            rows[i].spec);
        folder_init(&f, text);
        f.request.per_worker = rows[i].per_worker;
        f.request.per_host = rows[i].per_host;
        f.request.hosts = rows[i].hosts;
        f.request.slots = rows[i].slots;
        f.request.launch_env = rows[i].env;
        f.request.launch_mpirun = rows[i].mpirun;
        f.request.program_count = rows[i].programs;
        f.programs[0].ranks = rows[i].ranks;
        if (kept_use(f.path, &f.request, &err) < 0)
            fail_msg("row %zu: %s", i, err.text);
        if (f.request.launch_env != rows[i].is_env ||
            f.request.launch_mpirun != rows[i].is_mpirun ||
            f.programs[0].ranks != rows[i].is_ranks ||
            f.request.per_worker != rows[i].is_per_worker || f.request.slots != rows[i].is_slots)
            fail_msg("row %zu: %d %d, %u ranks, %u each, %u slots", i, f.request.launch_env,
                     f.request.launch_mpirun, f.programs[0].ranks, f.request.per_worker,
                     f.request.slots);
        folder_done(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_in_the_hosts_network),
        cmocka_unit_test(folders_that_have_pods),
        cmocka_unit_test(what_pods_a_job_runs_on),
        cmocka_unit_test(ranks_in_the_order_of_workers),
        cmocka_unit_test(files_that_are_no_allocation),
        cmocka_unit_test(what_the_spec_says_of_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
