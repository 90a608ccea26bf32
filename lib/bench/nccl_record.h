/* SPDX-License-Identifier: Apache-2.0 */
/* The head of one record of NCCL's log, behind whatever prefix a tool gave its line:
 *
 *   host:12:34 [0] NCCL INFO ...
 *   [2025-10-16 22:16:08] host:12:34 [0] net_ib.cc:818 NCCL WARN ...
 *
 * Pure. */
#ifndef DRARUN_LIB_BENCH_NCCL_RECORD_H
#define DRARUN_LIB_BENCH_NCCL_RECORD_H

#include <stdbool.h>

#define NCCL_RECORD_HOST 63 /* bytes of a host's name, at most */

/* A byte of a host's name. */
bool nccl_record_is_host(char c);

/* The host in what stands before "NCCL INFO" or "NCCL WARN"; false: none is named. */
bool nccl_record_host(const char *at, const char *end, const char **ret_host,
                      const char **ret_host_end);

#endif
