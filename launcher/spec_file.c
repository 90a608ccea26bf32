/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/spec_file.h"

#include <errno.h>

#include "jobs/k8s_name.h"
#include "jobs/spec_profile.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/doc/load.h"

static int read_document(const struct doc *doc, const struct profiles *profiles,
                         struct job_spec *ret_spec, struct strlist *findings, size_t *ret_total,
                         struct drarun_error *err)
{
    struct reader reader;
    char name[K8S_LABEL_MAX + 1];
    if (doc_count(doc) != 1)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "%s: expected one document, a DraJob; got %zu", doc_name(doc),
                          doc_count(doc));
    spec_default_name(doc_name(doc), name, sizeof name);
    reader_init(&reader, doc, false);
    int rc = spec_check_profile(&reader, 0, profiles, err);
    if (rc == 0)
        rc = spec_read(&reader, 0, name, ret_spec, err);
    strlist_add_all(findings, reader.texts.items);
    *ret_total = reader.findings;
    reader_done(&reader);
    return rc;
}

int spec_file_read(const char *path, const struct profiles *profiles, struct job_spec *ret_spec,
                   struct strlist *findings, size_t *ret_total, struct drarun_error *err)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    size_t total = 0;
    int rc = doc_load(path, NULL, &doc, err);
    if (rc == 0)
        rc = read_document(doc, profiles, ret_spec, findings, &total, err);
    if (rc < 0 && findings->count == 0) { /* not a finding of the reader's */
        strlist_add(findings, err->text);
        total = 1;
    }
    *ret_total = total;
    return rc;
}

int spec_file_load(const char *path, const struct profiles *profiles, struct job_spec *ret_spec)
{
    struct strlist findings = STRLIST_INIT;
    struct drarun_error err = {0};
    size_t total = 0;
    int rc = spec_file_read(path, profiles, ret_spec, &findings, &total, &err);
    for (size_t i = 0; rc < 0 && i < findings.count; i++)
        log_error("%s", findings.items[i]);
    if (total > findings.count)
        log_error("%s: %zu more", path, total - findings.count);
    strlist_done(&findings);
    return rc < 0 ? error_exit_status(err.kind) : 0;
}
