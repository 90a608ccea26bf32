/* SPDX-License-Identifier: Apache-2.0 */
/* A pattern of anyone's over a text of anyone's: the input is the pattern; behind a NUL byte the
 * text may follow. No crash, and an end: libFuzzer's -timeout, and the test's own. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cel/arena.h"
#include "lib/cel/regex.h"

#define MEMORY_MAX ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *pattern = (const char *)data, *nul = size ? memchr(pattern, '\0', size) : NULL;
    size_t len = nul ? (size_t)(nul - pattern) : size;
    const char *text = nul ? nul + 1 : "gpu-a3-highgpu-8g";
    size_t text_len = nul ? size - len - 1 : strlen(text);
    const struct cel_regex *regex = NULL;
    struct drarun_error err = {0};
    struct cel_arena arena;
    cel_arena_init(&arena, NULL, 0, MEMORY_MAX);
    if (cel_regex_compile(&arena, pattern, len, &regex, &err) == 0) {
        int first = cel_regex_search(&arena, regex, text, text_len);
        if (first != cel_regex_search(&arena, regex, text, text_len) && !arena.failed)
            abort();
    } else if (!err.text[0]) {
        abort();
    }
    cel_arena_done(&arena);
    return 0;
}
