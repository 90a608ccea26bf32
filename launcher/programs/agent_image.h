/* SPDX-License-Identifier: Apache-2.0 */
/* Which image holds agent and launcher: the same answer for verbs and library. */
#ifndef DRARUN_LAUNCHER_AGENT_IMAGE_H
#define DRARUN_LAUNCHER_AGENT_IMAGE_H

/* said: what the caller was told, or NULL. Else $DRARUN_IMAGE, where it is set and not empty; NULL:
 * that of this version (RENDER_IMAGE). Borrowed. */
const char *agent_image(const char *said);

#endif
