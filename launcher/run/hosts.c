/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/run/hosts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "jobs/ranks/rankmap.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/number.h"
#include "lib/wire/dial.h"

#define FILE_MAX ((size_t)1 << 20)
#define BLANKS " \t\r"

void hosts_done(struct hosts *hosts)
{
    free(hosts->list);
    *hosts = (struct hosts){0};
}

/* ---- reading ---- */

static int add(struct hosts *hosts, const char *name, size_t length, uint32_t slots,
               struct drarun_error *err)
{
    for (size_t i = 0; i < hosts->count; i++) {
        struct host *host = &hosts->list[i];
        if (strlen(host->name) == length && strncasecmp(host->name, name, length) == 0) {
            host->slots = (host->slots ? host->slots : 1) + (slots ? slots : 1);
            return 0;
        }
    }
    struct host *more = reallocarray(hosts->list, hosts->count + 1, sizeof *more);
    if (!more)
        return error_set(err, ENOMEM, "out of memory");
    hosts->list = more;
    more[hosts->count] = (struct host){.slots = slots};
    memcpy(more[hosts->count++].name, name, length);
    return 0;
}

static int wrong(const char *shown, const char *word, size_t length, struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "%s: expected HOST or HOST:SLOTS, got \"%.*s\"", shown, (int)length, word);
}

/* "a", "a:4", "fe80::1", "[fe80::1]:4", and "me@" before each: an agent's user is its own. */
static int add_word(struct hosts *hosts, const char *shown, const char *word, size_t length,
                    struct drarun_error *err)
{
    const char *end = word + length, *at = memchr(word, '@', length);
    if (at) {
        word = at + 1;
        length = (size_t)(end - word);
    }
    const char *colon = memchr(word, ':', length), *name = word;
    size_t name_length = length;
    int64_t slots = 0;
    if (length > 0 && word[0] == '[') {
        const char *close = memchr(word, ']', length);
        if (!close)
            return wrong(shown, word, length, err);
        name = word + 1;
        name_length = (size_t)(close - name);
        colon = close + 1 < end ? close + 1 : NULL;
    } else if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1))) {
        colon = NULL; /* an IPv6 address */
    } else if (colon) {
        name_length = (size_t)(colon - word);
    }
    if (name_length == 0 || name_length >= sizeof hosts->list->name || (colon && *colon != ':'))
        return wrong(shown, word, length, err);
    if (colon) {
        char number[16];
        snprintf(number, sizeof number, "%.*s", (int)(end - colon - 1), colon + 1);
        if (number_parse("slots", number, 1, RANKMAP_RANKS_MAX, &slots, NULL) < 0)
            return wrong(shown, word, length, err);
    }
    return add(hosts, name, name_length, (uint32_t)slots, err);
}

int hosts_parse(const char *shown, const char *text, struct hosts *ret_hosts,
                struct drarun_error *err)
{
    struct hosts hosts = {0};
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        int rc = add_word(&hosts, shown, at, length, err);
        if (rc < 0) {
            hosts_done(&hosts);
            return rc;
        }
        at += length;
        if (!*at)
            break;
    }
    *ret_hosts = hosts;
    return 0;
}

/* host: NULL for one that an earlier line names. mpirun refuses a second number, too: the sum, the
 * first one and the last one are all likely meanings. */
static int set_slots(struct host *host, const char *shown, const char *name, const char *text,
                     struct drarun_error *err)
{
    int64_t slots = 0;
    int rc = number_parse(shown, text, 1, RANKMAP_RANKS_MAX, &slots, err);
    if (rc < 0)
        return rc;
    if (!host || host->slots > 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: the slots of host %s are given a second time: give them once, with "
                          "all of them in one number",
                          shown, name);
    host->slots = (uint32_t)slots;
    return 0;
}

/* "slots = 4" becomes "slots=4". */
static void close_up(char *line)
{
    char *to = line;
    for (const char *from = line; *from; from++) {
        if (*from == '=')
            while (to > line && strchr(BLANKS, to[-1]))
                to--;
        *to++ = *from;
        if (*from == '=')
            from += strspn(from + 1, BLANKS);
    }
    *to = '\0';
}

/* The number of an attribute that says how many slots there are; NULL: it says something else. */
static const char *slots_of(const char *word)
{
    static const char *const names[] = {"slots=", "cpu=", "count="};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strncmp(word, names[i], strlen(names[i])) == 0)
            return word + strlen(names[i]);
    return NULL;
}

