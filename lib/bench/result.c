/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/array.h"
#include "lib/bench/result.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/order.h"

void result_init(struct result *r)
{
    *r = (struct result){.wrong_rows = -1, .average = -1};
}

static void half_done(struct result_half *half)
{
    free(half->calls);
    free(half->ranks);
}

void result_done(struct result *r)
{
    for (size_t i = 0; i < r->row_count; i++) {
        half_done(&r->rows[i].out_of_place);
        half_done(&r->rows[i].in_place);
    }
    free(r->rows);
    free(r->ranks);
    strlist_done(&r->args);
    strlist_done(&r->env);
    strlist_done(&r->faults.rose);
    probed_done(&r->probed);
    json_decref(r->about);
    result_init(r);
}

struct result_rank *result_add_rank(struct result *r)
{
    void *list = array_room(r->ranks, r->rank_count, &r->rank_cap, sizeof *r->ranks);
    if (!list)
        return NULL;
    r->ranks = list;
    r->ranks[r->rank_count] = (struct result_rank){.device = -1, .numa = -1};
    return &r->ranks[r->rank_count++];
}

struct result_row *result_add_row(struct result *r)
{
    const struct result_half unknown = {.seconds = -1, .wrong = -1};
    void *list = array_room(r->rows, r->row_count, &r->row_cap, sizeof *r->rows);
    if (!list)
        return NULL;
    r->rows = list;
    r->rows[r->row_count] = (struct result_row){
        .root = -1, .latency = -1, .out_of_place = unknown, .in_place = unknown};
    return &r->rows[r->row_count++];
}

/* ---- names ---- */

void result_name_collective(struct result *r, const char *word)
{
    static const char *const names[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                        "reduce",     "alltoall",   "alltoallv",      "gather",
                                        "scatter",    "sendrecv",   "hypercube",      "barrier"};
    const char *slash = strrchr(word, '/');
    const char *name = slash ? slash + 1 : word;
    size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, "_perf") == 0)
        length -= 5;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0)
            snprintf(r->collective, sizeof r->collective, "%s", names[i]);
}

void result_name_nccl(struct result *r, unsigned code)
{
    unsigned thousand = code >= 10000 ? 10000 : 1000;
    snprintf(r->library, sizeof r->library, "NCCL %u.%u.%u", code / thousand, code % thousand / 100,
             code % 100);
}

void result_clean_text(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

static void clean_probed(struct probed *p)
{
    result_clean_text(p->why_not);
    for (size_t i = 0; i < 2 * p->slow_count; i++) {
        struct probed_end *end = i % 2 ? &p->slow[i / 2].other : &p->slow[i / 2].at;
        char *const texts[] = {end->host, end->node, end->device, end->nic};
        for (size_t k = 0; k < ARRAY_LEN(texts); k++)
            result_clean_text(texts[k]);
    }
}

void result_clean(struct result *r)
{
    char *const texts[] = {
        r->program,      r->library,       r->collective,        r->start,
        r->end,          r->faults.looked, r->failure.kind,      r->failure.text,
        r->failure.host, r->failure.cause, r->faults.not_looked,
    };
    clean_probed(&r->probed);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        result_clean_text(texts[i]);
    for (size_t i = 0; i < r->faults.rose.count; i++)
        result_clean_text(r->faults.rose.items[i]);
    for (size_t i = 0; i < r->rank_count; i++) {
        char *const of_rank[] = {r->ranks[i].host,    r->ranks[i].node,    r->ranks[i].model,
                                 r->ranks[i].address, r->ranks[i].nearest, r->ranks[i].nic,
                                 r->ranks[i].path,    r->ranks[i].kernel,  r->ranks[i].driver};
        for (size_t k = 0; k < ARRAY_LEN(of_rank); k++)
            result_clean_text(of_rank[k]);
    }
    for (size_t i = 0; i < r->row_count; i++) {
        result_clean_text(r->rows[i].type);
        result_clean_text(r->rows[i].op);
    }
}

void result_size_text(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < ARRAY_LEN(units); unit++)
        value /= 1024;
    snprintf(text, size, "%.4g %s", value, units[unit]);
}

/* ---- sums ---- */

static const struct result_half *half_at(const struct result *r, size_t i)
{
    const struct result_row *row = &r->rows[i / 2];
    return i % 2 ? &row->in_place : &row->out_of_place;
}

double result_average(const struct result *r)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < 2 * r->row_count; i++) {
        const struct result_half *half = half_at(r, i);
        sum += half->measured ? half->busbw : 0;
        count += half->measured;
    }
    return count ? sum / (double)count : -1;
}

const struct result_row *result_latency(const struct result *r)
{
    for (size_t i = 0; i < r->row_count; i++)
        if (r->rows[i].latency >= 0)
            return &r->rows[i];
    return NULL;
}

size_t result_measured(const struct result *r)
{
    size_t count = 0;
    for (size_t i = 0; i < r->row_count; i++)
        count += r->rows[i].out_of_place.measured || r->rows[i].in_place.measured;
    return count;
}

