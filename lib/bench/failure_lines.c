/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/failure_lines.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/bench/nccl_record.h"
#include "lib/bench/span.h"

static void copy(char *to, size_t size, struct span s)
{
    snprintf(to, size, "%.*s", (int)span_length(s), s.at);
    result_clean_text(to);
}

static struct span trimmed(struct span s)
{
    while (s.at < s.end && (*s.at == ' ' || *s.at == '\t'))
        s.at++;
    while (s.end > s.at && (s.end[-1] == ' ' || s.end[-1] == '\t' || s.end[-1] == '\r'))
        s.end--;
    return s;
}

/* ---- warnings ---- */

static struct failure_warning *warning_of(struct failure_lines *lines, const char *host)
{
    for (size_t i = 0; i < lines->count; i++)
        if (strcmp(lines->warnings[i].host, host) == 0)
            return &lines->warnings[i];
    if (lines->count < FAILURE_HOSTS)
        return &lines->warnings[lines->count++];
    return &lines->warnings[(lines->last + 1) % FAILURE_HOSTS];
}

/* "host:12:34 [2] graph/xml.h:101 NCCL WARN Attribute arch of node cpu not found" */
static bool take_warning(struct failure_lines *lines, struct span line)
{
    const char *mark = span_find(line, "NCCL WARN");
    struct span host = {line.at, line.at}, where = {line.at, mark};
    char name[sizeof lines->warnings->host], text[sizeof lines->warnings->text - 64], place[60];
    if (!mark)
        return false;
    nccl_record_host(line.at, mark, &host.at, &host.end);
    copy(name, sizeof name, host);
    copy(text, sizeof text, trimmed((struct span){mark + strlen("NCCL WARN"), line.end}));
    where = trimmed(where);
    const char *close = memrchr(where.at, ']', span_length(where));
    copy(place, sizeof place, trimmed((struct span){close ? close + 1 : where.end, where.end}));
    struct failure_warning *to = warning_of(lines, name);
    snprintf(to->host, sizeof to->host, "%s", name);
    snprintf(to->text, sizeof to->text, "%s%s%s%s", text, place[0] ? " (" : "", place,
             place[0] ? ")" : "");
    lines->last = (size_t)(to - lines->warnings);
    return true;
}

/* That of the host that failed; else the last of any. */
static const struct failure_warning *warning_for(const struct failure_lines *lines,
                                                 const char *host)
{
    for (size_t i = 0; i < lines->count; i++)
        if (host[0] && strcmp(lines->warnings[i].host, host) == 0)
            return &lines->warnings[i];
    return lines->count ? &lines->warnings[lines->last] : NULL;
}

static void describe(const struct failure_warning *warning, char *text, size_t size)
{
    text[0] = '\0';
    if (warning)
        snprintf(text, size, "%s%s%s", warning->host, warning->host[0] ? ": " : "", warning->text);
}

/* ---- failures ---- */

#define OF_LAUNCHER 1u
#define RELAYED 2u /* nccl-tests' trace of an error that was printed before */
#define ECHO 3u    /* of what another rank ran into */
#define ITS_OWN 4u

static const struct mark {
    const char *words, *kind;
    unsigned weight;
} marks[] = {
    {"Test NCCL failure ", "test-nccl", ITS_OWN},
    {"Test CUDA failure ", "test-cuda", ITS_OWN},
    {"Test timeout (", "test-timeout", ITS_OWN},
    {"Test failure ", "test", RELAYED},
    {" noticed that process rank ", "launcher", OF_LAUNCHER},
    {"MPI_ABORT was invoked on rank ", "launcher", OF_LAUNCHER},
    {"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", "launcher", OF_LAUNCHER},
    {"exited with non-zero status, thus causing", "launcher", OF_LAUNCHER},
    {"a non-zero exit code", "launcher", OF_LAUNCHER},
    {"srun: error: ", "launcher", OF_LAUNCHER},
    {"slurmstepd: error: ", "launcher", OF_LAUNCHER},
    {"drarun: rank ", "launcher", OF_LAUNCHER},
    {"command terminated with exit code ", "launcher", OF_LAUNCHER},
    {"Caught signal ", "launcher", OF_LAUNCHER},
    {"Segmentation fault", "launcher", OF_LAUNCHER},
};

