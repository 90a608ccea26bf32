/* SPDX-License-Identifier: Apache-2.0 */
/* The output of anyone's nccl-tests (and drarun-bench) as text, as it is kept in files: versions
 * 2.0 to 2.20, whose columns differ; several runs behind one another; lines of NCCL_DEBUG=INFO
 * between the lines and within them; the labels that mpirun, mpiexec, srun and kubectl put before
 * lines; without its "#", as documents lose them; cut off anywhere. Facts: src/common.cu and
 * src/util.cu of nccl-tests from 2.0.0 to 2.19.6, and outputs in public issues. Pure. */
#ifndef DRARUN_LIB_BENCH_NCCL_TESTS_TEXT_H
#define DRARUN_LIB_BENCH_NCCL_TESTS_TEXT_H

#include "lib/bench/runs.h"

/* Adds the runs that the text holds; -EINVAL when it holds none. What could not be read is said in
 * their notes. */
int nccl_tests_text_read(const char *text, size_t length, const char *name, struct runs *runs,
                         struct drarun_error *err);

#endif
