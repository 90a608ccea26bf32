/* SPDX-License-Identifier: Apache-2.0 */
/* Claims of RDMA devices are prepared and taken back, in folders of the test's; it is the API
 * server and the kubelet, and the hook is a script that says what it was asked. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/test/skip.h"
#include "lib/kube/object.h"
#include "plugin/attach/address.h"
#include "plugin/attach/link.h"
#include "plugin/attach/order.h"
#include "plugin/prepare/preparer_private.h"

#define DRIVER "nic.test"

static struct {
    struct event_base *base;
    struct preparer *preparer;
    struct node_devices devices;
    struct claim_limits limits;
    struct preparer_config config;
    char top[32], state[64], orders[64], cdi[64], hook[64], hook_said[64], hook_status[64];
    /* the call under way */
    char asked[128];
    kube_call_fn fn;
    void *arg;
    char answer[1024]; /* to the kubelet */
    bool unwanted;
} w;

int __wrap_kube_get(struct kube_client *client, const struct kube_target *target, kube_call_fn fn,
                    void *arg, struct kube_call **ret_call, struct drarun_error *err);
int __wrap_kube_get(struct kube_client *client, const struct kube_target *target, kube_call_fn fn,
                    void *arg, struct kube_call **ret_call, struct drarun_error *err)
{
    (void)client, (void)err;
    snprintf(w.asked, sizeof w.asked, "%s/%s/%s/%s", target->resource->version,
             target->resource->plural, target->namespace_, target->name);
    w.fn = fn;
    w.arg = arg;
    *ret_call = (struct kube_call *)&w;
    return 0;
}

void __wrap_kube_call_cancel(struct kube_call *call);
void __wrap_kube_call_cancel(struct kube_call *call)
{
    if (call)
        w.asked[0] = '\0';
}

void __wrap_dra_reply_prepared_take(struct dra_reply *r, const struct dra_device *devices,
                                    size_t count);
void __wrap_dra_reply_prepared_take(struct dra_reply *r, const struct dra_device *devices,
                                    size_t count)
{
    (void)r;
    snprintf(w.answer, sizeof w.answer, "prepared");
    for (size_t i = 0; i < count; i++)
        for (size_t id = 0; id < devices[i].cdi_id_count; id++) {
            size_t n = strlen(w.answer);
            snprintf(w.answer + n, sizeof w.answer - n, " %s", devices[i].cdi_ids[id]);
        }
}

void __wrap_dra_reply_unprepared_take(struct dra_reply *r);
void __wrap_dra_reply_unprepared_take(struct dra_reply *r)
{
    (void)r;
    snprintf(w.answer, sizeof w.answer, "unprepared");
}

void __wrap_dra_reply_failed_take(struct dra_reply *r, const struct drarun_error *err);
void __wrap_dra_reply_failed_take(struct dra_reply *r, const struct drarun_error *err)
{
    (void)r;
    snprintf(w.answer, sizeof w.answer, "%s", err->text);
}

bool __wrap_dra_reply_unwanted(const struct dra_reply *r);
bool __wrap_dra_reply_unwanted(const struct dra_reply *r)
{
    (void)r;
    return w.unwanted;
}

/* A quarter of a second later, which the test may take. */
int __wrap_claim_status_write(struct kube_client *client, const struct kube_resource *claims,
                              const struct checkpoint *checkpoint, kube_call_fn fn, void *arg,
                              struct kube_call **ret_call, struct drarun_error *err);
int __wrap_claim_status_write(struct kube_client *client, const struct kube_resource *claims,
                              const struct checkpoint *checkpoint, kube_call_fn fn, void *arg,
                              struct kube_call **ret_call, struct drarun_error *err)
{
    (void)client, (void)claims, (void)checkpoint, (void)fn, (void)arg, (void)ret_call;
    return error_set(err, EIO, "not in this test");
}

/* ---- the node ---- */

static const struct node_devices *devices_now(void *arg)
{
    (void)arg;
    return &w.devices;
}

