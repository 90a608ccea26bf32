/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/init.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "jobs/profiles/machine.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"

#define KINDS "mpi torchrun nccl-tests ray cpu"

/* Where editors load it from. Its $id is a name; nothing is served there. */
#define SCHEMA                                                                                     \
    "https://raw.githubusercontent.com/drarun/drarun/main/docs/schema/drajob-v1alpha1.json"
#define GPUS 8 /* of a worker, where no machine says */

struct options {
    const char *machine;
    bool help;
};

static const struct option_spec option_list[] = {
    {.name = "machine",
     .value = "TYPE",
     .group = "Options",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, machine),
     .help = "machine type of the nodes, a profile such as gke-a4: the\njob asks for its GPUs and "
             "NICs"},
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

/* What differs between kinds of jobs. */
static const struct kind {
    const char *name, *about;
    bool devices;
    const char *start; /* how the ranks start */
    const char *program;
    const char *pod; /* more of the pod, which kinds of this name mostly need */
} kinds[] = {
    {"mpi", "An MPI program: one rank for each GPU, started over PMIx.", true, "",
     "  image: registry.example.com/program:1  # has the program and its MPI library\n"
     "  command: [/app/program, --steps, \"100\"]\n",
     ""},
    {"torchrun", "Training with torchrun: one torchrun a worker, which starts a process a GPU.",
     true,
     "  ranksPerWorker: 1                # torchrun starts the processes\n"
     "  launch: env                      # MASTER_ADDR, RANK, PET_* and similar\n"
     "  restarts: 3                      # of the whole job, from its checkpoint\n",
     "  image: registry.example.com/train:1\n"
     "  command: [torchrun, --nproc-per-node=gpu, train.py]  # nodes and node rank come as PET_*\n",
     "  volumes:\n"
     "  - {shm: 32Gi}                    # data loaders\n"
     "  # - {persistentVolumeClaim: checkpoints, mountPath: /checkpoints}\n"},
    {"nccl-tests", "NVIDIA's nccl-tests, one rank a GPU: how fast is the network?", true, "",
     "  image: registry.example.com/nccl-tests:1  # built with MPI=1, and has that MPI library\n"
     "  command: [all_reduce_perf, -b, 1K, -e, 8G, -f, \"2\", -g, \"1\"]\n",
     ""},
    {"ray", "A Ray cluster as a job: worker 0 is the head, the others join it.", true,
     "  ranksPerWorker: 1\n  launch: env                      # MASTER_ADDR and RANK\n",
     "  image: rayproject/ray:2.47.1-py39-cu128\n"
     "  command:\n  - bash\n  - -c\n  - |\n"
     "    if [ \"$RANK\" = 0 ]; then exec ray start --head --port=6379 --block\n"
     "    else exec ray start --address=\"$MASTER_ADDR:6379\" --block\n"
     "    fi\n",
     "  volumes:\n  - {shm: 32Gi}                    # Ray's object store\n"},
    {"cpu", "An MPI program on CPUs: no device is asked for.", false,
     "  ranksPerWorker: 16               # as many as CPUs below\n",
     "  image: registry.example.com/program:1\n"
     "  command: [/app/program, case.in]\n",
     "  resources:\n"
     "    requests: {cpu: 16, memory: 64Gi}\n"
     "    limits: {cpu: 16, memory: 64Gi}\n"
     "  volumes:\n  - {shm: 8Gi}                     # ranks of a worker share memory\n"},
};

/* The nodes that --machine names; all zero without it. */
struct nodes {
    const char *profile;
    struct machine machine;
    enum profile_data data; /* what its NICs carry */
};

static bool is_amd(const struct machine *machine)
{
    return machine->gpu_class && strcmp(machine->gpu_class, "gpu.amd.com") == 0;
}

static void add_gpus(const struct machine *machine, struct buf *out)
{
    bool amd = is_amd(machine); /* whose class has partitions, and GPUs for virtual machines, too */
    buf_printf(out,
               "    gpus: {count: %" PRIu32
               ", class: %s%s}  # or resource: %s, of the device plugin\n",
               machine->gpus ? machine->gpus : GPUS,
               machine->gpu_class ? machine->gpu_class : "gpu.nvidia.com",
               amd ? ", selector: 'device.attributes[\"gpu.amd.com\"].type == \"amdgpu\"'" : "",
               amd ? "amd.com/gpu" : "nvidia.com/gpu");
}

static void add_nics(const struct nodes *nodes, struct buf *out)
{
    const char *mark = nodes->machine.nics ? "" : "# ";
    uint32_t count = nodes->machine.nics ? nodes->machine.nics : GPUS;
    if (nodes->data == PROFILE_NO_DATA)
        return;
    buf_printf(out, "    %snics: {count: %" PRIu32 ", class: dranet%s}\n", mark, count,
               nodes->data == PROFILE_NETDEV
                   ? ""
                   : ", selector: 'device.attributes[\"dra.net\"].rdma == true'");
    buf_add_str(out, "    # class: a DeviceClass of your cluster's NICs (kubectl get "
                     "deviceclasses)\n");
}

