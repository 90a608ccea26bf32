/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of libpmix's infos. Failure to allocate is remembered, so that a chain of
 * additions needs one check at its end: libpmix itself leaves out the text of an info without a
 * word. */
#ifndef DRARUN_WORKER_PMIX_INFO_LIST_H
#define DRARUN_WORKER_PMIX_INFO_LIST_H

#include <stdbool.h>
#include <pmix.h>
#include "lib/base/buf.h"

struct info_list {
    void *list; /* libpmix's; NULL: there was no memory for it */
    bool failed;
};

struct info_list info_list_new(void);
void info_list_add(struct info_list *to, const char *key, const void *value, pmix_data_type_t type);
void info_list_add_text(struct info_list *to, const char *key, const char *value);
/* Empties the text, too. */
void info_list_add_buf(struct info_list *to, const char *key, struct buf *text);
/* Adds the infos of part, if there are any, as one of that key. */
void info_list_add_part_take(struct info_list *to, const char *key, struct info_list *part);
/* Fills *ret_array, which the caller destructs, and ends the list. PMIX_ERR_NOMEM: something lacks;
 * PMIX_ERR_EMPTY: nothing was added. */
pmix_status_t info_list_convert_take(struct info_list *list, pmix_data_array_t *ret_array);

#endif
