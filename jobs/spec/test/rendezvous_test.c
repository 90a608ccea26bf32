/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/spec/rendezvous.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

struct sample {
    struct rendezvous_facts facts;
    const char *addresses; /* joined by ","; NULL: refused */
    uint32_t index;
    const char *says; /* the source, or a part of the error */
};

static void check(const struct sample *s)
{
    struct rendezvous r;
    struct drarun_error err = {0};
    struct buf joined = BUF_INIT;
    int rc = rendezvous_find(&s->facts, &r, &err);
    if (!s->addresses) {
        assert_true(rc < 0);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
        if (!strstr(err.text, s->says))
            fail_msg("\"%s\" lacks \"%s\"", err.text, s->says);
        return;
    }
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    for (size_t i = 0; i < r.addresses.count; i++)
        buf_printf(&joined, "%s%s", i ? "," : "", r.addresses.items[i]);
    assert_string_equal(joined.data, s->addresses);
    buf_done(&joined);
    assert_int_equal(r.index, s->index);
    assert_string_equal(r.source, s->says);
    rendezvous_done(&r);
}

#define WEB "web-1", .fqdn = "web-1.web.train.svc.cluster.local"

static void test_controllers(void **state)
{
    static const struct sample samples[] = {
        {{.index = -1, .workers = 2, .port = 7173, .hostname = WEB},
         "web-0.web.train.svc.cluster.local:7173,web-1.web.train.svc.cluster.local:7173",
         1,
         "a StatefulSet"},
        {{.index = -1, .workers = 2, .port = 9, .completion_index = "1", .hostname = WEB},
         "web-0.web.train.svc.cluster.local:9,web-1.web.train.svc.cluster.local:9",
         1,
         "an Indexed Job"},
        {{.index = -1,
          .workers = 2,
          .port = 9,
          .completion_index = "0",
          .hostname = "js-workers-3-0",
          .fqdn = "js-workers-3-0.js.ns.svc"},
         "js-workers-3-0.js.ns.svc:9,js-workers-3-1.js.ns.svc:9",
         0,
         "an Indexed Job"},
        {{.index = -1,
          .port = 9,
          .lws_leader = "lws-7.lws.default",
          .lws_size = "3",
          .lws_index = "2",
          .hostname = "lws-7-2"},
         "lws-7.lws.default:9,lws-7-1.lws.default:9,lws-7-2.lws.default:9",
         2,
         "a LeaderWorkerSet"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        check(&samples[i]);
}

static void test_lists(void **state)
{
    static const struct sample samples[] = {
        {{.peers = "10.0.0.1,10.0.0.2:8000", .index = 1, .port = 9},
         "10.0.0.1:9,10.0.0.2:8000",
         1,
         "--peers"},
        {{.peers = "fd00::1,[fd00::2]:8,[fd00::3]", .index = 0, .port = 9},
         "[fd00::1]:9,[fd00::2]:8,[fd00::3]:9",
         0,
         "--peers"},
        {{.peers = "js-w-[0-1]-[0-1].js,x", .index = -1, .port = 9, .hostname = "js-w-1-0"},
         "js-w-0-0.js:9,js-w-0-1.js:9,js-w-1-0.js:9,js-w-1-1.js:9,x:9",
         2,
         "--peers"},
        {{.peers = "a,b", .index = -1, .port = 9, .hostname = "c", .completion_index = "1"},
         "a:9,b:9",
         1,
         "--peers"},
        {{.peers = "a,b", .index = -1, .port = 9, .hostname = "c"}, NULL, 0, "add --index I"},
        {{.peers = "a,a", .index = -1, .port = 9, .hostname = "a"}, NULL, 0, "add --index I"},
        {{.peers = "a,,b", .index = 0, .port = 9}, NULL, 0, "empty entry"},
        {{.peers = "a-[3-1]", .index = 0, .port = 9}, NULL, 0, "range [3-1] is empty"},
        {{.peers = "a-[123]", .index = 0, .port = 9}, NULL, 0, "expected a range"},
        {{.peers = "a-[0-99999]", .index = 0, .port = 9}, NULL, 0, "99999"},
        {{.peers = "a[0-999][0-999]", .index = 0, .port = 9}, NULL, 0, "too many"},
        {{.peers = "a,b", .index = 2, .port = 9}, NULL, 0, "number 2 of 2"},
        {{.peers = "a,b", .index = 0, .port = 9, .workers = 3}, NULL, 0, "--peers names 2"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        check(&samples[i]);
}

static void test_refused(void **state)
{
    static const struct sample samples[] = {
        {{.index = -1, .workers = 2, .hostname = "box"}, NULL, 0, "the peers are not known"},
        {{.index = -1, .workers = 2}, NULL, 0, "the peers are not known"},
        {{.index = -1, .hostname = WEB}, NULL, 0, "add --workers N"},
        {{.index = -1, .workers = 2, .hostname = "web-1", .fqdn = "web-1"}, NULL, 0, "headless"},
        {{.index = -1, .workers = 1, .hostname = WEB}, NULL, 0, "number 1 of 1"},
        {{.index = 1, .workers = 2, .hostname = WEB}, NULL, 0, "--index is the place of this pod"},
        {{.index = -1, .workers = 2, .completion_index = "0", .hostname = WEB},
         NULL,
         0,
         "hostNetwork?"},
        {{.index = -1, .workers = 2, .completion_index = "x", .hostname = WEB},
         NULL,
         0,
         "JOB_COMPLETION_INDEX"},
        {{.index = -1, .lws_leader = "a.b"}, NULL, 0, "LWS_GROUP_SIZE"},
        {{.index = -1, .lws_leader = "a.b", .lws_size = "2", .lws_index = "2"},
         NULL,
         0,
         "LWS_WORKER_INDEX"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        check(&samples[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_controllers),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
