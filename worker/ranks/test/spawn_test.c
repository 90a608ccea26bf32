/* SPDX-License-Identifier: Apache-2.0 */
/* What a process gets from its start, seen from inside. Run as "spawn_test child WHAT" this program
 * is that process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"
#include "worker/host/oom.h"
#include "worker/ranks/spawn.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* argv and environments from literals, which nobody writes to. */
#define WORDS(...) ((char *const *)unconst((const char *const[]){__VA_ARGS__, NULL}))

static char self[4096];

/* ---- the child's side ---- */

static int show_descriptors(void)
{
    cleanup_dir DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(dir))
            printf("%s ", entry->d_name);
    return 0;
}

static int show_session(void)
{
    const char *whose = getsid(0) == getpid()    ? "its own"
                        : getsid(0) == getppid() ? "its parent's"
                                                 : "another's";
    return printf("%s", getpgrp() == getpid() ? whose : "no process group") < 0;
}

static int child_main(const char *what)
{
    if (strcmp(what, "descriptors") == 0)
        return show_descriptors();
    if (strcmp(what, "session") == 0)
        return show_session();
    if (strcmp(what, "directory") == 0)
        return printf("%s", getcwd(self, sizeof self)) < 0;
    return 1;
}

/* ---- the parent's side ---- */

