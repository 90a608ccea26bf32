/* SPDX-License-Identifier: Apache-2.0 */
/* A driver as the kubelet calls it: over its sockets, with the messages that the kubelet sends. */
#include "plugin/rpc/test/rpc_client.h"

#include <sys/stat.h>
#include <time.h>
#include <utime.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "plugin/kubelet/dra.pb-c.h"
#include "plugin/kubelet/dra_driver.h"
#include "plugin/kubelet/health.pb-c.h"
#include "plugin/kubelet/registration.pb-c.h"

#define V1 "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
#define V1BETA1 "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/"
#define INSTANCE "01234567-89ab-cdef-0123-456789abcdef"

struct world {
    struct event_base *base;
    char dir[32], registry[64], endpoint[128], registration[128];
    struct dra_driver_config config;
    struct dra_driver *driver;
    struct client client;
    char seen[512]; /* what the handler was asked */
    struct dra_reply *replies[4];
    size_t reply_count;
    bool sick;
};

static void note(struct world *w, const char *verb, const struct dra_claim *claim,
                 struct dra_reply *reply)
{
    size_t n = strlen(w->seen);
    snprintf(w->seen + n, sizeof w->seen - n, "%s %s/%s %s\n", verb, claim->namespace_, claim->name,
             claim->uid);
    assert_true(w->reply_count < ARRAY_LEN(w->replies));
    w->replies[w->reply_count++] = reply;
}

static void prepare(const struct dra_claim *claim, struct dra_reply *reply, void *arg)
{
    note(arg, "prepare", claim, reply);
}

static void unprepare(const struct dra_claim *claim, struct dra_reply *reply, void *arg)
{
    note(arg, "unprepare", claim, reply);
}

static void registered(bool ok, const char *error, void *arg)
{
    struct world *w = arg;
    snprintf(w->seen, sizeof w->seen, "%s: %s", ok ? "registered" : "refused", error);
}

static void health(dra_health_fn put, void *put_arg, void *arg)
{
    const struct world *w = arg;
    put(&(struct dra_health){"node-1", "nic-1", NULL}, put_arg);
    put(&(struct dra_health){"node-1", "nic-2", w->sick ? "no carrier" : NULL}, put_arg);
}

static const struct dra_handler handler = {prepare, unprepare, registered, health};

