/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/spec/spec.h"
#include "jobs/spec/spec_words.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

static struct job_spec read_good(const char *text)
{
    struct job_spec spec = {0};
    struct drarun_error err = {0};
    if (spec_parse("job.yaml", text, strlen(text), &spec, &err) < 0)
        fail_msg("%s\n%s", text, err.text);
    return spec;
}

static void test_short_form(void **state)
{
    struct job_spec s = read_good("workers: 3\nimage: a/b\ncommand: [p, -x, '']\n");
    (void)state;
    assert_string_equal(s.name, "job");
    assert_null(s.namespace);
    assert_int_equal(s.workers, 3);
    assert_int_equal(s.roles[0].ranks_per_worker, 0);
    assert_int_equal(s.roles[0].slots, 0);
    assert_false(s.oversubscribe);
    assert_false(s.report_bindings);
    assert_int_equal(s.roles[0].gpus.count + s.roles[0].nics.count, 0);
    assert_int_equal(s.roles[0].align, SPEC_ALIGN_PREFERRED);
    assert_int_equal(s.claims, SPEC_CLAIMS_DIRECT);
    assert_int_equal(s.spread, 0);
    assert_null(s.compute_domain);
    assert_int_equal(s.network, SPEC_NETWORK_ANY);
    assert_int_equal(s.on_tcp_fallback, SPEC_FALLBACK_REPORT);
    assert_int_equal(s.on_hang, SPEC_FALLBACK_REPORT);
    assert_int_equal(s.on_preflight_warning, SPEC_FALLBACK_REPORT);
    assert_int_equal(s.fabric, SPEC_FABRIC_OPEN);
    assert_int_equal(s.launch, SPEC_LAUNCH_PMIX);
    assert_int_equal(s.mpi_transport, SPEC_TRANSPORT_AUTO);
    assert_string_equal(s.roles[0].nccl_profile, "auto");
    assert_int_equal(s.roles[0].nccl_hca_list, SPEC_HCA_AUTO);
    assert_null(s.roles[0].nccl_version);
    assert_int_equal(s.timeouts.queue, 24 * 3600 * 1000);
    assert_int_equal(s.timeouts.nodes, 30 * 60 * 1000);
    assert_int_equal(s.timeouts.allocation, 600 * 1000);
    assert_int_equal(s.timeouts.image_pull, 30 * 60 * 1000);
    assert_int_equal(s.timeouts.start, 120 * 1000);
    assert_int_equal(s.timeouts.total, 0);
    assert_int_equal(s.timeouts.signal, 0);
    assert_int_equal(s.timeouts.agent, 0);
    assert_int_equal(s.hang_after, 600 * 1000);
    assert_int_equal(s.restarts, 0);
    assert_int_equal(s.ttl_after_finished, -1);
    assert_false(s.suspend);
    assert_null(s.queue);
    assert_string_equal(s.managed_by, "drarun.dev/drajob-controller");
    json_t *expected = json_loads("{\"spec\": {\"containers\": [{\"name\": \"worker\", \"image\": "
                                  "\"a/b\", \"command\": [\"p\", \"-x\", \"\"]}]}}",
                                  0, NULL);
    assert_true(json_equal(s.roles[0].template, expected));
    json_decref(expected);
    assert_string_equal(json_string_value(json_object_get(s.document, "kind")), "DraJob");
    job_spec_done(&s);
}

static void test_ranks_of_a_worker(void **state)
{
    static const struct {
        const char *keys;
        bool mpirun, torchrun;
        uint32_t gpus, ranks;
    } cases[] = {
        {"command: [p]", false, false, 0, 1},
        {"command: [p]", false, false, 8, 8},
        {"command: [p]", true, false, 8, 1},
        {"command: [p]\nranksPerWorker: 3", true, false, 8, 3},
        {"command: [torchrun, t.py]", false, true, 8, 1},
        {"command: [torchrun, t.py]\nlaunch: env", false, true, 8, 1},
        {"command: [torchrun, t.py]\nranksPerWorker: 2", false, true, 8, 2},
        {"command: [bash, -c]\nargs: ['cd /a && torchrun t.py']", false, true, 8, 1},
        {"command: [bash, -c]\nargs: ['./app --launcher torchrun']", false, false, 8, 8},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct strlist argv = STRLIST_INIT;
        CLEANUP(buf_done) struct buf text = BUF_INIT;
        buf_printf(&text, "image: i\n%s\n", cases[i].keys);
        struct job_spec s = read_good(text.data);
        spec_words_add(&s.roles[0], NULL, &argv);
        assert_int_equal(spec_role_starts_torchrun(&s.roles[0]), cases[i].torchrun);
        assert_int_equal(spec_role_ranks(&s.roles[0], cases[i].mpirun, argv.items, cases[i].gpus),
                         cases[i].ranks);
        assert_int_equal(spec_role_ranks(&s.roles[0], cases[i].mpirun, NULL, cases[i].gpus),
                         cases[i].ranks);
        strlist_done(&argv);
        job_spec_done(&s);
    }
}

static void expect_template(const struct job_spec *spec, const char *yaml)
{
    struct doc *doc = NULL;
    struct drarun_error err = {0};
    if (doc_parse("expected", yaml, strlen(yaml), DOC_FORMAT_GUESS, NULL, &doc, &err) < 0)
        fail_msg("%s", err.text);
    if (!json_equal(spec->roles[0].template, doc_root(doc, 0))) {
        char *text = json_dumps(spec->roles[0].template, JSON_SORT_KEYS);
        fail_msg("%s\nis not %s", text, yaml);
    }
    doc_free(doc);
}

static const char whole[] =
    "apiVersion: drarun.dev/v1alpha1\nkind: DraJob\n"
    "metadata: {name: name, namespace: ns, labels: {a: b}, annotations: {x.y/z: anything at all}}\n"
    "spec:\n"
    "  workers: 2\n  ranksPerWorker: 4\n  slots: 6\n"
    "  devices:\n"
    "    gpus: {count: all}\n"
    "    nics: {count: 1, class: dranet, selector: ['1 < 2', '2 < 3'], match: [dra.net/rail],\n"
    "           config: {interface: {name: dranet0}}}\n"
    "    align: required\n"
    "  placement: {spread: none}\n"
    "  computeDomain: {channel: {allocationMode: All}}\n"
    "  onTcpFallback: fail\n  onHang: fail\n  onPreflightWarning: fail\n  preflight: {fabric: "
    "off}\n  launch: mpirun\n  mpi: "
    "{transport: "
    "rdma}\n"
    "  nccl: {profile: a4, hcaList: never, version: '2.27.5', inspector: true, env: {A: b, B: "
    "2}}\n"
    "  template:\n"
    "    metadata: {labels: {k: v}}\n"
    "    spec: {containers: [{image: i, command: [c], args: [d]}], hostNetwork: on}\n"
    "  timeouts: {queue: 1h30m, nodes: 90, allocation: 500ms, imagePull: 1d, start: 0, total: 2h,\n"
    "             agent: 1.5m, signal: SIGXCPU, signalBefore: 90s}\n"
    "  hangAfter: 0s\n  restarts: 3\n  ttlSecondsAfterFinished: 60\n  suspend: true\n"
    "  queue: team-a\n  managedBy: kueue.x-k8s.io/multikueue\n";

static void test_job_of_another_controller(void **state)
{
    static const char ours[] = "kind: DraJob\nspec: {image: i, command: [c], managedBy: "
                               "drarun.dev/drajob-controller}\n";
    struct drarun_error err = {0};
    struct job_spec s = read_good(ours);
    (void)state;
    assert_int_equal(spec_need_own(&s, &err), 0);
    job_spec_done(&s);
    s = read_good(whole);
    assert_int_equal(spec_need_own(&s, &err), -EINVAL);
    assert_int_equal(err.kind, DRARUN_ERR_SPEC);
    assert_string_equal(err.text,
                        "spec.managedBy: kueue.x-k8s.io/multikueue runs the job name, not "
                        "drarun: kubectl apply makes the DraJob for it; leave managedBy "
                        "out to run it here");
    job_spec_done(&s);
}

