/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "worker/pmi1/kvs.h"

/* ---- one rank ---- */

struct seen {
    uint32_t barriers, aborts, fulls, agains, rank;
    int status;
    char text[64];
};

static void on_barrier(void *arg, uint32_t rank)
{
    struct seen *seen = arg;
    seen->barriers++;
    seen->rank = rank;
}

static void on_abort(void *arg, uint32_t rank, int status, const char *text)
{
    struct seen *seen = arg;
    seen->aborts++;
    seen->rank = rank;
    seen->status = status;
    snprintf(seen->text, sizeof seen->text, "%s", text);
}

static void on_full(void *arg, uint32_t rank)
{
    struct seen *seen = arg;
    seen->fulls++;
    seen->rank = rank;
}

static void on_again(void *arg, uint32_t rank)
{
    struct seen *seen = arg;
    seen->agains++;
    seen->rank = rank;
}

struct rig {
    struct seen seen;
    struct pmi1_kvs *kvs;
    struct pmi1_conn *conn;
};

static void rig_start(struct rig *rig)
{
    memset(rig, 0, sizeof *rig);
    const struct pmi1_owner owner = {.barrier = on_barrier,
                                     .abort = on_abort,
                                     .full = on_full,
                                     .again = on_again,
                                     .arg = &rig->seen};
    rig->kvs = pmi1_kvs_new("job.1");
    assert_non_null(rig->kvs);
    rig->conn = pmi1_conn_new(3, 8, 1, rig->kvs, &owner);
    assert_non_null(rig->conn);
}

static void rig_stop(struct rig *rig)
{
    pmi1_conn_free(rig->conn);
    pmi1_kvs_free(rig->kvs);
}

static int say(struct rig *rig, const char *text, struct buf *out)
{
    buf_add_str(out, "");
    return pmi1_conn_input(rig->conn, text, strlen(text), out, NULL);
}

#define INIT "cmd=init pmi_version=1 pmi_subversion=1\n"
#define INIT_ANSWER "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
#define PUT_OK "cmd=put_result rc=0 msg=success\n"
#define PUT_BAD "cmd=put_result rc=-1 msg=invalid_argument\n"
#define NOT_FOUND "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"
#define TEN "0123456789"
#define KEY63 TEN TEN TEN TEN TEN TEN "012"