/* "a slots=4 max_slots=8", "a:4 ifname=ib0". */
static int add_line(struct hosts *hosts, const char *shown, char *line, struct drarun_error *err)
{
    size_t before = hosts->count;
    char *rest = NULL;
    line[strcspn(line, "#")] = '\0';
    close_up(line);
    const char *name = strtok_r(line, BLANKS, &rest);
    if (!name)
        return 0;
    int rc = add_word(hosts, shown, name, strlen(name), err);
    for (const char *w; rc == 0 && (w = strtok_r(NULL, BLANKS, &rest));) {
        const char *slots = slots_of(w);
        if (!slots && strncmp(w, "max", 3) != 0 && strncmp(w, "ifname=", 7) != 0)
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                              "%s: host %s: expected slots=N, got \"%s\"", shown, name, w);
        if (slots)
            rc = set_slots(hosts->count > before ? &hosts->list[before] : NULL, shown, name, slots,
                           err);
    }
    return rc;
}

int hosts_parse_file(const char *path, const char *text, struct hosts *ret_hosts,
                     struct drarun_error *err)
{
    struct hosts hosts = {0};
    bool marked = strncmp(text, "\xef\xbb\xbf", 3) == 0; /* a byte order mark */
    cleanup_free char *copy = strdup(marked ? text + 3 : text);
    char *next = copy, *line;
    char place[PATH_MAX];
    int rc = copy ? 0 : error_set(err, ENOMEM, "out of memory");
    for (unsigned int number = 1; rc == 0 && (line = strsep(&next, "\n")); number++) {
        snprintf(place, sizeof place, "%s:%u", path, number);
        rc = add_line(&hosts, place, line, err);
    }
    if (rc == 0 && hosts.count == 0)
        rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s names no host", path);
    if (rc < 0) {
        hosts_done(&hosts);
        return rc;
    }
    *ret_hosts = hosts;
    return 0;
}

/* ---- which is this machine ---- */

/* AF_UNSPEC: it is a name. */
static int read_address(const char *name, uint8_t bytes[sizeof(struct in6_addr)])
{
    return inet_pton(AF_INET, name, bytes) == 1    ? AF_INET
           : inet_pton(AF_INET6, name, bytes) == 1 ? AF_INET6
                                                   : AF_UNSPEC;
}

/* An address of one of its interfaces, or any of the loopback: 127.0.1.1 is the machine's name in
 * Debian's /etc/hosts. */
static bool is_own_address(int family, const uint8_t *want)
{
    struct ifaddrs *all = NULL;
    bool found = family == AF_INET && want[0] == IN_LOOPBACKNET;
    if (found || getifaddrs(&all) < 0)
        return found;
    for (const struct ifaddrs *at = all; at && !found; at = at->ifa_next) {
        if (!at->ifa_addr || at->ifa_addr->sa_family != family)
            continue;
        const void *have = family == AF_INET
                               ? (void *)&((struct sockaddr_in *)at->ifa_addr)->sin_addr
                               : (void *)&((struct sockaddr_in6 *)at->ifa_addr)->sin6_addr;
        found = memcmp(want, have, family == AF_INET ? 4 : 16) == 0;
    }
    freeifaddrs(all);
    return found;
}

/* One of the two may lack the domain, as with mpirun. */
static bool is_same_name(const char *a, const char *b)
{
    size_t first = strcspn(a, ".");
    return strcasecmp(a, b) == 0 ||
           (first == strcspn(b, ".") && strncasecmp(a, b, first) == 0 && (!a[first] || !b[first]));
}

bool hosts_is_here(const char *name)
{
    char own[256] = "";
    uint8_t address[sizeof(struct in6_addr)];
    int family = read_address(name, address);
    if (family != AF_UNSPEC)
        return is_own_address(family, address);
    gethostname(own, sizeof own - 1);
    return strcasecmp(name, "localhost") == 0 || strcasecmp(name, "localhost.localdomain") == 0 ||
           is_same_name(name, own);
}

/* ---- using ---- */

/* The agent's entry in "HOST:PORT,..." on that host. */
static int find_agent(const struct job_request *request, const char *shown, const char *name,
                      struct buf *out, struct drarun_error *err)
{
    size_t n = 0, found = 0;
    for (const char *at = request->agents; *at; at += n + (at[n] == ',')) {
        char address[300], host[256];
        uint16_t port;
        n = strcspn(at, ",");
        snprintf(address, sizeof address, "%.*s", (int)n, at);
        if (address_split(address, host, sizeof host, &port, NULL) < 0 ||
            strcasecmp(host, name) != 0)
            continue;
        if (found++ == 0)
            buf_printf(out, "%s%s", out->len ? "," : "", address);
    }
    if (found == 1)
        return 0;
    if (found > 1)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s %s: %zu of the agents are on that host: leave this option out and "
                          "list the agents that you want, in order, in --agents",
                          shown, name, found);
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "%s %s: no agent has this name (--agents %.200s)", shown, name,
                      request->agents);
}

