/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of drarun-worker --reach, over rails that need no device: what they are called with is
 * in the text of their failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/verbs/reach_rail.h"
#include "worker/modes/reach.h"

#define FULL_GID "fe0102030405060708090a0b0c0d0eff"
#define ADDRESS(qp, psn, lid, mtu, gid, at, key)                                                   \
    "{\"qp\":" qp ",\"psn\":" psn ",\"lid\":" lid ",\"mtu\":" mtu                                  \
    ",\"global\":true,\"gid\":\"" gid "\",\"at\":" at ",\"key\":" key "}"
#define GOOD ADDRESS("1", "2", "3", "1024", FULL_GID, "5", "6")
#define RAILS "{\"rails\":[{\"device\":\"mlx5_0\",\"port\":1,\"gid\":3}],\"limitMs\":1001}"

/* ---- rails ---- */

struct reach_rail {
    int unused;
};

static void fail_with(struct reach_failure *ret, enum reach_fault fault, int code, const char *text,
                      const struct reach_address *peer, uint64_t seed, int64_t limit_ms)
{
    *ret = (struct reach_failure){.fault = fault, .code = code};
    snprintf(ret->why, sizeof ret->why,
             "%s qp %u psn %u lid %u mtu %u global %d gid %02x..%02x%02x at %" PRIu64
             " key %u seed %" PRIu64 " limit %" PRId64,
             text, peer->qp, peer->psn, peer->lid, peer->mtu, peer->global, peer->gid[0],
             peer->gid[14], peer->gid[15], peer->at, peer->key, seed, limit_ms);
}

bool __wrap_reach_rail_open(const char *device, uint32_t port, uint32_t gid,
                            struct reach_rail **ret_rail, struct reach_failure *ret_failure);
void __wrap_reach_rail_address(const struct reach_rail *rail, enum reach_end end,
                               struct reach_address *ret_address);
bool __wrap_reach_rail_accept(struct reach_rail *rail, const struct reach_address *from,
                              struct reach_failure *ret_failure);
bool __wrap_reach_rail_await(struct reach_rail *rail, uint64_t seed,
                             struct reach_failure *ret_failure);
bool __wrap_reach_rail_write(struct reach_rail *rail, const struct reach_address *to, uint64_t seed,
                             int64_t limit_ms, struct reach_failure *ret_failure);

/* "mlx5_0" alone opens. */
bool __wrap_reach_rail_open(const char *device, uint32_t port, uint32_t gid,
                            struct reach_rail **ret_rail, struct reach_failure *ret_failure)
{
    static struct reach_rail rail;
    if (strcmp(device, "mlx5_0") != 0) {
        *ret_failure = (struct reach_failure){.fault = REACH_FAULT_PORT, .code = 19};
        snprintf(ret_failure->why, sizeof ret_failure->why, "%s port %u gid %u", device, port, gid);
        return false;
    }
    *ret_rail = &rail;
    return true;
}

void __wrap_reach_rail_address(const struct reach_rail *rail, enum reach_end end,
                               struct reach_address *ret_address)
{
    (void)rail;
    uint32_t more = end == REACH_OUT ? 100 : 0;
    *ret_address = (struct reach_address){.qp = 1 + more,
                                          .psn = 2 + more,
                                          .lid = 3 + more,
                                          .mtu = 4 + more,
                                          .global = end == REACH_OUT,
                                          .gid = {0xfe, 0x80, [15] = (uint8_t)(5 + more)},
                                          .at = 6 + more,
                                          .key = 7 + more};
}

/* A writer of queue pair 1 is not taken, one of 2 sends other data. */
bool __wrap_reach_rail_accept(struct reach_rail *rail, const struct reach_address *from,
                              struct reach_failure *ret_failure)
{
    (void)rail;
    if (from->qp != 1)
        return true;
    fail_with(ret_failure, REACH_FAULT_ROUTE, 113, "accept", from, 0, 0);
    return false;
}

bool __wrap_reach_rail_await(struct reach_rail *rail, uint64_t seed,
                             struct reach_failure *ret_failure)
{
    (void)rail;
    if (seed != 9)
        return true;
    *ret_failure = (struct reach_failure){.fault = REACH_FAULT_DATA, .why = "of seed 9"};
    return false;
}

