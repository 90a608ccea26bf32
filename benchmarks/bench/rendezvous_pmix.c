/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/rendezvous.h"

#include <errno.h>
#include <pmix.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/unconst.h"

static pmix_proc_t me;
static struct rendezvous meeting;
static bool alone;
static unsigned rounds; /* that are done: each has a key of its own, since a key is not put twice */

static int failed(pmix_status_t status, const char *what, struct drarun_error *err)
{
    return error_set(err, EIO, "PMIx: %s: %s", what, PMIx_Error_string(status));
}

static int get_number(const pmix_proc_t *of, const char *key, unsigned *ret,
                      struct drarun_error *err)
{
    pmix_value_t *value = NULL;
    pmix_status_t status = PMIx_Get(of, key, NULL, 0, &value);
    if (status != PMIX_SUCCESS)
        return failed(status, key, err);
    bool is_short = value->type == PMIX_UINT16, is_long = value->type == PMIX_UINT32;
    if (is_short || is_long)
        *ret = is_short ? value->data.uint16 : value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return is_short || is_long ? 0 : error_set(err, EPROTO, "PMIx: %s is not a number", key);
}

int rendezvous_open(struct rendezvous *ret, struct drarun_error *err)
{
    pmix_proc_t all;
    alone = getenv("PMIX_NAMESPACE") == NULL;
    meeting = (struct rendezvous){.ranks = 1};
    if (!alone) {
        pmix_status_t status = PMIx_Init(&me, NULL, 0);
        if (status != PMIX_SUCCESS)
            return failed(status, "the launcher's server does not answer", err);
        PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
        meeting.rank = me.rank;
        int rc = get_number(&all, PMIX_JOB_SIZE, &meeting.ranks, err);
        rc = rc < 0 ? rc : get_number(&me, PMIX_LOCAL_RANK, &meeting.local_rank, err);
        if (rc < 0)
            return rc;
    }
    *ret = meeting;
    return 0;
}

static int fence(bool collect, struct drarun_error *err)
{
    pmix_info_t info;
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    pmix_status_t status = PMIx_Fence(NULL, 0, &info, 1);
    PMIX_INFO_DESTRUCT(&info);
    return status == PMIX_SUCCESS ? 0 : failed(status, "fence", err);
}

static int put(const char *key, const void *bytes, size_t size, struct drarun_error *err)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    value.data.bo.bytes = unconst(bytes); /* PMIx_Put copies */
    value.data.bo.size = size;
    pmix_status_t status = PMIx_Put(PMIX_GLOBAL, key, &value);
    status = status == PMIX_SUCCESS ? PMIx_Commit() : status;
    return status == PMIX_SUCCESS ? 0 : failed(status, "put", err);
}

static int get(unsigned rank, const char *key, void *bytes, size_t size, struct drarun_error *err)
{
    pmix_proc_t from;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&from, me.nspace, rank);
    pmix_status_t status = PMIx_Get(&from, key, NULL, 0, &value);
    if (status != PMIX_SUCCESS)
        return failed(status, key, err);
    bool good = value->type == PMIX_BYTE_OBJECT && value->data.bo.size == size;
    if (good)
        memcpy(bytes, value->data.bo.bytes, size);
    PMIX_VALUE_RELEASE(value);
    return good ? 0
                : error_set(err, EPROTO, "rank %u shared something else: is it the same program?",
                            rank);
}

int rendezvous_share(const void *mine, void *all, size_t bytes, struct drarun_error *err)
{
    char key[32];
    int rc = 0;
    snprintf(key, sizeof key, "drarun-bench-%u", ++rounds);
    if (!alone) {
        rc = put(key, mine, bytes, err);
        rc = rc < 0 ? rc : fence(true, err);
    }
    for (unsigned rank = 0; rc == 0 && rank < meeting.ranks; rank++) {
        if (rank == meeting.rank)
            memcpy((char *)all + rank * bytes, mine, bytes);
        else
            rc = get(rank, key, (char *)all + rank * bytes, bytes, err);
    }
    return rc;
}

int rendezvous_wait(struct drarun_error *err)
{
    return alone ? 0 : fence(false, err);
}

void rendezvous_close(void)
{
    if (alone)
        return;
    rendezvous_wait(NULL);
    PMIx_Finalize(NULL, 0);
}
