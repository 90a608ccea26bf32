/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cli/paint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

#define RESET "\033[0m"

enum colour { GREEN, YELLOW, RED, GREY };

static const char *const escapes[] = {
    [GREEN] = "\033[32m", [YELLOW] = "\033[33m", [RED] = "\033[31m", [GREY] = "\033[90m"};

static const struct {
    const char *word;
    enum colour colour;
} words[] = {
    {"ok", GREEN},          {"passed", GREEN},     {"running", GREEN},  {"succeeded", GREEN},
    {"warning", YELLOW},    {"suspect", YELLOW},   {"pending", YELLOW}, {"waiting", YELLOW},
    {"allocating", YELLOW}, {"cancelled", YELLOW}, {"bad", RED},        {"error", RED},
    {"failed", RED},        {"unknown", GREY},
};

bool paint_wanted(int fd)
{
    const char *term = getenv("TERM"), *refused = getenv("NO_COLOR");
    return !(refused && refused[0]) && term && term[0] && strcmp(term, "dumb") != 0 && isatty(fd);
}

static bool begins_here(const char *text, size_t at)
{
    return at == 0 || text[at - 1] == '\n' ||
           (at > 1 && text[at - 1] == ' ' && (text[at - 2] == ' ' || text[at - 2] == ':'));
}

static bool ends_here(const char *text, size_t at, size_t length)
{
    return at == length || text[at] == '\n' || text[at] == ',' || text[at] == ':' ||
           (at + 1 < length && text[at] == ' ' && (text[at + 1] == ' ' || text[at + 1] == '(')) ||
           (at + 4 < length && strncmp(text + at, " for ", 5) == 0); /* running for 3 s */
}

/* The escape of the word that is at `at`, and its length; NULL: none of ours. */
static const char *escape_at(const char *text, size_t at, size_t length, size_t *ret_word)
{
    for (size_t i = 0; begins_here(text, at) && i < ARRAY_LEN(words); i++) {
        size_t n = strlen(words[i].word);
        if (n <= length - at && memcmp(text + at, words[i].word, n) == 0 &&
            ends_here(text, at + n, length)) {
            *ret_word = n;
            return escapes[words[i].colour];
        }
    }
    return NULL;
}

void paint_add(const char *text, size_t length, struct buf *out)
{
    size_t done = 0;
    for (size_t at = 0; at < length;) {
        size_t word = 0;
        const char *escape = escape_at(text, at, length, &word);
        if (!escape) {
            at++;
            continue;
        }
        buf_add(out, text + done, at - done);
        buf_add_str(out, escape);
        buf_add(out, text + at, word);
        buf_add_str(out, RESET);
        done = at += word;
    }
    buf_add(out, text + done, length - done);
}
