/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences. Those of one worker stand beside the objects that they come from, in
 * tests/data/pods (the argument): "waits". */
#include <dirent.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/gang/waiting.h"
#include "lib/base/cleanup.h"

#define NOW_MS INT64_C(1700000100000)

static const char *folder;

static void check_text(const char *what, struct buf *got, const char *expected)
{
    const char *text = got->data ? got->data : "";
    if (got->failed || strcmp(text, expected) != 0)
        fail_msg("%s:\n%s\nexpected:\n%s", what, text, expected);
    buf_done(got);
}

/* The document's reasons, a line for each. */
static void check_reasons(const char *what, const struct waiting *waiting, const char *expected)
{
    size_t i;
    json_t *reason;
    struct buf got = BUF_INIT;
    CLEANUP(json_decrefp) json_t *document = waiting_json(waiting);
    json_array_foreach(json_object_get(document, "reasons"), i, reason)
    {
        const char *node = json_string_value(json_object_get(reason, "node"));
        buf_printf(&got, "%s%s%s: %s\n", json_string_value(json_object_get(reason, "workers")),
                   node ? " on " : "", node ? node : "",
                   json_string_value(json_object_get(reason, "text")));
    }
    check_text(what, &got, expected);
}

static bool check_file(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CLEANUP(json_decrefp) json_t *file = json_load_file(path, 0, NULL);
    const char *expected = json_string_value(json_object_get(file, "waits"));
    if (!expected)
        return false;
    struct news news = {0};
    struct pod_state worker;
    struct waiting waiting;
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(file, "events"), i, event) news_add(&news, event);
    pod_state_read(json_object_get(file, "pod"), json_object_get(file, "claim"),
                   json_is_true(json_object_get(file, "wantsClaim")), &news, &worker);
    struct waiting_input input = {.now_ms = NOW_MS, .workers = &worker, .count = 1};
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    struct buf got = BUF_INIT;
    buf_add_str(&got, waiting.count ? waiting.reasons[0].text : "");
    check_text(name, &got, expected);
    waiting_done(&waiting);
    news_done(&news);
    return true;
}

static void words_of_one_worker(void **state)
{
    (void)state;
    size_t checked = 0;
    cleanup_dir DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strstr(entry->d_name, ".json"))
            checked += check_file(entry->d_name);
    assert_true(checked >= 25);
}

static struct pod_state worker(enum pod_phase phase, enum claim_phase claim, const char *node)
{
    return (struct pod_state){.phase = phase,
                              .claim = claim,
                              .node = node,
                              .since_ms = NOW_MS - 41000,
                              .exit_code = -1,
                              .image = "example/app:1",
                              .image_of = POD_IMAGE_RANKS};
}

static void sixteen(struct pod_state workers[16])
{
    for (int i = 0; i < 16; i++)
        workers[i] = worker(POD_RUNNING, CLAIM_ALLOCATED, i < 8 ? "node-1" : "node-2");
    for (int i = 12; i < 16; i++) {
        workers[i] = worker(POD_UNSCHEDULED, CLAIM_PENDING, NULL);
        workers[i].unschedulable = true;
        workers[i].reason = "Unschedulable";
        workers[i].message = "0/4 nodes are available: 4 cannot allocate all claims.";
    }
    workers[3] = worker(POD_PULLING, CLAIM_ALLOCATED, "node-1");
    workers[4] = worker(POD_PULLING, CLAIM_ALLOCATED, "node-1");
    workers[3].since_ms = NOW_MS - 3000;
}

static char class[] = "class dranet", driver[] = "device.driver == \"dra.net\"";
static char request[] = "request nic-0, nic-1", names[] = "nic-0, nic-1";
static char rdma[] = "device.attributes[\"dra.net\"].rdma == true";
static char shortage[] = "worker 12 of 16 has no node: those for request nic-1 are taken by claims "
                         "or earlier workers on 4 nodes";

static struct predict_term terms[] = {
    {.where = class, .text = driver, .ruled_out = 8},
    {.where = request, .text = rdma, .ruled_out = 0},
};

