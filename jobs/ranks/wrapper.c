/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/ranks/wrapper.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"

static const struct known {
    const char *names;
    enum wrapper_kind kind;
    size_t arguments;    /* words of its own behind its options */
    const char *letters; /* options with a value, which may be the next word */
    const char *longs;   /* the same, without their dashes */
    const char *others;  /* letters by which it starts nothing, or not the words as they are */
    bool variables;      /* "A=b" in front of the program */
} list[] = {
    {"exec", WRAPPER_NOTHING, 0, "a", "", "", false},
    {"command", WRAPPER_NOTHING, 0, "", "", "vV", false},
    {"time", WRAPPER_NOTHING, 0, "of", "format output", "V", false},
    {"tini tini-static dumb-init", WRAPPER_NOTHING, 0, "per", "rewrite", "", false},
    {"nohup setsid catchsegv", WRAPPER_NOTHING, 0, "", "", "", false},
    {"nice", WRAPPER_SCHEDULING, 0, "n", "adjustment", "", false},
    {"ionice", WRAPPER_SCHEDULING, 0, "cn", "class classdata", "pPu", false},
    {"chrt", WRAPPER_SCHEDULING, 1, "TPD", "sched-runtime sched-period sched-deadline", "pm",
     false},
    {"taskset", WRAPPER_SCHEDULING, 1, "", "", "p", false},
    {"numactl", WRAPPER_SCHEDULING, 0, "iwpPmNC",
     "interleave weighted-interleave preferred preferred-many membind cpunodebind physcpubind",
     "sHh", false},
    {"stdbuf", WRAPPER_SCHEDULING, 0, "ioe", "input output error", "", false},
    {"timeout", WRAPPER_TIME, 1, "ks", "kill-after signal", "", false},
    {"gosu su-exec", WRAPPER_USER, 1, "", "", "", false},
    {"sudo", WRAPPER_USER, 0, "ugCDhpRTUrt",
     "user group close-from chdir host prompt chroot command-timeout other-user role type", "lveKV",
     true},
    {"env", WRAPPER_ENV, 0, "uCa", "unset chdir argv0", "S", true},
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const struct known *find(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(list); i++)
        if (words_has(list[i].names, base_name(word)))
            return &list[i];
    return NULL;
}

/* Whether the option's value is the next word, as of getopt_long. */
static bool takes_next(const struct known *k, const char *option)
{
    if (option[1] == '-')
        return words_has(k->longs, option + 2);
    size_t n = 1 + strcspn(option + 1, k->letters);
    return option[n] && !option[n + 1];
}

/* Letters behind one with a value are that value. */
static bool starts_others(const struct known *k, const char *option)
{
    if (option[1] == '-')
        return strncmp(option, "--split-string", strlen("--split-string")) == 0;
    size_t n = 1 + strcspn(option + 1, k->letters);
    return 1 + strcspn(option + 1, k->others) < n;
}

bool wrapper_read(const char *const words[], size_t count, struct wrapper *ret)
{
    const struct known *k = count > 0 ? find(words[0]) : NULL;
    size_t i = 1;
    if (!k)
        return false;
    for (bool more = true; more && i < count && words[i][0] == '-'; i++) {
        if (starts_others(k, words[i]))
            return false;
        more = strcmp(words[i], "--") != 0;
        if (takes_next(k, words[i]) && i + 1 < count)
            i++;
    }
    *ret = (struct wrapper){.kind = k->kind, .options = i, .arguments = i + k->arguments};
    if (ret->arguments > count)
        ret->arguments = count;
    ret->words = ret->arguments;
    while (k->variables && ret->words < count && strchr(words[ret->words], '='))
        ret->words++;
    return true;
}

/* Where the option is -S: what follows it in the same word, which may be nothing. */
static const char *find_split(const struct known *env, const char *option)
{
    static const char name[] = "--split-string";
    if (option[1] == '-') {
        bool is_split = strncmp(option, name, sizeof name - 1) == 0;
        const char *value = option + (is_split ? sizeof name - 1 : 0);
        return !is_split || (*value && *value != '=') ? NULL : value + (*value == '=');
    }
    if (!starts_others(env, option))
        return NULL;
    return option + 1 + strcspn(option + 1, env->others) + 1;
}

const char *wrapper_env_line(char *const argv[], size_t *ret_words)
{
    const struct known *k = argv[0] ? find(argv[0]) : NULL;
    if (!k || k->kind != WRAPPER_ENV)
        return NULL;
    for (size_t i = 1; argv[i] && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++) {
        const char *line = find_split(k, argv[i]);
        if (line) {
            if (!*line && argv[i + 1])
                line = argv[++i];
            *ret_words = i + 1;
            return line;
        }
        if (takes_next(k, argv[i]) && argv[i + 1])
            i++;
    }
    return NULL;
}

size_t wrapper_skip(char *const argv[])
{
    size_t count = 0, at = 0;
    struct wrapper wrapper;
    while (argv[count])
        count++;
    while (wrapper_read((const char *const *)argv + at, count - at, &wrapper))
        at += wrapper.words;
    return at;
}
