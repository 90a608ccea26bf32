/* SPDX-License-Identifier: Apache-2.0 */
/* Which known word was meant: for "did you mean" in messages. Pure. */
#ifndef DRARUN_BASE_NEAREST_H
#define DRARUN_BASE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

#define NEAREST_WORD_MAX 64 /* longer words are never near */

/* The next word of a list separated by spaces; *at moves on. NULL at the end. */
const char *words_next(const char **at, size_t *ret_length);

/* Where in the list of words separated by spaces text stands, from 0; -1 when it does not. */
int words_index(const char *words, const char *text, size_t length);
bool words_has(const char *words, const char *text);

/* The one of the words (separated by spaces) that is nearest to text, or false when none is near.
 */
bool nearest_word(const char *text, const char *words, char *ret_word, size_t size);

/* The same of those that are at most so many edits away; *ret_edits is how many. Of several that
 * are equally near it is the first. */
bool nearest_within(const char *text, const char *words, unsigned int edits, char *ret_word,
                    size_t size, unsigned int *ret_edits);

#endif