static void all_reasons(void **state)
{
    (void)state;
    struct pod_state workers[16];
    sixteen(workers);
    struct predict_need need = {
        .requests = names, .devices = 16, .admitted = 8, .terms = terms, .term_count = 2};
    struct prediction prediction = {
        .needs = &need, .need_count = 1, .count = 16, .placed = 12, .shortage = shortage};
    struct waiting_input input = {
        .now_ms = NOW_MS, .workers = workers, .count = 16, .prediction = &prediction};
    struct waiting waiting;
    struct buf text = BUF_INIT;
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, &text);
    check_text("line", &text,
               "waiting 41 s for 4 workers (12-15): no device of class dranet with rdma == true "
               "left: those for request nic-1 are taken by claims or earlier workers on 4 nodes "
               "(and 1 other reason); claims 12/16 allocated, pods 10/16 running");
    check_reasons("reasons", &waiting,
                  "12-15: no device of class dranet with rdma == true left: those for request "
                  "nic-1 are taken by claims or earlier workers on 4 nodes\n"
                  "3-4 on node-1: image example/app:1 of the ranks is being pulled\n");
    waiting_done(&waiting);

    /* without the slices the scheduler's words are all there is */
    input.prediction = NULL;
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    assert_string_equal(waiting.reasons[0].text,
                        "no node has room: 4 nodes: 4 cannot allocate all claims");
    waiting_done(&waiting);

    /* where no device can ever do, the term that rules them out is named */
    input.prediction = &prediction;
    need.admitted = 0;
    terms[1].ruled_out = 8;
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    assert_string_equal(waiting.reasons[0].text,
                        "no device of class dranet with rdma == true: device.driver == \"dra.net\" "
                        "(class dranet) rules out 8, rdma == true (request nic-0, nic-1) rules out "
                        "8 of 16");
    waiting_done(&waiting);
}

/* The scheduler alone knows that nodes are taken by the job's own workers: the slices may not be
 * read, or its devices are in none. */
static void one_worker_per_node(void **state)
{
    struct pod_state workers[4];
    char few[] = "worker 2 of 4 has no node: 4 workers, one per node by placement.spread; 2 nodes "
                 "fit; elsewhere those for request nic-0 are taken by claims or earlier workers on "
                 "1 node; placement.spread: none packs them";
    struct predict_need need = {.requests = names, .devices = 16, .admitted = 8};
    struct prediction prediction = {.needs = &need,
                                    .need_count = 1,
                                    .count = 4,
                                    .placed = 2,
                                    .spread_short = true,
                                    .shortage = few};
    struct waiting_input input = {.now_ms = NOW_MS, .workers = workers, .count = 4};
    struct waiting waiting;
    (void)state;
    for (int i = 0; i < 4; i++) {
        workers[i] = worker(i < 2 ? POD_RUNNING : POD_UNSCHEDULED,
                            i < 2 ? CLAIM_ALLOCATED : CLAIM_PENDING, i < 2 ? "node-1" : NULL);
        workers[i].unschedulable = i >= 2;
        workers[i].reason = "Unschedulable";
        workers[i].message = "0/5 nodes are available: 2 node(s) didn't match pod anti-affinity "
                             "rules, 3 node(s) were unschedulable. preemption: none.";
    }
    static const char words[] = "5 nodes: 2 node(s) didn't match pod anti-affinity rules, 3 "
                                "node(s) were unschedulable";
    char expected[400];
    for (int spread = 0; spread < 2; spread++) {
        input.spread = spread;
        snprintf(expected, sizeof expected, "%s: %s",
                 spread ? "4 workers, one per node by placement.spread; 2 nodes fit; "
                          "placement.spread: none lets them share nodes"
                        : "no node has room",
                 words);
        assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
        assert_string_equal(waiting.reasons[0].text, expected);
        waiting_done(&waiting);
    }
    input.prediction = &prediction;
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    assert_string_equal(waiting.reasons[0].text, strstr(few, "4 workers"));
    waiting_done(&waiting);
}

