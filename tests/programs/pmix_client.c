/* SPDX-License-Identifier: Apache-2.0 */
/* One client for every entry of the PMIx server: pmix_client CASE. Each rank checks what it gets
 * and exits 0, or says what was wrong and exits 1. Run with at least 4 ranks over at least 2
 * agents. */
#define _GNU_SOURCE
#include <pmix.h>
#include <pmix_tool.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static pmix_proc_t me;
static uint32_t size;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %u: %s:%d: ", me.rank, __FILE__, __LINE__);                      \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call)                                                                                   \
    do {                                                                                           \
        pmix_status_t status_ = (call);                                                            \
        CHECK(status_ == PMIX_SUCCESS, "%s: %s", #call, PMIx_Error_string(status_));               \
    } while (0)

static void put_u32(const char *key, uint32_t number)
{
    pmix_value_t value;
    PMIX_VALUE_LOAD(&value, &number, PMIX_UINT32);
    OK(PMIx_Put(PMIX_GLOBAL, key, &value));
    OK(PMIx_Commit());
}

static uint32_t get_u32(uint32_t rank, const char *key)
{
    pmix_proc_t proc;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&proc, me.nspace, rank);
    OK(PMIx_Get(&proc, key, NULL, 0, &value));
    CHECK(value->type == PMIX_UINT32, "%s of rank %u has type %d", key, rank, value->type);
    uint32_t number = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return number;
}

static void fence(const pmix_proc_t *procs, size_t count, bool collect)
{
    pmix_info_t info;
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    OK(PMIx_Fence(procs, count, &info, 1));
}

static void case_job(void)
{
    pmix_proc_t all;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    static const char *const numbers[] = {PMIX_JOB_SIZE, PMIX_LOCAL_SIZE, PMIX_NUM_NODES,
                                          PMIX_MAX_PROCS};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        OK(PMIx_Get(&all, numbers[i], NULL, 0, &value));
        CHECK(value->data.uint32 > 0 && value->data.uint32 <= size, "%s is %u", numbers[i],
              value->data.uint32);
        PMIX_VALUE_RELEASE(value);
    }
    OK(PMIx_Get(&all, PMIX_UNIV_SIZE, NULL, 0, &value)); /* slots, as many as CPUs at least */
    CHECK(value->data.uint32 >= size, "universe %u", value->data.uint32);
    PMIX_VALUE_RELEASE(value);
    OK(PMIx_Get(&me, PMIX_LOCAL_RANK, NULL, 0, &value));
    CHECK(value->data.uint16 < size, "local rank %u", value->data.uint16);
    PMIX_VALUE_RELEASE(value);
    OK(PMIx_Get(&all, PMIX_LOCAL_PEERS, NULL, 0, &value));
    char own[16];
    snprintf(own, sizeof own, "%u", me.rank);
    CHECK(strstr(value->data.string, own), "local peers %s", value->data.string);
    PMIX_VALUE_RELEASE(value);
    OK(PMIx_Get(&all, PMIX_HWLOC_XML_V2, NULL, 0, &value));
    CHECK(strstr(value->data.string, "<topology"), "no topology");
    PMIX_VALUE_RELEASE(value);
}

/* The CPUs that this rank was bound to are those that the kernel lets it run on; the locality,
 * whose HT are hardware threads, was made from the server's topology. */
static void case_bound(void)
{
    char line[4096], list[4096] = "";
    pmix_value_t *value = NULL;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status, "no /proc/self/status");
    while (fgets(line, sizeof line, status))
        sscanf(line, "Cpus_allowed_list: %4095s", list);
    fclose(status);
    OK(PMIx_Get(&me, PMIX_CPUSET, NULL, 0, &value));
    CHECK(strcmp(value->data.string, list) == 0, "CPUs %s, and the kernel says %s",
          value->data.string, list);
    PMIX_VALUE_RELEASE(value);
    OK(PMIx_Get(&me, PMIX_LOCALITY_STRING, NULL, 0, &value));
    CHECK(strstr(value->data.string, "HT"), "locality %s", value->data.string);
    PMIX_VALUE_RELEASE(value);
}

static void case_modex(void)
{
    put_u32("key", me.rank * 3 + 1);
    fence(NULL, 0, true);
    for (uint32_t r = 0; r < size; r++)
        CHECK(get_u32(r, "key") == r * 3 + 1, "wrong value of rank %u", r);
}

static void case_barrier(void)
{
    for (int i = 0; i < 200; i++)
        fence(NULL, 0, false);
}

/* The even ranks fence among themselves while the odd ones do something else. */
static void case_subset(void)
{
    pmix_proc_t *even = calloc(size, sizeof *even);
    size_t count = 0;
    for (uint32_t r = 0; r < size; r += 2, count++)
        PMIX_LOAD_PROCID(&even[count], me.nspace, r);
    if (me.rank % 2 == 0)
        for (int i = 0; i < 20; i++) {
            char key[16];
            snprintf(key, sizeof key, "sub%d", i);
            put_u32(key, me.rank + (uint32_t)i);
            fence(even, count, true);
            for (uint32_t r = 0; r < size; r += 2)
                CHECK(get_u32(r, key) == r + (uint32_t)i, "wrong value of rank %u", r);
        }
    free(even);
    fence(NULL, 0, false);
}

/* Data of more than one frame between two agents, so that they travel in pieces. */
static void case_big(void)
{
    size_t length = 5 * 1024 * 1024 + me.rank;
    char *data = malloc(length);
    CHECK(data, "no memory");
    memset(data, (int)me.rank + 1, length);
    pmix_value_t value, *found = NULL;
    pmix_proc_t proc;
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = data;
    value.data.bo.size = length;
    OK(PMIx_Put(PMIX_GLOBAL, "big", &value));
    OK(PMIx_Commit());
    fence(NULL, 0, true);
    PMIX_LOAD_PROCID(&proc, me.nspace, (me.rank + size / 2) % size);
    OK(PMIx_Get(&proc, "big", NULL, 0, &found));
    CHECK(found->type == PMIX_BYTE_OBJECT && found->data.bo.size == 5 * 1024 * 1024 + proc.rank,
          "%zu bytes of rank %u", found->data.bo.size, proc.rank);
    for (size_t i = 0; i < found->data.bo.size; i++)
        CHECK(found->data.bo.bytes[i] == (char)(proc.rank + 1), "wrong byte %zu", i);
    PMIX_VALUE_RELEASE(found);
    free(data);
}

