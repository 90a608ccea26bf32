/* SPDX-License-Identifier: Apache-2.0 */
/* Open MPI's parameter files in the image: what they set has the weight of the image's variables.
 */
#ifndef DRARUN_WORKER_MCA_FILES_H
#define DRARUN_WORKER_MCA_FILES_H

#include "lib/base/strlist.h"

/* Adds what the files of each Open MPI set as entries "OMPI_MCA_NAME=VALUE". They are found by
 * HOME, OPAL_PREFIX and PATH of env, and where distributions keep them. A file that is missing or
 * cannot be read sets nothing. */
void mca_files_read(const struct strlist *env, struct strlist *entries);

#endif