static const char *version_now(void *arg)
{
    (void)arg;
    return "v1beta2";
}

static void add_device(const char *name, const char *rdma)
{
    struct node_device *device = node_devices_add(&w.devices);
    device->kind = NODE_DEVICE_NIC;
    device->rail = device->pci.numa = -1;
    snprintf(device->name, sizeof device->name, "%s", name);
    snprintf(device->rdma.name, sizeof device->rdma.name, "%s", rdma);
}

static void start_plugin(void)
{
    struct drarun_error err = {0};
    preparer_free(w.preparer);
    w.preparer = NULL;
    if (preparer_new(w.base, NULL, &w.config, &w.preparer, &err) < 0)
        fail_msg("%s", err.text);
}

static int set_up(void **state)
{
    char script[512];
    (void)state;
    memset(&w, 0, sizeof w);
    snprintf(w.top, sizeof w.top, "/tmp/preparer_test.XXXXXX");
    assert_non_null(mkdtemp(w.top));
    snprintf(w.state, sizeof w.state, "%s/state", w.top);
    snprintf(w.orders, sizeof w.orders, "%s/orders", w.top);
    snprintf(w.cdi, sizeof w.cdi, "%s/cdi", w.top);
    snprintf(w.hook, sizeof w.hook, "%s/hook", w.top);
    snprintf(w.hook_said, sizeof w.hook_said, "%s/said", w.top);
    snprintf(w.hook_status, sizeof w.hook_status, "%s/status", w.top);
    snprintf(
        script, sizeof script,
        "#!/bin/sh\necho \"$*\" >>%s\n[ ! -e %s ] || { echo broken >&2; read s <%s; exit $s; }\n",
        w.hook_said, w.hook_status, w.hook_status);
    assert_int_equal(file_replace(w.hook, script, strlen(script), 0755, FILE_AFTER_ANYTHING, NULL),
                     0);
    add_device("a", "mlx5_0");
    add_device("b", "mlx5_1");
    add_device("c", "mlx5_2");
    w.base = event_base_new();
    w.config = (struct preparer_config){.driver = DRIVER,
                                        .devices_of = NODE_DRIVER_NIC,
                                        .node = "n0",
                                        .state_dir = w.state,
                                        .orders_dir = w.orders,
                                        .cdi_dir = w.cdi,
                                        .host_root = -1,
                                        .agent_dir = "/nonexistent",
                                        .hook = w.hook,
                                        .claims = &w.limits,
                                        .devices = devices_now,
                                        .claims_version = version_now};
    start_plugin();
    return 0;
}

static int take_down(void **state)
{
    (void)state;
    preparer_free(w.preparer);
    node_devices_done(&w.devices);
    event_base_free(w.base);
    return tree_remove(AT_FDCWD, w.top);
}

/* ---- calls ---- */

static const struct dra_claim one = {"train", "one", "u-1"}, two = {"train", "two", "u-2"};

static void prepare(const struct dra_claim *claim)
{
    char expected[128];
    w.answer[0] = '\0';
    preparer_prepare(w.preparer, claim, (struct dra_reply *)&w);
    snprintf(expected, sizeof expected, "v1beta2/resourceclaims/train/%s", claim->name);
    assert_string_equal(w.asked, expected);
}