static int start(struct world *w, struct drarun_error *err)
{
    return dra_driver_new(w->base, &w->config, &handler, w, &w->driver, err);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct drarun_error err = {0};
    *state = w;
    snprintf(w->dir, sizeof w->dir, "/tmp/dra_test.XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->registry, sizeof w->registry, "%s/registry", w->dir);
    assert_int_equal(mkdir(w->registry, 0700), 0);
    snprintf(w->endpoint, sizeof w->endpoint, "%s/nic.test/dra-" INSTANCE ".sock", w->dir);
    snprintf(w->registration, sizeof w->registration, "%s/nic.test-" INSTANCE "-reg.sock",
             w->registry);
    w->config = (struct dra_driver_config){"nic.test", w->dir, w->registry, INSTANCE};
    w->base = event_base_new();
    if (start(w, &err) < 0)
        fail_msg("%s", err.text);
    client_init(&w->client, w->base, w->endpoint);
    return 0;
}

static int take_down(void **state)
{
    struct world *w = *state;
    client_done(&w->client);
    dra_driver_free(w->driver);
    event_base_free(w->base);
    tree_remove(AT_FDCWD, w->dir);
    free(w);
    return 0;
}

/* ---- registration ---- */

static void check_info(struct world *w, const char *registration, const char *endpoint)
{
    static const char *const versions[] = {"v1.DRAPlugin", "v1beta1.DRAPlugin",
                                           "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"};
    struct client kubelet;
    struct response r;
    size_t length;
    client_init(&kubelet, w->base, registration);
    client_call(&kubelet, "/pluginregistration.Registration/GetInfo", "", 0, &r);
    const void *message = client_message(&r, &length);
    Kubelet__PluginInfo *info = kubelet__plugin_info__unpack(NULL, length, message);
    assert_non_null(info);
    assert_string_equal(info->type, "DRAPlugin");
    assert_string_equal(info->name, "nic.test");
    assert_string_equal(info->endpoint, endpoint);
    assert_int_equal(info->n_supported_versions, ARRAY_LEN(versions));
    for (size_t i = 0; i < ARRAY_LEN(versions); i++)
        assert_string_equal(info->supported_versions[i], versions[i]);
    kubelet__plugin_info__free_unpacked(info, NULL);
    buf_done(&r.body);
    client_done(&kubelet);
}

static void the_kubelet_finds_the_driver(void **state)
{
    struct world *w = *state;
    struct stat st;
    check_info(w, w->registration, w->endpoint);
    dra_driver_free(TAKE_PTR(w->driver));
    assert_int_equal(lstat(w->registration, &st), -1);
    assert_int_equal(lstat(w->endpoint, &st), -1);
}

static void driver_without_an_instance(void **state)
{
    struct world *w = *state;
    struct drarun_error err = {0};
    char registration[128], endpoint[128];
    dra_driver_free(TAKE_PTR(w->driver));
    w->config.instance = NULL;
    assert_int_equal(start(w, &err), 0);
    snprintf(registration, sizeof registration, "%s/nic.test-reg.sock", w->registry);
    snprintf(endpoint, sizeof endpoint, "%s/nic.test/dra.sock", w->dir);
    check_info(w, registration, endpoint);
}

static void folder_that_is_missing_is_named(void **state)
{
    struct world *w = *state;
    struct drarun_error err = {0};
    char none[64], expected[256];
    struct dra_driver_config config = w->config;
    struct dra_driver *driver = NULL;
    snprintf(none, sizeof none, "%s/none", w->dir);
    config.plugins_dir = none;
    assert_int_equal(dra_driver_new(w->base, &config, &handler, w, &driver, &err), -ENOENT);
    snprintf(expected, sizeof expected,
             "driver nic.test: make %s/nic.test: No such file or directory", none);
    assert_string_equal(err.text, expected);
    config = w->config;
    config.registry_dir = none;
    assert_int_equal(dra_driver_new(w->base, &config, &handler, w, &driver, &err), -ENOENT);
    snprintf(expected, sizeof expected,
             "driver nic.test: %s/nic.test-" INSTANCE "-reg.sock: No such file or directory", none);
    assert_string_equal(err.text, expected);
    assert_null(driver);
}

static void the_kubelets_word_is_passed_on(void **state)
{
    struct world *w = *state;
    static const char path[] = "/pluginregistration.Registration/NotifyRegistrationStatus";
    struct response r;
    client_call(&w->client, path, "\x08\1", 2, &r);
    assert_string_equal(r.grpc_status, "0");
    assert_string_equal(w->seen, "registered: ");
    buf_done(&r.body);
    client_call(&w->client, path, "\x12\2no", 4, &r);
    assert_string_equal(r.grpc_status, "0");
    assert_string_equal(w->seen, "refused: no");
    buf_done(&r.body);
}

/* ---- sockets of others ---- */

static void make_socket(const char *dir, const char *name, bool listening, int age_s, int *ret_fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct utimbuf times = {.actime = time(NULL) - age_s, .modtime = time(NULL) - age_s};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", dir, name);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    if (listening)
        assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(utime(address.sun_path, &times), 0);
    if (listening)
        *ret_fd = fd;
    else
        close(fd);
}

/* Those of instances that were killed: nobody listens, and not because it is about to. */
static void sockets_of_killed_instances_are_removed(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *name;
        bool listening;
        int age_s;
        bool kept;
    } rows[] = {
#define REST "1234567-89ab-cdef-0123-456789abcdef"
        {"nic.test-a" REST "-reg.sock", false, 70, false},
        {"nic.test-b" REST "-reg.sock", true, 70, true},
        {"nic.test-c" REST "-reg.sock", false, 50, true},
        {"nic.test-g" REST "-reg.sock", false, 70, true},  /* no UID */
        {"nic.test-" REST "-reg.sock", false, 70, true},   /* a digit too few */
        {"nic.test-ff" REST "-reg.sock", false, 70, true}, /* one too many */
        {"gpu.test-a" REST "-reg.sock", false, 70, true},
        {"nic.test-a" REST "-reg.sick", false, 70, true},
        {"nic.test-reg.sock", false, 70, true},
    };
    struct drarun_error err = {0};
    char path[256], folder[64];
    struct stat st;
    int listening = -1;
    dra_driver_free(TAKE_PTR(w->driver));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        make_socket(w->registry, rows[i].name, rows[i].listening, rows[i].age_s, &listening);
    snprintf(folder, sizeof folder, "%s/nic.test", w->dir);
    make_socket(folder, "dra-a" REST ".sock", false, 70, NULL);
    make_socket(folder, "dra-c" REST ".sock", false, 50, NULL);
    snprintf(path, sizeof path, "%s/nic.test-d" REST "-reg.sock", w->registry);
    assert_int_equal(file_replace(path, "x", 1, 0600, FILE_AFTER_ANYTHING, &err), 0);
    assert_int_equal(utime(path, &(struct utimbuf){1, 1}), 0);

    assert_int_equal(start(w, &err), 0);
    assert_int_equal(lstat(path, &st), 0); /* no socket */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(path, sizeof path, "%s/%s", w->registry, rows[i].name);
        if ((lstat(path, &st) == 0) != rows[i].kept)
            fail_msg("%s is %s", rows[i].name, rows[i].kept ? "gone" : "there");
    }
    snprintf(path, sizeof path, "%s/dra-a" REST ".sock", folder);
    assert_int_equal(lstat(path, &st), -1);
    snprintf(path, sizeof path, "%s/dra-c" REST ".sock", folder);
    assert_int_equal(lstat(path, &st), 0);
    close(listening);
}

