# SPDX-License-Identifier: Apache-2.0
"""Each component of CONTRIBUTING.md is configured, built, tested and installed without those that it does not use."""
import ctypes
import errno
import os
import subprocess

import pytest

from support.build import copy_source, patience, with_ccache

pytestmark = pytest.mark.plain("the compiler makes the same of it for every build")

ASK = r"""
#include <stdio.h>
#include "lib/dra/predict.h"

static const char slices_text[] =
    "[{\"apiVersion\": \"resource.k8s.io/v1\", \"kind\": \"ResourceSlice\", \"metadata\": {\"name\": \"n0\"}, \"spec\": {"
    "\"driver\": \"gpu.example.com\", \"nodeName\": \"n0\", \"pool\": {\"name\": \"n0\", \"generation\": 1, \"resourceSliceCount\": 1}, "
    "\"devices\": [{\"name\": \"gpu-0\"}, {\"name\": \"gpu-1\"}]}}]";
static const char claim_text[] =
    "{\"devices\": {\"requests\": [{\"name\": \"one\", \"exactly\": {\"deviceClassName\": \"gpu\", \"allocationMode\": \"ExactCount\", \"count\": 1}}]}}";
static const char classes_text[] =
    "[{\"metadata\": {\"name\": \"gpu\"}, \"spec\": {\"selectors\": [{\"cel\": {\"expression\": \"device.driver == 'gpu.example.com'\"}}]}}]";

int main(void)
{
    struct drarun_error err = {0};
    struct slices slices;
    struct prediction p;
    json_t *document = json_loads(slices_text, 0, NULL), *claim = json_loads(claim_text, 0, NULL);
    json_t *classes = json_loads(classes_text, 0, NULL);
    if (slices_read(document, &slices, &err) < 0)
        return fprintf(stderr, "%s\n", err.text), 1;
    const struct predict_cluster cluster = {.slices = &slices, .classes = classes};
    if (predict(claim, 3, &cluster, &p, &err) < 0)
        return fprintf(stderr, "%s\n", err.text), 1;
    printf("%u of %u: %s\n", p.placed, p.count, p.shortage);
    prediction_done(&p);
    slices_done(&slices);
    json_decref(document), json_decref(claim), json_decref(classes);
    return 0;
}
"""