/* What a rank says after init and what it hears. */
static const struct {
    const char *said, *heard;
} dialogues[] = {
    {"cmd=get_maxes\n", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"},
    {"cmd=get_appnum\n", "cmd=appnum appnum=1\n"},
    {"cmd=get_my_kvsname\n", "cmd=my_kvsname kvsname=job.1\n"},
    {"cmd=get_universe_size\n", "cmd=universe_size size=8\n"},
    {"cmd=get_ranks2hosts\n", "cmd=put_ranks2hosts 0 0\n"},
    {"cmd=put kvsname=job.1 key=a value=b\ncmd=get kvsname=job.1 key=a\n",
     PUT_OK "cmd=get_result rc=0 msg=success value=b\n"},
    {"cmd=put kvsname=job.1 key=a value=b=c key=d \\= e\ncmd=get key=a\n",
     PUT_OK "cmd=get_result rc=0 msg=success value=b=c key=d \\= e\n"},
    {"cmd=put key=a value=\ncmd=get key=a\n", PUT_OK "cmd=get_result rc=0 msg=success value=\n"},
    {"cmd=put key=a value=1\ncmd=put key=a value=2\ncmd=get key=a\n",
     PUT_OK PUT_OK "cmd=get_result rc=0 msg=success value=2\n"},
    {"cmd=put key=" KEY63 " value=1\ncmd=get key=" KEY63 "\n",
     PUT_OK "cmd=get_result rc=0 msg=success value=1\n"},
    {"cmd=put key=" KEY63 "4 value=1\n", PUT_BAD},
    {"cmd=put kvsname=other key=a value=1\n", PUT_BAD},
    {"cmd=put key=a\n", PUT_BAD},
    {"cmd=put key= value=1\n", PUT_BAD},
    {"cmd=put value=1\n", PUT_BAD},
    {"cmd=get kvsname=other key=a\n", NOT_FOUND},
    {"cmd=get kvsname=job.1 key=a\n", NOT_FOUND},
    {"cmd=get\n", NOT_FOUND},
    {"cmd=put key=a value=1\ncmd=getbyidx kvsname=job.1 idx=0\ncmd=getbyidx kvsname=job.1 idx=1\n",
     PUT_OK "cmd=getbyidx_results rc=0 nextidx=1 key=a val=1\n"
            "cmd=getbyidx_results rc=-1 reason=no_more_keyvals\n"},
    {"cmd=getbyidx idx=-1\n", "cmd=getbyidx_results rc=-1 reason=no_more_keyvals\n"},
    {"cmd=finalize\n", "cmd=finalize_ack\n"},
    {"cmd=publish_name service=s port=p\n", "cmd=publish_result rc=-1 msg=no_such_name\n"},
    {"cmd=unpublish_name service=s\n", "cmd=unpublish_result rc=-1 msg=no_such_name\n"},
    {"cmd=lookup_name service=s\n", "cmd=lookup_result rc=-1 msg=no_such_name\n"},
    {"cmd=create_kvs\n", "cmd=newkvs rc=-1 msg=not_supported\n"},
    {"cmd=destroy_kvs kvsname=x\n", "cmd=kvs_destroyed rc=-1 msg=not_supported\n"},
    {"mcmd=spawn\nnprocs=2\nexecname=./x\ntotspawns=1\nspawnssofar=1\narg1=cmd=get\nargcnt=1\n"
     "preput_num=0\ninfo_num=0\nendcmd\ncmd=finalize\n",
     "cmd=spawn_result rc=-1 msg=not_started\ncmd=finalize_ack\n"},
    {"mcmd=spawn\ntotspawns=2\nspawnssofar=1\nendcmd\n"
     "mcmd=spawn\ntotspawns=2\nspawnssofar=2\nendcmd\n",
     "cmd=spawn_result rc=-1 msg=not_started\n"},
    {"cmd=init pmi_version=2 pmi_subversion=0\n",
     "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n"},
};

static void answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(dialogues); i++) {
        struct rig rig;
        struct buf out = BUF_INIT;
        rig_start(&rig);
        assert_int_equal(say(&rig, INIT, &out), 0);
        assert_string_equal(out.data, INIT_ANSWER);
        buf_reset(&out);
        assert_int_equal(say(&rig, dialogues[i].said, &out), 0);
        assert_string_equal(out.data, dialogues[i].heard);
        buf_done(&out);
        rig_stop(&rig);
    }
}

static void put_one(struct rig *rig, unsigned number, size_t length, const char *answer)
{
    static char value[PMI1_VALUE_MAX];
    struct buf line = BUF_INIT, out = BUF_INIT;
    memset(value, 'v', length);
    value[length] = '\0';
    buf_printf(&line, "cmd=put key=%05u value=%s\n", number, value);
    assert_int_equal(say(rig, line.data, &out), 0);
    assert_string_equal(out.data, answer);
    buf_done(&line);
    buf_done(&out);
}

#define PUT_FULL "cmd=put_result rc=-1 msg=a_rank_may_put_4096_keys_and_1048576_bytes_at_most\n"

/* Of keys and of bytes; what is there can still be read, and be put again with what is no longer.
 */
