/* SPDX-License-Identifier: Apache-2.0 */
/* drarun-worker: options only; the agent is agent.c. */
#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <signal.h>
#include <time.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <event2/event.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/first_process.h"
#include "lib/base/log.h"
#include "lib/base/need_memory.h"
#include "lib/base/number.h"
#include "lib/doc/json_memory.h"
#include "lib/wire/dial.h"
#include "lib/wire/hello.h"
#include "lib/wire/key_file.h"
#include "worker/agent/agent.h"
#include "worker/modes/beside.h"
#include "worker/modes/guard.h"
#include "worker/modes/install.h"
#include "worker/modes/nics.h"
#include "worker/host/oom.h"
#include "worker/tree/pmix_version.h"
#include "worker/modes/reach.h"
#include "worker/mpirun/serve.h"
#include "worker/mpirun/start.h"
#include "worker/host/vendor_env.h"

#ifdef DRARUN_LEAK_CHECK
#include <sanitizer/lsan_interface.h>
#endif

#define DEFAULT_PORT 7173
#define DELETION_S 1
#define AWAIT_MS 300000
#define KEY_VARIABLE "DRARUN_KEY" /* in a pod: from the job's Secret */

struct settings {
    int control_fd;
    int serve_fd;
    int64_t beside; /* the rank; -1: none */
    char *const *words;
    const char *vendor_script; /* run it, and nothing else; NULL: no */
    bool nics;                 /* open them, and nothing else */
    bool reach;                /* let them reach others, and nothing else */
    int listen_fd;
    uint16_t port;
    bool by_hand; /* --listen: with a guard, job after job */
    bool once;
    bool in_pod;
    bool quiet;        /* nobody waits to hear that we listen */
    const char *entry; /* who is to dial; NULL: no entry point's */
    int64_t await_ms;
    struct pod pod;
    bool have_key;
    struct tls_key key;
    bool oom_exempt;
    char oom_score[OOM_SCORE_SIZE];
    enum log_level level;
};

static const char help_text[] =
    "Usage: drarun-worker --listen [ADDR]:PORT --key-file FILE [--once]\n"
    "       drarun-worker --fd FD | --listen-fd FD --key-fd FD      (how drarun starts it)\n"
    "       drarun-worker --install DIR | --install-drarun DIR | --install-bench DIR\n"
    "       drarun-worker --beside RANK [--] [COMMAND...]\n"
    "\n"
    "The agent of drarun: starts and serves the ranks of one worker.\n"
    "\n"
    "  --listen [ADDR]:PORT  listen for a launcher there (port 7173 if only an address is given);\n"
    "                        connect with: drarun --agents HOST:PORT --key-file FILE ...\n"
    "  --key-file FILE       the job's key: 64 hexadecimal digits, readable by the owner only\n"
    "                        (default: the variable DRARUN_KEY, which is wiped)\n"
    "  --once                serve one job, then exit with 0 (70 if it was cut off)\n"
    "  --pod                 this is a worker pod: report what it holds to the launcher; reject a\n"
    "                        launcher that wants a worker other than the one that DRARUN_JOB,\n"
    "                        DRARUN_ATTEMPT and DRARUN_WORKER (or JOB_COMPLETION_INDEX) name\n"
    "  --fd FD               serve the launcher on this connected socket\n"
    "  --listen-fd FD        as --listen, on an inherited listening socket\n"
    "  --key-fd FD           as --key-file, from an inherited descriptor\n"
    "  --keep                with --listen-fd or --pod: serve one job after another (drarun "
    "alloc)\n"
    "  --entry HOST          as --pod and --once, for drarun join: HOST must connect within\n"
    "                        --await; exit with the job's status\n"
    "  --await TIME          see --entry (default 5m)\n"
    "  --remote-serve FD     run what the user's mpirun asks for (started by an agent)\n"
    "  --nics                test each RDMA device and print one line of JSON for each (used by\n"
    "                        agents and drarun doctor --nics)\n"
    "  --vendor-script FILE  run the vendor's script and print what it sets as a line of JSON\n"
    "                        (used by agents)\n"
    "  --reach               exchange RDMA writes with other workers' NICs, as lines of JSON on\n"
    "                        standard input request (used by agents)\n"
    "  --beside RANK         run the command with the environment, directory and CPUs of that\n"
    "                        rank (used by drarun exec)\n"
    "  --install DIR         copy this program to DIR/drarun-worker, and exit\n"
    "  --install-drarun DIR  copy drarun, from the same directory, to DIR/drarun, and exit\n"
    "  --install-bench DIR   copy this program, drarun-bench and its modules to DIR and\n"
    "                        DIR/../lib/drarun, and exit\n"
    "  -v, --verbose         log each transition; twice: more detail\n"
    "  --version             show the versions of drarun, its protocol and its libpmix\n"
    "  --help                show this help\n";

