/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of a library's answers. The library is a table of functions here; as a file it is
 * plugin/discover/test/nvml. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "plugin/nvml/told.h"

#define GPUS_MAX 300

struct fake_gpu {
    int open;  /* the code of by_index */
    char *bus; /* "": the library does not say */
    char *name, *uuid;
    unsigned minor, architecture, links, mig_mode, migs;
    unsigned long long memory;
    bool lost;
};

static struct {
    struct fake_gpu gpus[GPUS_MAX];
    unsigned count;
    int count_code, cuda, major, code; /* code: of everything that may be unknown */
    struct nvml_event events[8];
    int codes[8]; /* of events_wait */
    unsigned event_count, waited, sets, added, freed;
    int set_code;
} fake;

static nvml_handle handle_of(struct fake_gpu *gpu)
{
    return (nvml_handle)gpu;
}

static struct fake_gpu *gpu_of(nvml_handle handle)
{
    return (struct fake_gpu *)handle;
}

static int fake_count(unsigned *ret)
{
    *ret = fake.count;
    return fake.count_code;
}

static int fake_by_index(unsigned i, nvml_handle *ret)
{
    *ret = handle_of(&fake.gpus[i]);
    return fake.gpus[i].open;
}

static int fake_pci(nvml_handle handle, struct nvml_pci *ret)
{
    if (gpu_of(handle)->lost)
        return NVML_GPU_IS_LOST;
    snprintf(ret->bus_id, sizeof ret->bus_id, "%s", gpu_of(handle)->bus);
    return NVML_OK;
}

static int fake_driver(char *text, unsigned size)
{
    snprintf(text, size, "580.126.09");
    return fake.code;
}

static int fake_cuda(int *ret)
{
    *ret = fake.cuda;
    return fake.code;
}

static int fake_name(nvml_handle handle, char *text, unsigned size)
{
    memset(text, 'x', size); /* a library that does not end its text */
    if (strlen(gpu_of(handle)->name) < size)
        memcpy(text, gpu_of(handle)->name, strlen(gpu_of(handle)->name) + 1);
    return fake.code;
}

static int fake_uuid(nvml_handle handle, char *text, unsigned size)
{
    snprintf(text, size, "%s", gpu_of(handle)->uuid);
    return fake.code;
}

static int fake_minor(nvml_handle handle, unsigned *ret)
{
    *ret = gpu_of(handle)->minor;
    return fake.code;
}

static int fake_memory(nvml_handle handle, struct nvml_memory *ret)
{
    ret->total = gpu_of(handle)->memory;
    return fake.code;
}

static int fake_architecture(nvml_handle handle, unsigned *ret)
{
    *ret = gpu_of(handle)->architecture;
    return fake.code;
}

static int fake_compute(nvml_handle handle, int *major, int *minor)
{
    (void)handle;
    *major = fake.major;
    *minor = 3;
    return fake.code;
}

static int fake_nvlink(nvml_handle handle, unsigned link, unsigned *ret)
{
    unsigned links = gpu_of(handle)->links;
    *ret = link < links;
    if (links == 99) /* one that says something else */
        *ret = 2;
    return link < 18 ? fake.code : NVML_NOT_FOUND;
}

static int fake_mig_mode(nvml_handle handle, unsigned *on, unsigned *pending)
{
    *on = gpu_of(handle)->mig_mode;
    *pending = 1;
    return fake.code;
}

static int fake_mig_count(nvml_handle handle, unsigned *ret)
{
    *ret = gpu_of(handle)->migs;
    return NVML_OK;
}

/* The MIG devices of a GPU are the fakes behind it. */
static int fake_mig_by_index(nvml_handle handle, unsigned i, nvml_handle *ret)
{
    *ret = handle_of(gpu_of(handle) + 1 + i);
    return (gpu_of(handle) + 1 + i)->open;
}

static int fake_mig_gi(nvml_handle handle, unsigned *ret)
{
    *ret = gpu_of(handle)->minor;
    return gpu_of(handle)->lost ? NVML_NOT_SUPPORTED : NVML_OK;
}

static int fake_mig_ci(nvml_handle handle, unsigned *ret)
{
    *ret = gpu_of(handle)->links;
    return NVML_OK;
}