/* ---- claims ---- */

static char namespace_[] = "ns", first_name[] = "one", second_name[] = "two", first_uid[] = "u-1",
            second_uid[] = "u-2";

/* Both requests are the same on the wire. The call goes out; the response is read later. */
static void send_claims(struct world *w, const char *path, size_t count, struct response *r,
                        struct request *request)
{
    Kubelet__Claim first = KUBELET__CLAIM__INIT, second = KUBELET__CLAIM__INIT;
    Kubelet__Claim *claims[] = {&first, &second};
    Kubelet__NodePrepareResourcesRequest message = KUBELET__NODE_PREPARE_RESOURCES_REQUEST__INIT;
    static uint8_t body[256];
    first.namespace_ = second.namespace_ = namespace_;
    first.name = first_name;
    first.uid = first_uid;
    second.name = second_name;
    second.uid = second_uid;
    message.claims = claims;
    message.n_claims = count;
    size_t length = kubelet__node_prepare_resources_request__pack(&message, body + 5);
    body[4] = (uint8_t)length;
    *request = (struct request){.path = path, .body = body, .length = length + 5};
    client_send(&w->client, request, r);
}

static void claims_are_prepared(void **state)
{
    struct world *w = *state;
    static const char *const paths[] = {V1 "NodePrepareResources", V1BETA1 "NodePrepareResources"};
    static const char *const requests[] = {"gpu", "nic/fast"};
    static const char *const ids[] = {"nic.test/claim=u-2-a", "nic.test/claim=u-2-b"};
    const struct dra_device devices[] = {{requests, 2, "node-1", "nic-1", ids, 2},
                                         {requests + 1, 1, "node-1", "nic-2", NULL, 0}};
    struct drarun_error err = {0};
    struct response r;
    struct request request;
    size_t length;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        w->seen[0] = '\0';
        w->reply_count = 0;
        send_claims(w, paths[i], 2, &r, &request);
        assert_string_equal(w->seen, "prepare ns/one u-1\nprepare ns/two u-2\n");
        assert_false(dra_reply_unwanted(w->replies[0]));
        dra_reply_prepared_take(w->replies[1], devices, 2);
        client_settle(&w->client);
        assert_false(r.closed); /* when all are answered */
        error_set(&err, EBUSY, "nic-3 is in use");
        dra_reply_failed_take(w->replies[0], &err);
        client_await(&w->client, &r);
        const void *bytes = client_message(&r, &length);
        Kubelet__NodePrepareResourcesResponse *answer =
            kubelet__node_prepare_resources_response__unpack(NULL, length, bytes);
        assert_non_null(answer);
        assert_int_equal(answer->n_claims, 2);
        assert_string_equal(answer->claims[0]->key, "u-1");
        assert_string_equal(answer->claims[0]->value->error, "nic-3 is in use");
        assert_int_equal(answer->claims[0]->value->n_devices, 0);
        assert_string_equal(answer->claims[1]->key, "u-2");
        assert_string_equal(answer->claims[1]->value->error, "");
        assert_int_equal(answer->claims[1]->value->n_devices, 2);
        const Kubelet__Device *device = answer->claims[1]->value->devices[0];
        assert_string_equal(device->pool_name, "node-1");
        assert_string_equal(device->device_name, "nic-1");
        assert_int_equal(device->n_request_names, 2);
        assert_string_equal(device->request_names[0], "gpu");
        assert_string_equal(device->request_names[1], "nic"); /* containers list no subrequest */
        assert_int_equal(device->n_cdi_device_ids, 2);
        assert_string_equal(device->cdi_device_ids[0], ids[0]);
        assert_string_equal(device->cdi_device_ids[1], ids[1]);
        device = answer->claims[1]->value->devices[1];
        assert_string_equal(device->device_name, "nic-2");
        assert_int_equal(device->n_request_names, 1);
        assert_int_equal(device->n_cdi_device_ids, 0);
        kubelet__node_prepare_resources_response__free_unpacked(answer, NULL);
        buf_done(&r.body);
    }
}