static void one_rank_cannot_fill_the_space(void **state)
{
    (void)state;
    struct rig rig;
    struct buf out = BUF_INIT;
    rig_start(&rig);
    assert_int_equal(say(&rig, INIT, &out), 0);
    for (unsigned i = 0; i < PMI1_RANK_KEYS_MAX; i++)
        put_one(&rig, i, 10, PUT_OK);
    assert_int_equal(rig.seen.fulls, 0);
    put_one(&rig, PMI1_RANK_KEYS_MAX, 10, PUT_FULL);
    put_one(&rig, PMI1_RANK_KEYS_MAX, 10, PUT_FULL);
    assert_int_equal(rig.seen.fulls, 1);
    assert_int_equal(rig.seen.rank, 3);
    put_one(&rig, 7, 5, PUT_OK);
    buf_reset(&out);
    assert_int_equal(say(&rig, "cmd=get key=00007\ncmd=get key=04096\n", &out), 0);
    assert_string_equal(out.data, "cmd=get_result rc=0 msg=success value=vvvvv\n" NOT_FOUND);
    rig_stop(&rig);

    rig_start(&rig);
    buf_reset(&out);
    assert_int_equal(say(&rig, INIT, &out), 0);
    unsigned fit = PMI1_RANK_BYTES_MAX / (5 + 4000);
    for (unsigned i = 0; i < fit; i++)
        put_one(&rig, i, 4000, PUT_OK);
    put_one(&rig, fit, 4000, PUT_FULL);
    put_one(&rig, 0, 4000, PUT_OK);
    assert_int_equal(rig.seen.fulls, 1);
    buf_done(&out);
    rig_stop(&rig);
}

/* MPICH puts keys of new names each time that it begins again after its last session. */
static void a_rank_that_begins_again_has_room(void **state)
{
    (void)state;
    struct rig rig;
    struct buf out = BUF_INIT;
    rig_start(&rig);
    pmi1_kvs_begin(rig.kvs);
    assert_int_equal(say(&rig, INIT, &out), 0);
    for (unsigned session = 0; session < 10; session++) {
        assert_int_equal(rig.seen.agains, session);
        for (unsigned i = 0; i < PMI1_RANK_KEYS_MAX / 2; i++)
            put_one(&rig, session * PMI1_RANK_KEYS_MAX + i, 200, PUT_OK);
        buf_reset(&out);
        pmi1_kvs_take_new(rig.kvs, &out); /* as in a barrier */
        if (session > 0) {
            pmi1_kvs_forget(rig.kvs);
            pmi1_conn_forget(rig.conn);
        }
        assert_int_equal(say(&rig, "cmd=finalize\n" INIT "cmd=finalize\n" INIT, &out), 0);
        pmi1_kvs_begin(rig.kvs);
    }
    for (unsigned i = 0; i < PMI1_RANK_KEYS_MAX; i++)
        put_one(&rig, i, 10, PUT_OK);
    put_one(&rig, PMI1_RANK_KEYS_MAX, 10, PUT_FULL);
    assert_int_equal(say(&rig, "cmd=finalize\n" INIT, &out), 0); /* and no barrier since the last */
    put_one(&rig, PMI1_RANK_KEYS_MAX, 10, PUT_FULL);
    buf_done(&out);
    rig_stop(&rig);
}

/* The same bytes one at a time give the same answers. */
static void split_lines_are_joined(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(dialogues); i++) {
        struct rig rig;
        struct buf out = BUF_INIT;
        rig_start(&rig);
        assert_int_equal(say(&rig, INIT, &out), 0);
        buf_reset(&out);
        for (const char *p = dialogues[i].said; *p; p++)
            assert_int_equal(pmi1_conn_input(rig.conn, p, 1, &out, NULL), 0);
        assert_string_equal(out.data, dialogues[i].heard);
        buf_done(&out);
        rig_stop(&rig);
    }
}

static const struct {
    const char *said, *shown;
} malformed[] = {
    {"cmd=get_maxes\n", "\"cmd=get_maxes\""}, /* before init */
    {"mcmd=spawn\n", "\"mcmd=spawn\""},
    {INIT "hello\n", "\"hello\""},
    {INIT "\n", "\"\""},
    {INIT "cmd=\n", "\"cmd=\""},
    {INIT "cmd=putt key=a value=b\n", "\"cmd=putt key=a value=b\""},
    {INIT "mcmd=other\n", "\"mcmd=other\""},
    {INIT "cmd=\x01\x7f\n", "\"cmd=??\""},
    {INIT "cmd=barrier_in\ncmd=barrier_in\n", "\"cmd=barrier_in\""},
    {"\x16\x03\x01 a TLS hello\n", "\"??? a TLS hello\""},
};

