/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals as Kubernetes 1.36 words them, and the sentence that users get. Against a real server:
 * tests/test_cluster_security.py. */
#include "jobs/manifests/pod_security.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define LABEL(level)                                                                               \
    "kubectl label --overwrite namespace train pod-security.kubernetes.io/enforce=" level
#define TAKE_OUT(level) ": take it out of the job, or " LABEL(level)

/* of the server */
#define ESCALATION(names)                                                                          \
    "allowPrivilegeEscalation != false (" names                                                    \
    " must set securityContext.allowPrivilegeEscalation=false)"
#define DROP_ALL "container \"worker\" must set securityContext.capabilities.drop=[\"ALL\"]"
#define LACKS_LOCK                                                                                 \
    "container \"worker\" must not include \"IPC_LOCK\" in securityContext.capabilities.add"
#define NON_ROOT(names)                                                                            \
    "runAsNonRoot != true (pod or " names " must set securityContext.runAsNonRoot=true)"
#define SECCOMP(names)                                                                             \
    "seccompProfile (pod or " names " must set securityContext.seccompProfile.type to "            \
    "\"RuntimeDefault\" or \"Localhost\")"
#define WORKER "container \"worker\""

/* of ours */
#define SET_ALL                                                                                    \
    "set spec.template.spec.containers[0].securityContext: {allowPrivilegeEscalation: false, "     \
    "capabilities: {drop: [ALL]}, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}"
#define IPC_LOCK "IPC_LOCK in capabilities.add, which RDMA needs: " LABEL("privileged")
#define NO_LIMIT "; or, where the container runtime has no memlock limit, "

static const struct {
    const char *level, *reasons, *words;
} cases[] = {
    {"baseline:latest", "non-default capabilities (" LACKS_LOCK ")",
     IPC_LOCK NO_LIMIT "capabilities: {drop: [IPC_LOCK]} of that container keeps drarun from "
                       "adding it"},
    {"restricted:v1.36",
     ESCALATION(WORKER) ", unrestricted capabilities (" DROP_ALL
                        "), " NON_ROOT(WORKER) ", " SECCOMP(WORKER),
     SET_ALL ", and runAsUser where its image has root's; or " LABEL("baseline")},
    {"restricted:latest",
     ESCALATION(WORKER) ", unrestricted capabilities (" DROP_ALL "; " LACKS_LOCK
                        "), " NON_ROOT(WORKER) ", " SECCOMP(WORKER),
     IPC_LOCK NO_LIMIT SET_ALL},
    /* what is there already need not be written */
    {"restricted:latest", SECCOMP("container \"main\""),
     "give container \"main\" of spec.template the securityContext {seccompProfile: {type: "
     "RuntimeDefault}}; or " LABEL("baseline")},
    {"restricted:latest",
     ESCALATION("containers \"main\", \"side\"") ", " SECCOMP("container \"side\""),
     "give the containers \"main\", \"side\" of spec.template the securityContext "
     "{allowPrivilegeEscalation: false, seccompProfile: {type: RuntimeDefault}}; or " LABEL(
         "baseline")},
    {"baseline:latest",
     "non-default capabilities (" LACKS_LOCK "), hostPath volumes (volume \"drarun-gib\")",
     "hostPath volumes (volume \"drarun-gib\"), " IPC_LOCK},
};

/* Not ours to explain: in the server's words, with the level that would take it. */
static const struct {
    const char *reasons, *mends;
} others[] = {
    {"runAsUser=0 (container \"main\" must not set runAsUser=0)", TAKE_OUT("baseline")},
    {"restricted volume types (volume \"data\" uses restricted volume type \"nfs\")",
     TAKE_OUT("baseline")},
    {"restricted volume types (volume \"data\" uses restricted volume type \"hostPath\")",
     TAKE_OUT("privileged")},
    {"host namespaces (hostNetwork=true), hostPort (container \"main\" uses hostPort 7173)",
     TAKE_OUT("privileged")},
    {"non-default capabilities (container \"main\" must not include \"IPC_LOCK\", \"SYS_NICE\" in "
     "securityContext.capabilities.add)",
     TAKE_OUT("privileged")},
    {"runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
     TAKE_OUT("privileged")},
    {"a new reason", TAKE_OUT("privileged")},
};

