/* SPDX-License-Identifier: Apache-2.0 */
/* dra_player DIR: a DRA driver of played claims, for what calls drivers. A claim's name says what
 * becomes of it: fail-TEXT, sleep-MS (answered later), devices-N; any other gets one device. All
 * devices are of a subrequest, gpu/large. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "plugin/kubelet/dra_driver.h"

struct later {
    struct event *timer;
    struct dra_reply *reply;
    struct later *next;
};

static struct event_base *base;
static struct later *waiting;
static const char *unhealthy;

static void give(struct dra_reply *reply, size_t count)
{
    static const char *requests[] = {"gpu/large"}, *ids[] = {"proto.example/gpu=1"};
    struct dra_device *devices = calloc(count + 1, sizeof *devices);
    for (size_t i = 0; i < count; i++)
        devices[i] = (struct dra_device){requests, 1, "pool", "gpu-0", ids, 1};
    dra_reply_prepared_take(reply, devices, count);
    free(devices);
}

static void on_later(evutil_socket_t fd, short what, void *arg)
{
    struct later *later = arg;
    (void)fd;
    (void)what;
    for (struct later **p = &waiting; *p; p = &(*p)->next) {
        if (*p == later) {
            *p = later->next;
            break;
        }
    }
    give(later->reply, 1);
    event_free(later->timer);
    free(later);
}

static void give_later(struct dra_reply *reply, long ms)
{
    const struct timeval after = {ms / 1000, ms % 1000 * 1000};
    struct later *later = calloc(1, sizeof *later);
    later->reply = reply;
    later->next = waiting;
    waiting = later;
    later->timer = evtimer_new(base, on_later, later);
    evtimer_add(later->timer, &after);
}

static void prepare(const struct dra_claim *claim, struct dra_reply *reply, void *arg)
{
    struct drarun_error err = {0};
    (void)arg;
    if (strncmp(claim->name, "fail-", 5) == 0) {
        error_set(&err, EIO, "told to fail: %s", claim->name);
        dra_reply_failed_take(reply, &err);
    } else if (strncmp(claim->name, "sleep-", 6) == 0) {
        give_later(reply, strtol(claim->name + 6, NULL, 10));
    } else if (strncmp(claim->name, "devices-", 8) == 0) {
        give(reply, strtoul(claim->name + 8, NULL, 10));
    } else {
        give(reply, 1);
    }
}

static void unprepare(const struct dra_claim *claim, struct dra_reply *reply, void *arg)
{
    (void)claim;
    (void)arg;
    dra_reply_unprepared_take(reply);
}

static void registered(bool ok, const char *error, void *arg)
{
    (void)arg;
    printf("registered %d %s\n", ok, error);
}

static void health(dra_health_fn put, void *put_arg, void *arg)
{
    (void)arg;
    put(&(struct dra_health){"pool", "gpu-0", unhealthy}, put_arg);
    put(&(struct dra_health){"pool", "gpu-1", NULL}, put_arg);
}

static void on_change(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    unhealthy = unhealthy ? NULL : "told to fail";
    dra_driver_health_changed(*(struct dra_driver **)arg);
}

static void on_end(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    event_base_loopbreak(base);
}

static const struct dra_handler handler = {prepare, unprepare, registered, health};

int main(int argc, char **argv)
{
    struct drarun_error err = {0};
    struct dra_driver *driver = NULL;
    log_setup("dra_player", LOG_VERBOSE);
    if (argc != 2)
        return 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    base = event_base_new();
    const struct dra_driver_config config = {"proto.example", argv[1], argv[1], NULL};
    struct event *end = evsignal_new(base, SIGTERM, on_end, NULL);
    struct event *change = evsignal_new(base, SIGUSR1, on_change, &driver);
    event_add(end, NULL);
    event_add(change, NULL);
    if (dra_driver_new(base, &config, &handler, NULL, &driver, &err) < 0) {
        log_error("%s", err.text);
        return 70;
    }
    puts("ready");
    event_base_dispatch(base);
    dra_driver_free(driver);
    while (waiting)
        on_later(-1, 0, waiting);
    event_free(end);
    event_free(change);
    event_base_free(base);
    return 0;
}
