/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of one worker: from claims and slices, with what its pod shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/derive/inventory/inventory.h"
#include "lib/base/cleanup.h"

#define SLICE(driver, devices)                                                                     \
    "{\"kind\": \"ResourceSlice\", \"metadata\": {\"name\": \"" driver "\"}, \"spec\": "           \
    "{\"driver\": \"" driver "\", \"nodeName\": \"n\", \"pool\": {\"name\": \"n\", "               \
    "\"generation\": 1, \"resourceSliceCount\": 1}, \"devices\": [" devices "]}}"
#define GPU(name, pci)                                                                             \
    "{\"name\": \"" name "\", \"attributes\": {\"type\": {\"string\": \"gpu\"}, "                  \
    "\"pciBusID\": {\"string\": \"" pci "\"}}}"
#define NIC(name, pci)                                                                             \
    "{\"name\": \"" name "\", \"attributes\": {\"dra.net/rdma\": {\"bool\": true}, "               \
    "\"dra.net/pciAddress\": {\"string\": \"" pci "\"}}}"
#define SLICES                                                                                     \
    "[" SLICE("gpu.nvidia.com",                                                                    \
              GPU("g1", "0000:43:00.0") ", " GPU(                                                  \
                  "g0", "0000:1b:00.0")) ", " SLICE("dra.net",                                     \
                                                    NIC("a", "0000:18:00.0") ", " NIC(             \
                                                        "b", "0000:40:00.0")) "]"
#define RESULT(driver, device)                                                                     \
    "{\"request\": \"r\", \"driver\": \"" driver "\", \"pool\": \"n\", \"device\": \"" device "\"" \
    "}"
#define CLAIM(status)                                                                              \
    "[{\"kind\": \"ResourceClaim\", \"metadata\": {\"name\": \"c\"}, \"status\": {" status "}}]"
#define ALLOCATED(results) CLAIM("\"allocation\": {\"devices\": {\"results\": [" results "]}}")
#define IBDEV(name, pci, more)                                                                     \
    "\"" name "\": {\"pci\": \"" pci "\", \"port\": 1, \"linkLayer\": \"InfiniBand\", "            \
    "\"speedMbps\": 400000" more "}"

static const char all[] = ALLOCATED(RESULT("gpu.nvidia.com", "g1") ", " RESULT(
    "gpu.nvidia.com", "g0") ", " RESULT("dra.net", "b") ", " RESULT("dra.net", "a"));

struct fixture {
    json_t *claims, *slices_json, *probe;
    struct slices slices;
    struct plan_notes notes;
    struct inventory inventory;
    struct drarun_error err;
};

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    if (!json)
        fail_msg("%s: %s", error.text, text);
    return json;
}

static int read_worker_of(struct fixture *f, const char *slices, const char *claims,
                          const char *probe)
{
    *f = (struct fixture){.claims = parse(claims), .slices_json = parse(slices)};
    f->probe = probe ? parse(probe) : NULL;
    assert_int_equal(slices_read(f->slices_json, &f->slices, NULL), 0);
    const struct plan_worker_input worker = {.pod = "w-0", .claims = f->claims, .probe = f->probe};
    const struct plan_input input = {.slices = &f->slices, .workers = &worker, .worker_count = 1};
    return inventory_read(&input, 0, &f->notes, &f->inventory, &f->err);
}

/* probe: NULL: nothing was probed. */
static int read_worker(struct fixture *f, const char *claims, const char *probe)
{
    return read_worker_of(f, SLICES, claims, probe);
}

static void done(struct fixture *f)
{
    inventory_done(&f->inventory);
    plan_notes_done(&f->notes);
    slices_done(&f->slices);
    json_decref(f->slices_json);
    json_decref(f->claims);
    json_decref(f->probe);
}

static void devices_of_the_claims(void **state)
{
    struct fixture f;
    (void)state;
    assert_int_equal(read_worker(&f, all, NULL), 0);
    const struct inventory *inventory = &f.inventory;
    assert_string_equal(inventory->pod, "w-0");
    assert_string_equal(inventory->node, "n"); /* of its slices */
    assert_int_equal(inventory->gpu_count, 2);
    assert_string_equal(inventory->gpus[0].name, "g0"); /* by PCI address */
    assert_string_equal(inventory->gpus[1].name, "g1");
    assert_int_equal(inventory->nic_count, 2);
    assert_string_equal(inventory->nics[0].label, "a");
    assert_null(inventory->nics[0].ibdev); /* which only the pod shows */
    assert_int_equal(inventory->nics[0].mbps, 0);
    assert_int_equal(inventory->node_device_count, 4);
    done(&f);
}