/* Blocking Gets before any fence: the server must fetch from the other agents. */
static void case_dmodex(void)
{
    struct timespec pause = {.tv_nsec = 20000000L * (long)(me.rank % 4)};
    nanosleep(&pause, NULL); /* so that some ask before the value is there */
    put_u32("direct", me.rank + 100);
    for (uint32_t i = 1; i <= size; i++) {
        uint32_t r = (me.rank + i) % size;
        CHECK(get_u32(r, "direct") == r + 100, "wrong value of rank %u", r);
    }
    pmix_proc_t proc;
    pmix_value_t *value = NULL;
    pmix_info_t info;
    bool immediate = true;
    fence(NULL, 0, false);
    PMIX_LOAD_PROCID(&proc, me.nspace, (me.rank + 1) % size);
    PMIX_INFO_LOAD(&info, PMIX_IMMEDIATE, &immediate, PMIX_BOOL);
    pmix_status_t status = PMIx_Get(&proc, "nobody.put.this", &info, 1, &value);
    CHECK(status == PMIX_ERR_NOT_FOUND, "a missing key gives %s", PMIx_Error_string(status));
    fence(NULL, 0, false);
}

/* What one message between agents cannot carry is refused, not lost: a Get must not hang. */
static void case_dmodex_too_big(void)
{
    size_t length = 17 * 1024 * 1024;
    pmix_value_t value, *found = NULL;
    pmix_proc_t proc;
    if (me.rank == 0) {
        value.type = PMIX_BYTE_OBJECT;
        value.data.bo.bytes = calloc(length, 1);
        value.data.bo.size = length;
        OK(PMIx_Put(PMIX_GLOBAL, "big", &value));
        free(value.data.bo.bytes);
    }
    OK(PMIx_Commit());
    PMIX_LOAD_PROCID(&proc, me.nspace, 0);
    pmix_status_t status = PMIx_Get(&proc, "big", NULL, 0, &found);
    if (status == PMIX_SUCCESS)
        CHECK(found->data.bo.size == length, "%zu bytes", found->data.bo.size);
    fence(NULL, 0, false);
}

static pmix_status_t lookup(const char *key, bool wait, int timeout_s, pmix_pdata_t *found)
{
    pmix_info_t info[2];
    size_t count = 0;
    int all = 1;
    if (wait) {
        PMIX_INFO_LOAD(&info[count], PMIX_WAIT, &all, PMIX_INT);
        count++; /* the macro evaluates its argument more than once */
    }
    if (timeout_s > 0) {
        PMIX_INFO_LOAD(&info[count], PMIX_TIMEOUT, &timeout_s, PMIX_INT);
        count++;
    }
    PMIX_PDATA_CONSTRUCT(found);
    PMIX_LOAD_KEY(found->key, key);
    return PMIx_Lookup(found, 1, count > 0 ? info : NULL, count);
}

static void case_publish(void)
{
    pmix_pdata_t found;
    pmix_info_t info;
    char key[64], text[64];
    snprintf(key, sizeof key, "name-%u", me.rank);
    snprintf(text, sizeof text, "port of %u", me.rank);
    PMIX_INFO_LOAD(&info, key, text, PMIX_STRING);
    OK(PMIx_Publish(&info, 1));
    pmix_status_t status = PMIx_Publish(&info, 1);
    CHECK(status != PMIX_SUCCESS, "publishing a key twice succeeds");
    snprintf(key, sizeof key, "name-%u", (me.rank + 1) % size);
    snprintf(text, sizeof text, "port of %u", (me.rank + 1) % size);
    OK(lookup(key, true, 0, &found));
    CHECK(found.value.type == PMIX_STRING && strcmp(found.value.data.string, text) == 0,
          "wrong value");
    CHECK(found.proc.rank == (me.rank + 1) % size, "published by %u", found.proc.rank);
    status = lookup("never", false, 0, &found);
    CHECK(status == PMIX_ERR_NOT_FOUND, "a missing key gives %s", PMIx_Error_string(status));
    fence(NULL, 0, false);
    char *keys[] = {NULL, NULL};
    snprintf(key, sizeof key, "name-%u", me.rank);
    keys[0] = key;
    OK(PMIx_Unpublish(keys, NULL, 0));
    fence(NULL, 0, false);
    status = lookup(key, false, 0, &found);
    CHECK(status == PMIX_ERR_NOT_FOUND, "an unpublished key gives %s", PMIx_Error_string(status));
}

/* The ranks of worker 0, which has what is published, have ended without a word to their server. */
static void case_last(void)
{
    pmix_proc_t first;
    pmix_info_t info;
    pmix_pdata_t found;
    pmix_value_t *value = NULL;
    OK(PMIx_Notify_event(PMIX_EXTERNAL_ERR_BASE - 6, &me, PMIX_RANGE_SESSION, NULL, 0, NULL, NULL));
    PMIX_LOAD_PROCID(&first, me.nspace, 0);
    pmix_status_t status = PMIx_Get(&first, "key", NULL, 0, &value);
    CHECK(status == PMIX_ERR_NOT_FOUND, "of who put nothing: %s", PMIx_Error_string(status));
    PMIX_INFO_LOAD(&info, "late", "port", PMIX_STRING);
    OK(PMIx_Publish(&info, 1));
    OK(lookup("late", false, 0, &found));
    CHECK(strcmp(found.value.data.string, "port") == 0, "wrong value");
}

static void case_lookup_timeout(void)
{
    pmix_pdata_t found;
    pmix_status_t status = lookup("never", true, 1, &found);
    CHECK(status == PMIX_ERR_TIMEOUT || status == PMIX_ERR_NOT_FOUND, "got %s",
          PMIx_Error_string(status));
}

