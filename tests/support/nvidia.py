# SPDX-License-Identifier: Apache-2.0
"""The NVIDIA GPUs of this machine, for tests that want real ones."""
import functools
import os
import re
import shutil
import subprocess
import sys
import typing
from pathlib import Path

import pytest

from .build import SOURCE, patience

FIELDS = ("index", "uuid", "name", "memory.total", "driver_version", "pci.bus_id", "compute_cap")


class Gpu(typing.NamedTuple):
    """As nvidia-smi has it. memory: MiB. address: as sysfs writes it."""

    index: int
    uuid: str
    name: str
    memory: int
    driver: str
    address: str
    capability: str


def smi(*words):
    return subprocess.run(["nvidia-smi", *words], check=True, capture_output=True, text=True, timeout=patience()).stdout


@functools.cache
def gpus():
    """Of this machine; [] where it has none, or no driver."""
    if not shutil.which("nvidia-smi"):
        return []
    try:
        rows = smi(f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits").splitlines()
    except subprocess.CalledProcessError:
        return []
    made = []
    for row in rows:
        index, uuid, name, memory, driver, address, capability = row.split(", ")
        made.append(Gpu(int(index), uuid, name, int(memory), driver, re.sub(r"^0000(?=....:)", "", address.lower()), capability))
    return made


needs_gpu = pytest.mark.skipif(not gpus(), reason="no NVIDIA GPU with its driver on this machine")


@functools.cache
def libraries():
    """Folders of NCCL and the CUDA runtime: $DRARUN_NCCL_LIBRARIES, joined by colons, else scripts/fetch-nccl's."""
    named = os.environ.get("DRARUN_NCCL_LIBRARIES")
    if named:
        return named.split(":")
    run = subprocess.run([SOURCE / "scripts" / "fetch-nccl"], capture_output=True, text=True)
    if run.returncode != 0:
        pytest.skip(f"scripts/fetch-nccl: {run.stderr.strip()[-300:]}")
    return [str(Path(run.stdout.strip()) / each) for each in ("nccl/lib", "cuda_runtime/lib")]


def environment():
    """For programs that load them."""
    return {"LD_LIBRARY_PATH": ":".join([*libraries(), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])}


def driver_root():
    """Options of drarun-plugin where the driver is in none of the usual places: $DRARUN_DRIVER_ROOT."""
    named = os.environ.get("DRARUN_DRIVER_ROOT")
    return ["--driver-root", named] if named else []


# A kernel that writes to an address that nobody has, by the driver's own interface: the driver logs an Xid 31 or 13.
FAULT = r"""
import ctypes
cuda, device, context, module, kernel = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
def ok(status):
    assert status == 0, status
ok(cuda.cuInit(0))
ok(cuda.cuDeviceGet(ctypes.byref(device), 0))
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
ok(cuda.cuCtxSetCurrent(context))
ok(cuda.cuModuleLoadData(ctypes.byref(module), b'''.version 6.0
.target sm_50
.address_size 64
.visible .entry fault() { .reg .b64 %a; .reg .b32 %v; mov.u64 %a, 16; mov.u32 %v, 1; st.global.u32 [%a], %v; ret; }
'''))
ok(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"fault"))
ok(cuda.cuLaunchKernel(kernel, *[ctypes.c_uint(1)] * 6, ctypes.c_uint(0), None, None, None))
print(cuda.cuCtxSynchronize())
"""
ILLEGAL_ADDRESS = "700"  # cuda.h, CUDA_ERROR_ILLEGAL_ADDRESS


def fault():
    """Makes one on GPU 0."""
    run = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True, timeout=patience())
    assert run.stdout.strip() == ILLEGAL_ADDRESS, run