static void add_devices(const struct nodes *nodes, struct buf *out)
{
    buf_add_str(out, "  devices:                         # of each worker\n");
    add_gpus(&nodes->machine, out);
    add_nics(nodes, out);
    if (nodes->data == PROFILE_NETDEV)
        buf_add_str(out,
                    "  network: any                     # these NICs have no RDMA; their plugin's "
                    "daemon is a container of template\n");
    if (nodes->profile)
        buf_printf(out, "  nccl: {profile: %s}%s\n", nodes->profile,
                   is_amd(&nodes->machine) ? "  # version: RCCL's, as \"2.27.7\" with ROCm 7.0.2"
                                           : "");
}

static void write_spec(const struct kind *kind, const struct nodes *nodes, struct buf *out)
{
    buf_printf(
        out,
        "# yaml-language-server: $schema=" SCHEMA "\n"
        "# %s\n"
        "# drarun validate FILE: what is wrong with it; drarun plan FILE: what it would get; "
        "drarun run FILE\n"
        "apiVersion: drarun.dev/v1alpha1\nkind: DraJob\nmetadata: {name: %s}\nspec:\n"
        "  workers: 2                       # pods, each on a node of its own where it has "
        "NICs\n%s",
        kind->about, kind->name, kind->start);
    if (kind->devices)
        add_devices(nodes, out);
    buf_printf(out, "%s%s", kind->program, kind->pod);
    buf_add_str(
        out,
        "  # env: {OMP_NUM_THREADS: 8, TOKEN: {secretKeyRef: {name: NAME, key: KEY}}}\n"
        "  # tolerations: [{key: dedicated, operator: Exists}]  # beside those of the devices\n"
        "  # nodeSelector: {pool: a}\n"
        "  # queue: team-a                  # Kueue's LocalQueue\n"
        "  # timeouts: {total: 24h}\n"
        "  # ttlSecondsAfterFinished: 3600  # then its objects are deleted\n");
}

static const struct kind *find_kind(const char *name, struct drarun_error *err)
{
    char nearest[NEAREST_WORD_MAX];
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    bool near = nearest_word(name, KINDS, nearest, sizeof nearest);
    error_kind(err, DRARUN_ERR_USAGE, EINVAL,
               "unknown kind of job \"%.60s\"%s%s%s expected one of %s", name,
               near ? "; did you mean " : ";", near ? nearest : "", near ? "?" : "", KINDS);
    return NULL;
}

/* Leaves ret_nodes as it is without a name. */
static int find_nodes(const char *name, struct nodes *ret_nodes, struct drarun_error *err)
{
    struct profiles profiles = {0};
    const struct profile *found = NULL;
    CLEANUP(buf_done) struct buf words = BUF_INIT;
    if (!name)
        return 0;
    int rc = profiles_builtin(&profiles, err);
    for (size_t i = 0; rc == 0 && i < profiles.count; i++)
        buf_printf(&words, "%s%s", i ? " " : "", profiles.list[i].name);
    if (rc == 0 && !(found = profiles_find(&profiles, name)))
        rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                        "--machine: no type \"%.60s\"; expected one of %s", name,
                        words.data ? words.data : "?");
    if (rc == 0)
        rc = machine_read(&profiles, name, &ret_nodes->machine, err);
    if (rc == 0) {
        ret_nodes->profile = name;
        ret_nodes->data = found->data;
    }
    profiles_done(&profiles);
    return rc;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct nodes nodes = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    const char *name = NULL;
    const struct kind *kind = NULL;
    int rc = verb_parse_file(&verb_init, argc, argv, &options, &options.help, &name, &err);
    if (rc == 0 && options.help)
        verb_help(&verb_init, &out);
    else if (rc == 0)
        rc = (kind = find_kind(name, &err)) ? 0 : -err.code;
    if (kind && !kind->devices && options.machine)
        rc = error_kind(&err, DRARUN_ERR_USAGE, EINVAL,
                        "%s asks for no devices: leave --machine out", name);
    else if (kind)
        rc = find_nodes(options.machine, &nodes, &err);
    if (rc < 0)
        return verb_fail("init", &err);
    if (kind)
        write_spec(kind, &nodes, &out);
    machine_done(&nodes.machine);
    return verb_write("init", &out);
}

const struct verb verb_init = {"init",
                               "mpi|torchrun|nccl-tests|ray|cpu",
                               "Writes a commented starter job spec, for a machine type.",
                               &options_table,
                               run,
                               "a starter spec"};
