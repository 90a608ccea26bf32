/* SPDX-License-Identifier: Apache-2.0 */
/* As whom requests are made, while files rotate and a plugin, which the test is, renews. */
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
#include <time.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/kube/credentials.h"
#include "lib/kube/exec_plugin.h"

static time_t now;
static char place[32], path[64], logged[512];
static unsigned lines;
static struct exec_spec exec;
static struct kube_config config;
static struct credentials *credentials;

static struct {
    unsigned started;
    exec_plugin_fn fn; /* NULL: none runs */
    void *arg;
    bool fails;
} plugin;

time_t __wrap_time(time_t *ret);
int __wrap_exec_plugin_start(struct event_base *base, const struct kube_config *of,
                             exec_plugin_fn fn, void *arg, struct exec_plugin **ret_plugin,
                             struct drarun_error *err);
void __wrap_exec_plugin_free(struct exec_plugin *of);

time_t __wrap_time(time_t *ret)
{
    assert_null(ret);
    return now;
}

int __wrap_exec_plugin_start(struct event_base *base, const struct kube_config *of,
                             exec_plugin_fn fn, void *arg, struct exec_plugin **ret_plugin,
                             struct drarun_error *err)
{
    (void)base;
    assert_ptr_equal(of, &config);
    assert_null(plugin.fn); /* one at a time */
    if (plugin.fails)
        return error_kind(err, DRARUN_ERR_CLUSTER, ENOENT, "no plugin");
    plugin.started++;
    plugin.fn = fn;
    plugin.arg = arg;
    *ret_plugin = (struct exec_plugin *)&plugin;
    return 0;
}

void __wrap_exec_plugin_free(struct exec_plugin *of)
{
    (void)of;
}

static void keep_line(void *arg, const struct log_line *line)
{
    (void)arg;
    lines++;
    snprintf(logged, sizeof logged, "%.*s", (int)(line->length - line->prefix - 1),
             line->text + line->prefix);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(place, sizeof place, "%s", "/tmp/credentials.XXXXXX");
    if (!mkdtemp(place))
        return -1;
    snprintf(path, sizeof path, "%s/file", place);
    memset(&plugin, 0, sizeof plugin);
    exec = (struct exec_spec){.command = unconst("aws")};
    config = (struct kube_config){.name = unconst("context x")};
    now = 1000000;
    lines = 0;
    log_divert(keep_line, NULL);
    return credentials_new(NULL, &config, &credentials, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    log_divert(NULL, NULL);
    credentials_free(credentials);
    credentials_free(NULL);
    kept_file_done(&config.token);
    kept_file_done(&config.ca);
    kept_file_done(&config.certificate);
    kept_file_done(&config.key);
    kept_file_done(&config.provided);
    return tree_remove(AT_FDCWD, place);
}

static void put(const char *text)
{
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, NULL), 0);
}

static const char *token(unsigned *ret_generation)
{
    struct identity identity = {0};
    struct drarun_error err = {0};
    if (credentials_get(credentials, &identity, NULL, &err) < 0)
        fail_msg("%s", err.text);
    *ret_generation = identity.generation;
    return identity.token;
}

static void assert_token(const char *expected, unsigned expected_generation)
{
    unsigned generation;
    assert_string_equal(token(&generation), expected);
    assert_int_equal(generation, expected_generation);
}

static void assert_no_token(int code, const char *expected)
{
    struct identity identity;
    struct drarun_error err = {0};
    assert_int_equal(credentials_get(credentials, &identity, NULL, &err), -code);
    assert_string_equal(err.text, expected);
}

static void a_fixed_token_has_no_blanks(void **state)
{
    (void)state;
    static const char *const bad[] = {"a b",
                                      "a\tb",
                                      "a\nb",
                                      "a\x7f",
                                      "\x7f"
                                      "a",
                                      "\xc3\xa4"};
    buf_add_str(&config.token.content, " \n t!~ \r\n");
    assert_token("t!~", 0);
    assert_token("t!~", 0);
    assert_false(credentials_refused(credentials, 0)); /* nobody can give another one */
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        buf_reset(&config.token.content);
        buf_add_str(&config.token.content, bad[i]);
        config.token.version++;
        assert_no_token(EINVAL, "credentials of context x: token: a token has no blanks and "
                                "control characters");
    }
}

