/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/create.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static void test_what_may_pass(void **state)
{
    static const struct {
        struct drarun_error err;
        bool passes;
    } cases[] = {
        {{.code = ECONNREFUSED, .kind = DRARUN_ERR_INFRASTRUCTURE, .text = "no connection"}, true},
        {{.code = EIO, .kind = DRARUN_ERR_CLUSTER, .text = "500: etcd"}, true},
        {{.code = EAGAIN, .kind = DRARUN_ERR_CLUSTER, .text = "504: timeout"}, true},
        {{.code = ETIMEDOUT, .kind = DRARUN_ERR_CLUSTER, .text = "it still exists"}, true},
        {{.code = EAGAIN, .kind = DRARUN_ERR_CLUSTER, .text = "429: too many"}, true},
        {{.code = EBUSY, .kind = DRARUN_ERR_CLUSTER, .text = "409: resourcequotas"}, true},
        {{.code = EACCES,
          .kind = DRARUN_ERR_CLUSTER,
          .text = "403: pods \"job-w-0\" is forbidden: exceeded quota: few, requested: pods=1, "
                  "used: pods=1, limited: pods=1"},
         true},
        {{.code = EACCES, .kind = DRARUN_ERR_CLUSTER, .text = "403: a Role must allow it"}, false},
        {{.code = EEXIST, .kind = DRARUN_ERR_CLUSTER, .text = "there is a job"}, false},
        {{.code = EINVAL, .kind = DRARUN_ERR_CLUSTER, .text = "422: spec.containers"}, false},
        {{.code = EINVAL, .kind = DRARUN_ERR_SPEC, .text = "spec.workers"}, false},
        {{.code = EKEYREJECTED, .kind = DRARUN_ERR_CLUSTER, .text = "certificate"}, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (create_may_pass(&cases[i].err) != cases[i].passes)
            fail_msg("%s", cases[i].err.text);
}

#define DENIED(policy)                                                                             \
    "create pods in namespace train: 422: pods \"job-w-0\" is forbidden: "                         \
    "ValidatingAdmissionPolicy '" policy "' with binding '" policy "' denied request: "

static void test_what_only_another_spec_mends(void **state)
{
    static const struct {
        struct drarun_error err;
        bool invalid;
    } cases[] = {
        {{.code = EINVAL, .kind = DRARUN_ERR_SPEC, .text = "spec.workers"}, true},
        {{.code = ETIMEDOUT, .kind = DRARUN_ERR_SPEC, .text = "reading it takes too long"}, true},
        {{.code = EINVAL,
          .kind = DRARUN_ERR_CLUSTER,
          .text = "create pods in namespace train: 422: Pod \"job-w-0\" is invalid: "
                  "spec.containers[0].image: Required value"},
         true},
        {{.code = EINVAL,
          .kind = DRARUN_ERR_CLUSTER,
          .text = "create pods in namespace train: 400: Pod in version \"v1\" cannot be handled"},
         true},
        {{.code = EINVAL,
          .kind = DRARUN_ERR_CLUSTER,
          .text = DENIED("drarun-plugin-configuration") "config[0].opaque.parameters: expected"},
         true},
        {{.code = EINVAL, .kind = DRARUN_ERR_CLUSTER, .text = DENIED("site") "not now"}, false},
        {{.code = EINVAL,
          .kind = DRARUN_ERR_CLUSTER,
          .text = "create jobs in namespace train: 422: jobs.batch \"job\" is forbidden: "
                  "ValidatingAdmissionPolicy 'site' denied request: failed to configure policy"},
         false},
        {{.code = EINVAL,
          .kind = DRARUN_ERR_CLUSTER,
          .text = "create pods in namespace train: 400: admission webhook \"pods.example.com\" "
                  "denied the request: not now"},
         false},
        {{.code = EINVAL,
          .kind = DRARUN_ERR_CLUSTER,
          .text = "create pods in namespace train: 422: admission webhook \"pods.example.com\" "
                  "denied the request without explanation"},
         false},
        {{.code = EACCES, .kind = DRARUN_ERR_CLUSTER, .text = "403: exceeded quota"}, false},
        {{.code = EINVAL, .kind = DRARUN_ERR_USAGE, .text = "DRARUN_AGENT: expected"}, false},
        {{.code = EINVAL, .kind = DRARUN_ERR_NONE, .text = "the event loop ended"}, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (create_is_invalid(&cases[i].err) != cases[i].invalid)
            fail_msg("%s", cases[i].err.text);
}

static void test_what_the_site_denies(void **state)
{
    static const struct {
        struct drarun_error err;
        bool denied;
    } cases[] = {
        {{.code = EACCES,
          .kind = DRARUN_ERR_CLUSTER,
          .text = "403: drajobs.drarun.dev is forbidden: User \"a\" cannot create resource "
                  "\"drajobs\" in API group \"drarun.dev\": a Role must allow it"},
         false},
        {{.code = EACCES,
          .kind = DRARUN_ERR_CLUSTER,
          .text = "403: drajobs.drarun.dev \"job\" is forbidden: exceeded quota: few, requested: "
                  "count/drajobs.drarun.dev=1, used: count/drajobs.drarun.dev=1, limited: "
                  "count/drajobs.drarun.dev=1"},
         true},
        {{.code = EACCES,
          .kind = DRARUN_ERR_CLUSTER,
          .text = "403: admission webhook \"validate.kyverno.svc-fail\" denied the request: no"},
         true},
        {{.code = EINVAL, .kind = DRARUN_ERR_CLUSTER, .text = DENIED("site") "not now"}, true},
        /* a definition of another release */
        {{.code = EINVAL,
          .kind = DRARUN_ERR_CLUSTER,
          .text = "422: DraJob.drarun.dev \"job\" is invalid: spec.launch: Unsupported value"},
         false},
        {{.code = ENOENT, .kind = DRARUN_ERR_CLUSTER, .text = "404: not found"}, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (create_is_denied(&cases[i].err) != cases[i].denied)
            fail_msg("%s", cases[i].err.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_may_pass),
                                       cmocka_unit_test(test_what_only_another_spec_mends),
                                       cmocka_unit_test(test_what_the_site_denies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
