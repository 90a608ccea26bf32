/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that behave and scripts that do not, in the machine's own shell. */
#include "lib/inspect/vendor_script.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"

#define LONG_MS 20000u

/* The folder's name is what a careless shell line would trip over. */
static char folder[] = "/tmp/vendor 'script' $(exit 9);XXXXXX";
static char path[sizeof folder + 16], pidfile[sizeof folder + 16];

static json_t *env;
static struct drarun_error err;

static void write_script(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
    json_decref(env);
    env = NULL;
    err = (struct drarun_error){0};
}

static int run(const char *text, uint32_t ms)
{
    write_script(text);
    return vendor_script_run(path, ms, &env, &err);
}

static const char *value(const char *name)
{
    const char *text = json_string_value(json_object_get(env, name));
    return text ? text : "(none)";
}

static void says(const char *part)
{
    if (!strstr(err.text, part))
        fail_msg("\"%s\" does not say \"%s\"", err.text, part);
    assert_null(env);
}

static void what_it_exports(void **unused)
{
    (void)unused;
    assert_int_equal(run("#!/bin/sh\n"
                         "echo noise; echo more >&2\n"
                         "export NCCL_NET=gIB NCCL_EMPTY= NCCL_EQUALS='=a=b'\n"
                         "export ODD=\"one\ntwo  'three' \\$(exit 3)\"\n"
                         "export LATIN=\"$(printf 'a\\377b')\"\n"
                         "NOT_EXPORTED=1\n"
                         "export ARGS=\"$#$*\"\n"
                         "export LD_LIBRARY_PATH=/x:$LD_LIBRARY_PATH\n"
                         "export PATH=/y:$PATH\n",
                         LONG_MS),
                     0);
    assert_string_equal(value("NCCL_NET"), "gIB");
    assert_string_equal(value("NCCL_EMPTY"), "");
    assert_string_equal(value("NCCL_EQUALS"), "=a=b");
    assert_string_equal(value("ODD"), "one\ntwo  'three' $(exit 3)");
    assert_string_equal(value("LD_LIBRARY_PATH"), "/x:");
    assert_string_equal(value("ARGS"), "0");
    assert_true(json_is_null(json_object_get(env, "LATIN")));
    assert_int_equal(json_object_size(env), 7);
}

static void in_a_clean_room(void **unused)
{
    int open_end[2];
    (void)unused;
    assert_int_equal(setenv("SECRET", "x", 1), 0);
    assert_int_equal(setenv("NCCL_NET", "mine", 1), 0);
    assert_int_equal(pipe(open_end), 0); /* as a careless caller has them */
    assert_int_equal(run("export SEEN=\"$SECRET$NCCL_NET\"\n"
                         "export READ=\"$(cat)\"\n"
                         "export FDS=\"$(ls /proc/self/fd | tr '\\n' ' ')\"\n"
                         "export WHO=$(id -u) WHERE=$(pwd)\n",
                         LONG_MS),
                     0);
    close(open_end[0]);
    close(open_end[1]);
    assert_string_equal(value("SEEN"), "");
    assert_string_equal(value("READ"), "");
    assert_string_equal(value("FDS"), "0 1 2 3 "); /* 3: the directory itself */
    assert_string_equal(value("WHERE"), "/");
    assert_int_equal(strtoul(value("WHO"), NULL, 10), getuid());
}

static void that_fails(void **unused)
{
    static const struct {
        const char *text, *says;
    } table[] = {
        {"echo first reason >&2\necho second\nexport A=1\nreturn 3\n", "status 3: first reason"},
        {"echo why\nfalse\n", "status 1: why"},
        {"set -e\nexport A=1\nfalse\nexport B=1\n", "status 1"},
        {"set -u\nexport A=$NOT_SET\n", "status 2"},
        {"export A=1\nexit 0\n", "before it told what it set"},
        {"exec true\n", "before it told what it set"},
        {"if then fi (\n", "status 2"},
        {"kill -9 $$\n", "signal 9"},
        {"export PATH=/nowhere\n", "status 127"},
        {"NCCL_NET=gIB\n", "set nothing"},
        {"", "set nothing"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_true(run(table[i].text, LONG_MS) < 0);
        says(table[i].says);
        says(path);
    }
}

static void that_is_not_there(void **unused)
{
    (void)unused;
    json_decref(env);
    env = NULL;
    assert_true(vendor_script_run("/nowhere/at/all.sh", LONG_MS, &env, &err) < 0);
    says("/nowhere/at/all.sh: cannot be read: No such file");
    assert_true(vendor_script_run("/tmp", LONG_MS, &env, &err) < 0);
    says("/tmp: cannot be read: it is no regular file");
}

static void that_never_ends(void **unused)
{
    static const char *const table[] = {
        "sleep 1000\n",
        "trap '' TERM INT HUP\nwhile :; do :; done\n",
        "while :; do echo noise noise noise noise; done\n",
        "setsid sleep 1000 & wait\n",
    };
    (void)unused;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        int64_t start = clock_ms();
        assert_int_equal(run(table[i], 300), -ETIMEDOUT);
        says("not done after 0.3 s; killed");
        assert_true(clock_ms() - start >= 300);
    }
}

