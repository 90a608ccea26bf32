# SPDX-License-Identifier: Apache-2.0
"""Sanitizer reports go to files, so that none is lost with a child's stderr."""
from .build import SANITIZE, SOURCE

SUPPRESSIONS = SOURCE / "tests" / "sanitizers"
# what the thread sanitizer itself leaves of a program that is killed while it begins, as patterns of names in TMPDIR
LEAVES = ("tsan.rodata.*",) if "thread" in SANITIZE else ()


def environment(directory):
    if not SANITIZE:
        return {}
    log = f"log_path={directory}/report"
    return {
        # libpmix and hwloc are not instrumented: what is freed is overwritten, so that they do not find it as it was.
        # %b is the program's name. Only the worker's stacks of allocations are unwound slowly, which makes each allocation many times as slow:
        # libpmix keeps no frame pointers, so a stack would end at its first function, which leak.txt may not know
        "ASAN_OPTIONS": f"{log}:detect_leaks=1:disable_coredump=0:exitcode=99:max_free_fill_size=65536:free_fill_byte=219:"
                        f"include_if_exists={SUPPRESSIONS}/%b.options",
        "LSAN_OPTIONS": f"suppressions={SUPPRESSIONS}/leak.txt:print_suppressions=0",
        "UBSAN_OPTIONS": f"{log}:print_stacktrace=1:halt_on_error=1:exitcode=99",
        # libpmix, in the agent, is not instrumented: what it does through memcpy, free and similar functions
        # would be reported, and with it each hand-over that it makes by atomics of its own
        # the agent ends by _exit, without waiting for libpmix' thread, which may hang (worker/main.c)
        "TSAN_OPTIONS": f"{log}:suppressions={SUPPRESSIONS}/thread.txt:exitcode=99:"
                        "ignore_interceptors_accesses=1:report_thread_leaks=0",
    }


def reports(directory):
    return "\n".join(p.read_text(errors="replace") for p in sorted(directory.glob("report*")))
