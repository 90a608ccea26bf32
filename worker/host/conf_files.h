/* SPDX-License-Identifier: Apache-2.0 */
/* Open MPI's and NCCL's configuration files in the image: what they set has the weight of the
 * image's variables. */
#ifndef DRARUN_WORKER_CONF_FILES_H
#define DRARUN_WORKER_CONF_FILES_H

#include "lib/base/strlist.h"

/* Adds what the files of each Open MPI set as entries "OMPI_MCA_NAME=VALUE", and what NCCL takes
 * from its own, "NCCL_NAME=VALUE", since env does not have it. Open MPI's are found by HOME,
 * OPAL_PREFIX and PATH of env, NCCL's by NCCL_CONF_FILE and HOME, and both where distributions keep
 * them. A file that is missing or cannot be read sets nothing. */
void conf_files_read(const struct strlist *env, struct strlist *entries);

#endif
