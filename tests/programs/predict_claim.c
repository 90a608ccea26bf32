/* SPDX-License-Identifier: Apache-2.0 */
/* predict_claim: the partner of `tests/cluster/allocate-batch`. Each line of stdin is {"slices",
 * "classes", "nodes", "allocated", "claim", "workers"}, each line of stdout {"workers": [{"node",
 * "results"}], "stop", "shortage", "notes"}: stop is the error with which the scheduler gives up.
 * An argument is the minor version of the Kubernetes whose rules count. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/dra/predict.h"
#include "launcher/files/cluster_files.h"
#include "lib/base/cleanup.h"

static json_t *workers_json(const struct prediction *p)
{
    json_t *workers = json_array();
    for (uint32_t i = 0; i < p->placed; i++)
        json_array_append_new(workers, json_pack("{s:s, s:O}", "node", p->workers[i].node,
                                                 "results", p->workers[i].results));
    return workers;
}

static json_t *prediction_json(const struct prediction *p)
{
    json_t *notes = json_array();
    for (size_t i = 0; i < p->notes.count; i++)
        json_array_append_new(notes, json_string(p->notes.items[i]));
    bool stops = p->shortage && strstr(p->shortage, "the scheduler gives up");
    return json_pack("{s:o, s:s?, s:s?, s:o}", "workers", workers_json(p), "stop",
                     stops ? p->shortage : NULL, "shortage", p->shortage, "notes", notes);
}

static json_t *answer(const json_t *question, unsigned minor)
{
    struct drarun_error err = {0};
    struct slices slices;
    struct prediction p;
    json_t *labels = cluster_node_labels(json_object_get(question, "nodes")), *result;
    if (slices_read(json_object_get(question, "slices"), &slices, &err) < 0) {
        json_decref(labels);
        return json_pack("{s:[], s:s}", "workers", "refused", err.text);
    }
    const struct predict_cluster cluster = {
        .slices = &slices,
        .classes = json_object_get(question, "classes"),
        .node_labels = labels,
        .claims = json_object_get(question, "allocated"),
        .taint_rules = json_object_get(question, "rules"),
        .minor = minor,
    };
    uint32_t workers = (uint32_t)json_integer_value(json_object_get(question, "workers"));
    if (predict(json_object_get(question, "claim"), workers, &cluster, &p, &err) < 0) {
        result = json_pack("{s:[], s:s}", "workers", "stop", err.text);
    } else {
        result = prediction_json(&p);
        prediction_done(&p);
    }
    slices_done(&slices);
    json_decref(labels);
    return result;
}

int main(int argc, char *argv[])
{
    unsigned minor = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    cleanup_free char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        json_t *question = json_loads(line, 0, NULL);
        json_t *result = answer(question, minor);
        json_dumpf(result, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(result);
        json_decref(question);
    }
    return 0;
}
