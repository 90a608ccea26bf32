/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/inventory/device_role.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "lib/base/cleanup.h"

enum match { WHOLE = 1, BEGINS, HAS };

struct word {
    const char *text;
    enum match match;
    enum device_kind kind;
    const char *what; /* unsupported: how people call it */
};

/* Of several in one name the first of this list decides: "nic-of-gpu-0" is rare, "gpu-dranet" is a
 * claim of GPUs. A number behind a word does not count: "nic0". */
static const struct word words[] = {
    {"gpu", HAS, DEVICE_GPU, NULL},
    {"mig", WHOLE, DEVICE_GPU, NULL},
    {"dranet", HAS, DEVICE_NIC, NULL},
    {"rdma", HAS, DEVICE_NIC, NULL},
    {"sriov", HAS, DEVICE_NIC, NULL},
    {"roce", BEGINS, DEVICE_NIC, NULL},
    {"infiniband", HAS, DEVICE_NIC, NULL},
    {"ethernet", HAS, DEVICE_NIC, NULL},
    {"network", HAS, DEVICE_NIC, NULL},
    {"netdev", BEGINS, DEVICE_NIC, NULL},
    {"macvlan", WHOLE, DEVICE_NIC, NULL},
    {"ipvlan", WHOLE, DEVICE_NIC, NULL},
    {"mlx", BEGINS, DEVICE_NIC, NULL},
    {"nic", BEGINS, DEVICE_NIC, NULL},
    {"net", WHOLE, DEVICE_NIC, NULL},
    {"cni", WHOLE, DEVICE_NIC, NULL},
    {"hca", BEGINS, DEVICE_NIC, NULL},
    {"vf", WHOLE, DEVICE_NIC, NULL},
    {"vfs", WHOLE, DEVICE_NIC, NULL},
    {"ib", WHOLE, DEVICE_NIC, NULL},
    {"efa", WHOLE, DEVICE_NIC, NULL},
    {"tpu", BEGINS, DEVICE_OTHER, "TPUs"},
    {"neuron", BEGINS, DEVICE_OTHER, "Neuron devices"},
    {"gaudi", BEGINS, DEVICE_OTHER, "Gaudi accelerators"},
    {"hpu", BEGINS, DEVICE_OTHER, "Gaudi accelerators"},
    {"npu", BEGINS, DEVICE_OTHER, "NPUs"},
    {"fpga", BEGINS, DEVICE_OTHER, "FPGAs"},
    {"qat", WHOLE, DEVICE_OTHER, "QuickAssist devices"},
    {"cpu", BEGINS, DEVICE_OTHER, "CPUs"},
    {"memory", WHOLE, DEVICE_OTHER, "memory"},
};

static bool has(const char *token, size_t length, const char *text, size_t size)
{
    for (size_t i = 0; i + size <= length; i++)
        if (strncasecmp(token + i, text, size) == 0)
            return true;
    return false;
}

static bool matches(const struct word *word, const char *token, size_t length)
{
    size_t size = strlen(word->text);
    if (word->match == HAS)
        return has(token, length, word->text, size);
    if (length < size || strncasecmp(token, word->text, size) != 0)
        return false;
    size_t rest = size;
    while (rest < length && isdigit((unsigned char)token[rest]))
        rest++;
    return word->match == BEGINS || rest == length;
}

static size_t token_length(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]))
        length++;
    return length;
}

static bool names(const struct word *word, const char *name)
{
    for (const char *p = name; *p;) {
        size_t length = token_length(p);
        if (length > 0 && matches(word, p, length))
            return true;
        p += length + (p[length] != '\0');
    }
    return false;
}

static const struct word *find(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(words); i++)
        if (names(&words[i], name))
            return &words[i];
    return NULL;
}

enum device_kind device_role(const char *name)
{
    if (name && strncmp(name, "compute-domain", strlen("compute-domain")) == 0)
        return DEVICE_CHANNEL;
    const struct word *word = find(name);
    return word ? word->kind : DEVICE_OTHER;
}

const char *device_role_unsupported(const char *name)
{
    const struct word *word = find(name);
    return word ? word->what : NULL;
}

const char *device_vendor(const char *driver)
{
    static const struct {
        struct word word;
        const char *vendor;
    } vendors[] = {
        {{"nvidia", HAS, 0, NULL}, "NVIDIA"},
        {{"drarun", HAS, 0, NULL}, "NVIDIA"},
        {{"amd", BEGINS, 0, NULL}, "AMD"},
        {{"intel", WHOLE, 0, NULL}, "Intel"},
    };
    for (size_t i = 0; driver && i < ARRAY_LEN(vendors); i++)
        if (names(&vendors[i].word, driver))
            return vendors[i].vendor;
    return NULL;
}
