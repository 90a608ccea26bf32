/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's door, and guests of all kinds: whoever is not let in leaves it open for the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <grp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/test/skip.h"
#include "lib/base/unconst.h"
#include "lib/wire/dial.h"
#include "lib/wire/hello.h"
#include "lib/wire/test/no_netlink.h"
#include "worker/tree/listen.h"

struct fixture {
    struct event_base *base;
    struct event *watchdog;
    struct listen_door *door;
    int listener; /* the door's */
    char address[32];
    struct tls_context *tls; /* of a guest with the right key */
    int welcomed;
    uint32_t worker; /* of the last who came in */
    struct channel *inside;
    struct channel *guest;
    int guest_closed;
    char refusal[512];
    char log[4096];
};

static void on_log(void *arg, const struct log_line *line)
{
    struct fixture *f = arg;
    size_t used = strlen(f->log);
    if (used + line->length < sizeof f->log)
        memcpy(f->log + used, line->text, line->length);
}

static void ignore_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    (void)channel, (void)message, (void)arg;
}

static void on_inside_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct fixture *f = arg;
    (void)err;
    channel_free(channel);
    f->inside = NULL;
}

static void on_hello(struct channel *channel, const Drarun__Wire__Hello *hello, void *arg)
{
    struct fixture *f = arg;
    f->welcomed++;
    f->worker = hello->worker;
    channel_free(f->inside);
    f->inside = channel;
    channel_set_callbacks(channel, ignore_message, on_inside_closed, f);
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    fail_msg("nothing happened for 40 s");
}

static struct tls_key key_of(uint8_t seed)
{
    struct tls_key key;
    memset(key.bytes, seed, sizeof key.bytes);
    return key;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct timeval limit = timeval_from_ms(40000);
    struct drarun_error err = {0};
    struct tls_key key = key_of(1);
    uint16_t port = 0;
    int fd = -1;
    f->base = event_base_new();
    f->watchdog = evtimer_new(f->base, on_watchdog, f);
    evtimer_add(f->watchdog, &limit);
    if (listen_on("127.0.0.1:0", &fd, &port, &err) < 0)
        return -1;
    snprintf(f->address, sizeof f->address, "127.0.0.1:%u", port);
    f->listener = fd;
    f->door = listen_open_take(f->base, fd, &key, on_hello, f, &err);
    f->tls = tls_context_new(&key, TLS_CLIENT, &err);
    log_divert(on_log, f);
    *state = f;
    return f->door && f->tls ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    log_divert(NULL, NULL);
    channel_free(f->guest);
    channel_free(f->inside);
    listen_close(f->door);
    tls_context_free(f->tls);
    event_free(f->watchdog);
    event_base_free(f->base);
    free(f);
    return 0;
}

static int dial(struct fixture *f)
{
    struct drarun_error err = {0};
    int fd = -1;
    if (dial_start(f->address, &fd, &err) < 0)
        fail_msg("%s", err.text);
    return fd;
}

static void on_guest_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    struct fixture *f = arg;
    (void)channel;
    assert_int_equal(message->body_case, DRARUN__WIRE__ENVELOPE__BODY_FAILURE);
    snprintf(f->refusal, sizeof f->refusal, "%s", message->failure->text);
}

static void on_guest_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct fixture *f = arg;
    (void)err;
    f->guest_closed++;
    channel_free(channel);
    f->guest = NULL;
}

static void enter_by(struct fixture *f, struct tls_context *tls, int fd)
{
    struct drarun_error err = {0};
    struct bufferevent *bev = tls_open_take(tls, f->base, fd, &err);
    assert_non_null(bev);
    channel_free(f->guest);
    f->guest_closed = 0;
    f->refusal[0] = f->log[0] = '\0';
    memset(f->log, 0, sizeof f->log);
    f->guest = channel_from_bufferevent_take(bev, on_guest_message, on_guest_closed, f);
    assert_non_null(f->guest);
    channel_set_explain(f->guest, tls_failure);
}