static int fake_mig_attributes(nvml_handle handle, struct nvml_mig_attributes *ret)
{
    ret->memory_mib = gpu_of(handle)->memory;
    return NVML_OK;
}

static int fake_events_new(nvml_event_set *ret)
{
    fake.sets++;
    *ret = (nvml_event_set)&fake;
    return fake.set_code;
}

static int fake_events_add(nvml_handle handle, unsigned long long type, nvml_event_set set)
{
    assert_ptr_equal(set, &fake);
    assert_true(type == 8);
    fake.added++;
    return gpu_of(handle)->mig_mode ? NVML_NOT_SUPPORTED : NVML_OK;
}

static int fake_events_wait(nvml_event_set set, struct nvml_event *ret, unsigned ms)
{
    assert_ptr_equal(set, &fake);
    assert_int_equal(ms, 0);
    if (fake.waited == fake.event_count)
        return NVML_TIMEOUT;
    unsigned i = fake.waited++ % 8;
    *ret = fake.events[i];
    return fake.codes[i];
}

static int fake_events_free(nvml_event_set set)
{
    assert_ptr_equal(set, &fake);
    fake.freed++;
    return NVML_OK;
}

static struct told told(void)
{
    return (struct told){.lib.f = {.count = fake_count,
                                   .by_index = fake_by_index,
                                   .pci = fake_pci,
                                   .driver_version = fake_driver,
                                   .cuda_version = fake_cuda,
                                   .name = fake_name,
                                   .uuid = fake_uuid,
                                   .minor = fake_minor,
                                   .memory = fake_memory,
                                   .architecture = fake_architecture,
                                   .compute = fake_compute,
                                   .nvlink = fake_nvlink,
                                   .mig_mode = fake_mig_mode,
                                   .mig_count = fake_mig_count,
                                   .mig_by_index = fake_mig_by_index,
                                   .mig_gi = fake_mig_gi,
                                   .mig_ci = fake_mig_ci,
                                   .mig_attributes = fake_mig_attributes,
                                   .events_new = fake_events_new,
                                   .events_add = fake_events_add,
                                   .events_wait = fake_events_wait,
                                   .events_free = fake_events_free}};
}

static char bus0[] = "00000000:8F:00.0", bus1[] = "00000000:90:00.0", none[] = "", gpu_name[] = "G",
            gpu_uuid[] = "GPU-a";

static int set_up(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    for (size_t i = 0; i < GPUS_MAX; i++)
        fake.gpus[i] = (struct fake_gpu){
            .bus = i == 1 ? bus1 : bus0, .name = gpu_name, .uuid = gpu_uuid, .minor = (unsigned)i};
    return 0;
}

static void check_take(json_t *json, const char *expected)
{
    cleanup_free char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(json);
    assert_string_equal(text, expected);
}

static void gpus_are_told_whole(void **state)
{
    char text[] = "NVIDIA \x01\x7f\xc3 B200~ ";
    struct told t = told();
    (void)state;
    fake.count = 2;
    fake.cuda = 12080;
    fake.major = 10;
    fake.gpus[0].name = text;
    fake.gpus[0].architecture = 10;
    fake.gpus[0].links = 18;
    fake.gpus[0].memory = 1ull << 40;
    fake.gpus[1].architecture = 11; /* of a later library */
    fake.gpus[1].minor = 10000;
    fake.gpus[1].links = 99;
    check_take(told_gpus(&t),
               "[{\"architecture\":\"Blackwell\",\"busID\":\"0000:8f:00.0\",\"compute\":\"10.3.0\","
               "\"cudaVersion\":\"12.8.0\",\"driverVersion\":\"580.126.09\","
               "\"memory\":1099511627776,\"mig\":false,\"minor\":0,\"nvlinks\":18,"
               "\"product\":\"NVIDIA ??? B200~ \",\"uuid\":\"GPU-a\"},"
               "{\"busID\":\"0000:90:00.0\",\"compute\":\"10.3.0\",\"cudaVersion\":\"12.8.0\","
               "\"driverVersion\":\"580.126.09\",\"memory\":0,\"mig\":false,\"nvlinks\":0,"
               "\"product\":\"G\",\"uuid\":\"GPU-a\"}]");
}