static void test_everything(void **state)
{
    struct job_spec s = read_good(whole);
    (void)state;
    assert_string_equal(s.name, "name");
    assert_string_equal(s.namespace, "ns");
    assert_int_equal(s.roles[0].slots, 6);
    assert_string_equal(json_string_value(json_object_get(s.labels, "a")), "b");
    assert_non_null(json_object_get(s.annotations, "x.y/z"));
    assert_true(s.roles[0].gpus.all);
    assert_string_equal(s.roles[0].gpus.class, "gpu.nvidia.com");
    assert_int_equal(s.roles[0].nics.count, 1);
    assert_int_equal(s.roles[0].nics.selectors.count, 2);
    assert_string_equal(s.roles[0].nics.match.items[0], "dra.net/rail");
    assert_string_equal(s.roles[0].nics.config_driver, "dra.net");
    assert_int_equal(s.roles[0].align, SPEC_ALIGN_REQUIRED);
    assert_int_equal(s.spread, SPEC_SPREAD_NONE);
    assert_int_equal(s.claims, SPEC_CLAIMS_TEMPLATE); /* implied by queue */
    assert_int_equal(s.network, SPEC_NETWORK_RDMA);   /* implied by nics */
    assert_int_equal(s.on_tcp_fallback, SPEC_FALLBACK_FAIL);
    assert_int_equal(s.on_hang, SPEC_FALLBACK_FAIL);
    assert_int_equal(s.on_preflight_warning, SPEC_FALLBACK_FAIL);
    assert_int_equal(s.fabric, SPEC_FABRIC_OFF);
    assert_int_equal(s.launch, SPEC_LAUNCH_MPIRUN);
    assert_int_equal(s.mpi_transport, SPEC_TRANSPORT_RDMA);
    assert_string_equal(s.roles[0].nccl_profile, "a4");
    assert_int_equal(s.roles[0].nccl_hca_list, SPEC_HCA_NEVER);
    assert_string_equal(s.roles[0].nccl_version, "2.27.5");
    assert_true(s.roles[0].nccl_inspector);
    assert_string_equal(env_get(&s.roles[0].nccl_env, "B"), "2");
    assert_int_equal(s.timeouts.queue, 5400 * 1000);
    assert_int_equal(s.timeouts.nodes, 90 * 1000);
    assert_int_equal(s.timeouts.allocation, 500);
    assert_int_equal(s.timeouts.image_pull, 86400 * 1000);
    assert_int_equal(s.timeouts.start, 0);
    assert_int_equal(s.timeouts.agent, 90 * 1000);
    assert_int_equal(s.timeouts.signal, SIGXCPU);
    assert_int_equal(s.timeouts.signal_before, 90 * 1000);
    assert_int_equal(s.hang_after, 0);
    assert_int_equal(s.restarts, 3);
    assert_int_equal(s.ttl_after_finished, 60);
    assert_true(s.suspend);
    assert_string_equal(s.managed_by, "kueue.x-k8s.io/multikueue");
    expect_template(&s, "{metadata: {labels: {k: v}}, spec: {hostNetwork: true, containers: [{"
                        "name: worker, image: i, command: [c], args: [d]}]}}");
    const json_t *given = json_object_get(json_object_get(s.document, "spec"), "template");
    const json_t *list = json_object_get(json_object_get(given, "spec"), "containers");
    assert_null(json_object_get(json_array_get(list, 0), "name")); /* untouched */
    job_spec_done(&s);
}

/* One finding, which holds the text. */
static void expect_finding(const char *text, const char *part)
{
    struct job_spec spec;
    struct drarun_error err = {0};
    if (spec_parse("job.yaml", text, strlen(text), &spec, &err) == 0)
        fail_msg("taken: %s", text);
    assert_int_equal(err.kind, DRARUN_ERR_SPEC);
    if (!strstr(err.text, part) || strstr(err.text, "more)"))
        fail_msg("%s\ngave %s\nnot  %s", text, err.text, part);
}

/* Of all kinds of keys, in either way in which they can be written. */
static void test_keys_of_the_short_form(void **state)
{
    static const char text[] =
        "image: i\ncommand: [c]\nargs: [a, '']\nworkingDir: /w\n"
        "env: {A: b, COUNT: 4, S: {secretKeyRef: {name: s, key: k}}}\n"
        "envFrom: [{configMapRef: {name: m}}]\n"
        "resources: {requests: {cpu: 8, memory: 1Gi}}\n"
        "volumes:\n"
        "- {persistentVolumeClaim: data, mountPath: /data, readOnly: true, subPath: in}\n"
        "- {name: top, hostPath: {path: /top, type: Directory}, mountPath: /top}\n"
        "- {configMap: m, mountPath: /m}\n- {secret: s, mountPath: /s}\n"
        "- {emptyDir: 5Gi, mountPath: /e}\n- {shm: 16Gi}\n"
        "tolerations: [{key: k, operator: Exists}]\nnodeSelector: {a: b}\n"
        "priorityClassName: p\nserviceAccountName: sa\nimagePullSecrets: [x, {name: z}]\n"
        "schedulerName: sch\nlabels: {l: v}\nannotations: {an: any text}\n";
    struct job_spec s = read_good(text);
    (void)state;
    expect_template(
        &s, "{metadata: {labels: {l: v}, annotations: {an: any text}},\n"
            "spec: {tolerations: [{key: k, operator: Exists}], nodeSelector: {a: b},\n"
            "priorityClassName: p, serviceAccountName: sa, schedulerName: sch,\n"
            "imagePullSecrets: [{name: x}, {name: z}],\n"
            "volumes: [{name: volume-0, persistentVolumeClaim: {claimName: data}},\n"
            " {name: top, hostPath: {path: /top, type: Directory}},\n"
            " {name: volume-2, configMap: {name: m}}, {name: volume-3, secret: {secretName: s}},\n"
            " {name: volume-4, emptyDir: {sizeLimit: 5Gi}},\n"
            " {name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}],\n"
            "containers: [{name: worker, image: i, command: [c], args: [a, ''], workingDir: /w,\n"
            " env: [{name: A, value: b}, {name: COUNT, value: '4'},\n"
            "  {name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}],\n"
            " envFrom: [{configMapRef: {name: m}}],\n"
            " resources: {requests: {cpu: 8, memory: 1Gi}},\n"
            " volumeMounts: [{name: volume-0, mountPath: /data, readOnly: true, subPath: in},\n"
            "  {name: top, mountPath: /top}, {name: volume-2, mountPath: /m},\n"
            "  {name: volume-3, mountPath: /s}, {name: volume-4, mountPath: /e},\n"
            "  {name: shm, mountPath: /dev/shm}]}]}}");
    job_spec_done(&s);
    s = read_good("image: i\ncommand: [c]\nenv: [{name: A, value: b}]\n");
    expect_template(&s, "{spec: {containers: [{name: worker, image: i, command: [c], env: [{name: "
                        "A, value: b}]}]}}");
    job_spec_done(&s);
}

