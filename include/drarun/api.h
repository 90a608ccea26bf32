/* SPDX-License-Identifier: Apache-2.0 */
/* What all of the API shares.
 *
 * - Types are opaque and freed by their own function, which takes NULL; a `ret_x` is untouched when
 *   its call fails. Texts that come back as `char *` are the caller's: drarun_free.
 * - Calls return 0, or -errno with the same value and words in err, which may be NULL.
 * - Options are structs that begin with their size, so that later versions can add members: start
 *   them with their drarun_..._options_init(). NULL stands for all defaults. What they point to is
 *   borrowed for the call, lists of texts end with NULL. A member that is set and that the loaded
 *   library is too old to know is an error of kind DRARUN_ERR_USAGE.
 * - The library writes nothing to stdout and stderr, changes no signal handler, no environment and
 *   no working directory, and keeps no state of its own between calls. Different objects may be
 * used by different threads at the same time, one object by one thread at a time. */
#ifndef DRARUN_API_H
#define DRARUN_API_H

#include <stddef.h>
#include <string.h>

#define DRARUN_API __attribute__((visibility("default")))

/* Defines TYPE_init(), the defaults of the options of that type. */
#define DRARUN_DEFINE_INIT(type)                                                                   \
    static inline struct type type##_init(void)                                                    \
    {                                                                                              \
        struct type options;                                                                       \
        memset(&options, 0, sizeof options);                                                       \
        options.size = sizeof options;                                                             \
        return options;                                                                            \
    }

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": of the library that is loaded. */
DRARUN_API const char *drarun_version(void);

/* A text that came from the library; NULL is fine. */
DRARUN_API void drarun_free(void *text);

#ifdef __cplusplus
}
#endif
#endif