/* Never 1,000 equal lines. */
static void a_thousand(void **state)
{
    (void)state;
    static struct pod_state workers[1000];
    struct waiting waiting;
    for (int i = 0; i < 1000; i++)
        workers[i] = worker(POD_PULLING, CLAIM_ALLOCATED, i % 2 ? "node-1" : "node-2");
    struct waiting_input input = {.now_ms = NOW_MS, .workers = workers, .count = 1000};
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    check_reasons("one image", &waiting,
                  "0-999: image example/app:1 of the ranks is being pulled\n");
    waiting_done(&waiting);
    static char images[1000][32];
    for (int i = 0; i < 1000; i++) {
        snprintf(images[i], sizeof images[i], "example/app:%d", i);
        workers[i].image = images[i];
    }
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    assert_int_equal(waiting.count, 1000);
    CLEANUP(json_decrefp) json_t *document = waiting_json(&waiting);
    assert_int_equal(json_array_size(json_object_get(document, "reasons")), 20);
    assert_int_equal(json_integer_value(json_object_get(document, "more")), 980);
    waiting_done(&waiting);
}

static void images_that_cannot_be_pulled(void **state)
{
    static const struct {
        enum pod_image of;
        const char *expected;
    } cases[] = {
        {POD_IMAGE_RANKS, "correct the image in the spec, or give the pods imagePullSecrets"},
        {POD_IMAGE_OTHER, "correct the image in the spec, or give the pods imagePullSecrets"},
        {POD_IMAGE_AGENT, "name one that the nodes can pull, by --image or DRARUN_IMAGE, or the "
                          "Secret of its registry, by imagePullSecrets in the spec"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pod_state pulling = worker(POD_PULLING, CLAIM_ALLOCATED, "node-1");
        struct waiting_input input = {.now_ms = NOW_MS, .workers = &pulling, .count = 1};
        struct waiting waiting;
        pulling.image_of = cases[i].of;
        pulling.reason = "ImagePullBackOff";
        assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
        assert_non_null(strstr(waiting.reasons[0].text, cases[i].expected));
        waiting_done(&waiting);
    }
}

/* Each waits at our gate until the launcher starts, whatever its Job waits for. */
static void gated_workers(void **state)
{
    struct pod_state workers[2] = {worker(POD_GATED, CLAIM_PENDING, NULL),
                                   worker(POD_GATED, CLAIM_PENDING, NULL)};
    CLEANUP(json_decrefp)
    json_t *job = json_pack("{s:{s:{s:s}}, s:{s:b}}", "metadata", "labels",
                            "kueue.x-k8s.io/queue-name", "default", "spec", "suspend", 1);
    struct waiting_input input = {.now_ms = NOW_MS, .workers = workers, .count = 2};
    struct waiting waiting;
    (void)state;
    workers[0].suspended = workers[1].suspended = true;
    for (int queued = 0; queued < 2; queued++) {
        input.launcher_job = queued ? job : NULL;
        assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
        assert_int_equal(waiting.count, 1);
        assert_string_equal(waiting.reasons[0].text, queued
                                                         ? "queue default has not admitted it"
                                                         : "the job is suspended (spec.suspend)");
        waiting_done(&waiting);
    }
}

static void whole_jobs(void **state)
{
    (void)state;
    struct pod_state workers[2] = {worker(POD_ABSENT, CLAIM_ABSENT, NULL),
                                   worker(POD_ABSENT, CLAIM_ABSENT, NULL)};
    CLEANUP(json_decrefp)
    json_t *job = json_pack("{s:{s:{s:s}}, s:{s:b}}", "metadata", "labels",
                            "kueue.x-k8s.io/queue-name", "team-a", "spec", "suspend", 1);
    CLEANUP(json_decrefp)
    json_t *workload = json_pack(
        "{s:{s:[{s:s, s:s, s:s, s:s, s:s}]}}", "status", "conditions", "type", "QuotaReserved",
        "status", "False", "reason", "Pending", "message",
        "couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu "
        "in flavor default, 8 more needed",
        "lastTransitionTime", "2023-11-14T22:00:00Z");
    struct waiting waiting;
    struct buf text = BUF_INIT;
    struct waiting_input input = {
        .now_ms = NOW_MS, .workers = workers, .count = 2, .worker_job = job, .workload = workload};
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, &text);
    check_text("queue", &text,
               "waiting 15 min: queue team-a has not admitted it: couldn't assign flavors to pod "
               "set worker: insufficient unused quota for nvidia.com/gpu in flavor default, 8 more "
               "needed; claims 0/2 allocated, pods 0/2 running");
    waiting_done(&waiting);

    CLEANUP(json_decrefp) json_t *launcher = json_deep_copy(job);
    json_object_del(json_object_get(job, "metadata"), "labels");
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, &text);
    check_text("suspended", &text,
               "waiting: the job is suspended; claims 0/2 allocated, pods 0/2 running");
    waiting_done(&waiting);

    input.launcher_job = launcher;
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, &text);
    check_text("launcher in a queue", &text,
               "waiting: queue team-a has not admitted it; claims 0/2 allocated, pods 0/2 running");
    waiting_done(&waiting);

    input.trouble = "watch pods in namespace x: refused for now";
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, &text);
    check_text("trouble", &text,
               "waiting: the cluster cannot be watched: watch pods in namespace x: refused for "
               "now; claims 0/2 allocated, pods 0/2 running");
    waiting_done(&waiting);
    input.trouble = NULL;

    struct gang_decision decision = {
        .phase = GANG_RELEASING, .next_ms = NOW_MS + 12000, .clock = GANG_CLOCK_NONE};
    input.decision = &decision;
    input.worker_job = NULL;
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, &text);
    check_text("pause", &text,
               "waiting: not all workers could be placed: their devices were released, next try in "
               "12 s; claims 0/2 allocated, pods 0/2 running");
    waiting_done(&waiting);

    input.refused = "create pods \"a-w-0\": 403: exceeded quota: few";
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, &text);
    check_text("refused", &text,
               "waiting: the workers cannot be created, next try in 12 s: create pods \"a-w-0\": "
               "403: exceeded quota: few; claims 0/2 allocated, pods 0/2 running");
    waiting_done(&waiting);
    input.refused = NULL;

    struct news news = {0};
    CLEANUP(json_decrefp)
    json_t *quota = json_pack(
        "{s:s, s:s, s:s}", "reason", "FailedCreate", "message",
        "Error creating: pods \"all-reduce-w-0-x\" is forbidden: exceeded quota: q, requested: "
        "pods=1, used: 4, limited: 4",
        "lastTimestamp", "2023-11-14T22:14:00Z");
    news_add(&news, quota);
    input.decision = NULL;
    input.job_news = &news;
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, &text);
    check_text("quota", &text,
               "waiting 41 s for 2 workers (0-1): its pod is refused: pods \"all-reduce-w-0-x\" is "
               "forbidden: exceeded quota: q, requested: pods=1, used: 4, limited: 4; claims 0/2 "
               "allocated, pods 0/2 running");
    waiting_done(&waiting);
    news_done(&news);

    bool inspected[2] = {true, false};
    workers[0] = worker(POD_RUNNING, CLAIM_NONE, "node-1");
    workers[1] = worker(POD_RUNNING, CLAIM_NONE, "node-2");
    input = (struct waiting_input){
        .now_ms = NOW_MS, .workers = workers, .count = 2, .inspected = inspected};
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, &text);
    check_text("agent", &text,
               "waiting 41 s for worker 1: its agent has not reported yet; pods 2/2 running");
    waiting_done(&waiting);
}

