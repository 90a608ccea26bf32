/* SPDX-License-Identifier: Apache-2.0 */
/* Which file a name means, and why a file cannot be executed: each bad file is made, looked at and
 * given to the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/unconst.h"
#include "worker/ranks/exec_path.h"
#include "worker/ranks/exec_reason.h"
#include "worker/ranks/spawn.h"

/* argv and environments from literals, which nobody writes to. */
#define WORDS(...) ((char *const *)unconst((const char *const[]){__VA_ARGS__, NULL}))

static char dir[] = "/tmp/exec_path_test.XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    return tree_remove(AT_FDCWD, dir);
}

static const char *make(const char *name, const void *data, size_t length, mode_t mode)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, data, length), 0);
    assert_int_equal(fchmod(fd, mode), 0);
    return path;
}

static const char *make_text(const char *name, const char *text, mode_t mode)
{
    return make(name, text, strlen(text), mode);
}

/* As ranks_start does it: find, then execve. */
static int start(const char *wd, const char *program, const char *path, struct drarun_error *err)
{
    char found[PATH_MAX], variable[512];
    cleanup_close int at = -1;
    snprintf(variable, sizeof variable, "PATH=%s", path);
    char *const *env = WORDS(variable);
    char *const *argv = WORDS(program);
    memset(err, 0, sizeof *err);
    int rc = exec_path_open_wd(wd, &at, err);
    if (rc == 0)
        rc = exec_path_find(at, program, env, false, found, err);
    if (rc < 0)
        return rc;
    struct spawn spawn = {
        .path = found, .argv = argv, .env = env, .dir = at, .stdio = {0, 1, 2}, .keep = -1};
    pid_t pid;
    return spawn_process(&spawn, &pid, err);
}

/* execve and the look from outside agree, and both say `text`. */
static void refused(const char *path, int code, enum drarun_errkind kind, const char *text)
{
    struct drarun_error err;
    assert_int_equal(start(NULL, path, "", &err), -code);
    if (err.kind != kind || !strstr(err.text, text))
        fail_msg("%s: kind %d: %s", path, err.kind, err.text);
    memset(&err, 0, sizeof err);
    if (access("/proc/sys/fs/binfmt_misc/register", F_OK) == 0 && code == ENOEXEC)
        return; /* something else may run it */
    int rc = exec_reason_check(AT_FDCWD, path, &err);
    if (code != EACCES && (rc != -code || err.kind != kind || !strstr(err.text, text)))
        fail_msg("%s: check %d: %s", path, rc, err.text);
}

static void text_files(void **state)
{
    (void)state;
    const enum drarun_errkind bad = DRARUN_ERR_NOT_EXECUTABLE;
    refused(make_text("plain", "echo hello\n", 0755), ENOEXEC, bad, "like \"#!/bin/sh\"");
    refused(make_text("empty", "", 0755), ENOEXEC, bad, "empty");
    refused(make_text("nobody", "#!\n", 0755), ENOEXEC, bad, "no interpreter");
    refused(make_text("lost", "#! /no/such/sh -e\n", 0755), ENOENT, bad,
            "its interpreter /no/such/sh is missing");
    refused(make_text("dos", "#!/bin/sh\r\necho\r\n", 0755), ENOENT, bad, "carriage returns");
    refused(make_text("marked", "\xef\xbb\xbf#!/bin/sh\n", 0755), ENOEXEC, bad,
            "a byte order mark precedes");
    refused(make_text("mode", "#!/bin/sh\n", 0644), EACCES, bad, "not marked executable");
    refused(dir, EACCES, bad, "directory");
    refused("/dev/null", EACCES, bad, "not a regular file");
}

static void unknown_program(void **state)
{
    (void)state;
    struct drarun_error err;
    char said[PATH_MAX + 32];
    assert_int_equal(start(NULL, "/no/such", "/bin", &err), -ENOENT);
    assert_int_equal(err.kind, DRARUN_ERR_NOT_FOUND);
    assert_string_equal(err.text, "no program /no/such");
    assert_int_equal(start(dir, "./no-such", "/bin", &err), -ENOENT);
    snprintf(said, sizeof said, "no program ./no-such in %s", dir);
    assert_string_equal(err.text, said);
    assert_int_equal(start(NULL, "no-such", "/bin:/nowhere", &err), -ENOENT);
    assert_int_equal(err.kind, DRARUN_ERR_NOT_FOUND);
    assert_string_equal(err.text, "no program no-such in PATH");
    make_text("a.out", "#!/bin/sh\n", 0755);
    make_text("notes", "text\n", 0644);
    assert_int_equal(start(dir, "a.out", "/bin", &err), -ENOENT);
    assert_string_equal(err.text, "no program a.out in PATH; the one in the working "
                                  "directory is ./a.out");
    assert_int_equal(start(dir, "notes", "/bin", &err), -ENOENT);
    assert_string_equal(err.text, "no program notes in PATH; the file in the working directory is "
                                  "not marked executable (chmod +x)");
    make_text("train.py", "print()\n", 0644);
    assert_int_equal(start(dir, "train.py", "/bin", &err), -ENOENT);
    assert_string_equal(err.text, "no program train.py in PATH; start the one in the working "
                                  "directory with its interpreter: python3 train.py");
    assert_int_equal(start(NULL, "echo hello", "/bin", &err), -ENOENT);
    assert_string_equal(err.text, "no program \"echo hello\" in PATH; give its words one by one, "
                                  "without quotes around all of them, or a shell's line to sh -c");
    assert_int_equal(start(NULL, "A=1", "/bin", &err), -ENOENT);
    assert_string_equal(err.text, "no program A=1 in PATH; a variable is set with env A=1 PROGRAM");
    assert_int_equal(start(NULL, "", "/bin", &err), -ENOENT);
    assert_int_equal(start("/no/such", "sh", "/bin", &err), -ENOENT);
    assert_non_null(strstr(err.text, "working directory /no/such"));
    assert_int_equal(start("/bin/sh", "sh", "/bin", &err), -ENOTDIR);
}

