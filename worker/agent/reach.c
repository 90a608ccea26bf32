/* SPDX-License-Identifier: Apache-2.0 */
/* Passes lines between the launcher and `drarun-worker --reach`: what they mean is theirs. */
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/plain.h"
#include "lib/base/unconst.h"
#include "worker/agent/private.h"

/* The launcher's own deadline ends it long before. */
#define PROCESS_MS 3600000

static void send_over(struct agent *agent, const char *why)
{
    Drarun__Wire__Reach message = DRARUN__WIRE__REACH__INIT;
    message.over = true;
    message.why = unconst(why);
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(REACH, reach, &message);
    agent_send(agent, &envelope);
}

static void on_line(void *arg, const char *text, size_t length)
{
    Drarun__Wire__Reach message = DRARUN__WIRE__REACH__INIT;
    cleanup_free char *line = strndup(text, length);
    if (!line) { /* it may be what the launcher waits for */
        send_over(arg, "the NICs' process: out of memory for a line of it");
        return;
    }
    plain_text(line, strlen(line)); /* what a library says is in it */
    message.line = line;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(REACH, reach, &message);
    agent_send(arg, &envelope);
}

static void on_over(const struct child_end *end, const struct drarun_error *err, void *arg)
{
    struct agent *agent = arg;
    char why[CHILD_SAID_MAX + 64];
    agent->reach.child = NULL; /* it frees itself */
    if (err)
        snprintf(why, sizeof why, "the NICs' process: %.200s", err->text);
    else if (end->known && end->status < 0)
        snprintf(why, sizeof why, "the NICs' process ended with signal %d", -end->status);
    else
        snprintf(why, sizeof why, "the NICs' process ended%s%s", end->said[0] ? ": " : "",
                 end->said);
    plain_text(why, strlen(why));
    send_over(agent, why);
}

static int begin(struct agent *agent)
{
    char *const argv[] = {unconst("/proc/self/exe"), unconst("--reach"), NULL};
    char *const none[] = {NULL};
    const struct child_program program = {
        .argv = argv, .env = none, .deadline_ms = PROCESS_MS, .line = on_line};
    agent->reach.begun = true;
    return child_start(agent->base, &program, on_over, agent, &agent->reach.child);
}

void agent_reach_take(struct agent *agent, const Drarun__Wire__Reach *message)
{
    char why[128];
    if (agent->state != AGENT_IDLE)
        return; /* late, and of no use any more */
    int rc = agent->reach.begun ? 0 : begin(agent);
    if (rc == 0 && agent->reach.child)
        rc = child_write(agent->reach.child, message->line, strlen(message->line));
    if (rc == 0 && agent->reach.child)
        rc = child_write(agent->reach.child, "\n", 1);
    if (rc == 0)
        return;
    child_free(TAKE_PTR(agent->reach.child));
    snprintf(why, sizeof why, "the NICs' process: %s", strerror(-rc));
    send_over(agent, why);
}

void agent_reach_drop(struct agent *agent)
{
    child_free(TAKE_PTR(agent->reach.child));
    agent->reach.begun = false;
}
