/* SPDX-License-Identifier: Apache-2.0 */
/* What strings and lists share. */
#ifndef DRARUN_CEL_LIST_H
#define DRARUN_CEL_LIST_H

#include "lib/cel/value.h"

/* Position of the first (or last) equal item as an int, or -1. */
struct cel_value cel_list_index(const struct cel_list *list, const struct cel_value *item,
                                bool last);

#endif
