/* SPDX-License-Identifier: Apache-2.0 */
/* A job's key from a file, a descriptor or the environment: 64 hexadecimal digits (a final newline
 * may follow) or, but for the environment, exactly 32 bytes. */
#ifndef DRARUN_WIRE_KEY_FILE_H
#define DRARUN_WIRE_KEY_FILE_H

#include "drarun/error.h"
#include "lib/wire/tls.h"

/* Refuses a file that others may read, kind DRARUN_ERR_USAGE, with what to do. */
int key_file_read(const char *path, struct tls_key *ret_key, struct drarun_error *err);
/* From a variable of our environment, which is wiped there (/proc/PID/environ shows it no more) and
 * unset, whether it is a key or not. -ENOENT when it is not set. Only while there is one thread. */
int key_env_take(const char *name, struct tls_key *ret_key, struct drarun_error *err);
/* Reads to the end of fd, which stays open. what names it in errors. */
int key_fd_read(int fd, const char *what, struct tls_key *ret_key, struct drarun_error *err);

#endif
