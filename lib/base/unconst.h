/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where const is dropped: for functions and structs of others that only read, but
 * were declared without const (the arguments of exec, protobuf-c's fields, jansson's references and
 * iterators, nghttp2's headers), and for freeing what its owner otherwise only reads. -Wcast-qual
 * finds every other cast that drops it. What is behind the pointer must not be written, unless it
 * was made writable. */
#ifndef DRARUN_BASE_UNCONST_H
#define DRARUN_BASE_UNCONST_H

#include <stdint.h>

/* The same pointer; it converts to any type, as malloc's does. */
static inline void *unconst(const void *pointer)
{
    return (void *)(uintptr_t)pointer;
}

#endif
