/* SPDX-License-Identifier: Apache-2.0 */
/* Queries, as the agent of worker 1 answers them: what it knows, and what it asks worker 0 for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"
#include "lib/wire/copy.h"
#include "worker/pmix/host_private.h"

/* Ranks 0 to 3 are of namespace A, two of them and two programs here; 4 and 5 of B, on worker 0. */
static struct rig {
    struct event_base *base;
    struct agent_job job;
    struct tree tree;
    struct pmix_host host;
    uint64_t asked; /* id of the question to worker 0; 0: none */
    pmix_status_t status;
    struct buf answer;
} rig;

static Drarun__Wire__Launch *make_launch(void)
{
    char *first[] = {unconst("a"), unconst("-x")}, *second[] = {unconst("c")};
    Drarun__Wire__App app[2] = {DRARUN__WIRE__APP__INIT, DRARUN__WIRE__APP__INIT};
    Drarun__Wire__App *apps[] = {&app[0], &app[1]};
    Drarun__Wire__Block block[3] = {DRARUN__WIRE__BLOCK__INIT, DRARUN__WIRE__BLOCK__INIT,
                                    DRARUN__WIRE__BLOCK__INIT};
    Drarun__Wire__Block *blocks[] = {&block[0], &block[1], &block[2]};
    Drarun__Wire__Worker worker[2] = {DRARUN__WIRE__WORKER__INIT, DRARUN__WIRE__WORKER__INIT};
    Drarun__Wire__Worker *workers[] = {&worker[0], &worker[1]};
    Drarun__Wire__Launch launch = DRARUN__WIRE__LAUNCH__INIT;
    app[0].argv = first;
    app[0].n_argv = 2;
    app[1].argv = second;
    app[1].n_argv = 1;
    block[0].count = 2;
    block[1].first = 2;
    block[1].count = block[1].worker = 1;
    block[2].first = 3;
    block[2].count = block[2].worker = block[2].app = 1;
    worker[0].host = unconst("node0");
    worker[1].host = unconst("node1");
    launch.uid = unconst("query-test");
    launch.worker = 1;
    launch.radix = 8;
    launch.apps = apps;
    launch.n_apps = 2;
    launch.blocks = blocks;
    launch.n_blocks = 3;
    launch.workers = workers;
    launch.n_workers = 2;
    launch.universe = 9;
    launch.mode = DRARUN__WIRE__LAUNCH_MODE__LAUNCH_PMIX;
    launch.session_dir = unconst("/tmp/none");
    launch.same_host = true;
    Drarun__Wire__Launch *copy = wire_copy(&launch.base);
    assert_non_null(copy);
    return copy;
}

static Drarun__Wire__Group *make_group(void)
{
    char *argv[] = {unconst("b")};
    Drarun__Wire__App app = DRARUN__WIRE__APP__INIT, *apps[] = {&app};
    Drarun__Wire__Block block = DRARUN__WIRE__BLOCK__INIT, *blocks[] = {&block};
    Drarun__Wire__Group group = DRARUN__WIRE__GROUP__INIT;
    app.argv = argv;
    app.n_argv = 1;
    block.count = 2;
    group.index = 1;
    group.first = 4;
    group.apps = apps;
    group.n_apps = 1;
    group.blocks = blocks;
    group.n_blocks = 1;
    Drarun__Wire__Group *copy = wire_copy(&group.base);
    assert_non_null(copy);
    return copy;
}

/* ---- the agents ---- */

/* Of this agent: rank 2 is this process, rank 3 was killed. */
static void process_of(void *arg, uint32_t rank, struct pmix_process *ret)
{
    (void)arg;
    assert_in_range(rank, 2, 3);
    *ret = rank == 2 ? (struct pmix_process){.pid = getpid(), .connected = true}
                     : (struct pmix_process){.pid = 33, .ended = true, .code = 129};
}

static void route(void *arg, Drarun__Wire__Routed *message, bool broadcast)
{
    (void)arg;
    assert_false(broadcast);
    assert_int_equal(message->destination, 0);
    assert_int_equal(message->source, 1);
    assert_int_equal(message->body_case, DRARUN__WIRE__ROUTED__BODY_PROCESSES_REQUEST);
    rig.asked = message->id;
}

