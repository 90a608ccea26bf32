/* SPDX-License-Identifier: Apache-2.0 */
/* What the cluster's slices have for a job that finds no room, beside what the scheduler says: read
 * while it waits, since what is free changes. DeviceClasses, Nodes' labels, claims of other
 * namespaces and taints belong to the whole cluster; where one of them may not be read the forecast
 * says less, and never that it is impossible. Of a class that is not there nothing is predicted;
 * where the classes cannot be read, which is told once, those that drivers bring are taken. Each
 * role of a job is looked at alone. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FORECAST_H
#define DRARUN_LAUNCHER_CLUSTER_FORECAST_H

#include "jobs/gang/gang.h"
#include "lib/dra/predict.h"
#include "launcher/cluster/client/cluster.h"

/* After the last look, while the job still waits: a look reads the slices, Nodes and claims of the
 * whole cluster. The pause doubles while a look finds what the one before it has found. */
#define FORECAST_AGAIN_MIN_MS 10000
#define FORECAST_AGAIN_MAX_MS 60000

struct forecast;

int forecast_new(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                 struct forecast **ret_forecast, struct drarun_error *err);
void forecast_free(struct forecast *forecast);
DEFINE_CLEANUP(struct forecast, forecast_free)

/* Begins a look for this step of the ladder, which reads and then evaluates; none goes on. Until it
 * is over the last one's results stay. What cannot be read or evaluated is logged and leaves the
 * forecast unknown. looked is called when it is over; without memory, at once. */
void forecast_start(struct forecast *forecast, unsigned step, void (*looked)(void *arg), void *arg);
bool forecast_is_looking(const struct forecast *forecast);
/* Of a look that goes on, if there is one, nobody wants the results: looked is not called. */
void forecast_stop(struct forecast *forecast);
/* A whole look; runs the loop. */
void forecast_look(struct forecast *forecast, unsigned step);
/* When to look again; INT64_MAX: the slices may not be read, or a look goes on. */
int64_t forecast_due(const struct forecast *forecast, unsigned step);

enum gang_forecast forecast_outlook(const struct forecast *forecast, unsigned step);
/* Where the outlook of this step is NEVER: the later step that places the most workers in an empty
 * cluster, the first of several; GANG_STEP_NONE: none places more than this one; else 0. */
unsigned forecast_next_step(const struct forecast *forecast, unsigned step);
/* Of the job's, that the last look did not find; NULL: none, or not known. */
const char *forecast_missing_class(const struct forecast *forecast);
/* Of the last look; NULL when there is none, or of another step. Borrowed until the loop runs. */
const struct prediction *forecast_prediction(const struct forecast *forecast, unsigned step);

#endif
