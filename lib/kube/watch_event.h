/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a watch: JSON objects, each on a line of its own (apimachinery, pkg/watch/
 * types.go and its JSON framer). Pure; fed with bytes cut anywhere. Private to lib/kube. */
#ifndef DRARUN_KUBE_WATCH_EVENT_H
#define DRARUN_KUBE_WATCH_EVENT_H

#include <jansson.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

#define WATCH_EVENT_MAX ((size_t)8 << 20) /* etcd stores at most 1.5 MiB in one object */

enum watch_event_type {
    WATCH_ADDED = 1,
    WATCH_MODIFIED,
    WATCH_DELETED,
    WATCH_BOOKMARK,
    WATCH_ERROR, /* the object is a Status */
};

struct watch_decoder {
    struct buf rest; /* of a line that is not complete */
};

void watch_decoder_done(struct watch_decoder *d);
/* The next event of *bytes, which moves on: 1, 0 when all is consumed and none is complete, or
 * -errno. ret_object is a new reference. */
int watch_decoder_next(struct watch_decoder *d, const char **bytes, size_t *length,
                       enum watch_event_type *ret_type, json_t **ret_object,
                       struct drarun_error *err);

#endif
