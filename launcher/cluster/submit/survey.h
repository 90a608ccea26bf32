/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of the cluster by which a job's profile and the way of its agent are chosen: read
 * beside other work of the loop, one kind after the other, each once. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_SURVEY_H
#define DRARUN_LAUNCHER_CLUSTER_SURVEY_H

#include "launcher/cluster/client/cluster.h"

enum survey_kind { SURVEY_SLICES, SURVEY_CLASSES, SURVEY_NODES, SURVEY_KINDS };

/* Zeroed but for its cluster, at an address that stays. */
struct survey {
    struct cluster *cluster;
    struct kube_listing *listing; /* NULL: none is under way */
    enum survey_kind asked;       /* what it lists, */
    const char *without;          /* and what is done without that */
    bool came[SURVEY_KINDS];
    json_t *items[SURVEY_KINDS]; /* NULL: they have not come, or cannot be read */
};

/* True: they have come, or cannot be read, which is logged with "without: ". False: they are asked
 * for. After cluster_discover. */
bool survey_read(struct survey *survey, enum survey_kind kind, bool metadata_only,
                 const char *without);
/* Gives up what is under way. For CLEANUP; a zeroed one is fine. */
void survey_done(struct survey *survey);

#endif
