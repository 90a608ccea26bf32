/* SPDX-License-Identifier: Apache-2.0 */
/* The commit that this program was built of (cmake/Commit.cmake). Only drarun has it. The other
 * programs of main.c, which are never asked for it, have without_commit.c, so that no commit links
 * them again. */
#ifndef DRARUN_LAUNCHER_COMMIT_H
#define DRARUN_LAUNCHER_COMMIT_H

/* In hexadecimal; "": not known. */
extern const char commit_id[];

#endif
