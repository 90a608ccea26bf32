/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/array.h"
#include "lib/bench/nccl_report.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/fnv.h"
#include "lib/bench/nccl_record.h"
#include "lib/bench/plain_text.h"
#include "lib/bench/span.h"

/* Takes the digits at *at; false: there are none, or too many. */
static bool number(const char **at, const char *end, uint32_t *ret)
{
    const char *begin = *at;
    uint32_t value = 0;
    for (; *at < end && isdigit((unsigned char)**at) && *at - begin < 9; (*at)++)
        value = value * 10 + (uint32_t)(**at - '0');
    if (*at == begin || (*at < end && isdigit((unsigned char)**at)))
        return false;
    *ret = value;
    return true;
}

static void list_once(struct strlist *list, const char *text)
{
    if (text[0] && list->count < NCCL_REPORT_LISTED && !strlist_has(list, text))
        strlist_add(list, text);
}

/* ---- hosts ---- */

static size_t hash(struct span name)
{
    uint64_t value = fnv1a_64(name.at, span_length(name));
    return (size_t)(value ^ value >> 32);
}

static bool is_named(const struct nccl_report_host *host, struct span name)
{
    return span_is(name, host->name);
}

static bool enlarge_table(struct nccl_report *r)
{
    size_t size = r->table_size ? 2 * r->table_size : 64;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < r->host_count; i++) {
        const char *name = r->hosts[i].name;
        size_t at = hash((struct span){name, name + strlen(name)}) & (size - 1);
        while (table[at])
            at = (at + 1) & (size - 1);
        table[at] = (uint32_t)i + 1;
    }
    free(r->table);
    r->table = table;
    r->table_size = size;
    return true;
}

static struct nccl_report_host *add_host(struct nccl_report *r, struct span name)
{
    struct nccl_report_host *hosts =
        array_room(r->hosts, r->host_count, &r->host_room, sizeof *hosts);
    if (!hosts)
        return NULL;
    r->hosts = hosts;
    struct nccl_report_host *host = &r->hosts[r->host_count];
    *host = (struct nccl_report_host){.name = strndup(name.at, span_length(name))};
    if (host->name)
        r->host_count++;
    return host->name ? host : NULL;
}

/* NULL without memory. */
static struct nccl_report_host *host_named(struct nccl_report *r, struct span name)
{
    if (2 * (r->host_count + 1) > r->table_size && !enlarge_table(r)) {
        r->failed = true;
        return NULL;
    }
    size_t at = hash(name) & (r->table_size - 1);
    for (; r->table[at]; at = (at + 1) & (r->table_size - 1))
        if (is_named(&r->hosts[r->table[at] - 1], name))
            return &r->hosts[r->table[at] - 1];
    struct nccl_report_host *host = add_host(r, name);
    if (host)
        r->table[at] = (uint32_t)r->host_count;
    r->failed = r->failed || !host;
    return host;
}

static struct nccl_report_nic *nic_of(struct nccl_report *r, struct nccl_report_host *host,
                                      const char *network, int index)
{
    for (size_t i = 0; i < host->nic_count; i++)
        if (host->nics[i].index == index && strcmp(host->nics[i].network, network) == 0)
            return &host->nics[i];
    if (!host->nics && !(host->nics = calloc(NCCL_REPORT_NICS, sizeof *host->nics))) {
        r->failed = true;
        return NULL;
    }
    if (host->nic_count == NCCL_REPORT_NICS)
        return &host->nics[NCCL_REPORT_NICS - 1];
    struct nccl_report_nic *nic = &host->nics[host->nic_count++];
    nic->index = index;
    snprintf(nic->network, sizeof nic->network, "%s", network);
    return nic;
}

/* "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>", "[0]eth0:10.0.0.1<0>" */
static void take_devices(struct nccl_report *r, struct span text, const char *until,
                         char (**devices)[NCCL_REPORT_TEXT])
{
    const char *stop = memchr(text.at, ';', (size_t)(text.end - text.at));
    struct span rest = {text.at, stop ? stop : text.end};
    if (!*devices && !(*devices = calloc(NCCL_REPORT_NICS, sizeof **devices))) {
        r->failed = true;
        return;
    }
    while ((rest.at = memchr(rest.at, '[', (size_t)(rest.end - rest.at)))) {
        uint32_t index;
        rest.at++;
        if (number(&rest.at, rest.end, &index) && rest.at < rest.end && *rest.at == ']' &&
            index < NCCL_REPORT_NICS)
            span_copy(span_from(rest, rest.at + 1), until, (*devices)[index], NCCL_REPORT_TEXT);
    }
}

