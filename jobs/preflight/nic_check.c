/* SPDX-License-Identifier: Apache-2.0 */
/* docs/design/018-inspection.md has the table, 038-open-nics.md the steps. */
#include "jobs/preflight/nic_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/doc/value.h"

#define MIB (INT64_C(1) << 20)
#define UNLIMITED (-1)
/* A container's usual limits (64 KiB, 8 MiB) are too small for any NIC's queues. */
#define MEMLOCK_LEAST (64 * MIB)

static bool is_false(const json_t *object, const char *key)
{
    return json_is_false(json_object_get(object, key));
}

/* 0 where it is not known. */
static int64_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *name_of(const struct nic_check *check)
{
    return value_text_or(check->device, "device", "");
}

/* port: of which it holds; NULL: the device. */
__attribute__((format(printf, 6, 7))) static void say(const struct nic_check *check,
                                                      enum nic_fault fault, const json_t *port,
                                                      bool failed, const char *cure,
                                                      const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    check->fn(check->arg, fault, (uint32_t)number_of(port, "number"), failed, cure, text);
}

/* ---- locked memory ---- */

const char *nic_bytes_text(int64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < ARRAY_LEN(units); unit++)
        value /= 1024;
    snprintf(text, size, "%.*f %s", value < 10 && value != (double)(int64_t)value, value,
             units[unit]);
    return text;
}

bool nic_memlock_small(const json_t *limits)
{
    const json_t *memlock = json_object_get(limits, "memlock");
    return is_false(limits, "ipcLock") && json_is_integer(memlock) &&
           json_integer_value(memlock) != UNLIMITED && json_integer_value(memlock) < MEMLOCK_LEAST;
}

const char *nic_memlock_cure(const json_t *limits)
{
    /* a capability of a container reaches only processes of root */
    return number_of(limits, "uid") != 0
               ? "the container's user is not root, so the capability IPC_LOCK has no effect: "
                 "run it as root, or raise the container runtime's LimitMEMLOCK on the nodes to "
                 "infinity"
               : "add the capability IPC_LOCK to the container "
                 "(securityContext.capabilities.add), or raise the container runtime's "
                 "LimitMEMLOCK on the nodes to infinity";
}

/* ---- ports ---- */

static void check_link(const struct nic_check *check, const json_t *port)
{
    const char *state = value_text_or(port, "state", "");
    say(check, NIC_FAULT_DOWN, port, true,
        "check the node's cable and switch port and, with InfiniBand, the subnet manager; "
        "until then keep the job from the node (a taint on the device does)",
        "the link of its NIC %s, port %" PRId64 ", is %s", name_of(check),
        number_of(port, "number"), state[0] ? state : "not active");
}

#define ADDRESS_CURE                                                                               \
    "RoCE takes its address from the NIC's interface: has the driver given it one, and is the "    \
    "interface in the pod?"

static bool is_routable(const char *address)
{
    static const char *const local[] = {"fe8", "fe9", "fea", "feb", "169.254.", "127."};
    for (size_t i = 0; i < ARRAY_LEN(local); i++)
        if (strncmp(address, local[i], strlen(local[i])) == 0)
            return false;
    return strcmp(address, "::1") != 0;
}

/* The type of the GID that is the address: "RoCE v2" where one of them has it; NULL: there is none.
 */
static const char *type_of(const json_t *table, const char *address)
{
    size_t i;
    json_t *gid;
    const char *found = NULL;
    json_array_foreach(table, i, gid)
    {
        const char *type = value_text_or(gid, "type", "");
        if (strcmp(value_text_or(gid, "address", ""), address) == 0 &&
            (!found || strcmp(type, "RoCE v2") == 0))
            found = type;
    }
    return found;
}