/* A template lies over the short form, as a strategic merge patch does. */
static void test_template_over_short_form(void **state)
{
    static const struct {
        const char *job, *template;
    } list[] = {
        /* the worker's container and another one; maps are merged */
        {"image: i\ncommand: [c]\nenv: {A: a, B: b}\nnodeSelector: {a: a, b: b}\n"
         "template: {spec: {nodeSelector: {b: c}, containers: [{name: proxy, image: p}, {name: "
         "worker, env: [{name: B, value: x}, {name: C, value: c}], tty: true}]}}",
         "{spec: {nodeSelector: {a: a, b: c}, containers: [{name: worker, image: i, command: [c], "
         "env: [{name: A, value: a}, {name: B, value: x}, {name: C, value: c}], tty: true}, {name: "
         "proxy, image: p}]}}"},
        /* the first container without a name is the worker's */
        {"image: i\ncommand: [c]\ntemplate: {spec: {containers: [{tty: true}]}}",
         "{spec: {containers: [{name: worker, image: i, command: [c], tty: true}]}}"},
        /* lists without names are replaced */
        {"image: i\ncommand: [c]\nargs: [a]\ntolerations: [{key: a}]\npriorityClassName: p\n"
         "template: {spec: {tolerations: [{key: b}], priorityClassName: q}}",
         "{spec: {tolerations: [{key: b}], priorityClassName: q, containers: [{name: worker, "
         "image: i, command: [c], args: [a]}]}}"},
        /* where the short form has no image and no command, it is about the first container */
        {"env: {A: a}\ntolerations: [{key: a}]\n"
         "template: {spec: {containers: [{name: train, image: i, command: [c]}]}}",
         "{spec: {tolerations: [{key: a}], containers: [{name: train, image: i, command: [c], env: "
         "[{name: A, value: a}]}]}}"},
        {"nodeSelector: {a: b}\ntemplate: {spec: {containers: [{name: train, image: i, command: "
         "[c]}]}}",
         "{spec: {nodeSelector: {a: b}, containers: [{name: train, image: i, command: [c]}]}}"},
        /* image here, command there */
        {"image: i\ntemplate: {spec: {containers: [{name: worker, command: [c]}]}}",
         "{spec: {containers: [{name: worker, image: i, command: [c]}]}}"},
        /* a volume has one source: it is replaced */
        {"image: i\ncommand: [c]\nvolumes: [{name: v, emptyDir: {}, mountPath: /v}]\n"
         "template: {spec: {volumes: [{name: v, hostPath: {path: /h}}, {name: w, emptyDir: {}}]}}",
         "{spec: {volumes: [{name: v, hostPath: {path: /h}}, {name: w, emptyDir: {}}], containers: "
         "[{name: worker, image: i, command: [c], volumeMounts: [{name: v, mountPath: /v}]}]}}"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        struct job_spec s = read_good(list[i].job);
        expect_template(&s, list[i].template);
        job_spec_done(&s);
    }
}

#define SIXTY "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define JOB(spec) "kind: DraJob\nspec:\n  image: i\n  command: [c]\n  " spec "\n"
#define TEN(text) text text text text text text text text text text
#define RULE "{\"on\": {cause: oom}, action: fail}, "
#define TOLERATION "{operator: Exists}, "
#define FOUR(name) "{name: " name "a}, {name: " name "b}, {name: " name "c}, {name: " name "d}, "
#define POLICY(on, then) JOB("failurePolicy: {rules: [{\"on\": {" on "}, action: " then "}]}")

static void test_refused(void **state)
{
    static const char *const list[][2] = {
        {JOB("workers: 0"),
         "job.yaml:5:12: spec.workers: expected an integer of at least 1, got 0"},
        {JOB("workers: 10001"), "at most 10000, got 10001"},
        {JOB("workers: 2.5"), "spec.workers: expected an integer of at least 1, got 2.5"},
        {JOB("workers:"), "spec.workers: expected an integer of at least 1, got nothing (null)"},
        {JOB("worker: 2"), "job.yaml:5:3: spec.worker: unknown key; did you mean workers?"},
        {JOB("x: 2"), "spec.x: unknown key; known here: workers ranksPerWorker"},
        {JOB("ranksPerWorker: 4\n  slots: 3"),
         "spec.slots: 3 slots are fewer than the 4 ranks that each worker starts with"},
        {JOB("launch: env\n  slots: 3"), "spec.slots: launch: env has no PMIx"},
        {JOB("launch: mpirun\n  oversubscribe: true"),
         "spec.oversubscribe: is for ranks that ranks start through PMIx"},
        {JOB("launch: mpirun\n  failurePolicy: {onRankFailure: continue}"),
         "spec.failurePolicy.onRankFailure: your mpirun starts the ranks"},
        {JOB("timeouts: {agent: 4s}"), "expected 5 s to 600 s for timeouts.agent, got 4 s"},
        {JOB("timeouts: {agent: 0}"), "for timeouts.agent, got 0 s"},
        {JOB("timeouts: {agent: 11m}"), "for timeouts.agent, got 660 s"},
        {JOB("timeouts: {signal: SIGUSR1}"), "timeouts.signal: is sent before timeouts.total"},
        {JOB("timeouts: {total: 1h, signal: SIGKILL}"), "expected one of SIGHUP, SIGINT"},
        {JOB("timeouts: {total: 1h, signalBefore: 5m}"), "signalBefore: is for signal"},
        {JOB("timeouts: {total: 1h, signal: SIGUSR1, signalBefore: 0}"),
         "timeouts.signalBefore: must be above 0"},
        {JOB("timeouts: {total: 90s, signal: SIGUSR1, signalBefore: 2m}"),
         "signalBefore: the signal is to come 120 s before timeouts.total, which is 90 s"},
        {JOB("timeouts: {total: 1m, signal: SIGUSR1}"),
         "timeouts.signal: the signal is to come 60 s before timeouts.total, which is 60 s"},
        {JOB("failurePolicy: {onRankFailure: ignore}"), "expected one of end, continue"},
        {JOB("workers: 10000\n  ranksPerWorker: 4096"), "are more than the 1000000 ranks"},
        {JOB("devices: {gpus: {count: 8, resource: gpu}}"), "a resource such as nvidia.com/gpu"},
        {JOB("devices: {gpus: {count: 8, resource: a.b/c, selector: 'true'}}"),
         "spec.devices.gpus.selector: devices of a resource"},
        {JOB("devices: {gpus: {count: all, resource: a.b/c}}"), "all needs a class"},
        {JOB("devices: {nics: {count: 8}}"), "spec.devices.nics: class is missing"},
        {JOB("devices: {nics: {class: dranet}}"), "spec.devices.nics: count is missing"},
        {JOB("devices: {nics: {count: 0, class: dranet}}"), "at least 1"},
        {JOB("devices: {nics: {count: eight, class: dranet}}"), "or the word all, got \"eight\""},
        {JOB("devices: {nics: {count: 8, class: Dra_net}}"), "a DeviceClass' name"},
        {JOB("devices: {nics: {count: 8, class: mine, config: {a: 1}}}"), "add driver"},
        {JOB("devices: {nics: {count: 8, class: mine, driver: x.y}}"), "config is missing"},
        {JOB("devices: {nics: {count: 8, class: dranet, config: {interface: {name: x}}}}"),
         "interface.name would give several NICs"},
        {JOB("devices: {nics: {count: 8, class: dranet, selector: []}}"), "a CEL expression"},
        {JOB("devices: {nics: {count: 8, class: dranet, match: [rail]}}"), "an attribute such as"},
        {JOB("devices: 8"), "spec.devices: expected a mapping, got 8"},
        {JOB("devices: {gpus: 8}"), "spec.devices.gpus: expected a mapping, got 8"},
        {JOB("devices: {nics: [1]}"), "spec.devices.nics: expected a mapping, got a list"},
        {JOB("devices: {cpus: 8}"), "spec.devices.cpus: expected a mapping, got 8"},
        {JOB("devices: {cpus: {groups: 2}}"), "spec.devices.cpus: count is missing"},
        {JOB("devices: {cpus: {count: 8, class: Dra_cpu}}"), "a DeviceClass' name such as dra.cpu"},
        {JOB("placement: {spread: rack}"),
         "spec.placement.spread: expected one of node, none, got \"rack\""},
        {JOB("placement: {spred: node}"),
         "spec.placement.spred: unknown key; did you mean spread?"},
        {"workers: 2\nplacement: {spread: node}\ntemplate: {spec: {containers: [{image: i, "
         "command: "
         "[c]}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
         "[{topologyKey: kubernetes.io/hostname, labelSelector: {matchExpressions: [{key: "
         "drarun.dev/worker, operator: Exists}]}}]}}}}\n",
         "job.yaml:2:13: placement.spread: node contradicts "
         "spec.template.spec.affinity.podAffinity, which requires all workers to be on one node"},
        {JOB("queue: a\n  devices: {claims: direct}"), "queue needs claims: template"},
        {JOB("queue: A!"), "the name of a LocalQueue"},
        {JOB("managedBy: multikueue"), "spec.managedBy: expected a controller such as "
                                       "example.com/name, of at most 63 characters, "
                                       "got \"multikueue\""},
        {JOB("managedBy: /x"), "a controller such as"},
        {JOB("managedBy: a.b/"), "a controller such as"},
        {JOB("managedBy: A.b/x"), "a controller such as"},
        {JOB("managedBy: a..b/x"), "a controller such as"},
        {JOB("managedBy: 'a.b/x y'"), "a controller such as"},
        {JOB("managedBy: a.b/" SIXTY), "a controller such as"}, /* 64 */
        {JOB("computeDomain: true"), "spec.computeDomain: expected a mapping, got true"},
        {JOB("computeDomain: {channel: {allocationMode: Some}}"), "one of Single, All"},
        {JOB("launch: pmi"), "expected one of pmix, env, mpirun, got \"pmi\"; did you mean pmix?"},
        {JOB("timeouts: {start: 2 m}"), "expected a duration"},
        {JOB("timeouts: {start: -1}"), "expected a duration"},
        {JOB("timeouts: {start: 0x10s}"), "expected a duration"},
        {JOB("timeouts: {start: 11y}"), "expected a duration"},
        {JOB("timeouts: {start: 4000d}"), "expected a duration"},
        {JOB("nccl: {profile: A4}"), "auto or a profile's name"},
        {JOB("nccl: {version: '2'}"), "NCCL's version"},
        {JOB("nccl: {env: {A: {}}}"), "spec.nccl.env.A: expected a text or a whole number"},
        {"kind: DraJob\nspec: {command: [c]}", "image is missing"},
        {"kind: DraJob\nspec: {image: i}", "command is missing"},
        {"kind: DraJob\nspec: {image: i, command: []}", "a list of at least 1"},
        {"kind: DraJob\nspec: {image: i, command: c}", "expected a list, got \"c\""},
        {"kind: DraJob\nspec: {image: i, command: [PROGRAM]}",
         "job.yaml:2:27: spec.command: PROGRAM stands in place of the ranks' program"},
        {"kind: DraJob\nspec: {template: {spec: {containers: [{image: i, command: [PROGRAM]}]}}}",
         "spec.template.spec.containers[0].command: PROGRAM stands in place of the ranks'"},
        {"kind: DraJob\nspec: {image: '', command: [c]}", "not empty"},
        {"kind: DraJob\nspec: {}", "image and command are missing"},
        {"kind: DraJob\nspec: {template: {}}", "spec: image and command are missing"},
        {"kind: DraJob\nspec: {template: {spec: {containers: []}}}",
         "spec: image and command are missing"},
        {"kind: DraJob\nspec: {template: {spec: {containers: [{image: i}]}}}",
         "spec.template.spec.containers[0]: command is missing"},
        {"kind: DraJob\nspec: {template: {spec: {containers: [{command: [c]}]}}}",
         "spec.template.spec.containers[0]: image is missing"},
        {"spec: {image: i, template: {spec: {containers: [{name: main, image: j, command: [c]}]}}}",
         "command is missing: with image, the ranks run in a container of their own, beside main "
         "of "
         "the template; if they belong in main, name it worker or leave image out"},
        {"kind: DraJob", "spec is missing"},
        {"kind: Job\nspec: {image: i, command: [c]}",
         "kind: expected DraJob, got \"Job\": drarun import makes a DraJob of it"},
        {"kind: TrainJob\nspec: {image: i, command: [c]}",
         "kind: expected DraJob, got \"TrainJob\": drarun import makes a DraJob of it"},
        {"apiVersion: drarun.dev/v1\nspec: {image: i, command: [c]}",
         "apiVersion: expected drarun.dev/v1alpha1, got \"drarun.dev/v1\": another release of "
         "drarun reads it"},
        {"apiVersion: batch/v1\nspec: {image: i, command: [c]}",
         "apiVersion: expected drarun.dev/v1alpha1, got \"batch/v1\""},
        {"kind: Deployment\nspec: {image: i, command: [c]}",
         "kind: expected DraJob, got \"Deployment\""},
        {"spec: {image: busy box, command: [c]}",
         "spec.image: expected an image: REGISTRY/NAME:TAG with a NAME in lower case, got \"busy "
         "box\""},
        {"spec: {image: Busybox, command: [c]}", "in lower case, got \"Busybox\""},
        {"spec: {image: 'docker://x/y', command: [c]}", "spec.image: expected an image"},
        {"spec: {image: '${REPO}/x:1', command: [c]}", "spec.image: expected an image"},
        {"spec: {image: '<account>.dkr.ecr/x', command: [c]}", "spec.image: expected an image"},
        {"spec: {image: 'Registry:5000/a/b:Tag@sha256:0F', command: []}", "spec.command: expected"},
        {"metadata: {name: a, uid: b}\nspec: {image: i, command: [c]}",
         "metadata.uid: the cluster sets this in a DraJob that is there: take it out"},
        {"kind: DraJob\nspec: {image: i, command: [c]}\nstatus: {phase: Running}",
         "status: the cluster sets this"},
        {"spec: {template: {spec: {containers: [{image: i, command: [c], resources: {limits: "
         "{memory: 1GiB, cpu: 2}}}]}}}",
         "limits.memory: expected a quantity: 500m, 2, 1Gi, got \"1GiB\""},
        {"spec: {image: i, command: [c], template: {spec: {dnsPolicy: Defualt}}}",
         "spec.template.spec.dnsPolicy: expected one of ClusterFirst, ClusterFirstWithHostNet, "
         "Default, None, got \"Defualt\"; did you mean Default?"},
        {"spec: {image: i, command: [c], template: {spec: {dnsPolicy: Cluster}}}",
         "spec.template.spec.dnsPolicy: expected one of ClusterFirst"},
        {"spec: {image: i, command: [c], volumes: [{secret: {secretName: s, defaultMode: 1777}, "
         "mountPath: /s}]}",
         "spec.volumes[0].secret.defaultMode: expected an integer of at most 511, got 1777"},
        {"spec: {image: i, command: [c], template: {spec: {securityContext: {supplementalGroups: "
         "[0, -1]}}}}",
         "spec.template.spec.securityContext.supplementalGroups[1]: expected an integer of at "
         "least 0, got -1"},
        {"spec: {template: {spec: {initContainers: [{name: init, image: \"a b\"}], containers: "
         "[{image: i, "
         "command: [c]}]}}}",
         "initContainers[0].image: expected an image"},
        {JOB("volumeMounts: []"), "job.yaml:5:3: spec.volumeMounts: a mount is part of its volume"},
        {JOB("hostNetwork: true"), "spec.hostNetwork: not part of the short form: put it into "
                                   "template.spec.hostNetwork"},
        {JOB("backoffLimit: 3"),
         "job.yaml:5:3: spec.backoffLimit: unknown key; in a DraJob it is spec.restarts"},
        {JOB("activeDeadlineSeconds: 600"),
         "spec.activeDeadlineSeconds: unknown key; in a DraJob it is spec.timeouts: {total: 600s}"},
        {JOB("replicas: 2"), "spec.replicas: unknown key; in a DraJob it is workers"},
        {JOB("slotsPerWorker: 2"), "unknown key; in a DraJob it is ranksPerWorker"},
        {JOB("livenessProbe: {}"), "put it into template.spec.containers[0].livenessProbe"},
        {JOB("securityContext: {}"),
         "put it into template.spec.containers[0].securityContext (for the container) or "
         "template.spec.securityContext (for the pod)"},
        {JOB("template: {spec: {nodeSelektor: {a: b}}}"),
         "job.yaml:5:21: spec.template.spec.nodeSelektor: unknown key; did you mean nodeSelector?"},
        {JOB("template: {spec: {tolerations: oops}}"),
         "job.yaml:5:34: spec.template.spec.tolerations: expected a list, got \"oops\""},
        {JOB("template: {spec: {command: [c]}}"),
         "not a key of PodSpec: it belongs to a container"},
        {JOB("template: {containers: []}"), "not a key of PodTemplateSpec: it belongs to the pod"},
        {JOB("template: {spec: {containers: [{tolerations: []}]}}"),
         "spec.template.spec.containers[0].tolerations: not a key of Container: it belongs to the "
         "pod: template.spec"},
        {JOB("template: {spec: {containers: [{name: other}]}}"),
         "spec.template.spec.containers[0]: image is missing"},
        {JOB("template: {spec: {volumes: [{emptyDir: {}}]}}"),
         "spec.template.spec.volumes[0]: name is missing"},
        {JOB("template: {spec: {securityContext: {runAsUser: root}}}"),
         "runAsUser: expected an integer"},
        {JOB("template: {spec: {hostNetwork: 'yes'}}"), "expected true or false, got \"yes\""},
        {JOB("template: {spec: {nodeSelector: {a: 1}}}"), "nodeSelector.a: expected a text (put"},
        {JOB("template: {spec: {zzzzzzzz: 1}}"), "PodSpec has none of that name in Kubernetes"},
        {JOB("env: {A: true}"), "spec.env.A: expected a text, a whole number (put it in quotes)"},
        {JOB("env: {A: 1.5}"), "spec.env.A: expected a text, a whole number, or a source"},
        {JOB("env: {1A: b}"), "spec.env.1A: expected the name of a variable"},
        {JOB("env: {A: {secretKeyRef: {name: s}}}"), "spec.env.A.secretKeyRef: key is missing"},
        {JOB("env: [{name: A, valeu: b}]"), "spec.env[0].valeu: unknown key; did you mean value?"},
        {JOB("env: A=b"), "spec.env: expected a mapping of names to values, or a list"},
        {JOB("resources: {cpu: 8}"), "spec.resources.cpu: unknown key"},
        {JOB("resources: {limits: {memory: 1GiB}}"),
         "spec.resources.limits.memory: expected a qua"},
        {JOB("volumes: [{mountPath: /x}]"), "spec.volumes[0]: expected one source, got 0"},
        {JOB("volumes: [{emptyDir: {}, secret: s, mountPath: /x}]"), "expected one source, got 2"},
        {JOB("volumes: [{emptyDir: {}}]"), "spec.volumes[0]: mountPath is missing"},
        {JOB("volumes: [{emptyDir: {}, mountPath: x}]"), "expected an absolute path"},
        {JOB("volumes: [{shm: 16Gi, mountPath: /x}]"), "shm is always at /dev/shm"},
        {JOB("volumes: [{shm: lots}]"), "spec.volumes[0].shm: expected a quantity"},
        {JOB("volumes: [{shm: {}}]"), "spec.volumes[0].shm: expected a quantity such as 16Gi"},
        {JOB("volumes: [{name: A, emptyDir: {}, mountPath: /x}]"),
         "spec.volumes[0].name: expected a DNS label (a-z, 0-9 and inner -, at most 63)"},
        {JOB("volumes: [{emptyDir: {}, mountPath: '/x:y'}]"), "an absolute path without a colon"},
        {JOB("volumes: [{emptyDir: {}, mountPath: /x, readOnly: 'yes'}]"),
         "spec.volumes[0].readOnly: expected true or false"},
        {JOB("volumes: [{shm: 1Gi}, {shm: 2Gi}]"), "spec.volumes[1].shm: a second shm"},
        {JOB("volumes: [{secret: a, mountPath: /a}, {secret: b, mountPath: /a}]"),
         "spec.volumes[1].mountPath: a second volume with the mountPath \"/a\""},
        {JOB("volumes: [{secret: {name: s}, mountPath: /x}]"),
         "spec.volumes[0].secret.name: unknown"},
        {JOB("tolerations: {}"), "spec.tolerations: expected a list"},
        {JOB("imagePullSecrets: [1]"), "spec.imagePullSecrets[0]: expected the name of a Secret"},
        {JOB("labels: {a: 'b c'}"), "spec.labels.a: expected at most 63"},
        {JOB("labels: {drarun.dev/x: a}"), "keys of drarun.dev are drarun's own"},
        {JOB("launcher: {tolerations: [{kee: a}]}"),
         "spec.launcher.tolerations[0].kee: unknown key"},
        {JOB("bind: cores"),
         "spec.bind: binding \"cores\": expected none, core, core:N, numa or CPUs"},
        {JOB("bind: '3-1'"), "spec.bind: binding \"3-1\""},
        {JOB("devices: {gpus: {count: 1, profile: a100}}"), "profile: expected a MIG profile such"},
        {JOB("devices: {gpus: {count: 1, profile: 1g.5gb, resource: a.b/c}}"),
         "gpus.profile: devices of a resource cannot be chosen or configured: use class"},
        {JOB("devices: {nics: {count: 1, class: c, profile: 1g.5gb}}"), "nics.profile: unknown"},
        {JOB("devices: {gpus: {count: 1, tolerations: [{value: v}]}}"),
         "tolerations[0]: key is missing: operator: Exists without one is for every taint"},
        {JOB("devices: {gpus: {count: 1, tolerations: [{operator: Exists, value: v}]}}"),
         "tolerations[0].value: Exists matches any value"},
        {JOB("devices: {gpus: {count: 1, tolerations: [{key: -a, operator: Exists}]}}"),
         "tolerations[0].key: expected the key of a taint, such as example.com/degraded"},
        {JOB("devices: {gpus: {count: 1, tolerations: [{key: a, value: 1}]}}"),
         "tolerations[0].value: expected a text"},
        {JOB("devices: {gpus: {count: 1, tolerations: [{key: a, effect: PreferNoSchedule}]}}"),
         "tolerations[0].effect: expected one of NoSchedule, NoExecute"},
        {JOB("devices: {gpus: {count: 1, tolerations: [" TEN(TOLERATION)
                 TOLERATION TOLERATION TOLERATION TOLERATION TOLERATION TOLERATION TOLERATION
             "]}}"),
         "gpus.tolerations: more than the 16 tolerations that Kubernetes allows"},
        {JOB("failurePolicy: {rules: []}"),
         "spec.failurePolicy.rules: expected a list of at least"},
        {JOB("failurePolicy: {rules: [{action: fail}]}"), "rules[0]: on is missing"},
        {JOB("failurePolicy: {rules: [{on: {cause: oom}, action: fail}]}"), "quote \"on\""},
        {POLICY("", "fail"), "rules[0].on: a condition is missing"},
        {POLICY("exitCodes: [3], cause: oom", "fail"), "on.cause: one condition a rule"},
        {POLICY("exitCodes: [0]", "fail"), "exitCodes[0]: expected an integer"},
        {POLICY("cause: omm", "fail"), "did you mean oom?"},
        {POLICY("cause: timeout", "fail"), "on.cause: expected one of exit, signal,"},
        {POLICY("hang: 10m", "fail"), "on.hang: hang is not supported yet: exitCodes or cause"},
        {POLICY("cause: oom", "checkpoint"), "action: checkpoint is not supported yet"},
        {POLICY("cause: oom", "retry"), "action: expected one of restart, fail, ignore"},
        {POLICY("cause: oom", "restart, scope: worker"), "scope: worker is not supported yet"},
        {POLICY("cause: oom", "fail, node: avoid"), "node: there is no next attempt after fail"},
        {POLICY("cause: oom", "restart, when: x"), "rules[0].when: unknown key"},
        {POLICY("cause: oom", "restart, node: stay"), "node: expected one of avoid, keep"},
        {POLICY("exitCodes: [256]", "fail"), "exitCodes[0]: expected an integer of at most 255"},
        {JOB("failurePolicy: {rules: [{\"on\": {cause: oom}}]}"),
         "rules[0]: action is missing: restart, fail or ignore"},
        {JOB("failurePolicy: {rules: [" TEN(RULE) TEN(RULE) RULE "]}"),
         "failurePolicy.rules: at most 20 rules, got 21"},
        {JOB("restarts: 1\n  failurePolicy: {restarts: 2}"),
         "failurePolicy.restarts: is also at the top, spec.restarts"},
        {"metadata: {name: A}\nspec: {image: i, command: [c]}",
         "metadata.name: expected a DNS label (a-z, 0-9 and inner -, at most 55), got \"A\""},
        {"metadata: {name: a, namespace: a.b}\nspec: {image: i, command: [c]}",
         "metadata.namespace: expected a namespace: a DNS label, got \"a.b\""},
        {"metadata: {labels: {-a: b}}\nspec: {image: i, command: [c]}",
         "metadata.labels.-a: expected a key such as example.com/name"},
        {"metadata: {annotations: {a/b/c: b}}\nspec: {image: i, command: [c]}",
         "metadata.annotations.a/b/c: expected a key such as example.com/name"},
        {"metadata: {generateName: A}\nspec: {image: i, command: [c]}",
         "metadata.generateName: expected what a DNS label begins with"},
        {"metadata: {generateName: a123456789b123456789c123456789d123456789e123456789f1234}\n"
         "spec: {workers: 10, image: i, command: [c]}",
         "metadata.generateName: at most 50 characters"},
        {"[1]", "job.yaml:1:1: expected a mapping, got a list"},
        {"3", "expected a mapping, got 3"},
        {"{}", "spec is missing"},
        {"", "expected one document, got 0"},
        {"image: i\ncommand: [c]\n---\nimage: i\ncommand: [c]", "expected one document, got 2"},
        {"image: i\ncommand: [c]\nworker: 1", "job.yaml:3:1: worker: unknown key"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(list); i++)
        expect_finding(list[i][0], list[i][1]);
}

/* One more of each is refused. */
static void test_longest_lists(void **state)
{
    static const char *const texts[] = {
        JOB("failurePolicy: {rules: [" TEN(RULE) TEN(RULE) "]}"),
        JOB("devices: {gpus: {count: 1, tolerations: [" TEN(TOLERATION)
                TOLERATION TOLERATION TOLERATION TOLERATION TOLERATION TOLERATION "]}}"),
        "image: i\ncommand: [c]\nroles: [" FOUR("a") FOUR("b") FOUR("c") FOUR("d") "]",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct job_spec s = read_good(texts[i]);
        job_spec_done(&s);
    }
}

/* The same whatever the number of workers: NAME-w-I and NAME-channel must be DNS labels. */
static void test_name_length(void **state)
{
    char text[200], name[64];
    struct job_spec spec;
    (void)state;
    memset(name, 'a', sizeof name);
    for (int workers = 1; workers <= SPEC_WORKERS_MAX; workers *= 100) {
        for (int length = SPEC_NAME_MAX; length <= SPEC_NAME_MAX + 1; length++) {
            snprintf(text, sizeof text,
                     "metadata: {name: %.*s}\nspec: {workers: %d, image: i, command: [c]}", length,
                     name, workers);
            int rc = spec_parse("j", text, strlen(text), &spec, NULL);
            assert_int_equal(rc == 0, length == SPEC_NAME_MAX);
            if (rc == 0)
                job_spec_done(&spec);
        }
    }
}

static void test_default_name(void **state)
{
    static const char *const list[][2] = {
        {"job.yaml", "job"}, {"/a/b.c/All_Reduce.v2.yaml", "all-reduce"},
        {"<stdin>", "job"},  {"...", "job"},
        {"-x-.json", "x"},   {"\xc3\xa4.yaml", "job"},
    };
    char name[64];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        spec_default_name(list[i][0], name, sizeof name);
        assert_string_equal(name, list[i][1]);
    }
}

/* Every value of the whole document replaced by each other type: refused, or taken; never a crash.
 * What passes through is taken with any type. */
static size_t try_all(json_t *root, json_t *container, const char *path)
{
    static const char *const values[] = {"null", "true", "-1", "1.5",  "\"\"",       "\"x\"",
                                         "[]",   "[1]",  "{}", "[[]]", "{\"x\": []}"};
    size_t refused = 0, members = json_array_size(container);
    const char *keys[64];
    const char *key = NULL;
    json_t *value = NULL;
    if (json_is_object(container)) {
        members = 0;
        json_object_foreach(container, key, value)
        {
            keys[members++] = key;
        }
    }
    for (size_t m = 0; m < members; m++) {
        bool object = json_is_object(container);
        char below[300];
        json_t *old = object ? json_object_get(container, keys[m]) : json_array_get(container, m);
        snprintf(below, sizeof below, "%s/%s", path, object ? keys[m] : "item");
        json_incref(old);
        for (size_t i = 0; i < ARRAY_LEN(values); i++) {
            json_t *other = json_loads(values[i], JSON_DECODE_ANY, NULL);
            if (object)
                json_object_set_new(container, keys[m], other);
            else
                json_array_set_new(container, m, other);
            char *text = json_dumps(root, 0);
            struct job_spec spec;
            struct drarun_error err = {0};
            if (spec_parse("j.json", text, strlen(text), &spec, &err) == 0) {
                job_spec_done(&spec);
            } else {
                refused++;
                if (strncmp(err.text, "j.json:1:", strlen("j.json:1:")) != 0)
                    fail_msg("no place: %s (%s)", err.text, below);
            }
            free(text);
        }
        if (object)
            json_object_set_new(container, keys[m], old);
        else
            json_array_set_new(container, m, old);
        refused += try_all(root, old, below);
    }
    return refused;
}

static void test_wrong_types(void **state)
{
    struct job_spec s = read_good(whole);
    json_t *copy = json_deep_copy(s.document);
    (void)state;
    size_t refused = try_all(copy, copy, "");
    assert_true(refused > 300);
    assert_true(json_equal(copy, s.document)); /* everything is back in its place */
    json_decref(copy);
    job_spec_done(&s);
}

static void test_many_findings(void **state)
{
    struct buf b = BUF_INIT;
    struct job_spec spec;
    struct drarun_error err = {0};
    (void)state;
    buf_add_str(&b, "kind: DraJob\nspec:\n");
    for (int i = 0; i < 500; i++)
        buf_printf(&b, "  k%d: 1\n", i);
    assert_true(spec_parse("j", b.data, b.len, &spec, &err) < 0);
    assert_non_null(strstr(err.text, "(and 500 more)"));
    buf_reset(&b);
    buf_add_str(&b, "image: i\ncommand:\n"); /* ten million bytes of a good spec */
    while (b.len < DOC_SIZE_MAX - 64)
        buf_add_str(&b, "- an argument of the program\n");
    assert_int_equal(spec_parse("j", b.data, b.len, &spec, &err), 0);
    job_spec_done(&spec);
    buf_done(&b);
}

static long allocations_left; /* jansson's; its hook has no argument */

static void *failing_malloc(size_t size)
{
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

/* Each of jansson's allocations fails in turn: an error, or the whole spec, never a part of it. */
static void check_out_of_memory(const char *text)
{
    struct job_spec good = read_good(text), spec;
    long n = 0;
    int rc = -1;
    for (; rc < 0; n++) {
        struct drarun_error err = {0};
        allocations_left = n;
        json_set_alloc_funcs(failing_malloc, free);
        rc = spec_parse("job.yaml", text, strlen(text), &spec, &err);
        json_set_alloc_funcs(malloc, free);
        if (rc < 0 && err.code != ENOMEM && !strstr(err.text, "invalid token")) /* jansson's word */
            fail_msg("allocation %ld: %s", n, err.text);
    }
    assert_true(n > 10);
    assert_true(json_equal(spec.document, good.document));
    assert_true(json_equal(spec.roles[0].template, good.roles[0].template));
    assert_string_equal(spec.name, good.name);
    job_spec_done(&spec);
    job_spec_done(&good);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    check_out_of_memory(whole);
    check_out_of_memory("workers: 3\nimage: a/b\ncommand: [p, -x, '']\n");
    check_out_of_memory("{\"spec\": {\"image\": \"i\", \"command\": [\"c\", \"d\"]}}");
}

/* The API server takes any number that is not negative. */
static void test_grace(void **state)
{
    static const struct {
        const char *pod;
        int64_t ms;
    } rows[] = {
        {"{}", 30000},
        {"{\"terminationGracePeriodSeconds\": 5}", 5000},
        {"{\"terminationGracePeriodSeconds\": \"5\"}", 30000},
        {"{\"terminationGracePeriodSeconds\": 9223372036854775807}", SPEC_GRACE_MAX_S * 1000LL},
        {"{\"terminationGracePeriodSeconds\": -9223372036854775807}", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *template = json_pack("{s:o}", "spec", json_loads(rows[i].pod, 0, NULL));
        struct spec_role role = {.template = template};
        const struct job_spec spec = {.roles = &role, .role_count = 1};
        assert_int_equal(job_spec_grace_ms(&spec), rows[i].ms);
        json_decref(template);
    }
}

/* A class that comes with a driver tells whose configuration its requests take. */
static void test_driver_of_a_known_class(void **state)
{
    static const char *const known[][2] = {{"dranet", "dra.net"},
                                           {"dranet.net", "dra.net"},
                                           {"mrdma.google.com", "mrdma.google.com"},
                                           {"rdma.drarun.dev", "nic.drarun.dev"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        char text[300];
        snprintf(
            text, sizeof text,
            "spec: {image: a, command: [b], devices: {nics: {count: 1, class: %s, config: {}}}}",
            known[i][0]);
        struct job_spec s = read_good(text);
        assert_string_equal(s.roles[0].nics.config_driver, known[i][1]);
        job_spec_done(&s);
    }
}

static void test_parts_of_gpus(void **state)
{
    struct job_spec s =
        read_good("image: i\ncommand: [c]\ndevices: {gpus: {count: 2, profile: 1g.10gb+me, "
                  "tolerations: [{key: x.y/z, operator: Exists}]}}\n");
    (void)state;
    assert_string_equal(s.roles[0].gpus.class, "mig.nvidia.com");
    assert_int_equal(s.roles[0].gpus.selectors.count, 1);
    assert_string_equal(s.roles[0].gpus.selectors.items[0],
                        "\"profile\" in device.attributes[\"gpu.nvidia.com\"] && "
                        "device.attributes[\"gpu.nvidia.com\"].profile == \"1g.10gb+me\"");
    assert_int_equal(json_array_size(s.roles[0].gpus.tolerations), 1);
    job_spec_done(&s);
}

static void test_failure_policy(void **state)
{
    struct job_spec s =
        read_good("image: i\ncommand: [c]\nbind: core\nreportBindings: true\nfailurePolicy:\n  "
                  "restarts: 2\n  rules:\n"
                  "  - {\"on\": {exitCodes: [3, 255]}, action: restart, node: avoid, scope: job}\n"
                  "  - {\"on\": {cause: node-lost}, action: ignore}\n");
    (void)state;
    assert_string_equal(s.bind, "core");
    assert_true(s.report_bindings);
    assert_int_equal(s.restarts, 2);
    assert_false(s.failure.apart);
    assert_int_equal(s.failure.count, 2);
    assert_null(s.failure.rules[0].on_cause);
    assert_true(s.failure.rules[0].on_codes[3] && s.failure.rules[0].on_codes[255]);
    assert_false(s.failure.rules[0].on_codes[4]);
    assert_int_equal(s.failure.rules[0].action, FAILURE_RESTART);
    assert_int_equal(s.failure.rules[0].node, FAILURE_NODE_AVOID);
    assert_string_equal(s.failure.rules[1].on_cause, "node-lost");
    assert_int_equal(s.failure.rules[1].action, FAILURE_IGNORE);
    assert_int_equal(s.failure.rules[1].node, 0);
    job_spec_done(&s);
    s = read_good(
        "image: i\ncommand: [c]\nrestarts: 3\nfailurePolicy: {infrastructureRestarts: 0}\n");
    assert_int_equal(s.restarts, 3);
    assert_true(s.failure.apart);
    assert_int_equal(s.failure.infrastructure_restarts, 0);
    assert_int_equal(s.failure.on_rank_failure, FAILURE_OF_RANK_END);
    assert_string_equal(s.bind, "none");
    job_spec_done(&s);
    s = read_good("image: i\ncommand: [c]\nfailurePolicy: {onRankFailure: continue}\n");
    assert_int_equal(s.failure.on_rank_failure, FAILURE_OF_RANK_CONTINUE);
    job_spec_done(&s);
}

static const char roles[] =
    "metadata: {name: j}\n"
    "spec:\n"
    "  image: all\n"
    "  env: {A: top}\n"
    "  ranksPerWorker: 2\n  slots: 4\n  oversubscribe: true\n"
    "  devices: {gpus: {count: 4}, nics: {count: 4, class: dranet}}\n"
    "  nccl: {profile: gke-a4}\n"
    "  success: train\n"
    "  roles:\n"
    "  - {name: coordinator, ranksPerWorker: 1, devices: {}, command: [head], env: {B: own}}\n"
    "  - {name: train, workers: 3, slots: 2, image: trainer, command: [train]}\n"
    "  - {name: serve, workers: 2, command: [serve], devices: {gpus: {count: 1}}}\n";

/* A role's own keys replace those of the top as a whole; workers are numbered over all roles. */
static void test_roles(void **state)
{
    struct job_spec s = read_good(roles);
    const struct spec_role *head = &s.roles[0], *train = &s.roles[1], *serve = &s.roles[2];
    (void)state;
    assert_int_equal(s.role_count, 3);
    assert_int_equal(s.workers, 6);
    assert_int_equal(head->first, 0);
    assert_int_equal(train->first, 1);
    assert_int_equal(serve->first, 4);
    assert_ptr_equal(spec_role_of(&s, 0), head);
    assert_ptr_equal(spec_role_of(&s, 3), train);
    assert_ptr_equal(spec_role_of(&s, 5), serve);
    assert_int_equal(head->ranks_per_worker, 1);
    assert_int_equal(train->ranks_per_worker, 2);
    assert_int_equal(head->slots, 4);
    assert_int_equal(train->slots, 2);
    assert_true(s.oversubscribe);
    assert_false(spec_role_has_devices(head));
    assert_int_equal(train->gpus.count, 4);
    assert_int_equal(train->nics.count, 4);
    assert_string_equal(train->gpus.class, "gpu.nvidia.com");
    assert_int_equal(serve->gpus.count, 1);
    assert_false(spec_role_has_nics(serve));
    assert_null(head->machine.profile); /* nothing of the machine is for a role without devices */
    assert_string_equal(head->nccl_profile, "auto");
    assert_string_equal(train->machine.profile, "gke-a4");
    assert_string_equal(serve->machine.profile, "gke-a4");
    assert_int_equal(s.network, SPEC_NETWORK_RDMA);
    assert_int_equal(s.fabric, SPEC_FABRIC_OPEN);
    assert_int_equal(s.success, SPEC_SUCCESS_ROLE);
    assert_int_equal(s.success_role, 1);
    assert_true(spec_has_roles(&s));
    const json_t *first = spec_role_container(head);
    assert_string_equal(json_string_value(json_object_get(first, "image")), "all");
    assert_int_equal(json_array_size(json_object_get(first, "env")), 1);
    assert_string_equal(json_string_value(json_object_get(spec_role_container(train), "image")),
                        "trainer");
    job_spec_done(&s);
}

/* The plain form is a job with one role. */
static void test_one_role(void **state)
{
    static const char *const texts[] = {
        "workers: 3\nimage: i\ncommand: [c]\ndevices: {gpus: {count: 2}}\n",
        "image: i\ndevices: {gpus: {count: 2}}\n"
        "roles: [{name: worker, workers: 3, command: [c]}]\n",
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct job_spec s = read_good(texts[i]);
        assert_int_equal(s.role_count, 1);
        assert_string_equal(s.roles[0].name, "worker");
        assert_int_equal(s.workers, 3);
        assert_int_equal(s.roles[0].workers, 3);
        assert_int_equal(s.roles[0].gpus.count, 2);
        assert_int_equal(s.success, SPEC_SUCCESS_ALL);
        assert_int_equal(spec_has_roles(&s), i == 1);
        job_spec_done(&s);
    }
}

#define TWO(more, a, b)                                                                            \
    "image: i\ncommand: [c]\n" more "\nroles:\n- {name: a, " a "}\n- {name: b, " b "}\n"

static void test_refused_roles(void **state)
{
    static const char *const list[][2] = {
        {"image: i\ncommand: [c]\nroles: []", "roles: expected a list of at least 1"},
        {"image: i\ncommand: [c]\nroles: [x]", "roles[0]: expected a mapping"},
        {"image: i\ncommand: [c]\nroles: [{workers: 2}]", "roles[0]: name is missing"},
        {"image: i\ncommand: [c]\nroles: [{name: A}]", "roles[0].name: expected a DNS label"},
        {"image: i\ncommand: [c]\nroles: [" FOUR("a") FOUR("b") FOUR("c") FOUR("d") "{name: e}]",
         "roles: at most 16 roles, got 17"},
        {"image: i\ncommand: [c]\nroles: [{name: all}]",
         "roles[0].name: all and rank0 have a meaning in spec.success"},
        {"image: i\ncommand: [c]\nroles: [{name: a}, {name: a}]",
         "roles[1].name: a second role called \"a\""},
        {"command: [c]\nroles: [{name: a, image: i}, {name: b}]",
         "job.yaml:1:1: command: image is missing beside it"},
        {"roles: [{name: a, image: i}]", "roles[0].image: command is missing beside it"},
        {TWO("", "workerz: 2", "workers: 1"),
         "job.yaml:5:13: roles[0].workerz: unknown key; did you mean workers?"},
        {TWO("", "numNodes: 2", "workers: 1"),
         "roles[0].numNodes: unknown key; in a DraJob it is workers"},
        {TWO("", "maxRestarts: 2", "workers: 1"),
         "roles[0].maxRestarts: unknown key; in a DraJob it is spec.restarts"},
        {TWO("", "activeDeadlineSeconds: 600", "workers: 1"),
         "roles[0].activeDeadlineSeconds: unknown key; in a DraJob it is spec.timeouts: {total: "
         "600s}"},
        {TWO("", "restarts: 2", "workers: 1"),
         "roles[0].restarts: applies to the whole job: put it into spec.restarts"},
        {TWO("", "hostNetwork: true", "workers: 1"), "put it into template.spec.hostNetwork"},
        {TWO("", "workers: 6000", "workers: 6000"),
         "roles: 12000 workers are more than the 10000 of a job"},
        {TWO("ranksPerWorker: 4096", "workers: 200", "workers: 200"),
         "roles: 1638400 ranks on 400 workers are more than the 1000000 ranks of a job"},
        {TWO("slots: 3", "workers: 1", "ranksPerWorker: 4"),
         "slots: 3 slots are fewer than the 4 ranks"},
        {TWO("", "slots: 3, ranksPerWorker: 4", "workers: 1"),
         "roles[0].slots: 3 slots are fewer than the 4 ranks"},
        {TWO("", "oversubscribe: true", "workers: 1"),
         "roles[0].oversubscribe: applies to the whole job: put it into spec.oversubscribe"},
        {TWO("", "reportBindings: true", "workers: 1"),
         "roles[0].reportBindings: applies to the whole job: put it into spec.reportBindings"},
        {TWO("", "devices: {claims: direct}", "workers: 1"),
         "roles[0].devices.claims: applies to the whole job: put it into spec.devices.claims"},
        {TWO("success: c", "workers: 1", "workers: 1"),
         "success: expected all, rank0 or a role (a, b), got \"c\""},
        {TWO("world: two", "workers: 1", "workers: 1"),
         "world: expected one of shared, own, got \"two\""},
        {TWO("devices: {claims: template}", "workers: 1", "workers: 1"),
         "devices.claims: template is not supported yet for several roles"},
        {TWO("queue: q", "workers: 1", "workers: 1"),
         "queue: is not supported yet for several roles"},
        {TWO("computeDomain: {}", "workers: 1", "workers: 1"),
         "computeDomain: is not supported yet for several roles"},
        {TWO("launch: mpirun", "workers: 1", "workers: 1"),
         "launch: mpirun is not supported yet for several roles"},
        {TWO("launch: env", "workers: 1", "command: [torchrun, t.py]"),
         "launch: torchrun (b) would count the workers of all roles: set world: own"},
        {TWO("launch: env", "workers: 1", "command: [bash, -c], args: [torchrun t.py]"),
         "launch: torchrun (b) would count the workers of all roles: set world: own"},
        {TWO("", "priorityClassName: high", "workers: 1"),
         "roles: a and b have different priorities"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        expect_finding(list[i][0], list[i][1]);
}

/* What is wrong at the top is told once, however many roles take it from there. */
static void test_inherited_finding_is_one(void **state)
{
    static const char text[] = "image: 'a b'\ncommand: [c]\ndevices: {gpus: {count: 0}}\n"
                               "roles: [{name: a}, {name: b}, {name: c}]\n";
    struct drarun_error err = {0};
    struct job_spec spec;
    (void)state;
    assert_true(spec_parse("job.yaml", text, strlen(text), &spec, &err) < 0);
    assert_non_null(strstr(err.text, "job.yaml:1:8: image: expected an image"));
    assert_non_null(strstr(err.text, "(and 1 more)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_driver_of_a_known_class),
        cmocka_unit_test(test_grace),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_one_role),
        cmocka_unit_test(test_refused_roles),
        cmocka_unit_test(test_inherited_finding_is_one),
        cmocka_unit_test(test_short_form),
        cmocka_unit_test(test_ranks_of_a_worker),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_job_of_another_controller),
        cmocka_unit_test(test_keys_of_the_short_form),
        cmocka_unit_test(test_template_over_short_form),
        cmocka_unit_test(test_parts_of_gpus),
        cmocka_unit_test(test_failure_policy),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_longest_lists),
        cmocka_unit_test(test_name_length),
        cmocka_unit_test(test_default_name),
        cmocka_unit_test(test_wrong_types),
        cmocka_unit_test(test_many_findings),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
