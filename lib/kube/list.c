/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/error.h"
#include "lib/kube/client_private.h"

struct kube_listing {
    struct kube_client *client;
    struct buf path, query, what; /* the query without limit and continue */
    kube_call_fn fn;
    void *arg;
    struct kube_call *call;
    json_t *items; /* of the pages so far */
    bool again;
};

static int next_page(struct kube_listing *l, const char *token, struct drarun_error *err);

static void listing_free(struct kube_listing *l)
{
    kube_call_cancel(l->call);
    buf_done(&l->path);
    buf_done(&l->query);
    buf_done(&l->what);
    json_decref(l->items);
    free(l);
}

void kube_list_cancel(struct kube_listing *listing)
{
    if (listing)
        listing_free(listing);
}

static void listing_end(struct kube_listing *l, const struct kube_answer *answer,
                        const struct drarun_error *err)
{
    l->fn(answer, err, l->arg);
    listing_free(l);
}

static void listing_fail(struct kube_listing *l, const struct drarun_error *err)
{
    struct kube_answer none = {.reason = "", .tries = 1};
    listing_end(l, &none, err);
}

/* The first page is the list that grows, so that a list of one page is not copied. */
static bool add_page(struct kube_listing *l, const json_t *page)
{
    json_t *items = json_object_get(page, "items");
    if (l->items)
        return json_array_extend(l->items, items) == 0;
    l->items = json_is_array(items) ? json_incref(items) : json_array();
    return l->items != NULL;
}

static void on_page(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct kube_listing *l = arg;
    struct drarun_error why = {0};
    l->call = NULL;
    if (err && err->code == ESTALE && l->items && !l->again) {
        l->again = true;
        json_decref(l->items);
        l->items = NULL;
        if (next_page(l, NULL, &why) < 0)
            listing_fail(l, &why);
        return;
    }
    if (err) {
        listing_end(l, answer, err);
        return;
    }
    const json_t *metadata = json_object_get(answer->body, "metadata");
    const char *token = json_string_value(json_object_get(metadata, "continue"));
    if (!add_page(l, answer->body)) {
        error_set(&why, ENOMEM, "out of memory");
        listing_fail(l, &why);
    } else if (token && *token) {
        if (next_page(l, token, &why) < 0)
            listing_fail(l, &why);
    } else {
        /* the body is ours as long as nobody else holds it */
        json_object_set((json_t *)answer->body, "items", l->items);
        listing_end(l, answer, NULL);
    }
}

static int next_page(struct kube_listing *l, const char *token, struct drarun_error *err)
{
    struct buf query = BUF_INIT;
    char limit[16];
    if (l->query.len)
        buf_add(&query, l->query.data, l->query.len);
    snprintf(limit, sizeof limit, "%d", KUBE_PAGE);
    kube_query_add(&query, "limit", limit);
    kube_query_add(&query, "continue", token);
    struct kube_request request = {
        .method = "GET", .path = l->path.data, .query = query.data, .what = l->what.data};
    int rc = query.failed ? error_set(err, ENOMEM, "out of memory")
                          : kube_call_start(l->client, &request, on_page, l, &l->call, err);
    buf_done(&query);
    return rc;
}

int kube_list(struct kube_client *client, const struct kube_target *target,
              const struct kube_select *select, kube_call_fn fn, void *arg,
              struct kube_listing **ret_listing, struct drarun_error *err)
{
    struct kube_listing *l = calloc(1, sizeof *l);
    if (!l)
        return error_set(err, ENOMEM, "out of memory");
    l->client = client;
    l->fn = fn;
    l->arg = arg;
    kube_path(target, &l->path);
    kube_target_describe("list", target, &l->what);
    if (select) {
        kube_query_add(&l->query, "labelSelector", select->labels);
        kube_query_add(&l->query, "fieldSelector", select->fields);
    }
    int rc = l->path.failed || l->what.failed || l->query.failed
                 ? error_set(err, ENOMEM, "out of memory")
                 : next_page(l, NULL, err);
    if (rc < 0)
        listing_free(l);
    else if (ret_listing)
        *ret_listing = l;
    return rc;
}