bool __wrap_reach_rail_write(struct reach_rail *rail, const struct reach_address *to, uint64_t seed,
                             int64_t limit_ms, struct reach_failure *ret_failure)
{
    (void)rail;
    if (to->qp != 1)
        return true;
    fail_with(ret_failure, REACH_FAULT_RETRY, 0, "write", to, seed, limit_ms);
    return false;
}

/* ---- the process ---- */

struct process {
    pid_t pid;
    FILE *in, *out, *err;
    char *line;
    size_t size;
};

static void start(struct process *process)
{
    int in[2], out[2], err[2];
    assert_int_equal(pipe(in) | pipe(out) | pipe(err), 0);
    *process = (struct process){.pid = fork()};
    if (process->pid == 0) {
        signal(SIGPIPE, SIG_IGN);
        if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0 || dup2(err[1], 2) < 0)
            _exit(99);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        _exit(reach_serve());
    }
    assert_true(process->pid > 0);
    close(in[0]), close(out[1]), close(err[1]);
    process->in = fdopen(in[1], "w");
    process->out = fdopen(out[0], "r");
    process->err = fdopen(err[0], "r");
}

static void tell(struct process *process, const char *line)
{
    assert_true(fprintf(process->in, "%s\n", line) > 0);
    assert_int_equal(fflush(process->in), 0);
}

static void hear(struct process *process, const char *expected)
{
    assert_true(getline(&process->line, &process->size, process->out) > 0);
    process->line[strcspn(process->line, "\n")] = '\0';
    assert_string_equal(process->line, expected);
}

/* error: the end of what it logs; NULL: nothing, and it ends well. */
static void end(struct process *process, const char *error)
{
    int status;
    fclose(process->in);
    bool logged = getline(&process->line, &process->size, process->err) > 0;
    if (error) {
        assert_true(logged);
        process->line[strcspn(process->line, "\n")] = '\0';
        const char *at = strstr(process->line, "--reach: ");
        assert_non_null(at);
        assert_string_equal(at + strlen("--reach: "), error);
    } else if (logged) {
        fail_msg("%s", process->line);
    }
    assert_true(getline(&process->line, &process->size, process->out) < 0);
    assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), error ? 70 : 0);
    fclose(process->out);
    fclose(process->err);
    free(process->line);
}

#define OPENED                                                                                     \
    "{\"rail\":0,\"in\":{\"qp\":1,\"psn\":2,\"lid\":3,\"mtu\":4,\"global\":false,\"gid\":"         \
    "\"fe800000000000000000000000000005\",\"at\":6,\"key\":7},\"out\":{\"qp\":101,\"psn\":102,"    \
    "\"lid\":103,\"mtu\":104,\"global\":true,\"gid\":\"fe800000000000000000000000000069\","        \
    "\"at\":106,\"key\":107}}"

static void opens_rails_and_tells_their_addresses(void **state)
{
    (void)state;
    struct process process;
    start(&process);
    tell(&process, RAILS);
    hear(&process, OPENED);
    end(&process, NULL);

    start(&process);
    tell(&process, "{\"rails\":[{\"device\":\"bnxt_1\",\"port\":255,\"gid\":254}],\"limitMs\":0}");
    hear(&process, "{\"rail\":0,\"open\":false,\"fault\":\"port\",\"code\":19,"
                   "\"why\":\"bnxt_1 port 255 gid 254\"}");
    tell(&process, "{\"accept\":" GOOD ",\"rail\":0,\"seed\":1}");
    end(&process, "rail 0 is not open, or was told that before");
}