static void what_the_pod_shows_of_them(void **state)
{
    struct fixture f;
    (void)state;
    assert_int_equal(read_worker(&f, all,
                                 "{\"ibdevs\": {" IBDEV("mlx5_0", "0000:18:00.0", "") ", " IBDEV(
                                     "mlx5_3", "0000:40:00.0", ", \"uplink\": \"eth0\"") "}}"),
                     0);
    const struct inventory *inventory = &f.inventory;
    assert_int_equal(inventory->nic_count, 1);
    assert_string_equal(inventory->nics[0].ibdev, "mlx5_0");
    assert_string_equal(inventory->nics[0].link_layer, "InfiniBand");
    assert_int_equal(inventory->nics[0].mbps, 400000);
    assert_int_equal(inventory->left_count, 1);
    assert_string_equal(inventory->left[0].ibdev, "mlx5_3");
    assert_true(warnings_have(&f.notes.warnings, WARN_NIC_LEFT_OUT, 0));
    assert_ptr_equal(inventory_first_rdma(inventory), &inventory->nics[0]);
    done(&f);
}

/* As a pod in the host's network shows a host with virtual functions. */
static void more_nics_than_a_worker_may_use(void **state)
{
    static const struct {
        unsigned active, down;
    } rows[] = {{64, 0}, {64, 300}, {65, 0}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_done) struct buf probe = BUF_INIT, left = BUF_INIT;
        CLEANUP(json_decrefp) json_t *shown = NULL;
        struct slices slices = {0};
        struct plan_notes notes = {0};
        struct inventory inventory;
        struct drarun_error err = {0};
        for (unsigned n = 0; n < rows[i].active + rows[i].down; n++)
            buf_printf(
                &probe,
                "%s\"mlx5_%u\": {\"pci\": \"0000:%02x:%02x.%u\", \"ports\": [{\"number\": 1, "
                "\"state\": \"%s\", \"linkLayer\": \"Ethernet\", \"rateMbps\": 100000}]}",
                n ? ", " : "{\"ibdevs\": {", n, 16 + n / 256, n / 8 % 32, n % 8,
                n < rows[i].active ? "ACTIVE" : "DOWN");
        buf_add_str(&probe, "}}");
        shown = parse(probe.data);
        const struct plan_worker_input worker = {.probe = shown};
        const struct plan_input input = {.slices = &slices, .workers = &worker, .worker_count = 1};
        int rc = inventory_read(&input, 0, &notes, &inventory, &err);
        assert_int_equal(rc, rows[i].active > 64 ? -E2BIG : 0);
        if (rc < 0) {
            assert_non_null(strstr(err.text, "worker 0 has 65 NICs that can carry data"));
        } else {
            assert_int_equal(inventory.nic_count, 64);
            assert_int_equal(inventory.left_count, rows[i].down);
            inventory_left(&inventory, &left);
            assert_int_equal(left.data && strstr(left.data, "(port 1 is DOWN) and 285 others"),
                             rows[i].down == 300);
            inventory_done(&inventory);
        }
        plan_notes_done(&notes);
    }
}

/* The scheduler may give a worker two shares of one device for two requests. */
static void two_shares_of_a_nic(void **state)
{
    static const char shares[] = ALLOCATED(RESULT("gpu.nvidia.com", "g0") ", " RESULT(
        "dra.net", "b") ", " RESULT("dra.net", "a") ", " RESULT("dra.net", "b"));
    struct fixture f;
    (void)state;
    assert_int_equal(read_worker(&f, shares, NULL), 0);
    assert_int_equal(f.inventory.nic_count, 2);
    assert_string_equal(f.inventory.nics[0].label, "a");
    assert_string_equal(f.inventory.nics[1].label, "b");
    done(&f);
}

#define SUBFUNCTION(name, pci, ibdev)                                                              \
    "{\"name\": \"" name "\", \"attributes\": {\"rdmaDevice\": {\"string\": \"" ibdev "\"}" pci "}}"
#define AT ", \"pciAddress\": {\"string\": \"0000:18:00.0\"}"

