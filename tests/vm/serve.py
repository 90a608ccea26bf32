# SPDX-License-Identifier: Apache-2.0
"""Runs in a guest of support/live_guest.py: does what comes over the virtio port "calls", a JSON document a line:
{id, argv, input, seconds, env} is answered with {id, rc, out, err}; calls run beside each other. Each command is a
process group, killed when its seconds are over."""
import glob
import json
import os
import signal
import subprocess
import threading

name = next(path for path in glob.glob("/sys/class/virtio-ports/*/name") if open(path).read().strip() == "calls")
port = open("/dev/" + name.split("/")[-2], "r+b", buffering=0)
lock = threading.Lock()


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
    try:
        out, err = run.communicate(call["input"], timeout=call["seconds"])
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        out, err = run.communicate()
        err += f"\nkilled after {call['seconds']} s"
    write({"id": call["id"], "rc": run.returncode, "out": out, "err": err})


write({"id": 0})
rest = b""
while True:
    rest += port.read(65536)
    *lines, rest = rest.split(b"\n")
    for line in lines:
        threading.Thread(target=serve, args=(json.loads(line),), daemon=True).start()