static int inherited_fd(const char *what, const char *text, int *ret_fd, struct drarun_error *err)
{
    int64_t fd = 0;
    int rc = number_parse(what, text, 3, 1 << 20, &fd, err);
    if (rc == 0 && fd_set_cloexec((int)fd) < 0)
        rc = error_kind(err, DRARUN_ERR_USAGE, EBADF, "%s %s: not an open descriptor", what, text);
    if (rc == 0)
        *ret_fd = (int)fd;
    return rc;
}

static int listen_at(const char *text, struct settings *s, struct drarun_error *err)
{
    char address[96];
    uint16_t port = 0;
    if (text[0] && strspn(text, "0123456789") == strlen(text))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--listen %s: a port is written as :%s",
                          text, text);
    bool whole = strrchr(text, ':') && text[strlen(text) - 1] != ']';
    int n = snprintf(address, sizeof address, whole ? "%s" : "%s:%d", text, DEFAULT_PORT);
    if (n < 0 || (size_t)n >= sizeof address)
        return error_kind(err, DRARUN_ERR_USAGE, ENAMETOOLONG, "--listen %s: too long", text);
    int rc = listen_on(address, &s->listen_fd, &port, err);
    if (rc < 0)
        return error_prefix(err, "--listen %s", text);
    s->by_hand = true;
    s->port = port;
    return 0;
}

static int read_key_fd(const char *text, struct settings *s, struct drarun_error *err)
{
    cleanup_close int fd = -1;
    int rc = inherited_fd("--key-fd", text, &fd, err);
    if (rc == 0)
        rc = key_fd_read(fd, "--key-fd", &s->key, err);
    s->have_key = rc == 0;
    return rc;
}

static int take_pod(struct settings *s, struct drarun_error *err)
{
    bool kept = s->pod.kept; /* whichever option came first */
    int rc = pod_take(&s->pod, err);
    s->pod.kept = kept;
    return rc;
}

enum {
    OPT_FD = 1,
    OPT_LISTEN,
    OPT_LISTEN_FD,
    OPT_KEY_FILE,
    OPT_KEY_FD,
    OPT_ONCE,
    OPT_POD,
    OPT_ENTRY,
    OPT_KEEP,
    OPT_AWAIT,
    OPT_INSTALL,
    OPT_INSTALL_DRARUN,
    OPT_INSTALL_BENCH,
    OPT_REMOTE_SERVE,
    OPT_BESIDE,
    OPT_NICS,
    OPT_REACH,
    OPT_VENDOR_SCRIPT,
    OPT_VERSION,
    OPT_HELP
};

static const struct option option_table[] = {
    {"fd", required_argument, NULL, OPT_FD},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"listen-fd", required_argument, NULL, OPT_LISTEN_FD},
    {"key-file", required_argument, NULL, OPT_KEY_FILE},
    {"key-fd", required_argument, NULL, OPT_KEY_FD},
    {"once", no_argument, NULL, OPT_ONCE},
    {"pod", no_argument, NULL, OPT_POD},
    {"keep", no_argument, NULL, OPT_KEEP},
    {"entry", required_argument, NULL, OPT_ENTRY},
    {"await", required_argument, NULL, OPT_AWAIT},
    {"remote-serve", required_argument, NULL, OPT_REMOTE_SERVE},
    {"install", required_argument, NULL, OPT_INSTALL},
    {"install-drarun", required_argument, NULL, OPT_INSTALL_DRARUN},
    {"install-bench", required_argument, NULL, OPT_INSTALL_BENCH},
    {"beside", required_argument, NULL, OPT_BESIDE},
    {"nics", no_argument, NULL, OPT_NICS},
    {"reach", no_argument, NULL, OPT_REACH},
    {"vendor-script", required_argument, NULL, OPT_VENDOR_SCRIPT},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},
    {0},
};