/* One of the interface's addresses is enough: which one, the derivation knows (011). */
static void check_interface(const struct nic_check *check, const json_t *port,
                            const char *interface)
{
    size_t i;
    json_t *item;
    const json_t *table = json_object_get(port, "gidTable");
    const json_t *netdev = value_find(check->netdevs, "name", interface);
    const char *missing = NULL, *other = NULL, *of = NULL;
    json_array_foreach(json_object_get(netdev, "addresses"), i, item)
    {
        const char *address = json_string_value(item);
        if (!address || !is_routable(address))
            continue;
        const char *type = type_of(table, address);
        if (type && strcmp(type, "RoCE v2") == 0)
            return;
        if (type && !other) {
            other = type;
            of = address;
        }
        missing = missing ? missing : address;
    }
    if (other)
        say(check, NIC_FAULT_GID, port, true,
            "NCCL and MPI use RoCE v2: is it switched off in the NIC's firmware or driver?",
            "its NIC %s, port %" PRId64 ", has the address %s of its interface %s as %s alone, not "
            "as RoCE v2",
            name_of(check), number_of(port, "number"), of, interface, other);
    else if (missing)
        say(check, NIC_FAULT_GID, port, true,
            "take the interface down and up again: the kernel then creates the GIDs of its "
            "addresses",
            "its NIC %s, port %" PRId64 ", has no GID for the address %s of its interface %s",
            name_of(check), number_of(port, "number"), missing, interface);
}

static void check_addresses(const struct nic_check *check, const json_t *port)
{
    size_t i;
    json_t *gid;
    const char *last = "";
    json_array_foreach(json_object_get(port, "gidTable"), i, gid)
    {
        const char *interface = value_text_or(gid, "netdev", "");
        if (interface[0] && strcmp(interface, last) != 0) {
            check_interface(check, port, interface);
            last = interface; /* a port has one, or its VLANs, each with neighbouring entries */
        }
    }
}

/* Where all RDMA devices are shown in all network namespaces, some kernels name the interfaces of
 * others and some do not. */
static bool all_elsewhere(const struct nic_check *check, const json_t *port)
{
    size_t i;
    json_t *gid;
    bool named = false;
    if (number_of(port, "gidsElsewhere") == number_of(port, "gids"))
        return true;
    if (json_array_size(check->netdevs) == 0)
        return false;
    json_array_foreach(json_object_get(port, "gidTable"), i, gid)
    {
        const char *interface = value_text_or(gid, "netdev", "");
        if (!interface[0])
            continue;
        if (value_find(check->netdevs, "name", interface))
            return false;
        named = true;
    }
    return named;
}

static void check_gids(const struct nic_check *check, const json_t *port)
{
    const json_t *count = json_object_get(port, "gids");
    if (!json_is_integer(count))
        return;
    if (json_is_true(json_object_get(check->device, "iwarp"))) {
        if (json_integer_value(count) > 0 && all_elsewhere(check, port))
            say(check, NIC_FAULT_GID, port, true,
                "iWARP runs over the NIC's interface: does the driver put it into the pod?",
                "the interface of its NIC %s, port %" PRId64 ", is not in the pod", name_of(check),
                number_of(port, "number"));
        return;
    }
    if (json_integer_value(count) == 0)
        say(check, NIC_FAULT_GID, port, true, ADDRESS_CURE,
            "its NIC %s, port %" PRId64 ", has no GID", name_of(check), number_of(port, "number"));
    else if (all_elsewhere(check, port))
        say(check, NIC_FAULT_GID, port, true, ADDRESS_CURE,
            "its NIC %s, port %" PRId64 ", has no GID for an interface that is in the pod",
            name_of(check), number_of(port, "number"));
    else if (strcmp(value_text_or(port, "linkLayer", ""), "Ethernet") == 0)
        check_addresses(check, port);
}

static void check_speed(const struct nic_check *check, const json_t *port)
{
    int64_t mbps = number_of(port, "rateMbps");
    if (mbps > 0 && check->published_mbps > mbps)
        say(check, NIC_FAULT_SLOW, port, true,
            "check its cable, its module and the switch port's speed; until then keep the job "
            "from the node",
            "its NIC %s, port %" PRId64 ", runs at %g Gb/s, and its driver has published %g",
            name_of(check), number_of(port, "number"), (double)mbps / 1000,
            check->published_mbps / 1000.0);
}

