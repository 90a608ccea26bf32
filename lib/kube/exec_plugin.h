/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a credential plugin beside the loop, without a shell. Private to lib/kube. */
#ifndef DRARUN_KUBE_EXEC_PLUGIN_H
#define DRARUN_KUBE_EXEC_PLUGIN_H

#include <event2/event.h>
#include "lib/kube/exec_answer.h"

#define EXEC_MS 60000              /* unless the config says otherwise */
#define EXEC_INTERACTIVE_MS 300000 /* at a terminal: somebody types, or logs in elsewhere */

struct exec_plugin; /* a run */

/* err NULL: a credential, which fn takes. The run is gone when fn returns. */
typedef void (*exec_plugin_fn)(struct exec_credential *credential, const struct drarun_error *err,
                               void *arg);

/* config is borrowed until fn is called. fn is never called from inside. Does not need to be the
 * only one that reaps children: a status that somebody else took is counted as success. */
int exec_plugin_start(struct event_base *base, const struct kube_config *config, exec_plugin_fn fn,
                      void *arg, struct exec_plugin **ret_plugin, struct drarun_error *err);
/* Kills it. NULL is fine. */
void exec_plugin_free(struct exec_plugin *plugin);

#endif
