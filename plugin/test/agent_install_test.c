/* SPDX-License-Identifier: Apache-2.0 */
/* The host's copies of programs; the agent is a script that tells the version of a case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/test/skip.h"
#include "plugin/agent_install.h"

static char top[64], agent[128], to[128];

static int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "/tmp/agent_install.XXXXXX");
    assert_non_null(mkdtemp(top));
    snprintf(agent, sizeof agent, "%s/agent", top);
    snprintf(to, sizeof to, "%s/to", top);
    return 0;
}

static int take_down(void **state)
{
    (void)state;
    return tree_remove(AT_FDCWD, top);
}

static void write_agent(const char *script)
{
    char text[512];
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    assert_int_equal(file_replace(agent, text, strlen(text), 0755, FILE_AFTER_ANYTHING, NULL), 0);
}

static void program_is_copied(void **state)
{
    char path[128];
    struct stat first, second;
    struct drarun_error err = {0};
    (void)state;
    write_agent("one");
    snprintf(path, sizeof path, "%s/bin/deep/agent", top);
    if (program_install(agent, path, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(stat(path, &first), 0);
    assert_int_equal(first.st_mode & 07777, 0755);
    assert_true(file_same(agent, path));
    assert_int_equal(program_install(agent, path, &err), 0);
    assert_int_equal(stat(path, &second), 0);
    assert_int_equal(first.st_ino, second.st_ino); /* the same is left */
    write_agent("two");
    assert_int_equal(program_install(agent, path, &err), 0);
    assert_true(file_same(agent, path));
    assert_int_equal(stat(path, &second), 0);
    assert_int_not_equal(first.st_ino, second.st_ino); /* it may be running */
    snprintf(path, sizeof path, "%s/none", top);
    assert_int_equal(program_install(path, to, &err), -ENOENT);
}

static void place_must_be_there(void **state)
{
    struct drarun_error err = {0};
    char expected[256];
    (void)state;
    assert_int_equal(program_check_place(top, "--hook", &err), 0);
    assert_int_equal(program_check_place(to, "--hook", &err), -ENOENT);
    snprintf(expected, sizeof expected, "%s: No such file or directory", to);
    assert_string_equal(err.text, expected);
}

static void place_must_permit_programs(void **state)
{
    struct drarun_error err = {0};
    char expected[256];
    (void)state;
    assert_int_equal(mkdir(to, 0700), 0);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", to, "tmpfs", MS_NOEXEC, NULL) < 0)
        skip_for("needs root, with namespaces of its own");
    int rc = program_check_place(to, "--hook", &err);
    assert_int_equal(umount(to), 0);
    assert_int_equal(rc, -ENOEXEC);
    snprintf(expected, sizeof expected,
             "%s is on a file system that is mounted noexec; give a folder on another one (--hook)",
             to);
    assert_string_equal(err.text, expected);
}

static void agent_is_installed_by_its_version(void **state)
{
    char offer[AGENT_OFFER_SIZE] = "", path[256];
    struct drarun_error err = {0};
    struct event_base *base = event_base_new();
    (void)state;
    write_agent("test \"$1\" = --version && "
                "echo 'drarun-worker 0.1.0, protocol 7.1, libpmix 5.0.7'");
    if (agent_install(base, agent, to, offer, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(offer, "v7-pmix-5.0.7");
    snprintf(path, sizeof path, "%s/v7-pmix-5.0.7/drarun-worker", to);
    assert_true(file_same(agent, path));
    event_base_free(base);
}

static void agent_that_tells_no_version(void **state)
{
    static const struct {
        const char *script;
        int code;
        const char *finding; /* after the program's name */
    } rows[] = {
        {"exit 1", EIO, "it does not tell its version"},
        {"echo broken >&2; exit 1", EIO, "broken"},
        {"kill -9 $$", EIO, "it does not tell its version"},
        {"echo 'a 1, protocol 1.0, libpmix 5.0.7'; exit 1", EIO, "it does not tell its version"},
        {"true", EINVAL, "its version says no protocol and libpmix: "},
        {"printf 'a 1, protocol x, libpmix 5'", EINVAL,
         "its version says no protocol and libpmix: a 1, protocol x, libpmix 5"},
        {"printf 'a 1, protocol 1.0'", EINVAL,
         "its version says no protocol and libpmix: a 1, protocol 1.0"},
        {"printf 'a 1, protocol 1.0, libpmix ../x'", EINVAL,
         "its version says no protocol and libpmix: a 1, protocol 1.0, libpmix ../x"},
    };
    struct event_base *base = event_base_new();
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char offer[AGENT_OFFER_SIZE] = "untouched", expected[512];
        struct drarun_error err = {0};
        struct stat st;
        write_agent(rows[i].script);
        assert_int_equal(agent_install(base, agent, to, offer, &err), -rows[i].code);
        snprintf(expected, sizeof expected, "%s: %s", agent, rows[i].finding);
        assert_string_equal(err.text, expected);
        assert_string_equal(offer, "untouched");
        assert_int_equal(stat(to, &st), -1);
    }
    event_base_free(base);
}

static void agent_that_is_not_there(void **state)
{
    char offer[AGENT_OFFER_SIZE] = "", expected[256];
    struct drarun_error err = {0};
    struct event_base *base = event_base_new();
    (void)state;
    assert_int_equal(agent_install(base, agent, to, offer, &err), -ENOENT);
    snprintf(expected, sizeof expected, "%s: ", agent);
    assert_int_equal(strncmp(err.text, expected, strlen(expected)), 0);
    event_base_free(base);
}

/* Another user who could write there would run code in all jobs' containers. */
static void folder_of_others_is_refused(void **state)
{
    char offer[AGENT_OFFER_SIZE] = "";
    struct drarun_error err = {0};
    struct event_base *base = event_base_new();
    (void)state;
    write_agent("echo 'a 1, protocol 7.1, libpmix 5.0.7'");
    assert_int_equal(mkdir(to, 0700), 0);
    assert_int_equal(chmod(to, 0777), 0);
    assert_int_not_equal(agent_install(base, agent, to, offer, &err), 0);
    assert_non_null(strstr(err.text, to));
    assert_string_equal(offer, "");
    event_base_free(base);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, take_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(program_is_copied),           CASE(place_must_be_there),
        CASE(place_must_permit_programs),  CASE(agent_is_installed_by_its_version),
        CASE(agent_that_tells_no_version), CASE(agent_that_is_not_there),
        CASE(folder_of_others_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
