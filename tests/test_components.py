# SPDX-License-Identifier: Apache-2.0
"""Each component of CONTRIBUTING.md is configured, built, tested and installed without those that it does not use."""
import os
import subprocess

import pytest

from support.build import patience

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


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=patience(900), check=False, **options)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def without(source, folder, *components):
    """Built, and its unit tests have passed; what was installed, below a prefix."""
    build, prefix = folder / "build", folder / "usr"
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DCMAKE_INSTALL_PREFIX={prefix}",
        "-DCMAKE_INSTALL_LIBDIR=lib", *[f"-DDRARUN_{each}=OFF" for each in components])
    run("nice", "cmake", "--build", build, "--", "-j2")
    told = run("ctest", "--test-dir", build, "-L", "unit", "--output-on-failure", "-j2")
    assert "100% tests passed" in told and "No tests were found" not in told, told[-2000:]
    run("cmake", "--install", build)
    return build, prefix, {str(each.relative_to(prefix)) for each in prefix.rglob("*") if each.is_file()}


def test_dra_model(source, tmp_path):
    """A program of somebody else's is linked with it, as drarun-dra.pc says."""
    build, prefix, files = without(source, tmp_path, "LAUNCHER", "PLUGIN")
    assert not list((build / "bin").glob("*"))
    assert not any(each.startswith(("bin/", "sbin/", "libexec/", "share/man/")) for each in files), sorted(files)
    assert {each for each in files if each.endswith(".a")} == {f"lib/libdrarun_{name}.a" for name in ("base", "cel", "doc", "dra")}
    assert not any("private" in each or "/test/" in each for each in files), sorted(files)
    (tmp_path / "ask.c").write_text(ASK)
    flags = run("pkg-config", "--cflags", "--libs", "drarun-dra", env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}).split()
    run("cc", "-o", tmp_path / "ask", tmp_path / "ask.c", *flags)
    said = run(tmp_path / "ask")
    assert said.startswith("2 of 3: worker 2 of 3 has no node: "), said


def test_node_plugin(source, tmp_path):
    build, _, files = without(source, tmp_path, "LAUNCHER")
    assert {each.name for each in (build / "bin").iterdir() if each.is_file()} >= {"drarun-plugin", "drarun-attach"}
    assert not any("drarun-worker" in each or "libdrarun" in each or each.startswith("include/") for each in files), sorted(files)
    assert {"share/man/man8/drarun-plugin.8", "share/man/man8/drarun-attach.8", "sbin/drarun-plugin"} <= files, sorted(files)
    assert run(build / "bin/drarun-plugin", "--version").startswith("drarun-plugin ")
    run(build / "bin/drarun-plugin", "discover")


def test_launcher(source, tmp_path):
    build, prefix, files = without(source, tmp_path, "PLUGIN")
    assert not any("drarun-plugin" in each or "drarun-attach" in each for each in files), sorted(files)
    assert {"bin/drarun", "libexec/drarun/drarun-cluster"} <= files, sorted(files)
    assert run(prefix / "bin/drarun", "-n", "2", "--bind", "none", "sh", "-c", "echo $PMIX_RANK").split() in (["0", "1"], ["1", "0"])
