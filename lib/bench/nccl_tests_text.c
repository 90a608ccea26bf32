/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/nccl_tests_text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/bench/failure_lines.h"

#define CELLS 24 /* of a row: 21 with -I and -S */
#define WORD 64
#define NO_HALF 32u   /* blanks, in place of a half out of place: of calls that are replayed */
#define LABELS_MAX 6u /* words that a tool puts before a line */

struct cells {
    char list[CELLS][WORD];
    size_t blanks[CELLS]; /* before each, on its line */
    size_t count;
};

/* What the heading says of the columns. */
struct columns {
    bool known, root, cpu_time, wrong_is_delta;
    size_t half; /* cells of a half: 4, with -I 8 */
};

struct parse {
    struct runs *runs;
    struct run *run; /* NULL before the first line of any */
    struct columns columns;
    struct cells row; /* begun and not complete */
    struct failure_lines failure;
    unsigned line, row_line;
    char collective[32];       /* named by a command line before the run */
    struct nccl_layers before; /* what lines before the run say */
    bool failed;               /* out of memory */
};

static void __attribute__((format(printf, 2, 3))) note(struct parse *p, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (p->run && p->run->notes.count < 20)
        strlist_add(&p->run->notes, text);
}

static bool whole(const char *word, uint64_t *ret)
{
    char *end;
    if (!isdigit((unsigned char)word[0]))
        return false;
    errno = 0;
    unsigned long long number = strtoull(word, &end, 10);
    if (*end || errno || number > INT64_MAX)
        return false;
    *ret = number;
    return true;
}

static bool real(const char *word, double *ret)
{
    char *end;
    if (!isdigit((unsigned char)word[0]) || word[1] == 'x')
        return false;
    *ret = strtod(word, &end);
    return !*end && *ret <= RESULT_MOST;
}

/* ---- runs ---- */

static struct run *current(struct parse *p)
{
    if (p->run)
        return p->run;
    p->run = runs_add(p->runs);
    p->failed = !p->run;
    p->columns = (struct columns){0};
    p->failure = (struct failure_lines){0};
    if (p->run)
        p->run->log.layers = p->before;
    p->before = (struct nccl_layers){0};
    if (p->run && p->collective[0])
        result_name_collective(&p->run->result, p->collective);
    if (p->run)
        snprintf(p->run->result.program, sizeof p->run->result.program, "nccl-tests");
    return p->run;
}

static void finish_row(struct parse *p);

/* Of how a run ended all lines are known: what its launcher said, and NCCL. */
static void end_run(struct parse *p)
{
    char launcher[RESULT_FAILURE], warning[RESULT_FAILURE];
    if (!p->run)
        return;
    finish_row(p);
    struct result *r = &p->run->result;
    failure_lines_end(&p->failure, r, launcher, warning);
    if (launcher[0])
        note(p, "it ended badly after it had measured: %s", launcher);
    if (!r->ended)
        snprintf(p->run->missing, sizeof p->run->missing,
                 "its end (Avg bus bandwidth) is missing%s%s",
                 warning[0] ? "; NCCL's last warning: " : "", warning);
    p->run = NULL;
}

/* A line that stands before the devices and the rows begins another run when those are there, and
 * when a run with settings failed. */
static struct run *beginning(struct parse *p)
{
    finish_row(p);
    const struct result *r = p->run ? &p->run->result : NULL;
    if (r && (r->rank_count || r->row_count || r->ended || (r->failure.kind[0] && r->config.known)))
        end_run(p);
    return current(p);
}

/* ---- rows ---- */

static bool is_type(const char *word)
{
    static const char *const types[] = {
        "int8",   "uint8",    "int32",  "uint32", "int64",    "uint64",   "half", "float",
        "double", "bfloat16", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2", "char", "int"};
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(word, types[i]) == 0)
            return true;
    return false;
}

static bool is_op(const char *word)
{
    static const char *const ops[] = {"sum", "prod", "max", "min", "avg", "mulsum", "none"};
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (strcmp(word, ops[i]) == 0)
            return true;
    return false;
}

/* "[1,0]<stdout>:", "[0]", "0:": at the head of a line, and within one where the program flushed
 * half of it. Digits alone are none: they are cells. */