/* 1: nothing more to do. */
static int apply(int option, const char *value, struct settings *s, struct drarun_error *err)
{
    int rc = 0;
    switch (option) {
    case OPT_FD:
        return inherited_fd("--fd", value, &s->control_fd, err);
    case OPT_LISTEN:
        return listen_at(value, s, err);
    case OPT_LISTEN_FD:
        return inherited_fd("--listen-fd", value, &s->listen_fd, err);
    case OPT_KEY_FILE:
        rc = key_file_read(value, &s->key, err);
        s->have_key = rc == 0;
        return rc;
    case OPT_KEY_FD:
        return read_key_fd(value, s, err);
    case OPT_ONCE:
        s->once = true;
        return 0;
    case OPT_POD:
        s->in_pod = true;
        return take_pod(s, err);
    case OPT_KEEP:
        s->by_hand = s->quiet = s->pod.kept = true;
        return 0;
    case OPT_ENTRY:
        s->entry = value;
        s->in_pod = s->once = s->by_hand = true;
        return take_pod(s, err);
    case OPT_AWAIT:
        return duration_parse("--await", value, &s->await_ms, err);
    case OPT_REMOTE_SERVE:
        return inherited_fd("--remote-serve", value, &s->serve_fd, err);
    case OPT_BESIDE:
        return number_parse("--beside", value, 0, UINT32_MAX, &s->beside, err);
    case OPT_NICS:
        s->nics = true;
        return 0;
    case OPT_REACH:
        s->reach = true;
        return 0;
    case OPT_VENDOR_SCRIPT:
        s->vendor_script = value;
        return 0;
    case OPT_INSTALL:
    case OPT_INSTALL_DRARUN:
        rc = install_program(option == OPT_INSTALL ? INSTALL_SELF : "drarun", value, err);
        return rc < 0 ? rc : 1;
    case OPT_INSTALL_BENCH:
        rc = install_bench(value, err);
        return rc < 0 ? rc : 1;
    case 'v':
        s->level = s->level < LOG_VERBOSE ? LOG_VERBOSE : LOG_DEBUG;
        return 0;
    case OPT_VERSION:
        printf("drarun-worker %s, protocol %u.%u, libpmix %s\n", DRARUN_VERSION, WIRE_MAJOR,
               WIRE_MINOR, pmix_version());
        return 1;
    case OPT_HELP:
        fputs(help_text, stdout);
        return 1;
    default:
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "see drarun-worker --help");
    }
}

static int read_options(int argc, char **argv, struct settings *s, struct drarun_error *err)
{
    /* taken first, whatever the options: wiped before anybody can know of us, and no rank's */
    struct drarun_error unusable = {0};
    struct tls_key key;
    int taken = key_env_take(KEY_VARIABLE, &key, &unusable);
    int option;
    while ((option = getopt_long(argc, argv, "+v", option_table, NULL)) != -1) {
        int rc = apply(option, optarg, s, err);
        if (rc != 0)
            return rc;
    }
    s->words = argv + optind;
    if (s->beside >= 0)
        return 0;
    if (optind < argc)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "unexpected argument %s: the launcher says what to run", argv[optind]);
    if (s->serve_fd >= 0 || s->nics || s->reach || s->vendor_script)
        return 0;
    if (s->control_fd < 0 && s->listen_fd < 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "nothing to serve: expected --listen [ADDR]:PORT with --key-file FILE");
    if (s->listen_fd < 0 || s->have_key)
        return 0;
    if (taken == -ENOENT)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--listen needs the job's key: --key-file FILE, or " KEY_VARIABLE);
    if (taken < 0)
        return error_kind(err, unusable.kind, unusable.code, "%s", unusable.text);
    s->key = key;
    s->have_key = true;
    return 0;
}

/* Ranks run as our own user: they must read neither our memory nor /proc/PID/environ, where the
 * job's key is or was. */
static void hide(void)
{
    prctl(PR_SET_DUMPABLE, 0);
}

static int run_agent(struct guard *guard, void *arg)
{
    struct settings *s = arg;
    struct drarun_error err = {0};
    sigset_t child, term;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &child, NULL); /* before any thread exists */
    signal(SIGPIPE, SIG_IGN);
    struct event_base *base = event_base_new();
    struct agent_options options = {
        .control_fd = s->control_fd,
        .listen_fd = s->listen_fd,
        .key = s->have_key ? &s->key : NULL,
        .pod = s->in_pod ? &s->pod : NULL,
        .entry = s->entry,
        .as_launcher = s->pod.kept && !s->in_pod,
        .await_ms = s->await_ms,
        .session = guard ? guard_note_session : NULL,
        .session_arg = guard,
        .oom_score = s->oom_exempt ? s->oom_score : NULL,
    };
    struct agent *agent = base ? agent_new(base, &options, &err) : NULL;
    explicit_bzero(&s->key, sizeof s->key);
    if (!agent) {
        log_error("%s", base ? err.text : "cannot make an event loop");
        if (s->in_pod)
            pod_tell_end(base ? err.text : "cannot make an event loop");
        return error_exit_status(err.kind);
    }
    pthread_sigmask(SIG_UNBLOCK, &term,
                    NULL); /* a guard leaves it blocked: now there is a handler */
    int status = agent_run(agent);
