/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are kept, a pod's service account, and what credential plugins are told and answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/unconst.h"
#include "lib/kube/config_private.h"
#include "lib/kube/exec_plugin.h"

static char place[32];

static int set_up(void **state)
{
    (void)state;
    snprintf(place, sizeof place, "%s", "/tmp/kept_file_test.XXXXXX");
    unsetenv("KUBECONFIG");
    setenv("HOME", "/no/such", 1);
    setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    return mkdtemp(place) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return tree_remove(AT_FDCWD, place);
}

static const char *put(const char *name, const void *data, size_t length)
{
    static char path[64];
    snprintf(path, sizeof path, "%s/%s", place, name);
    assert_int_equal(file_write_atomic(path, data, length, 0600, NULL), 0);
    return path;
}

static const char *put_text(const char *name, const char *text)
{
    return put(name, text, strlen(text));
}

/* ---- files ---- */

static void a_kept_file_is_read_when_it_is_new(void **state)
{
    (void)state;
    struct kept_file file = {0};
    struct drarun_error err = {0};
    char expected[128];
    assert_false(kept_file_is_set(&file));
    assert_int_equal(kept_file_refresh(&file, &err), 0); /* it never changes */
    assert_int_equal(file.version, 0);
    file.path = strdup(put_text("file", "one"));
    assert_true(kept_file_is_set(&file));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kept_file_refresh(&file, &err), 0);
        assert_string_equal(file.content.data, "one");
        assert_int_equal(file.version, 1);
    }
    put_text("file", "two"); /* of the same size */
    assert_int_equal(kept_file_refresh(&file, &err), 0);
    assert_string_equal(file.content.data, "two");
    assert_int_equal(file.version, 2);
    /* in its place, with another time alone */
    const struct timespec times[2] = {{.tv_sec = 1, .tv_nsec = 2}, {.tv_sec = 1, .tv_nsec = 2}};
    assert_int_equal(utimensat(AT_FDCWD, file.path, times, 0), 0);
    assert_int_equal(kept_file_refresh(&file, &err), 0);
    assert_int_equal(file.version, 3);
    /* what cannot be read leaves the old content */
    put_text("file", "");
    assert_int_equal(kept_file_refresh(&file, &err), -ENODATA);
    snprintf(expected, sizeof expected, "%s: is empty", file.path);
    assert_string_equal(err.text, expected);
    assert_int_equal(err.kind, DRARUN_ERR_SPEC);
    assert_string_equal(file.content.data, "two");
    assert_int_equal(file.version, 3);
    assert_int_equal(unlink(file.path), 0);
    assert_int_equal(kept_file_refresh(&file, &err), -ENOENT);
    snprintf(expected, sizeof expected, "%s: No such file or directory", file.path);
    assert_string_equal(err.text, expected);
    assert_string_equal(file.content.data, "two");
    kept_file_done(&file);
    assert_false(kept_file_is_set(&file));
    buf_add_str(&file.content, "x"); /* without a file */
    assert_true(kept_file_is_set(&file));
    kept_file_done(&file);
}

static void a_kept_file_has_a_mebibyte(void **state)
{
    (void)state;
    static char text[KEPT_FILE_MAX + 1];
    struct kept_file file = {0};
    struct drarun_error err = {0};
    memset(text, 'x', sizeof text);
    file.path = strdup(put("file", text, sizeof text));
    assert_int_equal(kept_file_refresh(&file, &err), -EFBIG);
    assert_int_equal(err.kind, DRARUN_ERR_SPEC);
    put("file", text, sizeof text - 1);
    assert_int_equal(kept_file_refresh(&file, &err), 0);
    assert_int_equal(file.content.len, KEPT_FILE_MAX);
    kept_file_done(&file);
}

/* ---- the service account ---- */

static int in_cluster(const char *namespace_, struct kube_config **ret_config,
                      struct drarun_error *err)
{
    const struct kube_config_choice choice = {.in_cluster_in = place, .namespace_ = namespace_};
    *ret_config = NULL;
    return kube_config_in_cluster(&choice, ret_config, err);
}

static void a_pods_service_account(void **state)
{
    (void)state;
    static const struct {
        const char *host, *port, *server;
    } table[] = {
        {"10.96.0.1", "443", "https://10.96.0.1:443"},
        {"kubernetes", "1", "https://kubernetes:1"},
        {"fd00::1", "65535", "https://[fd00::1]:65535"},
    };
    struct kube_config *config = NULL;
    struct drarun_error err = {0};
    put_text("token", "t");
    put_text("ca.crt", "c");
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        setenv("KUBERNETES_SERVICE_HOST", table[i].host, 1);
        setenv("KUBERNETES_SERVICE_PORT", table[i].port, 1);
        assert_int_equal(in_cluster(NULL, &config, &err), 0);
        assert_string_equal(kube_config_server(config), table[i].server);
        assert_string_equal(kube_config_name(config), "the pod's service account");
        assert_string_equal(kube_config_namespace(config), "default");
        assert_string_equal(config->token.content.data, "t");
        assert_string_equal(config->ca.content.data, "c");
        kube_config_free(config);
    }
    put_text("namespace", "space \n");
    assert_int_equal(in_cluster(NULL, &config, &err), 0);
    assert_string_equal(kube_config_namespace(config), "space");
    kube_config_free(config);
    assert_int_equal(in_cluster("mine", &config, &err), 0);
    assert_string_equal(kube_config_namespace(config), "mine");
    kube_config_free(config);
    kube_config_free(NULL);
}