/* Runs it with stdout in a pipe; returns the wait status. */
static int run(struct spawn *spawn, struct buf *out)
{
    int fds[2];
    pid_t pid = -1;
    struct drarun_error err = {0};
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    cleanup_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    spawn->stdio[0] = null;
    spawn->stdio[1] = fds[1];
    spawn->stdio[2] = 2;
    int rc = spawn_process(spawn, &pid, &err);
    if (rc < 0)
        print_error("%s\n", err.text);
    assert_int_equal(rc, 0);
    close(fds[1]);
    ssize_t n;
    do {
        assert_true(buf_reserve(out, 4096));
        n = read(fds[0], out->data + out->len, 4096);
        assert_true(n >= 0);
        out->len += (size_t)n;
        out->data[out->len] = '\0';
    } while (n > 0);
    close(fds[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static char *const no_env[] = {NULL};

static struct spawn spawn_of(char *const *argv)
{
    return (struct spawn){.path = argv[0],
                          .argv = argv,
                          .env = no_env,
                          .dir = AT_FDCWD,
                          .stdio = {0, 1, 2},
                          .keep = -1};
}

static void expect(struct spawn *spawn, const char *text)
{
    CLEANUP(buf_done) struct buf out = BUF_INIT;
    assert_int_equal(run(spawn, &out), 0);
    assert_string_equal(out.data, text);
}

/* In a process of its own, for what would not go away again. */
static void in_child(void (*test)(void))
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        test();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void only_named_descriptors_are_inherited(void **state)
{
    (void)state;
    char *const *argv = WORDS(self, "child", "descriptors");
    struct spawn spawn = spawn_of(argv);
    /* careless ones, without O_CLOEXEC */
    cleanup_close int low = open("/dev/null", O_RDONLY);
    cleanup_close int high = fcntl(low, F_DUPFD, 200);
    cleanup_close int keep = fcntl(low, F_DUPFD_CLOEXEC, 77);
    expect(&spawn, "0 1 2 ");
    spawn.keep = keep;
    expect(&spawn, "0 1 2 77 ");
    assert_true(fcntl(keep, F_GETFD) & FD_CLOEXEC);
}

static void refuse_close_range(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {ARRAY_LEN(code), code};
    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    assert_int_equal(syscall(SYS_close_range, 1000, 1001, 0), -1);
    only_named_descriptors_are_inherited(NULL);
}

static void descriptors_without_close_range(void **state)
{
    (void)state;
    in_child(refuse_close_range);
}

static void without_stdio(void)
{
    close(0);
    close(1);
    char *const *argv = WORDS(self, "child", "descriptors");
    struct spawn spawn = spawn_of(argv);
    expect(&spawn, "0 1 2 ");
}

static void agent_without_stdio(void **state)
{
    (void)state;
    in_child(without_stdio);
}

static void signals_are_as_at_login(void **state)
{
    (void)state;
    char *const *argv = WORDS("/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status");
    struct spawn spawn = spawn_of(argv);
    sigset_t all, before;
    sigfillset(&all);
    for (int signo = 1; signo < 65; signo++)
        if (signo != SIGCHLD)
            signal(signo, SIG_IGN);
    sigprocmask(SIG_SETMASK, &all, &before);
    expect(&spawn, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    sigset_t after;
    sigprocmask(SIG_SETMASK, &before, &after);
    assert_true(sigismember(&after, SIGTERM)); /* ours is as it was */
    for (int signo = 1; signo < 65; signo++)
        signal(signo, SIG_DFL);
}

static void session_of_its_own(void **state)
{
    (void)state;
    char *const *argv = WORDS(self, "child", "session");
    struct spawn spawn = spawn_of(argv);
    expect(&spawn, getsid(0) == getpid() ? "its parent's" : "its own");
}

static void session_of_an_agent_that_leads_one(void **state)
{
    (void)state;
    pid_t agent = fork();
    if (agent == 0) {
        char *const *argv = WORDS(self, "child", "session");
        struct spawn spawn = spawn_of(argv);
        struct buf out = BUF_INIT;
        setsid();
        run(&spawn, &out);
        _exit(strcmp(out.data, "its parent's") == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(agent, &status, 0), agent);
    assert_int_equal(status, 0);
}

static void starts_in_the_directory(void **state)
{
    (void)state;
    char *const *argv = WORDS(self, "child", "directory");
    struct spawn spawn = spawn_of(argv);
    cleanup_close int dir = open("/usr/lib", O_PATH | O_DIRECTORY | O_CLOEXEC);
    spawn.dir = dir;
    expect(&spawn, "/usr/lib");
    char *const *relative = WORDS("./sh", "-c", "echo $0");
    struct spawn shell = spawn_of(relative);
    cleanup_close int bin = open("/bin", O_PATH | O_DIRECTORY | O_CLOEXEC);
    shell.dir = bin;
    expect(&shell, "./sh\n");
}

static void binds_to_cpus(void **state)
{
    (void)state;
    char *const *argv = WORDS("/bin/grep", "^Cpus_allowed_list", "/proc/self/status");
    struct spawn spawn = spawn_of(argv);
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    uint32_t cpu = 0;
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    spawn.cpus = &cpu;
    spawn.cpu_count = 1;
    char text[64];
    snprintf(text, sizeof text, "Cpus_allowed_list:\t%u\n", (unsigned)cpu);
    expect(&spawn, text);
    /* one that is not there */
    struct spawn none = spawn_of(argv);
    none.cpus = &cpu;
    none.cpu_count = 1;
    struct drarun_error err = {0};
    pid_t pid;
    cpu = 8000;
    assert_int_equal(spawn_process(&none, &pid, &err), -EINVAL);
    assert_non_null(strstr(err.text, "CPU 8000"));
    cpu = 1000000;
    assert_int_equal(spawn_process(&none, &pid, &err), -EINVAL);
    assert_non_null(strstr(err.text, "CPU 1000000"));
}

static void gets_its_limit(void **state)
{
    (void)state;
    char *const *argv = WORDS("/bin/sh", "-c", "ulimit -n");
    struct spawn spawn = spawn_of(argv);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 123;
    spawn.nofile = &limit;
    expect(&spawn, "123\n");
}

static void read_own_score(char text[OOM_SCORE_SIZE])
{
    int fd = open(OOM_SCORE_FILE, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, OOM_SCORE_SIZE - 1);
    assert_true(n > 0);
    text[n] = '\0';
    close(fd);
}

/* The child alone, though it runs in our memory until it executes. */
static void gets_its_oom_score(void **state)
{
    (void)state;
    char *const *argv = WORDS("/bin/cat", OOM_SCORE_FILE);
    struct spawn spawn = spawn_of(argv);
    char before[OOM_SCORE_SIZE], after[OOM_SCORE_SIZE];
    read_own_score(before);
    spawn.oom_score = "987"; /* anybody may raise it */
    expect(&spawn, "987\n");
    read_own_score(after);
    assert_string_equal(before, after);
}

/* A process starts one and is killed: what it started must follow. */
/* "T (stopped)", or "" where it cannot be read. */
static void state_of(pid_t pid, char state[64])
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    state[0] = '\0';
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "State: %63[^\n]", state) == 1)
            break;
    if (file)
        fclose(file);
}

/* After execve: it is the program already. Nobody traces it, so that a debugger can. */
static void stops_before_its_first_instruction(void **state)
{
    (void)state;
    char *const *argv = WORDS(self, "child", "directory");
    struct spawn spawn = spawn_of(argv);
    struct drarun_error err = {0};
    siginfo_t info = {0};
    char path[64], program[sizeof self] = "", text[64];
    pid_t pid = -1;
    int status;
    spawn.stop = true;
    assert_int_equal(spawn_process(&spawn, &pid, &err), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
    assert_int_equal(info.si_code, CLD_STOPPED);
    assert_int_equal(info.si_status, SIGSTOP);
    state_of(pid, text);
    assert_string_equal(text, "T (stopped)");
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    assert_true(readlink(path, program, sizeof program - 1) > 0);
    assert_string_equal(program, self);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void dies_while_it_is_stopped(void **state)
{
    (void)state;
    char *const *argv = WORDS(self, "child", "directory");
    struct spawn spawn = spawn_of(argv);
    struct drarun_error err = {0};
    pid_t pid = -1;
    int status;
    spawn.stop = true;
    assert_int_equal(spawn_process(&spawn, &pid, &err), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void stopped_program_that_is_missing(void **state)
{
    (void)state;
    char *const *argv = WORDS("/no/such/program");
    struct spawn spawn = spawn_of(argv);
    struct drarun_error err = {0};
    pid_t pid = -1;
    spawn.stop = true;
    assert_int_equal(spawn_process(&spawn, &pid, &err), -ENOENT);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void dies_with_its_parent(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t parent = fork();
    if (parent == 0) {
        char *const *argv = WORDS("/bin/sleep", "100");
        struct spawn spawn = spawn_of(argv);
        pid_t pid = -1;
        spawn_process(&spawn, &pid, NULL);
        if (write(fds[1], &pid, sizeof pid) < 0)
            _exit(1);
        raise(SIGKILL);
    }
    pid_t pid;
    int status;
    assert_int_equal(read(fds[0], &pid, sizeof pid), sizeof pid);
    assert_true(pid > 0);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(fds[0]);
    close(fds[1]);
}

static void at_the_process_limit(void)
{
    char *const *argv = WORDS("/bin/true");
    struct spawn spawn = spawn_of(argv);
    struct rlimit one = {1, 1};
    struct drarun_error err = {0};
    pid_t pid = -1;
    if (geteuid() == 0) /* root has no limit */
        assert_int_equal(setresuid(65534, 65534, 65534), 0);
    assert_int_equal(setrlimit(RLIMIT_NPROC, &one), 0);
    assert_int_equal(spawn_process(&spawn, &pid, &err), -EAGAIN);
    assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
    assert_non_null(strstr(err.text, "RLIMIT_NPROC) is 1,"));
    assert_non_null(strstr(err.text, "pids.max"));
}

static void process_limit_is_named(void **state)
{
    (void)state;
    in_child(at_the_process_limit);
}

static void failed_execve_comes_back(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    pid_t pid = -1;
    char *const *missing = WORDS("/no/such/program");
    struct spawn spawn = spawn_of(missing);
    assert_int_equal(spawn_process(&spawn, &pid, &err), -ENOENT);
    assert_int_equal(err.kind, DRARUN_ERR_NOT_FOUND);
    assert_int_equal(pid, -1);

    static char big[256 * 1024];
    memset(big, 'x', sizeof big - 1);
    char *const *too_much = WORDS("/bin/true", big);
    spawn = spawn_of(too_much);
    assert_int_equal(spawn_process(&spawn, &pid, &err), -E2BIG);
    assert_non_null(strstr(err.text, "larger than execve takes"));
    /* no zombie is left */
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "child") == 0)
        return child_main(argv[2]);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_named_descriptors_are_inherited),
        cmocka_unit_test(descriptors_without_close_range),
        cmocka_unit_test(agent_without_stdio),
        cmocka_unit_test(signals_are_as_at_login),
        cmocka_unit_test(session_of_its_own),
        cmocka_unit_test(session_of_an_agent_that_leads_one),
        cmocka_unit_test(starts_in_the_directory),
        cmocka_unit_test(binds_to_cpus),
        cmocka_unit_test(gets_its_limit),
        cmocka_unit_test(gets_its_oom_score),
        cmocka_unit_test(stops_before_its_first_instruction),
        cmocka_unit_test(dies_while_it_is_stopped),
        cmocka_unit_test(stopped_program_that_is_missing),
        cmocka_unit_test(dies_with_its_parent),
        cmocka_unit_test(process_limit_is_named),
        cmocka_unit_test(failed_execve_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