/* They are at the address of their function; a driver may leave it out. */
static void sub_functions_of_a_nic(void **state)
{
    static const char *const slices[] = {
        "[" SLICE("dra.net",
                  SUBFUNCTION("a", AT, "mlx5_2") ", " SUBFUNCTION("b", AT, "mlx5_4")) "]",
        "[" SLICE("dra.net",
                  SUBFUNCTION("a", "", "mlx5_2") ", " SUBFUNCTION("b", "", "mlx5_4")) "]"};
    static const char both[] = ALLOCATED(RESULT("dra.net", "a") ", " RESULT("dra.net", "b"));
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(slices); i++) {
        struct fixture f;
        assert_int_equal(
            read_worker_of(
                &f, slices[i], both,
                "{\"ibdevs\": {" IBDEV("mlx5_0", "0000:18:00.0", "") ", " IBDEV(
                    "mlx5_2", "0000:18:00.0", "") ", " IBDEV("mlx5_4", "0000:18:00.0", "") "}}"),
            0);
        assert_int_equal(f.inventory.nic_count, 2);
        assert_string_equal(f.inventory.nics[0].ibdev, "mlx5_2");
        assert_string_equal(f.inventory.nics[1].ibdev, "mlx5_4");
        assert_int_equal(f.inventory.nics[1].mbps, 400000);
        done(&f);
    }
}

#define PORT(name, number)                                                                         \
    "{\"name\": \"" name "\", \"attributes\": {\"dra.net/rdma\": {\"bool\": true}, "               \
    "\"dra.net/pciAddress\": {\"string\": \"0000:18:00.0\"}, "                                     \
    "\"drarun.dev/rdmaDevice\": {\"string\": \"mlx4_0\"}, \"drarun.dev/port\": {\"int\": " number  \
    "}}}"
#define SHOWN_PORT(number)                                                                         \
    "{\"number\": " number                                                                         \
    ", \"state\": \"ACTIVE\", \"linkLayer\": \"Ethernet\", \"rateMbps\": 40000}"
#define TWO_PORTS                                                                                  \
    "{\"ibdevs\": {\"mlx4_0\": {\"pci\": \"0000:18:00.0\", \"ports\": [" SHOWN_PORT(               \
        "1") ", " SHOWN_PORT("2") "]}}}"

/* A card whose ports are allocated one by one has one RDMA device for them. */
static void ports_of_a_nic(void **state)
{
    static const char slices[] =
        "[" SLICE("nic.drarun.dev", PORT("p0", "1") ", " PORT("p1", "2")) "]";
    static const char second[] = ALLOCATED(RESULT("nic.drarun.dev", "p1"));
    static const char both[] =
        ALLOCATED(RESULT("nic.drarun.dev", "p1") ", " RESULT("nic.drarun.dev", "p0"));
    const struct topo_port *ports[DATA_NIC_PORTS_MAX];
    struct fixture f;
    (void)state;
    assert_int_equal(read_worker_of(&f, slices, second, TWO_PORTS), 0);
    assert_int_equal(f.inventory.nic_count, 1);
    assert_int_equal(inventory_nic_ports(&f.inventory.nics[0], ports), 1);
    assert_int_equal(ports[0]->number, 2);
    assert_int_equal(f.inventory.nics[0].mbps, 40000);
    done(&f);
    assert_int_equal(read_worker_of(&f, slices, both, TWO_PORTS), 0);
    assert_int_equal(f.inventory.nic_count, 2);
    for (size_t n = 0; n < 2; n++) {
        assert_int_equal(inventory_nic_ports(&f.inventory.nics[n], ports), 1);
        assert_int_equal(ports[0]->number, n + 1);
    }
    done(&f);
}

#define BROKEN                                                                                     \
    "{\"name\": \"x\", \"attributes\": {\"index\": {\"int\": 5000}, "                              \
    "\"pciAddress\": {\"string\": \"slot 3\"}}}"
#define BESIDE_BROKEN                                                                              \
    "[" SLICE("net.example", BROKEN) ", " SLICE("dra.net", NIC("a", "0000:18:00.0")) "]"

/* Another driver's devices, whose attributes mean something else, or nothing. */
static void a_device_of_others_is_no_reason_to_refuse(void **state)
{
    struct fixture f;
    (void)state;
    assert_int_equal(read_worker_of(&f, BESIDE_BROKEN, ALLOCATED(RESULT("dra.net", "a")), NULL), 0);
    assert_int_equal(f.inventory.nic_count, 1);
    assert_int_equal(f.inventory.node_device_count, 1);
    assert_string_equal(f.inventory.node_devices[0].name, "a");
    done(&f);
    assert_int_equal(read_worker_of(&f, BESIDE_BROKEN, ALLOCATED(RESULT("net.example", "x")), NULL),
                     -EINVAL);
    assert_non_null(strstr(f.err.text, "\"slot 3\" is no PCI address"));
    done(&f);
}

