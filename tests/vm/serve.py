# SPDX-License-Identifier: Apache-2.0
"""Runs in a guest of support/live_guest.py: does what comes over the virtio port "calls", a JSON document a line:
{id, argv, input, env} is answered with {id, rc, out, err}; calls run beside each other. Each command is a process group, killed
by {kill: id}. Deadlines are the other side's: a guest's clock runs wrong when its machine was busy while it was set."""
import glob
import json
import os
import signal
import subprocess
import threading

name = next(path for path in glob.glob("/sys/class/virtio-ports/*/name") if open(path).read().strip() == "calls")
port = open("/dev/" + name.split("/")[-2], "r+b", buffering=0)
lock = threading.Lock()
running = {}


def write(answer):
    data = json.dumps(answer).encode() + b"\n"
    with lock:
        while data:
            data = data[port.write(data):]


def serve(call):
    try:
        run = subprocess.Popen(call["argv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace", start_new_session=True, env={**os.environ, **call["env"]})
    except OSError as error:
        write({"id": call["id"], "rc": 127, "out": "", "err": str(error)})
        return
    running[call["id"]] = run
    out, err = run.communicate(call["input"])
    del running[call["id"]]
    write({"id": call["id"], "rc": run.returncode, "out": out, "err": err})


write({"id": 0})
rest = b""
while True:
    rest += port.read(65536)
    *lines, rest = rest.split(b"\n")
    for call in map(json.loads, lines):
        if "kill" not in call:
            threading.Thread(target=serve, args=(call,), daemon=True).start()
        elif call["kill"] in running:
            os.killpg(running[call["kill"]].pid, signal.SIGKILL)
