/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job_names.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/strlist.h"

struct job_names {
    struct strlist services, ports; /* side by side */
};

struct job_names *job_names_new(void)
{
    return calloc(1, sizeof(struct job_names));
}

void job_names_free(struct job_names *names)
{
    if (!names)
        return;
    strlist_done(&names->services);
    strlist_done(&names->ports);
    free(names);
}

static size_t find(const struct job_names *names, const char *service)
{
    size_t i = 0;
    while (i < names->services.count && strcmp(names->services.items[i], service) != 0)
        i++;
    return i;
}

static void drop(struct strlist *list, size_t at)
{
    free(list->items[at]);
    memmove(&list->items[at], &list->items[at + 1], (list->count - at) * sizeof *list->items);
    list->count--;
}

static bool publish(struct job_names *names, const char *service, const char *port)
{
    if (find(names, service) < names->services.count || names->services.count >= JOB_NAMES_MAX ||
        names->services.failed || names->ports.failed)
        return false;
    strlist_add(&names->services, service);
    strlist_add(&names->ports, port);
    return !names->services.failed && !names->ports.failed;
}

void job_names_ask(struct job_names *names, const Drarun__Wire__NameRequest *request,
                   Drarun__Wire__NameReply *ret_reply)
{
    size_t at = find(names, request->service);
    bool there = at < names->services.count;
    ret_reply->id = request->id;
    switch (request->action) {
    case DRARUN__WIRE__NAME_ACTION__NAME_PUBLISH:
        ret_reply->good = publish(names, request->service, request->port);
        break;
    case DRARUN__WIRE__NAME_ACTION__NAME_LOOKUP:
        ret_reply->good = there;
        if (there)
            ret_reply->port = names->ports.items[at];
        break;
    case DRARUN__WIRE__NAME_ACTION__NAME_UNPUBLISH:
        ret_reply->good = there;
        if (there) {
            drop(&names->services, at);
            drop(&names->ports, at);
        }
        break;
    default:
        ret_reply->good = false;
    }
}