/* Until it is refused: a rank may have 4,096 keys and 16 MiB, and what it takes back makes room. */
static void publish_much(const char *prefix, size_t length, uint32_t least, uint32_t most)
{
    pmix_status_t status = PMIX_SUCCESS;
    uint32_t count = 0;
    char key[64], *text = malloc(length + 1);
    memset(text, 'x', length);
    text[length] = 0;
    while (status == PMIX_SUCCESS && count <= most) {
        pmix_info_t info;
        snprintf(key, sizeof key, "%s-%u-%u", prefix, me.rank, count);
        PMIX_INFO_LOAD(&info, key, text, PMIX_STRING);
        status = PMIx_Publish(&info, 1);
        PMIX_INFO_DESTRUCT(&info);
        count += status == PMIX_SUCCESS;
    }
    CHECK(status == PMIX_ERR_OUT_OF_RESOURCE, "%u keys: %s", count, PMIx_Error_string(status));
    CHECK(count >= least && count <= most, "%u keys were published", count);
    free(text);
}

static void case_publish_much(void)
{
    pmix_pdata_t found;
    if (me.rank == 0) {
        publish_much("few", 1 << 20, 14, 15);
        OK(PMIx_Unpublish(NULL, NULL, 0));
        publish_much("many", 1, 4096, 4096);
    }
    fence(NULL, 0, false);
    if (me.rank == 1) { /* the others have room */
        pmix_info_t info;
        PMIX_INFO_LOAD(&info, "one", "1", PMIX_STRING);
        OK(PMIx_Publish(&info, 1));
        OK(lookup("many-0-4095", false, 0, &found));
        CHECK(lookup("many-0-4096", false, 0, &found) == PMIX_ERR_NOT_FOUND, "refused, and there");
    }
    fence(NULL, 0, false);
}

/* A value of this persistence is gone after its first reader. */
static void case_first_read(void)
{
    pmix_pdata_t found;
    pmix_info_t info[2];
    pmix_persistence_t once = PMIX_PERSIST_FIRST_READ;
    char key[64], text[] = "once";
    PMIX_INFO_LOAD(&info[0], "once", text, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_PERSISTENCE, &once, PMIX_PERSIST);
    snprintf(key, sizeof key, "once-%u", me.rank);
    PMIX_LOAD_KEY(info[0].key, key);
    OK(PMIx_Publish(info, 2));
    fence(NULL, 0, false);
    snprintf(key, sizeof key, "once-%u", (me.rank + 1) % size);
    OK(lookup(key, false, 0, &found));
    fence(NULL, 0, false);
    pmix_status_t status = lookup(key, false, 0, &found);
    CHECK(status == PMIX_ERR_NOT_FOUND, "read twice: %s", PMIx_Error_string(status));
}

static void case_connect(void)
{
    pmix_proc_t procs[2];
    PMIX_LOAD_PROCID(&procs[0], me.nspace, PMIX_RANK_WILDCARD);
    OK(PMIx_Connect(procs, 1, NULL, 0));
    OK(PMIx_Disconnect(procs, 1, NULL, 0));
    PMIX_LOAD_PROCID(&procs[0], me.nspace, 0);
    PMIX_LOAD_PROCID(&procs[1], me.nspace, size - 1);
    if (me.rank == 0 || me.rank == size - 1) {
        OK(PMIx_Connect(procs, 2, NULL, 0));
        OK(PMIx_Disconnect(procs, 2, NULL, 0));
    }
    fence(NULL, 0, false);
}

static bool is_before(unsigned int major)
{
    unsigned int own = 0;
    return sscanf(PMIx_Get_version(), "%*[^0-9]%u", &own) == 1 && own < major;
}

static void tell(const char *what, uint32_t rank, const char *text)
{
    pmix_info_t info;
    char key[64];
    snprintf(key, sizeof key, "%s-%u", what, rank);
    PMIX_INFO_LOAD(&info, key, text, PMIX_STRING);
    OK(PMIx_Publish(&info, 1));
    PMIX_INFO_DESTRUCT(&info);
}

/* Whether the rank, which has told or will, has told this. */
static bool has_told(const char *what, uint32_t rank, const char *text)
{
    pmix_pdata_t found;
    char key[64];
    snprintf(key, sizeof key, "%s-%u", what, rank);
    OK(lookup(key, true, 0, &found));
    return strcmp(found.value.data.string, text) == 0;
}

static pmix_status_t fence_for_a_second(const pmix_proc_t *procs, size_t count)
{
    pmix_info_t info;
    int one = 1;
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &one, PMIX_INT);
    return PMIx_Fence(procs, count, &info, 1);
}

/* libpmix has the status of a host for one of its ranks, and success for the others (_mdxcbfunc of
 * 5.0.5). The last rank's agent has not asked its host. */
static void check_timeouts(void)
{
    pmix_proc_t all;
    pmix_value_t *value = NULL;
    uint32_t count = 0;
    char *rest = NULL;
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    OK(PMIx_Get(&all, PMIX_LOCAL_PEERS, NULL, 0, &value));
    for (char *peer = strtok_r(value->data.string, ",", &rest); peer;
         peer = strtok_r(NULL, ",", &rest)) {
        uint32_t rank = (uint32_t)strtoul(peer, NULL, 10);
        count += rank != size - 1 && has_told("over", rank, "timeout");
    }
    PMIX_VALUE_RELEASE(value);
    CHECK(count > 0, "no rank here had its time over");
}

/* The others have left this fence, and the next one is for all, also with an agent that has not
 * been in the first one. */
static void case_fence_timeout(void)
{
    struct timespec pause = {.tv_nsec = 300000000};
    pmix_pdata_t found;
    if (me.rank != size - 1) {
        pmix_status_t status = fence_for_a_second(NULL, 0);
        CHECK(status == PMIX_ERR_TIMEOUT || status == PMIX_SUCCESS, "a fence without one rank: %s",
              PMIx_Error_string(status));
        tell("over", me.rank, status == PMIX_ERR_TIMEOUT ? "timeout" : "success");
    }
    for (uint32_t r = 0; r < size - 1; r++)
        (void)has_told("over", r, "");
    check_timeouts();
    put_u32("late", me.rank * 5 + 2);
    if (me.rank == 0) {
        nanosleep(&pause, NULL); /* for the others to end before this one is in, which is wrong */
        tell("in", 0, "");
    }
    fence(NULL, 0, true);
    OK(lookup("in-0", false, 0, &found));
    for (uint32_t r = 0; r < size; r++)
        CHECK(get_u32(r, "late") == r * 5 + 2, "wrong value of rank %u", r);
    fence(NULL, 0, false);
}

