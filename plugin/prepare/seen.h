/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoints that a preparer has read, by what tells one file from its successor. While an
 * update runs another instance writes and removes checkpoints beside us: who decides whether a
 * device is free looks first, and learns of each that has come, changed or gone. */
#ifndef DRARUN_PLUGIN_PREPARE_SEEN_H
#define DRARUN_PLUGIN_PREPARE_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "drarun/error.h"

struct seen_file {
    char uid[64];
    ino_t inode;
    int64_t changed_ns;
    bool there; /* in the present look */
};

struct seen {
    struct seen_file *list;
    size_t count, cap;
};

/* Of the claim's checkpoint, which is not there any more, is new, or another than before. */
typedef int (*seen_fn)(void *arg, const char *uid, struct drarun_error *err);

void seen_done(struct seen *seen);
/* Calls fn for each difference from the last look; its error ends the look and comes again with the
 * next one. */
int seen_look(struct seen *seen, const char *dir, seen_fn fn, void *arg, struct drarun_error *err);

#endif
