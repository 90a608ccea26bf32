# SPDX-License-Identifier: Apache-2.0
"""Jobs that drarun import prints, with a program where the manifest names none."""
import re


def complete(run):
    """The text of the job. One that lacks nothing but its program, which import and all other verbs refuse, gets one."""
    whole = re.sub(r"(command:\n +- )PROGRAM\n", r"\1program\n", run.out)
    if whole == run.out:
        return run.ok().out
    assert run.rc == 65 and "command: PROGRAM stands in place of the ranks' program" in run.err, repr(run)
    assert run.err.endswith("the imported job is printed, but not complete: mend the 1 error in it\n"), repr(run)
    return whole
