/* SPDX-License-Identifier: Apache-2.0 */
/* PMI-1's "simple" wire protocol (worker/pmi1/pmi1.h), the client's side: lines over a socket that
 * the agent opened. Values are hexadecimal and short, so that any server takes them. */
#include "benchmarks/bench/rendezvous.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/number.h"

#define LINE_MAX_BYTES 2048
#define PIECE 256u /* bytes of one value, which is 512 characters long */

static struct rendezvous meeting;
static int server = -1;
static char space[320]; /* the job's name for its keys and values */
static char line[LINE_MAX_BYTES];
static unsigned rounds; /* that are done */

/* ---- lines ---- */

static int lost(const char *what, struct drarun_error *err)
{
    return error_set(err, EIO, "PMI-1: %s: the agent's socket: %s", what,
                     errno ? strerror(errno) : "closed");
}

static int say(const char *what, size_t length, struct drarun_error *err)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = send(server, line + done, length - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return lost(what, err);
        done += (size_t)n;
    }
    return 0;
}

/* One line into `line`, without its end: the server says one for each request. */
static int hear(const char *what, struct drarun_error *err)
{
    size_t length = 0;
    while (length < sizeof line - 1) {
        ssize_t n = recv(server, line + length, sizeof line - 1 - length, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n == 0 ? 0 : errno;
            return lost(what, err);
        }
        length += (size_t)n;
        if (line[length - 1] == '\n') {
            line[length - 1] = '\0';
            return 0;
        }
    }
    return error_set(err, EPROTO, "PMI-1: %s: the answer is longer than %zu bytes", what,
                     sizeof line);
}

/* Says what `line` holds, and hears an answer that begins with `expected`. */
static int ask(const char *what, int length, const char *expected, struct drarun_error *err)
{
    if (length < 0 || (size_t)length >= sizeof line)
        return error_set(err, EOVERFLOW, "PMI-1: %s: too long", what);
    int rc = say(what, (size_t)length, err);
    rc = rc < 0 ? rc : hear(what, err);
    if (rc < 0)
        return rc;
    return strncmp(line, expected, strlen(expected)) == 0
               ? 0
               : error_set(err, EPROTO, "PMI-1: %s: expected %s, got %.200s", what, expected, line);
}

#define ASK(what, expected, err, ...)                                                              \
    ask(what, snprintf(line, sizeof line, __VA_ARGS__), expected, err)

/* ---- life ---- */

static int number_of(const char *variable, unsigned max, unsigned *ret, struct drarun_error *err)
{
    int64_t number = 0;
    const char *text = getenv(variable);
    int rc = text ? number_parse(variable, text, 0, max, &number, err)
                  : error_set(err, ENOENT, "%s is not set", variable);
    if (rc == 0)
        *ret = (unsigned)number;
    return rc;
}

int rendezvous_open(struct rendezvous *ret, struct drarun_error *err)
{
    unsigned fd = 0;
    meeting = (struct rendezvous){.ranks = 1};
    if (!getenv("PMI_FD") && !getenv("PMIX_NAMESPACE")) {
        *ret = meeting;
        return 0;
    }
    int rc = number_of("PMI_FD", 1 << 20, &fd, err);
    rc = rc < 0 ? rc : number_of("PMI_SIZE", 1 << 24, &meeting.ranks, err);
    rc = rc < 0 ? rc : number_of("PMI_RANK", 1 << 24, &meeting.rank, err);
    rc = rc < 0 ? rc : number_of("DRARUN_LOCAL_RANK", 1 << 24, &meeting.local_rank, err);
    if (rc < 0)
        return error_prefix(err, "the ranks meet over PMI-1; start them with drarun");
    server = (int)fd;
    rc = ASK("init", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0", err,
             "cmd=init pmi_version=1 pmi_subversion=1\n");
    rc =
        rc < 0 ? rc : ASK("get_my_kvsname", "cmd=my_kvsname kvsname=", err, "cmd=get_my_kvsname\n");
    if (rc < 0)
        return rc;
    snprintf(space, sizeof space, "%s", strchr(strchr(line, '=') + 1, '=') + 1);
    space[strcspn(space, " ")] = '\0';
    *ret = meeting;
    return 0;
}

int rendezvous_wait(struct drarun_error *err)
{
    return server < 0 ? 0 : ASK("barrier", "cmd=barrier_out", err, "cmd=barrier_in\n");
}

void rendezvous_close(void)
{
    if (server < 0)
        return;
    rendezvous_wait(NULL);
    ASK("finalize", "cmd=finalize_ack", NULL, "cmd=finalize\n");
}

/* ---- values ---- */

/* Two keys by turns: a rank is in round n + 2 only when all have left round n, and so have read
 * what it replaces. */
static void key_of(unsigned rank, size_t piece, char key[static 48])
{
    snprintf(key, 48, "bench-%u-%u-%zu", rounds & 1, rank, piece);
}

static int put(const unsigned char *bytes, size_t length, size_t piece, struct drarun_error *err)
{
    char key[48], hex[2 * PIECE + 1] = "";
    key_of(meeting.rank, piece, key);
    for (size_t i = 0; i < length; i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    return ASK("put", "cmd=put_result rc=0", err, "cmd=put kvsname=%s key=%s value=%s\n", space,
               key, hex);
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int get(unsigned rank, unsigned char *bytes, size_t length, size_t piece,
               struct drarun_error *err)
{
    char key[48];
    key_of(rank, piece, key);
    int rc = ASK("get", "cmd=get_result rc=0", err, "cmd=get kvsname=%s key=%s\n", space, key);
    if (rc < 0)
        return rc;
    const char *hex = strstr(line, " value=");
    hex = hex ? hex + strlen(" value=") : "";
    bool good = strlen(hex) == 2 * length;
    for (size_t i = 0; good && i < length; i++) {
        int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
        good = high >= 0 && low >= 0;
        bytes[i] = good ? (unsigned char)(high << 4 | low) : 0;
    }
    return good ? 0
                : error_set(err, EPROTO, "rank %u shared something else: is it the same program?",
                            rank);
}

static size_t piece_at(size_t at, size_t bytes)
{
    return bytes - at < PIECE ? bytes - at : PIECE;
}

int rendezvous_share(const void *mine, void *all, size_t bytes, struct drarun_error *err)
{
    int rc = 0;
    rounds++;
    for (size_t at = 0; server >= 0 && rc == 0 && at < bytes; at += PIECE)
        rc = put((const unsigned char *)mine + at, piece_at(at, bytes), at / PIECE, err);
    rc = rc < 0 ? rc : rendezvous_wait(err);
    for (unsigned rank = 0; rc == 0 && rank < meeting.ranks; rank++) {
        unsigned char *to = (unsigned char *)all + rank * bytes;
        if (rank == meeting.rank)
            memcpy(to, mine, bytes);
        for (size_t at = 0; rank != meeting.rank && rc == 0 && at < bytes; at += PIECE)
            rc = get(rank, to + at, piece_at(at, bytes), at / PIECE, err);
    }
    return rc;
}
