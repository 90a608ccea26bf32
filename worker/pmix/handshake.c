/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmix/handshake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* src/mca/ptl/base/base.h of OpenPMIx: pmix_ptl_hdr_t, and the kinds of peers (ptl_types.h). */
struct header {
    int32_t index;
    uint32_t tag;
    uint64_t bytes; /* that follow; all as this machine has them */
};
_Static_assert(sizeof(struct header) == HANDSHAKE_HEADER, "as libpmix sends it");

enum {
    SIMPLE_CLIENT = 0,
    TOOL_NEEDS_ID = 3,
    TOOL_GIVEN_ID = 4,
    TOOL_CLIENT = 5,
    LAUNCHER_GIVEN_ID = 7,
    LAUNCHER_CLIENT = 8,
    SINGLETON_CLIENT = 9,
};

struct cursor {
    const char *at;
    size_t left;
};

static bool skip(struct cursor *c, size_t count)
{
    if (c->left < count)
        return false;
    c->at += count;
    c->left -= count;
    return true;
}

static const char *take_string(struct cursor *c)
{
    const char *text = c->at;
    size_t length = strnlen(c->at, c->left);
    return length < c->left && skip(c, length + 1) ? text : NULL;
}

static bool take_u32(struct cursor *c, uint32_t *ret)
{
    uint32_t wire;
    if (c->left < sizeof wire)
        return false;
    memcpy(&wire, c->at, sizeof wire);
    *ret = ntohl(wire);
    return skip(c, sizeof wire);
}

size_t handshake_length(const void *header)
{
    struct header h;
    memcpy(&h, header, sizeof h);
    return h.bytes > 0 && h.bytes <= HANDSHAKE_MAX - sizeof h ? (size_t)h.bytes + sizeof h : 0;
}

static bool has_name(unsigned char kind)
{
    switch (kind) {
    case SIMPLE_CLIENT:
    case TOOL_GIVEN_ID:
    case TOOL_CLIENT:
    case LAUNCHER_GIVEN_ID:
    case LAUNCHER_CLIENT:
    case SINGLETON_CLIENT:
        return true;
    default:
        return false;
    }
}

int handshake_read(const void *data, size_t length, struct handshake *ret)
{
    struct handshake found = {0};
    uint32_t credential;
    struct cursor c = {data, length};
    if (!skip(&c, HANDSHAKE_HEADER) || !take_string(&c) /* the security module */ ||
        !take_u32(&c, &credential) || !skip(&c, credential) || c.left == 0)
        return -EPROTO;
    unsigned char kind = (unsigned char)*c.at;
    skip(&c, 1);
    found.client = kind == SIMPLE_CLIENT;
    found.tool = kind == TOOL_NEEDS_ID || kind == TOOL_GIVEN_ID;
    found.named = has_name(kind);
    if (found.named && !found.client && !skip(&c, 2 * sizeof(uint32_t))) /* user and group */
        return -EPROTO;
    const char *nspace = found.named ? take_string(&c) : "";
    if (!nspace || strlen(nspace) >= sizeof found.nspace ||
        (found.named && !take_u32(&c, &found.rank)))
        return -EPROTO;
    memcpy(found.nspace, nspace, strlen(nspace) + 1);
    *ret = found;
    return 0;
}