static void architectures_have_names(void **state)
{
    static const char *const names[] = {NULL,           NULL,     "Kepler",    "Maxwell",
                                        "Pascal",       "Volta",  "Turing",    "Ampere",
                                        "Ada Lovelace", "Hopper", "Blackwell", NULL};
    struct told t = told();
    (void)state;
    fake.count = ARRAY_LEN(names);
    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        fake.gpus[i].architecture = i;
    CLEANUP(json_decrefp) json_t *gpus = told_gpus(&t);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *name =
            json_string_value(json_object_get(json_array_get(gpus, i), "architecture"));
        assert_int_equal(name != NULL, names[i] != NULL);
        if (name)
            assert_string_equal(name, names[i]);
    }
}

/* What the library does not tell is left out. */
static void unknown_is_left_out(void **state)
{
    static const char least[] = "[{\"busID\":\"0000:8f:00.0\",\"mig\":false,\"nvlinks\":0}]";
    struct told t = told();
    struct told old = {.lib.f = {.count = fake_count, .by_index = fake_by_index, .pci = fake_pci}};
    (void)state;
    fake.count = 1;
    fake.code = NVML_NOT_SUPPORTED;
    fake.cuda = 12080;
    fake.gpus[0].mig_mode = 1;
    fake.gpus[0].links = 18;
    check_take(told_gpus(&t), least);
    check_take(told_gpus(&old), least);
    fake.code = NVML_OK; /* empty texts and no version of CUDA */
    fake.gpus[0].name = none;
    fake.gpus[0].uuid = none;
    fake.gpus[0].mig_mode = 0;
    fake.cuda = 0;
    check_take(told_gpus(&t), "[{\"busID\":\"0000:8f:00.0\",\"compute\":\"0.3.0\","
                              "\"driverVersion\":\"580.126.09\",\"memory\":0,\"mig\":false,"
                              "\"minor\":0,\"nvlinks\":18}]");
}

/* One that is there and cannot be opened is an empty object; one that may be another's is none. */
static void gpus_that_cannot_be_opened(void **state)
{
    struct told t = told();
    (void)state;
    t.lib.f =
        (struct nvml_functions){.count = fake_count, .by_index = fake_by_index, .pci = fake_pci};
    fake.count = 4;
    fake.gpus[0].open = NVML_GPU_IS_LOST;
    fake.gpus[2].open = NVML_NO_PERMISSION;
    fake.gpus[3].bus = none;
    check_take(told_gpus(&t), "[{},{\"busID\":\"0000:90:00.0\",\"mig\":false,\"nvlinks\":0},{}]");
    fake.count = 0;
    check_take(told_gpus(&t), "[]");
    fake.count_code = NVML_NOT_SUPPORTED; /* which is not to have none */
    assert_null(told_gpus(&t));
    fake.count_code = NVML_OK;
    fake.count = GPUS_MAX;
    fake.gpus[2].open = NVML_OK;
    CLEANUP(json_decrefp) json_t *gpus = told_gpus(&t);
    assert_int_equal(json_array_size(gpus), 256);
}

static void mig_devices_are_told(void **state)
{
    char one[] = "NVIDIA A100-SXM4-40GB MIG 1g.5gb", other[] = "NVIDIA A100", uuid[] = "MIG-b";
    struct told t = told();
    (void)state;
    t.lib.f.nvlink = NULL;
    t.lib.f.driver_version = NULL;
    t.lib.f.compute = NULL;
    fake.count = 1;
    fake.gpus[0].mig_mode = 1;
    fake.gpus[0].migs = 4;
    fake.gpus[1] = (struct fake_gpu){.name = one, .uuid = uuid, .minor = 7, .links = 2};
    fake.gpus[1].memory = 4864;
    fake.gpus[2].open = NVML_NOT_FOUND; /* places that are empty */
    fake.gpus[3].lost = true;
    fake.gpus[4].name = other; /* without a profile */
    check_take(told_gpus(&t), "[{\"busID\":\"0000:8f:00.0\",\"memory\":0,\"mig\":true,\"migs\":["
                              "{\"ci\":2,\"gi\":7,\"memory\":5100273664,\"profile\":\"1g.5gb\","
                              "\"uuid\":\"MIG-b\"},"
                              "{\"ci\":0,\"gi\":4,\"memory\":0,\"uuid\":\"GPU-a\"}],"
                              "\"minor\":0,\"nvlinks\":0,\"product\":\"G\",\"uuid\":\"GPU-a\"}]");
    fake.gpus[0].migs = 100;
    CLEANUP(json_decrefp) json_t *gpus = told_gpus(&t);
    json_t *migs = json_object_get(json_array_get(gpus, 0), "migs");
    assert_int_equal(json_array_size(migs), 64 - 2); /* of 64, and two are empty */
}

