/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/public/public.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "launcher/files/api_options.h"
#include "launcher/api/plan.h"
#include "launcher/cluster/client/loop_fd.h"
#include "launcher/cluster/public/snapshot.h"
#include "launcher/files/spec_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* ---- open and close ---- */

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    struct drarun_cluster *cluster = arg;
    uint64_t count;
    (void)what;
    (void)!read(fd, &count, sizeof count);
    public_take_interrupt(cluster);
}

static int make_wake(struct drarun_cluster *cluster, struct drarun_error *err)
{
    cluster->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (cluster->wake < 0)
        return error_set(err, errno, "eventfd: %s", strerror(errno));
    cluster->woken =
        event_new(cluster->cluster.base, cluster->wake, EV_READ | EV_PERSIST, on_wake, cluster);
    return cluster->woken && event_add(cluster->woken, NULL) == 0
               ? 0
               : error_set(err, ENOMEM, "out of memory");
}

static void on_door(evutil_socket_t fd, short what, void *arg)
{
    struct drarun_cluster *cluster = arg;
    (void)fd, (void)what;
    if (cluster->busy) /* a blocking call of this thread runs the caller's loop */
        loop_fd_run(cluster->door);
    else
        drarun_cluster_dispatch(cluster, NULL);
}

static int make_door(struct drarun_cluster *cluster, struct drarun_error *err)
{
    return cluster->door ? 0 : loop_fd_new(cluster->cluster.base, &cluster->door, err);
}

/* The caller's loop runs ours. */
static int join(struct drarun_cluster *cluster, struct event_base *base, struct drarun_error *err)
{
    int rc = make_door(cluster, err);
    if (rc < 0)
        return rc;
    cluster->driver =
        event_new(base, loop_fd_number(cluster->door), EV_READ | EV_PERSIST, on_door, cluster);
    if (!cluster->driver || event_add(cluster->driver, NULL) < 0)
        return error_set(err, ENOMEM, "out of memory");
    cluster->cluster.outer = base;
    cluster->cluster.door = cluster->door;
    return 0;
}

static int open_it(struct drarun_cluster *cluster, const struct drarun_cluster_options *o,
                   struct drarun_error *err)
{
    const struct kube_config_choice choice = {
        .path = o->kubeconfig, .context = o->context, .namespace_ = o->namespace_};
    struct public_call call;
    int rc = public_begin(&call, cluster, err);
    if (rc < 0)
        return rc;
    rc = cluster_open(&cluster->cluster, &choice, err);
    if (rc == 0) {
        cluster_tell_unanswered(&cluster->cluster);
        rc = make_wake(cluster, err);
    }
    if (rc == 0 && o->base)
        rc = join(cluster, o->base, err);
    public_end(&call);
    return rc;
}

int drarun_cluster_open(const struct drarun_cluster_options *options,
                        struct drarun_cluster **ret_cluster, struct drarun_error *err)
{
    struct drarun_cluster_options o;
    int rc = api_options(options, &o, sizeof o, err);
    if (rc < 0)
        return rc;
    struct drarun_cluster *cluster = calloc(1, sizeof *cluster);
    if (!cluster)
        return error_set(err, ENOMEM, "out of memory");
    cluster->wake = -1;
    TAILQ_INIT(&cluster->followings);
    cluster->pid = getpid();
    cluster->log = o.log;
    cluster->arg = o.arg;
    cluster->level = o.level;
    cluster->namespace_said = o.namespace_ != NULL;
    rc = open_it(cluster, &o, err);
    if (rc == 0)
        *ret_cluster = cluster;
    else
        drarun_cluster_close(cluster);
    return rc;
}

void drarun_cluster_close(struct drarun_cluster *cluster)
{
    struct public_call call;
    if (!cluster)
        return;
    /* in a child loop and connections are the parent's too: to end them would end the parent's */
    if (public_begin(&call, cluster, NULL) == 0) {
        if (cluster->driver)
            event_free(TAKE_PTR(cluster->driver));
        loop_fd_free(TAKE_PTR(cluster->door));
        if (cluster->woken)
            event_free(cluster->woken);
        if (cluster->cluster.base)
            cluster_close(&cluster->cluster);
        public_end(&call);
    }
    close_fd(&cluster->wake);
    free(cluster);
}

const char *drarun_cluster_namespace(const struct drarun_cluster *cluster)
{
    return cluster->cluster.namespace;
}

void drarun_cluster_interrupt(struct drarun_cluster *cluster)
{
    static const uint64_t one = 1;
    int before = errno;
    if (cluster->pid != getpid()) /* a child of a fork shares the descriptor */
        return;
    cluster->interrupted = 1;
    (void)!write(cluster->wake, &one, sizeof one);
    errno = before;
}

int drarun_cluster_fd(struct drarun_cluster *cluster, struct drarun_error *err)
{
    struct public_call call;
    int rc = public_begin(&call, cluster, err);
    if (rc < 0)
        return rc;
    rc = make_door(cluster, err);
    public_end(&call);
    return rc == 0 ? loop_fd_number(cluster->door) : rc;
}

int drarun_cluster_dispatch(struct drarun_cluster *cluster, struct drarun_error *err)
{
    struct public_call call;
    int rc = public_begin(&call, cluster, err);
    if (rc < 0)
        return rc;
    rc = make_door(cluster, err);
    if (rc == 0 && loop_fd_run(cluster->door) != 0)
        rc = error_set(err, EINVAL, "the cluster's event loop cannot run");
    public_end(&call);
    return rc;
}

/* ---- plan ---- */

int drarun_cluster_plan(struct drarun_cluster *cluster, const struct drarun_spec *spec,
                        const struct drarun_plan_options *options, struct drarun_plan **ret_plan,
                        struct drarun_error *err)
{
    struct drarun_plan_options o;
    struct public_call call;
    struct plan_objects objects;
    const char *namespace = spec->job.namespace ? spec->job.namespace : cluster->cluster.namespace;
    int rc = api_options(options, &o, sizeof o, err);
    if (rc == 0)
        rc = public_begin(&call, cluster, err);
    if (rc < 0)
        return rc;
    plan_objects_init(&objects);
    rc = cluster_discover(&cluster->cluster, err);
    if (rc == 0)
        rc = snapshot_plan(&cluster->cluster, namespace, &objects, err);
    if (rc == 0)
        rc = plan_new_take(spec, &o, &objects, ret_plan, err);
    plan_objects_done(&objects);
    public_end(&call);
    return rc;
}