static json_t *launcher_pod(const char *reason, const char *message)
{
    return json_pack("{s:{s:s, s:s, s:{s:s}}, s:{s:s, s:[{s:s, s:s}]}, s:{s:[{s:s, s:{s:{s:s, "
                     "s:s*}}}]}}",
                     "metadata", "name", "job-abcde", "uid", "u", "labels", "drarun.dev/job", "job",
                     "spec", "nodeName", "node-1", "containers", "name", "launcher", "image",
                     "example/drarun:1", "status", "containerStatuses", "name", "launcher", "state",
                     "waiting", "reason", reason, "message", message);
}

static void check_launcher(const json_t *pod, const struct news *pod_news,
                           const struct news *job_news, bool fails, const char *expected)
{
    struct waiting_launcher launcher;
    struct buf got = BUF_INIT;
    waiting_of_launcher(pod, pod_news, job_news, &launcher);
    buf_add_str(&got, launcher.text ? launcher.text : "");
    check_text("launcher", &got, expected);
    assert_int_equal(launcher.fails, fails);
    waiting_launcher_done(&launcher);
}

/* Of a pod that is called job-abcde, on node-1. */
static void check_parts_of_launcher(const json_t *pod, const struct news *job_news,
                                    const char *same)
{
    struct waiting_launcher launcher;
    size_t why = pod ? strlen("pod job-abcde on node-1: ") : 0;
    waiting_of_launcher(pod, NULL, job_news, &launcher);
    assert_non_null(launcher.text);
    assert_int_equal(launcher.why, why);
    assert_int_equal(launcher.same, why + strlen(same));
    assert_memory_equal(launcher.text + why, same, strlen(same));
    waiting_launcher_done(&launcher);
}