static void routed(struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    if (message->body_case == DRARUN__WIRE__ROUTED__BODY_PROCESSES_REQUEST)
        pmix_processes_request(host, message);
    else
        pmix_processes(host, message);
}

/* Worker 0's ranks; none: those of an agent without memory. */
static void reply(uint32_t source, uint64_t id, bool none)
{
    static const struct {
        uint32_t rank, pid;
        bool ended, connected;
        int code;
        const char *executable, *cpus;
    } table[] = {
        {0, 10, true, false, 0, "", ""},
        {1, 11, true, true, 128, "/bin/one", "4-5"},
        {4, 14, false, false, 0, "/bin/b", ""},
        {5, 0, false, false, 0, "", ""},
    };
    Drarun__Wire__Process process[4], *processes[4];
    Drarun__Wire__Processes body = DRARUN__WIRE__PROCESSES__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    for (size_t i = 0; i < 4; i++) {
        drarun__wire__process__init(&process[i]);
        process[i].rank = table[i].rank;
        process[i].pid = table[i].pid;
        process[i].ended = table[i].ended;
        process[i].connected = table[i].connected;
        process[i].code = table[i].code;
        process[i].executable = unconst(table[i].executable);
        process[i].cpus = unconst(table[i].cpus);
        processes[i] = &process[i];
    }
    body.processes = processes;
    body.n_processes = none ? 0 : 4;
    message.source = source;
    message.destination = 1;
    message.id = id;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_PROCESSES;
    message.processes = &body;
    pmix_processes(&rig.host, &message);
}

static int set_up(void **state)
{
    static uint32_t ids[] = {0, 1, 3};
    static struct rank_cpus cpus[] = {{ids, 3}};
    struct drarun_error err = {0};
    (void)state;
    rig.base = event_base_new();
    if (agent_job_init_take(&rig.job, make_launch(), &err) < 0 ||
        agent_job_add_group_take(&rig.job, make_group(), &err) < 0)
        fail_msg("%s", err.text);
    rig.tree = (struct tree){.self = 1, .size = 2, .radix = 8};
    rig.host = (struct pmix_host){.base = rig.base,
                                  .job = &rig.job,
                                  .tree = &rig.tree,
                                  .owner = {.route = route, .process = process_of},
                                  .routed = routed,
                                  .cpus = cpus,
                                  .cpus_count = 1};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    agent_job_done(&rig.job);
    event_base_free(rig.base);
    return 0;
}

/* ---- the rank ---- */

/* A and B for the namespaces, SELF for this program. */
static void add_name(const char *text)
{
    char self[256];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    if (strcmp(text, rig.job.groups[0]->nspace) == 0)
        text = "A";
    else if (strcmp(text, rig.job.groups[1]->nspace) == 0)
        text = "B";
    else if (strcmp(text, self) == 0)
        text = "SELF";
    buf_printf(&rig.answer, "%s", text);
}

static void add_state(pmix_proc_state_t state)
{
    static const struct {
        pmix_proc_state_t state;
        const char *name;
    } names[] = {
        {PMIX_PROC_STATE_UNDEF, "undefined"},      {PMIX_PROC_STATE_RUNNING, "running"},
        {PMIX_PROC_STATE_CONNECTED, "connected"},  {PMIX_PROC_STATE_TERMINATED, "terminated"},
        {PMIX_PROC_STATE_TERM_NON_ZERO, "failed"}, {PMIX_PROC_STATE_ABORTED_BY_SIG, "killed"},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].state == state)
            buf_printf(&rig.answer, "%s", names[i].name);
}

static void add_pid(pid_t pid)
{
    if (pid == getpid())
        buf_printf(&rig.answer, "own");
    else
        buf_printf(&rig.answer, "%d", (int)pid);
}

