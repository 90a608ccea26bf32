/* SPDX-License-Identifier: Apache-2.0 */
/* Where the devices are that a claim may take. Pure. */
#ifndef DRARUN_JOBS_CLASS_DEVICES_H
#define DRARUN_JOBS_CLASS_DEVICES_H

#include <jansson.h>
#include "drarun/error.h"
#include "lib/dra/predict.h"

/* Of the devices that class and selectors of the claim's requests admit (see predict_devices): node
 * -> how many it has, the caller's. *ret_nodes NULL: some are not of one node. */
int class_devices(const json_t *claim, const struct predict_cluster *cluster, const char *requests,
                  json_t **ret_nodes, struct drarun_error *err);
/* The same for all devices of a class that serve an extended resource. */
int class_devices_serving(const char *class, const struct predict_cluster *cluster,
                          json_t **ret_nodes, struct drarun_error *err);

#endif