static void refuses_what_is_no_pmi1(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(malformed); i++) {
        struct rig rig;
        struct buf out = BUF_INIT;
        struct drarun_error err = {0};
        const char *said = malformed[i].said;
        rig_start(&rig);
        assert_int_equal(pmi1_conn_input(rig.conn, said, strlen(said), &out, &err), -EPROTO);
        assert_non_null(strstr(err.text, malformed[i].shown));
        assert_int_equal(say(&rig, INIT, &out), -EPROTO); /* and it stays dead */
        buf_done(&out);
        rig_stop(&rig);
    }
}

static void refuses_nul_and_endless_lines(void **state)
{
    (void)state;
    struct rig rig;
    struct buf out = BUF_INIT;
    struct drarun_error err = {0};
    static const char nul[] = INIT "cmd=finalize\0 x\n";
    rig_start(&rig);
    assert_int_equal(pmi1_conn_input(rig.conn, nul, sizeof nul - 1, &out, &err), -EPROTO);
    rig_stop(&rig);

    static char line[PMI1_LINE_MAX + 1];
    memset(line, 'x', sizeof line);
    rig_start(&rig);
    assert_int_equal(pmi1_conn_input(rig.conn, line, sizeof line - 1, &out, &err), 0);
    assert_int_equal(pmi1_conn_input(rig.conn, line, 1, &out, &err), -EPROTO);
    assert_non_null(strstr(err.text, "xxxx\"..."));
    rig_stop(&rig);
    buf_done(&out);
}

static void a_long_value_survives(void **state)
{
    (void)state;
    struct rig rig;
    struct buf said = BUF_INIT, out = BUF_INIT;
    rig_start(&rig);
    buf_add_str(&said, INIT "cmd=put key=k value=");
    for (size_t i = 0; i < PMI1_VALUE_MAX - 1; i++)
        buf_add_str(&said, "v");
    buf_add_str(&said, "\ncmd=put key=l value=");
    for (size_t i = 0; i < PMI1_VALUE_MAX; i++)
        buf_add_str(&said, "v");
    buf_add_str(&said, "\n");
    assert_int_equal(say(&rig, said.data, &out), 0);
    assert_string_equal(out.data, INIT_ANSWER PUT_OK PUT_BAD);
    assert_int_equal(strlen(pmi1_kvs_get(rig.kvs, "k")), PMI1_VALUE_MAX - 1);
    buf_done(&said);
    buf_done(&out);
    rig_stop(&rig);
}

static void tells_its_owner(void **state)
{
    (void)state;
    struct rig rig;
    struct buf out = BUF_INIT;
    rig_start(&rig);
    assert_false(pmi1_conn_initialized(rig.conn));
    assert_int_equal(say(&rig, INIT "cmd=barrier_in\n", &out), 0);
    assert_true(pmi1_conn_initialized(rig.conn));
    assert_true(pmi1_conn_in_barrier(rig.conn));
    assert_int_equal(rig.seen.barriers, 1);
    assert_int_equal(rig.seen.rank, 3);
    assert_string_equal(out.data, INIT_ANSWER);
    buf_reset(&out);
    pmi1_barrier_out(rig.conn, &out);
    assert_string_equal(out.data, "cmd=barrier_out\n");
    assert_false(pmi1_conn_in_barrier(rig.conn));
    assert_int_equal(say(&rig, "cmd=barrier_in\n", &out), 0);
    assert_int_equal(rig.seen.barriers, 2);

    assert_int_equal(say(&rig, "cmd=finalize\n", &out), 0);
    assert_true(pmi1_conn_finalized(rig.conn));
    assert_int_equal(say(&rig, INIT, &out), 0);
    assert_false(pmi1_conn_finalized(rig.conn));
    buf_done(&out);
    rig_stop(&rig);
}

static const struct {
    const char *said;
    int status;
    const char *text;
} aborts[] = {
    {"cmd=abort exitcode=7\n", 7, ""},
    {"cmd=abort exitcode=-1 message=two words=3\n", -1, "two words=3"},
    {"cmd=abort exitcode=5 message=abort\n", 5, ""},
    {"cmd=abort\n", 1, ""},
    {"cmd=abort exitcode=x\n", 1, ""},
};