static size_t label_length(const char *at, const char *end)
{
    const char *p = at;
    if (*p != '[')
        return 0;
    for (p++; p < end && (isdigit((unsigned char)*p) || *p == ','); p++)
        ;
    if (p == end || *p != ']' || p == at + 1)
        return 0;
    p++;
    if ((size_t)(end - p) >= 8 && (memcmp(p, "<stdout>", 8) == 0 || memcmp(p, "<stderr>", 8) == 0))
        p += 8;
    if (p < end && *p == ':')
        p++;
    return (size_t)(p - at);
}

static void split(const char *line, const char *end, struct cells *ret)
{
    size_t blanks = 0;
    ret->count = 0;
    for (const char *at = line; at < end && ret->count < CELLS;) {
        size_t label = label_length(at, end), length = 0;
        if (isspace((unsigned char)*at) || label) {
            blanks = label ? 0 : blanks + 1;
            at += label ? label : 1;
            continue;
        }
        while (at + length < end && !isspace((unsigned char)at[length]) &&
               !label_length(at + length, end))
            length++;
        size_t kept = length < WORD ? length : WORD - 1;
        memcpy(ret->list[ret->count], at, kept);
        ret->blanks[ret->count] = blanks;
        ret->list[ret->count++][kept] = '\0';
        at += length;
        blanks = 0;
    }
}

/* Where size, count and type stand: CELLS when nowhere. */
static size_t row_start(const struct cells *c)
{
    uint64_t number;
    for (size_t i = 0; i + 2 < c->count && i <= LABELS_MAX; i++)
        if (whole(c->list[i], &number) && whole(c->list[i + 1], &number) && is_type(c->list[i + 2]))
            return i;
    return CELLS;
}

static bool is_cell(const char *word)
{
    double number;
    return real(word, &number) || strcmp(word, "N/A") == 0 || strcmp(word, "-1") == 0 ||
           strcasecmp(word, "nan") == 0 || strcasecmp(word, "-nan") == 0 ||
           strcasecmp(word, "inf") == 0;
}

/* Of a row, the cells behind size, count, type and op: what they are, is known from the heading, or
 * from how many there are. */
static size_t values_at(const struct parse *p, const struct cells *c, bool *ret_root)
{
    size_t at = 3 + (c->count > 3 && is_op(c->list[3])), values = 0;
    while (at + values < c->count && is_cell(c->list[at + values]))
        values++;
    *ret_root = p->columns.known ? p->columns.root : values == 9 || values == 17 || values == 5;
    return at;
}

static size_t half_size(const struct parse *p, size_t values)
{
    return p->columns.known ? p->columns.half : values >= 16 ? 8 : 4;
}

/* What a row has when it is complete. */
static size_t complete_at(const struct parse *p, const struct cells *c)
{
    bool root;
    size_t at = values_at(p, c, &root);
    return at + root + 2 * half_size(p, c->count - at);
}

static void take_half(const struct columns *columns, char (*cell)[WORD], size_t cells,
                      struct result_half *to)
{
    double time, spread[4] = {0};
    double algbw, busbw, wrong;
    if (cells < 4)
        return;
    if (!columns->wrong_is_delta && real(cell[3], &wrong))
        to->wrong = wrong; /* also where the figures are nan */
    if (!real(cell[0], &time) || !real(cell[1], &algbw) || !real(cell[2], &busbw))
        return;
    to->measured = true;
    to->seconds = time / 1e6;
    to->algbw = algbw;
    to->busbw = busbw;
    to->cpu_time = columns->cpu_time;
    for (size_t i = 0; cells >= 8 && i < 4; i++)
        if (!real(cell[4 + i], &spread[i]))
            return;
    (void)spread; /* least, most, p99, variation alone are not the spread that is kept */
}

static void add_cell(struct cells *to, const struct cells *from, size_t i)
{
    to->blanks[to->count] = from->blanks[i];
    memcpy(to->list[to->count++], from->list[i], WORD);
}