/* NCCL's words for what begins at another rank: ncclRemoteError, and ncclSystemError of a socket.
 */
static bool is_echo(struct span text)
{
    return span_find(text, "remote process exited") ||
           span_find(text, "Connection closed by remote peer");
}

static const struct mark *mark_of(struct span line, const char **ret_at)
{
    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if ((*ret_at = span_find(line, marks[i].words)))
            return &marks[i];
    return NULL;
}

bool failure_line_is(const char *line, size_t length)
{
    const char *at;
    const struct mark *mark = mark_of((struct span){line, line + length}, &at);
    return mark && mark->weight > OF_LAUNCHER;
}

/* "a2: Test NCCL failure", " .. a2 pid 1010: Test failure": the word before " pid" or the colon,
 * which may stand right behind a row's last cell; then the rank whose host it ends with decides. */
static void name_host(struct span line, const char *mark, const struct result *r, char *ret,
                      size_t size)
{
    struct span name = {line.at, mark};
    const char *pid = span_find(name, " pid ");
    while (name.end > name.at && (name.end[-1] == ' ' || name.end[-1] == ':'))
        name.end--;
    name.end = pid ? pid : name.end;
    name.at = name.end;
    while (name.at > line.at && nccl_record_is_host(name.at[-1]))
        name.at--;
    size_t length = span_length(name), longest = 0;
    for (size_t i = 0; i < r->rank_count; i++) {
        size_t of = strlen(r->ranks[i].host);
        if (of > longest && of <= length && memcmp(name.end - of, r->ranks[i].host, of) == 0)
            longest = of;
    }
    if (longest)
        name.at = name.end - longest;
    copy(ret, size, name);
}

static void take_failure(struct failure_lines *lines, const struct mark *mark, struct span line,
                         const char *at, struct result *r)
{
    struct span text = trimmed((struct span){mark->weight == OF_LAUNCHER ? line.at : at, line.end});
    unsigned weight = mark->weight == ITS_OWN && is_echo(text) ? ECHO : mark->weight;
    struct result_failure *to = &r->failure;
    if (weight <= lines->weight)
        return;
    *to = (struct result_failure){0};
    snprintf(to->kind, sizeof to->kind, "%s", mark->kind);
    copy(to->text, sizeof to->text, text);
    if (weight > OF_LAUNCHER)
        name_host(line, at, r, to->host, sizeof to->host);
    describe(warning_for(lines, to->host), to->cause, sizeof to->cause);
    lines->weight = weight;
}

void failure_lines_take(struct failure_lines *lines, const char *line, size_t length,
                        struct result *r)
{
    struct span all = {line, line + length};
    const char *at;
    const struct mark *mark = mark_of(all, &at);
    bool warned = take_warning(lines, all);
    if (mark)
        take_failure(lines, mark, all, at, r);
    else if (warned && lines->weight > 0 && !r->failure.cause[0]) /* it was written later */
        describe(&lines->warnings[lines->last], r->failure.cause, sizeof r->failure.cause);
}

void failure_lines_warn(struct failure_lines *lines, const char *line, size_t length)
{
    take_warning(lines, (struct span){line, line + length});
}

void failure_lines_explain(const struct failure_lines *lines, struct result *r)
{
    if (r->failure.kind[0] && !r->failure.cause[0])
        describe(warning_for(lines, r->failure.host), r->failure.cause, sizeof r->failure.cause);
}

void failure_lines_end(const struct failure_lines *lines, struct result *r,
                       char ret_launcher[RESULT_FAILURE], char ret_warning[RESULT_FAILURE])
{
    ret_launcher[0] = ret_warning[0] = '\0';
    if (lines->weight == OF_LAUNCHER && r->ended) {
        snprintf(ret_launcher, RESULT_FAILURE, "%s", r->failure.text);
        r->failure = (struct result_failure){0};
    } else if (!lines->weight && !r->ended) {
        describe(warning_for(lines, ""), ret_warning, RESULT_FAILURE);
    }
}