/* Each of two ranks gives up in turn, before the other comes. */
static void case_fence_missed(void)
{
    pmix_proc_t procs[2];
    PMIX_LOAD_PROCID(&procs[0], me.nspace, 0);
    PMIX_LOAD_PROCID(&procs[1], me.nspace, size - 1);
    if (me.rank == size - 1)
        (void)has_told("over", 0, "");
    if (me.rank == 0 || me.rank == size - 1) {
        pmix_status_t status = fence_for_a_second(procs, 2);
        CHECK(status == PMIX_ERR_TIMEOUT, "a fence without the other: %s",
              PMIx_Error_string(status));
        tell("over", me.rank, "");
    }
    if (me.rank == 0)
        (void)has_told("over", size - 1, "");
    if (me.rank == 0 || me.rank == size - 1) {
        put_u32("missed", me.rank + 9);
        fence(procs, 2, true);
        CHECK(get_u32(0, "missed") == 9 && get_u32(size - 1, "missed") == size + 8, "wrong value");
    }
    fence(NULL, 0, false);
}

/* A group of every rank that `in` chooses, made and dissolved twice. */
static void make_group(const char *name, bool (*in)(uint32_t rank), bool context)
{
    pmix_proc_t *procs = calloc(size, sizeof *procs);
    size_t members = 0;
    for (uint32_t r = 0; r < size; r++)
        if (in(r)) {
            PMIX_LOAD_PROCID(&procs[members], me.nspace, r);
            members++; /* the macro evaluates its argument more than once */
        }
    for (int round = 0; round < 2 && in(me.rank); round++) {
        pmix_info_t info, *results = NULL;
        size_t count = 0, number = 0;
        PMIX_INFO_LOAD(&info, PMIX_GROUP_ASSIGN_CONTEXT_ID, &context, PMIX_BOOL);
        OK(PMIx_Group_construct(name, procs, members, &info, 1, &results, &count));
        for (size_t i = 0; i < count; i++)
            if (PMIX_CHECK_KEY(&results[i], PMIX_GROUP_CONTEXT_ID))
                number = results[i].value.data.size;
        /* Up to 4.2 a client reads server 5's answer wrongly, and sends destruct without the
         * members that server 5 then asks for (pmix_client_group.c of both): BAD_PARAM before we
         * are asked. No MPI library uses groups of that PMIx. */
        if (is_before(5))
            break;
        CHECK(!context || number > 0, "%s: no context number among %zu results", name, count);
        OK(PMIx_Group_destruct(name, NULL, 0));
    }
    free(procs);
}

static bool everyone(uint32_t rank)
{
    (void)rank;
    return true;
}

static bool is_even(uint32_t rank)
{
    return rank % 2 == 0;
}

static bool is_first_pair(uint32_t rank)
{
    return rank < 2;
}

static void case_group(void)
{
    make_group("all-of-us", everyone, true);
    make_group("even", is_even, true);
    make_group("pair", is_first_pair, true);
    make_group("without", everyone, false);
    make_group("pair-without", is_first_pair, false);
    fence(NULL, 0, false);
}

/* The first rank gives up alone; then both are there, on several agents. On one, libpmix 5.0.5 ends
 * every group of a name whose time was over once. To dissolve one is an error for clients that have
 * given up a group of its name. */
static void case_group_timeout(void)
{
    pmix_info_t info, *results = NULL;
    pmix_proc_t procs[2];
    size_t count = 0;
    int one = 1;
    PMIX_LOAD_PROCID(&procs[0], me.nspace, 0);
    PMIX_LOAD_PROCID(&procs[1], me.nspace, size - 1);
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &one, PMIX_INT);
    if (me.rank == 0) {
        pmix_status_t status = PMIx_Group_construct("ends", procs, 2, &info, 1, &results, &count);
        CHECK(status == PMIX_ERR_TIMEOUT, "a group without the other: %s",
              PMIx_Error_string(status));
        tell("over", 0, "");
    }
    if (me.rank == size - 1)
        (void)has_told("over", 0, "");
    if (me.rank == 0 || me.rank == size - 1)
        OK(PMIx_Group_construct("ends", procs, 2, NULL, 0, &results, &count));
    fence(NULL, 0, false);
}

static volatile sig_atomic_t events;

static void on_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                     size_t count, pmix_info_t results[], size_t result_count,
                     pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)id, (void)status, (void)source, (void)info, (void)count, (void)results,
        (void)result_count;
    events++;
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static bool wait_for(const volatile sig_atomic_t *flag)
{
    struct timespec pause = {.tv_nsec = 5000000};
    for (int i = 0; i < 1000 && !*flag; i++)
        nanosleep(&pause, NULL);
    return *flag;
}

static void case_event(void)
{
    pmix_status_t code = PMIX_EXTERNAL_ERR_BASE - 7;
    pmix_status_t id = PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL);
    CHECK(id >= 0, "register: %s", PMIx_Error_string(id));
    fence(NULL, 0, false);
    if (me.rank == 1)
        OK(PMIx_Notify_event(code, &me, PMIX_RANGE_GLOBAL, NULL, 0, NULL, NULL));
    CHECK(wait_for(&events), "no event within 5 s");
    fence(NULL, 0, false);
    OK(PMIx_Deregister_event_handler((size_t)id, NULL, NULL));
}

