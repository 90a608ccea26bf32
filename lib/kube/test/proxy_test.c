/* SPDX-License-Identifier: Apache-2.0 */
/* Which proxy leads to a server: rows as golang.org/x/net/http/httpproxy has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/kube/proxy.h"

#define P "http://proxy.test:3128"

static void test_which(void **state)
{
    static const struct {
        const char *server, *https, *except, *proxy;
    } rows[] = {
        {"https://api.test:6443", NULL, NULL, ""},
        {"https://api.test:6443", "", NULL, ""},
        {"https://api.test:6443", P, NULL, P},
        {"https://api.test:6443", "proxy.test:3128", "", "proxy.test:3128"},
        {"https://api.test:6443", "socks5://proxy.test:1080", NULL, "socks5h://proxy.test:1080"},
        {"https://api.test:6443", "SOCKS5://proxy.test:1080", NULL, "socks5h://proxy.test:1080"},
        {"https://api.test:6443", "socks5h://proxy.test:1080", NULL, "socks5h://proxy.test:1080"},
        {"http://api.test:8080", P, NULL, ""},
        /* this machine */
        {"https://127.0.0.1:6443", P, NULL, ""},
        {"https://127.8.0.1", P, NULL, ""},
        {"https://localhost:6443", P, NULL, ""},
        {"https://LocalHost:6443", P, NULL, ""},
        {"https://[::1]:6443", P, NULL, ""},
        {"https://localhost.test:6443", P, NULL, P},
        /* names */
        {"https://api.test:6443", P, "api.test", ""},
        {"https://api.test:6443", P, "other.test, API.test ,", ""},
        {"https://api.test:6443", P, "test", ""},
        {"https://api.test:6443", P, ".test", ""},
        {"https://api.test:6443", P, "*.test", ""},
        {"https://api.test:6443", P, "pi.test", P},
        {"https://api.test:6443", P, ".api.test", P},
        {"https://api.test:6443", P, "*.api.test", P},
        {"https://a.api.test:6443", P, "*.api.test", ""},
        {"https://api.test:6443", P, "*", ""},
        {"https://api.test:6443", P, "x,*", ""},
        {"https://api.test:6443", P, "api.test:6443", ""},
        {"https://api.test:6443", P, "api.test:443", P},
        {"https://api.test", P, "api.test:443", ""},
        {"https://api.test/k8s/clusters/c-1", P, ".test", ""},
        {"https://me:word@api.test:6443", P, "api.test:6443", ""},
        {"https://api.test:6443", P, ",: ,.,*.,/,[,]", P},
        /* addresses */
        {"https://10.0.0.4:443", P, "10.0.0.4", ""},
        {"https://10.0.0.4:443", P, "10.0.0.4:443", ""},
        {"https://10.0.0.4:443", P, "10.0.0.4:6443", P},
        {"https://10.0.0.4:443", P, "10.0.0.0/8", ""},
        {"https://11.0.0.4:443", P, "10.0.0.0/8", P},
        {"https://10.127.0.4:443", P, "10.64.0.0/9", ""},
        {"https://10.128.0.4:443", P, "10.64.0.0/9", P},
        {"https://10.0.0.4:443", P, "0.0.0.0/0", ""},
        {"https://10.0.0.4:443", P, "10.0.0.0/33", P},
        {"https://10.0.0.4:443", P, "10.0.0.0/", P},
        {"https://10.0.0.4:443", P, "10.0.0.0/8x", P},
        {"https://10.0.0.4:443", P, "0.4", P},
        {"https://api.test:443", P, "10.0.0.0/8", P},
        {"https://[fd00::4]:443", P, "fd00::4", ""},
        {"https://[fd00::4]:443", P, "[fd00::4]:443", ""},
        {"https://[fd00::4]:443", P, "fd00::/8", ""},
        {"https://[fd00::4]:443", P, "fe00::/8", P},
        {"https://[fd00::4]:443", P, "10.0.0.0/8", P},
        {"https://[fd00::4]", P, "[fd00::5]", P},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct proxy_variables variables = {.https = rows[i].https, .except = rows[i].except};
        cleanup_free char *proxy = proxy_of(rows[i].server, &variables);
        assert_non_null(proxy);
        if (strcmp(proxy, rows[i].proxy) != 0)
            fail_msg("%s, NO_PROXY \"%s\": \"%s\"", rows[i].server,
                     rows[i].except ? rows[i].except : "", proxy);
    }
}

static void test_plain_server(void **state)
{
    const struct proxy_variables variables = {
        .http = "http://plain.test", .https = P, .except = "10.0.0.0/8"};
    cleanup_free char *proxy = proxy_of("http://api.test", &variables);
    cleanup_free char *excepted = proxy_of("http://10.0.0.1", &variables);
    (void)state;
    assert_string_equal(proxy, "http://plain.test");
    assert_string_equal(excepted, "");
}

static void test_variables(void **state)
{
    static const char *const names[] = {"HTTP_PROXY",  "http_proxy", "HTTPS_PROXY",
                                        "https_proxy", "NO_PROXY",   "no_proxy"};
    struct proxy_variables variables;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
    proxy_read_variables(&variables);
    assert_null(variables.http);
    assert_null(variables.https);
    assert_null(variables.except);
    setenv("https_proxy", "lower", 1);
    setenv("NO_PROXY", "", 1);
    setenv("no_proxy", "these", 1);
    proxy_read_variables(&variables);
    assert_string_equal(variables.https, "lower");
    assert_string_equal(variables.except, "these");
    setenv("HTTPS_PROXY", "upper", 1);
    proxy_read_variables(&variables);
    assert_string_equal(variables.https, "upper");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which),
        cmocka_unit_test(test_plain_server),
        cmocka_unit_test(test_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
