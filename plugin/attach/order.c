/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/order.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/fields.h"
#include "plugin/attach/net_config_private.h"

static void order_donep(struct attach_order *order)
{
    attach_order_done(order);
}

void host_link_done(struct host_link *host)
{
    free(host->addresses);
    json_decref(host->features);
    json_decref(host->private_flags);
    *host = (struct host_link){0};
}

void attach_order_done(struct attach_order *order)
{
    host_link_done(&order->host);
    net_config_done(&order->config);
}

/* ---- reading ---- */

/* One path component: it may become part of a file's name or of a message. */
static bool plain(const char *text)
{
    for (const char *p = text; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-_.:", *p))
            return false;
    return strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

static void read_text(const struct reader_node *node, char *out, size_t size)
{
    const char *text = NULL;
    if (reader_text(node, &text) < 0)
        return;
    if (strlen(text) >= size || !plain(text))
        reader_expected(node, "letters, digits, \"-\", \"_\", \".\" and \":\", and not too many");
    else
        memcpy(out, text, strlen(text) + 1);
}

static void read_name(const struct reader_node *node, void *field)
{
    read_text(node, field, ATTACH_NAME_MAX);
}

static void read_uid(const struct reader_node *node, void *field)
{
    read_text(node, field, 64);
}

static void read_interface_name(const struct reader_node *node, void *field)
{
    net_name_read(node, field);
}

/* "0000:8f:00.0"; domains of more digits are those of Intel's VMD and Hyper-V. */
static bool is_pci(const char *text)
{
    size_t domain = strspn(text, "0123456789abcdef");
    const char *rest = text + domain;
    return domain >= 4 && domain <= 8 && rest[0] == ':' && isxdigit((unsigned char)rest[1]) &&
           isxdigit((unsigned char)rest[2]) && rest[3] == ':' && isxdigit((unsigned char)rest[4]) &&
           isxdigit((unsigned char)rest[5]) && rest[6] == '.' && rest[7] >= '0' && rest[7] <= '7' &&
           !rest[8];
}

static void read_pci(const struct reader_node *node, void *field)
{
    const char *text = NULL;
    if (reader_text(node, &text) < 0)
        return;
    if (is_pci(text))
        memcpy(field, text, strlen(text) + 1);
    else
        reader_expected(node, "a PCI address like \"0000:8f:00.0\"");
}

static void read_parent(const struct reader_node *node, void *field)
{
    const char *text = json_string_value(node->value);
    if (!text || *text) /* "": the kernel names none */
        read_text(node, field, sizeof((struct attach_order *)0)->parent);
}

static void read_mac(const struct reader_node *node, void *field)
{
    const char *text = NULL;
    if (reader_text(node, &text) == 0 && !hw_addr_parse(text, field))
        reader_expected(node, "a hardware address like \"02:00:00:00:00:01\"");
}

static void read_host_addresses(const struct reader_node *node, void *field)
{
    struct host_link *host = field;
    net_prefixes_read(node, &host->addresses, &host->address_count);
}

static void read_config(const struct reader_node *node, void *field)
{
    net_config_read(node, field);
}

static const struct field host_fields[] = {
    {"name", FIELD_CALL, offsetof(struct host_link, name), .read = read_interface_name},
    {"mtu", FIELD_COUNT, offsetof(struct host_link, mtu), 1, INT32_MAX},
    {"up", FIELD_BOOL, offsetof(struct host_link, up)},
    {"ebpf", FIELD_BOOL, offsetof(struct host_link, ebpf)},
    {"addresses", FIELD_CALL, .read = read_host_addresses},
    {"hardwareAddr", FIELD_CALL, offsetof(struct host_link, hw), .read = read_mac},
    {"gsoMaxSize", FIELD_COUNT, offsetof(struct host_link, gso), 1, UINT32_MAX},
    {"groMaxSize", FIELD_COUNT, offsetof(struct host_link, gro), 1, UINT32_MAX},
    {"gsoIPv4MaxSize", FIELD_COUNT, offsetof(struct host_link, gso4), 1, UINT32_MAX},
    {"groIPv4MaxSize", FIELD_COUNT, offsetof(struct host_link, gro4), 1, UINT32_MAX},
    {"features", FIELD_CALL, offsetof(struct host_link, features), .read = net_switches_read},
    {"privateFlags", FIELD_CALL, offsetof(struct host_link, private_flags),
     .read = net_switches_read},
};
static const struct field_table host_table = {host_fields, ARRAY_LEN(host_fields)};

static const struct field claim_fields[] = {
    {"namespace", FIELD_CALL, offsetof(struct attach_order, claim_namespace), .read = read_name},
    {"name", FIELD_CALL, offsetof(struct attach_order, claim_name), .read = read_name},
    {"uid", FIELD_CALL, offsetof(struct attach_order, claim_uid), .read = read_uid},
};
static const struct field_table claim_table = {claim_fields, ARRAY_LEN(claim_fields)};

static void read_version(const struct reader_node *node, void *field)
{
    (void)node, (void)field; /* known_version did */
}

static const struct field order_fields[] = {
    {"version", FIELD_CALL, .read = read_version},
    {"claim", FIELD_GROUP, .group = &claim_table},
    {"device", FIELD_CALL, offsetof(struct attach_order, device), .read = read_name},
    {"pci", FIELD_CALL, offsetof(struct attach_order, pci), .read = read_pci},
    {"parent", FIELD_CALL, offsetof(struct attach_order, parent), .read = read_parent},
    {"mac", FIELD_CALL, offsetof(struct attach_order, mac), .read = read_mac},
    {"rdma", FIELD_CALL, offsetof(struct attach_order, rdma), .read = read_uid},
    {"host", FIELD_GROUP, offsetof(struct attach_order, host), .group = &host_table},
    {"config", FIELD_CALL, offsetof(struct attach_order, config), .read = read_config},
};
static const struct field_table order_table = {order_fields, ARRAY_LEN(order_fields)};

/* Before all else: of another version's order nothing else that could be said would be true. */
static bool known_version(const struct reader_node *root)
{
    struct reader_node node;
    int64_t version = 0;
    if (reader_object(root) < 0)
        return false;
    if (!reader_get(root, "version", &node)) {
        reader_fail(root, "an order needs \"version\"");
        return false;
    }
    if (reader_integer(&node, 1, INT32_MAX, &version) < 0)
        return false;
    if (version != ATTACH_ORDER_VERSION)
        reader_fail(&node,
                    "this program reads version %d; use the drarun-attach of the plugin that "
                    "wrote the order",
                    ATTACH_ORDER_VERSION);
    return version == ATTACH_ORDER_VERSION;
}

/* That of most NICs is their function, and is not written twice. */
static void default_parent(const struct reader_node *root, struct attach_order *order)
{
    struct reader_node node;
    if (!reader_get(root, "parent", &node))
        memcpy(order->parent, order->pci, sizeof order->parent);
}

static void check_whole(const struct reader_node *root, const struct attach_order *order)
{
    if (!order->device[0])
        reader_fail(root, "an order needs \"device\"");
    if (!order->claim_namespace[0] || !order->claim_name[0] || !order->claim_uid[0])
        reader_fail(root, "an order needs \"claim\" with namespace, name and uid");
    if (order->host.name[0] && !order->parent[0] && !order->mac.len)
        reader_fail(root, "an order needs \"pci\", or \"mac\" for a virtual device");
    if (order->host.name[0] && !order->config.interface.name[0])
        reader_fail(root, "an order needs \"config.interface.name\"");
    if (order->host.name[0] && !order->host.mtu)
        reader_fail(root, "an order needs \"host.mtu\"");
    if (!order->host.name[0] && !order->rdma[0])
        reader_fail(root, "an order needs \"host.name\" or \"rdma\"");
}

int attach_order_parse(const char *name, const char *text, size_t len, struct attach_order *ret,
                       struct drarun_error *err)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    CLEANUP(order_donep) struct attach_order order = {.config = NET_CONFIG_INIT};
    struct doc_limits limits = doc_limits_default;
    struct reader reader;
    limits.size = ATTACH_ORDER_SIZE_MAX;
    int rc = doc_parse(name, text, len, DOC_FORMAT_JSON, &limits, &doc, err);
    if (rc < 0)
        return rc;
    if (doc_count(doc) != 1)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: expected one order, got %zu", name,
                          doc_count(doc));
    reader_init(&reader, doc, false);
    struct reader_node root = reader_root(&reader, 0);
    if (known_version(&root) && fields_read(&order_table, &root, &order) && reader.findings == 0) {
        default_parent(&root, &order);
        check_whole(&root, &order);
    }
    rc = reader_result(&reader, err);
    reader_done(&reader);
    if (rc < 0)
        return rc;
    *ret = order;
    order = (struct attach_order){0};
    return 0;
}

