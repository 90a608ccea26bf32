/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod without a launcher does before its job: who it is, its key, its port and its agent.
 * Processes, time, the network and worker 0's part are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/entry/entry.h"
#include "launcher/entry/lead.h"
#include "launcher/programs/remote.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

#define AGENT 4242
#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define OTHER_KEY "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static struct calls {
    struct buf log;
    struct buf done; /* what was done, in order */
    int64_t now_ms;
    int leaves_by;      /* what the agent leaves by: 0: itself; -1: SIGKILL alone */
    bool killed, dumps; /* dumps: not forbidden */
    bool no_fork, no_door;
    int lead_code, lead_status;
    uint8_t key[sizeof((struct tls_key *)0)->bytes];
    char own_name[64];
} calls;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    buf_printf(&calls.done, "%s%s", calls.done.len ? "; " : "", text);
}

/* ---- what it calls ---- */

static char *own_name(const char *hostname)
{
    snprintf(calls.own_name, sizeof calls.own_name, "%s.web.test", hostname);
    return strdup(calls.own_name);
}

const struct remote_api *remote_api(void)
{
    static const struct remote_api api = {.own_name = own_name};
    return &api;
}

int __wrap_gethostname(char *name, size_t size);
int __wrap_gethostname(char *name, size_t size)
{
    snprintf(name, size, "web-1");
    return 0;
}

int __wrap_prctl(int option, ...);
int __wrap_prctl(int option, ...)
{
    if (option == PR_SET_DUMPABLE)
        calls.dumps = false;
    return 0;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ret_now);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret_now)
{
    (void)id;
    *ret_now =
        (struct timespec){.tv_sec = calls.now_ms / 1000, .tv_nsec = calls.now_ms % 1000 * 1000000};
    return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    calls.now_ms += time->tv_sec * 1000 + time->tv_nsec / 1000000;
    return 0;
}

pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
    errno = EAGAIN;
    note("fork");
    return calls.no_fork ? -1 : AGENT;
}

int __wrap_kill(pid_t pid, int signo);
int __wrap_kill(pid_t pid, int signo)
{
    assert_int_equal(pid, AGENT);
    note("%s", signo == SIGTERM ? "SIGTERM" : signo == SIGKILL ? "SIGKILL" : "another signal");
    calls.killed |= signo == calls.leaves_by || signo == SIGKILL;
    return 0;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    (void)status;
    (void)options;
    assert_int_equal(pid, AGENT);
    return calls.killed || calls.leaves_by == 0 ? pid : 0;
}

int __wrap_listen_on(const char *address, int *ret_fd, uint16_t *ret_port,
                     struct drarun_error *err);
int __wrap_listen_on(const char *address, int *ret_fd, uint16_t *ret_port, struct drarun_error *err)
{
    (void)ret_port;
    note("listen %s", address);
    if (calls.no_door)
        return error_set(err, EADDRINUSE, "the port is taken");
    *ret_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return 0;
}

int __wrap_execv(const char *program, char *const argv[]);
int __wrap_execv(const char *program, char *const argv[])
{
    assert_string_equal(argv[0], program);
    assert_string_equal(argv[1], "--listen-fd");
    assert_string_equal(argv[3], "--key-fd");
    int key = atoi(argv[4]);
    assert_int_equal(fcntl(atoi(argv[2]), F_GETFD), 0);
    assert_int_equal(fcntl(key, F_GETFD), 0);
    assert_int_equal(read(key, calls.key, sizeof calls.key), sizeof calls.key);
    close(key);
    note("worker %s", getenv("DRARUN_WORKER"));
    for (size_t i = 5; argv[i]; i++)
        buf_printf(&calls.done, " %s", argv[i]);
    errno = ENOEXEC;
    return -1;
}

int __wrap_entry_lead(const struct entry_lead *lead, int *ret_status, struct drarun_error *err);
int __wrap_entry_lead(const struct entry_lead *lead, int *ret_status, struct drarun_error *err)
{
    assert_int_equal(lead->agent, AGENT);
    note("lead %zu from %s", lead->rendezvous->addresses.count,
         lead->rendezvous->addresses.items[0]);
    memcpy(calls.key, lead->key->bytes, sizeof calls.key);
    *ret_status = calls.lead_status;
    return calls.lead_code
               ? error_kind(err, DRARUN_ERR_INFRASTRUCTURE, calls.lead_code, "nobody came")
               : 0;
}

static void on_log(void *arg, const struct log_line *line)
{
    (void)arg;
    buf_add(&calls.log, line->text + line->prefix, line->length - line->prefix);
}

/* ---- the cases ---- */

static char *const program[] = {NULL};

static void set_up(const char *key)
{
    static const char *const variables[] = {"DRARUN_KEY",         "DRARUN_WORKER",
                                            "LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE",
                                            "LWS_WORKER_INDEX",   "JOB_COMPLETION_INDEX"};
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        unsetenv(variables[i]);
    setenv("DRARUN_WORKER_PROGRAM", "/bin/true", 1);
    if (key)
        setenv("DRARUN_KEY", key, 1);
    calls = (struct calls){.dumps = true, .now_ms = 5000};
    log_setup("drarun", LOG_NORMAL);
    log_divert(on_log, NULL);
}