double result_wrong(const struct result *r)
{
    double sum = -1;
    for (size_t i = 0; i < 2 * r->row_count; i++) {
        const struct result_half *half = half_at(r, i);
        if (half->wrong >= 0)
            sum = (sum < 0 ? 0 : sum) + half->wrong;
    }
    return sum;
}

void result_wrong_ranks(const struct result *r, size_t most, struct strlist *ret_ranks)
{
    size_t count = 0;
    for (size_t i = 0; i < r->rank_count; i++) {
        const struct result_rank *rank = &r->ranks[i];
        bool device = strchr(rank->address, ':'); /* else the backend's name */
        if (rank->wrong <= 0 || ++count > most)
            continue;
        strlist_addf(ret_ranks, "rank %u on %s (%s%s%s): %.0f element%s", rank->rank,
                     rank->node[0] ? rank->node : rank->host, rank->model, device ? " " : "",
                     device ? rank->address : "", rank->wrong, rank->wrong == 1 ? "" : "s");
    }
    if (count > most)
        strlist_addf(ret_ranks, "%zu more rank%s", count - most, count - most == 1 ? "" : "s");
}

const struct result_half *result_peak(const struct result *r, const struct result_row **ret_row)
{
    const struct result_half *peak = NULL;
    for (size_t i = 0; i < 2 * r->row_count; i++) {
        const struct result_half *half = half_at(r, i);
        if (!half->measured || (peak && half->busbw <= peak->busbw))
            continue;
        peak = half;
        *ret_row = &r->rows[i / 2];
    }
    return peak;
}

double result_busbw_at(const struct result *r, uint64_t bytes)
{
    double best = -1;
    for (size_t i = 0; i < r->row_count; i++) {
        const struct result_half *halves[] = {&r->rows[i].out_of_place, &r->rows[i].in_place};
        for (size_t k = 0; r->rows[i].bytes == bytes && k < 2; k++)
            if (halves[k]->measured && halves[k]->busbw > best)
                best = halves[k]->busbw;
    }
    return best;
}

size_t result_hosts(const struct result *r)
{
    size_t known = 0, different = 0;
    cleanup_free const char **hosts = calloc(r->rank_count + 1, sizeof *hosts);
    if (!hosts)
        return 0;
    for (size_t i = 0; i < r->rank_count; i++)
        if (r->ranks[i].host[0])
            hosts[known++] = r->ranks[i].host;
    qsort(hosts, known, sizeof *hosts, order_texts);
    for (size_t i = 0; i < known; i++)
        different += i == 0 || strcmp(hosts[i], hosts[i - 1]) != 0;
    return different;
}

size_t result_rank_zeros(const struct result *r)
{
    size_t count = 0;
    for (size_t i = 0; i < r->rank_count; i++)
        count += r->ranks[i].rank == 0;
    return count;
}

static int compare_groups(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

size_t result_groups(const struct result *r)
{
    size_t different = 0;
    cleanup_free unsigned *groups = calloc(r->rank_count + 1, sizeof *groups);
    if (!groups)
        return 0;
    for (size_t i = 0; i < r->rank_count; i++)
        groups[i] = r->ranks[i].group;
    qsort(groups, r->rank_count, sizeof *groups, compare_groups);
    for (size_t i = 0; i < r->rank_count; i++)
        different += i == 0 || groups[i] != groups[i - 1];
    return different;
}

/* ---- environment ---- */

/* What decides how fast a collective is. nccl-tests writes the whole environment, tokens and all.
 */
static const char *const allowed[] = {"NCCL_",        "UCX_",         "FI_",
                                      "MPIR_CVAR_",   "OMPI_MCA_btl", "OMPI_MCA_coll",
                                      "OMPI_MCA_mtl", "OMPI_MCA_pml"};
static const char *const exactly[] = {"CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"};
/* Within them, what could carry a secret or a path of somebody's. */
static const char *const never[] = {"KEY",  "TOKEN",   "SECRET", "PASS", "CRED", "COOKIE",   "AUTH",
                                    "CERT", "COMM_ID", "FILE",   "PATH", "URI",  "DIRECTORY"};

bool result_env_allowed(const char *assignment)
{
    size_t length = strcspn(assignment, "=");
    char name[128];
    bool ok = false;
    if (length == 0 || length >= sizeof name)
        return false;
    memcpy(name, assignment, length);
    name[length] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(exactly); i++)
        ok = ok || strcmp(name, exactly[i]) == 0;
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        ok = ok || strncmp(name, allowed[i], strlen(allowed[i])) == 0;
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        ok = ok && !strcasestr(name, never[i]);
    return ok && strlen(assignment) <= 256 && !strstr(assignment, "://");
}

void result_env_take(struct result *r, char *const environment[])
{
    for (size_t i = 0; environment && environment[i]; i++)
        if (result_env_allowed(environment[i]))
            strlist_add(&r->env, environment[i]);
}

const char *result_own_nics(const struct result_rank *rank)
{
    return rank->nearest[0] ? rank->nearest : strchr(rank->nic, ',') ? "" : rank->nic;
}
