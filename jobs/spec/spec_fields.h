/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a DraJob document as tables, and the struct that they fill. Private to jobs/spec. */
#ifndef DRARUN_JOBS_SPEC_FIELDS_H
#define DRARUN_JOBS_SPEC_FIELDS_H

#include "jobs/spec/spec.h"
#include "lib/doc/fields.h"

struct spec_raw {
    struct job_spec s;
    const char *api_version, *kind;
    const char *image; /* the short form */
    struct strlist command;
};

extern const struct field_table spec_fields; /* of `spec` alone */

/* Findings beyond the single value: what goes together, names, limits. spec: the node of `spec`;
 * root: of the document, the same node for a spec alone. */
void spec_check(const struct reader_node *root, const struct reader_node *spec,
                struct spec_raw *raw);

/* Those of devices; fills in class and config_driver. */
void spec_check_devices(const struct reader_node *spec, struct job_spec *s);

/* Those of image, command and template; makes the template of the short form. */
void spec_check_template(const struct reader_node *spec, struct spec_raw *raw);

#endif