static void what_is_no_service_account(void **state)
{
    (void)state;
    static const struct {
        const char *host, *port;
        int code;
        const char *text;
    } table[] = {
        {NULL, "443", ENOENT, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"},
        {"", "443", ENOENT, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"},
        {"h", NULL, ENOENT, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"},
        {"h", "", ENOENT, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"},
        {"h", "0", 0, "KUBERNETES_SERVICE_PORT: "},
        {"h", "65536", 0, "KUBERNETES_SERVICE_PORT: "},
        {"h", "https", 0, "KUBERNETES_SERVICE_PORT: "},
        {"h", "443", ENOENT, place}, /* without files */
    };
    struct kube_config *config = NULL;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct drarun_error err = {0};
        char expected[128];
        unsetenv("KUBERNETES_SERVICE_HOST");
        unsetenv("KUBERNETES_SERVICE_PORT");
        if (table[i].host)
            setenv("KUBERNETES_SERVICE_HOST", table[i].host, 1);
        if (table[i].port)
            setenv("KUBERNETES_SERVICE_PORT", table[i].port, 1);
        int rc = in_cluster(NULL, &config, &err);
        assert_true(table[i].code ? rc == -table[i].code : rc < 0);
        assert_null(config);
        snprintf(expected, sizeof expected, "the pod's service account: %s", table[i].text);
        if (strncmp(err.text, expected, strlen(expected)) != 0)
            fail_msg("%s", err.text);
    }
    struct drarun_error err = {0};
    put_text("token", "t"); /* and no authority */
    assert_int_equal(in_cluster(NULL, &config, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/ca.crt: No such file or directory"));
}

/* As kubectl: the service account where no kubeconfig is there and none was asked for. */
static void a_pod_needs_no_kubeconfig(void **state)
{
    (void)state;
    struct kube_config_choice choice = {.in_cluster_in = place};
    struct kube_config *config = NULL;
    struct drarun_error err = {0};
    put_text("token", "t");
    put_text("ca.crt", "c");
    assert_int_equal(kube_config_load(&choice, &config, &err), 0);
    assert_string_equal(kube_config_name(config), "the pod's service account");
    kube_config_free(config);
    choice.context = "prod";
    assert_true(kube_config_load(&choice, &config, &err) < 0);
    assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    choice.context = NULL;
    setenv("KUBERNETES_SERVICE_HOST", "", 1);
    assert_true(kube_config_load(&choice, &config, &err) < 0);
    setenv("KUBERNETES_SERVICE_HOST", "h", 1);
    choice.path = put_text("config", "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
                                     "contexts: [{name: a, context: {cluster: c, user: u}}]\n"
                                     "clusters: [{name: c, cluster: {server: \"https://s:1\"}}]\n"
                                     "users: [{name: u, user: {token: t}}]\n");
    assert_int_equal(kube_config_load(&choice, &config, &err), 0);
    assert_string_equal(kube_config_server(config), "https://s:1");
    kube_config_free(config);
}

/* ---- credential plugins ---- */

static struct kube_config plugin_of(struct exec_spec *exec)
{
    return (struct kube_config){
        .name = unconst("user u"), .server = unconst("https://s:1"), .exec = exec};
}

static void plugins_are_told(void **state)
{
    (void)state;
    struct exec_spec exec = {.api_version = unconst("v9")};
    struct kube_config config = plugin_of(&exec);
#define INFO "{\"kind\":\"ExecCredential\",\"apiVersion\":\"v9\",\"spec\":{\"interactive\":"
    char *text = exec_info(&config, true);
    assert_string_equal(text, INFO "true}}");
    free(text);
    exec.provide_cluster = true;
    text = exec_info(&config, false);
    assert_string_equal(text, INFO "false,\"cluster\":{\"server\":\"https://s:1\"}}}");
    free(text);
    config.tls_server_name = unconst("n");
    config.proxy_url = unconst("http://p");
    config.insecure = true;
    buf_add_str(&config.ca.content, "ab");
    config.cluster_extension = json_pack("{s:i}", "a", 1);
    text = exec_info(&config, false);
    assert_string_equal(
        text, INFO "false,\"cluster\":{\"server\":\"https://s:1\",\"tls-server-name\":\"n\","
                   "\"certificate-authority-data\":\"YWI=\",\"proxy-url\":\"http://p\",\"config\":"
                   "{\"a\":1},\"insecure-skip-tls-verify\":true}}}");
    free(text);
    json_decref(config.cluster_extension);
    buf_done(&config.ca.content);
}

static struct {
    char token[128], error[512];
    int code;
    bool called;
} heard;

static void hear(struct exec_credential *credential, const struct drarun_error *err, void *arg)
{
    assert_ptr_equal(arg, &heard);
    heard.called = true;
    if (err) {
        snprintf(heard.error, sizeof heard.error, "%s", err->text);
        heard.code = err->code;
        assert_int_equal(err->kind, DRARUN_ERR_CLUSTER);
        assert_null(credential);
    } else {
        snprintf(heard.token, sizeof heard.token, "%s", credential->token);
        exec_credential_done(credential);
    }
}

static void plugins_answer(void **state)
{
    (void)state;
    static const struct {
        const char *script, *token, *error; /* error: behind what it is of */
    } table[] = {
#define ANSWER(token)                                                                              \
    "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"v9\",\"status\":{\"token\":\"'" token     \
    "'\"}}'"
        {ANSWER("t1"), "t1", NULL},
        {ANSWER("$OWN-$SHARED"), "own-of_plugin", NULL}, /* its variables before ours */
        {"exit 3", NULL, "it ended with 3"},
        {"echo who are you >&2; exit 3", NULL, "it ended with 3: who are you"},
        {"kill -9 $$", NULL, "it was killed by signal 9"},
        {"true", NULL, "its answer is empty"},
        {"echo '{'", NULL, "its answer is no JSON"},
    };
    struct exec_spec exec = {
        .api_version = unconst("v9"), .command = unconst("/bin/sh"), .interactive = EXEC_NEVER};
    struct kube_config config = plugin_of(&exec);
    struct event_base *base = event_base_new();
    setenv("SHARED", "of_process", 1);
    strlist_add(&exec.env, "OWN=own");
    strlist_add(&exec.env, "SHARED=of_plugin");
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct exec_plugin *plugin = NULL;
        char expected[256] = "";
        memset(&heard, 0, sizeof heard);
        strlist_done(&exec.args);
        strlist_add(&exec.args, "-c");
        strlist_add(&exec.args, table[i].script);
        assert_int_equal(exec_plugin_start(base, &config, hear, &heard, &plugin, NULL), 0);
        assert_false(heard.called); /* never from inside */
        while (!heard.called)
            event_base_loop(base, EVLOOP_ONCE);
        assert_string_equal(heard.token, table[i].token ? table[i].token : "");
        if (table[i].error)
            snprintf(expected, sizeof expected, "credential plugin /bin/sh of user u: %s",
                     table[i].error);
        assert_string_equal(heard.error, expected);
        assert_int_equal(heard.code, table[i].error ? EACCES : 0);
    }
    strlist_done(&exec.args);
    strlist_done(&exec.env);
    event_base_free(base);
}

static void plugins_that_cannot_run(void **state)
{
    (void)state;
    struct exec_spec exec = {.api_version = unconst("v9"),
                             .command = unconst("/no/such"),
                             .interactive = EXEC_IF_AVAILABLE};
    struct kube_config config = plugin_of(&exec);
    struct exec_plugin *plugin = NULL;
    struct drarun_error err = {0};
    struct event_base *base = event_base_new();
    assert_int_equal(exec_plugin_start(base, &config, hear, &heard, &plugin, &err), -ENOENT);
    assert_string_equal(err.text, "credential plugin /no/such of user u: cannot be run: No such "
                                  "file or directory");
    assert_int_equal(err.kind, DRARUN_ERR_CLUSTER);
    exec.install_hint = unconst("get it at x");
    assert_int_equal(exec_plugin_start(base, &config, hear, &heard, &plugin, &err), -ENOENT);
    assert_string_equal(err.text, "credential plugin /no/such of user u: cannot be run: No such "
                                  "file or directory: get it at x");
    assert_null(plugin);
    cleanup_close int terminal = dup(STDIN_FILENO);
    cleanup_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(dup2(null, STDIN_FILENO), STDIN_FILENO);
    exec.interactive = EXEC_ALWAYS;
    assert_int_equal(exec_plugin_start(base, &config, hear, &heard, &plugin, &err), -ENOTTY);
    assert_string_equal(err.text, "credential plugin /no/such of user u: it asks on a terminal, "
                                  "and there is none");
    dup2(terminal, STDIN_FILENO);
    exec_plugin_free(NULL);
    event_base_free(base);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_kept_file_is_read_when_it_is_new),
        CASE(a_kept_file_has_a_mebibyte),
        CASE(a_pods_service_account),
        CASE(what_is_no_service_account),
        CASE(a_pod_needs_no_kubeconfig),
        CASE(plugins_are_told),
        CASE(plugins_answer),
        CASE(plugins_that_cannot_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
