/* SPDX-License-Identifier: Apache-2.0 */
/* What happens when there is no memory for a JSON value. */
#ifndef DRARUN_DOC_JSON_MEMORY_H
#define DRARUN_DOC_JSON_MEMORY_H

/* From now on the process ends with status 70 and a message as soon as jansson gets no memory: no
 * document lacks a part, and no caller of a setter has to check it. For programs alone, at the
 * start of main: it holds for the whole process. Libraries check what they build. */
void json_memory_end_without(void);

#endif
