/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRARUN_BASE_TERMINAL_H
#define DRARUN_BASE_TERMINAL_H

/* How wide the terminal is; 0: fd is none, or it is not known. */
unsigned terminal_columns(int fd);

#endif