/* ---- connections ---- */

static void add_link(struct nccl_report *r, const struct nccl_report_link *link)
{
    struct nccl_report_link *links =
        array_room(r->links, r->link_count, &r->link_room, sizeof *links);
    if (!links) {
        r->failed = true;
        return;
    }
    r->links = links;
    r->links[r->link_count++] = *link;
}

/* "Channel 02/0 : 2[2] -> 10[2] [send]", "Ring 00 : 7 -> 8 [receive]": whose it is. */
static void read_ends(struct span s, struct nccl_report_link *link)
{
    const char *colon = span_after(s, " : "), *arrow = span_after(s, " -> "), *at;
    const char *channel = span_after(s, "Channel ");
    uint32_t value;
    channel = channel ? channel : span_after(s, "Ring ");
    if ((at = channel) && number(&at, s.end, &value))
        link->channel = (uint16_t)value;
    if ((at = colon))
        number(&at, s.end, &link->from);
    if ((at = arrow))
        number(&at, s.end, &link->to);
    link->direction = span_after(s, " [send]") ? 's' : span_after(s, " [receive]") ? 'r' : 0;
}

static uint8_t net_of(struct nccl_report *r, const char *network)
{
    for (size_t i = 0; i < r->net_count; i++)
        if (strcmp(r->nets[i], network) == 0)
            return (uint8_t)i;
    if (r->net_count + 1 >= NCCL_REPORT_NETS) {
        r->net_count = NCCL_REPORT_NETS;
        snprintf(r->nets[NCCL_REPORT_NETS - 1], sizeof *r->nets, "others");
        return NCCL_REPORT_NETS - 1;
    }
    snprintf(r->nets[r->net_count], sizeof *r->nets, "%s", network);
    return (uint8_t)r->net_count++;
}

/* What follows " via NET/": "IB/2/GDRDMA", "AWS Libfabric/0", "Socket/0". */
static void take_network(struct nccl_report *r, struct nccl_report_host *host, struct span record,
                         struct span to)
{
    char network[NCCL_REPORT_TEXT];
    struct nccl_report_link link = {.host = (uint32_t)(host - r->hosts)};
    uint32_t index;
    span_copy(to, "/\r\t\033", network, sizeof network);
    const char *slash = memchr(to.at, '/', (size_t)(to.end - to.at)),
               *at = slash ? slash + 1 : to.end;
    link.net = net_of(r, network);
    link.gpu = span_after(to, "GDRDMA") != NULL;
    read_ends((struct span){record.at, to.at}, &link);
    add_link(r, &link);
    struct nccl_report_nic *nic =
        nic_of(r, host, network, number(&at, to.end, &index) ? (int)index : -1);
    if (nic) {
        nic->ends++;
        nic->gpu += link.gpu;
    }
}

/* So NCCL calls all P2P of a communicator whose ranks share an NVLink domain, that within a host,
 * too: which of them is, is known at the end. */
static void take_nvlink(struct nccl_report *r, const struct nccl_report_host *host,
                        struct span record)
{
    struct nccl_report_link ends = {0};
    struct nccl_report_nvlink *nvlinks =
        array_room(r->nvlinks, r->nvlink_count, &r->nvlink_room, sizeof *nvlinks);
    if (!nvlinks) {
        r->failed = true;
        return;
    }
    read_ends(record, &ends);
    r->nvlinks = nvlinks;
    r->nvlinks[r->nvlink_count++] =
        (struct nccl_report_nvlink){(uint32_t)(host - r->hosts), ends.from, ends.to};
}

