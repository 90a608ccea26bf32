/* SPDX-License-Identifier: Apache-2.0 */
/* light GETS FENCES: as px, but without libpmix: it speaks the clients' protocol itself and keeps
 * nothing, so that thousands fit on one machine (a real client keeps 20 KiB for each rank of the
 * job). Prints the same line as px.
 *
 * Of openpmix 5.0.7: the greeting is src/mca/ptl/base/ptl_base_connection_hdlr.c; after it,
 * messages are pmix_ptl_hdr_t (mca/ptl/ptl_types.h) and a buffer of bfrops "v41", non-described: a
 * count before each value, integers in base 128, lengths of strings also zigzag. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { DATA_SIZE = 128, STEPS = 8, TAG_FIRST = 100 };
enum { CMD_REQUEST, CMD_ABORT, CMD_COMMIT, CMD_FENCE, CMD_GET, CMD_FINALIZE };
enum { SCOPE_LOCAL = 1, SCOPE_REMOTE = 2 };
enum { TYPE_BOOL = 1, TYPE_BYTES = 27, BUFFER_PLAIN = 1 };
static const uint32_t every_rank = UINT32_MAX - 1;

struct header {
    uint32_t index, tag, bytes, padding;
};

struct text {
    uint8_t data[1024];
    size_t len;
};

static int fd = -1;
static uint32_t rank, index_there, next_tag = TAG_FIRST;
static const char *nspace;

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "light: rank %u: %s\n", rank, what);
    exit(1);
}

static void read_all(void *data, size_t size)
{
    for (size_t got = 0; got < size;) {
        ssize_t n = read(fd, (char *)data + got, size - got);
        check(n > 0, "the server closed the connection");
        got += (size_t)n;
    }
}

static void write_all(const void *data, size_t size)
{
    for (size_t put = 0; put < size;) {
        ssize_t n = write(fd, (const char *)data + put, size - put);
        check(n > 0, "cannot write to the server");
        put += (size_t)n;
    }
}

/* ---- values ---- */

static void add(struct text *t, const void *data, size_t size)
{
    check(t->len + size <= sizeof t->data, "message too long");
    memcpy(t->data + t->len, data, size);
    t->len += size;
}

static void add_byte(struct text *t, int byte)
{
    uint8_t b = (uint8_t)byte;
    add(t, &b, 1);
}

static void add_number(struct text *t, uint32_t number)
{
    for (; number >= 0x80; number >>= 7)
        add_byte(t, (int)(0x80 | (number & 0x7f)));
    add_byte(t, (int)number);
}

/* The count of one value stands before what one call packs. */
static void add_one(struct text *t)
{
    add_byte(t, 2);
}

static void add_string(struct text *t, const char *string)
{
    uint32_t size = (uint32_t)strlen(string) + 1;
    add_number(t, size * 2);
    add(t, string, size);
}

/* ---- messages ---- */

/* Sends a message and reads its answer: whole, or as much of it as there is room. */
static size_t ask(const struct text *t, void *answer, size_t room)
{
    uint8_t rest[4096];
    struct header h = {htonl(index_there), htonl(next_tag), htonl((uint32_t)t->len), 0};
    struct text frame = {.len = 0};
    add(&frame, &h, sizeof h);
    add(&frame, t->data, t->len);
    write_all(frame.data, frame.len);
    do /* notifications come uncalled */
    {
        read_all(&h, sizeof h);
        size_t size = ntohl(h.bytes), kept = ntohl(h.tag) == next_tag && size < room ? size : 0;
        read_all(answer, kept);
        for (size_t left = size - kept; left > 0;) {
            size_t part = left < sizeof rest ? left : sizeof rest;
            read_all(rest, part);
            left -= part;
        }
    } while (ntohl(h.tag) != next_tag);
    next_tag++;
    return ntohl(h.bytes);
}

static void check_success(const struct text *t, const char *what)
{
    uint8_t answer[64] = {0};
    check(ask(t, answer, sizeof answer) == 2 && answer[0] == 2 && answer[1] == 0, what);
}