static void event(unsigned gpu, unsigned long long type, unsigned long long number, int code)
{
    fake.codes[fake.event_count] = code;
    fake.events[fake.event_count++] =
        (struct nvml_event){.device = handle_of(&fake.gpus[gpu]), .type = type, .data = number};
}

static void errors_are_told_once(void **state)
{
    struct told t = told();
    (void)state;
    fake.count = 2;
    fake.gpus[2].bus = none;
    check_take(told_xids(&t), "[]"); /* begins to listen */
    assert_int_equal(fake.added, 2);
    event(1, 8, 48, NVML_OK);
    event(0, 1, 13, NVML_OK); /* something else */
    event(2, 8, 31, NVML_OK); /* of a GPU whose address nobody knows */
    event(3, 8 | 1, 63, NVML_OK);
    check_take(told_xids(&t), "[{\"busID\":\"0000:90:00.0\",\"xid\":48},"
                              "{\"busID\":\"0000:8f:00.0\",\"xid\":63}]");
    check_take(told_xids(&t), "[]");
    assert_int_equal(fake.sets, 1);
    assert_int_equal(fake.freed, 0);
    fake.event_count = 1000; /* more than one answer holds */
    fake.waited = 0;
    for (size_t i = 0; i < 8; i++)
        fake.events[i] = fake.events[0];
    json_t *xids = told_xids(&t);
    assert_int_equal(json_array_size(xids), 64);
    json_decref(xids);
    assert_int_equal(fake.waited, 64);
}

/* The address is the one of before; the others get a set of their own. */
static void lost_gpus_are_told(void **state)
{
    struct told t = told();
    (void)state;
    fake.count = 2;
    check_take(told_xids(&t), "[]");
    fake.gpus[1].lost = true;
    event(0, 8, 48, NVML_OK);
    event(0, 0, 0, NVML_GPU_IS_LOST);
    check_take(told_xids(&t), "[{\"busID\":\"0000:8f:00.0\",\"xid\":48},"
                              "{\"busID\":\"0000:90:00.0\",\"xid\":79}]");
    assert_int_equal(fake.freed, 1);
    assert_null(t.events);
    check_take(told_xids(&t), "[]");
    assert_int_equal(fake.sets, 2);
    assert_int_equal(t.gpu_count, 1);
}

static void library_that_is_deaf(void **state)
{
    struct told t = told(), old = {.lib.f = {.count = fake_count}};
    (void)state;
    fake.count = 1;
    fake.set_code = NVML_NOT_SUPPORTED;
    for (int i = 0; i < 2; i++) {
        check_take(told_xids(&t), "[]");
        check_take(told_xids(&old), "[]");
    }
    assert_int_equal(fake.sets, 1); /* it is not asked again */
    assert_true(t.deaf && old.deaf);
}

/* Without a GPU to listen to there may be one by the next call. */
static void gpus_that_come_later(void **state)
{
    struct told t = told();
    (void)state;
    fake.count = 1;
    fake.gpus[0].mig_mode = 1; /* which has no events */
    check_take(told_xids(&t), "[]");
    assert_int_equal(fake.freed, 1);
    assert_false(t.deaf);
    fake.count_code = NVML_NOT_SUPPORTED;
    fake.gpus[0].mig_mode = 0;
    check_take(told_xids(&t), "[]");
    assert_int_equal(fake.freed, 2);
    fake.count_code = NVML_OK;
    event(0, 8, 94, NVML_OK);
    check_take(told_xids(&t), "[{\"busID\":\"0000:8f:00.0\",\"xid\":94}]");
    assert_int_equal(fake.sets, 3);
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(gpus_are_told_whole),  CASE(architectures_have_names),
        CASE(unknown_is_left_out),  CASE(gpus_that_cannot_be_opened),
        CASE(mig_devices_are_told), CASE(errors_are_told_once),
        CASE(lost_gpus_are_told),   CASE(library_that_is_deaf),
        CASE(gpus_that_come_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
