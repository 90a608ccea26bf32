/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks are told of the server before it runs, held against what the library itself would tell
 * them once it does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <pmix.h>
#include <pmix_server.h>

#include "lib/base/cleanup.h"
#include "lib/wire/copy.h"
#include "worker/job/agent_job.h"
#include "worker/pmix/host.h"
#include "worker/tree/pmix_version.h"
#include "worker/host/session.h"

#define RANK 3u

struct fixture {
    struct event_base *base;
    struct agent_job job;
    struct tree tree;
    struct coll *coll;
    struct topology *topology;
    char session[64];
    struct pmix_host *host;
};

static Drarun__Wire__Launch *make_launch(const char *session)
{
    static char uid[] = "host-env-test", path[64], host[] = "nodex", argv0[] = "app";
    static char *argv[] = {argv0};
    static Drarun__Wire__App app = DRARUN__WIRE__APP__INIT, *apps[] = {&app};
    static Drarun__Wire__Block blocks[2] = {DRARUN__WIRE__BLOCK__INIT, DRARUN__WIRE__BLOCK__INIT};
    static Drarun__Wire__Block *block_list[] = {&blocks[0], &blocks[1]};
    static Drarun__Wire__Worker workers[2] = {DRARUN__WIRE__WORKER__INIT,
                                              DRARUN__WIRE__WORKER__INIT};
    static Drarun__Wire__Worker *worker_list[] = {&workers[0], &workers[1]};
    Drarun__Wire__Launch launch = DRARUN__WIRE__LAUNCH__INIT;
    snprintf(path, sizeof path, "%s", session);
    app.argv = argv;
    app.n_argv = 1;
    blocks[0].count = blocks[1].count = blocks[1].first = 2;
    blocks[1].worker = 1;
    workers[0].host = workers[1].host = host;
    launch.uid = uid;
    launch.worker = 1;
    launch.radix = 8;
    launch.apps = apps;
    launch.n_apps = 1;
    launch.blocks = block_list;
    launch.n_blocks = 2;
    launch.workers = worker_list;
    launch.n_workers = 2;
    launch.mode = DRARUN__WIRE__LAUNCH_MODE__LAUNCH_PMIX;
    launch.session_dir = path;
    launch.same_host = true;
    Drarun__Wire__Launch *copy = wire_copy(&launch.base);
    assert_non_null(copy);
    return copy;
}

static void on_failed(void *arg, const struct drarun_error *err)
{
    (void)arg;
    fail_msg("%s", err->text);
}

static void ignore_send(void *arg, uint32_t worker, const Drarun__Wire__Collective *message)
{
    (void)arg, (void)worker, (void)message;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct drarun_error err = {0};
    struct pmix_host_owner owner = {.failed = on_failed};
    snprintf(f->session, sizeof f->session, "/tmp/host-env-test.%d", (int)getpid());
    if (mkdir(f->session, 0700) < 0 ||
        agent_job_init_take(&f->job, make_launch(f->session), &err) < 0)
        fail_msg("%s", err.text);
    f->base = event_base_new();
    f->tree = (struct tree){.self = 1, .size = 2, .radix = 8};
    f->coll = coll_new(&f->tree, &f->job.map, ignore_send, f);
    f->topology = topology_new();
    f->host =
        pmix_host_new(f->base, &f->job, &f->tree, f->coll, f->topology, f->session, &owner, &err);
    if (!f->host)
        fail_msg("%s", err.text);
    *state = f;
    return 0;
}

/* The host and its loop stay: the library's thread lives as long as the process. */
static int tear_down(void **state)
{
    struct fixture *f = *state;
    return session_remove(f->session);
}

/* A group that rank 0 asks for: one rank. */
static Drarun__Wire__Group *make_group(uint32_t index, uint32_t worker)
{
    char argv0[] = "app", *argv[] = {argv0};
    Drarun__Wire__App app = DRARUN__WIRE__APP__INIT, *apps[] = {&app};
    Drarun__Wire__Block block = DRARUN__WIRE__BLOCK__INIT, *blocks[] = {&block};
    Drarun__Wire__Group group = DRARUN__WIRE__GROUP__INIT;
    app.argv = argv;
    app.n_argv = 1;
    block.count = 1;
    block.worker = worker;
    group.index = index;
    group.first = 3 + index;
    group.apps = apps;
    group.n_apps = 1;
    group.blocks = blocks;
    group.n_blocks = 1;
    Drarun__Wire__Group *copy = wire_copy(&group.base);
    assert_non_null(copy);
    return copy;
}

/* Debian's library calls itself 5.0.7a1; a client reads the numbers only. */
static void cut_version(char **env)
{
    static const char known[] = "PMIX_VERSION=";
    for (size_t i = 0; env && env[i]; i++)
        if (strncmp(env[i], known, strlen(known)) == 0)
            env[i][strlen(known) + strspn(env[i] + strlen(known), "0123456789.")] = '\0';
}

static struct rank_group *new_group(struct fixture *f, uint32_t worker)
{
    struct drarun_error err = {0};
    if (agent_job_add_group_take(&f->job, make_group(f->job.group_count, worker), &err) < 0)
        fail_msg("%s", err.text);
    return f->job.groups[f->job.group_count - 1];
}

static void add_last_group(struct fixture *f)
{
    struct drarun_error err = {0};
    if (pmix_host_add_group(f->host, &err) < 0)
        fail_msg("%s", err.text);
}

/* On worker 0. */
static struct rank_group *add_group(struct fixture *f)
{
    struct rank_group *group = new_group(f, 0);
    add_last_group(f);
    return group;
}

