/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/spec/rendezvous.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "jobs/spec/spec.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/number.h"

#define HOST_MAX 253 /* RFC 1035, in text */

void rendezvous_done(struct rendezvous *r)
{
    strlist_done(&r->addresses);
}

static int usage(struct drarun_error *err, const char *text)
{
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s", text);
}

/* ---- a list ---- */

/* The port of "host:port" or "[v6]:port"; NULL: none is named. */
static const char *port_of(const char *address)
{
    const char *colon = strrchr(address, ':');
    const char *bracket = strrchr(address, ']');
    bool v6 = address[0] == '[' && strchr(address, ':') < bracket;
    if (!colon || (bracket && colon < bracket))
        return NULL;
    return v6 || strchr(address, ':') == colon ? colon : NULL;
}

static void add_address(const char *host, uint16_t port, struct strlist *to)
{
    bool bare_v6 = host[0] != '[' && strchr(host, ':') != strrchr(host, ':');
    if (port_of(host))
        strlist_add(to, host);
    else
        strlist_addf(to, bare_v6 ? "[%s]:%u" : "%s:%u", host, port);
}

/* "[3-12]" at open; false for what is none, such as an IPv6 address. */
static bool is_range(const char *open, const char *close)
{
    size_t length = (size_t)(close - open) - 1;
    return length >= 3 && strspn(open + 1, "0123456789-") == length;
}

static int read_range(const char *open, const char *close, int64_t *ret_first, int64_t *ret_last,
                      struct drarun_error *err)
{
    cleanup_free char *text = strndup(open + 1, (size_t)(close - open) - 1);
    if (!text)
        return error_set(err, ENOMEM, "out of memory");
    char *last = strchrnul(text, '-');
    if (!*last)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--peers: expected a range as [0-3], got [%s]", text);
    *last++ = '\0';
    if (number_parse("--peers", text, 0, SPEC_WORKERS_MAX, ret_first, err) < 0 ||
        number_parse("--peers", last, 0, SPEC_WORKERS_MAX, ret_last, err) < 0)
        return -EINVAL;
    return *ret_last < *ret_first ? error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                                               "--peers: the range [%s-%s] is empty", text, last)
                                  : 0;
}

/* One entry of the list, its first range written out, and so on. */
static int expand(const char *entry, uint16_t port, struct strlist *to, struct drarun_error *err)
{
    int64_t first = 0, last = 0;
    const char *open = strchr(entry, '[');
    const char *close = open ? strchr(open, ']') : NULL;
    if (!close || !is_range(open, close)) {
        add_address(entry, port, to);
        return to->count > SPEC_WORKERS_MAX ? usage(err, "--peers: too many") : 0;
    }
    int rc = read_range(open, close, &first, &last, err);
    for (int64_t i = first; rc == 0 && i <= last; i++) {
        cleanup_free char *one = NULL;
        if (asprintf(&one, "%.*s%" PRId64 "%s", (int)(open - entry), entry, i, close + 1) < 0) {
            one = NULL;
            return error_set(err, ENOMEM, "out of memory");
        }
        rc = expand(one, port, to, err);
    }
    return rc;
}

static bool same_host(const char *address, const char *host)
{
    size_t length = host ? strlen(host) : 0;
    return length > 0 && strncmp(address, host, length) == 0 &&
           (address[length] == ':' || address[length] == '.');
}

/* By our own name among them; -1: not exactly one has it. */
static int64_t own_place(const struct rendezvous_facts *f, const struct strlist *addresses)
{
    int64_t found = -1;
    for (size_t i = 0; i < addresses->count; i++) {
        if (!same_host(addresses->items[i], f->hostname) &&
            !same_host(addresses->items[i], f->fqdn))
            continue;
        if (found >= 0)
            return -1;
        found = (int64_t)i;
    }
    return found;
}

static int from_list(const struct rendezvous_facts *f, struct rendezvous *r,
                     struct drarun_error *err)
{
    cleanup_free char *list = strdup(f->peers);
    char *rest = list;
    int rc = list ? 0 : error_set(err, ENOMEM, "out of memory");
    for (char *entry; rc == 0 && (entry = strsep(&rest, ",")) != NULL;) {
        if (!entry[0] || strlen(entry) > HOST_MAX)
            return usage(err, "--peers: expected HOST[:PORT],... with no empty entry");
        rc = expand(entry, f->port, &r->addresses, err);
    }
    if (rc < 0)
        return rc;
    int64_t index = f->index >= 0 ? f->index : own_place(f, &r->addresses);
    if (index < 0 && f->completion_index)
        rc = number_parse("JOB_COMPLETION_INDEX", f->completion_index, 0, UINT32_MAX, &index, err);
    if (rc < 0)
        return rc;
    if (index < 0)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "--peers: the name of this pod (%s) does not tell its place in the list: add --index I",
            f->hostname ? f->hostname : "none");
    if (f->workers && f->workers != r->addresses.count)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--workers %u, but --peers names %zu",
                          f->workers, r->addresses.count);
    r->index = (uint32_t)(index > UINT32_MAX ? UINT32_MAX : index);
    r->source = "--peers";
    return 0;
}

