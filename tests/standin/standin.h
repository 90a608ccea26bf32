/* SPDX-License-Identifier: Apache-2.0 */
/* What the two stand-ins share: work that a stream does in its order, on a thread of its own. */
#ifndef DRARUN_TEST_STANDIN_H
#define DRARUN_TEST_STANDIN_H

/* Called on the stream's thread; what it returns stays with the stream: 0, or an error of CUDA. */
typedef int (*standin_work_fn)(void *context);

typedef void (*standin_enqueue_fn)(void *stream, standin_work_fn work, void *context);
#define STANDIN_ENQUEUE "standin_enqueue" /* exported by the CUDA runtime's stand-in */

#endif