static bool is_wanted(const struct nic_check *check, const json_t *port)
{
    int64_t number = number_of(port, "number");
    return !check->ports || (number > 0 && number < 32 && (check->ports & 1u << number));
}

/* A card of several ports may have a cable in one of them. */
static void check_ports(const struct nic_check *check)
{
    size_t i;
    json_t *port;
    const json_t *ports = json_object_get(check->device, "ports");
    bool down = true;
    json_array_foreach(ports, i, port)
    {
        down &= !is_wanted(check, port) || is_false(port, "active");
    }
    json_array_foreach(ports, i, port)
    {
        if (!is_wanted(check, port))
            continue;
        if (is_false(port, "active")) {
            if (down)
                check_link(check, port);
            continue;
        }
        check_gids(check, port);
        check_speed(check, port);
    }
}

/* ---- opening, and what is tried then ---- */

static void check_node(const struct nic_check *check)
{
    if (is_false(check->device, "opens"))
        say(check, NIC_FAULT_CLOSED, NULL, true,
            "the driver must allow the container to read and write that node (deviceNodes of its "
            "CDI specification), for the container's user too",
            "it cannot open %s of its NIC %s: %s", value_text_or(check->device, "path", ""),
            name_of(check), value_text_or(check->device, "why", ""));
}

static void say_failed(const struct nic_check *check, const json_t *step, bool queues,
                       const char *what)
{
    const char *why = value_text_or(step, "why", "");
    char text[32];
    if (nic_memlock_small(check->limits))
        say(check, NIC_FAULT_MEMLOCK, NULL, true, nic_memlock_cure(check->limits),
            "it cannot %s its NIC %s: %s; it may lock %s of memory", what, name_of(check), why,
            nic_bytes_text(number_of(check->limits, "memlock"), text, sizeof text));
    else if (queues)
        say(check, NIC_FAULT_QUEUES, NULL, true,
            "look at the kernel's log on the node; is another program holding all of them?",
            "it cannot %s its NIC %s: %s", what, name_of(check), why);
    else
        say(check, NIC_FAULT_MEMORY, NULL, true,
            "raise the limit on locked memory and the container's memory limit, and look at the "
            "kernel's log on the node",
            "it cannot %s its NIC %s: %s", what, name_of(check), why);
}

#define UNTRIED_CURE                                                                               \
    "compare with ibv_devinfo -v in the pod; preflight: {fabric: off} in the job leaves it out"

/* Of several failures the first is told: the others follow from it. */
static void check_steps(const struct nic_check *check)
{
    static const struct {
        const char *step, *what;
        bool queues;
    } steps[] = {{"cq", "make a completion queue on", true},
                 {"qp", "make a queue pair on", true},
                 {"memory", "register 64 MiB of memory with", false}};
    const json_t *told = json_object_get(check->device, "steps");
    const char *inferred = value_text_or(check->device, "inferred", "");
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        const json_t *step = json_object_get(told, steps[i].step);
        if (is_false(step, "done")) {
            say_failed(check, step, steps[i].queues, steps[i].what);
            return;
        }
        if (check->open && step && json_is_null(json_object_get(step, "done")))
            say(check, NIC_FAULT_UNTRIED, NULL, false, UNTRIED_CURE,
                "it is not known whether it can %s its NIC %s: %s", steps[i].what, name_of(check),
                value_text_or(step, "why", ""));
    }
    if (check->open && inferred[0])
        say(check, NIC_FAULT_UNTRIED, NULL, false, UNTRIED_CURE,
            "its NIC %s is known from sysfs only: %s", name_of(check), inferred);
}

void nic_check(const struct nic_check *check)
{
    check_node(check);
    check_ports(check);
    if (!is_false(check->device, "opens"))
        check_steps(check);
}
