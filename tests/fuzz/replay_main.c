/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for libFuzzer's main in ordinary builds: gives every file of the directories in argv to
 * the fuzz target, whole, cut short at bytes all over it and with these changed. No input may take
 * more than INPUT_MAX_NS of the thread's processor time, whatever else the machine does. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

#define SAMPLE_MAX (1024u * 1024)
/* A longer sample is not cut at every byte, so that the test stays short. */
#define CUTS_MAX 500u

#if defined(__SANITIZE_THREAD__)
#define SLOWER 16
#elif defined(__SANITIZE_ADDRESS__)
#define SLOWER 4
#else
#define SLOWER 1
#endif
#define INPUT_MAX_NS (SLOWER * 1000000000ll)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The longest that an input has taken. */
static int64_t slowest_ns;

static int64_t used_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* A copy of its own each time, so that a sanitizer sees any read behind the end. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        return;
    memcpy(copy, data, size);
    int64_t before_ns = used_ns();
    LLVMFuzzerTestOneInput(copy, size);
    int64_t took_ns = used_ns() - before_ns;
    slowest_ns = took_ns > slowest_ns ? took_ns : slowest_ns;
    free(copy);
}

static void run_variants(uint8_t *data, size_t size)
{
    run(data, size);
    for (size_t i = 0; i < size; i += size / CUTS_MAX + 1) {
        run(data, i);
        data[i] ^= 0x81; /* both its sign and its parity */
        run(data, size);
        data[i] ^= 0x81;
    }
}

static int replay_file(int dir, const char *name)
{
    struct buf sample = BUF_INIT;
    struct drarun_error err = {0};
    int rc = file_read(dir, name, SAMPLE_MAX, &sample, &err);
    slowest_ns = 0;
    if (rc == 0)
        run_variants((uint8_t *)sample.data, sample.len);
    else
        fprintf(stderr, "%s\n", err.text);
    buf_done(&sample);
    if (slowest_ns <= INPUT_MAX_NS)
        return rc;
    fprintf(stderr, "%s: an input took %.1f s of processor time, expected at most %.0f s\n", name,
            (double)slowest_ns / 1e9, (double)INPUT_MAX_NS / 1e9);
    return -ETIME;
}

/* How many samples the directory holds, or -errno. */
static int replay_directory(const char *path)
{
    int count = 0;
    cleanup_dir DIR *dir = opendir(path);
    if (!dir) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -errno;
    }
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (entry->d_name[0] == '.')
            continue;
        int rc = replay_file(dirfd(dir), entry->d_name);
        if (rc < 0)
            return rc;
        count++;
    }
    return count;
}

int main(int argc, char *argv[])
{
    for (int i = 1; i < argc; i++) {
        int count = replay_directory(argv[i]);
        if (count < 0)
            return 1;
        printf("%s: %d samples\n", argv[i], count);
        if (count == 0) /* a wrong path would otherwise pass */
            return 1;
    }
    return argc > 1 ? 0 : 1;
}
