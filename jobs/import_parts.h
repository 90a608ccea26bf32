/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of jobs/import.c. Private to jobs/import*. */
#ifndef DRARUN_JOBS_IMPORT_PARTS_H
#define DRARUN_JOBS_IMPORT_PARTS_H

#include <jansson.h>
#include "lib/base/strlist.h"
#include "lib/doc/reader.h"

#define IMPORT_OBJECTS_MAX 64

struct import_objects { /* of all documents, Lists opened */
    struct reader_node nodes[IMPORT_OBJECTS_MAX];
    struct reader_node lists[IMPORT_OBJECTS_MAX]; /* what `items` stand in */
    struct reader_node items[IMPORT_OBJECTS_MAX];
    size_t count, list_count;
};

/* The text of a member, "" when it is none. */
const char *import_text(const struct reader_node *object, const char *key);

/* The object of that kind and name, or NULL. name NULL: any. */
const struct reader_node *import_find(const struct import_objects *o, const char *kind,
                                      const char *name);

/* devices and computeDomain of spec from the pod's claims; pod: the node of a PodTemplateSpec's
 * spec. template: our copy of the PodTemplateSpec, which loses its claims. */
void import_claims(const struct import_objects *o, const struct reader_node *pod, json_t *template,
                   json_t *spec);

/* devices.gpus from the limit of an extended resource; environment variables that are derived or
 * move to nccl.env. Works on the first container. */
void import_container(const struct reader_node *pod, json_t *template, json_t *spec);

/* The first container's program: from the manifest, or PROGRAM where that only sleeps. */
void import_command(const struct reader_node *pod, json_t *template);

/* What an MPIJob's launcher runs: words of the program behind mpirun, and its -x variables into the
 * first container of template. launcher: the node of the launcher's pod spec. False: not found. */
bool import_mpirun(const struct reader_node *launcher, uint64_t ranks, json_t *template);

/* The words of a POSIX shell's simple command up to its end (newline, ;, |, &), with quotes undone;
 * text moves behind it. False when a quote is open. */
bool shell_words(const char **text, struct strlist *words);

/* The object at key, made where there is none; borrowed. */
json_t *import_child(json_t *object, const char *key);

json_t *import_first_container(json_t *template);

#endif