static void claims_are_unprepared(void **state)
{
    struct world *w = *state;
    static const char *const paths[] = {V1 "NodeUnprepareResources",
                                        V1BETA1 "NodeUnprepareResources"};
    struct drarun_error err = {0};
    struct response r;
    struct request request;
    size_t length;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        w->seen[0] = '\0';
        w->reply_count = 0;
        send_claims(w, paths[i], 2, &r, &request);
        assert_string_equal(w->seen, "unprepare ns/one u-1\nunprepare ns/two u-2\n");
        dra_reply_unprepared_take(w->replies[0]);
        error_set(&err, EIO, "nic-1 is lost");
        dra_reply_failed_take(w->replies[1], &err);
        client_await(&w->client, &r);
        const void *bytes = client_message(&r, &length);
        Kubelet__NodeUnprepareResourcesResponse *answer =
            kubelet__node_unprepare_resources_response__unpack(NULL, length, bytes);
        assert_non_null(answer);
        assert_int_equal(answer->n_claims, 2);
        assert_string_equal(answer->claims[0]->key, "u-1");
        assert_string_equal(answer->claims[0]->value->error, "");
        assert_string_equal(answer->claims[1]->key, "u-2");
        assert_string_equal(answer->claims[1]->value->error, "nic-1 is lost");
        kubelet__node_unprepare_resources_response__free_unpacked(answer, NULL);
        buf_done(&r.body);
    }
}

static void call_without_claims_is_answered(void **state)
{
    struct world *w = *state;
    static const char *const paths[] = {V1 "NodePrepareResources", V1 "NodeUnprepareResources"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct response r;
        size_t length;
        client_call(&w->client, paths[i], "", 0, &r);
        client_message(&r, &length);
        assert_int_equal(length, 0);
        assert_string_equal(w->seen, "");
        buf_done(&r.body);
    }
}

static void other_messages_are_refused(void **state)
{
    struct world *w = *state;
    static const char *const paths[] = {"/pluginregistration.Registration/GetInfo",
                                        "/pluginregistration.Registration/NotifyRegistrationStatus",
                                        V1 "NodePrepareResources", V1 "NodeUnprepareResources"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct response r;
        client_call(&w->client, paths[i], "\x0a\x7f", 2, &r);
        assert_string_equal(r.grpc_status, "3");
        assert_string_equal(r.grpc_message,
                            "the request is not the message that this method takes");
        assert_string_equal(w->seen, "");
    }
}

