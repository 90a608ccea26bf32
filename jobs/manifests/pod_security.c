/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/pod_security.h"

#include <stdio.h>
#include <string.h>

#include "jobs/spec/spec.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/strlist.h"
#include "lib/doc/value.h"

#define OTHERS_MAX 160 /* bytes of what is shown of reasons that are not ours to explain */

struct part { /* of the message */
    const char *text;
    size_t length;
};

/* What a container has to say at the level restricted. */
enum demand { ESCALATION, CAPABILITIES, NON_ROOT, SECCOMP, DEMANDS };

struct refusal {
    struct part pod, level;    /* "restricted:latest" */
    bool lacks[DEMANDS];       /* what containers do not say */
    bool lacks_some;           /* of these */
    struct strlist containers; /* which lack it */
    bool ipc_lock;
    bool beyond_baseline; /* the level baseline would not take the pod either */
    struct buf others;    /* further reasons, in the server's words */
};

/* ---- reading ---- */

static bool has(struct part part, const char *words)
{
    return memmem(part.text, part.length, words, strlen(words)) != NULL;
}

static bool begins(struct part part, const char *words)
{
    size_t length = strlen(words);
    return part.length >= length && memcmp(part.text, words, length) == 0;
}

/* What stands between the quotes behind words. */
static bool quoted(const char *text, const char *words, struct part *ret_part)
{
    const char *at = strstr(text, words);
    const char *begin = at ? at + strlen(words) : NULL, *end = begin ? strchr(begin, '"') : NULL;
    if (end)
        *ret_part = (struct part){begin, (size_t)(end - begin)};
    return end;
}

/* `reason (detail), reason (detail)`: the next one. */
static struct part next_reason(const char **at)
{
    const char *begin = *at, *p = begin;
    for (int depth = 0; *p && (depth > 0 || strncmp(p, ", ", 2) != 0); p++)
        depth += *p == '(' ? 1 : *p == ')' && depth > 0 ? -1 : 0;
    *at = *p ? p + 2 : p;
    return (struct part){begin, (size_t)(p - begin)};
}

static const struct {
    const char *reason, *wants, *yaml;
} demands[DEMANDS] = {
    [ESCALATION] = {"allowPrivilegeEscalation != false", " must set ",
                    "allowPrivilegeEscalation: false"},
    [CAPABILITIES] = {"unrestricted capabilities", "capabilities.drop=[\"ALL\"]",
                      "capabilities: {drop: [ALL]}"},
    [NON_ROOT] = {"runAsNonRoot != true", " must set ", "runAsNonRoot: true"},
    [SECCOMP] = {"seccompProfile", " must set ", "seccompProfile: {type: RuntimeDefault}"},
};
static const char adds_ipc_lock[] = " must not include \"IPC_LOCK\" in ";

/* `.. containers "a", "b" must set ..` */
static void note_containers(struct refusal *refusal, struct part reason)
{
    const char *at = memmem(reason.text, reason.length, "container", strlen("container"));
    const char *end = memmem(reason.text, reason.length, " must set ", strlen(" must set "));
    while (at && end && (at = memchr(at, '"', (size_t)(end - at)))) {
        const char *close = memchr(at + 1, '"', (size_t)(end - at - 1));
        char name[64];
        if (!close)
            return;
        snprintf(name, sizeof name, "%.*s", (int)(close - at - 1), at + 1);
        if (!strlist_has(&refusal->containers, name))
            strlist_add(&refusal->containers, name);
        at = close + 1;
    }
}

static bool is_beyond_baseline(struct part reason)
{
    return !begins(reason, "runAsUser=0") &&
           (!begins(reason, "restricted volume types") || has(reason, "\"hostPath\""));
}

static void note_reason(struct refusal *refusal, struct part reason)
{
    bool known = false;
    for (size_t d = 0; d < DEMANDS; d++) {
        if (!begins(reason, demands[d].reason) || !has(reason, demands[d].wants))
            continue;
        refusal->lacks[d] = refusal->lacks_some = true;
        note_containers(refusal, reason);
        known = !has(reason, " must not ");
    }
    if (has(reason, adds_ipc_lock)) {
        refusal->ipc_lock = true;
        refusal->beyond_baseline = true;
    } else if (!known) {
        refusal->beyond_baseline |= is_beyond_baseline(reason);
        buf_printf(&refusal->others, "%s%.*s", refusal->others.len ? ", " : "", (int)reason.length,
                   reason.text);
    }
}