static void enter(struct fixture *f, struct tls_context *tls)
{
    enter_by(f, tls, dial(f));
}

static Drarun__Wire__Hello good_hello(void)
{
    Drarun__Wire__Hello hello = DRARUN__WIRE__HELLO__INIT;
    hello_fill(&hello, DRARUN__WIRE__ROLE__ROLE_LAUNCHER, "");
    hello.worker = 7;
    return hello;
}

static void say_hello(struct fixture *f, const Drarun__Wire__Hello *hello)
{
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(HELLO, hello, unconst(hello));
    assert_int_equal(channel_send(f->guest, &envelope), 0);
}

static void until_guest_is_out(struct fixture *f)
{
    while (f->guest_closed == 0)
        event_base_loop(f->base, EVLOOP_ONCE);
}

static void still_open(struct fixture *f)
{
    int before = f->welcomed;
    Drarun__Wire__Hello hello = good_hello();
    enter(f, f->tls);
    say_hello(f, &hello);
    while (f->welcomed == before)
        event_base_loop(f->base, EVLOOP_ONCE);
    assert_int_equal(f->worker, 7);
    assert_string_equal(f->log, "");
}

static void who_has_the_key_comes_in(void **state)
{
    still_open(*state);
    still_open(*state);
}

static void another_key(void **state)
{
    struct fixture *f = *state;
    struct tls_key key = key_of(2);
    struct tls_context *tls = tls_context_new(&key, TLS_CLIENT, NULL);
    Drarun__Wire__Hello hello = good_hello();
    enter(f, tls);
    say_hello(f, &hello);
    until_guest_is_out(f);
    assert_int_equal(f->welcomed, 0);
    assert_non_null(strstr(f->log, "refused"));
    assert_non_null(strstr(f->log, "does it hold this job's key?"));
    tls_context_free(tls);
    still_open(f);
}

/* What scanners and lost clients send in the clear. */
static void garbage(void **state)
{
    static const char *const all[] = {"GET / HTTP/1.0\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
                                      "\x16\x03\x01\xff\xff\x01\x02\x03", "\xff\xff\xff\xff\xff"};
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        cleanup_close int fd = dial(f);
        memset(f->log, 0, sizeof f->log);
        for (int k = 0; k < 200 && !f->log[0]; k++) {
            if (k == 0)
                assert_true(write(fd, all[i], strlen(all[i])) > 0);
            if (k == 20)
                shutdown(fd, SHUT_WR); /* half a record: its end must be noticed too */
            event_base_loop(f->base, EVLOOP_NONBLOCK);
            usleep(1000);
        }
        assert_non_null(strstr(f->log, "refused"));
        assert_int_equal(f->welcomed, 0);
    }
    still_open(f);
}

/* A port scan or a load balancer's check: nothing to talk about. */
static void connection_without_a_word(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);
    for (int i = 0; i < 10; i++)
        event_base_loop(f->base, EVLOOP_NONBLOCK);
    close(fd);
    for (int i = 0; i < 10; i++)
        event_base_loop(f->base, EVLOOP_NONBLOCK);
    assert_int_equal(f->welcomed, 0);
    still_open(f);
}

static void refused_with(struct fixture *f, const Drarun__Wire__Hello *hello, const char *why)
{
    enter(f, f->tls);
    say_hello(f, hello);
    until_guest_is_out(f);
    assert_int_equal(f->welcomed, 0);
    assert_non_null(strstr(f->refusal, why));
    assert_non_null(strstr(f->log, why));
}

static void another_release(void **state)
{
    struct fixture *f = *state;
    Drarun__Wire__Hello hello = good_hello();
    hello.major = WIRE_MAJOR + 1;
    refused_with(f, &hello, "use the same release on both sides");
    still_open(f);
}

static void another_libpmix(void **state)
{
    struct fixture *f = *state;
    Drarun__Wire__Hello hello = good_hello();
    hello.pmix = unconst("4.2.2");
    hello.role = DRARUN__WIRE__ROLE__ROLE_PEER;
    refused_with(f, &hello, "use the same drarun-worker everywhere");
    still_open(f);
}