static void that_prints_much(void **unused)
{
    (void)unused;
    assert_int_equal(run("head -c 8000000 /dev/zero | tr '\\0' 'x'\nexport A=1\n", LONG_MS), 0);
    assert_string_equal(value("A"), "1");
    assert_int_equal(run("x=$(head -c 100000 /dev/zero | tr '\\0' 'x')\n"
                         "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do export BIG_$i=$x; done\n",
                         LONG_MS),
                     -EFBIG);
    says("larger than 1024 KiB");
    assert_true(run("head -c 8000000 /dev/zero | tr '\\0' 'x'\nreturn 1\n", LONG_MS) < 0);
    says("status 1: xxxx");
}

static pid_t background(void)
{
    long pid = -1;
    FILE *file = fopen(pidfile, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pid), 1);
    fclose(file);
    return (pid_t)pid;
}

static void gone(pid_t pid)
{
    int64_t deadline = clock_ms() + 60000;
    while (kill(pid, 0) == 0 && clock_ms() < deadline)
        waitpid(pid, NULL, WNOHANG);
    assert_int_equal(kill(pid, 0), -1);
}

/* It holds the pipes; the script's end is what counts, and nothing is left behind. */
static void that_leaves_a_process(void **unused)
{
    static const char *const ways[] = {"sleep 1000 &", "setsid sleep 1000 &",
                                       "(setsid sh -c 'sleep 1000 & wait' &) ; sleep 1000 &"};
    (void)unused;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "cd \"${drarun_script%%/*}\" || return 1\n%s\necho $! >pid\n"
                 "export A=1\n",
                 ways[i]);
        assert_int_equal(run(text, LONG_MS), 0);
        assert_string_equal(value("A"), "1");
        gone(background());
    }
}

static int prepare(void **unused)
{
    (void)unused;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/set.sh", folder);
    snprintf(pidfile, sizeof pidfile, "%s/pid", folder);
    return 0;
}

static int clear(void **unused)
{
    (void)unused;
    json_decref(env);
    return tree_remove(AT_FDCWD, folder);
}

/* As a library does it: the caller's child goes on, its SIGCHLD stays ignored, its descriptors are
 * nobody's, and a failure is one. */
static void apart(void **unused)
{
    (void)unused;
    char script[128];
    int fds[2], status;
    assert_int_equal(pipe(fds), 0);
    snprintf(script, sizeof script, "export NCCL_NET=gIB\ntest -e /proc/$$/fd/%d || export NONE=1",
             fds[0]);
    write_script(script);
    pid_t child = fork();
    if (child == 0) {
        close(fds[1]);
        (void)!read(fds[0], &status, 1);
        _exit(7);
    }
    assert_int_equal(vendor_script_run_apart(path, LONG_MS, &env, &err), 0);
    assert_string_equal(value("NCCL_NET"), "gIB");
    assert_string_equal(value("NONE"), "1");
    write_script("sleep 300 & echo broken >&2; exit 3");
    signal(SIGCHLD, SIG_IGN);
    assert_int_equal(vendor_script_run_apart(path, LONG_MS, &env, &err), -EIO);
    says("ended with status 3: broken");
    write_script("printf '\\377' >&2; exit 3"); /* no UTF-8 */
    assert_int_equal(vendor_script_run_apart(path, LONG_MS, &env, &err), -EIO);
    says("ended with status 3: ?");
    assert_ptr_equal(signal(SIGCHLD, SIG_DFL), SIG_IGN);
    assert_int_equal(vendor_script_run_apart("/no/such/script", LONG_MS, &env, &err), -ENOENT);
    assert_int_equal(kill(child, 0), 0);
    close(fds[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    close(fds[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_exports),
        cmocka_unit_test(in_a_clean_room),
        cmocka_unit_test(that_fails),
        cmocka_unit_test(that_is_not_there),
        cmocka_unit_test(that_never_ends),
        cmocka_unit_test(that_prints_much),
        cmocka_unit_test(that_leaves_a_process),
        cmocka_unit_test(apart),
    };
    return cmocka_run_group_tests_name("vendor_script", tests, prepare, clear);
}