static void finish_row(struct parse *p)
{
    struct cells *c = &p->row;
    bool root;
    uint64_t number = 0;
    struct result_row *row;
    if (c->count == 0)
        return;
    size_t at = values_at(p, c, &root), half = half_size(p, c->count - at);
    if (!(row = current(p) ? result_add_row(&p->run->result) : NULL)) {
        p->failed = true;
        return;
    }
    whole(c->list[0], &row->bytes);
    whole(c->list[1], &row->count);
    snprintf(row->type, sizeof row->type, "%.15s", c->list[2]);
    snprintf(row->op, sizeof row->op, "%.15s", at > 3 ? c->list[3] : "none");
    if (root && at < c->count && whole(c->list[at], &number))
        row->root = (int)number;
    at += root;
    size_t left = c->count > at ? c->count - at : 0;
    bool no_first = left == half && c->blanks[at] >= NO_HALF;
    if (!no_first)
        take_half(&p->columns, &c->list[at], left < half ? left : half, &row->out_of_place);
    if (no_first)
        take_half(&p->columns, &c->list[at], left, &row->in_place);
    else if (left > half)
        take_half(&p->columns, &c->list[at + half], left - half, &row->in_place);
    if (!row->in_place.measured)
        note(p, "line %u: the row of %" PRIu64 " bytes is cut off: %s", p->row_line, row->bytes,
             row->out_of_place.measured ? "only its first half counts" : "it does not count");
    c->count = 0;
}

/* Cells of a row that was begun on an earlier line: what NCCL wrote came between. */
static bool continue_row(struct parse *p, const struct cells *c)
{
    if (p->row.count == 0 || c->count == 0)
        return false;
    for (size_t i = 0; i < c->count; i++)
        if (!is_cell(c->list[i]))
            return false;
    for (size_t i = 0; i < c->count && p->row.count < CELLS; i++)
        add_cell(&p->row, c, i);
    if (p->row.count >= complete_at(p, &p->row))
        finish_row(p);
    return true;
}

/* "-1node:12:34": a cell that NCCL's line follows without a space; how long the cell is. */
static size_t glued_cell(const char *word)
{
    size_t sign = word[0] == '-', digits = strspn(word + sign, "0123456789.");
    bool other = digits > 0 && isalpha((unsigned char)word[sign + digits]) && strchr(word, ':');
    return other ? sign + digits : 0;
}

static bool row_line(struct parse *p, const char *line, const char *end)
{
    struct cells c;
    split(line, end, &c);
    size_t start = row_start(&c);
    if (start == CELLS)
        return continue_row(p, &c);
    finish_row(p);
    if (p->run && p->run->result.ended)
        end_run(p); /* without any heading of its own */
    if (!current(p))
        return true;
    p->row_line = p->line;
    for (size_t i = start; i < c.count; i++) {
        bool cell = i <= start + 3 || is_cell(c.list[i]);
        if (!cell)
            c.list[i][glued_cell(c.list[i])] = '\0';
        if (c.list[i][0])
            add_cell(&p->row, &c, i);
        if (!cell)
            break; /* a time of day, or NCCL's words behind half a row */
    }
    if (p->row.count >= complete_at(p, &p->row))
        finish_row(p);
    return true;
}

/* ---- headings ---- */

static const char *find(const char *line, const char *end, const char *word)
{
    const char *at = memmem(line, (size_t)(end - line), word, strlen(word));
    return at ? at + strlen(word) : NULL;
}

static bool number_after(const char *line, const char *end, const char *word, uint64_t *ret)
{
    const char *at = find(line, end, word);
    char digits[24];
    size_t length = 0;
    while (at && at < end && *at == ' ')
        at++;
    while (at && at + length < end && length + 1 < sizeof digits &&
           isdigit((unsigned char)at[length])) {
        digits[length] = at[length];
        length++;
    }
    digits[length] = '\0';
    return whole(digits, ret);
}

static void columns_line(struct parse *p, const char *line, const char *end)
{
    struct columns c = {.known = true, .half = find(line, end, "i_min") ? 8 : 4};
    c.root = find(line, end, " root ") != NULL;
    c.cpu_time = find(line, end, "cputime") != NULL;
    c.wrong_is_delta = find(line, end, " error") != NULL;
    if (current(p))
        p->columns = c;
}