static void release_group(struct fixture *f, struct rank_group *group)
{
    pmix_host_release_group(f->host, group);
    agent_job_release_group(&f->job, group);
}

static void same_as_the_library(void **state)
{
    struct fixture *f = *state;
    struct drarun_error err = {0};
    struct strlist ours = STRLIST_INIT;
    char **theirs = NULL;
    pmix_proc_t proc;
    pmix_host_rank_env(f->host, RANK, &ours);
    release_group(f, add_group(f)); /* before the library is started */
    assert_false(pmix_host_started(f->host));
    if (pmix_host_start(f->host, &err) < 0)
        fail_msg("%s", err.text);
    PMIX_LOAD_PROCID(&proc, f->job.groups[0]->nspace, RANK);
    assert_int_equal(PMIx_server_setup_fork(&proc, &theirs), PMIX_SUCCESS);
    cut_version(theirs);
    size_t count = 0;
    for (; theirs && theirs[count]; count++)
        if (!strlist_has(&ours, theirs[count]))
            fail_msg("the library would set %s", theirs[count]);
    assert_true(count > 0);
    for (size_t i = 0; i < ours.count; i++) {
        bool there = false;
        for (size_t k = 0; k < count && !there; k++)
            there = strcmp(ours.items[i], theirs[k]) == 0;
        if (!there)
            fail_msg("the library would not set %s", ours.items[i]);
    }
    strlist_done(&ours);
    PMIx_Argv_free(theirs);
}

/* "" where the library does not know it; malloc'ed. */
static char *look_up(const struct rank_group *group, pmix_rank_t rank, const char *key)
{
    pmix_proc_t proc;
    pmix_info_t here_only;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&proc, group->nspace, rank);
    PMIX_INFO_LOAD(&here_only, PMIX_OPTIONAL, NULL, PMIX_BOOL);
    if (PMIx_Get(&proc, key, &here_only, 1, &value) != PMIX_SUCCESS)
        return strdup("");
    char *text = strdup(value->data.string);
    PMIX_VALUE_RELEASE(value);
    return text;
}

static char *look_up_directory(const struct rank_group *group)
{
    return look_up(group, PMIX_RANK_WILDCARD, PMIX_NSDIR);
}

/* The library is running, and was started after the second group had ended. */
static void the_library_knows_no_released_group(void **state)
{
    struct fixture *f = *state;
    assert_true(pmix_host_started(f->host));
    cleanup_free char *first = look_up_directory(f->job.groups[0]);
    cleanup_free char *second = look_up_directory(f->job.groups[1]);
    assert_string_not_equal(first, f->session); /* it may be gone before the session */
    assert_int_equal(strncmp(first, f->session, strlen(f->session)), 0);
    assert_string_equal(second, "");
}

static void each_group_has_its_directory(void **state)
{
    struct fixture *f = *state;
    struct rank_group *one = add_group(f), *other = add_group(f);
    cleanup_free char *of_one = look_up_directory(one), *of_other = look_up_directory(other);
    cleanup_free char *rank_0 = NULL;
    assert_true(asprintf(&rank_0, "%s/0", of_one) > 0);
    assert_string_not_equal(of_one, f->session);
    assert_string_not_equal(of_one, of_other);
    assert_int_equal(mkdir(rank_0, 0700), 0);
    assert_int_equal(access(of_other, W_OK), 0);
    release_group(f, one);
    assert_int_equal(access(of_one, F_OK), -1);
    assert_int_equal(access(of_other, F_OK), 0);
    pmix_host_drop_group(f->host);
    assert_int_equal(access(of_other, F_OK), -1);
}

/* Its ranks' places are the next group's, whose ranks need not be bound. */
static void a_dropped_group_leaves_no_binding(void **state)
{
    struct fixture *f = *state;
    const uint32_t cpu = 0;
    struct rank_group *group = new_group(f, 1);
    assert_int_equal(pmix_host_set_cpus(f->host, group->first, &cpu, 1), 0);
    add_last_group(f);
    cleanup_free char *before = look_up(group, 0, PMIX_CPUSET);
    assert_string_equal(before, "0");
    pmix_host_drop_group(f->host);
    assert_int_equal(agent_job_drop_group(&f->job), 0);
    group = new_group(f, 1);
    add_last_group(f);
    cleanup_free char *after = look_up(group, 0, PMIX_CPUSET);
    assert_string_equal(after, "");
}

/* There may be as many groups as workers, each on another one. */
static void ranks_elsewhere_need_no_topology(void **state)
{
    struct fixture *f = *state;
    const struct rank_group *elsewhere = add_group(f), *here = new_group(f, 1);
    add_last_group(f);
    cleanup_free char *theirs = look_up(elsewhere, PMIX_RANK_WILDCARD, PMIX_HWLOC_XML_V2);
    cleanup_free char *ours = look_up(here, PMIX_RANK_WILDCARD, PMIX_HWLOC_XML_V2);
    assert_string_equal(theirs, "");
    assert_non_null(strstr(ours, "<topology"));
}

static void version_is_the_library_s(void **state)
{
    (void)state;
    assert_non_null(strstr(PMIx_Get_version(), pmix_version()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_the_library),
        cmocka_unit_test(the_library_knows_no_released_group),
        cmocka_unit_test(each_group_has_its_directory),
        cmocka_unit_test(a_dropped_group_leaves_no_binding),
        cmocka_unit_test(ranks_elsewhere_need_no_topology),
        cmocka_unit_test(version_is_the_library_s),
    };
    int failed = cmocka_run_group_tests(tests, set_up, tear_down);
    fflush(NULL);
    _exit(failed != 0); /* the library is not finalized: that can hang */
}