/* True when the record says how two ranks are connected. */
static bool take_connection(struct nccl_report *r, struct nccl_report_host *host,
                            struct span record)
{
    const char *to;
    if ((to = span_after(record, " via NET/"))) {
        take_network(r, host, record, span_from(record, to));
    } else if (span_after(record, " via COLLNET/")) {
        r->in_network++;
    } else if (span_after(record, " via P2P/MNNVL")) {
        take_nvlink(r, host, record);
    } else if (span_after(record, " via P2P/")) {
        r->within.p2p++;
        host->p2p++;
    } else if (span_after(record, " via SHM")) {
        r->within.shm++;
        host->shm++;
    } else {
        return false;
    }
    return true;
}

/* ---- what NCCL says of itself ---- */

/* The words behind a mark, as the name of a plugin; `as`: how it is called then. */
static const struct {
    const char *mark, *as;
} plugin_marks[] = {
    {"Initializing gIB ", "gIB "},
    {"NET/OFI Initializing aws-ofi-nccl ", "aws-ofi-nccl "},
    {"NET/OFI Using aws-ofi-nccl ", "aws-ofi-nccl "},
    {"Loaded net plugin ", ""},
    {"Loaded collnet plugin ", ""},
    {"Initialized NET plugin ", ""},
    {"P2P plugin ", ""},
    {"NET/FasTrak ", "FasTrak "},
    {"Using tuner plugin ", "tuner "},
};

/* With its version, too. */
static bool is_listed(const struct strlist *list, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < list->count; i++)
        if (strncmp(list->items[i], name, length) == 0 && list->items[i][length] == ' ')
            return true;
    return false;
}

static void take_plugin(struct nccl_report *r, struct span record)
{
    for (size_t i = 0; i < ARRAY_LEN(plugin_marks); i++) {
        const char *at = span_after(record, plugin_marks[i].mark);
        char name[NCCL_REPORT_TEXT], text[2 * NCCL_REPORT_TEXT];
        if (!at)
            continue;
        span_copy(span_from(record, at), " \r\t\033[", name, sizeof name);
        snprintf(text, sizeof text, "%s%s", plugin_marks[i].as, name);
        if (strcmp(name, "IB") != 0 && strcmp(name, "Socket") != 0 && /* NCCL's own */
            !is_listed(&r->plugins, text))
            list_once(&r->plugins, text);
    }
}

static void take_facts(struct nccl_report *r, const struct nccl_report_host *host,
                       struct span record)
{
    const char *at;
    uint32_t value;
    if ((at = span_after(record, "Using network "))) {
        char network[NCCL_REPORT_TEXT];
        span_copy(span_from(record, at), "\r\t\033[", network, sizeof network);
        for (size_t n = strlen(network); n > 0 && network[n - 1] == ' '; n--)
            network[n - 1] = '\0';
        list_once(&r->networks, network);
    }
    if ((at = span_after(record, " nranks ")) && number(&at, record.end, &value) &&
        value > r->ranks)
        r->ranks = value;
    if (span_after(record, "Connected NVLS"))
        r->nvls = true;
    if (span_after(record, "NCCL_IB_DISABLE set by environment to 1"))
        r->ib_disabled = true;
    if (span_after(record, "NCCL_NET set by environment to Socket"))
        r->socket_chosen = true;
    if (span_after(record, "Failed to open libibverbs.so"))
        r->no_verbs = true;
    if (span_after(record, "NET/OFI") && (span_after(record, "fi_getinfo() call failed") ||
                                          span_after(record, "Could not find any optimal")))
        r->plugin_failed = true;
    if (span_after(record, "NET/IB : No device found") && !r->no_device[0])
        snprintf(r->no_device, sizeof r->no_device, "%s", host->name[0] ? host->name : "a host");
    if (span_after(record, "GPU Direct RDMA Disabled for HCA"))
        r->gpu_off_device++;
    else if (span_after(record, "GPU Direct RDMA Disabled for GPU"))
        r->gpu_off_far++;
}

/* "NET/IB : Using [0]...", "NET/gIB : Using [0]...", "NET/Socket : Using [0]..." */
static void take_nics(struct nccl_report *r, struct nccl_report_host *host, struct span record)
{
    const char *net = span_after(record, "NET/"), *using = span_after(record, " : Using [");
    if (!net || !using || using < net)
        return;
    struct span list = span_from(record, using - 1);
    if (strncmp(net, "Socket", strlen("Socket")) == 0)
        take_devices(r, list, ":\r\t ", &host->interfaces);
    else
        take_devices(r, list, " \r\t[", &host->devices);
}

