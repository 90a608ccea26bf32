/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/refusal.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define ALLOWED 0 /* in `kinds`; else when the first refusal came, on the caller's clock */

struct refusals {
    json_t *kinds;   /* by verb and kind */
    int64_t lost_ms; /* when a connection failed last; 0: never */
};

int refusals_new(struct refusals **ret_refusals, struct drarun_error *err)
{
    CLEANUP(refusals_freep) struct refusals *r = calloc(1, sizeof *r);
    if (!r || !(r->kinds = json_object()))
        return error_set(err, ENOMEM, "out of memory");
    *ret_refusals = TAKE_PTR(r);
    return 0;
}

void refusals_free(struct refusals *refusals)
{
    if (!refusals)
        return;
    json_decref(refusals->kinds);
    free(refusals);
}

/* The segment after this one; NULL: it is the last. */
static const char *next_segment(const char *segment)
{
    const char *slash = strchr(segment, '/');
    return slash ? slash + 1 : NULL;
}

/* The name of the object in /api/V/[namespaces/NS/]KIND/NAME or /apis/GROUP/V/...; NULL: none. */
static const char *object_name(const char *path)
{
    unsigned skip = strncmp(path, "/apis/", 6) == 0 ? 3 : strncmp(path, "/api/", 5) == 0 ? 2 : 0;
    const char *kind = skip ? path + 1 : NULL;
    for (unsigned i = 0; kind && i < skip; i++)
        kind = next_segment(kind);
    const char *name = kind ? next_segment(kind) : NULL;
    const char *inside = name ? next_segment(name) : NULL;
    /* a namespace's own subresources are /namespaces/NS/status and /finalize, which we do not use
     */
    if (inside && strncmp(kind, "namespaces/", 11) == 0)
        name = next_segment(inside);
    return name;
}

/* Roles speak of kinds and subresources, hardly ever of one object: its name becomes a star. */
static char *key_of(const char *verb, const char *path)
{
    struct buf key = BUF_INIT;
    cleanup_free char *plain = strndup(path, strcspn(path, "?"));
    if (!plain)
        return NULL;
    const char *name = object_name(plain), *rest = name ? strchr(name, '/') : NULL;
    buf_printf(&key, "%s %.*s%s%s", verb, (int)(name ? (size_t)(name - plain) : strlen(plain)),
               plain, name ? "*" : "", rest ? rest : "");
    char *text = key.failed ? NULL : buf_take(&key);
    buf_done(&key);
    return text;
}

void refusals_note_loss(struct refusals *refusals, int64_t now_ms)
{
    refusals->lost_ms = now_ms;
}

void refusals_note_allowed(struct refusals *refusals, const char *verb, const char *path)
{
    cleanup_free char *key = key_of(verb, path);
    if (key) /* what is not remembered is refused sooner */
        json_object_set_new(refusals->kinds, key, json_integer(ALLOWED));
}

bool refusal_passes(struct refusals *refusals, const struct refusal *refusal, int64_t now_ms)
{
    cleanup_free char *key = key_of(refusal->verb, refusal->path);
    const json_t *known = key ? json_object_get(refusals->kinds, key) : NULL;
    int64_t first_ms = json_integer_value(known), lost_ms = refusals->lost_ms;
    bool allowed = known && first_ms == ALLOWED;
    bool lost = lost_ms && now_ms - lost_ms < REFUSAL_LOST_MS && lost_ms > first_ms;
    if (!key)
        return false;
    if (!lost && !(allowed && refusal->by_role))
        return known && !allowed && now_ms - first_ms < REFUSAL_PASSES_MS;
    json_object_set_new(refusals->kinds, key, json_integer(now_ms));
    return true;
}
