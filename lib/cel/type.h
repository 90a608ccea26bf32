/* SPDX-License-Identifier: Apache-2.0 */
/* Static types and their unification, after cel-go's checker: what the API server says of an
 * expression before it sees a device. */
#ifndef DRARUN_CEL_TYPE_H
#define DRARUN_CEL_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/buf.h"
#include "lib/cel/arena.h"

enum cel_type_kind {
    CEL_T_ERROR,
    CEL_T_DYN,
    CEL_T_NULL,
    CEL_T_BOOL,
    CEL_T_INT,
    CEL_T_UINT,
    CEL_T_DOUBLE,
    CEL_T_STRING,
    CEL_T_BYTES,
    CEL_T_LIST,     /* of param[0] */
    CEL_T_MAP,      /* param[0] -> param[1] */
    CEL_T_TYPE,     /* param[0], or NULL */
    CEL_T_OPTIONAL, /* of param[0] */
    CEL_T_QUANTITY,
    CEL_T_SEMVER,
    CEL_T_DEVICE,
    CEL_T_VARIABLE, /* not yet known: number */
};

struct cel_type {
    enum cel_type_kind kind;
    uint32_t number;
    bool open; /* holds a variable */
    const struct cel_type *param[2];
};

/* Types can share parts so that walking them takes exponential time: beyond this we refuse. */
enum { CEL_MAX_BINDINGS = 1 << 16, CEL_MAX_TYPE_STEPS = 1 << 22 };

/* What is known of the variables. A failed attempt is rolled back by its trail. */
struct cel_bindings {
    struct cel_arena *arena;
    const struct cel_type **bound; /* by number */
    uint32_t count, cap, steps;
    struct cel_trail {
        uint32_t number;
        const struct cel_type *before;
    } * trail;
    size_t trail_count, trail_cap;
};

extern const struct cel_type CEL_TYPES[]; /* those without parameters, by kind */

void cel_bindings_done(struct cel_bindings *bindings);
const struct cel_type *cel_type_new(struct cel_arena *arena, enum cel_type_kind kind,
                                    const struct cel_type *first, const struct cel_type *second);
const struct cel_type *cel_type_variable(struct cel_bindings *bindings);
bool cel_type_equal(const struct cel_type *a, const struct cel_type *b);
/* Binds variables on success, nothing on failure. */
bool cel_type_assignable(struct cel_bindings *bindings, const struct cel_type *a,
                         const struct cel_type *b);
bool cel_types_assignable(struct cel_bindings *bindings, const struct cel_type *const a[],
                          const struct cel_type *const b[], size_t count);
const struct cel_type *cel_type_general(const struct cel_type *a, const struct cel_type *b);
/* With variables replaced by what is known; the others by dyn when `final`. */
const struct cel_type *cel_type_resolve(struct cel_bindings *bindings, const struct cel_type *type,
                                        bool final);
void cel_type_print(struct buf *out, const struct cel_type *type);

#endif
