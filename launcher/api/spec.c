/* SPDX-License-Identifier: Apache-2.0 */
/* What a spec tells; launcher/files/spec_file.c reads it. */
#include "drarun/spec.h"

#include "launcher/files/spec_file.h"
#include "lib/base/c_numbers.h"
#include "lib/base/buf.h"

const char *drarun_spec_name(const struct drarun_spec *spec)
{
    return spec->job.name;
}

const char *drarun_spec_namespace(const struct drarun_spec *spec)
{
    return spec->job.namespace;
}

unsigned drarun_spec_workers(const struct drarun_spec *spec)
{
    return spec->job.workers;
}

char *drarun_spec_json(const struct drarun_spec *spec)
{
    C_NUMBERS;
    return json_dumps(spec->job.document, JSON_INDENT(2));
}

static void add_devices(struct buf *out, const struct spec_devices *d, const char *kind)
{
    if (d->all)
        buf_printf(out, ", all %ss", kind);
    else if (d->count)
        buf_printf(out, ", %u %s%s each", d->count, kind, d->count == 1 ? "" : "s");
}

char *drarun_spec_summary(const struct drarun_spec *spec)
{
    C_NUMBERS;
    const struct job_spec *job = &spec->job;
    struct buf out = BUF_INIT;
    buf_printf(&out, "job %s, %u worker%s", job->name, job->workers, job->workers == 1 ? "" : "s");
    for (uint32_t r = 0; r < job->role_count; r++) {
        const struct spec_role *role = &job->roles[r];
        if (spec_has_roles(job))
            buf_printf(&out, ", %u of role %s", role->workers, role->name);
        add_devices(&out, &role->gpus, "GPU");
        add_devices(&out, &role->nics, "NIC");
        if (role->cpus.class)
            buf_printf(&out, ", %u CPUs each", role->cpu_count);
    }
    if (job->compute_domain)
        buf_add_str(&out, ", a ComputeDomain");
    if (job->suspend)
        buf_printf(&out, ", suspended until spec.suspend is false%s",
                   job->queue ? ", which its queue does not change" : "");
    return buf_take(&out);
}