static void passes_aborts_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(aborts); i++) {
        struct rig rig;
        struct buf out = BUF_INIT;
        rig_start(&rig);
        if (i % 2 == 0) /* a client whose init failed may abort as well */
            assert_int_equal(say(&rig, INIT, &out), 0);
        buf_reset(&out);
        assert_int_equal(say(&rig, aborts[i / 2].said, &out), 0);
        assert_int_equal(rig.seen.aborts, 1);
        assert_int_equal(rig.seen.status, aborts[i / 2].status);
        assert_string_equal(rig.seen.text, aborts[i / 2].text);
        assert_string_equal(out.data, "");
        buf_done(&out);
        rig_stop(&rig);
    }
}

/* ---- spawn ---- */

/* said: behind init. seen: "COUNT WD BIND HOST,... | ARGV ... | KEY=VALUE ..." of each program;
 * NULL: nothing is asked for. */
static const struct {
    const char *said, *seen;
    bool oversubscribe;
} spawns[] = {
    {"mcmd=spawn\nnprocs=2\nexecname=./x\ntotspawns=1\nspawnssofar=1\narg1=-a\narg2=b c=d\n"
     "argcnt=2\npreput_num=1\npreput_key_0=PARENT_ROOT_PORT_NAME\npreput_val_0=tag#0$x$\nendcmd\n",
     "2 - - | ./x -a b c=d | PARENT_ROOT_PORT_NAME=tag#0$x$ ", false},
    {"mcmd=spawn\nnprocs=1\nexecname=x\ntotspawns=1\nspawnssofar=1\nargcnt=0\npreput_num=0\n"
     "info_num=5\ninfo_key_0=host\ninfo_val_0=a,b\ninfo_key_1=wdir\ninfo_val_1=/d e\n"
     "info_key_2=bind\ninfo_val_2=core\ninfo_key_3=soft\ninfo_val_3=1:4\n"
     "info_key_4=map_by\ninfo_val_4=slot:OVERSUBSCRIBE\nendcmd\n",
     "1 /d e core a,b, | x | ", true},
    {"mcmd=spawn\nnprocs=1\nexecname=x\ntotspawns=2\nspawnssofar=1\nendcmd\n"
     "mcmd=spawn\nnprocs=3\nexecname=y\ntotspawns=2\nspawnssofar=2\narg1=z\nendcmd\n",
     "1 - - | x | 3 - - | y z | ", false},
    {"mcmd=spawn\nnprocs=0\nexecname=x\ntotspawns=1\nspawnssofar=1\nendcmd\n", NULL, false},
    {"mcmd=spawn\nnprocs=x\nexecname=x\ntotspawns=1\nspawnssofar=1\nendcmd\n", NULL, false},
    {"mcmd=spawn\nnprocs=1\nexecname=\ntotspawns=1\nspawnssofar=1\nendcmd\n", NULL, false},
    {"mcmd=spawn\nnprocs=1\nexecname=x\ninfo_key_0=bind\ninfo_val_0=socket\nendcmd\n", NULL, false},
    {"mcmd=spawn\nnprocs=1\nexecname=x\ninfo_key_0=env\ninfo_val_0=A\nendcmd\n", NULL, false},
};

struct asked {
    struct buf text;
    bool oversubscribe;
    int count;
};

static void on_spawn(void *arg, uint32_t rank, struct spawn_request *request)
{
    struct asked *asked = arg;
    assert_int_equal(rank, 3);
    asked->count++;
    asked->oversubscribe = request->oversubscribe;
    for (size_t i = 0; i < request->count; i++) {
        const struct spawn_program *program = &request->programs[i];
        buf_printf(&asked->text, "%u %s %s ", program->count, program->wd ? program->wd : "-",
                   program->bind ? program->bind : "-");
        for (size_t k = 0; k < program->hosts.count; k++)
            buf_printf(&asked->text, "%s,%s", program->hosts.items[k],
                       k + 1 == program->hosts.count ? " " : "");
        buf_add_str(&asked->text, "| ");
        for (size_t k = 0; k < program->argv.count; k++)
            buf_printf(&asked->text, "%s ", program->argv.items[k]);
        buf_add_str(&asked->text, "| ");
        for (size_t k = 0; k < program->preput.count; k++)
            buf_printf(&asked->text, "%s ", program->preput.items[k]);
    }
}