/* An event for one rank: nobody else sees it. */
static void case_event_custom(void)
{
    pmix_status_t code = PMIX_EXTERNAL_ERR_BASE - 8;
    pmix_status_t id = PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL);
    CHECK(id >= 0, "register: %s", PMIx_Error_string(id));
    fence(NULL, 0, false);
    if (me.rank == 0) {
        pmix_proc_t last;
        pmix_info_t info;
        PMIX_LOAD_PROCID(&last, me.nspace, size - 1);
        PMIX_INFO_LOAD(&info, PMIX_EVENT_CUSTOM_RANGE, &last, PMIX_PROC);
        OK(PMIx_Notify_event(code, &me, PMIX_RANGE_CUSTOM, &info, 1, NULL, NULL));
    }
    if (me.rank == size - 1)
        CHECK(wait_for(&events), "no event within 5 s");
    fence(NULL, 0, false);
    CHECK(events == (me.rank == size - 1), "%d events", (int)events);
}

static void case_query(void)
{
    pmix_query_t query;
    pmix_info_t *results = NULL;
    size_t count = 0;
    PMIX_QUERY_CONSTRUCT(&query);
    pmix_status_t status;
    PMIX_ARGV_APPEND(status, query.keys, PMIX_QUERY_NAMESPACES);
    status = PMIx_Query_info(&query, 1, &results, &count);
    CHECK(status == PMIX_SUCCESS, "namespaces: %s", PMIx_Error_string(status));
    CHECK(count > 0 && strstr(results[0].value.data.string, me.nspace), "wrong namespaces");
    PMIX_QUERY_DESTRUCT(&query);
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, "drarun.no.such.key");
    status = PMIx_Query_info(&query, 1, &results, &count);
    CHECK(status != PMIX_SUCCESS, "an unknown key succeeds");
}

static void case_log(void)
{
    pmix_info_t info;
    char text[64];
    snprintf(text, sizeof text, "logged by %u\n", me.rank);
    PMIX_INFO_LOAD(&info, PMIX_LOG_STDERR, text, PMIX_STRING);
    OK(PMIx_Log(&info, 1, NULL, 0));
}

static void log_line(const char *text)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_LOG_STDOUT, text, PMIX_STRING);
    OK(PMIx_Log(&info, 1, NULL, 0));
    PMIX_INFO_DESTRUCT(&info);
}

/* Every other line is logged. */
static void case_log_turns(void)
{
    for (int i = 0; i < 400; i++) {
        char text[512];
        snprintf(text, sizeof text, "%u:%d:%0*d\n", me.rank, i, i % 300 + 1, 0);
        if (i % 2 == 0) {
            log_line(text);
        } else {
            fputs(text, stdout);
            fflush(stdout);
        }
    }
}

/* Two texts in one request, which are together more than may wait. */
static void case_log_long(void)
{
    static char text[600 * 1024 + 1];
    pmix_info_t info[2];
    memset(text, 'x', sizeof text - 1);
    for (size_t i = 1023; i < sizeof text; i += 1024)
        text[i] = '\n';
    PMIX_INFO_LOAD(&info[0], PMIX_LOG_STDOUT, text, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_LOG_STDOUT, text, PMIX_STRING);
    OK(PMIx_Log(info, 2, NULL, 0));
}

/* 64 MB. */
static void case_log_flood(void)
{
    static char text[16001];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 2] = '\n';
    for (int i = 0; i < 4000; i++)
        log_line(text);
}

static volatile int logged, rejected; /* by the library's thread */

static void on_logged(pmix_status_t status, void *arg)
{
    (void)arg;
    rejected += status != PMIX_SUCCESS;
    logged++;
}

/* Without waiting for one before the next. */
static void case_log_unwaited(void)
{
    static char text[1025];
    const int count = 20000;
    pmix_info_t info;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 2] = '\n';
    PMIX_INFO_LOAD(&info, PMIX_LOG_STDOUT, text, PMIX_STRING);
    for (int i = 0; i < count; i++)
        OK(PMIx_Log_nb(&info, 1, NULL, 0, on_logged, NULL));
    for (int i = 0; i < 60000 && logged < count; i++)
        usleep(1000);
    CHECK(logged == count, "%d of %d were answered", logged, count);
    fprintf(stderr, "rejected %d\n", rejected);
}

static volatile sig_atomic_t signalled;

static void on_signal(int signo)
{
    (void)signo;
    signalled = 1;
}

static void control_last(const char *key, const void *value, pmix_data_type_t type)
{
    pmix_proc_t last;
    pmix_info_t info, *results = NULL;
    size_t count = 0;
    PMIX_LOAD_PROCID(&last, me.nspace, size - 1);
    PMIX_INFO_LOAD(&info, key, value, type);
    OK(PMIx_Job_control(&last, 1, &info, 1, &results, &count));
}

static void case_control(void)
{
    bool last = me.rank == size - 1;
    int signo = SIGUSR1;
    signal(SIGUSR1, on_signal);
    signal(SIGTERM, on_signal);
    fence(NULL, 0, false);
    if (me.rank == 0)
        control_last(PMIX_JOB_CTRL_SIGNAL, &signo, PMIX_INT);
    if (last)
        CHECK(wait_for(&signalled), "not signalled");
    CHECK(signalled == last, "signalled is %d", (int)signalled);
    signalled = 0;
    fence(NULL, 0, false);
    if (me.rank == 0)
        control_last(PMIX_JOB_CTRL_TERMINATE, NULL, PMIX_BOOL);
    if (last)
        CHECK(wait_for(&signalled), "not asked to terminate");
    fence(NULL, 0, false);
}