static void settings_line(struct parse *p, const char *line, const char *end)
{
    uint64_t step = 0;
    struct result_config c = {.known = true};
    struct run *run = beginning(p);
    if (!run)
        return;
    const struct {
        const char *word;
        uint64_t *to;
    } numbers[] = {{"nThread ", &c.threads},
                   {"nGpus ", &c.gpus},
                   {"minBytes ", &c.min_bytes},
                   {"maxBytes ", &c.max_bytes},
                   {"step: ", &step},
                   {"warmup iters: ", &c.warmup},
                   {"agg iters: ", &c.aggregated},
                   {"validation: ", &c.validation},
                   {"graph: ", &c.graph},
                   {"unalign: ", &c.unaligned}};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        number_after(line, end, numbers[i].word, numbers[i].to);
    const char *warmup = find(line, end, "warmup iters:");
    if (warmup)
        number_after(warmup, end, "iters: ", &c.iterations);
    if (p->collective[0] && !run->result.collective[0])
        result_name_collective(&run->result, p->collective);
    *(find(line, end, "(factor)") ? &c.step_factor : &c.step_bytes) = step;
    run->result.config = c;
}

static void word_at(const char *at, const char *end, char *ret, size_t size)
{
    size_t length = 0;
    while (at < end && isspace((unsigned char)*at))
        at++;
    while (at + length < end && length + 1 < size && !isspace((unsigned char)at[length]))
        length++;
    memcpy(ret, at, length);
    ret[length] = '\0';
}

static void version_line(struct parse *p, const char *line, const char *end)
{
    uint64_t code;
    char version[32];
    struct run *run = beginning(p);
    const char *ours = find(line, end, "drarun-bench version ");
    word_at(ours ? ours : find(line, end, "version "), end, version, sizeof version);
    if (!run)
        return;
    snprintf(run->result.program, sizeof run->result.program, "%s %s",
             ours ? "drarun-bench" : "nccl-tests", version);
    if (number_after(line, end, "nccl-library=", &code))
        result_name_nccl(&run->result, (unsigned)code);
    if (ours) /* "version 0.1.0 Open MPI 4.1.4" */
        snprintf(run->result.library, sizeof run->result.library, "%.*s",
                 (int)(end - ours - (ptrdiff_t)strlen(version) - 1 > 0
                           ? end - ours - (ptrdiff_t)strlen(version) - 1
                           : 0),
                 ours + strlen(version) + 1);
    if (strncmp(run->result.library, "stand-in ", 9) == 0)
        run->result.stand_in = true;
}

/* ---- devices ---- */

/* "Rank  0 Group  0 Pid   2114 on host device  0 [0000:8f:00] NVIDIA B200", also without Group and
 * Pid. */
static bool device_line(struct parse *p, const char *line, const char *end)
{
    uint64_t rank, group = 0, pid = 0, device;
    const char *on = find(line, end, " on "), *at = find(line, end, " device ");
    const char *open = at ? memchr(at, '[', (size_t)(end - at)) : NULL;
    const char *close = open ? memchr(open, ']', (size_t)(end - open)) : NULL;
    if (!on || !close || !number_after(line, end, "Rank ", &rank) ||
        !number_after(line, end, " device ", &device) || rank > 10000000 || device > 10000)
        return false;
    number_after(line, end, "Group ", &group);
    number_after(line, end, "Pid ", &pid);
    if (p->run && p->run->result.row_count > 0)
        beginning(p);
    struct result_rank *to = current(p) ? result_add_rank(&p->run->result) : NULL;
    if (!to) {
        p->failed = true;
        return true;
    }
    to->rank = (unsigned)rank;
    to->group = (unsigned)group;
    to->pid = (int)(pid < INT32_MAX ? pid : 0);
    to->device = (int)device;
    word_at(on, at, to->host, sizeof to->host);
    snprintf(to->address, sizeof to->address, "%.*s", (int)(close - open - 1), open + 1);
    for (close++; close < end && *close == ' '; close++)
        ;
    while (end > close && isspace((unsigned char)end[-1]))
        end--;
    snprintf(to->model, sizeof to->model, "%.*s", (int)(end - close), close);
    return true;
}

/* ---- the end ---- */

/* drarun-bench's, of several hosts: "# Traffic of the hosts   : rdma=123 net=456 bytes". */
static bool traffic_line(struct parse *p, const char *line, const char *end)
{
    const char *at = find(line, end, "Traffic of the hosts");
    const char *rdma = at ? find(at, end, "rdma=") : NULL;
    const char *net = rdma ? find(rdma, end, "net=") : NULL;
    char word[WORD];
    struct result_traffic traffic = {.known = true};
    if (!net || !p->run)
        return at != NULL;
    word_at(rdma, end, word, sizeof word);
    bool whole = real(word, &traffic.rdma);
    word_at(net, end, word, sizeof word);
    if (whole && real(word, &traffic.net))
        p->run->result.traffic = traffic;
    return true;
}