JUDGE = r"""
#include <stdio.h>
#include "lib/accept/accept.h"
#include "lib/bench/runs.h"
#include "lib/bench/verdict.h"

int main(int argc, char *argv[])
{
    static char text[1 << 20];
    struct drarun_error err = {0};
    struct runs runs = {0};
    const struct limit_given given = {0};
    const struct verdict_demands demands = {.min_busbw = argc > 2 ? 1e6 : -1, .min_best_busbw = -1, .min_percent = -1};
    const struct accept_options options = {0};
    struct verdict verdict;
    struct accept *plan = NULL;
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    size_t length = file ? fread(text, 1, sizeof text, file) : 0;
    if (runs_read(text, length, "the file", &runs, &err) < 0)
        return fprintf(stderr, "%s\n", err.text), 1;
    verdict_make(runs.list[0], NULL, &given, &demands, &verdict);
    printf("%zu run, %zu failures, %s\n", runs.count, verdict.failures.count, verdict.data == VERDICT_DATA_RIGHT ? "right" : "wrong");
    verdict_done(&verdict);
    runs_done(&runs);
    if (accept_new(4, &options, &plan, &err) < 0)
        return fprintf(stderr, "%s\n", err.text), 1;
    accept_free(plan);
    return 0;
}
"""


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=patience(900), check=False, **options)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The sources, in a folder for builds."""
    folder = tmp_path_factory.mktemp("tree")
    copy_source(folder)
    return folder


OWN = ("-L", "unit", "-LE", "^lib$")  # the library's have passed in the benchmark's build, of the same objects


def without(tree, folder, *components, tests=("-L", "unit")):
    """Built, and its unit tests have passed, those that ctest takes by the words of tests; without words none is built. What was installed, below a
    prefix. Most objects are those of the whole build, whose options these are; nobody debugs the programs, of which there are hundreds to link."""
    build, prefix = tree / f"build-{'-'.join(components).lower()}", folder / "usr"
    left_out = components if tests else (*components, "TESTS")
    options, env = with_ccache(tree)
    run("cmake", "--preset", "dev", "-B", build, f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib", *options,
        *(f"-DCMAKE_{kind}_LINKER_FLAGS=-Wl,--strip-debug" for kind in ("EXE", "SHARED", "MODULE")), *(f"-DDRARUN_{each}=OFF" for each in left_out),
        cwd=tree)
    run("nice", "cmake", "--build", build, "--", "-j2", env=env)
    if tests:
        told = run("ctest", "--test-dir", build, *tests, "--output-on-failure", "-j16")
        assert "100% tests passed" in told and "No tests were found" not in told, told[-2000:]
    run("cmake", "--install", build)
    return build, prefix, {str(each.relative_to(prefix)) for each in prefix.rglob("*") if each.is_file()}


def compiled(folder, prefix, component, text):
    """A program of somebody else's, linked as the component's .pc file says."""
    (folder / "program.c").write_text(text)
    flags = run("pkg-config", "--cflags", "--libs", f"drarun-{component}", env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")})
    run("cc", "-o", folder / "program", folder / "program.c", *flags.split())
    return folder / "program"


def test_dra_model(tree, tmp_path):
    build, prefix, files = without(tree, tmp_path, "LAUNCHER", "PLUGIN", "BENCH")
    assert not list((build / "bin").glob("*"))
    assert not any(each.startswith(("bin/", "sbin/", "libexec/", "share/man/")) for each in files), sorted(files)
    assert {each for each in files if each.endswith(".a")} == {f"lib/libdrarun_{name}.a" for name in ("base", "cel", "doc", "dra")}
    assert not any("private" in each or "/test/" in each for each in files), sorted(files)
    said = run(compiled(tmp_path, prefix, "dra", ASK))
    assert said.startswith("2 of 3: worker 2 of 3 has no node: "), said


def test_benchmark(source, tree, tmp_path):
    """drarun-bench without a launcher of ours, and what judges its results."""
    build, prefix, files = without(tree, tmp_path, "LAUNCHER", "PLUGIN")
    assert {each.name for each in (build / "bin").iterdir() if each.is_file()} == {"drarun-bench"}
    assert not any("share/man/" in each or "libexec/" in each for each in files), sorted(files)
    assert {f"lib/libdrarun_{name}.a" for name in ("accept", "bench_result", "doc", "base")} <= files, sorted(files)
    assert not any("private" in each or "/test/" in each for each in files), sorted(files)
    judge = compiled(tmp_path, prefix, "judge", JUDGE)
    assert run(judge, source / "docs/bench/nccl-tests.txt") == "1 run, 0 failures, right\n"
    assert run(judge, source / "docs/bench/nccl-tests.txt", "fast") == "1 run, 1 failures, right\n"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMI"))}
    table = run(prefix / "bin/drarun-bench", "all_reduce", "-b", "8", "-e", "64", env={**env, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    assert "# Avg bus bandwidth" in table, table


def test_node_plugin(tree, tmp_path):
    build, _, files = without(tree, tmp_path, "LAUNCHER", tests=OWN)
    assert {each.name for each in (build / "bin").iterdir() if each.is_file()} >= {"drarun-plugin", "drarun-attach"}
    assert not any("drarun-worker" in each or "libdrarun" in each or each.startswith("include/") for each in files), sorted(files)
    assert {"share/man/man8/drarun-plugin.8", "share/man/man8/drarun-attach.8", "sbin/drarun-plugin", "libexec/drarun/drarun-nvml"} <= files, sorted(files)
    assert run(build / "bin/drarun-plugin", "--version").startswith("drarun-plugin ")
    run(build / "bin/drarun-plugin", "discover")


def test_launcher(tree, tmp_path):
    build, prefix, files = without(tree, tmp_path, "PLUGIN", tests=())  # its unit tests are those of the next, and the benchmark's
    assert not any("drarun-plugin" in each or "drarun-attach" in each for each in files), sorted(files)
    assert {"bin/drarun", "libexec/drarun/drarun-cluster"} <= files, sorted(files)
    assert run(prefix / "bin/drarun", "-n", "2", "--bind", "none", "sh", "-c", "echo $PMIX_RANK").split() in (["0", "1"], ["1", "0"])


def test_launcher_without_benchmark(tree, tmp_path):
    """Its verbs and functions are there, and say what is missing."""
    _, prefix, files = without(tree, tmp_path, "PLUGIN", "BENCH", tests=OWN)
    assert not any("drarun-bench" in each or "drarun-accept" in each for each in files), sorted(files)
    drarun = prefix / "bin/drarun"
    assert "bench      not in this build" in run(drarun, "help")
    missing = "{}: this drarun was built without the benchmark (-DDRARUN_BENCH=OFF): "
    for words in (["bench", "all_reduce"], ["bench", "judge", "x"], ["accept", "job.yaml"]):
        done = subprocess.run([drarun, *words], capture_output=True, text=True, timeout=patience(60), check=False)
        assert done.returncode == 64 and done.stdout == "", done
        assert done.stderr.startswith("drarun: " + missing.format(words[0])), done
    for words in (["help", "bench"], ["bench", "judge", "--help"]):
        assert run(drarun, *words).startswith(missing.format("bench")), words
    library = ctypes.CDLL(str(prefix / "lib/libdrarun.so.0"))
    error = ctypes.create_string_buffer(1024)
    assert library.drarun_bench_verdicts(b"x", ctypes.c_size_t(1), None, None, error) == -errno.ENOTSUP
    assert b"was built without the benchmark" in error.raw
    assert run(drarun, "-n", "2", "--bind", "none", "sh", "-c", "echo $PMIX_RANK").split() in (["0", "1"], ["1", "0"])
