/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/ethtool.h"

#include <errno.h>
#include <fnmatch.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"
#include "lib/base/buf.h"
#include "lib/doc/value.h"
#include "plugin/attach/netns.h"

static const struct {
    const char *name, *longer, *pattern;
} groups[] = {
    {"rx", "rx-checksumming", "rx-checksum"},
    {"tx", "tx-checksumming", "tx-checksum-*"},
    {"sg", "scatter-gather", "tx-scatter-gather*"},
    {"tso", "tcp-segmentation-offload", "tx-tcp*-segmentation"},
    {"ufo", "udp-fragmentation-offload", "tx-udp-fragmentation"},
    {"gso", "generic-segmentation-offload", "tx-generic-segmentation"},
    {"gro", "generic-receive-offload", "rx-gro"},
    {"lro", "large-receive-offload", "rx-lro"},
    {"rxvlan", "rx-vlan-offload", "rx-vlan-hw-parse"},
    {"txvlan", "tx-vlan-offload", "tx-vlan-hw-insert"},
    {"ntuple", "ntuple-filters", "rx-ntuple-filter"},
    {"rxhash", "receive-hashing", "rx-hashing"},
};

struct names {
    struct ethtool_gstrings *strings; /* NULL: the device has none */
    uint32_t count;
};

struct switches { /* of one device: features (blocks) or private flags (one word) */
    int fd;
    struct ifreq request;
    bool features;
    struct names names;
    struct ethtool_gfeatures *state; /* features */
    uint32_t flags;                  /* private flags */
};

static int call(struct switches *s, void *data)
{
    s->request.ifr_data = data;
    return ioctl(s->fd, SIOCETHTOOL, &s->request) < 0 ? -errno : 0;
}

static int read_names(struct switches *s)
{
    struct {
        struct ethtool_sset_info info;
        uint32_t count;
    } size = {.info = {.cmd = ETHTOOL_GSSET_INFO}};
    uint32_t set = s->features ? ETH_SS_FEATURES : ETH_SS_PRIV_FLAGS;
    size.info.sset_mask = 1ull << set;
    int rc = call(s, &size);
    if (rc == -EOPNOTSUPP || (rc == 0 && (size.info.sset_mask == 0 || size.count == 0)))
        return 0;
    if (rc < 0)
        return rc;
    s->names.strings = calloc(1, sizeof *s->names.strings + (size_t)size.count * ETH_GSTRING_LEN);
    if (!s->names.strings)
        return -ENOMEM;
    s->names.strings->cmd = ETHTOOL_GSTRINGS;
    s->names.strings->string_set = set;
    s->names.strings->len = size.count;
    s->names.count = size.count;
    rc = call(s, s->names.strings);
    /* a driver might fill a name whole */
    for (uint32_t i = 0; i < s->names.count; i++)
        s->names.strings->data[(i + 1) * ETH_GSTRING_LEN - 1] = '\0';
    return rc;
}

static const char *name_at(const struct switches *s, uint32_t i)
{
    return (const char *)s->names.strings->data + (size_t)i * ETH_GSTRING_LEN;
}

static uint32_t blocks_of(const struct switches *s)
{
    return (s->names.count + 31) / 32;
}

static int read_state(struct switches *s)
{
    if (s->names.count == 0)
        return 0;
    if (!s->features) {
        struct ethtool_value value = {.cmd = ETHTOOL_GPFLAGS};
        int rc = call(s, &value);
        s->flags = value.data;
        return rc;
    }
    if (!s->state)
        s->state = calloc(1, sizeof *s->state + blocks_of(s) * sizeof s->state->features[0]);
    if (!s->state)
        return -ENOMEM;
    s->state->cmd = ETHTOOL_GFEATURES;
    s->state->size = blocks_of(s);
    return call(s, s->state);
}

static void switches_done(struct switches *s)
{
    free(s->names.strings);
    free(s->state);
    if (s->fd >= 0)
        close(s->fd);
}

