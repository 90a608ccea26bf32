/* SPDX-License-Identifier: Apache-2.0 */
/* That something has changed in the kernel's view of devices: rtnetlink's link and route messages
 * and kobject uevents. What, nobody reads: the reader looks for itself. Of the network namespace of
 * the caller, which must be the host's. */
#ifndef DRARUN_PLUGIN_DISCOVER_KERNEL_NEWS_H
#define DRARUN_PLUGIN_DISCOVER_KERNEL_NEWS_H

#include <event2/event.h>
#include "drarun/error.h"

struct kernel_news;

/* fn is called once for any number of messages that were there. */
int kernel_news_new(struct event_base *base, void (*fn)(void *arg), void *arg,
                    struct kernel_news **ret_news, struct drarun_error *err);
void kernel_news_free(struct kernel_news *news); /* NULL is fine */

#endif
