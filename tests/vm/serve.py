# SPDX-License-Identifier: Apache-2.0
"""Runs in a guest of support/live_guest.py: does what comes over the virtio port "calls", a JSON document a line:
{id, argv, input, env} is answered with {id, rc, out, err}; calls run beside each other. Each command is a process group, killed
by {kill: id}. {id, read: [pattern]} is answered with {id, files: {path: text}}, {id, write: path, text} with {id}: a process costs a
tenth of a second here. Deadlines are the other side's: a guest's clock runs wrong when its machine was busy while it was set."""
import glob
import json
import os
import signal
import subprocess
import threading
import time

name = next(path for path in glob.glob("/sys/class/virtio-ports/*/name") if open(path).read().strip() == "calls")
port = open("/dev/" + name.split("/")[-2], "r+b", buffering=0)
lock = threading.Lock()
ending = threading.Lock()
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
    with ending:
        del running[call["id"]]
    write({"id": call["id"], "rc": run.returncode, "out": out, "err": err})


def text_of(path):
    """None: it is gone, or cannot be read now, as the attributes of devices that are not set up."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return None


def read(call):
    found = {path: text_of(path) for pattern in call["read"] for path in glob.glob(pattern)}
    write({"id": call["id"], "files": {path: text for path, text in found.items() if text is not None}})


def store(call):
    os.makedirs(os.path.dirname(call["write"]), exist_ok=True)
    with open(call["write"], "w") as file:
        file.write(call["text"])
    write({"id": call["id"]})


def kill(number):
    with ending:
        try:
            os.killpg(running[number].pid, signal.SIGKILL)
        except (KeyError, ProcessLookupError):
            pass  # it has just ended by itself


def try_timers():
    """Goes on only where each processor has its timer's interrupts (live_guest.py, LOST_TIMER)."""
    all_of_them = os.sched_getaffinity(0)
    for each in all_of_them:
        os.sched_setaffinity(0, {each})
        time.sleep(0.001)
    os.sched_setaffinity(0, all_of_them)


try_timers()
write({"id": 0})
rest = b""
while True:
    rest += port.read(65536)
    *lines, rest = rest.split(b"\n")
    for call in map(json.loads, lines):
        if "kill" in call:
            kill(call["kill"])
        else:
            does = read if "read" in call else store if "write" in call else serve
            threading.Thread(target=does, args=(call,), daemon=True).start()
