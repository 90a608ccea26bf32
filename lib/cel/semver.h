/* SPDX-License-Identifier: Apache-2.0 */
/* Semantic versions, after github.com/blang/semver/v4 as the API server uses it. */
#ifndef DRARUN_CEL_SEMVER_H
#define DRARUN_CEL_SEMVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/cel/arena.h"

struct cel_semver {
    uint64_t major, minor, patch;
    const char *pre; /* "alpha.1"; pre_len 0: a release */
    size_t pre_len;
};

/* 0, -EINVAL: not a version, -ENOMEM. normalize: "v1.02" is 1.2.0. The parts lie in the arena. */
int cel_semver_parse(struct cel_arena *arena, const char *text, size_t len, bool normalize,
                     struct cel_semver *ret_version);
/* Build metadata does not count. */
int cel_semver_compare(const struct cel_semver *a, const struct cel_semver *b);

#endif