/* What stands behind the colon, without blanks at its ends. */
static void rest_at(const char *at, const char *end, char *text, size_t size)
{
    const char *colon = memchr(at, ':', (size_t)(end - at));
    text[0] = '\0';
    for (at = colon ? colon + 1 : end; at < end && *at == ' '; at++)
        ;
    while (end > at && isspace((unsigned char)end[-1]))
        end--;
    snprintf(text, size, "%.*s", (int)(end - at), at);
}

/* drarun-bench's: "# Errors looked for on : RDMA ports: 2, ...", "# Errors of devices : n1: ..." */
static bool faults_line(struct parse *p, const char *line, const char *end)
{
    const char *looked = find(line, end, "# Errors looked for on");
    const char *not_looked = find(line, end, "# Errors not looked for");
    const char *rose = find(line, end, "# Errors of devices");
    char text[RESULT_FAULT];
    if (!looked && !not_looked && !rose)
        return false;
    if (!p->run)
        return true;
    struct result_faults *faults = &p->run->result.faults;
    faults->known = faults->known || looked;
    if (looked)
        rest_at(looked, end, faults->looked, sizeof faults->looked);
    else if (not_looked)
        rest_at(not_looked, end, faults->not_looked, sizeof faults->not_looked);
    else if (faults->rose.count < RESULT_FAULTS_MAX) {
        rest_at(rose, end, text, sizeof text);
        strlist_add(&faults->rose, text);
    }
    return true;
}

/* drarun-bench's: "# Wrong data of        : rank 0 on n1 (NVIDIA B200 0000:8f:00.0): 12 elements"
 */
static bool wrong_line(struct parse *p, const char *line, const char *end)
{
    const char *at = find(line, end, "# Wrong data of");
    const char *colon = at ? memrchr(at, ':', (size_t)(end - at)) : NULL;
    uint64_t rank, elements;
    if (!colon || !p->run || !number_after(at, end, ": rank ", &rank) ||
        !number_after(colon, end, ":", &elements))
        return at != NULL;
    struct result *r = &p->run->result;
    for (size_t i = 0; i < r->rank_count; i++)
        if (r->ranks[i].rank == rank)
            r->ranks[i].wrong = (double)(elements < RESULT_MANY ? elements : RESULT_MANY);
    return true;
}

static bool end_line(struct parse *p, const char *line, const char *end)
{
    struct result *r = p->run ? &p->run->result : NULL;
    const char *bounds = find(line, end, "Out of bounds values");
    const char *average = find(line, end, "Avg bus bandwidth");
    char word[WORD] = "";
    double value;
    const char *colon = bounds || average ? memchr(line, ':', (size_t)(end - line)) : NULL;
    if (colon && (colon = memchr(bounds ? bounds : average, ':',
                                 (size_t)(end - (bounds ? bounds : average)))))
        word_at(colon + 1, end, word, sizeof word);
    if (!colon)
        return false;
    finish_row(p);
    r = p->run ? &p->run->result : NULL;
    if (!r)
        return true;
    r->ended = r->ended || (average && is_cell(word));
    if (average && strcasestr(word, "nan"))
        note(p, "its average is %s: of a size or more nothing was measured", word);
    if (!real(word, &value))
        return true;
    if (bounds)
        r->wrong_rows = value < (double)RESULT_MANY ? value : (double)RESULT_MANY;
    else
        r->average = value;
    if (average)
        r->below_least = find(average, end, " FAILED") != NULL;
    return true;
}

/* ---- lines ---- */

/* "…/all_reduce_perf -b 8", "mpirun … all_gather_perf_mpi", "run_nccl_tests.sh -t all_gather". */
static void command_line(struct parse *p, const char *line, const char *end)
{
    char word[WORD];
    struct result name = {0};
    bool any = find(line, end, "nccl_tests") || find(line, end, "-bench "); /* of all words */
    if (!any && !find(line, end, "_perf"))
        return;
    for (const char *at = line; at < end; at++) {
        word_at(at, end, word, sizeof word);
        char *perf = strstr(word, "_perf");
        if (perf)
            perf[5] = '\0';
        if (perf || any)
            result_name_collective(&name, word);
        if (name.collective[0]) {
            snprintf(p->collective, sizeof p->collective, "%s", name.collective);
            return;
        }
        while (at < end && isspace((unsigned char)*at))
            at++;
        while (at < end && !isspace((unsigned char)*at))
            at++;
    }
}