#ifdef DRARUN_LEAK_CHECK
    prctl(PR_SET_DUMPABLE, 1); /* its thread looks at this one */
    agent_free(agent);
    event_base_loop(base, EVLOOP_NONBLOCK); /* libevent's own finalizers, as of bufferevents */
    event_base_free(base);
    if (__lsan_do_recoverable_leak_check()) /* _exit does without it */
        return 70;
#endif
    return status;
}

/* A pod that is deleted while its container runs goes at once. Of a container that has just ended
 * the kubelet hears with its next look, a second later, and takes the pod away with the one after:
 * the deletion that the launcher sends when it has heard from all agents is worth a moment. */
static void await_deletion(void)
{
    const struct timespec moment = {.tv_sec = DELETION_S};
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigtimedwait(&term, NULL, &moment); /* the guard has blocked it */
}

static int serve_by_hand(struct settings *s, struct drarun_error *err)
{
    struct guard *guard = guard_new();
    bool stop = false;
    int status = 0;
    if (!guard)
        return error_set(err, ENOMEM, "out of memory");
    if (s->entry || (s->quiet && !s->in_pod))
        log_verbose("listening");
    else if (s->in_pod)
        log_note("listening on port %u", s->port);
    else
        printf("drarun-worker: listening on port %u\n", s->port);
    fflush(stdout); /* from here on a signal ends us in order */
    do
        status = guard_run(guard, run_agent, s, &stop, err);
    while (!stop && !s->once && status >= 0);
    if (s->in_pod && !s->entry && !stop && status >= 0)
        await_deletion();
    guard_free(guard);
    return stop && status == 70 && !s->entry ? 0 : status;
}

/* As container runtimes do: libpmix crashes, here and in ranks, where neither HOME nor /etc/passwd
 * has the home of the user. */
static int set_home(struct drarun_error *err)
{
    const struct passwd *user = NULL;
    FILE *users = getenv("HOME") ? NULL : fopen("/etc/passwd", "re");
    while (users && (user = fgetpwent(users)) && user->pw_uid != geteuid())
        ;
    int rc = setenv("HOME", user && user->pw_dir[0] ? user->pw_dir : "/", 0);
    int code = errno;
    if (users)
        fclose(users);
    return rc < 0 ? error_set(err, code, "HOME: %s", strerror(code)) : 0;
}

int main(int argc, char **argv)
{
    struct settings s = {.control_fd = -1,
                         .serve_fd = -1,
                         .beside = -1,
                         .listen_fd = -1,
                         .await_ms = AWAIT_MS,
                         .level = LOG_NORMAL};
    struct drarun_error err = {0};
    first_process_begin();
    json_memory_end_without();
    event_set_mem_functions(need_memory, need_more_memory, free);
    if (argc > 0 && remote_start_is(argv[0]))
        return remote_start(argc, argv);
    log_setup("drarun-worker", LOG_NORMAL);
    int rc = read_options(argc, argv, &s, &err);
    if (rc > 0)
        return 0;
    log_setup("drarun-worker", s.level);
    if (s.in_pod && !s.entry && rc == 0)
        pod_log(&s.pod);
    if (s.have_key)
        hide();
    if (rc == 0 && s.beside >= 0)
        rc = beside_exec((uint32_t)s.beside, s.words, &err);
    if (rc == 0 && s.serve_fd >= 0)
        return remote_serve(s.serve_fd);
    if (rc == 0 && s.nics)
        return nics_serve();
    if (rc == 0 && s.reach)
        return reach_serve();
    if (rc == 0 && s.vendor_script)
        return vendor_env_serve(s.vendor_script);
    if (rc == 0 && !s.in_pod) /* of a pod the cluster tells */
        s.oom_exempt = oom_exempt(s.oom_score);
    if (rc == 0)
        rc = set_home(&err);
    if (rc == 0)
        rc = s.by_hand ? serve_by_hand(&s, &err) : run_agent(NULL, &s);
    if (rc < 0) {
        log_error("%s", err.text);
        if (s.in_pod)
            pod_tell_end(err.text);
        return error_exit_status(err.kind);
    }
    fflush(stdout);
    _exit(rc); /* the PMIx library's thread must not be joined: its finalize can hang */
}