static void spawn_asks_and_waits(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(spawns); i++) {
        struct asked asked = {.text = BUF_INIT};
        const struct pmi1_owner owner = {.spawn = on_spawn, .arg = &asked};
        struct pmi1_kvs *kvs = pmi1_kvs_new("j");
        struct pmi1_conn *conn = pmi1_conn_new(3, 8, 0, kvs, &owner);
        struct buf out = BUF_INIT;
        assert_int_equal(pmi1_conn_input(conn, INIT, strlen(INIT), &out, NULL), 0);
        buf_reset(&out);
        const char *said = spawns[i].said;
        assert_int_equal(pmi1_conn_input(conn, said, strlen(said), &out, NULL), 0);
        assert_int_equal(asked.count, spawns[i].seen ? 1 : 0);
        if (spawns[i].seen) {
            assert_string_equal(asked.text.data, spawns[i].seen);
            assert_int_equal(asked.oversubscribe, spawns[i].oversubscribe);
            assert_int_equal(out.len, 0);
            pmi1_spawned(conn, true, &out);
            assert_string_equal(out.data, "cmd=spawn_result rc=0 msg=success\n");
        } else {
            assert_string_equal(out.data, "cmd=spawn_result rc=-1 msg=not_started\n");
        }
        buf_done(&asked.text);
        buf_done(&out);
        pmi1_conn_free(conn);
        pmi1_kvs_free(kvs);
    }
}

/* ---- names ---- */

static void on_name(void *arg, uint32_t rank, enum pmi1_name what, const char *service,
                    const char *port)
{
    struct buf *text = arg;
    assert_int_equal(rank, 3);
    buf_printf(text, "%d/%s/%s ", (int)what, service, port);
}

