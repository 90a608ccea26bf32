/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/programs/commit.h"

const char commit_id[] = "";
