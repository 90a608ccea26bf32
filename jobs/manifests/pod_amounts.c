/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/pod_amounts.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/dra/quantity_read.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

#define HUGE_PAGES "hugepages-"

int pod_amount(const json_t *list, const char *name, double *ret_amount, struct drarun_error *err)
{
    const json_t *value = json_object_get(list, name);
    struct cel_quantity quantity;
    *ret_amount = 0;
    if (!value)
        return 0;
    int rc = quantity_read(value, name, &quantity, err);
    if (rc == 0)
        *ret_amount = cel_quantity_real(&quantity);
    return rc;
}

/* A limit is a request, too, where none is given. */
static int of_container(const json_t *container, bool limits_alone, json_t *ret_amounts,
                        struct drarun_error *err)
{
    static const char *const lists[] = {"limits", "requests"}; /* the later wins */
    const json_t *resources = json_object_get(container, "resources");
    for (size_t l = 0; l < (limits_alone ? 1 : ARRAY_LEN(lists)); l++) {
        const json_t *list = json_object_get(resources, lists[l]);
        const char *name;
        json_t *value;
        value_foreach(list, name, value)
        {
            double much;
            int rc = pod_amount(list, name, &much, err);
            if (rc < 0)
                return rc;
            if (json_object_set_new(ret_amounts, name, json_real(much)) < 0)
                return error_set(err, ENOMEM, "out of memory");
        }
    }
    return 0;
}

/* Adds to a sum, or raises it to what is more. */
static int merge(json_t *sum, const json_t *more, bool add, struct drarun_error *err)
{
    const char *name;
    json_t *value;
    value_foreach(more, name, value)
    {
        double now = json_real_value(json_object_get(sum, name)), other = json_real_value(value);
        double both = add ? now + other : now > other ? now : other;
        if (json_object_set_new(sum, name, json_real(both)) < 0)
            return error_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

/* Initial containers run one after the other, beside those before them that restart always. */
static int of_initial(const json_t *pod, bool limits_alone, json_t *running, json_t *peak,
                      struct drarun_error *err)
{
    size_t i;
    json_t *container;
    json_array_foreach(json_object_get(pod, "initContainers"), i, container)
    {
        CLEANUP(json_decrefp) json_t *own = json_object();
        bool stays = strcmp(value_text_or(container, "restartPolicy", ""), "Always") == 0;
        int rc = own ? of_container(container, limits_alone, own, err)
                     : error_set(err, ENOMEM, "out of memory");
        if (rc == 0 && stays)
            rc = merge(running, own, true, err);
        else if (rc == 0)
            rc = merge(own, running, true, err);
        if (rc == 0)
            rc = merge(peak, stays ? running : own, false, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int sum_up(const json_t *pod, bool limits_alone, json_t *sum, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *peak = json_object();
    size_t i;
    json_t *container;
    int rc = peak ? of_initial(pod, limits_alone, sum, peak, err)
                  : error_set(err, ENOMEM, "out of memory");
    json_array_foreach(json_object_get(pod, "containers"), i, container)
    {
        CLEANUP(json_decrefp) json_t *own = json_object();
        if (rc == 0)
            rc = own ? of_container(container, limits_alone, own, err)
                     : error_set(err, ENOMEM, "out of memory");
        if (rc == 0)
            rc = merge(sum, own, true, err);
    }
    return rc == 0 ? merge(sum, peak, false, err) : rc;
}

/* ---- what the pod itself says, for all of its containers ---- */

bool pod_amount_is_huge_pages(const char *name)
{
    return strncmp(name, HUGE_PAGES, strlen(HUGE_PAGES)) == 0;
}

bool pod_amount_is_of_pods(const char *name)
{
    return strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0 ||
           pod_amount_is_huge_pages(name);
}

bool pod_has_amounts(const json_t *pod)
{
    static const char *const lists[] = {"requests", "limits"};
    const json_t *resources = json_object_get(pod, "resources");
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        const char *name;
        json_t *value;
        value_foreach(json_object_get(resources, lists[l]), name, value)
        {
            if (pod_amount_is_of_pods(name))
                return true;
        }
    }
    return false;
}

/* Replaces what the containers come to. open_alone: only where they say nothing, but for huge
 * pages, whose requests and limits are equal. */
static int replace(const json_t *list, bool open_alone, json_t *sum, struct drarun_error *err)
{
    const char *name;
    json_t *value;
    value_foreach(list, name, value)
    {
        double much;
        if (!pod_amount_is_of_pods(name) ||
            (open_alone && !pod_amount_is_huge_pages(name) && json_object_get(sum, name)))
            continue;
        int rc = pod_amount(list, name, &much, err);
        if (rc < 0)
            return rc;
        if (json_object_set_new(sum, name, json_real(much)) < 0)
            return error_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

int pod_requests(const json_t *pod, json_t *sum, struct drarun_error *err)
{
    const json_t *own = json_object_get(pod, "resources");
    int rc = sum_up(pod, false, sum, err);
    if (rc == 0)
        rc = replace(json_object_get(own, "limits"), true, sum, err);
    return rc == 0 ? replace(json_object_get(own, "requests"), false, sum, err) : rc;
}

int pod_limits(const json_t *pod, json_t *sum, struct drarun_error *err)
{
    const json_t *own = json_object_get(pod, "resources");
    int rc = sum_up(pod, true, sum, err);
    return rc == 0 ? replace(json_object_get(own, "limits"), false, sum, err) : rc;
}