static void greet(void)
{
    const char *uri = getenv("PMIX_SERVER_URI41"), *number = getenv("PMIX_RANK");
    char host[64];
    unsigned port;
    nspace = getenv("PMIX_NAMESPACE");
    check(uri && number && nspace && strchr(uri, ';') &&
              sscanf(strchr(uri, ';'), ";tcp4://%63[^:]:%u", host, &port) == 2,
          "no PMIx server in the environment");
    rank = (uint32_t)atoi(number);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, host, &to.sin_addr);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "connect");

    struct text body = {.len = 0}, frame = {.len = 0};
    uint32_t credential[3] = {htonl(8), geteuid(), getegid()}, rank_there = htonl(rank);
    add(&body, "native", 7);
    add(&body, credential, sizeof credential);
    add_byte(&body, 0); /* a simple client */
    add(&body, nspace, strlen(nspace) + 1);
    add(&body, &rank_there, sizeof rank_there);
    add(&body, "4.2.2", 6);
    add(&body, "v41", 4);
    add_byte(&body, BUFFER_PLAIN);
    add(&body, "hash", 6); /* with the empty blob behind it */
    struct header h = {UINT32_MAX, UINT32_MAX, (uint32_t)body.len, 0}; /* not in network order */
    add(&frame, &h, sizeof h);
    add(&frame, body.data, body.len);
    write_all(frame.data, frame.len);
    uint32_t status;
    read_all(&status, sizeof status);
    check(status == 0, "the server refuses");
    read_all(&index_there, sizeof index_there);
    index_there = ntohl(index_there);
}

static void begin(struct text *t, int command)
{
    t->len = 0;
    add_one(t);
    add_byte(t, command);
}

static void request_job(void)
{
    struct text t;
    uint8_t answer[16];
    begin(&t, CMD_REQUEST);
    check(ask(&t, answer, sizeof answer) > 64, "no job information");
}

static void fill(char *data, uint32_t of)
{
    for (unsigned i = 0; i < DATA_SIZE; i++)
        data[i] = (char)(of * 31 + i * 7 + (of >> 8));
}

static void put(void)
{
    struct text t, value = {.len = 0};
    char data[DATA_SIZE];
    fill(data, rank);
    add_one(&value);
    add_string(&value, "px");
    add_byte(&value, TYPE_BYTES);
    add_number(&value, sizeof data);
    add(&value, data, sizeof data);
    begin(&t, CMD_COMMIT);
    for (int scope = SCOPE_LOCAL; scope <= SCOPE_REMOTE; scope++) {
        add_one(&t);
        add_byte(&t, scope);
        add_one(&t);
        add_byte(&t, BUFFER_PLAIN);
        add_number(&t, (uint32_t)value.len);
        add(&t, value.data, value.len);
    }
    check_success(&t, "Commit");
}

static void fence(bool collect)
{
    struct text t;
    begin(&t, CMD_FENCE);
    add_one(&t);
    add_number(&t, 1); /* one entry: */
    add_one(&t);
    add_string(&t, nspace);
    add_number(&t, every_rank);
    add_one(&t);
    add_number(&t, 1); /* one directive: */
    add_one(&t);
    add_string(&t, "pmix.collect");
    add_number(&t, 0);
    add_byte(&t, TYPE_BOOL);
    add_byte(&t, collect);
    check_success(&t, "Fence");
}

static void get(uint32_t of)
{
    struct text t;
    uint8_t answer[1024] = {0};
    char data[DATA_SIZE];
    begin(&t, CMD_GET);
    add_one(&t);
    add_string(&t, nspace);
    add_one(&t);
    add_number(&t, of);
    add_one(&t);
    add_number(&t, 0); /* directives */
    add_one(&t);
    add_string(&t, "px");
    size_t size = ask(&t, answer, sizeof answer);
    fill(data, of);
    check(size < sizeof answer && answer[1] == 0 && memmem(answer, size, data, sizeof data),
          "wrong data");
}

static uint32_t job_size(void)
{
    const char *size = getenv("WORLD_SIZE");
    check(size, "no WORLD_SIZE");
    return (uint32_t)atoi(size);
}

int main(int argc, char **argv)
{
    long long at[STEPS] = {now_ns()};
    char line[512];
    if (argc != 3)
        return 64;
    greet();
    request_job();
    at[1] = now_ns();
    uint32_t size = job_size();
    uint32_t gets = strcmp(argv[1], "all") == 0 ? size : (uint32_t)atoi(argv[1]);
    put();
    at[2] = now_ns();
    fence(true);
    at[3] = now_ns();
    for (uint32_t i = 0; i < gets; i++)
        get((uint32_t)((rank + (unsigned long long)i * size / gets) % size));
    at[4] = now_ns();
    fence(false); /* all begin the next part together */
    at[5] = now_ns();
    for (int i = 0; i < atoi(argv[2]); i++)
        fence(false);
    at[6] = now_ns();
    struct text t;
    begin(&t, CMD_FINALIZE);
    check_success(&t, "Finalize");
    at[7] = now_ns();
    int length = snprintf(line, sizeof line, "px %u %u", rank, size);
    for (int i = 0; i < STEPS; i++)
        length += snprintf(line + length, sizeof line - (size_t)length, " %lld", at[i]);
    line[length++] = '\n';
    return write(STDOUT_FILENO, line, (size_t)length) == length ? 0 : 1;
}