static void first_message_is_no_hello(void **state)
{
    struct fixture *f = *state;
    Drarun__Wire__Ping ping = DRARUN__WIRE__PING__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(PING, ping, &ping);
    enter(f, f->tls);
    assert_int_equal(channel_send(f->guest, &envelope), 0);
    until_guest_is_out(f);
    assert_int_equal(f->welcomed, 0);
    assert_non_null(strstr(f->refusal, "not a hello"));
    still_open(f);
}

/* Half a hello, then nothing: the deadline is for the whole of it. */
static void guest_that_stops(void **state)
{
    struct fixture *f = *state;
    int64_t from = clock_ms();
    cleanup_close int silent = dial(f);
    enter(f, f->tls);
    until_guest_is_out(f);
    int64_t took = clock_ms() - from;
    assert_true(took > 9000);
    assert_non_null(strstr(f->log, "no hello within 10 s"));
    assert_int_equal(f->welcomed, 0);
    char byte;
    assert_int_equal(recv(silent, &byte, 1, 0) <= 0, 1);
    still_open(f);
}

/* Strangers who say nothing and stay. */
struct crowd {
    int fds[2000];
    struct rlimit before;
};

static struct crowd *crowd_new(void)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    struct rlimit limit;
    assert_non_null(crowd);
    for (size_t i = 0; i < ARRAY_LEN(crowd->fds); i++)
        crowd->fds[i] = -1;
    getrlimit(RLIMIT_NOFILE, &crowd->before);
    limit = crowd->before;
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= 2200)
        return crowd;
    free(crowd);
    skip_for("the hard limit of open files is %llu: at least 2200 are needed",
             (unsigned long long)limit.rlim_max);
    return NULL;
}

static void crowd_free(struct crowd *crowd)
{
    for (size_t i = 0; i < ARRAY_LEN(crowd->fds); i++)
        close_fd(&crowd->fds[i]);
    setrlimit(RLIMIT_NOFILE, &crowd->before);
    free(crowd);
}

/* -1 where it cannot. */
static int try_dial_from(const struct fixture *f, const char *own)
{
    struct sockaddr_in from = {.sin_family = AF_INET}, to = from;
    unsigned int port = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sscanf(f->address, "127.0.0.1:%u", &port);
    inet_pton(AF_INET, own, &from.sin_addr);
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    to.sin_port = htons((uint16_t)port);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) == 0 &&
        connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close_fd(&fd);
    return -1;
}

static int dial_from(const struct fixture *f, const char *own)
{
    int fd = try_dial_from(f, own);
    assert_true(fd >= 0);
    return fd;
}

static size_t count_closed(const struct crowd *crowd)
{
    size_t closed = 0;
    char byte;
    for (size_t i = 0; i < ARRAY_LEN(crowd->fds); i++)
        closed += crowd->fds[i] >= 0 && recv(crowd->fds[i], &byte, 1, MSG_DONTWAIT) == 0;
    return closed;
}

/* How many of the crowd stay open. On a busy machine the kernel delivers even the loopback's
 * packets later than the call that sent them: the door may see the last ones only now. */
static size_t open_after(struct fixture *f, const struct crowd *crowd, size_t dialled, size_t most)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int64_t end = clock_ms() + 60000;
    size_t open = dialled - count_closed(crowd);
    for (; open > most && clock_ms() < end; open = dialled - count_closed(crowd)) {
        event_base_loop(f->base, EVLOOP_NONBLOCK);
        nanosleep(&pause, NULL);
    }
    return open;
}

