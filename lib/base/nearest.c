/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/nearest.h"

#include <string.h>

const char *words_next(const char **at, size_t *ret_length)
{
    const char *p = *at;
    if (!p)
        return NULL;
    p += strspn(p, " ");
    *ret_length = strcspn(p, " ");
    *at = p + *ret_length;
    return *ret_length ? p : NULL;
}

int words_index(const char *words, const char *text, size_t length)
{
    size_t n = 0;
    int index = 0;
    for (const char *w; (w = words_next(&words, &n)); index++)
        if (n == length && memcmp(w, text, n) == 0)
            return index;
    return -1;
}

bool words_has(const char *words, const char *text)
{
    return words_index(words, text, strlen(text)) >= 0;
}

/* Edits (Levenshtein, with swaps of neighbours) between two words shorter than NEAREST_WORD_MAX. */
static unsigned int distance(const char *a, size_t na, const char *b, size_t nb)
{
    unsigned int row[3][NEAREST_WORD_MAX + 1];
    for (size_t j = 0; j <= nb; j++)
        row[0][j] = (unsigned int)j;
    for (size_t i = 1; i <= na; i++) {
        unsigned int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = (unsigned int)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[na % 3][nb];
}

bool nearest_within(const char *text, const char *words, unsigned int edits, char *ret_word,
                    size_t size, unsigned int *ret_edits)
{
    size_t length = strlen(text), n = 0;
    unsigned int best = edits + 1;
    if (length >= NEAREST_WORD_MAX)
        return false;
    for (const char *w; (w = words_next(&words, &n));) {
        unsigned int d = n < NEAREST_WORD_MAX ? distance(text, length, w, n) : best;
        if (d >= best || n >= size)
            continue;
        best = d;
        memcpy(ret_word, w, n);
        ret_word[n] = '\0';
    }
    *ret_edits = best;
    return best <= edits;
}

bool nearest_word(const char *text, const char *words, char *ret_word, size_t size)
{
    unsigned int edits = 0;
    return nearest_within(text, words, (unsigned int)strlen(text) / 3, ret_word, size, &edits);
}