/* The kubelet has given the call up, or has ended: the answer goes nowhere. */
static void unwanted_replies_are_taken(void **state)
{
    struct world *w = *state;
    struct response r;
    struct request request;
    send_claims(w, V1 "NodePrepareResources", 2, &r, &request);
    nghttp2_submit_rst_stream(w->client.session, 0, r.stream, NGHTTP2_CANCEL);
    client_settle(&w->client);
    assert_true(dra_reply_unwanted(w->replies[0]));
    dra_reply_prepared_take(w->replies[0], NULL, 0);
    assert_true(dra_reply_unwanted(w->replies[1]));
    dra_reply_unprepared_take(w->replies[1]);
}

/* ---- health ---- */

/* The last message of a stream: its only one since the last look. */
static void check_health(struct response *r, const char *why)
{
    size_t length;
    snprintf(r->grpc_status, sizeof r->grpc_status, "0"); /* which comes with the end */
    const void *bytes = client_message(r, &length);
    Kubelet__NodeWatchResourcesResponse *answer =
        kubelet__node_watch_resources_response__unpack(NULL, length, bytes);
    assert_non_null(answer);
    assert_int_equal(answer->n_devices, 2);
    for (size_t i = 0; i < 2; i++) {
        const Kubelet__DeviceHealth *device = answer->devices[i];
        const char *told = i ? why : "";
        assert_string_equal(device->device->pool_name, "node-1");
        assert_string_equal(device->device->device_name, i ? "nic-2" : "nic-1");
        assert_int_equal(device->health, *told ? KUBELET__HEALTH_STATUS__UNHEALTHY
                                               : KUBELET__HEALTH_STATUS__HEALTHY);
        assert_string_equal(device->message, told);
        assert_true(device->last_updated_time > 1000000000);
        assert_true(device->last_updated_time <= time(NULL));
    }
    kubelet__node_watch_resources_response__free_unpacked(answer, NULL);
    buf_reset(&r->body);
}

static void health_is_told_to_each_that_listens(void **state)
{
    struct world *w = *state;
    static const struct request requests[] = {
        {"/v1.DRAResourceHealth/NodeWatchResources", NULL, NULL, "\0\0\0\0\0", 5},
        {"/v1alpha1.DRAResourceHealth/NodeWatchResources", NULL, NULL, "\0\0\0\0\0", 5}};
    struct response r[2];
    dra_driver_health_changed(w->driver); /* nobody listens */
    for (size_t i = 0; i < 2; i++) {
        client_send(&w->client, &requests[i], &r[i]);
        check_health(&r[i], "");
    }
    w->sick = true;
    dra_driver_health_changed(w->driver);
    client_settle(&w->client);
    for (size_t i = 0; i < 2; i++)
        check_health(&r[i], "no carrier");
    nghttp2_submit_rst_stream(w->client.session, 0, r[1].stream, NGHTTP2_CANCEL);
    client_settle(&w->client);
    w->sick = false;
    dra_driver_health_changed(w->driver);
    client_settle(&w->client);
    check_health(&r[0], "");
    assert_int_equal(r[1].body.len, 0);
    assert_false(r[0].closed);
    for (size_t i = 0; i < 2; i++)
        buf_done(&r[i].body);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, take_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_kubelet_finds_the_driver),
        CASE(driver_without_an_instance),
        CASE(folder_that_is_missing_is_named),
        CASE(the_kubelets_word_is_passed_on),
        CASE(sockets_of_killed_instances_are_removed),
        CASE(claims_are_prepared),
        CASE(claims_are_unprepared),
        CASE(call_without_claims_is_answered),
        CASE(other_messages_are_refused),
        CASE(unwanted_replies_are_taken),
        CASE(health_is_told_to_each_that_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