/* What is said to be false is not done. */
static void case_control_false(void)
{
    pmix_info_t info, *results = NULL;
    size_t count = 0;
    bool no = false;
    fence(NULL, 0, false);
    PMIX_INFO_LOAD(&info, PMIX_JOB_CTRL_KILL, &no, PMIX_BOOL);
    pmix_status_t status = PMIx_Job_control(NULL, 0, &info, 1, &results, &count);
    CHECK(status == PMIX_ERR_NOT_SUPPORTED, "no directive: %s", PMIx_Error_string(status));
    fence(NULL, 0, false);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The last rank stands still between pause and resume. */
static void case_pause(void)
{
    struct timespec half = {.tv_nsec = 500000000};
    double longest = 0;
    signal(SIGCONT, on_signal);
    double before = now_s(); /* the pause may come while the fence returns */
    fence(NULL, 0, false);
    if (me.rank == 0) {
        control_last(PMIX_JOB_CTRL_PAUSE, NULL, PMIX_BOOL);
        nanosleep(&half, NULL);
        control_last(PMIX_JOB_CTRL_RESUME, NULL, PMIX_BOOL);
    }
    for (double begin = now_s(); me.rank == size - 1 && !signalled && now_s() < begin + 5;) {
        struct timespec short_while = {.tv_nsec = 1000000};
        nanosleep(&short_while, NULL);
        double now = now_s();
        longest = now - before > longest ? now - before : longest;
        before = now;
    }
    longest = now_s() - before > longest ? now_s() - before : longest; /* before the first turn */
    CHECK(me.rank != size - 1 || (signalled && longest > 0.3), "stood still for %.3f s", longest);
    fence(NULL, 0, false);
}

static void case_kill(void)
{
    fence(NULL, 0, false);
    if (me.rank == 0)
        control_last(PMIX_JOB_CTRL_KILL, NULL, PMIX_BOOL);
    pause();
}

/* What docs/design/007-pmix-server.md lists as not supported gives an error at once. */
#define REFUSED(call)                                                                              \
    do {                                                                                           \
        pmix_status_t status_ = (call);                                                            \
        CHECK(status_ == PMIX_ERR_NOT_SUPPORTED, "%s: %s", #call, PMIx_Error_string(status_));     \
    } while (0)

static void ignore_io(size_t handler, pmix_iof_channel_t channel, pmix_proc_t *source,
                      pmix_byte_object_t *payload, pmix_info_t info[], size_t count)
{
    (void)handler, (void)channel, (void)source, (void)payload, (void)info, (void)count;
}

static void case_refused(void)
{
    pmix_info_t info, *results = NULL;
    size_t count = 0;
    uint32_t one = 1;
    pmix_proc_t all;
    pmix_byte_object_t credential = {NULL, 0};
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info, PMIX_ALLOC_NUM_NODES, &one, PMIX_UINT32);
    REFUSED(PMIx_Allocation_request(PMIX_ALLOC_NEW, &info, 1, &results, &count));
    REFUSED(PMIx_Get_credential(NULL, 0, &credential));
    REFUSED(PMIx_Validate_credential(&credential, NULL, 0, &results, &count));
    REFUSED(PMIx_IOF_pull(&all, 1, NULL, 0, PMIX_FWD_STDOUT_CHANNEL, ignore_io, NULL, NULL));
}

static uint32_t value_of(const char *nspace, uint32_t rank, const char *key)
{
    pmix_proc_t proc;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&proc, nspace, rank);
    pmix_status_t status = PMIx_Get(&proc, key, NULL, 0, &value);
    CHECK(status == PMIX_SUCCESS, "%s of %s:%u: %s", key, nspace, rank, PMIx_Error_string(status));
    uint32_t number = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return number;
}

/* Both namespaces connect, and read each other's data: by direct modex, and what a fence of both
 * collected. */