/* Also of a worker that is refused. */
static void the_clique_of_its_node(void **state)
{
    static const struct clique_row {
        const char *told, *labels, *clique; /* told: by the input; the clique that is known */
    } rows[] = {
        {NULL, NULL, NULL},
        {NULL, "{\"n\": {}, \"m\": {\"" PLAN_CLIQUE_LABEL "\": \"a\"}}", NULL},
        {NULL, "{\"n\": {\"" PLAN_CLIQUE_LABEL "\": \"a\"}}", "a"},
        {"b", "{\"n\": {\"" PLAN_CLIQUE_LABEL "\": \"a\"}}", "b"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(json_decrefp) json_t *labels = rows[i].labels ? parse(rows[i].labels) : NULL;
        const struct plan_worker_input worker = {.node = "n", .clique = rows[i].told};
        const struct plan_input input = {
            .workers = &worker, .worker_count = 1, .ranks = PLAN_RANKS_GPU, .node_labels = labels};
        struct plan_notes notes = {0};
        struct inventory inventory;
        assert_int_equal(inventory_read(&input, 0, &notes, &inventory, NULL), 1); /* no GPU */
        assert_int_equal(inventory.clique == NULL, rows[i].clique == NULL);
        if (rows[i].clique)
            assert_string_equal(inventory.clique, rows[i].clique);
        inventory_done(&inventory);
        plan_notes_done(&notes);
    }
}

#define MIG(name, parent)                                                                          \
    "{\"name\": \"" name "\", \"attributes\": {\"type\": {\"string\": \"mig\"}, "                  \
    "\"uuid\": {\"string\": \"MIG-" name "\"}, \"parentUUID\": {\"string\": \"" parent "\"}}}"

/* NCCL would refuse two of one GPU. */
static void slices_of_a_gpu(void **state)
{
    static const char slices[] = "[" SLICE(
        "gpu.nvidia.com", MIG("a0", "GPU-a") ", " MIG("b0", "GPU-b") ", " MIG("a1", "GPU-a")) "]";
    struct fixture f;
    (void)state;
    assert_int_equal(
        read_worker_of(
            &f, slices,
            ALLOCATED(RESULT("gpu.nvidia.com", "a0") ", " RESULT("gpu.nvidia.com", "b0")), NULL),
        0);
    assert_int_equal(f.inventory.gpu_count, 2);
    assert_true(warnings_have(&f.notes.warnings, WARN_MIG_NO_P2P, 0));
    done(&f);
    assert_int_equal(
        read_worker_of(&f, slices,
                       ALLOCATED(RESULT("gpu.nvidia.com", "b0") ", " RESULT(
                           "gpu.nvidia.com", "a1") ", " RESULT("gpu.nvidia.com", "a0")),
                       NULL),
        1);
    assert_int_equal(f.notes.refusal.code, WARN_MIG_SAME_PARENT);
    assert_non_null(strstr(f.notes.refusal.detail, " are of one GPU: NCCL refuses both"));
    done(&f);
}

static void a_device_that_no_slice_has(void **state)
{
    struct fixture f;
    (void)state;
    assert_int_equal(read_worker(&f, ALLOCATED(RESULT("gpu.nvidia.com", "gone")), NULL), 1);
    assert_int_equal(f.notes.refusal.code, WARN_DEVICE_NOT_IN_SLICES);
    assert_string_equal(f.inventory.pod, "w-0");
    done(&f);
}

static void a_claim_that_is_not_allocated(void **state)
{
    struct fixture f;
    (void)state;
    assert_int_equal(read_worker(&f, CLAIM(""), NULL), -EAGAIN);
    assert_null(f.inventory.pod); /* untouched */
    assert_int_equal(f.notes.refusal.code, WARNING_NONE);
    done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_of_the_claims),
        cmocka_unit_test(what_the_pod_shows_of_them),
        cmocka_unit_test(more_nics_than_a_worker_may_use),
        cmocka_unit_test(two_shares_of_a_nic),
        cmocka_unit_test(sub_functions_of_a_nic),
        cmocka_unit_test(ports_of_a_nic),
        cmocka_unit_test(a_device_of_others_is_no_reason_to_refuse),
        cmocka_unit_test(the_clique_of_its_node),
        cmocka_unit_test(slices_of_a_gpu),
        cmocka_unit_test(a_device_that_no_slice_has),
        cmocka_unit_test(a_claim_that_is_not_allocated),
    };
    return cmocka_run_group_tests_name("inventory", tests, NULL, NULL);
}
