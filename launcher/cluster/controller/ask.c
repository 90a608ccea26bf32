/* SPDX-License-Identifier: Apache-2.0 */
/* What a look asks for. */
#include <errno.h>

#include "launcher/cluster/controller/sight.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"

static void take(struct sight *s, const json_t *body, const struct drarun_error *err)
{
    struct sight_answer *answer = &s->answers[s->asked];
    answer->came = true;
    if (err)
        answer->err = *err;
    else
        answer->body = json_incref(unconst(body));
}

static void on_answer(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct sight *s = arg;
    s->call = NULL;
    s->listing = NULL;
    take(s, answer->body, err);
    if (s->trim && !err)
        s->trim(s->answers[s->asked].body);
}

static void on_verdict(int rc, const struct drarun_error *err, void *arg)
{
    struct sight *s = arg;
    s->reader = NULL;
    take(s, NULL, rc < 0 ? err : NULL);
}

/* False: there is an answer, or one to another question is awaited. */
static bool may_ask(struct sight *s, enum sight_question question, void (*trim)(json_t *object))
{
    if (s->answers[question].came || s->waits)
        return false;
    s->asked = question;
    s->trim = trim;
    return true;
}

/* rc: of what asks. */
static const struct sight_answer *begun(struct sight *s, enum sight_question question, int rc,
                                        const struct drarun_error *err)
{
    if (rc < 0)
        take(s, NULL, err);
    s->waits = !s->answers[question].came;
    return s->waits ? NULL : &s->answers[question];
}

static const struct sight_answer *known(const struct sight *s, enum sight_question question)
{
    return s->answers[question].came ? &s->answers[question] : NULL;
}

const struct sight_answer *sight_get(struct sight *s, enum sight_question question,
                                     const struct kube_target *target, void (*trim)(json_t *object))
{
    struct drarun_error err = {0};
    if (!may_ask(s, question, trim))
        return known(s, question);
    int rc = kube_get(s->c->cluster->client, target, on_answer, s, &s->call, &err);
    return begun(s, question, rc, &err);
}

const struct sight_answer *sight_list(struct sight *s, enum sight_question question,
                                      const struct kube_target *target,
                                      const struct kube_select *select)
{
    struct drarun_error err = {0};
    if (!may_ask(s, question, NULL))
        return known(s, question);
    int rc = kube_list(s->c->cluster->client, target, select, on_answer, s, &s->listing, &err);
    return begun(s, question, rc, &err);
}

const struct sight_answer *sight_call(struct sight *s, enum sight_question question,
                                      const struct bounded_limits *limits, bounded_fn fn, void *arg)
{
    struct drarun_error err = {0};
    if (!may_ask(s, question, NULL))
        return known(s, question);
    int rc = bounded_start(s->c->cluster->base, limits, fn, arg, on_verdict, s, &s->reader, &err);
    return begun(s, question, rc, &err);
}

void sight_drop(struct sight *s, enum sight_question question)
{
    json_decref(TAKE_PTR(s->answers[question].body));
}