static void meet(const char *other)
{
    pmix_proc_t both[2];
    bool first = strcmp(me.nspace, other) < 0; /* in one order everywhere */
    PMIX_LOAD_PROCID(&both[0], first ? me.nspace : other, PMIX_RANK_WILDCARD);
    PMIX_LOAD_PROCID(&both[1], first ? other : me.nspace, PMIX_RANK_WILDCARD);
    OK(PMIx_Connect(both, 2, NULL, 0));
    uint32_t others = value_of(other, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
    put_u32("meet", me.rank * 5 + size);
    fence(both, 2, false);
    for (uint32_t r = 0; r < others; r++)
        CHECK(value_of(other, r, "meet") == r * 5 + others, "wrong value of the other's %u", r);
    put_u32("later", me.rank * 7 + size);
    fence(both, 2, true);
    for (uint32_t r = 0; r < others; r++)
        CHECK(value_of(other, r, "later") == r * 7 + others, "wrong value of the other's %u", r);
    OK(PMIx_Disconnect(both, 2, NULL, 0));
}

/* The same with another job, by a name that its rank 0 publishes as ours does. */
static void case_far(const char *own, const char *other)
{
    pmix_pdata_t found;
    pmix_info_t info;
    put_u32("before", me.rank * 3 + size);
    fence(NULL, 0, false);
    if (me.rank == 0) {
        PMIX_INFO_LOAD(&info, own, me.nspace, PMIX_STRING);
        OK(PMIx_Publish(&info, 1));
    }
    OK(lookup(other, true, 0, &found));
    meet(found.value.data.string);
    PMIX_PDATA_DESTRUCT(&found);
}

static pmix_status_t spawn_with(const char *program, const char *as, int count, pmix_info_t *more,
                                size_t more_count, char nspace[PMIX_MAX_NSLEN + 1])
{
    pmix_app_t app;
    pmix_info_t info[2];
    PMIX_APP_CONSTRUCT(&app);
    PMIX_INFO_LOAD(&info[0], PMIX_MAPBY, "slot:oversubscribe", PMIX_STRING);
    if (more_count > 0)
        info[1] = *more;
    app.cmd = strdup(program);
    app.argv = calloc(3, sizeof *app.argv);
    app.argv[0] = strdup(program);
    app.argv[1] = strdup(as);
    app.maxprocs = count;
    pmix_status_t status = PMIx_Spawn(info, 1 + more_count, &app, 1, nspace);
    PMIX_APP_DESTRUCT(&app);
    return status;
}

static pmix_status_t spawn(const char *program, int count, char nspace[PMIX_MAX_NSLEN + 1])
{
    return spawn_with(program, "spawned", count, NULL, 0, nspace);
}

/* Twice: three ranks that its rank 0 starts. */
static void case_spawn(void)
{
    char own[4096] = "", key[16];
    char nspace[PMIX_MAX_NSLEN + 1];
    CHECK(readlink("/proc/self/exe", own, sizeof own - 1) > 0, "no /proc/self/exe");
    for (int round = 0; round < 2; round++) {
        pmix_value_t value, *got = NULL;
        pmix_proc_t root;
        snprintf(key, sizeof key, "child%d", round);
        PMIX_LOAD_PROCID(&root, me.nspace, 0);
        if (me.rank == 0) {
            OK(spawn(own, 3, nspace));
            PMIX_VALUE_LOAD(&value, nspace, PMIX_STRING);
            OK(PMIx_Put(PMIX_GLOBAL, key, &value));
            OK(PMIx_Commit());
        }
        fence(NULL, 0, true);
        OK(PMIx_Get(&root, key, NULL, 0, &got));
        meet(got->data.string);
        PMIX_VALUE_RELEASE(got);
    }
}

static void case_spawned(void)
{
    pmix_proc_t all;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    CHECK(size == 3 && me.rank < 3, "rank %u of %u", me.rank, size);
    OK(PMIx_Get(&all, PMIX_PARENT_ID, NULL, 0, &value));
    CHECK(value->data.proc->rank == 0, "parent %u", value->data.proc->rank);
    meet(value->data.proc->nspace);
    PMIX_VALUE_RELEASE(value);
}

static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready_changed = PTHREAD_COND_INITIALIZER;
static char ready_nspace[PMIX_MAX_NSLEN + 1];
static pmix_rank_t ready_rank;

static void on_ready(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                     size_t count, pmix_info_t results[], size_t result_count,
                     pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)id, (void)status, (void)info, (void)count, (void)results, (void)result_count;
    pthread_mutex_lock(&ready_lock);
    snprintf(ready_nspace, sizeof ready_nspace, "%s", source->nspace);
    ready_rank = source->rank;
    pthread_cond_broadcast(&ready_changed);
    pthread_mutex_unlock(&ready_lock);
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void release(const char *nspace)
{
    pmix_proc_t children;
    pmix_info_t info[2];
    PMIX_LOAD_PROCID(&children, nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info[0], PMIX_EVENT_CUSTOM_RANGE, &children, PMIX_PROC);
    PMIX_INFO_LOAD(&info[1], PMIX_EVENT_NON_DEFAULT, NULL, PMIX_BOOL);
    pmix_status_t status =
        PMIx_Notify_event(PMIX_DEBUGGER_RELEASE, &me, PMIX_RANGE_CUSTOM, info, 2, NULL, NULL);
    CHECK(status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED, "release gives %s",
          PMIx_Error_string(status));
}

/* Rank 0 starts three that wait in PMIx_Init, is told that they all wait, and lets them go on. Some
 * of them cannot be chosen. */
static void case_spawn_stopped(void)
{
    char own[4096] = "", nspace[PMIX_MAX_NSLEN + 1];
    pmix_status_t code = PMIX_READY_FOR_DEBUG;
    pmix_info_t stop;
    pmix_rank_t one = 1, all = PMIX_RANK_WILDCARD;
    struct timespec end;
    int rc = 0;
    if (me.rank == 0) {
        CHECK(readlink("/proc/self/exe", own, sizeof own - 1) > 0, "no /proc/self/exe");
        PMIX_INFO_LOAD(&stop, PMIX_DEBUG_STOP_IN_INIT, &one, PMIX_PROC_RANK);
        pmix_status_t status = spawn_with(own, "child", 3, &stop, 1, nspace);
        CHECK(status == PMIX_ERR_BAD_PARAM, "one rank: %s", PMIx_Error_string(status));
        PMIx_Register_event_handler(&code, 1, NULL, 0, on_ready, NULL, NULL);
        PMIX_INFO_LOAD(&stop, PMIX_DEBUG_STOP_IN_INIT, &all, PMIX_PROC_RANK);
        OK(spawn_with(own, "child", 3, &stop, 1, nspace));
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += 60;
        pthread_mutex_lock(&ready_lock);
        while (rc == 0 && strcmp(ready_nspace, nspace) != 0)
            rc = pthread_cond_timedwait(&ready_changed, &ready_lock, &end);
        pthread_mutex_unlock(&ready_lock);
        CHECK(rc == 0, "nobody says that the children wait");
        CHECK(ready_rank == PMIX_RANK_WILDCARD, "rank %u waits", ready_rank);
        release(nspace);
    }
    fence(NULL, 0, false);
}

/* Names of jobs that the server knows, with commas. */
static size_t count_namespaces(void)
{
    pmix_query_t query;
    pmix_info_t *results = NULL;
    size_t count = 0, names = 1;
    pmix_status_t status;
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(status, query.keys, PMIX_QUERY_NAMESPACES);
    status = PMIx_Query_info(&query, 1, &results, &count);
    CHECK(status == PMIX_SUCCESS && count > 0, "namespaces: %s", PMIx_Error_string(status));
    for (const char *c = results[0].value.data.string; *c; c++)
        names += *c == ',';
    PMIX_INFO_FREE(results, count);
    PMIX_QUERY_DESTRUCT(&query);
    return names;
}

static long agent_memory_kib(void)
{
    char line[128], path[32];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)getppid());
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "VmRSS: %ld", &kib);
    if (file)
        fclose(file);
    return kib;
}

/* What a server keeps of groups that have ended does not grow with each. */
static void case_spawn_often(void)
{
    char own[4096] = "", nspace[PMIX_MAX_NSLEN + 1];
    long before = 0;
    CHECK(readlink("/proc/self/exe", own, sizeof own - 1) > 0, "no /proc/self/exe");
    for (int i = 0; me.rank == 0 && i < 200; i++) {
        OK(spawn_with(own, "child", 1, NULL, 0, nspace));
        if (i == 20)
            before = agent_memory_kib();
    }
    if (me.rank == 0) {
        size_t names = count_namespaces();
        fprintf(stderr, "%zu namespaces, %ld KiB more\n", names, agent_memory_kib() - before);
    }
    fence(NULL, 0, false);
}

/* What case_spawn_stopped and case_spawn_often start. */
static void case_child(void)
{
    fence(NULL, 0, false);
}

/* Programs without PMIx: nobody waits for them. */
static void case_spawn_apart(void)
{
    char nspace[PMIX_MAX_NSLEN + 1];
    if (me.rank == 0)
        OK(spawn("/bin/true", 2, nspace));
    fence(NULL, 0, false);
}