static void certificates_are_their_content(void **state)
{
    (void)state;
    struct identity identity;
    assert_int_equal(credentials_get(credentials, &identity, NULL, NULL), 0);
    assert_null(identity.token);
    assert_null(identity.ca);
    assert_null(identity.certificate);
    assert_null(identity.key);
    buf_add_str(&config.ca.content, "a");
    buf_add_str(&config.certificate.content, "b");
    buf_add_str(&config.key.content, "c");
    assert_int_equal(credentials_get(credentials, &identity, NULL, NULL), 0);
    assert_string_equal(identity.ca->data, "a");
    assert_string_equal(identity.certificate->data, "b");
    assert_string_equal(identity.key->data, "c");
}

static void a_token_in_a_file_rotates(void **state)
{
    (void)state;
    char expected[256];
    config.token.path = strdup(path);
    snprintf(expected, sizeof expected, "credentials of context x: %s: No such file or directory",
             path);
    assert_no_token(ENOENT, expected);
    put("one\n");
    assert_token("one", 1);
    assert_false(credentials_refused(credentials, 1));
    put("two\n");
    assert_true(credentials_refused(credentials, 1)); /* there is another one now */
    assert_token("two", 2);
    assert_int_equal(unlink(path), 0); /* gone for a moment */
    assert_token("two", 2);
    put("th ree");
    snprintf(expected, sizeof expected,
             "credentials of context x: %s: a token has no blanks and control characters", path);
    assert_no_token(EINVAL, expected);
}

/* ---- a plugin ---- */

struct waiting {
    struct credential_waiter waiter;
    unsigned woken;
    int code;
    char text[512];
};

static void on_woken(const struct drarun_error *err, void *arg)
{
    struct waiting *w = arg;
    w->woken++;
    w->code = err ? err->code : 0;
    snprintf(w->text, sizeof w->text, "%s", err ? err->text : "");
}

static void ask(struct waiting *w)
{
    struct identity identity;
    *w = (struct waiting){.waiter = {.fn = on_woken, .arg = w}};
    assert_int_equal(credentials_get(credentials, &identity, &w->waiter, NULL), -EINPROGRESS);
    assert_int_equal(w->woken, 0);
}

static void give(const char *text, int64_t expires_s)
{
    struct exec_credential credential = {.token = strdup(text), .expires_s = expires_s};
    exec_plugin_fn fn = plugin.fn;
    plugin.fn = NULL;
    fn(&credential, NULL, plugin.arg);
}

static void give_error(int code)
{
    const struct drarun_error err = {.code = code, .kind = DRARUN_ERR_CLUSTER, .text = "it failed"};
    exec_plugin_fn fn = plugin.fn;
    plugin.fn = NULL;
    fn(NULL, &err, plugin.arg);
}

static void all_wait_for_one_plugin(void **state)
{
    (void)state;
    struct waiting a, b, c;
    config.exec = &exec;
    ask(&a);
    ask(&b);
    ask(&c);
    assert_int_equal(plugin.started, 1);
    credentials_withdraw(credentials, &b.waiter);
    assert_false(b.waiter.waiting);
    credentials_withdraw(credentials, &b.waiter);
    give("t", 0);
    assert_int_equal(a.woken, 1);
    assert_int_equal(b.woken, 0);
    assert_int_equal(c.woken, 1);
    assert_int_equal(a.code, 0);
    assert_token("t", 1);
    now += 1000000000; /* it never expires */
    assert_token("t", 1);
    assert_int_equal(plugin.started, 1);
    assert_true(credentials_refused(credentials, 0)); /* of an older one: that is known */
    assert_token("t", 1);
    assert_true(credentials_refused(credentials, 1));
    ask(&a);
    give("u", 0);
    assert_token("u", 2);
}

