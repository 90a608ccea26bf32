/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/inspect/verbs_open.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/plain.h"
#include "lib/base/unconst.h"
#include "lib/inspect/verbs_json.h"

/* Why there is no answer about a device. */
static void say_missing(const struct child_end *end, const struct drarun_error *err, char *text,
                        size_t size)
{
    if (err)
        snprintf(text, size, "opening it: %.200s", err->text);
    else if (end->known && end->status < 0)
        snprintf(text, size, "opening it ended with signal %d", -end->status);
    else
        snprintf(text, size, "opening it told nothing%s%s", end->said[0] ? ": " : "", end->said);
    plain_text(text, strlen(text)); /* of a library, and cut anywhere: JSON wants UTF-8 */
}

/* Without memory some entries keep what sysfs says. */
static void on_over(const struct child_end *end, const struct drarun_error *err, void *arg)
{
    struct verbs_open *open = arg;
    char missing[CHILD_SAID_MAX + 64];
    say_missing(end, err, missing, sizeof missing);
    verbs_take(open->verbs, end->out->data ? end->out->data : "", end->out->len, missing);
    open->child = NULL; /* it frees itself */
    open->fn(open->arg);
}

int verbs_open_start(struct event_base *base, const char *program, struct verbs_open *open)
{
    char *const argv[] = {unconst(program), unconst("--nics"), NULL};
    char *const none[] = {NULL};
    const struct child_program how = {.argv = argv, .env = none, .deadline_ms = VERBS_OPEN_MS};
    char missing[128];
    int rc = child_start(base, &how, on_over, open, &open->child);
    if (rc < 0) {
        snprintf(missing, sizeof missing, "opening it: the agent's program: %s", strerror(-rc));
        verbs_take(open->verbs, "", 0, missing);
    }
    return rc;
}
