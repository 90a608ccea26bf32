/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/doctor/nics.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "jobs/preflight/nic_check.h"
#include "launcher/doctor/node_checks.h"
#include "launcher/programs/agent_program.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"
#include "lib/inspect/inspect.h"
#include "lib/inspect/verbs_json.h"
#include "lib/inspect/verbs_open.h"

/* ---- the agent's program ---- */

static void on_opened(void *arg)
{
    event_base_loopbreak(arg);
}

static int run_agent(json_t *verbs, const char *program, struct drarun_error *err)
{
    struct event_base *base = event_base_new();
    struct verbs_open open = {.verbs = verbs, .fn = on_opened, .arg = base};
    if (!base)
        return error_set(err, ENOMEM, "out of memory");
    if (verbs_open_start(base, program, &open) == 0)
        event_base_dispatch(base);
    child_free(open.child);
    event_base_free(base);
    return 0;
}

/* Without the agent's program sysfs must do, and why is said. */
static int open_all(json_t *verbs, struct drarun_error *err)
{
    char program[PATH_MAX];
    struct drarun_error why = {0};
    if (json_array_size(verbs) == 0)
        return 0;
    if (program_find_agent(program, &why) == 0)
        return run_agent(verbs, program, err);
    return verbs_take(verbs, "", 0, why.text) < 0 ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* ---- findings ---- */

struct naming {
    struct findings *findings;
    const char *device;
    bool any;
};

static void add_fault(void *arg, enum nic_fault fault, uint32_t port, bool failed, const char *cure,
                      const char *text)
{
    struct naming *n = arg;
    (void)fault, (void)port;
    n->any = true;
    findings_add(n->findings, n->device, failed ? FINDING_FAILED : FINDING_UNKNOWN, cure, "%s",
                 text);
}

static json_int_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* The last GID: those of addresses come after that of the hardware address. iWARP has one of no
 * meaning, with the interface. */
static void add_address(const json_t *port, bool iwarp, struct buf *out)
{
    const json_t *table = json_object_get(port, "gidTable");
    const json_t *gid = json_array_get(table, json_array_size(table) - 1);
    if (!gid)
        return;
    if (iwarp) {
        buf_printf(out, ", iWARP over %s", value_text_or(gid, "netdev", "?"));
        return;
    }
    buf_printf(out, ", GID %" JSON_INTEGER_FORMAT " %s", number_of(gid, "index"),
               value_text_or(gid, "address", "?"));
    if (value_text_or(gid, "netdev", "")[0])
        buf_printf(out, " (%s, %s)", value_text_or(gid, "type", "?"),
                   value_text_or(gid, "netdev", ""));
}

static void add_port(const json_t *port, bool iwarp, struct buf *out)
{
    buf_printf(out, "port %" JSON_INTEGER_FORMAT " %s", number_of(port, "number"),
               value_text_or(port, "state", "of unknown state"));
    if (number_of(port, "rateMbps"))
        buf_printf(out, ", %g Gb/s", (double)number_of(port, "rateMbps") / 1000);
    if (number_of(port, "lanes"))
        buf_printf(out, " (%" JSON_INTEGER_FORMAT "X %s)", number_of(port, "lanes"),
                   value_text_or(port, "laneSpeed", ""));
    if (number_of(port, "mtu"))
        buf_printf(out, ", MTU %" JSON_INTEGER_FORMAT, number_of(port, "mtu"));
    if (number_of(port, "lid"))
        buf_printf(out, ", LID %" JSON_INTEGER_FORMAT, number_of(port, "lid"));
    add_address(port, iwarp, out);
}

static bool is_done(const json_t *verbs, const char *step)
{
    return json_is_true(
        json_object_get(json_object_get(json_object_get(verbs, "steps"), step), "done"));
}

static void add_good(struct findings *findings, const json_t *verbs)
{
    struct buf out = BUF_INIT;
    size_t i;
    json_t *port;
    json_array_foreach(json_object_get(verbs, "ports"), i, port)
    {
        buf_add_str(&out, i ? "; " : "");
        add_port(port, json_is_true(json_object_get(verbs, "iwarp")), &out);
    }
    buf_printf(&out, "; queues %s, 64 MiB %s", is_done(verbs, "qp") ? "made" : "not tried",
               is_done(verbs, "memory") ? "registered" : "not tried");
    findings->failed |= out.failed;
    findings_add(findings, value_text_or(verbs, "device", "?"), FINDING_OK, NULL, "%s",
                 out.data ? out.data : "");
    buf_done(&out);
}

static void check_each(struct findings *findings, const json_t *document)
{
    size_t i;
    json_t *verbs;
    json_array_foreach(json_object_get(document, "verbs"), i, verbs)
    {
        struct naming naming = {.findings = findings,
                                .device = value_text_or(verbs, "device", "?")};
        const struct nic_check check = {.device = verbs,
                                        .netdevs = json_object_get(document, "netdevs"),
                                        .limits = json_object_get(document, "limits"),
                                        .open = true,
                                        .fn = add_fault,
                                        .arg = &naming};
        nic_check(&check);
        if (!naming.any)
            add_good(findings, verbs);
    }
}

/* A pod sees devices of others in sysfs. */
static void check_withheld(struct findings *findings, const struct topo_host *host)
{
    for (size_t i = 0; i < host->rdma_count; i++)
        if (host->rdmas[i].usable == TOPO_NO)
            findings_add(findings, host->rdmas[i].name, FINDING_UNKNOWN,
                         "in a pod, claim it; on a node, load ib_uverbs and look at udev",
                         "/dev/infiniband/%s is not here", host->rdmas[i].uverbs);
    if (host->rdma_count == 0)
        findings_add(findings, "nics", FINDING_OK, NULL, "there is no RDMA device");
}

static int check_host(struct findings *findings, struct drarun_error *err)
{
    struct topo_host host;
    cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc =
        root < 0 ? error_set(err, errno, "/: %s", strerror(errno)) : host_read(root, &host, err);
    if (rc < 0)
        return rc;
    check_withheld(findings, &host);
    if (host.rdma_count > 0)
        check_gpudirect(root, &host, findings);
    host_done(&host);
    return 0;
}

int nics_check(struct findings *findings, json_t **ret_verbs, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *document = NULL;
    const struct inspect_options options = {0};
    int rc = inspect(&options, &document, err);
    if (rc == 0)
        rc = open_all(json_object_get(document, "verbs"), err);
    if (rc < 0)
        return rc;
    check_each(findings, document);
    rc = check_host(findings, err);
    if (rc == 0 && findings->failed)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        *ret_verbs = json_incref(json_object_get(document, "verbs"));
    return rc;
}