static void a_plugin_that_fails_at_first(void **state)
{
    (void)state;
    struct waiting w;
    struct identity identity;
    struct drarun_error err = {0};
    config.exec = &exec;
    ask(&w);
    give_error(EACCES);
    assert_int_equal(w.woken, 1);
    assert_int_equal(w.code, EACCES);
    assert_string_equal(w.text, "it failed");
    ask(&w);
    give("old", now); /* of the past */
    assert_int_equal(w.code, EACCES);
    assert_string_equal(w.text, "credential plugin aws of context x: what it gave has expired "
                                "already; is this machine's clock right?");
    plugin.fails = true;
    assert_int_equal(credentials_get(credentials, &identity, &w.waiter, &err), -ENOENT);
    assert_string_equal(err.text, "no plugin");
    plugin.fails = false;
    ask(&w);
    give("good", now + 1);
    assert_int_equal(w.code, 0);
}

/* A tenth of its time before its end, but 30 s at most. */
static void renewed_before_it_expires(void **state)
{
    (void)state;
    static const struct {
        int64_t lives_s, renewed_s;
    } table[] = {{1000, 970}, {300, 270}, {299, 270}, {100, 90}, {19, 18}, {9, 9}};
    struct waiting w;
    config.exec = &exec;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const time_t begin = now;
        ask(&w);
        give("t", begin + table[i].lives_s);
        now = begin + table[i].renewed_s - 1;
        assert_token("t", (unsigned)i + 1);
        now = begin + table[i].renewed_s;
    }
    ask(&w);
}

static void a_renewal_may_fail_while_the_old_one_is_good(void **state)
{
    (void)state;
    struct waiting w;
    config.exec = &exec;
    ask(&w);
    const time_t begin = now;
    give("t", begin + 100);
    now = begin + 90;
    ask(&w);
    give_error(EACCES);
    assert_int_equal(w.code, 0); /* asks again, and gets what there is */
    assert_token("t", 1);
    now += 4;
    assert_token("t", 1);
    now += 1;
    ask(&w); /* after 5 s */
    now = begin + 98;
    give_error(EACCES);
    now = begin + 99;
    assert_token("t", 1);
    now = begin + 100; /* it expires before 5 s are over */
    ask(&w);
    give_error(EACCES);
    assert_int_equal(w.code, EAGAIN); /* it worked before: it may again */
    assert_string_equal(w.text, "it failed");
    ask(&w);
    give("u", 0);
    assert_int_equal(w.code, 0);
    assert_token("u", 2);
}

/* ---- kubectl's token of a provider ---- */

static void put_provided(const char *text)
{
    char file[512];
    snprintf(file, sizeof file,
             "apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user:\n    auth-provider:\n"
             "      name: oidc\n      config: {id-token: %s}\n",
             text);
    put(file);
}

static void a_providers_token_is_read_again(void **state)
{
    (void)state;
    unsigned generation, next;
    config.provided.path = strdup(path);
    config.provided_user = unconst("u");
    buf_add_str(&config.token.content, "one");
    put_provided("one");
    assert_string_equal(token(&generation), "one");
    assert_false(credentials_refused(credentials, generation));
    assert_int_equal(lines, 1);
    assert_string_equal(logged,
                        "context x: the server refuses the id-token of user u, which may have "
                        "expired: kubectl renews it (kubectl version), and it is read again then");
    assert_false(credentials_refused(credentials, generation));
    assert_int_equal(lines, 1); /* said once */
    put_provided("two");
    assert_true(credentials_refused(credentials, generation));
    assert_string_equal(token(&next), "two");
    assert_int_equal(next, generation + 1);
    assert_false(credentials_refused(credentials, next));
    assert_int_equal(lines, 2);
    put_provided("three");
    assert_string_equal(token(&next), "three");
    put("no kubeconfig: [");
    assert_string_equal(token(&generation), "three");
    assert_int_equal(generation, next);
    put_provided("three"); /* written again, the same */
    assert_string_equal(token(&generation), "three");
    assert_int_equal(generation, next);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_fixed_token_has_no_blanks),
        CASE(certificates_are_their_content),
        CASE(a_token_in_a_file_rotates),
        CASE(all_wait_for_one_plugin),
        CASE(a_plugin_that_fails_at_first),
        CASE(renewed_before_it_expires),
        CASE(a_renewal_may_fail_while_the_old_one_is_good),
        CASE(a_providers_token_is_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