static void take_warning(struct nccl_report *r, struct span text)
{
    if (r->warnings++ == 0)
        span_copy(text, "\r\033", r->warning, sizeof r->warning);
}

/* ---- records ---- */

/* The next mark of NCCL in the line; its length is 9. */
static const char *next_mark(struct span s, bool *ret_warning)
{
    const char *info = span_after(s, "NCCL INFO"), *warning = span_after(s, "NCCL WARN");
    *ret_warning = warning && (!info || warning < info);
    return *ret_warning ? warning : info;
}

static void take_record(struct nccl_report *r, struct span head, struct span text, bool warning)
{
    struct span name = {"", ""};
    name.end = name.at;
    if (!nccl_record_host(head.at, head.end, &name.at, &name.end))
        name = (struct span){head.end, head.end};
    struct nccl_report_host *host = host_named(r, name);
    r->lines++;
    if (!host)
        return;
    if (warning)
        take_warning(r, text);
    if (take_connection(r, host, text))
        return;
    nccl_within_reasons(&r->within, text.at, (size_t)(text.end - text.at));
    take_plugin(r, text);
    take_nics(r, host, text);
    take_facts(r, host, text);
}

static void take_version(struct nccl_report *r, struct span line)
{
    const char *at = span_after(line, "NCCL version ");
    char version[NCCL_REPORT_TEXT];
    if (!at || at == line.end || !isdigit((unsigned char)*at))
        return;
    span_copy(span_from(line, at), " \r\t\033", version, sizeof version);
    list_once(&r->versions, version);
}

/* Ray leaves out lines that are alike: "[repeated 6x across cluster]". */
static void take_folded(struct nccl_report *r, struct span line)
{
    const char *at = span_after(line, "[repeated ");
    uint32_t count;
    if (at && number(&at, line.end, &count) && span_after(span_from(line, at), "x across cluster]"))
        r->folded += count;
}

static void take_line(struct nccl_report *r, struct span line)
{
    bool warning, next_is_warning;
    size_t before = r->lines;
    const char *text = next_mark(line, &warning), *head = line.at;
    while (text) {
        const char *next = next_mark(span_from(line, text), &next_is_warning);
        const char *end = next ? next - strlen("NCCL INFO") : line.end;
        take_record(r, (struct span){head, text - strlen("NCCL INFO")}, (struct span){text, end},
                    warning);
        head = text;
        text = next;
        warning = next_is_warning;
    }
    take_version(r, line);
    if (r->lines > before)
        take_folded(r, line);
}

/* ---- sums ---- */

static int by_ends(const void *a, const void *b)
{
    const struct nccl_report_link *x = a, *y = b;
    if (x->channel != y->channel)
        return x->channel < y->channel ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to == y->to ? 0 : x->to < y->to ? -1 : 1;
}

static size_t larger(const size_t of[3])
{
    return of[0] + (of[1] > of[2] ? of[1] : of[2]);
}

/* Both ends were said, and by one host that is named. */
static bool is_within(const struct nccl_report *r, size_t begin, size_t end)
{
    bool sends = false, receives = false;
    for (size_t i = begin; i < end; i++) {
        const struct nccl_report_link *link = &r->links[i];
        sends = sends || link->direction == 's';
        receives = receives || link->direction == 'r';
        if (link->host != r->links[begin].host)
            return false;
    }
    return sends && receives && r->hosts[r->links[begin].host].name[0];
}

/* Links of the same channel and ranks. */
static void sum_group(struct nccl_report *r, size_t begin, size_t end)
{
    size_t rdma[3] = {0}, bounced[3] = {0}, tcp[3] = {0}, unproven[3] = {0}, all[3] = {0};
    for (size_t i = begin; i < end; i++) {
        const struct nccl_report_link *link = &r->links[i];
        unsigned way = link->direction == 's' ? 1 : link->direction == 'r' ? 2 : 0;
        enum nccl_net_kind kind = nccl_net_kind(r->nets[link->net], &r->layers);
        if (kind == NCCL_NET_UNPROVEN && r->unproven + larger(unproven) == 0)
            r->unproven_net = link->net;
        all[way]++;
        tcp[way] += kind == NCCL_NET_TCP;
        unproven[way] += kind == NCCL_NET_UNPROVEN;
        rdma[way] += kind == NCCL_NET_RDMA;
        bounced[way] += kind == NCCL_NET_RDMA && !link->gpu;
    }
    if (is_within(r, begin, end)) {
        r->within.net += larger(all);
        return;
    }
    r->tcp += larger(tcp);
    r->unproven += larger(unproven);
    r->rdma += larger(rdma);
    r->rdma_gpu += larger(rdma) - larger(bounced);
}