/* A process of its own gives its rights up. */
static void closed_directory(void **state)
{
    (void)state;
    struct drarun_error err;
    char path[256];
    snprintf(path, sizeof path, "%s/closed", dir);
    assert_int_equal(mkdir(path, 0600), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (geteuid() == 0 && (chmod(dir, 0711) < 0 || setresuid(65534, 65534, 65534) < 0))
            _exit(2);
        /* the name can be opened: only entering it fails */
        int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            _exit(3);
        close_fd(&fd);
        bool named = start(path, "sh", "/bin", &err) == -EACCES &&
                     err.kind == DRARUN_ERR_NOT_EXECUTABLE && strstr(err.text, path);
        _exit(named ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(rmdir(path), 0);
}

static void search_order(void **state)
{
    (void)state;
    struct drarun_error err;
    char found[PATH_MAX], path[600];
    make_text("sh", "#!/bin/sh\n", 0644); /* passed over: execvpe goes on after EACCES */
    snprintf(path, sizeof path, "PATH=/nowhere:%s:/etc/passwd:/bin", dir);
    char *const *env = WORDS("PATHS=/x", path);
    assert_int_equal(exec_path_find(AT_FDCWD, "sh", env, false, found, &err), 0);
    assert_string_equal(found, "/bin/sh");
    /* what was passed over is named when nothing else is found */
    make_text("only-here", "", 0644);
    assert_int_equal(exec_path_find(AT_FDCWD, "only-here", env, false, found, &err), -EACCES);
    assert_non_null(strstr(err.text, "only-here: the file is not marked executable"));
    /* an empty entry is the directory that the rank starts in */
    make_text("local", "#!/bin/sh\n", 0755);
    cleanup_close int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *const *here = WORDS("PATH=/bin:");
    assert_int_equal(exec_path_find(at, "local", here, false, found, &err), 0);
    assert_string_equal(found, "./local");
    assert_int_equal(exec_path_find(at, "./local", NULL, false, found, &err), 0);
    assert_string_equal(found, "./local");
    /* and with `here` each directory, after all others */
    char *const *elsewhere = WORDS("PATH=/bin");
    assert_int_equal(exec_path_find(at, "local", elsewhere, false, found, &err), -ENOENT);
    assert_int_equal(exec_path_find(at, "local", elsewhere, true, found, &err), 0);
    assert_string_equal(found, "./local");
    make_text("ls", "#!/bin/sh\n", 0755);
    assert_int_equal(exec_path_find(at, "ls", elsewhere, true, found, &err), 0);
    assert_string_equal(found, "/bin/ls");
    assert_int_equal(exec_path_find(at, "only-here", elsewhere, true, found, &err), -ENOENT);
    assert_non_null(strstr(err.text, "not marked executable"));
    /* without PATH, the system's own */
    assert_int_equal(exec_path_find(AT_FDCWD, "sh", NULL, false, found, &err), 0);
}

static void load_program(struct buf *program)
{
    assert_int_equal(file_read(AT_FDCWD, "/proc/self/exe", 0, program, NULL), -ELOOP);
    char path[PATH_MAX];
    assert_non_null(realpath("/bin/true", path));
    assert_int_equal(file_read(AT_FDCWD, path, 16 * 1024 * 1024, program, NULL), 0);
}

static void elf_files(void **state)
{
    (void)state;
    const enum drarun_errkind bad = DRARUN_ERR_NOT_EXECUTABLE;
    CLEANUP(buf_done) struct buf program = BUF_INIT;
    load_program(&program);
    Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)program.data;
    Elf64_Ehdr good = *header;

    header->e_machine = good.e_machine == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
    refused(make("foreign", program.data, program.len, 0755), ENOEXEC, bad,
            good.e_machine == EM_AARCH64 ? "a program for x86_64" : "a program for aarch64");
    header->e_machine = 0x1234;
    refused(make("unknown", program.data, program.len, 0755), ENOEXEC, bad, "ELF machine 4660");
    *header = good;
    header->e_type = ET_REL;
    refused(make("object", program.data, program.len, 0755), ENOEXEC, bad, "object file");
    *header = good;
    char *loader = memmem(program.data, program.len, "/ld-", 4);
    assert_non_null(loader);
    memcpy(loader, "/no-", 4);
    refused(make("loader", program.data, program.len, 0755), ENOENT, bad, "its loader /");
    memcpy(loader, "/ld-", 4);
    struct drarun_error err;
    assert_int_equal(
        exec_reason_check(AT_FDCWD, make("good", program.data, program.len, 0755), &err), 0);
}

/* Every cut and every byte of an ELF header turned over: nothing but a crash is wrong. */
static void broken_headers(void **state)
{
    (void)state;
    CLEANUP(buf_done) struct buf program = BUF_INIT;
    load_program(&program);
    for (size_t i = 0; i < 128; i++) {
        exec_reason_check(AT_FDCWD, make("cut", program.data, i, 0755), NULL);
        program.data[i] = (char)~program.data[i];
        exec_reason_check(AT_FDCWD, make("turned", program.data, 4096, 0755), NULL);
        program.data[i] = (char)~program.data[i];
    }
}

/* Neither waits for a writer nor reads a device. */
static void special_files(void **state)
{
    (void)state;
    char path[256];
    snprintf(path, sizeof path, "%s/pipe", dir);
    assert_int_equal(mkfifo(path, 0755), 0);
    assert_int_equal(exec_reason_check(AT_FDCWD, path, NULL), 0);
    assert_int_equal(exec_reason_check(AT_FDCWD, "/dev/zero", NULL), 0);
}

/* Of a program with which nothing is wrong. */
static void each_error_has_its_kind(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int code;
        enum drarun_errkind kind;
        const char *why; /* NULL: the error's own words */
    } table[] = {
        {"/bin/sh", E2BIG, DRARUN_ERR_NOT_EXECUTABLE,
         "its arguments and environment are larger than execve takes"},
        {"/bin/sh", ETXTBSY, DRARUN_ERR_NOT_EXECUTABLE, "it is open for writing"},
        {"/bin/sh", EAGAIN, DRARUN_ERR_INFRASTRUCTURE, NULL},
        {"/bin/sh", ENOMEM, DRARUN_ERR_INFRASTRUCTURE, NULL},
        {"/bin/sh", EMFILE, DRARUN_ERR_INFRASTRUCTURE, NULL},
        {"/bin/sh", ENFILE, DRARUN_ERR_INFRASTRUCTURE, NULL},
        {"/bin/sh", EIO, DRARUN_ERR_NOT_EXECUTABLE, NULL},
        {"/bin/sh", EACCES, DRARUN_ERR_NOT_EXECUTABLE, "permission denied"},
        {"/bin/sh", EPERM, DRARUN_ERR_NOT_EXECUTABLE, "permission denied"},
        {"/", EACCES, DRARUN_ERR_NOT_EXECUTABLE, "it is a directory"},
        {"/dev/null", EACCES, DRARUN_ERR_NOT_EXECUTABLE, "it is not a regular file"},
        {"/no/such", EACCES, DRARUN_ERR_NOT_EXECUTABLE,
         "a directory in its path does not allow search"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct drarun_error err = {0};
        char expected[256];
        /* EPERM and EACCES say the same to the user */
        int code = table[i].code == EPERM ? EACCES : table[i].code;
        assert_int_equal(exec_reason(AT_FDCWD, table[i].path, table[i].code, &err), -code);
        snprintf(expected, sizeof expected, "cannot execute %s: %s", table[i].path,
                 table[i].why ? table[i].why : strerror(code));
        assert_string_equal(err.text, expected);
        assert_int_equal(err.kind, table[i].kind);
    }
}

/* Where a relative one was looked for. */
static void no_program_of_that_name(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    char expected[256];
    cleanup_close int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    cleanup_close int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0 && before >= 0);
    for (int i = 0; i < 2; i++) {
        int code = i == 0 ? ENOENT : ENOTDIR;
        assert_int_equal(exec_reason(AT_FDCWD, "/no/such", code, &err), -code);
        assert_string_equal(err.text, "no program /no/such");
        assert_int_equal(err.kind, DRARUN_ERR_NOT_FOUND);
    }
    assert_int_equal(exec_reason(fd, "no/such", ENOENT, &err), -ENOENT);
    snprintf(expected, sizeof expected, "no program no/such in %s", dir);
    assert_string_equal(err.text, expected);
    assert_int_equal(fchdir(fd), 0);
    assert_int_equal(exec_reason(AT_FDCWD, "such", ENOENT, &err), -ENOENT);
    assert_int_equal(fchdir(before), 0);
    snprintf(expected, sizeof expected, "no program such in %s", dir);
    assert_string_equal(err.text, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_files),
        cmocka_unit_test(unknown_program),
        cmocka_unit_test(search_order),
        cmocka_unit_test(elf_files),
        cmocka_unit_test(broken_headers),
        cmocka_unit_test(special_files),
        cmocka_unit_test(closed_directory),
        cmocka_unit_test(each_error_has_its_kind),
        cmocka_unit_test(no_program_of_that_name),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