/* The server's answer, with '' for "". */
static void answer(const char *text)
{
    char json[2048];
    snprintf(json, sizeof json, "%s", text);
    for (char *p = json; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    CLEANUP(json_decrefp) json_t *body = json_loads(json, 0, NULL);
    const struct kube_answer reply = {.status = 200, .body = body};
    assert_non_null(body);
    w.asked[0] = '\0';
    w.fn(&reply, NULL, w.arg);
}

#define RESULT(request, device)                                                                    \
    "{'request':'" request "','driver':'" DRIVER "','pool':'n0','device':'" device "'}"

static void answer_claim(const struct dra_claim *claim, const char *results)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{'metadata':{'namespace':'train','name':'%s','uid':'%s'},'status':{'allocation':"
             "{'devices':{'results':[%s]}},'reservedFor':[{'resource':'pods','name':'p',"
             "'uid':'pu'}]}}",
             claim->name, claim->uid, results);
    answer(text);
}

static void answer_pod(const char *claim)
{
    char text[1024];
    assert_string_equal(w.asked, "v1/pods/train/p");
    snprintf(text, sizeof text,
             "{'metadata':{'namespace':'train','name':'p','uid':'pu'},'spec':{'nodeName':'n0',"
             "'resourceClaims':[{'name':'nics','resourceClaimName':'%s'}],"
             "'containers':[{'name':'c','resources':{'claims':[{'name':'nics'}]}}]}}",
             claim);
    answer(text);
}

static void prepare_whole(const struct dra_claim *claim, const char *results)
{
    prepare(claim);
    answer_claim(claim, results);
    answer_pod(claim->name);
}

static void unprepare(const struct dra_claim *claim)
{
    w.answer[0] = '\0';
    preparer_unprepare(w.preparer, claim, (struct dra_reply *)&w);
    while (!w.answer[0])
        event_base_loop(w.base, EVLOOP_ONCE);
}

static bool is_there(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void hook_was_asked(const char *expected)
{
    struct buf text = BUF_INIT;
    file_read(AT_FDCWD, w.hook_said, 4096, &text, NULL);
    assert_string_equal(text.data ? text.data : "", expected);
    buf_done(&text);
    unlink(w.hook_said);
}

static void nothing_of_one_is_written(void)
{
    assert_false(is_there(w.orders, "u-1.a.json") || is_there(w.orders, "u-1.b.json") ||
                 is_there(w.orders, "u-1.a.json.returning") ||
                 is_there(w.orders, "u-1.nic.metadata"));
    assert_false(is_there(w.cdi, DRIVER "-claim_u-1.json"));
    assert_false(is_there(w.state, DRIVER "/u-1.json"));
}

static void nothing_is_left_of_one(void)
{
    nothing_of_one_is_written();
    assert_false(preparer_holds(w.preparer, "a") || preparer_holds(w.preparer, "b"));
}

#define A RESULT("nic", "a")
#define B RESULT("nic", "b")
#define PREPARED_A "prepared " DRIVER "/claim=u-1-a " DRIVER "/claim=u-1_metadata_nic"
#define PREPARED_AB PREPARED_A " " DRIVER "/claim=u-1-b " DRIVER "/claim=u-1_metadata_nic"

static void claim_is_prepared_and_taken_back(void **state)
{
    char expected[256];
    struct preparer_counts counts;
    (void)state;
    prepare_whole(&one, A "," B);
    assert_string_equal(w.answer, PREPARED_AB);
    assert_true(is_there(w.orders, "u-1.a.json") && is_there(w.orders, "u-1.b.json"));
    assert_true(is_there(w.orders, "u-1.nic.metadata"));
    assert_true(is_there(w.cdi, DRIVER "-claim_u-1.json"));
    assert_true(is_there(w.state, DRIVER "/u-1.json"));
    assert_true(preparer_holds(w.preparer, "a") && preparer_holds(w.preparer, "b"));
    assert_true(preparer_is_busy(w.preparer)); /* the status is written later */
    for (int i = 0; i < 2; i++) {              /* also by an instance that starts now */
        prepare(&one);
        answer_claim(&one, B "," A);
        assert_string_equal(w.answer, PREPARED_AB);
        start_plugin();
        assert_true(preparer_holds(w.preparer, "a") && preparer_holds(w.preparer, "b"));
    }
    unprepare(&one);
    assert_string_equal(w.answer, "unprepared");
    snprintf(expected, sizeof expected, "restore %s/u-1.a.json.returning %s/u-1.b.json.returning\n",
             w.orders, w.orders);
    hook_was_asked(expected);
    nothing_is_left_of_one();
    unprepare(&one);
    assert_string_equal(w.answer, "unprepared");
    hook_was_asked("");
    preparer_count(w.preparer, &counts);
    assert_int_equal(counts.unprepared, 2);
    assert_int_equal(counts.claims, 0);
}

static void what_cannot_be_prepared(void **state)
{
    static const struct {
        const char *results, *finding; /* which it begins with */
    } rows[] = {
        {RESULT("nic", "x"), "prepare claim train/one: device x: device x is not on this node"},
        {RESULT("nic", "c"), "prepare claim train/one: device c: device c is lost: it is gone"},
    };
    struct drarun_error err = {0};
    const struct kube_answer none = {.status = 404};
    (void)state;
    w.devices.list[2].lost = true;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        prepare_whole(&one, rows[i].results);
        if (strncmp(w.answer, rows[i].finding, strlen(rows[i].finding)) != 0)
            fail_msg("%s", w.answer);
        nothing_is_left_of_one();
    }
    prepare(&one);
    error_set(&err, ENOENT, "no such claim");
    w.fn(&none, &err, w.arg);
    assert_string_equal(w.answer, "prepare claim train/one: no such claim");
    prepare(&one);
    answer_claim(&one, A);
    w.fn(&none, &err, w.arg); /* nor a pod */
    assert_string_equal(w.answer, "prepare claim train/one: no such claim");
    prepare(&one);
    answer_claim(&one, A);
    w.unwanted = true;
    answer_pod("one");
    assert_string_equal(w.answer,
                        "prepare claim train/one: the kubelet does not wait for it any more");
    w.unwanted = false;
    prepare(&one);
    answer_claim(&one, A);
    answer_pod("two");
    assert_string_equal(w.answer, "prepare claim train/one: pod train/p does not name claim one");
    nothing_is_left_of_one();
}

/* Without the API server a claim that is prepared stays so. */
static void prepared_claim_without_a_server(void **state)
{
    struct drarun_error err = {0};
    const struct kube_answer none = {.status = 0}, refused = {.status = 403};
    (void)state;
    prepare_whole(&one, A);
    prepare(&one);
    error_set(&err, ECONNREFUSED, "no server");
    w.fn(&none, &err, w.arg);
    assert_string_equal(w.answer, PREPARED_A);
    prepare(&one);
    w.fn(&refused, &err, w.arg); /* which has answered */
    assert_string_equal(w.answer, "prepare claim train/one: no server");
    prepare(&two);
    w.fn(&none, &err, w.arg); /* nothing is known of that one */
    assert_string_equal(w.answer, "prepare claim train/two: no server");
}

static void claim_that_has_other_devices_now(void **state)
{
    char expected[256];
    (void)state;
    prepare_whole(&one, A);
    prepare(&one);
    answer_claim(&one, B);
    while (!w.asked[0])
        event_base_loop(w.base, EVLOOP_ONCE);
    snprintf(expected, sizeof expected, "restore %s/u-1.a.json.returning\n", w.orders);
    hook_was_asked(expected);
    answer_claim(&one, B);
    answer_pod("one");
    assert_string_equal(w.answer,
                        "prepared " DRIVER "/claim=u-1-b " DRIVER "/claim=u-1_metadata_nic");
    assert_false(preparer_holds(w.preparer, "a"));
    assert_true(preparer_holds(w.preparer, "b"));
}

static void devices_that_cannot_be_taken_back(void **state)
{
    struct preparer_counts counts;
    (void)state;
    prepare_whole(&one, A);
    assert_int_equal(file_replace(w.hook_status, "1\n", 2, 0600, FILE_AFTER_ANYTHING, NULL), 0);
    unprepare(&one);
    assert_non_null(strstr(w.answer, "unprepare claim train/one: "));
    assert_non_null(strstr(w.answer, "broken"));
    assert_true(preparer_is_stuck(w.preparer, "a"));
    assert_false(preparer_is_stuck(w.preparer, "b"));
    assert_true(preparer_holds(w.preparer, "a"));
    assert_true(is_there(w.state, DRIVER "/u-1.json"));
    assert_int_equal(unlink(w.hook), 0);
    unprepare(&one);
    assert_non_null(strstr(w.answer, "unprepare claim train/one: "));
    assert_int_equal(symlink("/bin/true", w.hook), 0);
    unprepare(&one);
    assert_string_equal(w.answer, "unprepared");
    nothing_is_left_of_one();
    preparer_count(w.preparer, &counts);
    assert_int_equal(counts.not_unprepared, 2);
    assert_int_equal(counts.unprepared, 1);
}

/* The scheduler gives a device to the next claim before the one before has given it back. */
static void device_of_another_claim_is_waited_for(void **state)
{
    (void)state;
    prepare_whole(&one, A);
    prepare_whole(&two, A);
    assert_string_equal(w.answer, ""); /* until it is given back */
    assert_string_equal(w.asked, "v1beta2/resourceclaims/train/one");
    assert_string_equal(preparer_holder(w.preparer, "a", NULL)->uid, "u-1");
    unprepare(&one);
    while (strcmp(w.answer, "unprepared") == 0)
        event_base_loop(w.base, EVLOOP_ONCE);
    assert_string_equal(w.answer,
                        "prepared " DRIVER "/claim=u-2-a " DRIVER "/claim=u-2_metadata_nic");
    assert_string_equal(preparer_holder(w.preparer, "a", NULL)->uid, "u-2");
    nothing_of_one_is_written();
}

/* An interface cannot be the own one of a pod on the host's network. */
static void pod_on_the_hosts_network(void **state)
{
    (void)state;
    snprintf(w.devices.list[0].netdev.name, sizeof w.devices.list[0].netdev.name, "nic-none");
    prepare(&one);
    answer_claim(&one, A);
    answer("{'metadata':{'namespace':'train','name':'p','uid':'pu'},'spec':{'nodeName':'n0',"
           "'hostNetwork':true,'resourceClaims':[{'name':'nics','resourceClaimName':'one'}],"
           "'containers':[{'name':'c','resources':{'claims':[{'name':'nics'}]}}]}}");
    assert_string_equal(w.answer,
                        "prepare claim train/one: device a: pod p is on the host's network "
                        "(hostNetwork: true), where nic-none cannot be its own: leave hostNetwork "
                        "away, or the claim");
    nothing_is_left_of_one();
    prepare_whole(&one, A);
    assert_string_equal(w.answer,
                        "prepare claim train/one: device a: device a is not on this host");
    nothing_is_left_of_one();
}

/* A virtual device ends with its pod. */
static void device_that_is_gone(void **state)
{
    (void)state;
    prepare_whole(&one, A);
    assert_int_equal(file_replace(w.hook_status, "3\n", 2, 0600, FILE_AFTER_ANYTHING, NULL), 0);
    unprepare(&one);
    assert_string_equal(w.answer, "unprepared");
    nothing_is_left_of_one();
}

/* What its orders say is taken back. */
static void damaged_checkpoint(void **state)
{
    char path[128], expected[256];
    (void)state;
    prepare_whole(&one, A);
    snprintf(path, sizeof path, "%s/" DRIVER "/u-1.json", w.state);
    assert_int_equal(file_replace(path, "{", 1, 0600, FILE_AFTER_ANYTHING, NULL), 0);
    start_plugin();
    assert_true(preparer_holds(w.preparer, "a"));
    unprepare(&one);
    assert_string_equal(w.answer, "unprepared");
    snprintf(expected, sizeof expected, "restore %s/u-1.a.json.returning\n", w.orders);
    hook_was_asked(expected);
    nothing_is_left_of_one();
}

static void calls_under_way_end_with_the_plugin(void **state)
{
    (void)state;
    prepare(&one);
    preparer_free(TAKE_PTR(w.preparer));
    assert_string_equal(w.answer, "the plugin is ending");
    assert_string_equal(w.asked, "");
}

static void on_device(const struct node_device *device, void *arg)
{
    struct buf *names = arg;
    buf_printf(names, "%s ", device->name);
}

static void held_devices_are_listed(void **state)
{
    struct buf names = BUF_INIT;
    (void)state;
    prepare_whole(&one, A "," B);
    preparer_each(w.preparer, on_device, &names);
    assert_string_equal(names.data, "a b ");
    buf_done(&names);
}

/* ---- a device with an interface ---- */

static int make_nic(const char *mac)
{
    CLEANUP(netlink_done) struct netlink n = {0};
    struct ifinfomsg head = {.ifi_family = AF_UNSPEC};
    struct ip_prefix address;
    struct hw_addr hw;
    struct link link;
    if (unshare(CLONE_NEWNET) < 0)
        return -1;
    assert_true(hw_addr_parse(mac, &hw) && ip_prefix_parse("10.0.0.2/24", &address));
    assert_int_equal(netlink_open(&n, -1, NETLINK_ROUTE, NULL), 0);
    struct nl_msg *msg = netlink_message(RTM_NEWLINK, NLM_F_CREATE, &head, sizeof head);
    netlink_put_text(msg, IFLA_IFNAME, "nic0");
    netlink_put(msg, IFLA_ADDRESS, hw.bytes, hw.len);
    struct nlattr *info = nla_nest_start(msg, IFLA_LINKINFO);
    netlink_put_text(msg, IFLA_INFO_KIND, "veth");
    nla_nest_end(msg, info);
    assert_int_equal(netlink_do_take(&n, msg, NULL), 0);
    assert_int_equal(link_by_name(&n, "nic0", &link, NULL), 1);
    assert_int_equal(addresses_ensure(&n, link.index, &address, 1, NULL), 0);
    return 0;
}

/* The hook finds how the device is on the host; in the pod it keeps its name and its addresses. */
static void interface_is_as_the_host_has_it(void **state)
{
    static const char mac[] = "02:00:00:00:00:31";
    char path[128];
    struct attach_order order;
    struct drarun_error err = {0};
    struct node_netdev *netdev = &w.devices.list[0].netdev;
    (void)state;
    if (make_nic(mac) < 0)
        skip_for("needs root, with a network namespace of its own");
    snprintf(netdev->name, sizeof netdev->name, "nic0");
    snprintf(netdev->mac, sizeof netdev->mac, "%s", mac);
    prepare_whole(&one, A);
    assert_string_equal(w.answer, PREPARED_A);
    snprintf(path, sizeof path, "%s/u-1.a.json", w.orders);
    if (attach_order_load(AT_FDCWD, path, &order, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(order.claim_namespace, "train");
    assert_string_equal(order.claim_name, "one");
    assert_string_equal(order.claim_uid, "u-1");
    assert_string_equal(order.device, "a");
    assert_string_equal(order.rdma, "mlx5_0");
    assert_string_equal(order.pci, "");
    assert_string_equal(order.host.name, "nic0");
    assert_int_equal(order.host.mtu, 1500);
    assert_int_equal(order.host.address_count, 1);
    assert_false(order.host.up);
    assert_true(hw_addr_equal(&order.mac, &order.host.hw));
    assert_string_equal(order.config.interface.name, "nic0");
    assert_int_equal(order.config.interface.address_count, 1);
    assert_true(ip_prefix_equal(order.config.interface.addresses, order.host.addresses));
    attach_order_done(&order);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, take_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(claim_is_prepared_and_taken_back),
        CASE(what_cannot_be_prepared),
        CASE(prepared_claim_without_a_server),
        CASE(claim_that_has_other_devices_now),
        CASE(devices_that_cannot_be_taken_back),
        CASE(device_of_another_claim_is_waited_for),
        CASE(pod_on_the_hosts_network),
        CASE(device_that_is_gone),
        CASE(damaged_checkpoint),
        CASE(calls_under_way_end_with_the_plugin),
        CASE(held_devices_are_listed),
        CASE(interface_is_as_the_host_has_it), /* last: in a network namespace of its own */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
