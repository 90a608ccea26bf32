/* SPDX-License-Identifier: Apache-2.0 */
/* Anybody's log with lines of NCCL's: sums agree with the lines, and what is said of it has no byte
 * that is not text. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/bench/nccl_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sums(const struct nccl_report *r)
{
    size_t ends = 0, gpu = 0;
    for (size_t i = 0; i < r->host_count; i++)
        for (size_t n = 0; n < r->hosts[i].nic_count; n++) {
            ends += r->hosts[i].nics[n].ends;
            gpu += r->hosts[i].nics[n].gpu;
        }
    size_t sum = r->rdma + r->tcp + r->unproven + r->within.net;
    if (ends != r->link_count || gpu > ends || sum > ends || r->rdma_gpu > r->rdma ||
        (ends > 0) != (sum > 0) || r->host_count > r->lines)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nccl_report report;
    const struct strlist failures = STRLIST_INIT;
    struct buf out = BUF_INIT;
    if (nccl_report_read((const char *)data, size, "fuzz", &report, NULL) == 0) {
        check_sums(&report);
        nccl_report_text(&report, &failures, &out);
        json_t *json = nccl_report_json(&report, &failures);
        if (!json || !out.data)
            abort();
        for (size_t i = 0; i < out.len; i++)
            if (out.data[i] != '\n' && (out.data[i] < ' ' || out.data[i] > '~'))
                abort();
        json_decref(json);
    }
    buf_done(&out);
    nccl_report_done(&report);
    return 0;
}
