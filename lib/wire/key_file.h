/* SPDX-License-Identifier: Apache-2.0 */
/* A job's key from a file or a descriptor: 64 hexadecimal digits (a final newline may follow) or
 * exactly 32 bytes. */
#ifndef DRARUN_WIRE_KEY_FILE_H
#define DRARUN_WIRE_KEY_FILE_H

#include "drarun/error.h"
#include "lib/wire/tls.h"

/* Refuses a file that others may read, kind DRARUN_ERR_USAGE, with what to do. */
int key_file_read(const char *path, struct tls_key *ret_key, struct drarun_error *err);
/* Reads to the end of fd, which stays open. what names it in errors. */
int key_fd_read(int fd, const char *what, struct tls_key *ret_key, struct drarun_error *err);

#endif
