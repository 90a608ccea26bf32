/* SPDX-License-Identifier: Apache-2.0 */
/* Conventions of the whole API.
 *
 * - Types are opaque. Each has its own free function, which accepts NULL. A call that fails
 *   leaves its `ret_x` untouched. The caller frees a returned `char *` with drarun_free.
 * - Calls return 0 or -errno. On failure they fill err, which may be NULL, with the same code and
 *   a message.
 * - Options are structs that begin with their size, so that later versions can add members.
 *   Initialize them with their drarun_..._options_init(). NULL means all defaults. The library
 *   borrows what they point to for the duration of the call. Lists of strings end with NULL.
 *   Setting a member that the loaded library is too old to know is an error of kind
 *   DRARUN_ERR_USAGE.
 * - The library writes nothing to stdout or stderr. It does not change signal handlers, the
 *   environment or the working directory, and it keeps no global state between calls. Different
 *   threads may use different objects at the same time, but only one thread at a time may use an
 *   object. */
#ifndef DRARUN_API_H
#define DRARUN_API_H

#include <stddef.h>
#include <string.h>

#define DRARUN_API __attribute__((visibility("default")))

/* Defines TYPE_init(), which returns the default options of that type. */
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

/* The version of the loaded library, such as "0.1.0". */
DRARUN_API const char *drarun_version(void);

/* Frees a string that the library returned. NULL is valid. */
DRARUN_API void drarun_free(void *text);

#ifdef __cplusplus
}
#endif
#endif