static void check(const struct entry_options *options, int status, const char *done,
                  const char *log)
{
    assert_int_equal(entry_run(options), status);
    log_divert(NULL, NULL);
    assert_string_equal(calls.done.data ? calls.done.data : "", done);
    assert_string_equal(calls.log.data ? calls.log.data : "", log);
    assert_null(getenv("DRARUN_KEY"));
    assert_false(calls.dumps);
    buf_done(&calls.done);
    buf_done(&calls.log);
}

static struct entry_options options_of(const char *peers, int64_t index)
{
    return (struct entry_options){.peers = peers,
                                  .index = index,
                                  .port = ENTRY_PORT,
                                  .start_timeout_ms = 60000,
                                  .argv = program};
}

/* A pod that does not lead becomes the agent, which gets the door and the key as descriptors. */
static void becomes_the_agent(void **state)
{
    (void)state;
    set_up(KEY);
    struct entry_options options = options_of("a:7000,b", 1);
    check(&options, 70, "listen :7173; worker 1 --entry a:7000 --await 60000ms",
          "worker 1 of 2 (b:7173, told by --peers)\n"
          "join: cannot start /bin/true: Exec format error\n");
    for (size_t i = 0; i < sizeof calls.key; i++)
        assert_int_equal(calls.key[i], i);
    set_up(KEY);
    options.verbose = true;
    check(&options, 70, "listen :7173; worker 1 --entry a:7000 --await 60000ms -v",
          "worker 1 of 2 (b:7173, told by --peers)\n"
          "join: cannot start /bin/true: Exec format error\n");
}

/* Its own number and domain are of its host name. */
static void stateful_set(void **state)
{
    (void)state;
    set_up(KEY);
    struct entry_options options = options_of(NULL, -1);
    options.workers = 2;
    check(&options, 70, "listen :7173; worker 1 --entry web-0.web.test:7173 --await 60000ms",
          "worker 1 of 2 (web-1.web.test:7173, told by a StatefulSet)\n"
          "join: cannot start /bin/true: Exec format error\n");
}

/* Worker 0 has an agent beside it, which has all the time to leave by itself that it needs. */
static void leads(void **state)
{
#define LEADS "worker 0 of 2 (a:7173, told by --peers), which leads\n"
#define BEGIN "listen :7173; fork; lead 2 from a:7173"
    static const struct {
        int code, lead_status, leaves_by, status;
        const char *done, *log;
    } rows[] = {
        {0, 0, 0, 0, BEGIN, LEADS},
        {0, 3, 0, 3, BEGIN, LEADS},
        {0, 3, SIGTERM, 3, BEGIN "; SIGTERM", LEADS},
        {0, 3, -1, 3, BEGIN "; SIGTERM; SIGKILL", LEADS},
        {EHOSTUNREACH, 0, SIGTERM, 70, BEGIN "; SIGTERM", LEADS "join: nobody came\n"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        set_up(KEY);
        calls.lead_code = rows[i].code;
        calls.lead_status = rows[i].lead_status;
        calls.leaves_by = rows[i].leaves_by;
        const struct entry_options options = options_of("a,b", 0);
        check(&options, rows[i].status, rows[i].done, rows[i].log);
    }
}

/* Without a key, nothing listens beyond the loopback: one worker alone runs. */
static void no_key(void **state)
{
    (void)state;
    set_up(NULL);
    struct entry_options options = options_of("a:7000", 0);
    check(&options, 0, "listen 127.0.0.1:7000; fork; lead 1 from 127.0.0.1:7000",
          "worker 0 of 1 (127.0.0.1:7000, told by --peers), which leads\n");
    set_up(NULL);
    options = options_of("a,b,c", 1);
    check(&options, 64, "",
          "join: without a key nothing listens beyond the loopback, and there are 3 workers: set "
          "DRARUN_KEY from a Secret (64 hexadecimal digits, as \"openssl rand -hex 32\" prints), "
          "the same in all pods, or give --key-file\n");
}

/* --key-file goes before the variable, which is wiped nevertheless. */
static void key_file(void **state)
{
    char path[] = "/tmp/entry_test.XXXXXX", why[256];
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, OTHER_KEY, strlen(OTHER_KEY)), strlen(OTHER_KEY));
    close(fd);
    static const char *const variables[] = {NULL, KEY, "no key"};
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        set_up(variables[i]);
        struct entry_options options = options_of("a,b", 0);
        options.key_file = path;
        check(&options, 0, BEGIN, LEADS);
        assert_int_equal(calls.key[0], 0xff);
        assert_int_equal(calls.key[1], 1);
    }
    unlink(path);
    set_up(KEY);
    struct entry_options options = options_of("a,b", 0);
    options.key_file = path;
    snprintf(why, sizeof why, "join: key file %s: No such file or directory\n", path);
    check(&options, 64, "", why);
}

static void failures(void **state)
{
    (void)state;
    struct entry_options options = options_of("a,b", 1);
    set_up(KEY);
    calls.no_door = true;
    check(&options, 70, "listen :7173", "join: worker 1 (b:7173): the port is taken\n");
    set_up(KEY);
    calls.no_fork = true;
    options.index = 0;
    check(&options, 70, "listen :7173; fork",
          LEADS "join: cannot start drarun-worker: Resource temporarily unavailable\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(becomes_the_agent),
        cmocka_unit_test(stateful_set),
        cmocka_unit_test(leads),
        cmocka_unit_test(no_key),
        cmocka_unit_test(key_file),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests_name("launcher/entry/entry", tests, NULL, NULL);
}