static void names_are_asked_for(void **state)
{
    static const struct {
        const char *said, *seen, *answer;
        bool good;
    } cases[] = {
        {"cmd=publish_name service=a b port=tag#0$x=1$\n", "1/a b/tag#0$x=1$ ",
         "cmd=publish_result rc=0 msg=success\n", true},
        {"cmd=publish_name service=a port=p\n", "1/a/p ",
         "cmd=publish_result rc=-1 msg=no_such_name\n", false},
        {"cmd=lookup_name service=a b\n", "2/a b/ ",
         "cmd=lookup_result rc=0 msg=success port=PORT\n", true},
        {"cmd=unpublish_name service=a\n", "3/a/ ", "cmd=unpublish_result rc=0 msg=success\n",
         true},
        {"cmd=lookup_name service=\n", "", "cmd=lookup_result rc=-1 msg=no_such_name\n", false},
        {"cmd=publish_name service=a\n", "", "cmd=publish_result rc=-1 msg=no_such_name\n", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf seen = BUF_INIT, out = BUF_INIT;
        buf_add_str(&seen, "");
        const struct pmi1_owner owner = {.name = on_name, .arg = &seen};
        struct pmi1_kvs *kvs = pmi1_kvs_new("j");
        struct pmi1_conn *conn = pmi1_conn_new(3, 8, 0, kvs, &owner);
        assert_int_equal(pmi1_conn_input(conn, INIT, strlen(INIT), &out, NULL), 0);
        buf_reset(&out);
        const char *said = cases[i].said;
        assert_int_equal(pmi1_conn_input(conn, said, strlen(said), &out, NULL), 0);
        assert_string_equal(seen.data ? seen.data : "", cases[i].seen);
        if (cases[i].seen[0])
            pmi1_named(conn, cases[i].good, "PORT", &out);
        assert_string_equal(out.data, cases[i].answer);
        buf_done(&seen);
        buf_done(&out);
        pmi1_conn_free(conn);
        pmi1_kvs_free(kvs);
    }
}

/* ---- the space between agents ---- */

static void new_keys_travel_once(void **state)
{
    (void)state;
    struct pmi1_kvs *here = pmi1_kvs_new("j"), *there = pmi1_kvs_new("j");
    struct buf sent = BUF_INIT;
    assert_int_equal(pmi1_kvs_put(here, "a", "1"), 0);
    assert_int_equal(pmi1_kvs_put(here, "a", "2"), 0);
    assert_int_equal(pmi1_kvs_put(here, "b", ""), 0);
    pmi1_kvs_take_new(here, &sent);
    size_t once = sent.len;
    pmi1_kvs_take_new(here, &sent);
    assert_int_equal(sent.len, once);
    assert_int_equal(pmi1_kvs_merge(there, sent.data, sent.len, NULL), 0);
    assert_string_equal(pmi1_kvs_get(there, "a"), "2");
    assert_string_equal(pmi1_kvs_get(there, "b"), "");
    assert_null(pmi1_kvs_get(there, "c"));
    assert_null(pmi1_kvs_get(there, ""));

    buf_reset(&sent);
    pmi1_kvs_take_new(there, &sent); /* what was merged is not sent on */
    assert_int_equal(sent.len, 0);
    assert_int_equal(pmi1_kvs_put(here, "a", "3"), 0);
    pmi1_kvs_take_new(here, &sent);
    assert_int_equal(sent.len, 8 + 1 + 1);
    assert_int_equal(pmi1_kvs_merge(there, sent.data, sent.len, NULL), 0);
    assert_string_equal(pmi1_kvs_get(there, "a"), "3");
    buf_done(&sent);
    pmi1_kvs_free(here);
    pmi1_kvs_free(there);
    pmi1_kvs_free(NULL);
}

static const struct {
    const char *data;
    size_t length;
} broken[] = {
    {"\0\0\0", 3},
    {"\0\0\0\1\0\0\0\1a", 9},
    {"\0\0\0\0\0\0\0\1a", 9},                 /* empty key */
    {"\0\0\0\100\0\0\0\0" KEY63 "4", 8 + 64}, /* long key */
    {"\xff\xff\xff\xff\xff\xff\xff\xff"
     "ab",
     10},                        /* sum overflows 32 bits */
    {"\0\0\0\1\0\0\x10\0a", 9},  /* long value */
    {"\0\0\0\1\0\0\0\1\0v", 10}, /* NUL in a key */
    {"\0\0\0\1\0\0\0\1k\0", 10},
    {"\0\0\0\1\0\0\0\3kv\nx", 12}, /* would end the reply */
    {"\0\0\0\1\0\0\0\1=v", 10},
    {"\0\0\0\1\0\0\0\1 v", 10},
};

static void what_is_of_earlier_rounds_is_forgotten(void **state)
{
    (void)state;
    struct buf out = BUF_INIT, others = BUF_INIT;
    struct pmi1_kvs *kvs = pmi1_kvs_new("j"), *other = pmi1_kvs_new("j");
    assert_int_equal(pmi1_kvs_put(kvs, "mapping", "of the server"), 0);
    pmi1_kvs_begin(kvs);
    for (unsigned i = 0; i < 1000; i++) {
        char key[16];
        snprintf(key, sizeof key, "old%u", i);
        assert_int_equal(pmi1_kvs_put(kvs, key, "1"), 0);
    }
    assert_int_equal(pmi1_kvs_put(kvs, "mapping", "of a rank"), 0);
    pmi1_kvs_take_new(kvs, &out);
    pmi1_kvs_begin(kvs);
    assert_int_equal(pmi1_kvs_put(kvs, "old7", "2"), 0);
    assert_int_equal(pmi1_kvs_put(kvs, "new", "3"), 0);
    pmi1_kvs_take_new(kvs, &out);
    assert_int_equal(pmi1_kvs_put(other, "far", "4"), 0);
    pmi1_kvs_take_new(other, &others);
    assert_int_equal(pmi1_kvs_merge(kvs, others.data, others.len, NULL), 0);
    pmi1_kvs_forget(kvs);
    assert_string_equal(pmi1_kvs_get(kvs, "mapping"), "of a rank");
    assert_string_equal(pmi1_kvs_get(kvs, "old7"), "2");
    assert_string_equal(pmi1_kvs_get(kvs, "new"), "3");
    assert_string_equal(pmi1_kvs_get(kvs, "far"), "4");
    const char *key, *value;
    assert_true(pmi1_kvs_entry(kvs, 3, &key, &value));
    assert_false(pmi1_kvs_entry(kvs, 4, &key, &value));
    assert_null(pmi1_kvs_get(kvs, "old0"));
    assert_int_equal(pmi1_kvs_put(kvs, "old0", "5"), 0);
    buf_reset(&out);
    pmi1_kvs_take_new(kvs, &out);
    assert_true(out.len > 0);
    buf_done(&out);
    buf_done(&others);
    pmi1_kvs_free(other);
    pmi1_kvs_free(kvs);
}

static void refuses_malformed_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        struct pmi1_kvs *kvs = pmi1_kvs_new("j");
        struct buf data = BUF_INIT;
        struct drarun_error err = {0};
        const char *key, *value;
        buf_add(&data, "\0\0\0\1\0\0\0\2gok", 11);
        buf_add(&data, broken[i].data, broken[i].length);
        if (pmi1_kvs_merge(kvs, data.data, data.len, &err) != -EPROTO)
            fail_msg("case %zu", i);
        assert_non_null(strstr(err.text, "at byte 11"));
        assert_string_equal(pmi1_kvs_get(kvs, "g"), "ok");
        assert_false(pmi1_kvs_entry(kvs, 1, &key, &value));
        buf_done(&data);
        pmi1_kvs_free(kvs);
    }
}

