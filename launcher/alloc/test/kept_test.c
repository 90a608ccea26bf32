/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/alloc/kept.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

/* Jobs in the host's network share ports with others on the node: MASTER_PORT is of their own. */
static void pods_in_the_hosts_network(void **state)
{
    static const struct {
        const char *pod;
        bool on_host;
    } rows[] = {{"", false}, {"\"hostNetwork\":false,", false}, {"\"hostNetwork\":true,", true}};
    char folder[] = "/tmp/kept_test.XXXXXX", path[64], program[] = "true";
    char *argv[] = {program, NULL};
    (void)state;
    assert_non_null(mkdtemp(folder));
    write_file(folder, KEPT_KEY_FILE, KEY);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request_program programs[] = {{.argv = argv}};
        struct job_request request = {.programs = programs, .program_count = 1};
        struct drarun_error err = {0};
        char text[1024];
        snprintf(text, sizeof text,
                 "{\"job\":\"s\",\"uid\":\"u\",\"attempt\":1,\"document\":{\"apiVersion\":"
                 "\"drarun.dev/v1alpha1\",\"kind\":\"DraJob\",\"metadata\":{\"name\":\"s\"},"
                 "\"spec\":{\"template\":{\"spec\":{%s\"containers\":[{\"image\":\"i\","
                 "\"command\":[\"true\"]}]}}}},\"workers\":[{\"pod\":\"s-w-0\",\"node\":\"n0\","
                 "\"address\":\"10.0.0.1:7173\",\"dial\":\"10.0.0.1:7173\",\"claims\":[]}]}",
                 rows[i].pod);
        write_file(folder, KEPT_FILE, text);
        int rc = kept_use(folder, &request, &err);
        assert_string_equal(err.text, "");
        assert_int_equal(rc, 0);
        assert_int_equal(request.pods->on_host, rows[i].on_host);
        kept_free(request.kept);
    }
    snprintf(path, sizeof path, "%s/" KEPT_FILE, folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/" KEPT_KEY_FILE, folder);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pods_in_the_hosts_network)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