static void one_line(struct parse *p, const char *line, const char *end)
{
    const char *at;
    char word[WORD];
    while (end > line && isspace((unsigned char)end[-1]))
        end--;
    if ((find(line, end, "nccl-tests version ") || find(line, end, "drarun-bench version "))) {
        version_line(p, line, end);
    } else if ((at = find(line, end, "Collective test starting: "))) {
        word_at(at, end, word, sizeof word);
        if (beginning(p))
            result_name_collective(&p->run->result, word);
    } else if (find(line, end, "nThread ") && find(line, end, "minBytes ")) {
        settings_line(p, line, end);
    } else if (find(line, end, " size ") && find(line, end, " busbw ")) {
        finish_row(p);
        columns_line(p, line, end);
    } else if ((at = find(line, end, "NCCL version ")) && p->run) {
        word_at(at, end, word, sizeof word);
        snprintf(p->run->result.library, sizeof p->run->result.library, "NCCL %.*s",
                 (int)strcspn(word, "+"), word);
    } else if (!device_line(p, line, end) && !traffic_line(p, line, end) &&
               !faults_line(p, line, end) && !wrong_line(p, line, end) && !end_line(p, line, end) &&
               !row_line(p, line, end)) {
        command_line(p, line, end);
    }
    /* a line of NCCL's, or a failure, may stand behind half a row */
    size_t length = (size_t)(end - line);
    if ((find(line, end, "NCCL ") || failure_line_is(line, length)) && !current(p))
        return;
    if (!p->run) {
        nccl_layers_line(&p->before, line, length);
        return;
    }
    nccl_log_line(&p->run->log, &p->run->result, line, length);
    failure_lines_take(&p->failure, line, length, &p->run->result);
}

/* ---- what is odd ---- */

static bool near(double a, double b)
{
    return fabs(a - b) < 0.03 * b;
}

/* Only what reduces can be told from how bus and algorithm bandwidth differ. */
static void guess_collective(struct result *r)
{
    const struct result_row *row = NULL;
    const struct result_half *peak = result_peak(r, &row);
    double n = (double)r->rank_count;
    if (r->collective[0] || !peak || n < 2 || peak->algbw <= 1 || row->root >= 0 ||
        strcmp(row->op, "none") == 0)
        return;
    if (near(peak->busbw / peak->algbw, 2 * (n - 1) / n))
        result_name_collective(r, "all_reduce");
    else if (near(peak->busbw / peak->algbw, (n - 1) / n))
        result_name_collective(r, "reduce_scatter");
}

static void look_back(struct parse *p, struct run *run)
{
    struct result *r = &run->result;
    p->run = run;
    guess_collective(r);
    if (r->row_count == 0 && r->average >= 0)
        note(p, "there are no rows: only the average over all sizes is known");
}

int nccl_tests_text_read(const char *text, size_t length, const char *name, struct runs *runs,
                         struct drarun_error *err)
{
    struct parse p = {.runs = runs};
    const char *end = text + length;
    size_t before = runs->count;
    for (const char *at = text, *next; at < end && !p.failed; at = next) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        next = newline ? newline + 1 : end;
        p.line++;
        one_line(&p, at, newline ? newline : end);
    }
    end_run(&p);
    if (p.failed)
        return error_set(err, ENOMEM, "%s: out of memory", name);
    bool any = false;
    for (size_t i = before; i < runs->count; i++) {
        const struct result *r = &runs->list[i]->result;
        any = any || r->row_count || r->rank_count || r->average >= 0 || r->failure.kind[0];
        look_back(&p, runs->list[i]);
    }
    if (!any)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "%s: no row of nccl-tests in its %u lines: expected its table (size, "
                          "count, type, redop, root, time, algbw, busbw), its JSON (-J), or JSON "
                          "lines of drarun-bench",
                          name, p.line);
    return 0;
}
