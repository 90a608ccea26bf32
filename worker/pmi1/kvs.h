/* SPDX-License-Identifier: Apache-2.0 */
/* What pmi1.c and kvs.c share beside pmi1.h. */
#ifndef DRARUN_WORKER_PMI1_KVS_H
#define DRARUN_WORKER_PMI1_KVS_H

#include "worker/pmi1/pmi1.h"

const char *pmi1_kvs_name(const struct pmi1_kvs *kvs); /* borrowed */
/* The entry at index, in the order of the first puts; false behind the last. Borrowed until the key
 * is put again. */
bool pmi1_kvs_entry(const struct pmi1_kvs *kvs, size_t index, const char **ret_key,
                    const char **ret_value);

#endif
