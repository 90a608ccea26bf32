/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/machine.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/number.h"

int bench_machine_nic_gbit(void *target, const char *shown, const char *value,
                           struct drarun_error *err)
{
    struct bench_machine *m = target;
    return amount_parse(shown, value, 1e5, "Gb/s", &m->given.nic_gbit, err);
}

int bench_machine_link(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct bench_machine *m = target;
    return amount_parse(shown, value, 1e6, "GB/s", &m->given.link_gbs, err);
}

static int check_name(const struct bench_machine *m, struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf names = BUF_INIT;
    for (size_t i = 0; m->machine && i < m->known.count; i++) {
        if (strcmp(m->known.list[i].name, m->machine) == 0)
            return 0;
        buf_printf(&names, "%s%s", i ? ", " : "", m->known.list[i].name);
    }
    return m->machine
               ? error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--machine %s: expected one of %s",
                            m->machine, names.data ? names.data : "none")
               : 0;
}

int bench_machine_ready(struct bench_machine *m, struct drarun_error *err)
{
    struct result name = {0};
    if (m->collective)
        result_name_collective(&name, m->collective);
    if (m->collective && !name.collective[0])
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--collective %s: no such collective",
                          m->collective);
    int rc = results_known(m->known_file, &m->known, err);
    return rc < 0 ? rc : check_name(m, err);
}

void bench_machine_done(struct bench_machine *m)
{
    strlist_done(&m->logs);
    known_done(&m->known);
}

int bench_machine_judge(const struct bench_machine *m, struct run *run,
                        const struct verdict_demands *demands, struct verdict *ret_verdict,
                        struct drarun_error *err)
{
    const struct known_machine *machine = known_find(&m->known, m->machine, &run->result);
    struct limit_given given = m->given;
    int rc = 0;
    given.known = machine || m->machine ? NULL : &m->known;
    for (size_t i = 0; rc == 0 && i < m->logs.count; i++)
        rc = results_read_log(m->logs.items[i], run, err);
    if (rc < 0)
        return rc;
    if (m->collective)
        result_name_collective(&run->result, m->collective);
    verdict_make(run, machine, &given, demands, ret_verdict);
    return 0;
}
