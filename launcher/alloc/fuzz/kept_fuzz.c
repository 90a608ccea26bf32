/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the file of an allocation's folder. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/alloc/kept.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/kept_fuzz.XXXXXX";

static void write_file(const char *name, const void *data, size_t size)
{
    char path[sizeof folder + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_all(fd, data, size) < 0)
        abort();
}

static void remove_folder(void)
{
    static const char *const names[] = {KEPT_FILE, KEPT_KEY_FILE};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[sizeof folder + 32];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void make_folder(void)
{
    static bool made;
    if (made)
        return;
    made = true;
    if (!mkdtemp(folder))
        abort();
    atexit(remove_folder);
    write_file(KEPT_KEY_FILE, KEY, sizeof KEY - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char program[] = "true", *argv[] = {program, NULL};
    struct request_program programs[] = {{.argv = argv}};
    struct job_request request = {.programs = programs, .program_count = 1};
    struct drarun_error err = {0};
    make_folder();
    write_file(KEPT_FILE, data, size);
    int rc = kept_use(folder, &request, &err);
    if (rc < 0 && !err.text[0])
        abort();
    if (rc == 0 && (!request.pods || request.pods->workers == 0 || request.pods->grace_ms < 0))
        abort();
    kept_free(request.kept);
    return 0;
}