static void launchers(void **state)
{
    (void)state;
    CLEANUP(json_decrefp) json_t *coming = launcher_pod("ContainerCreating", NULL);
    CLEANUP(json_decrefp)
    json_t *pull = launcher_pod("ErrImagePull", "failed to pull \"example/drarun:1\": not found");
    CLEANUP(json_decrefp)
    json_t *mount =
        json_pack("{s:s, s:{s:s, s:s, s:s}, s:s, s:s}", "reason", "FailedMount", "involvedObject",
                  "kind", "Pod", "name", "job-abcde", "uid", "u", "message",
                  "MountVolume.SetUp failed for volume \"v\" : configmap \"c\" not found",
                  "lastTimestamp", "2023-11-14T22:14:00Z");
    CLEANUP(json_decrefp)
    json_t *quota = json_pack("{s:s, s:s, s:s}", "reason", "FailedCreate", "message",
                              "Error creating: pods \"job-abcde\" is forbidden: exceeded quota: q",
                              "lastTimestamp", "2023-11-14T22:14:00Z");
    struct news of_pod = {0}, of_job = {0};
    check_launcher(NULL, NULL, NULL, false, "its pod does not exist yet");
    news_add(&of_job, quota);
    check_launcher(NULL, NULL, &of_job, true,
                   "its pod is refused: pods \"job-abcde\" is forbidden: exceeded quota: q");
    check_launcher(
        coming, NULL, &of_job, false,
        "pod job-abcde on node-1: the kubelet prepares its devices, volumes and sandbox");
    check_launcher(
        pull, NULL, NULL, true,
        "pod job-abcde on node-1: image example/drarun:1 of the launcher cannot be pulled "
        "(ErrImagePull): failed to pull \"example/drarun:1\": not found; "
        "name one that the nodes can pull, by --image or DRARUN_IMAGE, or the Secret of its "
        "registry, by drarun install --image-pull-secret");
    check_parts_of_launcher(NULL, &of_job, "its pod is refused");
    check_parts_of_launcher(pull, NULL, "image example/drarun:1 of the launcher cannot be pulled ");
    check_parts_of_launcher(coming, NULL, "the kubelet prepares its devices, volumes and sandbox");
    news_add(&of_pod, mount); /* the kubelet may not have seen it yet */
    check_launcher(
        coming, &of_pod, NULL, false,
        "pod job-abcde on node-1: the kubelet prepares its devices, volumes and sandbox");
    json_object_set_new(mount, "count", json_integer(2));
    news_add(&of_pod, mount);
    check_launcher(
        coming, &of_pod, NULL, true,
        "pod job-abcde on node-1: a volume cannot be mounted: MountVolume.SetUp failed for "
        "volume \"v\" : configmap \"c\" not found; create the ConfigMap, "
        "or correct the volume in spec.template");
    news_done(&of_pod);
    news_done(&of_job);

    struct waiting_input input = {.now_ms = NOW_MS, .launcher = "pod job-abcde: no node has room"};
    struct waiting waiting;
    struct buf text = BUF_INIT;
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    waiting_line(&waiting, &text);
    check_text("with workers", &text,
               "waiting: the launcher does not start: pod job-abcde: no node has room; pods 0/0 "
               "running");
    waiting_done(&waiting);
}

