/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of status_doc.c. */
#ifndef DRARUN_JOBS_STATUS_PRIVATE_H
#define DRARUN_JOBS_STATUS_PRIVATE_H

#include "jobs/status/status_doc.h"

/* How much is said about each worker, so that a document of any size has room. */
enum status_detail {
    STATUS_DETAIL_ALL = 0, /* a line each, with everything */
    STATUS_DETAIL_SHORT,   /* a line each, without messages and names that can be told otherwise */
    STATUS_DETAIL_GROUPS,  /* workers that are equal but for their node are one line */
    STATUS_DETAIL_COUNT,
};

/* The list "lines" of the document; NULL without memory. */
json_t *status_lines(const struct status_input *input, enum status_detail detail);
/* What is missing at this detail, in words; NULL: nothing. */
const char *status_dropped(enum status_detail detail);

#endif
