/* SPDX-License-Identifier: Apache-2.0 */
/* Rules S1 to S6 of docs/design/017-derivation-rules.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "jobs/derive/pairing/score.h"
#include "lib/base/cleanup.h"

struct use { /* of one GPU */
    uint8_t path;
    bool gdr;
    uint8_t count, nics[4];
};

struct row {
    const char *rule;
    double gbs[4]; /* of each NIC, to the first 0 */
    double inter_socket;
    bool arm;
    struct use gpus[4]; /* to the first without NICs */
    double want;
};

#define ON(path, ...)                                                                              \
    {                                                                                              \
        NCCL_PATH_##path, true, sizeof((uint8_t[]){__VA_ARGS__}),                                  \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define OFF(path, ...)                                                                             \
    {                                                                                              \
        NCCL_PATH_##path, false, sizeof((uint8_t[]){__VA_ARGS__}),                                 \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static const struct row table[] = {
    {"S1 PIX", {50}, 22, false, {ON(PIX, 0)}, 1},
    {"S1 PXB", {50}, 22, false, {ON(PXB, 0)}, 1},
    {"S1 P2C", {50}, 6, true, {ON(P2C, 0)}, 1},
    {"S1 PXN", {50, 50}, 22, false, {ON(PIX, 0), ON(PXN, 1)}, 1},
    {"S1 PHB", {50}, 22, false, {ON(PHB, 0)}, 0.7},
    {"S1 SYS", {20}, 22, false, {OFF(SYS, 0)}, 0.5},
    {"S2 two share one", {50}, 22, false, {ON(PIX, 0), ON(PIX, 0)}, 0.5},
    {"S2 a share of two", {50, 50}, 22, false, {ON(PIX, 0, 1), ON(PIX, 0, 1)}, 1},
    {"S2 two for one do not count twice", {50, 50}, 22, false, {ON(PIX, 0, 1)}, 1},
    {"S2 two slow ones do", {50, 25, 25}, 22, false, {ON(PIX, 0), ON(PIX, 1, 2)}, 1},
    {"S2 against the fastest", {50, 25}, 22, false, {ON(PIX, 0), ON(PIX, 1)}, 0.75},
    {"S3 the link carries all that crosses",
     {50, 50, 50, 50},
     40,
     false,
     {OFF(SYS, 0), OFF(SYS, 1), OFF(SYS, 2), OFF(SYS, 3)},
     0.2},
    {"S3 but not the rest", {50, 50}, 10, false, {ON(PIX, 0), OFF(SYS, 1)}, 0.6},
    {"S3 no cap on Arm", {50, 50}, 6, true, {OFF(SYS, 0), OFF(SYS, 1)}, 0.5},
    {"S4 P2C without GPUDirect", {50}, 6, true, {OFF(P2C, 0)}, 0.8},
    {"S4 PIX without GPUDirect", {50}, 22, false, {OFF(PIX, 0)}, 0.7},
    {"S4 PHB without GPUDirect", {50}, 22, false, {OFF(PHB, 0)}, 0.7},
};

static void rows(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct row *row = &table[i];
        struct plan_nic nics[4] = {0};
        struct nccl_model model = {.inter_socket = row->inter_socket};
        struct nccl_result result = {0};
        struct devices devices = {.nics = nics};
        for (size_t n = 0; n < 4 && row->gbs[n] > 0; n++)
            nics[devices.nic_count++].gbs = row->gbs[n];
        for (size_t g = 0; g < 4 && row->gpus[g].path; g++) {
            const struct use *use = &row->gpus[g];
            devices.gpu_count += use->count > 0;
            result.count[g] = use->count;
            for (size_t n = 0; n < use->count; n++)
                result.use[g][n] = (struct nccl_use){use->nics[n], use->path, use->gdr};
        }
        double got = score_of(&devices, &model, &result, row->arm);
        if (fabs(got - row->want) > 1e-9)
            fail_msg("%s: expected %g, got %g", row->rule, row->want, got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows)};
    return cmocka_run_group_tests_name("score", tests, NULL, NULL);
}
