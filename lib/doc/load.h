/* SPDX-License-Identifier: Apache-2.0 */
/* A document from a file. Reads the file system; everything else of lib/doc is pure. */
#ifndef DRARUN_DOC_LOAD_H
#define DRARUN_DOC_LOAD_H

#include "lib/base/buf.h"
#include "lib/doc/doc.h"

/* path "-": standard input, called <stdin>. Links are followed: files from ConfigMaps are links.
 * limits: NULL for the default. A file that cannot be read is an error of kind DRARUN_ERR_SPEC. */
int doc_load(const char *path, const struct doc_limits *limits, struct doc **ret_doc,
             struct drarun_error *err);

/* As doc_load with the default limits; -EINVAL when the file holds none or several. */
int doc_load_one(const char *path, struct doc **ret_doc, struct drarun_error *err);

/* The text alone, appended to text, which the caller frees also on failure. */
int doc_read(const char *path, const struct doc_limits *limits, struct buf *text,
             struct drarun_error *err);

#endif