static void add_process(const pmix_proc_info_t *process)
{
    buf_printf(&rig.answer, "{");
    add_name(process->proc.nspace);
    buf_printf(&rig.answer, ".%u %s ", process->proc.rank, process->hostname);
    add_name(process->executable_name);
    buf_printf(&rig.answer, " ");
    add_pid(process->pid);
    buf_printf(&rig.answer, " %d ", process->exit_code);
    add_state(process->state);
    buf_printf(&rig.answer, "}");
}

static void add_info(const pmix_info_t *info, size_t count);

static void add_value(const pmix_value_t *value)
{
    switch (value->type) {
    case PMIX_UINT32:
        buf_printf(&rig.answer, "%u", value->data.uint32);
        break;
    case PMIX_STRING:
        buf_printf(&rig.answer, "'");
        add_name(value->data.string);
        buf_printf(&rig.answer, "'");
        break;
    case PMIX_STATUS:
        assert_int_equal(value->data.status, PMIX_OPERATION_IN_PROGRESS);
        buf_printf(&rig.answer, "in progress");
        break;
    case PMIX_PID:
        add_pid(value->data.pid);
        break;
    case PMIX_PROC_STATE:
        add_state(value->data.state);
        break;
    case PMIX_DATA_ARRAY:
        buf_printf(&rig.answer, "[");
        if (value->data.darray->type == PMIX_INFO)
            add_info(value->data.darray->array, value->data.darray->size);
        else
            for (size_t i = 0; i < value->data.darray->size; i++)
                add_process(&((const pmix_proc_info_t *)value->data.darray->array)[i]);
        buf_printf(&rig.answer, "]");
        break;
    default:
        fail_msg("a value of type %d", value->type);
    }
}

static void add_info(const pmix_info_t *info, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_printf(&rig.answer, "%s=", info[i].key);
        add_value(&info[i].value);
        buf_printf(&rig.answer, ";");
    }
}

static void on_answer(pmix_status_t status, pmix_info_t *info, size_t count, void *cbdata,
                      pmix_release_cbfunc_t release, void *release_cbdata)
{
    assert_ptr_equal(cbdata, &rig);
    assert_int_equal(rig.status, PMIX_ERR_WOULD_BLOCK); /* once */
    rig.status = status;
    add_info(info, count);
    if (release)
        release(release_cbdata);
}

#define NOBODY UINT32_MAX

/* nspace: of the query, "A", "B", or as it is; NULL: none named. rank: NOBODY: none named. */
static void ask(const char *const *keys, const char *nspace, uint32_t rank)
{
    struct upcall *upcall = calloc(1, sizeof *upcall);
    pmix_query_t *query;
    assert_non_null(upcall);
    buf_done(&rig.answer);
    rig.status = PMIX_ERR_WOULD_BLOCK;
    rig.asked = 0;
    upcall->kind = UPCALL_QUERY;
    upcall->info_cb = on_answer;
    upcall->cbdata = &rig;
    PMIX_LOAD_PROCID(&upcall->proc, rig.job.groups[0]->nspace, 1);
    PMIX_QUERY_CREATE(query, 1);
    for (; *keys; keys++)
        PMIx_Argv_append_nosize(&query->keys, *keys);
    PMIX_INFO_CREATE(query->qualifiers, 2);
    if (nspace) {
        bool ours = strcmp(nspace, "A") == 0 || strcmp(nspace, "B") == 0;
        nspace = ours ? rig.job.groups[nspace[0] - 'A']->nspace : nspace;
        PMIX_INFO_LOAD(&query->qualifiers[query->nqual++], PMIX_NSPACE, nspace, PMIX_STRING);
    }
    if (rank != NOBODY)
        PMIX_INFO_LOAD(&query->qualifiers[query->nqual++], PMIX_RANK, &rank, PMIX_PROC_RANK);
    upcall->queries = query;
    upcall->query_count = 1;
    pmix_on_query(&rig.host, upcall);
}