/* So many of that address, until the door has seen all of them. */
static void crowd_comes(struct fixture *f, struct crowd *crowd, size_t from, size_t to,
                        const char *address)
{
    for (size_t i = from; i < to; i++)
        crowd->fds[i] = dial_from(f, address);
    struct pollfd queue = {.fd = f->listener, .events = POLLIN};
    int64_t end = clock_ms() + 60000;
    while (poll(&queue, 1, 0) == 1 && clock_ms() < end)
        event_base_loop(f->base, EVLOOP_ONCE);
    for (int i = 0; i < 10; i++)
        event_base_loop(f->base, EVLOOP_NONBLOCK);
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void welcome(struct fixture *f)
{
    int before = f->welcomed;
    Drarun__Wire__Hello hello = good_hello();
    say_hello(f, &hello);
    while (f->welcomed == before && f->guest_closed == 0)
        event_base_loop(f->base, EVLOOP_ONCE);
    assert_int_equal(f->guest_closed, 0);
}

static void assert_share(struct fixture *f, const char *address, size_t count, const char *whose)
{
    struct crowd *crowd = crowd_new();
    int64_t from = clock_ms();
    crowd_comes(f, crowd, 0, count, address);
    size_t most = LISTEN_ORIGIN_MAX + 1;
    assert_in_range(open_after(f, crowd, count, most), 2, most);
    assert_non_null(strstr(f->log, whose));
    assert_true(count_lines(f->log) <= 11 * (size_t)(2 + (clock_ms() - from) / 1000));
    enter(f, f->tls);
    welcome(f);
    crowd_free(crowd);
}

static void crowd_of_our_user(void **state)
{
    char whose[64];
    snprintf(whose, sizeof whose, "too many connections of user %u wait", (unsigned)geteuid());
    assert_share(*state, "127.0.0.1", 2000, whose);
}

/* The last test: its filter stays. */
static void crowd_of_a_user_that_is_not_named(void **state)
{
    assert_int_equal(forbid_netlink(), 0);
    assert_share(*state, "127.0.0.1", 200,
                 "too many connections of users that the kernel does not name");
}

/* Root has a network of its own here, whose loopback has all addresses of 10.0.0.0/8: to whom it
 * listens at 127.0.0.1, they are other machines. */
static bool has_other_addresses;

static int make_other_addresses(void)
{
    struct ifreq lo = {.ifr_name = "lo"}, more = {.ifr_name = "lo:1"};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001)};
    struct sockaddr_in mask = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xff000000)};
    int rc = unshare(CLONE_NEWNET);
    cleanup_close int fd = rc < 0 ? -1 : socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    lo.ifr_flags = IFF_UP | IFF_RUNNING;
    memcpy(&more.ifr_addr, &address, sizeof address);
    if (ioctl(fd, SIOCSIFFLAGS, &lo) < 0 || ioctl(fd, SIOCSIFADDR, &more) < 0)
        return -1;
    memcpy(&more.ifr_netmask, &mask, sizeof mask);
    return ioctl(fd, SIOCSIFNETMASK, &more);
}

static void crowd_of_one_address(void **state)
{
    if (!has_other_addresses)
        skip_for("needs root, with a network namespace of its own");
    assert_share(*state, "10.0.0.2", 200, "too many connections of its address");
}

/* Who is alone at an address keeps its place, however slow. */
static void crowd_of_other_addresses(void **state)
{
    struct fixture *f = *state;
    char address[32];
    if (!has_other_addresses)
        skip_for("needs root, with a network namespace of its own");
    struct crowd *crowd = crowd_new();
    int slow = dial_from(f, "10.0.0.2");
    for (size_t i = 0; i < 10; i++) {
        snprintf(address, sizeof address, "10.0.1.%zu", i);
        crowd_comes(f, crowd, 20 * i, 20 * (i + 1), address);
    }
    assert_in_range(open_after(f, crowd, 200, LISTEN_GUESTS_MAX), 2, LISTEN_GUESTS_MAX);
    enter_by(f, f->tls, dial_from(f, "10.0.0.3"));
    welcome(f);
    enter_by(f, f->tls, slow);
    welcome(f);
    crowd_free(crowd);
}