/* Once each, though the words change with each try, and then less often. */
static void told(void **state)
{
    struct waiting_told told = {0};
    int64_t next;
    (void)state;
    assert_false(waiting_tell(&told, NULL, 0, &next));
    assert_true(waiting_tell(&told, "image a:1 cannot be pulled (ErrImagePull): x", 1000, &next));
    assert_false(
        waiting_tell(&told, "image a:1 cannot be pulled (ImagePullBackOff): y", 90000, &next));
    assert_int_equal(next, 0);
    assert_true(waiting_tell(&told, "3 devices are taken", 90000, &next));
    assert_false(waiting_tell(&told, "5 devices are taken", 190000, &next));
    assert_true(waiting_tell(&told, "pods \"w-x1\" is forbidden", 200000, &next));
    assert_false(waiting_tell(&told, "pods \"w-y2\" is forbidden", 300000, &next));
    assert_true(waiting_tell(&told, "other", 300000, &next));
    assert_false(waiting_tell(&told, "another", 301000, &next));
    assert_int_equal(next, 340000);
    assert_true(waiting_tell(&told, "another", 340000, &next));
    assert_false(waiting_tell(&told, "other", 399000, &next));
    assert_int_equal(next, 400000);
    waiting_told_done(&told);
}

static void scheduler(void **state)
{
    (void)state;
    static const struct {
        const char *message, *words;
    } cases[] = {
        {"0/4 nodes are available: 1 Insufficient cpu, 3 cannot allocate all claims. still not "
         "schedulable, preemption: 0/4 nodes are available: 4 Preemption is not helpful for "
         "scheduling.",
         "4 nodes: 1 Insufficient cpu, 3 cannot allocate all claims"},
        {"0/1 nodes are available: 1 node(s) had untolerated taint {a: b}. preemption: 0/1 nodes "
         "are available: 1 Preemption is not helpful for scheduling.",
         "1 node: 1 node(s) had untolerated taint {a: b}"},
        {"no nodes available to schedule pods", "no nodes available to schedule pods"},
        {"0/x nodes", "0/x nodes"},
        {"", NULL},
        {NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *words = scheduler_words(cases[i].message);
        if (cases[i].words)
            assert_string_equal(words, cases[i].words);
        else
            assert_null(words);
    }
}

/* Of images whose user is root's, or has a name, where nobody says another one. */
static void users_of_images(void **state)
{
    static const struct {
        const char *message, *advice; /* NULL: none */
    } cases[] = {
        {"container has runAsNonRoot and image will run as root (pod: \"a\", container: worker)",
         "; give it a user who is not root"},
        {"container has runAsNonRoot and image has non-numeric user (nobody), cannot verify user "
         "is non-root (pod: \"a\", container: worker)",
         "; give it a user who is not root"},
        {"container has runAsNonRoot and image will run as root (pod: \"a\", container: "
         "drarun-agent)",
         "; the agent's image must name a user by number"},
        {"secret \"nope\" not found", NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pod_state one = worker(POD_CREATING, CLAIM_NONE, "node-1");
        one.failing = true;
        one.container = "worker";
        one.reason = "CreateContainerConfigError";
        one.message = cases[i].message;
        cleanup_free char *words = waiting_of_worker(&one);
        assert_non_null(strstr(words, cases[i].message));
        assert_int_equal(strstr(words, cases[i].advice ? cases[i].advice : "; ") != NULL,
                         cases[i].advice != NULL);
    }
}

/* Where it helps to bring the agent without an image volume. */
static void runtimes_without_image_volumes(void **state)
{
    static const char no_path[] = "failed to mkdir \"\": mkdir : no such file or directory";
    static const struct {
        const char *reason, *message;
        bool mounts, advised;
    } cases[] = {
        {"CreateContainerError", no_path, true, true},
        {"CreateContainerError", NULL, true, true},
        {"CreateContainerError", no_path, false, false},
        {"CreateContainerError", "unresolvable CDI devices nvidia.com/gpu=0", true, false},
        {"CreateContainerConfigError", "secret \"nope\" not found", true, false},
        {"RunContainerError", "exec format error", true, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pod_state one = worker(POD_CREATING, CLAIM_NONE, "node-1");
        one.failing = true;
        one.container = "worker";
        one.image_volume = cases[i].mounts;
        one.reason = cases[i].reason;
        one.message = cases[i].message;
        cleanup_free char *words = waiting_of_worker(&one);
        assert_int_equal(strstr(words, "set DRARUN_AGENT=copy") != NULL, cases[i].advised);
    }
}

/* ---- the gang's PodGroup ---- */

#define FITS_ALONE                                                                                 \
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or "   \
    "more plugins asked to wait and no plugin rejected pod"
#define FITS_TWO                                                                                   \
    "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, pod group preemption: No "        \
    "preemption victims found for incoming preemptor"
#define FULL "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, pre"
#define GROUP(conditions) "{\"status\": {\"conditions\": [" conditions "]}}"
#define FALSE_BECAUSE(type, reason, message)                                                       \
    "{\"type\": \"" type "\", \"status\": \"False\", \"reason\": \"" reason                        \
    "\", \"message\": \"" message "\"}"

struct group_case {
    const char *name;
    const char *messages[3]; /* of PodScheduled, by worker; NULL: there is no such condition */
    const char *group;       /* NULL: there is none of that name */
    const char *first, *second;
    bool stuck, own;
};

/* Messages of 1.36.3 and 1.37.2 as their schedulers wrote them. */
static const struct group_case group_cases[] = {
    {.name = "1.36: two fit and the third does not",
     .messages = {FITS_ALONE, FULL, FITS_ALONE},
     .group =
         GROUP(FALSE_BECAUSE("PodGroupScheduled", "Unschedulable", "pod group is unschedulable")),
     .first = "PodGroup a-w cannot be scheduled (Unschedulable): no node has room for worker 1: 2 "
              "nodes: 2 cannot allocate all claims",
     .second = "no node has room: 2 nodes: 2 cannot allocate all claims"},
    {.name = "1.37: the group says it",
     .messages = {"pod group is unschedulable, " FITS_TWO, FITS_TWO, FULL},
     .group = GROUP(FALSE_BECAUSE("PodGroupInitiallyScheduled", "Unschedulable", FITS_TWO)),
     .first = "PodGroup a-w cannot be scheduled (Unschedulable): minCount (3) cannot be satisfied: "
              "2 scheduled, 0 remaining; no node has room for worker 2: 2 nodes: 2 cannot allocate "
              "all claims",
     .second = "no node has room: 2 nodes: 2 cannot allocate all claims"},
    {.name = "pods that say nothing",
     .group = GROUP(FALSE_BECAUSE("PodGroupInitiallyScheduled", "SchedulerError", "no luck")),
     .first = "PodGroup a-w cannot be scheduled (SchedulerError): no luck"},
    {.name = "without words",
     .group = GROUP("{\"type\": \"PodGroupScheduled\", \"status\": \"False\"}"),
     .first = "PodGroup a-w cannot be scheduled (no reason)"},
    {.name = "another condition is not the scheduler's",
     .group = GROUP(FALSE_BECAUSE("DisruptionTarget", "Preempted", "no luck")),
     .first = "the scheduler has not tried it yet"},
    {.name = "it was scheduled once",
     .group = GROUP(
         "{\"type\": \"PodGroupScheduled\", \"status\": \"True\", \"reason\": \"Scheduled\"}"),
     .first = "the scheduler has not tried it yet"},
    {.name = "more pods are wanted than the job has",
     .group = "{\"spec\": {\"schedulingPolicy\": {\"gang\": {\"minCount\": 4}}}, \"status\": {}}",
     .first = "PodGroup a-w waits for 4 pods (minCount); this job has 3 of them"},
    {.name = "all pods are there",
     .group = "{\"spec\": {\"schedulingPolicy\": {\"gang\": {\"minCount\": 3}}}}",
     .first = "the scheduler has not tried it yet"},
    {.name = "there is none",
     .first = "PodGroup a-w does not exist: create it, or correct schedulingGroup in spec.template",
     .stuck = true},
    {.name = "the pods' own words are better",
     .messages = {FULL, FULL, FULL},
     .group = GROUP(FALSE_BECAUSE("PodGroupScheduled", "Unschedulable", "no luck")),
     .first = "no node has room: 2 nodes: 2 cannot allocate all claims",
     .own = true},
};

static void check_group(const struct group_case *each, const char *name)
{
    struct pod_state workers[3];
    CLEANUP(json_decrefp) json_t *object = each->group ? json_loads(each->group, 0, NULL) : NULL;
    const struct waiting_group group = {.name = "a-w", .object = object};
    struct waiting_input input = {.now_ms = NOW_MS, .workers = workers, .count = 3};
    struct waiting waiting;
    bool stuck;
    assert_true(object || !each->group);
    for (int i = 0; i < 3; i++) {
        workers[i] = worker(POD_UNSCHEDULED, CLAIM_NONE, NULL);
        workers[i].group = name;
        workers[i].message = each->messages[i];
        workers[i].unschedulable = each->messages[i] != NULL;
        workers[i].reason = each->messages[i] ? "Unschedulable" : NULL;
    }
    const char *asked = waiting_group(workers, 3);
    if (each->own ? asked != NULL : !asked || strcmp(asked, name) != 0)
        fail_msg("%s: group %s is asked", each->name, asked ? asked : "none");
    assert_null(group_words(workers, 3, 0, NULL, &stuck));
    input.group = &group;
    assert_int_equal(waiting_build(&input, &waiting, NULL), 0);
    bool mine = strcmp(name, group.name) == 0;
    const char *got = waiting.reasons[0].text;
    if (mine && strcmp(got, each->first) != 0)
        fail_msg("%s:\n%s\nexpected:\n%s", each->name, got, each->first);
    if (!mine && strstr(got, "a-w"))
        fail_msg("%s: said of another group: %s", each->name, got);
    if (mine) {
        assert_int_equal(waiting.count, each->second ? 2 : 1);
        assert_int_equal(waiting.reasons[0].stuck, each->stuck);
        if (each->second)
            assert_string_equal(waiting.reasons[1].text, each->second);
    }
    waiting_done(&waiting);
}

static void groups(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(group_cases); i++) {
        check_group(&group_cases[i], "a-w");
        check_group(&group_cases[i], "others");
    }
}

/* Words that come from anywhere else are better, as are nodes that come. */
static void no_group_is_asked(void **state)
{
    struct pod_state w = worker(POD_UNSCHEDULED, CLAIM_NONE, NULL);
    (void)state;
    assert_null(waiting_group(&w, 1));
    w.group = "a-w";
    assert_string_equal(waiting_group(&w, 1), "a-w");
    w.node_comes = true;
    assert_null(waiting_group(&w, 1));
    w.node_comes = false;
    w.deleting = true;
    assert_null(waiting_group(&w, 1));
    w.deleting = false;
    w.reason = "SchedulerError";
    assert_null(waiting_group(&w, 1));
    w = worker(POD_BOUND, CLAIM_NONE, "n0");
    w.group = "a-w";
    assert_null(waiting_group(&w, 1));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_one_worker),
        cmocka_unit_test(all_reasons),
        cmocka_unit_test(one_worker_per_node),
        cmocka_unit_test(a_thousand),
        cmocka_unit_test(images_that_cannot_be_pulled),
        cmocka_unit_test(gated_workers),
        cmocka_unit_test(whole_jobs),
        cmocka_unit_test(launchers),
        cmocka_unit_test(told),
        cmocka_unit_test(scheduler),
        cmocka_unit_test(users_of_images),
        cmocka_unit_test(runtimes_without_image_volumes),
        cmocka_unit_test(groups),
        cmocka_unit_test(no_group_is_asked),
    };
    folder = argc > 1 ? argv[1] : "tests/data/pods";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