static int switches_open(struct switches *s, int ns, const char *device, bool features,
                         struct drarun_error *err)
{
    int back = -1, rc = netns_enter(ns, &back, err);
    if (rc < 0)
        return rc;
    s->features = features;
    s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* stays in the namespace */
    netns_leave(back);
    if (s->fd < 0)
        return error_set(err, errno, "ethtool: %s", strerror(errno));
    snprintf(s->request.ifr_name, sizeof s->request.ifr_name, "%s", device);
    rc = read_names(s);
    rc = rc < 0 ? rc : read_state(s);
    return rc < 0 ? error_set(err, -rc, "ethtool: %s", strerror(-rc)) : 0;
}

static bool is_on(const struct switches *s, uint32_t i)
{
    if (!s->features)
        return i < 32 && s->flags >> i & 1;
    return s->state->features[i / 32].active >> (i % 32) & 1;
}

/* What was asked for, which may be more than what other features allow now. */
static bool is_wanted(const struct switches *s, uint32_t i)
{
    return is_on(s, i) || (s->features && s->state->features[i / 32].requested >> (i % 32) & 1);
}

static bool can_change(const struct switches *s, uint32_t i)
{
    if (!s->features)
        return i < 32;
    const struct ethtool_get_features_block *block = &s->state->features[i / 32];
    return block->available >> (i % 32) & 1 && !(block->never_changed >> (i % 32) & 1);
}

static const char *pattern_of(const struct switches *s, const char *name)
{
    for (size_t i = 0; s->features && i < ARRAY_LEN(groups); i++)
        if (strcmp(groups[i].name, name) == 0 || strcmp(groups[i].longer, name) == 0)
            return groups[i].pattern;
    return NULL;
}

/* Which of the device's own names a switch means. A name of its own comes before a group's. */
struct meaning {
    const char *name, *pattern;
};

static struct meaning meaning_of(const struct switches *s, const char *name)
{
    for (uint32_t i = 0; i < s->names.count; i++)
        if (strcmp(name_at(s, i), name) == 0)
            return (struct meaning){.name = name};
    return (struct meaning){.name = name, .pattern = pattern_of(s, name)};
}

static bool means(const struct switches *s, const struct meaning *meaning, uint32_t i)
{
    return meaning->pattern ? fnmatch(meaning->pattern, name_at(s, i), 0) == 0
                            : strcmp(name_at(s, i), meaning->name) == 0;
}

static int unknown(const struct switches *s, const char *name, struct drarun_error *err)
{
    struct buf words = BUF_INIT;
    char near[NEAREST_WORD_MAX + 1];
    for (uint32_t i = 0; i < s->names.count; i++)
        if (!strchr(name_at(s, i), ' '))
            buf_printf(&words, "%s%s", words.len ? " " : "", name_at(s, i));
    const char *what = s->features ? "feature" : "private flag";
    bool found = words.len && !words.failed && nearest_word(name, words.data, near, sizeof near);
    int rc = found ? error_set(err, EINVAL, "the device has no %s \"%s\"; did you mean \"%s\"?",
                               what, name, near)
                   : error_set(err, EINVAL, "the device has no %s \"%s\"", what, name);
    buf_done(&words);
    return rc;
}

/* Is the switch as wanted? 1, or 0; -EINVAL when it cannot be. */
static int compare(const struct switches *s, const char *name, bool on, struct drarun_error *err)
{
    struct meaning meaning = meaning_of(s, name);
    unsigned members = 0, as_wanted = 0, changeable = 0;
    for (uint32_t i = 0; i < s->names.count; i++) {
        if (!means(s, &meaning, i))
            continue;
        bool fine = is_on(s, i) == on;
        members++;
        changeable += can_change(s, i);
        /* fixed members of a group are none of its: ethtool leaves them alone too */
        as_wanted += fine && (!meaning.pattern || can_change(s, i));
    }
    if (members == 0)
        return unknown(s, name, err);
    if (changeable == 0 && as_wanted < members && !(meaning.pattern && !on))
        return error_set(err, EINVAL, "the device keeps \"%s\" fixed at %s", name,
                         on ? "off" : "on");
    if (meaning.pattern && on)
        return as_wanted > 0;
    return as_wanted >= (meaning.pattern ? changeable : members);
}