/* Sender and receiver each say the same connection, in logs of both; communicators with ranks of
 * the same numbers say it again. */
static void sum_links(struct nccl_report *r)
{
    if (r->link_count > 0)
        qsort(r->links, r->link_count, sizeof *r->links, by_ends);
    for (size_t i = 0, next; i < r->link_count; i = next) {
        for (next = i; next < r->link_count && by_ends(&r->links[i], &r->links[next]) == 0;)
            next++;
        sum_group(r, i, next);
    }
}

static int by_sender(const void *a, const void *b)
{
    const struct nccl_report_nvlink *x = a, *y = b;
    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    return x->from == y->from ? 0 : x->from < y->from ? -1 : 1;
}

/* Senders alone write such lines: a rank that sends from the same host is on it. */
static void sum_nvlinks(struct nccl_report *r)
{
    if (r->nvlink_count > 0)
        qsort(r->nvlinks, r->nvlink_count, sizeof *r->nvlinks, by_sender);
    for (size_t i = 0; i < r->nvlink_count; i++) {
        const struct nccl_report_nvlink *link = &r->nvlinks[i];
        const struct nccl_report_nvlink receiver = {.host = link->host, .from = link->to};
        struct nccl_report_host *host = &r->hosts[link->host];
        bool known = host->name[0] && link->from != link->to;
        bool is_within = known && bsearch(&receiver, r->nvlinks, r->nvlink_count, sizeof receiver,
                                          by_sender) != NULL;
        r->nvlink_hosts += !is_within;
        r->within.p2p += is_within;
        host->p2p += is_within;
    }
}

/* Lines of a text that is plain (plain_text.h). */
static void take_lines(struct nccl_report *r, struct span text)
{
    for (const char *at = text.at; at < text.end;) {
        const char *newline = memchr(at, '\n', (size_t)(text.end - at));
        struct span line = {at, newline ? newline : text.end};
        nccl_layers_line(&r->layers, line.at, (size_t)(line.end - line.at));
        take_line(r, line);
        at = newline ? newline + 1 : text.end;
    }
}

int nccl_report_read(const char *text, size_t length, const char *name, struct nccl_report *ret,
                     struct drarun_error *err)
{
    struct plain_text plain;
    *ret = (struct nccl_report){0};
    ret->failed = !plain_text_of(text, length, &plain);
    if (!ret->failed)
        take_lines(ret, (struct span){plain.data, plain.data + plain.length});
    plain_text_done(&plain);
    sum_links(ret);
    sum_nvlinks(ret);
    if (ret->failed || ret->versions.failed || ret->plugins.failed || ret->networks.failed)
        return error_set(err, ENOMEM, "%s: out of memory", name);
    return ret->lines > 0
               ? 0
               : error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                            "%s: expected lines with NCCL INFO, as NCCL_DEBUG=INFO writes them",
                            name);
}

void nccl_report_done(struct nccl_report *report)
{
    for (size_t i = 0; i < report->host_count; i++) {
        free(report->hosts[i].name);
        free(report->hosts[i].nics);
        free(report->hosts[i].devices);
        free(report->hosts[i].interfaces);
    }
    free(report->hosts);
    free(report->table);
    free(report->links);
    free(report->nvlinks);
    strlist_done(&report->versions);
    strlist_done(&report->plugins);
    strlist_done(&report->networks);
    *report = (struct nccl_report){0};
}

const char *nccl_report_device(const struct nccl_report_host *host,
                               const struct nccl_report_nic *nic)
{
    char(*names)[NCCL_REPORT_TEXT] =
        strcmp(nic->network, "Socket") == 0 ? host->interfaces : host->devices;
    return names && nic->index >= 0 && nic->index < NCCL_REPORT_NICS ? names[nic->index] : "";
}
