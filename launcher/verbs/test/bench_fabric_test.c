/* SPDX-License-Identifier: Apache-2.0 */
/* drarun bench fabric, with a cluster and agents that are the test's. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "jobs/preflight/fabric.h"
#include "launcher/bench/fabric.h"
#include "launcher/files/spec_file.h"
#include "launcher/programs/cluster_api.h"
#include "launcher/programs/remote.h"
#include "launcher/verbs/bench_fabric.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/test/quoted_json.h"

#define WORDS 24

static struct {
    struct buf said;
    int status;         /* of what is asked */
    const char *fabric; /* that it finds; NULL: nothing */
    json_t *document;   /* of the job that was made */
    uint32_t workers;
    char image[128], namespace[32];
    struct fabric_order order;
    int calls, rc; /* rc: of fabric_check_agents */
} world;

static int alloc(const struct cluster_alloc *a)
{
    world.calls++;
    world.document = json_deep_copy(a->spec->job.document);
    world.workers = a->workers;
    snprintf(world.image, sizeof world.image, "%s", a->image ? a->image : "");
    snprintf(world.namespace, sizeof world.namespace, "%s",
             a->cluster.namespace ? a->cluster.namespace : "");
    assert_null(a->file);
    assert_null(a->name);
    if (world.fabric)
        *a->ret_status = json_pack("{s:o}", "fabric", quoted_json(world.fabric, 0));
    return world.status;
}

const struct cluster_api *cluster_api(void)
{
    static const struct cluster_api api = {.alloc = alloc};
    return &api;
}

int cluster_become(char *const argv[])
{
    (void)argv;
    return 99;
}

const struct remote_api *remote_api(void)
{
    static const struct remote_api api = {.open = NULL};
    return &api;
}

int remote_become(char *const argv[], struct drarun_error *err)
{
    (void)argv, (void)err;
    return -ENOSYS;
}

int __wrap_fabric_check_agents(const struct fabric_order *order, int *ret_status,
                               json_t **ret_fabric, struct drarun_error *err);
int __wrap_fabric_check_agents(const struct fabric_order *order, int *ret_status,
                               json_t **ret_fabric, struct drarun_error *err)
{
    world.calls++;
    world.order = *order;
    if (world.rc)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, world.rc, "no agent");
    *ret_status = world.status;
    *ret_fabric = world.fabric ? quoted_json(world.fabric, 0) : NULL;
    return 0;
}

static void on_line(void *arg, const struct log_line *line)
{
    (void)arg;
    if (line->level <= LOG_NORMAL)
        buf_add(&world.said, line->text + line->prefix, line->length - line->prefix);
}

/* words: separated by one blank; FILE is the job. Returns the exit status, and what was printed. */
static int run(const char *words, const char *job, char **ret_printed)
{
    char program[] = "drarun", bench[] = "bench", fabric[] = "fabric";
    char file[] = "/tmp/bench_fabric_test.XXXXXX";
    char *argv[WORDS] = {program, bench, fabric};
    int argc = 3;
    cleanup_free char *copy = strdup(words);
    char *rest = copy;
    cleanup_close int fd = mkstemp(file);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, job, strlen(job)), 0);
    for (char *word; (word = strsep(&rest, " "));)
        if (*word)
            argv[argc++] = strcmp(word, "FILE") == 0 ? file : word;
    cleanup_close int out = memfd_create("out", MFD_CLOEXEC);
    int before = dup(STDOUT_FILENO);
    fflush(NULL);
    assert_true(dup2(out, STDOUT_FILENO) >= 0);
    log_divert(on_line, NULL);
    int status = verb_bench_fabric.run(argc - 3, argv + 3);
    log_divert(NULL, NULL);
    fflush(NULL);
    dup2(before, STDOUT_FILENO);
    close(before);
    unlink(file);
    off_t size = lseek(out, 0, SEEK_END);
    *ret_printed = calloc(1, (size_t)size + 1);
    assert_non_null(*ret_printed);
    assert_int_equal(pread(out, *ret_printed, (size_t)size, 0), size);
    return status;
}

static void begin(void)
{
    buf_done(&world.said);
    json_decref(world.document);
    memset(&world, 0, sizeof world);
}