static const char *const not_its[] = {
    "pods \"job-w-0\" is forbidden: violates PodSecurity \"baseline:latest\": ",
    "pods \"job-w-0\" is forbidden: violates PodSecurity \"base",
    "pods \"job-w-0\" is forbidden: exceeded quota: team-a",
    "violates PodSecurity \"baseline:latest\": privileged",
    "",
};

static void expect(const char *level, const char *reasons, const char *words, const char *mends)
{
    struct buf message = BUF_INIT, expected = BUF_INIT, out = BUF_INIT;
    struct drarun_error err = {0};
    buf_printf(&message, "pods \"job-w-0\" is forbidden: violates PodSecurity \"%s\": %s", level,
               reasons);
    buf_printf(&expected,
               "namespace train enforces Pod Security \"%s\", which forbids pod \"job-w-0\": %s%s",
               level, words, mends);
    assert_true(pod_security_words(message.data, "train", &out));
    assert_string_equal(out.data, expected.data);
    assert_true(out.len < sizeof err.text);
    buf_done(&message);
    buf_done(&expected);
    buf_done(&out);
}

static void test_what_mends_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect(cases[i].level, cases[i].reasons, cases[i].words, "");
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        expect("restricted:latest", others[i].reasons, others[i].reasons, others[i].mends);
}

static void test_other_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(not_its); i++) {
        struct buf out = BUF_INIT;
        assert_false(pod_security_words(not_its[i], "train", &out));
        assert_int_equal(out.len, 0);
        buf_done(&out);
    }
}

/* The Job controller's Event, about a pod that has no name of ours. */
static void test_event(void **state)
{
    struct buf out = BUF_INIT;
    (void)state;
    assert_true(pod_security_words("Error creating: pods \"job-w-0-x7k2p\" is forbidden: violates "
                                   "PodSecurity \"baseline:latest\": privileged (" WORKER
                                   " must not set securityContext.privileged=true)",
                                   "train", &out));
    assert_non_null(strstr(out.data, "which forbids pod \"job-w-0-x7k2p\": privileged ("));
    buf_done(&out);
}

/* Of a pod with many volumes: the line that mends it is there all the same. */
static void test_long_words_of_the_server(void **state)
{
    struct buf message = BUF_INIT, out = BUF_INIT;
    struct drarun_error err = {0};
    (void)state;
    buf_add_str(&message, "pods \"job-w-0\" is forbidden: violates PodSecurity "
                          "\"baseline:latest\": hostPath volumes (volumes ");
    for (int i = 0; i < 100; i++)
        buf_printf(&message, "%s\"volume-%d\"", i ? ", " : "", i);
    buf_add_str(&message, ")");
    assert_true(pod_security_words(message.data, "train", &out));
    error_set(&err, EACCES, "%s", out.data);
    assert_non_null(strstr(err.text, "\"volume-0\""));
    assert_non_null(strstr(err.text, "..." TAKE_OUT("privileged")));
    buf_done(&message);
    buf_done(&out);
}

/* The text of an error is replaced where it is such a refusal, and its kind and code stay. */
static void test_errors(void **state)
{
    static const struct {
        const char *message; /* NULL: the answer has none */
        bool explained;
    } rows[] = {
        {"pods \"job-w-0\" is forbidden: violates PodSecurity \"restricted:latest\": a new reason",
         true},
        {"pods \"job-w-0\" is forbidden: exceeded quota: team-a", false},
        {NULL, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        CLEANUP(json_decrefp) json_t *status = json_pack("{s:s*}", "message", rows[i].message);
        error_kind(&err, DRARUN_ERR_CAPACITY, EACCES, "403");
        assert_int_equal(pod_security_explain(status, "train", &err), rows[i].explained);
        assert_string_equal(
            err.text, rows[i].explained
                          ? "namespace train enforces Pod Security \"restricted:latest\", "
                            "which forbids pod \"job-w-0\": a new reason" TAKE_OUT("privileged")
                          : "403");
        assert_int_equal(err.kind, DRARUN_ERR_CAPACITY);
        assert_int_equal(err.code, EACCES);
    }
    struct drarun_error none = {0};
    assert_false(pod_security_explain(NULL, "train", &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_mends_it), cmocka_unit_test(test_other_refusals),
        cmocka_unit_test(test_event),         cmocka_unit_test(test_long_words_of_the_server),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests_name("pod_security", tests, NULL, NULL);
}