static void refuses_keys_that_break_lines(void **state)
{
    (void)state;
    static const char *const keys[] = {"", "a b", "a=b", "a\n", KEY63 "4", "\t"};
    struct pmi1_kvs *kvs = pmi1_kvs_new("j");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        assert_int_equal(pmi1_kvs_put(kvs, keys[i], "v"), -EINVAL);
    assert_int_equal(pmi1_kvs_put(kvs, "k", "a\ncmd=barrier_out"), -EINVAL);
    pmi1_kvs_free(kvs);
    char name[PMI1_KVSNAME_MAX + 1];
    memset(name, 'n', sizeof name);
    name[PMI1_KVSNAME_MAX] = '\0';
    assert_null(pmi1_kvs_new(name));
}

/* Enough keys that anything slower than a hash table would run into the time limit. */
static void holds_many_keys(void **state)
{
    (void)state;
    enum { KEYS = 100000 };
    struct pmi1_kvs *kvs = pmi1_kvs_new("j"), *copy = pmi1_kvs_new("j");
    struct buf sent = BUF_INIT;
    char key[32], value[32];
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "P%d-businesscard", i);
        snprintf(value, sizeof value, "%d", i * 7);
        assert_int_equal(pmi1_kvs_put(kvs, key, value), 0);
    }
    pmi1_kvs_take_new(kvs, &sent);
    assert_int_equal(pmi1_kvs_merge(copy, sent.data, sent.len, NULL), 0);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "P%d-businesscard", i);
        snprintf(value, sizeof value, "%d", i * 7);
        assert_string_equal(pmi1_kvs_get(copy, key), value);
    }
    buf_done(&sent);
    pmi1_kvs_free(kvs);
    pmi1_kvs_free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(one_rank_cannot_fill_the_space),
        cmocka_unit_test(a_rank_that_begins_again_has_room),
        cmocka_unit_test(split_lines_are_joined),
        cmocka_unit_test(refuses_what_is_no_pmi1),
        cmocka_unit_test(refuses_nul_and_endless_lines),
        cmocka_unit_test(a_long_value_survives),
        cmocka_unit_test(tells_its_owner),
        cmocka_unit_test(passes_aborts_on),
        cmocka_unit_test(spawn_asks_and_waits),
        cmocka_unit_test(names_are_asked_for),
        cmocka_unit_test(new_keys_travel_once),
        cmocka_unit_test(what_is_of_earlier_rounds_is_forgotten),
        cmocka_unit_test(refuses_malformed_keys),
        cmocka_unit_test(refuses_keys_that_break_lines),
        cmocka_unit_test(holds_many_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
