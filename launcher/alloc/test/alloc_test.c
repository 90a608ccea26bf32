/* SPDX-License-Identifier: Apache-2.0 */
/* How a job finds the agents of an allocation. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "launcher/alloc/alloc.h"
#include "launcher/alloc/kept.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

#define AGENTS "127.0.0.1:7001,127.0.0.1:7002"

struct place {
    char path[64];
    struct request_program programs[3];
    struct job_request request;
    int turn;
};

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void place_init(struct place *p)
{
    *p = (struct place){.path = "/tmp/alloc_test.XXXXXX", .turn = -7};
    assert_non_null(mkdtemp(p->path));
    write_file(p->path, "agents", AGENTS);
    p->request = (struct job_request){.programs = p->programs, .program_count = 1};
    unsetenv(ALLOC_VARIABLE);
}

static void place_done(struct place *p)
{
    if (p->turn >= 0)
        close(p->turn);
    free(p->request.alloc_agents);
    free(p->request.alloc_key_file);
    strlist_done(&p->request.alloc_wds);
    unsetenv(ALLOC_VARIABLE);
    tree_remove(AT_FDCWD, p->path);
}

/* What names other agents, or asks for some on this machine, goes before. */
static void jobs_that_use_no_allocation(void **state)
{
    static const struct {
        const char *variable, *alloc, *agents; /* "." is the folder; NULL: not set */
        uint32_t workers;
        bool used;
    } rows[] = {
        {NULL, NULL, NULL, 0, false}, {"", NULL, NULL, 0, false},  {".", NULL, NULL, 0, true},
        {NULL, ".", NULL, 0, true},   {"/x", ".", NULL, 0, true},  {".", "", NULL, 0, false},
        {".", NULL, "a:1", 0, false}, {".", ".", "a:1", 0, false}, {".", ".", NULL, 1, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct place p;
        struct drarun_error err = {0};
        char key[128];
        const char *variable = rows[i].variable, *alloc = rows[i].alloc;
        place_init(&p);
        if (variable)
            setenv(ALLOC_VARIABLE, strcmp(variable, ".") == 0 ? p.path : variable, 1);
        p.request.alloc = alloc && strcmp(alloc, ".") == 0 ? p.path : alloc;
        p.request.agents = rows[i].agents;
        p.request.workers = rows[i].workers;
        assert_int_equal(alloc_use(&p.request, &p.turn, &err), 0);
        assert_false(alloc_is_of_pods(&p.request));
        assert_int_equal(p.turn >= 0, rows[i].used);
        if (rows[i].used) {
            snprintf(key, sizeof key, "%s/key", p.path);
            assert_string_equal(p.request.agents, AGENTS);
            assert_string_equal(p.request.key_file, key);
        } else {
            assert_int_equal(p.turn, -7);
            assert_ptr_equal(p.request.agents, rows[i].agents);
            assert_null(p.request.key_file);
        }
        place_done(&p);
    }
}

/* The agents run elsewhere in the tree of files; the ranks are to run here. */
static void programs_run_where_the_job_was_started(void **state)
{
    struct place p;
    struct drarun_error err = {0};
    char own[512], below[560];
    (void)state;
    place_init(&p);
    assert_non_null(getcwd(own, sizeof own));
    snprintf(below, sizeof below, "%s/below/it", own);
    p.request.program_count = 3;
    p.request.alloc = p.path;
    p.programs[1].wd = "/absolute";
    p.programs[2].wd = "below/it";
    assert_int_equal(alloc_use(&p.request, &p.turn, &err), 0);
    assert_string_equal(p.programs[0].wd, own);
    assert_string_equal(p.programs[1].wd, "/absolute");
    assert_string_equal(p.programs[2].wd, below);
    place_done(&p);
}

static void allocations_that_cannot_be_used(void **state)
{
    static const struct {
        bool by_option, left, gone;
        int kind, code;
        const char *says; /* %s: the folder */
    } rows[] = {
        {true, true, false, DRARUN_ERR_USAGE, ESRCH,
         "the allocation %s has ended, since its drarun alloc was killed: leave its shell, or "
         "unset "
         "DRARUN_ALLOC"},
        {false, true, false, DRARUN_ERR_USAGE, ESRCH,
         "the allocation %s has ended, since its drarun alloc was killed: leave its shell, or "
         "unset "
         "DRARUN_ALLOC"},
        {true, false, true, DRARUN_ERR_USAGE, ENOENT,
         "--alloc %s is no allocation, or one that has ended (No such file or directory): leave "
         "its shell, or unset DRARUN_ALLOC"},
        {false, false, true, DRARUN_ERR_USAGE, ENOENT,
         "DRARUN_ALLOC %s is no allocation, or one that has ended (No such file or directory): "
         "leave its shell, or unset DRARUN_ALLOC"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct place p;
        struct drarun_error err = {0};
        char path[128], expected[512];
        place_init(&p);
        if (rows[i].by_option)
            p.request.alloc = p.path;
        else
            setenv(ALLOC_VARIABLE, p.path, 1);
        if (rows[i].left)
            write_file(p.path, "owner", "locked\n");
        snprintf(path, sizeof path, "%s/agents", p.path);
        if (rows[i].gone)
            unlink(path);
        assert_int_equal(alloc_use(&p.request, &p.turn, &err), -rows[i].code);
        assert_int_equal(err.kind, rows[i].kind);
        const char *at = strstr(rows[i].says, "%s");
        snprintf(expected, sizeof expected, "%.*s%s%s", (int)(at - rows[i].says), rows[i].says,
                 p.path, at + 2);
        assert_string_equal(err.text, expected);
        assert_int_equal(p.turn, -7);
        assert_null(p.request.agents);
        place_done(&p);
    }
}

/* Of pods another job runs, and what else there is to do. */
static void allocations_that_are_busy(void **state)
{
    static const struct {
        bool pods;
        const char *end;
    } rows[] = {{false, "wait for it, or use --workers N"},
                {true, "wait for it, or begin another allocation"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct place p;
        struct drarun_error err = {0};
        struct job_request first = {.programs = NULL};
        int turn = -1;
        place_init(&p);
        first.alloc = p.request.alloc = p.path;
        assert_int_equal(alloc_use(&first, &turn, &err), 0);
        if (rows[i].pods)
            write_file(p.path, KEPT_FILE, "");
        assert_int_equal(alloc_is_of_pods(&p.request), rows[i].pods);
        assert_int_equal(alloc_use(&p.request, &p.turn, &err), -EBUSY);
        assert_int_equal(err.kind, DRARUN_ERR_CAPACITY);
        assert_string_equal(err.text + strlen(err.text) - strlen(rows[i].end), rows[i].end);
        close(turn);
        free(first.alloc_agents);
        free(first.alloc_key_file);
        place_done(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_that_use_no_allocation),
        cmocka_unit_test(programs_run_where_the_job_was_started),
        cmocka_unit_test(allocations_that_cannot_be_used),
        cmocka_unit_test(allocations_that_are_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