static void is_said(const char *expected)
{
    assert_string_equal(world.said.data ? world.said.data : "", expected);
    buf_reset(&world.said);
}

#define HEAD "apiVersion: drarun.dev/v1alpha1\nkind: DraJob\nmetadata: {name: train}\nspec:\n"
#define POD "template: {spec: {containers: [{image: i, command: [a]}]}}"
#define NIC "devices: {nics: {class: nic, count: 1}}, "
#define ONE HEAD "  workers: 2\n  " POD "\n"
#define ROLES                                                                                      \
    HEAD "  roles:\n  - {name: a, workers: 2, " NIC POD "}\n  - {name: b, " NIC POD                \
         "}\n  - {name: c, " POD "}\n"
#define NOTE "role c asks for no devices and takes no part: --role c measures it alone\n"
#define GOOD "{'workers':[]}"

static void words_that_are_refused(void **state)
{
    static const struct {
        const char *words, *says;
    } rows[] = {
        {"", "no workers given: expected --job FILE, or --agents HOST:PORT,... with --key-file"},
        {"--job FILE --agents a:1",
         "no workers given: expected --job FILE, or --agents HOST:PORT,... with --key-file"},
        {"--job FILE x", "unexpected argument \"x\""},
        {"--agents a:1", "--agents needs --key-file FILE, the key of the agents"},
        {"--job FILE --key-file k", "--key-file is for --agents: a job has its own key"},
        {"--agents a:1 --key-file k --role a",
         "--role, --workers, --name, --image and the cluster's options are for --job"},
        {"--agents a:1 --key-file k --workers 1",
         "--role, --workers, --name, --image and the cluster's options are for --job"},
        {"--agents a:1 --key-file k --name n",
         "--role, --workers, --name, --image and the cluster's options are for --job"},
        {"--agents a:1 --key-file k --image i",
         "--role, --workers, --name, --image and the cluster's options are for --job"},
        {"--agents a:1 --key-file k -n team",
         "--role, --workers, --name, --image and the cluster's options are for --job"},
        {"--agents a:1 --key-file k --context c",
         "--role, --workers, --name, --image and the cluster's options are for --job"},
        {"--agents a:1 --key-file k --kubeconfig k",
         "--role, --workers, --name, --image and the cluster's options are for --job"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char expected[256];
        cleanup_free char *printed = NULL;
        begin();
        assert_int_equal(run(rows[i].words, ONE, &printed), 64);
        snprintf(expected, sizeof expected, "bench fabric: %s\n", rows[i].says);
        is_said(expected);
        assert_string_equal(printed, "");
        assert_int_equal(world.calls, 0);
    }
}

static void job_of_the_check(void **state)
{
    static const struct {
        const char *words, *name, *generate_name, *fabric;
        uint32_t workers;
    } rows[] = {
        {"--job FILE", NULL, "fabric-", "open", 0},
        {"--job FILE --reach", NULL, "fabric-", "reach", 0},
        {"--job FILE --name n --workers 5 -n team --image x:1", "n", NULL, "open", 5},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_free char *printed = NULL;
        begin();
        world.fabric = GOOD;
        run(rows[i].words, ONE, &printed);
        is_said("");
        assert_int_equal(world.calls, 1);
        assert_int_equal(world.workers, rows[i].workers);
        assert_string_equal(world.namespace, i == 2 ? "team" : "");
        assert_string_equal(world.image, i == 2 ? "x:1" : "");
        const json_t *metadata = json_object_get(world.document, "metadata");
        const json_t *spec = json_object_get(world.document, "spec");
        const char *name = json_string_value(json_object_get(metadata, "name"));
        const char *generate = json_string_value(json_object_get(metadata, "generateName"));
        if (rows[i].name)
            assert_string_equal(name, rows[i].name);
        if (rows[i].generate_name)
            assert_string_equal(generate, rows[i].generate_name);
        else
            assert_null(generate);
        assert_string_equal(
            json_string_value(json_object_get(json_object_get(spec, "preflight"), "fabric")),
            rows[i].fabric);
        assert_int_equal(json_integer_value(json_object_get(spec, "workers")), 2);
    }
    begin();
}

/* Of several roles those that ask for devices; one that remains alone stands at the top. */
static void roles_of_the_check(void **state)
{
    static const struct {
        const char *words, *job;
        int status;
        size_t roles; /* that the job has; 0: none */
        const char *says;
    } rows[] = {
        {"--job FILE", ROLES, 0, 2, NOTE},
        {"--job FILE --role a", ROLES, 0, 0, ""},
        {"--job FILE --role a --workers 5", ROLES, 0, 0, ""},
        {"--job FILE --role d", ROLES, 64, 0,
         "bench fabric: --role d: no such role; train has a, b, c\n"},
        {"--job FILE --role a", ONE, 64, 0,
         "bench fabric: --role a: train has no roles: leave it out\n"},
        {"--job FILE --workers 5", ROLES, 64, 0,
         NOTE "bench fabric: --workers: the job has several roles (a, b): add --role NAME\n"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_free char *printed = NULL;
        begin();
        world.fabric = "{'workers':[]}";
        int status = run(rows[i].words, rows[i].job, &printed);
        const char *said = world.said.data ? world.said.data : "";
        if (strstr(said, rows[i].says) != said || (!*rows[i].says && *said))
            fail_msg("row %zu: %s", i, said);
        assert_int_equal(world.calls, rows[i].status ? 0 : 1);
        if (rows[i].status)
            assert_int_equal(status, rows[i].status);
        const json_t *spec = json_object_get(world.document, "spec");
        assert_int_equal(json_array_size(json_object_get(spec, "roles")), rows[i].roles);
        if (!rows[i].status && rows[i].roles == 0)
            assert_int_equal(json_integer_value(json_object_get(spec, "workers")), 2);
    }
    begin();
}

static void agents_of_the_check(void **state)
{
    cleanup_free char *printed = NULL, *again = NULL;
    (void)state;
    begin();
    world.fabric = GOOD;
    run("--agents a:1,b:1 --key-file k", ONE, &printed);
    assert_int_equal(world.calls, 1);
    assert_false(world.order.reach);
    assert_int_equal(world.order.start_timeout_ms, 60000);
    begin();
    world.rc = EACCES;
    assert_int_equal(run("--agents a:1 --key-file k --reach --start-timeout 2s", ONE, &again),
                     error_exit_status(DRARUN_ERR_INFRASTRUCTURE));
    is_said("bench fabric: no agent\n");
    assert_true(world.order.reach);
    assert_int_equal(world.order.start_timeout_ms, 2000);
    assert_string_equal(again, "");
    begin();
}

/* 1 where the job would have run all the same. */
static void what_it_came_to(void **state)
{
    static const struct {
        int status;
        const char *fabric;
        int exit;
        const char *says;
    } rows[] = {
        {0, NULL, -1, "bench fabric: no worker has a NIC that carries data by RDMA\n"},
        {75, NULL, 75, ""},
        {75, GOOD, 75, ""},
        {0, GOOD, -2, ""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_free char *printed = NULL;
        begin();
        world.status = rows[i].status;
        world.fabric = rows[i].fabric;
        int status = run("--agents a:1 --key-file k -o json", ONE, &printed);
        is_said(rows[i].says);
        if (rows[i].exit == -1)
            assert_int_equal(status, error_exit_status(DRARUN_ERR_PREFLIGHT));
        else if (rows[i].exit == -2) {
            CLEANUP(json_decrefp) json_t *fabric = quoted_json(GOOD, 0);
            assert_int_equal(status, fabric_is_good(fabric) ? 0 : 1);
        } else
            assert_int_equal(status, rows[i].exit);
        CLEANUP(json_decrefp) json_t *shown = json_loads(printed, 0, NULL);
        CLEANUP(json_decrefp)
        json_t *expected = rows[i].fabric ? quoted_json(rows[i].fabric, 0) : NULL;
        assert_true(expected ? json_equal(shown, expected) : !*printed);
    }
    begin();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_that_are_refused), cmocka_unit_test(job_of_the_check),
        cmocka_unit_test(roles_of_the_check),     cmocka_unit_test(agents_of_the_check),
        cmocka_unit_test(what_it_came_to),
    };
    log_setup("drarun", LOG_NORMAL);
    unsetenv("DRARUN_IMAGE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