static void each_step_tells_what_came_of_it(void **state)
{
    (void)state;
    static const struct {
        const char *told, *heard[2];
    } table[] = {
        {"{\"accept\":" GOOD ",\"rail\":0,\"seed\":8}",
         {"{\"rail\":0,\"accepted\":false,\"fault\":\"route\",\"code\":113,\"why\":\"accept qp 1 "
          "psn 2 lid 3 mtu 1024 global 1 gid fe..0eff at 5 key 6 seed 0 limit 0\"}"}},
        {"{\"accept\":" ADDRESS("2", "2", "3", "4", FULL_GID, "5", "6") ",\"rail\":0,\"seed\":8}",
         {"{\"rail\":0,\"accepted\":true}", "{\"rail\":0,\"saw\":true}"}},
        {"{\"accept\":" ADDRESS("2", "2", "3", "4", FULL_GID, "5", "6") ",\"rail\":0,\"seed\":9}",
         {"{\"rail\":0,\"accepted\":true}",
          "{\"rail\":0,\"saw\":false,\"fault\":\"data\",\"code\":0,\"why\":\"of seed 9\"}"}},
        /* half of limitMs: the other half is for the other side to accept */
        {"{\"write\":" GOOD ",\"rail\":0,\"seed\":9223372036854775807}",
         {"{\"rail\":0,\"wrote\":false,\"fault\":\"retry\",\"code\":0,\"why\":\"write qp 1 psn 2 "
          "lid 3 mtu 1024 global 1 gid fe..0eff at 5 key 6 seed 9223372036854775807 limit 500\"}"}},
        {"{\"write\":" ADDRESS("16777215", "16777215", "65535", "4096", FULL_GID,
                               "9223372036854775807", "4294967295") ",\"rail\":0,\"seed\":0}",
         {"{\"rail\":0,\"wrote\":true}"}},
        {"{\"write\":" ADDRESS("0", "0", "0", "0", FULL_GID, "0", "0") ",\"rail\":0,\"seed\":0}",
         {"{\"rail\":0,\"wrote\":true}"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct process process;
        start(&process);
        tell(&process, RAILS);
        hear(&process, OPENED);
        tell(&process, table[i].told);
        for (size_t k = 0; k < 2 && table[i].heard[k]; k++)
            hear(&process, table[i].heard[k]);
        end(&process, NULL);
    }
}

static void an_end_is_connected_once(void **state)
{
    (void)state;
    static const char *const told[] = {"accept", "write"}, *const step[] = {"accepted", "wrote"};
    for (size_t i = 0; i < 2; i++) {
        char line[512], heard[64];
        struct process process;
        start(&process);
        tell(&process, RAILS);
        hear(&process, OPENED);
        for (size_t k = 0; k < 2; k++) { /* the two ends do not stand in each other's way */
            size_t at = (i + k) % 2;
            snprintf(line, sizeof line, "{\"%s\":%s,\"rail\":0,\"seed\":8}", told[at],
                     ADDRESS("2", "2", "3", "4", FULL_GID, "5", "6"));
            tell(&process, line);
            snprintf(heard, sizeof heard, "{\"rail\":0,\"%s\":true}", step[at]);
            hear(&process, heard);
            if (at == 0)
                hear(&process, "{\"rail\":0,\"saw\":true}");
        }
        tell(&process, line);
        end(&process, "rail 0 is not open, or was told that before");
    }
}

static void what_is_no_request_ends_it(void **state)
{
    (void)state;
#define LIST "rails: a second list, none, too many, or no limitMs"
#define CONNECT "no rail, seed and address"
    static const struct {
        bool opened; /* RAILS comes first */
        const char *told, *error;
    } table[] = {
        {false, "", "neither rails, accept nor write"},
        {false, "[]", "neither rails, accept nor write"},
        {false, "{\"rail\":0,\"seed\":1}", "neither rails, accept nor write"},
        {false, "{\"rails\":[],\"limitMs\":1}", LIST},
        {false, "{\"rails\":{},\"limitMs\":1}", LIST},
        {false, "{\"rails\":[{\"device\":\"a\",\"port\":1,\"gid\":1}]}", LIST},
        {false, "{\"rails\":[{\"device\":\"a\",\"port\":1,\"gid\":1}],\"limitMs\":-1}", LIST},
        {false, "{\"rails\":[{\"device\":\"a\",\"port\":1,\"gid\":1}],\"limitMs\":\"9\"}", LIST},
        {false, "{\"rails\":[{\"device\":\"a\",\"port\":1,\"gid\":1}],\"limitMs\":3600001}", LIST},
        {true, RAILS, LIST},
        {false,
         "{\"rails\":[{\"device\":\"a\",\"port\":1,\"gid\":1},{\"port\":1,\"gid\":1}],"
         "\"limitMs\":3600000}",
         "rails[1]: no device, port and gid"},
        {false, "{\"rails\":[{\"device\":\"a\",\"port\":256,\"gid\":1}],\"limitMs\":1}",
         "rails[0]: no device, port and gid"},
        {false, "{\"rails\":[{\"device\":\"a\",\"port\":1,\"gid\":256}],\"limitMs\":1}",
         "rails[0]: no device, port and gid"},
        {false, "{\"rails\":[{\"device\":\"a\",\"port\":1}],\"limitMs\":1}",
         "rails[0]: no device, port and gid"},
        {false, "{\"accept\":" GOOD ",\"rail\":0,\"seed\":1}", CONNECT},
        {true, "{\"accept\":" GOOD ",\"rail\":1,\"seed\":1}", CONNECT},
        {true, "{\"accept\":" GOOD ",\"rail\":-1,\"seed\":1}", CONNECT},
        {true, "{\"accept\":" GOOD ",\"seed\":1}", CONNECT},
        {true, "{\"accept\":" GOOD ",\"rail\":0}", CONNECT},
        {true, "{\"accept\":" GOOD ",\"rail\":0,\"seed\":-1}", CONNECT},
        {true, "{\"accept\":" GOOD ",\"rail\":0,\"rail\":0,\"seed\":1}",
         "neither rails, accept nor write"},
        {true, "{\"write\":{},\"rail\":0,\"seed\":1}", CONNECT},
#define BAD(...) {true, "{\"write\":" ADDRESS(__VA_ARGS__) ",\"rail\":0,\"seed\":1}", CONNECT}
        BAD("16777216", "2", "3", "4", FULL_GID, "5", "6"),
        BAD("1", "16777216", "3", "4", FULL_GID, "5", "6"),
        BAD("1", "2", "65536", "4", FULL_GID, "5", "6"),
        BAD("1", "2", "3", "4097", FULL_GID, "5", "6"),
        BAD("1", "2", "3", "4", FULL_GID "0", "5", "6"),
        BAD("1", "2", "3", "4", "0102", "5", "6"),
        BAD("1", "2", "3", "4", "0001020304050607080910111213140G", "5", "6"),
        BAD("1", "2", "3", "4", FULL_GID, "-1", "6"),
        BAD("1", "2", "3", "4", FULL_GID, "5", "4294967296"),
        BAD("1.0", "2", "3", "4", FULL_GID, "5", "6"),
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct process process;
        start(&process);
        if (table[i].opened) {
            tell(&process, RAILS);
            hear(&process, OPENED);
        }
        tell(&process, table[i].told);
        end(&process, table[i].error);
    }
}

static void a_list_holds_64_rails(void **state)
{
    (void)state;
    for (size_t count = 64; count <= 65; count++) {
        static char line[8192];
        struct process process;
        size_t length = (size_t)snprintf(line, sizeof line, "{\"limitMs\":1,\"rails\":[");
        for (size_t i = 0; i < count; i++)
            length += (size_t)snprintf(line + length, sizeof line - length,
                                       "%s{\"device\":\"mlx5_0\",\"port\":1,\"gid\":0}",
                                       i > 0 ? "," : "");
        snprintf(line + length, sizeof line - length, "]}");
        start(&process);
        tell(&process, line);
        for (size_t i = 0; count == 64 && i < count; i++)
            assert_true(getline(&process.line, &process.size, process.out) > 0);
        end(&process, count == 64 ? NULL : LIST);
    }
}

static void a_line_has_64_kib(void **state)
{
    (void)state;
    static char line[(64 << 10) + 1];
    struct process process;
    memset(line, ' ', sizeof line - 1);
    start(&process);
    tell(&process, line); /* and its newline */
    end(&process, "a line of 65537 bytes");
    memcpy(line, RAILS, strlen(RAILS));
    line[sizeof line - 2] = '\0';
    start(&process);
    tell(&process, line);
    hear(&process, OPENED);
    end(&process, NULL);
}

/* Nobody is there to read what comes of the rails. */
static void ends_when_its_reader_has_gone(void **state)
{
    (void)state;
    struct process process;
    int status;
    start(&process);
    fclose(process.out);
    tell(&process, RAILS);
    assert_int_equal(waitpid(process.pid, &status, 0), process.pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    fclose(process.in);
    fclose(process.err);
    free(process.line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_rails_and_tells_their_addresses),
        cmocka_unit_test(each_step_tells_what_came_of_it),
        cmocka_unit_test(an_end_is_connected_once),
        cmocka_unit_test(what_is_no_request_ends_it),
        cmocka_unit_test(a_list_holds_64_rails),
        cmocka_unit_test(a_line_has_64_kib),
        cmocka_unit_test(ends_when_its_reader_has_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