static void assert_answer(const char *expected)
{
    assert_int_equal(rig.status, PMIX_SUCCESS);
    assert_string_equal(rig.answer.data ? rig.answer.data : "", expected);
    buf_done(&rig.answer);
}

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void what_the_agent_itself_knows(void **state)
{
    (void)state;
    static const struct {
        const char *key, *nspace;
        uint32_t rank;
        const char *value;
    } table[] = {
        {PMIX_QUERY_NAMESPACE_INFO, NULL, NOBODY,
         "[pmix.qry.nsinfo=[pmix.nspace='A';pmix.cmd.line='a -x : c';];"
         "pmix.qry.nsinfo=[pmix.nspace='B';pmix.cmd.line='b';];]"},
        {PMIX_QUERY_JOB_STATUS, NULL, NOBODY, "in progress"},
        {PMIX_QUERY_SPAWN_SUPPORT, NULL, NOBODY, "''"},
        {PMIX_QUERY_DEBUG_SUPPORT, NULL, NOBODY,
         "'" PMIX_DEBUG_STOP_ON_EXEC "," PMIX_DEBUG_STOP_IN_INIT "," PMIX_DEBUG_STOP_IN_APP "'"},
        {PMIX_QUERY_NUM_PSETS, NULL, NOBODY, "0"},
        {PMIX_QUERY_PSET_NAMES, NULL, NOBODY, "''"},
        {PMIX_QUERY_NUM_GROUPS, NULL, NOBODY, "0"},
        {PMIX_UNIV_SIZE, NULL, NOBODY, "9"},
        {PMIX_JOB_SIZE, NULL, NOBODY, "4"},
        {PMIX_JOB_SIZE, "B", NOBODY, "2"},
        {PMIX_MAX_PROCS, "B", NOBODY, "2"},
        {PMIX_JOB_NUM_APPS, NULL, NOBODY, "2"},
        {PMIX_JOB_NUM_APPS, "B", NOBODY, "1"},
        {PMIX_NUM_NODES, NULL, NOBODY, "2"},
        {PMIX_NODE_LIST, "A", NOBODY, "'node0,node1'"},
        {PMIX_NODE_LIST, "B", NOBODY, "'node0'"},
        {PMIX_HOSTNAME, NULL, NOBODY, "'node1'"}, /* of this agent */
        {PMIX_HOSTNAME, "A", 0, "'node0'"},
        {PMIX_HOSTNAME, "A", 3, "'node1'"},
        {PMIX_HOSTNAME, "B", 1, "'node0'"},
        {PMIX_NODEID, NULL, NOBODY, "1"},
        {PMIX_NODEID, NULL, 1, "0"},
        {PMIX_LOCAL_SIZE, NULL, NOBODY, "2"},
        {PMIX_LOCAL_SIZE, "B", 0, "2"},
        {PMIX_LOCAL_SIZE, "B", NOBODY, "0"},
        {PMIX_LOCAL_PEERS, NULL, NOBODY, "'2,3'"},
        {PMIX_LOCAL_PEERS, NULL, 0, "'0,1'"},
        {PMIX_LOCAL_PEERS, "B", 1, "'0,1'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char expected[512];
        ask(KEYS(table[i].key), table[i].nspace, table[i].rank);
        assert_int_equal(rig.asked, 0);
        snprintf(expected, sizeof expected, "%s=%s;", table[i].key, table[i].value);
        assert_answer(expected);
    }
}

static void all_namespaces_in_order(void **state)
{
    (void)state;
    char expected[1024];
    ask(KEYS(PMIX_QUERY_NAMESPACES), NULL, NOBODY);
    snprintf(expected, sizeof expected, "%s='%s,%s';", PMIX_QUERY_NAMESPACES,
             rig.job.groups[0]->nspace, rig.job.groups[1]->nspace);
    assert_answer(expected);
}

static void keys_that_nobody_knows_are_left_out(void **state)
{
    (void)state;
    ask(KEYS("no.such", PMIX_JOB_SIZE, PMIX_QUERY_ALLOC_STATUS, PMIX_NUM_NODES), NULL, NOBODY);
    assert_answer(PMIX_JOB_SIZE "=4;" PMIX_NUM_NODES "=2;");
    static const struct {
        const char *key, *nspace;
        uint32_t rank;
    } nothing[] = {
        {"no.such", NULL, NOBODY},
        {PMIX_JOB_SIZE, "another", NOBODY},
        {PMIX_JOB_SIZE, "A", 4},
        {PMIX_JOB_SIZE, "B", 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(nothing); i++) {
        ask(KEYS(nothing[i].key), nothing[i].nspace, nothing[i].rank);
        assert_int_equal(rig.status, PMIX_ERR_NOT_FOUND);
        assert_int_equal(rig.answer.len, 0);
    }
}

static void every_supported_key_is_named(void **state)
{
    (void)state;
    ask(KEYS(PMIX_QUERY_SUPPORTED_KEYS), NULL, NOBODY);
    assert_answer(PMIX_QUERY_SUPPORTED_KEYS
                  "='" PMIX_QUERY_NAMESPACES "," PMIX_QUERY_NAMESPACE_INFO "," PMIX_QUERY_JOB_STATUS
                  "," PMIX_QUERY_PROC_TABLE "," PMIX_QUERY_LOCAL_PROC_TABLE
                  "," PMIX_QUERY_SPAWN_SUPPORT "," PMIX_QUERY_DEBUG_SUPPORT "," PMIX_QUERY_NUM_PSETS
                  "," PMIX_QUERY_PSET_NAMES "," PMIX_QUERY_NUM_GROUPS "," PMIX_QUERY_SUPPORTED_KEYS
                  "," PMIX_UNIV_SIZE "," PMIX_JOB_SIZE "," PMIX_MAX_PROCS "," PMIX_JOB_NUM_APPS
                  "," PMIX_NUM_NODES "," PMIX_NODE_LIST "," PMIX_HOSTNAME "," PMIX_NODEID
                  "," PMIX_LOCAL_SIZE "," PMIX_LOCAL_PEERS "," PMIX_CPUSET "," PMIX_PROC_PID
                  "," PMIX_PROC_STATE_STATUS "';");
}

#define OF_A                                                                                       \
    "{A.0 node0 a 10 0 terminated}{A.1 node0 /bin/one 11 128 failed}{A.2 node1 SELF own 0 "        \
    "connected}{A.3 node1 c 33 129 killed}"
#define OF_B "{B.0 node0 /bin/b 14 0 running}{B.1 node0 b 0 0 undefined}"

/* NULL: it is not known. */
static void processes_are_asked_of_their_agents(void **state)
{
    (void)state;
    static const struct {
        const char *key, *nspace;
        uint32_t rank;
        const char *value;
    } table[] = {
        {PMIX_QUERY_PROC_TABLE, NULL, NOBODY, "[" OF_A "]"},
        {PMIX_QUERY_PROC_TABLE, "B", NOBODY, "[" OF_B "]"},
        {PMIX_QUERY_LOCAL_PROC_TABLE, NULL, NOBODY,
         "[{A.2 node1 SELF own 0 connected}{A.3 node1 c 33 129 killed}]"},
        {PMIX_CPUSET, NULL, 2, "'0-1,3'"},
        {PMIX_CPUSET, NULL, 1, "'4-5'"},
        {PMIX_CPUSET, NULL, 0, NULL}, /* not bound */
        {PMIX_CPUSET, NULL, 3, NULL},
        {PMIX_CPUSET, NULL, NOBODY, NULL}, /* of no rank */
        {PMIX_PROC_PID, NULL, 2, "own"},
        {PMIX_PROC_PID, "B", 0, "14"},
        {PMIX_PROC_PID, "B", 1, NULL}, /* not started */
        {PMIX_PROC_STATE_STATUS, NULL, 0, "terminated"},
        {PMIX_PROC_STATE_STATUS, NULL, 1, "failed"},
        {PMIX_PROC_STATE_STATUS, NULL, 2, "connected"},
        {PMIX_PROC_STATE_STATUS, NULL, 3, "killed"},
        {PMIX_PROC_STATE_STATUS, "B", 0, "running"},
        {PMIX_PROC_STATE_STATUS, "B", 1, "undefined"},
        {PMIX_PROC_STATE_STATUS, "B", NOBODY, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char expected[512];
        ask(KEYS(table[i].key), table[i].nspace, table[i].rank);
        assert_int_not_equal(rig.asked, 0);
        assert_int_equal(rig.status, PMIX_ERR_WOULD_BLOCK); /* worker 0 has not answered */
        reply(1, rig.asked, false);                         /* it was not asked, or has answered */
        reply(2, rig.asked, false);                         /* there is none */
        reply(0, rig.asked + 1, false);
        assert_int_equal(rig.status, PMIX_ERR_WOULD_BLOCK);
        reply(0, rig.asked, false);
        assert_int_equal(rig.status, table[i].value ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND);
        if (table[i].value) {
            snprintf(expected, sizeof expected, "%s=%s;", table[i].key, table[i].value);
            assert_answer(expected);
        }
        reply(0, rig.asked, false); /* nobody waits any more */
    }
}

static void an_agent_may_know_nothing(void **state)
{
    (void)state;
    ask(KEYS(PMIX_QUERY_PROC_TABLE), "B", NOBODY);
    reply(0, rig.asked, true);
    assert_answer(PMIX_QUERY_PROC_TABLE
                  "=[{B.0 node0 b 0 0 undefined}{B.1 node0 b 0 0 undefined}];");
}

static void several_may_ask_at_once(void **state)
{
    (void)state;
    ask(KEYS(PMIX_PROC_PID), "B", 0);
    uint64_t first = rig.asked;
    ask(KEYS(PMIX_PROC_PID), "A", 0);
    assert_int_not_equal(rig.asked, first);
    reply(0, first, false);
    assert_answer(PMIX_PROC_PID "=14;");
    rig.status = PMIX_ERR_WOULD_BLOCK;
    reply(0, rig.asked, false);
    assert_answer(PMIX_PROC_PID "=10;");
    /* the server goes, and those that wait are told */
    ask(KEYS(PMIX_PROC_PID), "A", 0);
    pmix_drop_tables(&rig.host);
    assert_int_equal(rig.status, PMIX_ERR_UNREACH);
    assert_null(rig.host.tables);
}

static void errors_of_the_library_have_words(void **state)
{
    (void)state;
    static const struct {
        pmix_status_t status;
        int code;
    } table[] = {
        {PMIX_ERR_NOMEM, ENOMEM},      {PMIX_ERR_OUT_OF_RESOURCE, ENOMEM},
        {PMIX_ERR_BAD_PARAM, EINVAL},  {PMIX_ERR_NOT_FOUND, ENOENT},
        {PMIX_ERR_TIMEOUT, ETIMEDOUT}, {PMIX_ERR_NOT_SUPPORTED, ENOTSUP},
        {PMIX_ERR_UNREACH, EPROTO},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct drarun_error err = {0};
        char expected[256];
        assert_int_equal(pmix_error(&err, table[i].status, "query"), -table[i].code);
        snprintf(expected, sizeof expected, "query: %s", PMIx_Error_string(table[i].status));
        assert_string_equal(err.text, expected);
        assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
    }
}

static void requests_wait_by_number(void **state)
{
    (void)state;
    struct upcall one, other;
    uint64_t first = pmix_pend(&rig.host, &one), second = pmix_pend(&rig.host, &other);
    assert_int_not_equal(first, 0);
    assert_int_equal(second, first + 1);
    assert_null(pmix_unpend(&rig.host, second + 1));
    assert_ptr_equal(pmix_unpend(&rig.host, first), &one);
    assert_null(pmix_unpend(&rig.host, first));
    assert_ptr_equal(pmix_unpend(&rig.host, second), &other);
    assert_null(rig.host.pending);
}

static void ranks_of_the_job_and_their_processes(void **state)
{
    (void)state;
    static const struct {
        char nspace;
        uint32_t rank;
        int64_t of_job;
    } table[] = {{'A', 0, 0}, {'A', 3, 3},  {'A', 4, -1}, {'B', 0, 4},
                 {'B', 1, 5}, {'B', 2, -1}, {'C', 0, -1}};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        pmix_proc_t proc, back;
        PMIX_LOAD_PROCID(
            &proc, table[i].nspace == 'C' ? "C" : rig.job.groups[table[i].nspace - 'A']->nspace,
            table[i].rank);
        assert_int_equal(pmix_rank_of(&rig.host, &proc), table[i].of_job);
        if (table[i].of_job < 0)
            continue;
        back = pmix_proc_of(&rig.host, (uint32_t)table[i].of_job);
        assert_string_equal(back.nspace, proc.nspace);
        assert_int_equal(back.rank, proc.rank);
    }
}

/* ---- tools ---- */

static struct {
    pmix_status_t status;
    pmix_proc_t name;
} tool;

static void on_tool(pmix_status_t status, pmix_proc_t *name, void *cbdata)
{
    (void)cbdata;
    tool.status = status;
    if (name)
        tool.name = *name;
}

/* nspace: the name that it has given itself; NULL: none. */
static void connect_tool(const char *nspace)
{
    struct upcall *upcall = calloc(1, sizeof *upcall);
    const pmix_rank_t rank = 6;
    assert_non_null(upcall);
    memset(&tool, 0, sizeof tool);
    upcall->kind = UPCALL_TOOL;
    upcall->tool_cb = on_tool;
    if (nspace) {
        PMIX_INFO_CREATE(upcall->info, 2);
        upcall->info_count = 2;
        PMIX_INFO_LOAD(&upcall->info[0], PMIX_NSPACE, nspace, PMIX_STRING);
        PMIX_INFO_LOAD(&upcall->info[1], PMIX_RANK, &rank, PMIX_PROC_RANK);
    }
    pmix_on_tool(&rig.host, upcall);
}

static void tools_have_names_of_their_own(void **state)
{
    (void)state;
    char expected[512];
    rig.host.tools = 0;
    connect_tool(NULL);
    if (tool.status == PMIX_ERR_NOT_SUPPORTED)
        skip(); /* an unpatched library */
    assert_int_equal(tool.status, PMIX_SUCCESS);
    snprintf(expected, sizeof expected, "%.200s.tool.1.1", rig.job.groups[0]->nspace);
    assert_string_equal(tool.name.nspace, expected);
    assert_int_equal(tool.name.rank, 0);
    connect_tool("debugger");
    assert_string_equal(tool.name.nspace, "debugger");
    assert_int_equal(tool.name.rank, 6);
    connect_tool(NULL);
    snprintf(expected, sizeof expected, "%.200s.tool.1.3", rig.job.groups[0]->nspace);
    assert_string_equal(tool.name.nspace, expected);
}

static void so_many_tools_are_served(void **state)
{
    (void)state;
    rig.host.tools = 255;
    assert_true(pmix_has_room_for_tool(&rig.host));
    assert_false(rig.host.tools_refused);
    rig.host.tools = 256;
    assert_false(pmix_has_room_for_tool(&rig.host));
    assert_true(rig.host.tools_refused);
    connect_tool(NULL);
    assert_true(tool.status == PMIX_ERR_OUT_OF_RESOURCE || tool.status == PMIX_ERR_NOT_SUPPORTED);
    assert_int_equal(rig.host.tools, 256);
}

static void names_of_jobs_are_reserved(void **state)
{
    (void)state;
    assert_true(pmix_is_reserved("drarun.x"));
    assert_true(pmix_is_reserved("drarun."));
    assert_false(pmix_is_reserved("drarun"));
    assert_false(pmix_is_reserved("a.drarun.x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_agent_itself_knows),
        cmocka_unit_test(all_namespaces_in_order),
        cmocka_unit_test(keys_that_nobody_knows_are_left_out),
        cmocka_unit_test(every_supported_key_is_named),
        cmocka_unit_test(processes_are_asked_of_their_agents),
        cmocka_unit_test(an_agent_may_know_nothing),
        cmocka_unit_test(several_may_ask_at_once),
        cmocka_unit_test(errors_of_the_library_have_words),
        cmocka_unit_test(requests_wait_by_number),
        cmocka_unit_test(ranks_of_the_job_and_their_processes),
        cmocka_unit_test(tools_have_names_of_their_own),
        cmocka_unit_test(so_many_tools_are_served),
        cmocka_unit_test(names_of_jobs_are_reserved),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