/* ---- words ---- */

static void add_demands(const struct refusal *refusal, struct buf *out)
{
    const struct strlist *names = &refusal->containers;
    bool ours = names->count == 1 && strcmp(names->items[0], SPEC_CONTAINER) == 0;
    const char *separator = "";
    if (ours)
        buf_add_str(out, "set spec.template.spec.containers[0].securityContext: {");
    for (size_t i = 0; !ours && i < names->count; i++)
        buf_printf(out, "%s\"%s\"",
                   i                  ? ", "
                   : names->count > 1 ? "give the containers "
                                      : "give container ",
                   names->items[i]);
    if (!ours)
        buf_add_str(out, " of spec.template the securityContext {");
    for (size_t d = 0; d < DEMANDS; d++) {
        if (!refusal->lacks[d])
            continue;
        buf_printf(out, "%s%s", separator, demands[d].yaml);
        separator = ", ";
    }
    buf_add_str(out, "}");
    if (refusal->lacks[NON_ROOT] && !refusal->ipc_lock)
        buf_add_str(out, ", and runAsUser where its image has root's");
}

static void add_others(const struct refusal *refusal, struct buf *out)
{
    const struct buf *others = &refusal->others;
    bool long_one = others->len > OTHERS_MAX;
    buf_printf(out, "%.*s%s", long_one ? OTHERS_MAX : (int)others->len,
               others->data ? others->data : "", long_one ? "..." : "");
}

static void add_label(const struct refusal *refusal, const char *namespace, struct buf *out)
{
    buf_printf(out, "kubectl label --overwrite namespace %s pod-security.kubernetes.io/enforce=%s",
               namespace, refusal->beyond_baseline ? "privileged" : "baseline");
}

static void add_words(const struct refusal *refusal, const char *namespace, struct buf *out)
{
    bool others = refusal->others.len > 0;
    buf_printf(out, "namespace %s enforces Pod Security \"%.*s\", which forbids pod \"%.*s\": ",
               namespace, (int)refusal->level.length, refusal->level.text, (int)refusal->pod.length,
               refusal->pod.text);
    add_others(refusal, out);
    if (refusal->ipc_lock)
        buf_printf(out, "%sIPC_LOCK in capabilities.add, which RDMA needs: ", others ? ", " : "");
    else if (others)
        buf_add_str(out, ": take it out of the job, or ");
    if (refusal->ipc_lock || others)
        add_label(refusal, namespace, out);
    if (others)
        return;
    if (refusal->ipc_lock)
        buf_add_str(out, "; or, where the container runtime has no memlock limit, ");
    if (refusal->ipc_lock && !refusal->lacks_some)
        buf_add_str(out, "capabilities: {drop: [IPC_LOCK]} of that container keeps drarun from "
                         "adding it");
    else
        add_demands(refusal, out);
    if (!refusal->ipc_lock) {
        buf_add_str(out, "; or ");
        add_label(refusal, namespace, out);
    }
}

bool pod_security_words(const char *message, const char *namespace, struct buf *out)
{
    struct refusal refusal = {.containers = STRLIST_INIT, .others = BUF_INIT};
    const char *at = strstr(message, "violates PodSecurity \"");
    if (!at || !quoted(message, "pods \"", &refusal.pod) ||
        !quoted(at, "PodSecurity \"", &refusal.level))
        return false;
    at = refusal.level.text + refusal.level.length + 1;
    at += strncmp(at, ": ", 2) == 0 ? 2 : 0;
    if (!*at)
        return false;
    while (*at)
        note_reason(&refusal, next_reason(&at));
    add_words(&refusal, namespace, out);
    out->failed |= refusal.containers.failed || refusal.others.failed;
    strlist_done(&refusal.containers);
    buf_done(&refusal.others);
    return true;
}

bool pod_security_explain(const json_t *status, const char *namespace, struct drarun_error *err)
{
    struct buf words = BUF_INIT;
    bool is = pod_security_words(value_text_or(status, "message", ""), namespace, &words) &&
              !words.failed;
    if (is)
        error_kind(err, err->kind, err->code, "%s", words.data);
    buf_done(&words);
    return is;
}
