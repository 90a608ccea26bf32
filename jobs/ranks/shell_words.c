/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/ranks/shell_words.h"

#include <string.h>

#include "lib/base/nearest.h"

#define NAMES "sh bash dash ash ksh zsh"

/* How many of the next words belong to options that stand together: "-euo pipefail" has one. */
static size_t count_values(const char *option)
{
    size_t values = 0;
    if (strncmp(option, "--", 2) == 0)
        return words_has("--rcfile --init-file", option);
    for (; *option; option++)
        values += *option == 'o' || *option == 'O';
    return values;
}

bool shell_words_read(const char *const words[], size_t count, struct shell_words *ret)
{
    const char *slash = count > 0 ? strrchr(words[0], '/') : NULL;
    bool more = true;
    if (count == 0 || !words_has(NAMES, slash ? slash + 1 : words[0]))
        return false;
    *ret = (struct shell_words){0};
    size_t i = 1;
    for (; more && i < count && (words[i][0] == '-' || words[i][0] == '+'); i++) {
        const char *option = words[i];
        bool are_letters = option[0] == '-' && option[1] != '-';
        ret->has_script |= are_letters && strchr(option, 'c');
        ret->is_login |= are_letters ? strchr(option, 'l') != NULL : strcmp(option, "--login") == 0;
        more = strcmp(option, "--") != 0 && strcmp(option, "-") != 0;
        i += count_values(option);
    }
    ret->options = i < count ? i : count;
    ret->has_script &= i < count;
    return true;
}