static void until_log_says(struct fixture *f, const char *text)
{
    while (!strstr(f->log, text))
        event_base_loop(f->base, EVLOOP_ONCE);
}

/* As so many users one after the other, so many connections each, which stay until it is killed.
 * Few, so that they have come long before who was there before them must have said hello. */
static pid_t strangers_come(struct fixture *f, uid_t first, size_t users, size_t each)
{
    int there[2];
    char byte;
    assert_int_equal(pipe(there), 0);
    pid_t child = fork();
    if (child == 0) {
        bool good = setgroups(0, NULL) == 0;
        for (size_t i = 0; good && i < users; i++) {
            good = seteuid((uid_t)(first + i)) == 0;
            for (size_t k = 0; good && k < each; k++)
                good = try_dial_from(f, "127.0.0.1") >= 0;
            good = good && seteuid(0) == 0;
        }
        if (!good || write(there[1], "!", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(there[1]);
    assert_int_equal(read(there[0], &byte, 1), 1);
    close(there[0]);
    return child;
}

static void strangers_go(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* At one address, as all users of this machine: who is of our own keeps its place, however slow. */
static void crowd_of_another_user(void **state)
{
    struct fixture *f = *state;
    if (geteuid() != 0)
        skip_for("needs root");
    int slow = dial(f);
    pid_t crowd = strangers_come(f, 65534, 1, 150);
    until_log_says(f, "too many connections of user 65534 wait without a hello");
    enter_by(f, f->tls, slow);
    welcome(f);
    enter(f, f->tls);
    welcome(f);
    strangers_go(crowd);
}

/* One who has user ids by the thousand (subuid(5)) is no more to us. */
static void crowd_of_many_users(void **state)
{
    struct fixture *f = *state;
    if (geteuid() != 0)
        skip_for("needs root");
    int slow = dial(f);
    pid_t crowd = strangers_come(f, 60000, 200, 1);
    until_log_says(f, "too many connections wait without a hello");
    enter_by(f, f->tls, slow);
    welcome(f);
    enter(f, f->tls);
    welcome(f);
    strangers_go(crowd);
}

/* The key is proved, and the hello takes its time. */
static void crowd_after_one_with_the_key(void **state)
{
    struct fixture *f = *state;
    struct crowd *crowd = crowd_new();
    enter(f, f->tls);
    for (int i = 0; i < 200; i++) {
        event_base_loop(f->base, EVLOOP_NONBLOCK);
        usleep(500);
    }
    crowd_comes(f, crowd, 0, 200, "127.0.0.1");
    welcome(f);
    crowd_free(crowd);
}

/* All but a few descriptors are taken, and those by strangers. */
static void crowd_at_the_descriptor_limit(void **state)
{
    struct fixture *f = *state;
    struct crowd *crowd = crowd_new();
    struct rlimit few = {0, crowd->before.rlim_max};
    for (size_t i = 0; i < 300; i++)
        crowd->fds[i] = dial_from(f, "127.0.0.1");
    enter(f, f->tls);
    int last = dup(0);
    close(last);
    few.rlim_cur = (rlim_t)last + 4;
    setrlimit(RLIMIT_NOFILE, &few);
    welcome(f);
    assert_non_null(strstr(f->log, "Too many open files"));
    crowd_free(crowd);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as in the agent */
    has_other_addresses = geteuid() == 0 && make_other_addresses() == 0;
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(who_has_the_key_comes_in),
        TEST(another_key),
        TEST(garbage),
        TEST(connection_without_a_word),
        TEST(another_release),
        TEST(another_libpmix),
        TEST(first_message_is_no_hello),
        TEST(guest_that_stops),
        TEST(crowd_of_our_user),
        TEST(crowd_of_one_address),
        TEST(crowd_of_other_addresses),
        TEST(crowd_of_another_user),
        TEST(crowd_of_many_users),
        TEST(crowd_after_one_with_the_key),
        TEST(crowd_at_the_descriptor_limit),
        TEST(crowd_of_a_user_that_is_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
