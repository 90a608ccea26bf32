/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRARUN_PROGRAM_STATIC_SETUP_H
#define DRARUN_PROGRAM_STATIC_SETUP_H

/* Before anything looks up a name or sets up TLS: a program that is linked static must not load
 * modules of this machine's C library and OpenSSL, which may be other versions than its own.
 * Nothing in one that is not static. */
void static_setup(void);

#endif