/* ---- a LeaderWorkerSet ---- */

/* The leader is lws-0, its workers are lws-0-1, lws-0-2, ... in the same domain
 * (sigs.k8s.io/lws, docs/reference/labels-annotations-and-environment-variables). */
static int from_lws(const struct rendezvous_facts *f, struct rendezvous *r,
                    struct drarun_error *err)
{
    int64_t size = 0, index = 0;
    if (!f->lws_size || !f->lws_index)
        return usage(err,
                     "LWS_LEADER_ADDRESS is set, but not LWS_GROUP_SIZE and LWS_WORKER_INDEX: "
                     "LeaderWorkerSet 0.5 or newer sets them; or use --peers LIST and --index I");
    int rc = number_parse("LWS_GROUP_SIZE", f->lws_size, 1, SPEC_WORKERS_MAX, &size, err);
    if (rc == 0)
        rc = number_parse("LWS_WORKER_INDEX", f->lws_index, 0, size - 1, &index, err);
    if (rc < 0)
        return rc;
    const char *domain = strchrnul(f->lws_leader, '.');
    strlist_addf(&r->addresses, "%s:%u", f->lws_leader, f->port);
    for (int64_t i = 1; i < size; i++)
        strlist_addf(&r->addresses, "%.*s-%" PRId64 "%s:%u", (int)(domain - f->lws_leader),
                     f->lws_leader, i, domain, f->port);
    r->index = (uint32_t)index;
    r->source = "a LeaderWorkerSet";
    return 0;
}

/* ---- pods called NAME-I ---- */

/* The number that ends the name, and where its digits begin; -1: none. */
static int64_t ordinal(const char *hostname, size_t *ret_prefix)
{
    const char *dash = hostname ? strrchr(hostname, '-') : NULL;
    int64_t number = -1;
    if (!dash || number_parse("", dash + 1, 0, UINT32_MAX, &number, NULL) < 0)
        return -1;
    *ret_prefix = (size_t)(dash + 1 - hostname);
    return number;
}

static int no_controller(const struct rendezvous_facts *f, struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_USAGE, ENOENT,
                      "the peers are not known: LWS_LEADER_ADDRESS and JOB_COMPLETION_INDEX "
                      "are not set, and the name of this pod (%s) does not end in a number, as a "
                      "StatefulSet's does: add --peers LIST and --index I",
                      f->hostname ? f->hostname : "none");
}

static int check_names(const struct rendezvous_facts *f, int64_t index, int64_t number,
                       struct drarun_error *err)
{
    if (number != index)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "JOB_COMPLETION_INDEX is %" PRId64
                          ", but this pod is called %s (hostNetwork?): "
                          "its peers' names are not known; add --peers LIST and --index I",
                          index, f->hostname ? f->hostname : "nothing");
    if (!f->workers)
        return usage(err, "the pods do not know the number of workers: add --workers N");
    if (!f->fqdn || !strchr(f->fqdn, '.'))
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "the pod %s has no domain, so its peers have no DNS names: give it a headless "
            "Service (spec.serviceName of a StatefulSet, subdomain of an Indexed Job's "
            "pods, network.enableDNSHostnames of a JobSet), or add --peers LIST",
            f->hostname);
    return 0;
}

static int from_name(const struct rendezvous_facts *f, struct rendezvous *r,
                     struct drarun_error *err)
{
    size_t prefix = 0;
    int64_t number = ordinal(f->hostname, &prefix), index = number;
    int rc = f->completion_index ? number_parse("JOB_COMPLETION_INDEX", f->completion_index, 0,
                                                UINT32_MAX, &index, err)
                                 : 0;
    if (rc == 0 && index < 0)
        return no_controller(f, err);
    if (rc == 0)
        rc = check_names(f, index, number, err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < f->workers; i++)
        strlist_addf(&r->addresses, "%.*s%u%s:%u", (int)prefix, f->hostname, i,
                     strchr(f->fqdn, '.'), f->port);
    r->index = (uint32_t)index;
    r->source = f->completion_index ? "an Indexed Job" : "a StatefulSet";
    return 0;
}

/* ---- all of them ---- */

int rendezvous_find(const struct rendezvous_facts *f, struct rendezvous *ret_rendezvous,
                    struct drarun_error *err)
{
    struct rendezvous r = {.addresses = STRLIST_INIT};
    int rc = f->index >= 0 && !f->peers
                 ? usage(err, "--index is the place of this pod in --peers LIST: add --peers")
             : f->peers      ? from_list(f, &r, err)
             : f->lws_leader ? from_lws(f, &r, err)
                             : from_name(f, &r, err);
    if (rc == 0 && r.addresses.failed)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0 && r.index >= r.addresses.count)
        rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                        "this pod is number %u of %zu (numbers begin at 0): %s", r.index,
                        r.addresses.count, f->peers ? "see --peers and --index" : "see --workers");
    if (rc < 0) {
        rendezvous_done(&r);
        return rc;
    }
    *ret_rendezvous = r;
    return 0;
}
