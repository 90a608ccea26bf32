/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/kube/client_private.h"

#define METADATA "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

struct kube_listing {
    struct kube_client *client;
    struct buf path, query, what; /* the query without limit and continue */
    struct buf token;             /* the page that was asked for; empty: the first */
    unsigned page_size;           /* objects */
    kube_call_fn fn;
    void *arg;
    struct kube_call *call;
    json_t *items; /* of the pages so far */
    bool metadata_only;
    bool older;
    void (*trim)(json_t *object); /* or NULL */
    bool small_pages;
    bool pages; /* fn is called with each */
    bool again;
};

static int ask(struct kube_listing *l, struct drarun_error *err);
static int next_page(struct kube_listing *l, const char *token, struct drarun_error *err);

static void listing_free(struct kube_listing *l)
{
    kube_call_cancel(l->call);
    buf_done(&l->path);
    buf_done(&l->query);
    buf_done(&l->what);
    buf_done(&l->token);
    json_decref(l->items);
    free(l);
}

void kube_list_cancel(struct kube_listing *listing)
{
    if (listing)
        listing_free(listing);
}

/* The listing is gone before fn is called: nothing looks at it then. */
static void listing_end(struct kube_listing *l, const struct kube_answer *answer,
                        const struct drarun_error *err)
{
    kube_call_fn fn = l->fn;
    void *arg = l->arg;
    listing_free(l);
    fn(answer, err, arg);
}

static void listing_fail(struct kube_listing *l, const struct drarun_error *err)
{
    struct kube_answer none = {.reason = "", .tries = 1};
    listing_end(l, &none, err);
}

static const char *token_of(const json_t *page)
{
    return json_string_value(json_object_get(json_object_get(page, "metadata"), "continue"));
}

bool kube_list_has_more(const json_t *page)
{
    const char *token = token_of(page);
    return token && *token;
}

/* The first page's items are the list that grows, so that a list of one page is not copied. */
static int add_page(struct kube_listing *l, const json_t *page, struct drarun_error *err)
{
    json_t *items = json_object_get(page, "items"), *item;
    size_t i;
    if (l->trim)
        json_array_foreach(items, i, item) l->trim(item);
    if (!l->items)
        l->items = json_is_array(items) ? json_incref(items) : json_array();
    else if (json_array_extend(l->items, items) < 0)
        return error_set(err, ENOMEM, "out of memory");
    return l->items ? 0 : error_set(err, ENOMEM, "out of memory");
}

static void restart(struct kube_listing *l)
{
    struct drarun_error why = {0};
    l->again = true;
    json_decref(l->items);
    l->items = NULL;
    if (next_page(l, NULL, &why) < 0)
        listing_fail(l, &why);
}

/* An object may have 1.5 MiB: a page of large ones exceeds what an answer may have. */
static void ask_for_less(struct kube_listing *l)
{
    struct drarun_error why = {0};
    l->page_size = l->page_size > 8 ? l->page_size / 8 : 1;
    if (ask(l, &why) < 0)
        listing_fail(l, &why);
}

/* The next page is asked for before this one is handed on. */
static void hand_on(struct kube_listing *l, const struct kube_answer *answer)
{
    struct drarun_error why = {0};
    if (!kube_list_has_more(answer->body))
        listing_end(l, answer, NULL);
    else if (next_page(l, token_of(answer->body), &why) < 0)
        listing_fail(l, &why);
    else
        l->fn(answer, NULL, l->arg);
}

static void gather(struct kube_listing *l, const struct kube_answer *answer)
{
    struct drarun_error why = {0};
    int rc = add_page(l, answer->body, &why);
    if (rc == 0 && kube_list_has_more(answer->body)) {
        rc = next_page(l, token_of(answer->body), &why);
    } else if (rc == 0) {
        json_t *whole = json_copy(unconst(answer->body));
        struct kube_answer all = *answer;
        all.body = whole;
        rc = whole && json_object_set(whole, "items", l->items) == 0
                 ? 0
                 : error_set(&why, ENOMEM, "out of memory");
        if (rc == 0)
            listing_end(l, &all, NULL);
        json_decref(whole);
    }
    if (rc < 0)
        listing_fail(l, &why);
}

/* The next one may be larger again: large objects are mostly few. */
static void take_page(struct kube_listing *l, const struct kube_answer *answer)
{
    l->page_size = l->page_size < KUBE_PAGE / 2 ? 2 * l->page_size : KUBE_PAGE;
    if (l->pages)
        hand_on(l, answer);
    else
        gather(l, answer);
}

static void on_page(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct kube_listing *l = arg;
    l->call = NULL;
    if (err && err->code == ESTALE && l->items && !l->again)
        restart(l);
    else if (err && err->code == EFBIG && l->page_size > 1)
        ask_for_less(l);
    else if (err)
        listing_end(l, answer, err);
    else
        take_page(l, answer);
}

static int ask(struct kube_listing *l, struct drarun_error *err)
{
    struct buf query = BUF_INIT;
    char limit[16];
    if (l->query.len)
        buf_add(&query, l->query.data, l->query.len);
    snprintf(limit, sizeof limit, "%u", l->page_size);
    kube_query_add(&query, "limit", limit);
    kube_query_add(&query, "continue", l->token.len ? l->token.data : NULL);
    kube_query_add(&query, "resourceVersion", l->older && !l->token.len ? "0" : NULL);
    struct kube_request request = {
        .method = "GET",
        .path = l->path.data,
        .query = query.data,
        .what = l->what.data,
        .accept = l->metadata_only ? METADATA : NULL,
        .answer_max = l->small_pages && l->page_size > 1 ? KUBE_SMALL_PAGE : 0,
    };
    int rc = query.failed ? error_set(err, ENOMEM, "out of memory")
                          : kube_call_start(l->client, &request, on_page, l, &l->call, err);
    buf_done(&query);
    return rc;
}

static int next_page(struct kube_listing *l, const char *token, struct drarun_error *err)
{
    buf_reset(&l->token);
    if (token)
        buf_add_str(&l->token, token);
    return l->token.failed ? error_set(err, ENOMEM, "out of memory") : ask(l, err);
}

static int listing_start(struct kube_client *client, const struct kube_target *target,
                         const struct kube_select *select, kube_call_fn fn, void *arg, bool pages,
                         struct kube_listing **ret_listing, struct drarun_error *err)
{
    struct kube_listing *l = calloc(1, sizeof *l);
    if (!l)
        return error_set(err, ENOMEM, "out of memory");
    l->client = client;
    l->fn = fn;
    l->arg = arg;
    l->pages = pages;
    l->page_size = KUBE_PAGE;
    kube_path(target, &l->path);
    kube_target_describe("list", target, &l->what);
    if (select) {
        l->metadata_only = select->metadata_only;
        l->older = select->older;
        l->trim = select->trim;
        l->small_pages = select->small_pages || select->trim;
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

int kube_list(struct kube_client *client, const struct kube_target *target,
              const struct kube_select *select, kube_call_fn fn, void *arg,
              struct kube_listing **ret_listing, struct drarun_error *err)
{
    return listing_start(client, target, select, fn, arg, false, ret_listing, err);
}

int kube_list_pages(struct kube_client *client, const struct kube_target *target,
                    const struct kube_select *select, kube_call_fn fn, void *arg,
                    struct kube_listing **ret_listing, struct drarun_error *err)
{
    return listing_start(client, target, select, fn, arg, true, ret_listing, err);
}
