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
#include "lib/kube/config_private.h"
#include "lib/kube/kubeconfig.h"

static const char plain[] = "apiVersion: v1\n"
                            "kind: Config\n"
                            "current-context: one\n"
                            "contexts:\n"
                            "- name: one\n"
                            "  context: {cluster: c, user: u, namespace: space}\n"
                            "- name: two\n"
                            "  context: {cluster: c, user: cert}\n"
                            "clusters:\n"
                            "- name: c\n"
                            "  cluster: {server: \"https://a:1/\", unknown: 1}\n"
                            "users:\n"
                            "- name: u\n"
                            "  user: {token: t}\n"
                            "- name: cert\n"
                            "  user: {client-certificate-data: YQ==, client-key-data: Yg==}\n";

static int load(const char *const texts[], const struct kube_config_choice *choice,
                struct kube_config **ret_config, struct drarun_error *err)
{
    struct kubeconfig files = {.searched = strdup("the list")};
    int rc = 0;
    for (size_t i = 0; texts[i] && rc == 0; i++) {
        char name[32];
        snprintf(name, sizeof name, "/d/%zu", i);
        rc = kubeconfig_add(&files, name, texts[i], strlen(texts[i]), err);
    }
    if (rc == 0)
        rc = kubeconfig_choose(&files, choice, ret_config, err);
    kubeconfig_done(&files);
    return rc;
}

static void test_contexts(void **state)
{
    const char *const texts[] = {plain, NULL};
    struct kube_config_choice choice = {0};
    struct kube_config *config = NULL;
    (void)state;
    assert_int_equal(load(texts, &choice, &config, NULL), 0);
    assert_string_equal(kube_config_server(config), "https://a:1");
    assert_string_equal(kube_config_namespace(config), "space");
    assert_string_equal(kube_config_name(config), "context \"one\" of the list");
    assert_string_equal(config->token.content.data, "t");
    kube_config_free(config);
    choice.context = "two";
    assert_int_equal(load(texts, &choice, &config, NULL), 0);
    assert_string_equal(kube_config_namespace(config), "default");
    assert_string_equal(config->key.content.data, "b");
    kube_config_free(config);
    choice.namespace_ = "mine";
    assert_int_equal(load(texts, &choice, &config, NULL), 0);
    assert_string_equal(kube_config_namespace(config), "mine");
    kube_config_free(config);
}

/* Per entry the first file has it, whole; the first current-context that is not empty. */
static void test_merge(void **state)
{
    const char *const texts[] = {
        "current-context: ''\nclusters:\n- name: c\n  cluster: {server: \"https://first\"}\n",
        "current-context: two\nusers:\n- name: cert\n  user: {token: other}\n",
        "",
        plain,
        NULL,
    };
    struct kube_config_choice choice = {0};
    struct kube_config *config = NULL;
    (void)state;
    assert_int_equal(load(texts, &choice, &config, NULL), 0);
    assert_string_equal(kube_config_server(config), "https://first");
    assert_string_equal(config->token.content.data, "other");
    assert_false(kept_file_is_set(&config->certificate));
    kube_config_free(config);
}

