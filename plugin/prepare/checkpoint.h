/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver has promised for a claim, as a file that outlives the plugin: whole and fsynced
 * before the kubelet is answered, gone when all has been taken back. It holds all that
 * Unprepare needs, which must not ask the API: the claim may be gone. One file per claim,
 * DIR/UID.json.
 *
 * Version: `version` is the writer's, `readable` the oldest reader's that can undo it, so that an
 * older plugin after a downgrade takes back what a newer one gave. */
#ifndef DRARUN_PLUGIN_PREPARE_CHECKPOINT_H
#define DRARUN_PLUGIN_PREPARE_CHECKPOINT_H

#include <jansson.h>
#include <stddef.h>
#include "drarun/error.h"
#include "lib/base/cleanup.h"
#include "lib/base/strlist.h"

#define CHECKPOINT_VERSION 1

struct checkpoint_device {
    const char *request, *pool, *device; /* borrowed from the document */
    json_t *order;                       /* to attach it, borrowed; NULL: nothing is attached */
    json_t *record;                      /* device_record, borrowed; NULL: none */
    const char *cdi; /* another's CDI id that gives it, borrowed; NULL: our specification does */
    bool admin;
};

struct checkpoint {
    json_t *document; /* owned */
    const char *namespace_, *name, *uid, *driver;
    const char *boot; /* the node's, when it was written; NULL: not said */
    struct checkpoint_device *devices;
    size_t count;
    json_t *cdi;      /* the specification, borrowed */
    json_t *metadata; /* claim_metadata's list, borrowed; NULL: none */
};

/* A document without devices; NULL: out of memory. */
json_t *checkpoint_document(const char *driver, const char *namespace_, const char *name,
                            const char *uid, const char *pod_uid);
/* order and record may be NULL, else are taken, on failure too. False: out of memory. */
bool checkpoint_add_take(json_t *document, const char *request, const char *pool,
                         const char *device, bool admin, json_t *order, json_t *record);
/* The id that gives the device which was added last. False: out of memory. */
bool checkpoint_set_device_cdi(json_t *document, const char *id);
/* Which boot of the node this is, as boot_id_read() has it. False: out of memory. */
bool checkpoint_set_boot(json_t *document, const char *boot);
/* Whether it was written in this boot; one that does not say counts as such. */
bool checkpoint_of_boot(const struct checkpoint *checkpoint, const char *boot);
/* spec is borrowed. False: out of memory. */
bool checkpoint_set_cdi(json_t *document, json_t *spec);

/* list is borrowed. False: out of memory. */
bool checkpoint_set_metadata(json_t *document, json_t *list);

/* Writes DIR/UID.json with a sum of what is in it. A power cut leaves the file whole or none; it
 * ends what was promised, too (checkpoint_of_boot). */
int checkpoint_save(const json_t *document, const char *dir, const char *uid,
                    struct drarun_error *err);
/* -ENOENT: there is none. -EINVAL: it is damaged. -EPROTO: it is of a newer plugin that says we
 * cannot undo it, and is to be left as it is. The error names the file and what to do. */
int checkpoint_load(const char *dir, const char *uid, struct checkpoint **ret_checkpoint,
                    struct drarun_error *err);
/* What the file holds, whatever that is, for the repair of a damaged one; the caller frees it.
 * NULL: it cannot be read at all. */
char *checkpoint_text(const char *dir, const char *uid);
/* Of the document, which it keeps a reference to. -EINVAL: it is none. */
int checkpoint_of(json_t *document, struct checkpoint **ret_checkpoint, struct drarun_error *err);
/* From text, named in messages; takes nothing. */
int checkpoint_parse(const char *name, const char *text, size_t length,
                     struct checkpoint **ret_checkpoint, struct drarun_error *err);
void checkpoint_free(struct checkpoint *checkpoint);
DEFINE_CLEANUP(struct checkpoint, checkpoint_free)

/* Durably; what is not there is removed. Also what a kill left of one that was being written. */
int checkpoint_remove(const char *dir, const char *uid, struct drarun_error *err);
void checkpoint_path(const char *dir, const char *uid, char *ret_path, size_t size);
/* The UIDs of the files in dir. */
int checkpoint_list(const char *dir, struct strlist *uids, struct drarun_error *err);

/* Removes what writers left that were killed, or lost their power, before their rename: files that
 * have been so for a minute, or since before the node's boot, so that no other instance is at it.
 */
void checkpoint_clean(const char *dir);

/* A Kubernetes UID is a path component here: letters, digits and dashes alone. */
bool checkpoint_uid_valid(const char *uid);

#endif