/* Another user who could write the file would tell root what to do. */
static int check_file(int fd, const char *path, struct drarun_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return error_set(err, EINVAL, "%s: expected a regular file", path);
    if (st.st_uid != geteuid())
        return error_set(err, EPERM, "%s: belongs to user %u, expected user %u", path, st.st_uid,
                         geteuid());
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return error_set(err, EPERM, "%s: others may write it (mode %o)", path,
                         st.st_mode & 07777u);
    if (st.st_size > (off_t)ATTACH_ORDER_SIZE_MAX)
        return error_set(err, EFBIG, "%s: larger than %zu bytes", path, ATTACH_ORDER_SIZE_MAX);
    return 0;
}

int attach_order_load(int dirfd, const char *path, struct attach_order *ret,
                      struct drarun_error *err)
{
    cleanup_free char *text = malloc(ATTACH_ORDER_SIZE_MAX + 1);
    /* not blocking: a FIFO in its place must not block a pod */
    cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return error_set(err, errno, "%s: %s", path,
                         errno == ELOOP ? "is a link; an order is a file" : strerror(errno));
    int rc = check_file(fd, path, err);
    if (rc < 0)
        return rc;
    if (!text)
        return error_set(err, ENOMEM, "%s: out of memory", path);
    ssize_t n = 0;
    size_t len = 0;
    do {
        n = read(fd, text + len, ATTACH_ORDER_SIZE_MAX + 1 - len);
        len += n > 0 ? (size_t)n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    if (n < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    rc = attach_order_parse(path, text, len, ret, err);
    if (rc == 0)
        snprintf(ret->path, sizeof ret->path, "%s", path);
    return rc;
}

/* ---- writing ---- */

static bool put_text(json_t *object, const char *key, const char *text)
{
    return !*text || net_put_take(object, key, json_string(text));
}

static json_t *host_json(const struct host_link *host)
{
    CLEANUP(json_decrefp) json_t *object = json_object();
    bool ok = put_text(object, "name", host->name) && net_put_count(object, "mtu", host->mtu) &&
              net_put_take(object, "up", json_boolean(host->up)) &&
              (!host->ebpf || net_put_take(object, "ebpf", json_true())) &&
              net_put_prefixes(object, "addresses", host->addresses, host->address_count) &&
              net_put_hw(object, "hardwareAddr", &host->hw) &&
              net_put_count(object, "gsoMaxSize", host->gso) &&
              net_put_count(object, "groMaxSize", host->gro) &&
              net_put_count(object, "gsoIPv4MaxSize", host->gso4) &&
              net_put_count(object, "groIPv4MaxSize", host->gro4) &&
              net_put_switches(object, "features", host->features) &&
              net_put_switches(object, "privateFlags", host->private_flags);
    return ok ? TAKE_PTR(object) : NULL;
}

json_t *attach_order_json(const struct attach_order *order)
{
    CLEANUP(json_decrefp) json_t *object = json_object();
    bool ok = net_put_count(object, "version", ATTACH_ORDER_VERSION) &&
              net_put_take(object, "claim",
                           json_pack("{s:s, s:s, s:s}", "namespace", order->claim_namespace, "name",
                                     order->claim_name, "uid", order->claim_uid)) &&
              put_text(object, "device", order->device) && put_text(object, "pci", order->pci) &&
              (strcmp(order->parent, order->pci) == 0 ||
               net_put_take(object, "parent", json_string(order->parent))) &&
              net_put_hw(object, "mac", &order->mac) && put_text(object, "rdma", order->rdma) &&
              (!order->host.name[0] || net_put_take(object, "host", host_json(&order->host))) &&
              net_put_take(object, "config", net_config_json(&order->config));
    return ok ? TAKE_PTR(object) : NULL;
}

void attach_order_mark(const char *claim_uid, const char *device, char *ret_mark, size_t size)
{
    snprintf(ret_mark, size, ATTACH_MARK "%s_%s", claim_uid, device);
    for (char *p = ret_mark; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
}