/* As kubectl reads what somebody has edited by hand. */
static void test_key_that_is_given_twice(void **state)
{
    const char *const texts[] = {"current-context: none\n"
                                 "current-context: one\n"
                                 "contexts: [{name: one, context: {cluster: c, namespace: a, "
                                 "namespace: b}}]\n"
                                 "clusters: [{name: c, cluster: {server: \"https://a\"}}]\n",
                                 NULL};
    struct kube_config_choice choice = {0};
    struct kube_config *config = NULL;
    struct drarun_error err = {0};
    (void)state;
    if (load(texts, &choice, &config, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(kube_config_namespace(config), "b");
    kube_config_free(config);
}

static void test_many_files(void **state)
{
    const char *texts[102] = {NULL};
    struct kube_config_choice choice = {0};
    struct kube_config *config = NULL;
    struct drarun_error err = {0};
    (void)state;
    for (size_t i = 0; i < 100; i++)
        texts[i] = "contexts: []\n";
    texts[100] = plain;
    if (load(texts, &choice, &config, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(kube_config_server(config), "https://a:1");
    kube_config_free(config);
}

#define USER(fields)                                                                               \
    "current-context: x\n"                                                                         \
    "contexts: [{name: x, context: {cluster: c, user: u}}]\n"                                      \
    "clusters: [{name: c, cluster: {server: \"https://a\"}}]\n"                                    \
    "users:\n- name: u\n  user: " fields "\n"
#define CLUSTER(fields)                                                                            \
    "current-context: x\n"                                                                         \
    "contexts: [{name: x, context: {cluster: c}}]\n"                                               \
    "clusters:\n- name: c\n  cluster: " fields "\n"
#define EXEC(fields) USER("{exec: {command: p, " fields "}}")
#define V1 "apiVersion: client.authentication.k8s.io/v1"

static void test_refused(void **state)
{
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"", "has no current-context; name a context"},
        {"current-context: x\n", "the list has no context \"x\""},
        {"current-context: x\ncontexts: 3\n", "/d/0:2:11: contexts: expected a list"},
        {"current-context: x\ncontexts: [{name: x}]\n", "expected \"context\" beside it"},
        {"current-context: x\ncontexts: [{name: x, context: {}}]\n", "names no cluster"},
        {"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n",
         "context \"x\": the list has no cluster \"c\""},
        {"- a\n", "has no current-context"},
        {CLUSTER("{}"), "its cluster has no \"server\""},
        {CLUSTER("{server: \"a:1\"}"), "expected a URL, https://HOST:PORT"},
        {CLUSTER("{server: 3}"), "clusters[0].cluster.server"},
        {CLUSTER("{server: \"https://a\", certificate-authority: none}"),
         "/d/none: No such file or directory"},
        {CLUSTER("{server: \"https://a\", certificate-authority-data: \"%%\"}"), "expected base64"},
        {CLUSTER("{server: \"https://a\", insecure-skip-tls-verify: true, "
                 "certificate-authority-data: YQ==}"),
         "expected it without a certificate authority"},
        {USER("{tokenFile: none}"), "users[0].user.tokenFile: /d/none: No such file"},
        {USER("{client-key-data: YQ==}"), "client-certificate and client-key together"},
        {USER("{username: a, password: b}"), "no basic authentication since 1.19"},
        {USER("{auth-provider: {name: gcp}}"), "removed from Kubernetes in 1.26"},
        {USER("{auth-provider: {name: oidc, config: {client-id: a}}}"), "has no id-token: log in"},
        {USER("{auth-provider: oidc}"), "auth-provider: expected a mapping"},
        {USER("{exec: 3}"), "expected a mapping"},
        {USER("{exec: {" V1 ", interactiveMode: Never}}"), "expected a command"},
        {EXEC("interactiveMode: Never"), "expected apiVersion beside it"},
        {EXEC("apiVersion: client.authentication.k8s.io/v1alpha1"), "v1 or v1beta1; write"},
        {EXEC(V1), "v1 expects interactiveMode"},
        {EXEC(V1 ", interactiveMode: Perhaps"), "expected one of"},
        {EXEC(V1 ", interactiveMode: Never, args: [1]"), "exec.args[0]"},
        {EXEC(V1 ", interactiveMode: Never, env: [{value: b}]"), "expected a name"},
        {EXEC(V1 ", interactiveMode: Never, env: [{name: \"a=b\"}]"), "without \"=\""},
        {USER("{as-user-extra: {scopes: [view]}}"), "need \"as\" beside them"},
        {USER("{as-groups: [a]}"), "need \"as\" beside them"},
        {USER("{as: a, as-user-extra: {scopes: view}}"), "as-user-extra.scopes: expected a list"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *const texts[] = {rows[i].text, NULL};
        struct kube_config_choice choice = {0};
        struct kube_config *config = NULL;
        struct drarun_error err = {0};
        if (load(texts, &choice, &config, &err) == 0 || !strstr(err.text, rows[i].part))
            fail_msg("%s\ngave %s\nnot  %s", rows[i].text, err.text, rows[i].part);
        assert_true(err.kind == DRARUN_ERR_SPEC || err.kind == DRARUN_ERR_USAGE);
    }
}

static void test_exec(void **state)
{
    const char *const texts[] = {
        USER("{exec: {" V1 ", command: ./p, args: [a], interactiveMode: Always, installHint: h,\n"
             "    env: [{name: NAME, value: v}, {name: E}], provideClusterInfo: true}}"),
        NULL};
    struct kube_config_choice choice = {.exec_ms = 7};
    struct kube_config *config = NULL;
    struct drarun_error err = {0};
    (void)state;
    if (load(texts, &choice, &config, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(config->exec->command, "/d/./p");
    assert_string_equal(config->exec->args.items[0], "a");
    assert_string_equal(config->exec->env.items[0], "NAME=v");
    assert_string_equal(config->exec->env.items[1], "E=");
    assert_int_equal(config->exec->interactive, EXEC_ALWAYS);
    assert_true(config->exec->provide_cluster);
    assert_int_equal(config->exec_ms, 7);
    kube_config_free(config);
}

static void test_impersonation(void **state)
{
    static const char *const extra[] = {"Impersonate-Extra-scopes",
                                        "view",
                                        "Impersonate-Extra-scopes",
                                        "edit",
                                        "Impersonate-Extra-example.com%2Fa%25",
                                        "1"};
    const char *const texts[] = {
        USER("{as: somebody, as-uid: \"7\", as-groups: [a, b],\n"
             "    as-user-extra: {scopes: [view, edit], none: [], \"example.com/a%\": [\"1\"]}}"),
        NULL};
    struct kube_config_choice choice = {0};
    struct kube_config *config = NULL;
    struct drarun_error err = {0};
    (void)state;
    if (load(texts, &choice, &config, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(config->as, "somebody");
    assert_string_equal(config->as_uid, "7");
    assert_int_equal(config->as_groups.count, 2);
    assert_int_equal(config->as_extra.count, ARRAY_LEN(extra));
    for (size_t i = 0; i < ARRAY_LEN(extra); i++)
        assert_string_equal(config->as_extra.items[i], extra[i]);
    kube_config_free(config);
}

#define OIDC(more) USER("{" more "auth-provider: {name: oidc, config: {id-token: a.b.c}}}")

static void test_oidc(void **state)
{
    const char *const texts[] = {OIDC(""), NULL}, *const both[] = {OIDC("token: t, "), NULL};
    struct buf text = BUF_INIT, token = BUF_INIT;
    struct kube_config_choice choice = {0};
    struct kube_config *config = NULL;
    struct drarun_error err = {0};
    (void)state;
    if (load(texts, &choice, &config, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(config->token.content.data, "a.b.c");
    assert_null(config->provided.path); /* it is no file that can be read again */
    assert_string_equal(config->provided_user, "u");
    kube_config_free(config);
    if (load(both, &choice, &config, &err) < 0) /* as in client-go */
        fail_msg("%s", err.text);
    assert_string_equal(config->token.content.data, "t");
    assert_null(config->provided.path);
    kube_config_free(config);

    buf_add_str(&text, texts[0]);
    assert_int_equal(kubeconfig_provided_token(&text, "k", "u", &token), 0);
    assert_string_equal(token.data, "a.b.c");
    assert_int_equal(kubeconfig_provided_token(&text, "k", "other", &token), -ENOENT);
    buf_reset(&text);
    assert_int_equal(kubeconfig_provided_token(&text, "k", "u", &token), -ENOENT);
    buf_add_str(&text, "users: 3\n");
    assert_int_equal(kubeconfig_provided_token(&text, "k", "u", &token), -ENOENT);
    buf_done(&text);
    buf_done(&token);
}

/* What is wrong with a secret is said without showing it. */
static void test_secrets_stay_hidden(void **state)
{
    const char *const texts[] = {USER("{token: 918273645, client-key-data: [918273645]}"), NULL};
    struct kube_config_choice choice = {0};
    struct kube_config *config = NULL;
    struct drarun_error err = {0};
    (void)state;
    assert_true(load(texts, &choice, &config, &err) < 0);
    assert_null(strstr(err.text, "918273645"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_key_that_is_given_twice),
        cmocka_unit_test(test_many_files),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_exec),
        cmocka_unit_test(test_impersonation),
        cmocka_unit_test(test_oidc),
        cmocka_unit_test(test_secrets_stay_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
