/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing on a real GPU; tests/test_gpu.py runs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "benchmarks/bench/cuda_compare.h"
#include "lib/base/cleanup.h"

#define BYTES ((size_t)3 << 20)

static struct cuda_api cuda;
static struct cuda_compare compare;
static char *a, *b;

static void write_byte(char *to, unsigned char byte)
{
    assert_int_equal(cuda.cudaMemcpyAsync(to, &byte, 1, CUDA_COPY_ANY, NULL), CUDA_SUCCESS);
    assert_int_equal(cuda.cudaStreamSynchronize(NULL), CUDA_SUCCESS);
}

static int open_gpu(void **state)
{
    struct drarun_error err = {0};
    (void)state;
    if (cuda_api_open(&cuda, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    cleanup_free char *both = calloc(1, BYTES);
    cuda_compare_open(&cuda, &compare);
    return both && cuda.cudaSetDevice(0) == CUDA_SUCCESS &&
                   cuda.cudaMalloc((void **)&a, BYTES) == CUDA_SUCCESS &&
                   cuda.cudaMalloc((void **)&b, BYTES) == CUDA_SUCCESS &&
                   cuda.cudaMemcpyAsync(a, both, BYTES, CUDA_COPY_ANY, NULL) == CUDA_SUCCESS &&
                   cuda.cudaMemcpyAsync(b, both, BYTES, CUDA_COPY_ANY, NULL) == CUDA_SUCCESS &&
                   cuda.cudaStreamSynchronize(NULL) == CUDA_SUCCESS
               ? 0
               : -1;
}

static int close_gpu(void **state)
{
    (void)state;
    cuda.cudaFree(a);
    cuda.cudaFree(b);
    cuda_compare_close(&compare);
    return 0;
}

static void test_kernel_is_there(void **state)
{
    (void)state;
    assert_non_null(compare.kernel);
    assert_true(cuda_compare_same(&compare, a, b, BYTES, NULL));
    assert_true(cuda_compare_same(&compare, a, a, 0, NULL));
}

static void test_one_byte_is_seen(void **state)
{
    static const size_t places[] = {0, 1, 255, 256, 257, 1 << 20, (1 << 20) + 1, BYTES - 1};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        write_byte(b + places[i], 0x10);
        assert_false(cuda_compare_same(&compare, a, b, BYTES, NULL));
        assert_true(cuda_compare_same(&compare, a, b, places[i], NULL));
        write_byte(b + places[i], 0);
        assert_true(cuda_compare_same(&compare, a, b, BYTES, NULL));
    }
}

static void test_any_address(void **state)
{
    (void)state;
    write_byte(b + 12, 0x80);
    for (size_t shift = 1; shift <= 9; shift++) {
        assert_true(cuda_compare_same(&compare, a + shift, b + 13, 1000, NULL));
        assert_false(cuda_compare_same(&compare, a + shift, b + 12, 1, NULL));
    }
    write_byte(b + 12, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_is_there),
        cmocka_unit_test(test_one_byte_is_seen),
        cmocka_unit_test(test_any_address),
    };
    return cmocka_run_group_tests(tests, open_gpu, close_gpu);
}