static int choose_agents(struct job_request *request, const char *shown, const struct hosts *hosts,
                         struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf chosen = BUF_INIT;
    for (size_t i = 0; i < hosts->count; i++) {
        if (hosts->list[i].slots != hosts->list[0].slots)
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                              "%s: %s has a different number of slots than %s; every worker needs "
                              "the same number (--ranks-per-worker R)",
                              shown, hosts->list[i].name, hosts->list[0].name);
        int rc = find_agent(request, shown, hosts->list[i].name, &chosen, err);
        if (rc < 0)
            return rc;
    }
    request->chosen_agents = buf_take(&chosen);
    if (!request->chosen_agents)
        return error_set(err, ENOMEM, "out of memory");
    request->agents = request->chosen_agents;
    if (!request->per_worker)
        request->per_worker = hosts->list[0].slots;
    return 0;
}

static uint32_t workers_here(const struct job_request *request)
{
    uint32_t agents = 1;
    for (const char *at = request->alloc_agents; at && *at; at++)
        agents += *at == ',';
    return request->workers ? request->workers : agents;
}

static int use_this_machine(struct job_request *request, const char *shown,
                            const struct hosts *hosts, struct drarun_error *err)
{
    uint32_t slots = 0;
    for (size_t i = 0; i < hosts->count; i++) {
        if (!hosts_is_here(hosts->list[i].name))
            return error_kind(
                err, DRARUN_ERR_USAGE, EINVAL,
                "%s %s: this host is another machine, which drarun reaches only through an agent: "
                "start drarun-worker --listen :7173 --key-file FILE there, and give --agents "
                "%s:7173,... "
                "--key-file FILE",
                shown, hosts->list[i].name, hosts->list[i].name);
        slots += hosts->list[i].slots ? hosts->list[i].slots : 1;
    }
    if (slots > RANKMAP_RANKS_MAX)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: expected at most %u slots, got %u",
                          shown, RANKMAP_RANKS_MAX, slots);
    uint64_t most = request->per_worker ? (uint64_t)request->per_worker * workers_here(request)
                                        : RANKMAP_RANKS_MAX;
    if (request->program_count == 1 && !request->programs[0].ranks && !request->launch_mpirun)
        request->programs[0].ranks = slots < most ? slots : (uint32_t)most;
    return 0;
}

static int use(struct job_request *request, const char *shown, const struct hosts *hosts,
               struct drarun_error *err)
{
    if (request->pods)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "%s: the allocation sets the workers; use -n and --ranks-per-worker to place the ranks",
            shown);
    if (request->agents && !request->alloc_agents)
        return choose_agents(request, shown, hosts, err);
    return use_this_machine(request, shown, hosts, err);
}

static int read_hosts(const struct job_request *request, struct hosts *hosts,
                      struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    if (request->hosts)
        return hosts_parse(request->hosts_shown, request->hosts, hosts, err);
    int rc = file_read_named(request->hostfile, FILE_MAX, &text, err);
    if (rc < 0)
        return error_kind(err, DRARUN_ERR_USAGE, -rc, "%s %s: %s", request->hosts_shown,
                          request->hostfile, strerror(-rc));
    return hosts_parse_file(request->hostfile, text.data ? text.data : "", hosts, err);
}

int hosts_use(struct job_request *request, struct drarun_error *err)
{
    struct hosts hosts = {0};
    bool named = request->hosts || request->hostfile;
    bool several = request->agents || request->pods || request->workers || named;
    bool counted = request->program_count > 0 && request->programs[0].ranks > 0;
    if (request->per_host && !several && counted)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "-N %u sets the ranks of each worker, and the only worker has all ranks: leave -N out; "
            "for srun's nodes, use --workers K here, or --agents elsewhere",
            request->per_host);
    if (request->per_host && !several)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "-N %u sets the ranks of each worker, and there is one worker: use -n "
                          "%u; for srun's nodes, use --workers K here, or --agents elsewhere",
                          request->per_host, request->per_host);
    if (request->per_host)
        request->per_worker = request->per_host;
    if (!named)
        return 0;
    int rc = read_hosts(request, &hosts, err);
    if (rc == 0)
        rc = use(request, request->hosts_shown, &hosts, err);
    hosts_done(&hosts);
    return rc;
}