static int write_features(struct switches *s, const json_t *wanted)
{
    const char *name = NULL;
    json_t *value = NULL;
    cleanup_free struct ethtool_sfeatures *set =
        calloc(1, sizeof *set + blocks_of(s) * sizeof set->features[0]);
    if (!set)
        return -ENOMEM;
    set->cmd = ETHTOOL_SFEATURES;
    set->size = blocks_of(s);
    value_foreach(wanted, name, value)
    {
        struct meaning meaning = meaning_of(s, name);
        for (uint32_t i = 0; i < s->names.count; i++) {
            uint32_t bit = 1u << (i % 32);
            if (!means(s, &meaning, i) || !can_change(s, i))
                continue;
            set->features[i / 32].valid |= bit;
            if (json_is_true(value))
                set->features[i / 32].requested |= bit;
            else
                set->features[i / 32].requested &= ~bit;
        }
    }
    return call(s, set);
}

static int write_flags(struct switches *s, const json_t *wanted)
{
    const char *name = NULL;
    json_t *value = NULL;
    struct ethtool_value set = {.cmd = ETHTOOL_SPFLAGS, .data = s->flags};
    value_foreach(wanted, name, value)
    {
        struct meaning meaning = meaning_of(s, name);
        for (uint32_t i = 0; i < s->names.count && i < 32; i++)
            if (means(s, &meaning, i))
                set.data = json_is_true(value) ? set.data | 1u << i : set.data & ~(1u << i);
    }
    return call(s, &set);
}

/* 1 when all are as wanted, 0 when not; -EINVAL when one cannot be. */
static int compare_all(const struct switches *s, const json_t *wanted, bool last,
                       struct drarun_error *err)
{
    const char *name = NULL;
    json_t *value = NULL;
    bool all = true;
    value_foreach(wanted, name, value)
    {
        int rc = compare(s, name, json_is_true(value), err);
        if (rc < 0)
            return rc;
        if (rc == 0 && last)
            return error_set(err, EINVAL, "the device does not turn \"%s\" %s", name,
                             json_is_true(value) ? "on" : "off");
        all = all && rc > 0;
    }
    return all;
}

static int ensure(int ns, const char *device, bool features, const json_t *wanted,
                  struct drarun_error *err)
{
    CLEANUP(switches_done) struct switches s = {.fd = -1};
    if (json_object_size(wanted) == 0)
        return 0;
    int rc = switches_open(&s, ns, device, features, err);
    rc = rc < 0 ? rc : compare_all(&s, wanted, false, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = features ? write_features(&s, wanted) : write_flags(&s, wanted);
    rc = rc < 0 ? rc : read_state(&s);
    if (rc < 0)
        return error_set(err, -rc, "ethtool: %s", strerror(-rc));
    rc = compare_all(&s, wanted, true, err);
    return rc < 0 ? rc : 0;
}

int ethtool_ensure(int ns, const char *device, const json_t *features, const json_t *private_flags,
                   struct drarun_error *err)
{
    int rc = ensure(ns, device, true, features, err);
    return rc < 0 ? rc : ensure(ns, device, false, private_flags, err);
}

static int read_some(const char *device, bool features, const json_t *wanted, json_t **ret,
                     struct drarun_error *err)
{
    CLEANUP(switches_done) struct switches s = {.fd = -1};
    CLEANUP(json_decrefp) json_t *now = json_object();
    const char *name = NULL;
    json_t *value = NULL;
    if (json_object_size(wanted) == 0)
        return 0;
    int rc = switches_open(&s, -1, device, features, err);
    if (rc < 0)
        return rc;
    value_foreach(wanted, name, value)
    {
        struct meaning meaning = meaning_of(&s, name);
        for (uint32_t i = 0; i < s.names.count; i++)
            if (means(&s, &meaning, i) && can_change(&s, i) &&
                json_object_set_new(now, name_at(&s, i), json_boolean(is_wanted(&s, i))) < 0)
                return error_set(err, ENOMEM, "ethtool: out of memory");
    }
    *ret = TAKE_PTR(now);
    return 0;
}

int ethtool_read(const char *device, const json_t *features, const json_t *private_flags,
                 json_t **ret_features, json_t **ret_private_flags, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *first = NULL, *second = NULL;
    int rc = read_some(device, true, features, &first, err);
    rc = rc < 0 ? rc : read_some(device, false, private_flags, &second, err);
    if (rc < 0)
        return rc;
    *ret_features = TAKE_PTR(first);
    *ret_private_flags = TAKE_PTR(second);
    return 0;
}