/* Every rank asks for what cannot be, and goes on: a program that is not there, and a key whose
 * text is NULL, as of a getenv that found nothing. */
static void case_spawn_refused(void)
{
    char nspace[PMIX_MAX_NSLEN + 1];
    pmix_info_t no_host;
    pmix_status_t status = spawn("/nonexistent/program", 2, nspace);
    CHECK(status == PMIX_ERR_JOB_FAILED_TO_LAUNCH, "spawn gives %s", PMIx_Error_string(status));
    PMIX_INFO_LOAD(&no_host, PMIX_HOST, NULL, PMIX_STRING);
    status = spawn_with("/bin/true", "true", 2, &no_host, 1, nspace);
    CHECK(status == PMIX_ERR_BAD_PARAM, "no host gives %s", PMIx_Error_string(status));
    fence(NULL, 0, false);
}

static void case_abort(void)
{
    if (me.rank == 1)
        PMIx_Abort(7, "enough", NULL, 0);
    fence(NULL, 0, false);
    pause();
}

static pid_t parent_of(pid_t pid)
{
    char path[32];
    int parent = -1;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    CHECK(file && fscanf(file, "%*d (%*[^)]) %*c %d", &parent) == 1, "%s: no parent", path);
    fclose(file);
    return parent;
}

/* The launcher reads nothing for a second. An abort that is answered meanwhile lets its rank exit,
 * and others, to whom that is an error, abort with another status. */
static void case_abort_unread(void)
{
    if (me.rank == 1) {
        pid_t launcher = parent_of(getppid());
        kill(launcher, SIGSTOP);
        if (fork() == 0) {
            sleep(1);
            kill(launcher, SIGCONT);
            _exit(0);
        }
        PMIx_Abort(7, "enough", NULL, 0);
        fputs("the call came back\n", stderr);
    }
    fence(NULL, 0, false);
    pause();
}

/* A stream between ranks of several agents; its peer's end is seen as by an MPI library. */
static int stream_to_rank_1(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX}; /* an abstract name */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%.*s", (int)sizeof name.sun_path - 2,
             me.nspace);
    if (me.rank == 1) {
        CHECK(bind(fd, (struct sockaddr *)&name, sizeof name) == 0 && listen(fd, 1) == 0, "listen");
        fence(NULL, 0, false);
        return accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    }
    fence(NULL, 0, false);
    if (me.rank == size - 1)
        CHECK(connect(fd, (struct sockaddr *)&name, sizeof name) == 0, "connect");
    return fd;
}

/* Rank 1 exits while its agent stands still for a second; the last rank, of another agent, sees
 * that and aborts. */
static void case_exit_unread(void)
{
    int fd = stream_to_rank_1();
    char byte;
    if (me.rank == 1) {
        pid_t agent = getppid();
        CHECK(fd >= 0, "accept");
        kill(agent, SIGSTOP);
        if (fork() == 0) {
            close_range(0, ~0U, 0);
            sleep(1);
            kill(agent, SIGCONT);
            _exit(0);
        }
        _exit(5);
    }
    if (me.rank == size - 1 && read(fd, &byte, 1) <= 0)
        PMIx_Abort(14, "a peer has gone", NULL, 0);
    pause();
}

/* Rank 1 leaves in the way that argv[2] names while the others wait in a fence. */
static void case_leave(const char *how)
{
    fence(NULL, 0, false);
    if (me.rank == 1 && strcmp(how, "segv") == 0)
        raise(SIGSEGV);
    if (me.rank == 1 && strcmp(how, "exit5") == 0)
        _exit(5);
    if (me.rank == 1 && strcmp(how, "exit0") == 0)
        _exit(0);
    fence(NULL, 0, false);
    pause();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"job", case_job},
        {"bound", case_bound},
        {"modex", case_modex},
        {"barrier", case_barrier},
        {"fence-timeout", case_fence_timeout},
        {"fence-missed", case_fence_missed},
        {"group-timeout", case_group_timeout},
        {"subset", case_subset},
        {"dmodex", case_dmodex},
        {"publish", case_publish},
        {"connect", case_connect},
        {"group", case_group},
        {"event", case_event},
        {"query", case_query},
        {"log", case_log},
        {"log-turns", case_log_turns},
        {"log-long", case_log_long},
        {"log-flood", case_log_flood},
        {"log-unwaited", case_log_unwaited},
        {"control", case_control},
        {"control-false", case_control_false},
        {"spawn", case_spawn},
        {"spawned", case_spawned},
        {"spawn-stopped", case_spawn_stopped},
        {"spawn-often", case_spawn_often},
        {"child", case_child},
        {"spawn-apart", case_spawn_apart},
        {"spawn-refused", case_spawn_refused},
        {"abort", case_abort},
        {"abort-unread", case_abort_unread},
        {"exit-unread", case_exit_unread},
        {"last", case_last},
        {"lookup-timeout", case_lookup_timeout},
        {"big", case_big},
        {"pause", case_pause},
        {"dmodex-too-big", case_dmodex_too_big},
        {"kill", case_kill},
        {"refused", case_refused},
        {"first-read", case_first_read},
        {"publish-much", case_publish_much},
        {"event-custom", case_event_custom},
    };
    const char *name = argc > 1 ? argv[1] : "modex";
    OK(PMIx_Init(&me, NULL, 0));
    size = get_u32(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
    bool found = strcmp(name, "leave") == 0 || strcmp(name, "far") == 0;
    if (strcmp(name, "leave") == 0)
        case_leave(argc > 2 ? argv[2] : "exit5");
    if (strcmp(name, "far") == 0 && argc > 3)
        case_far(argv[2], argv[3]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, name) == 0) {
            cases[i].run();
            found = true;
        }
    CHECK(found, "no case %s", name);
    OK(PMIx_Finalize(NULL, 0));
    if (me.rank == 0 && strcmp(name, "spawned") != 0 && strcmp(name, "child") != 0)
        printf("%s ok on %u ranks, %s\n", name, size, PMIx_Get_version());
    return 0;
}
