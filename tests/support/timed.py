# SPDX-License-Identifier: Apache-2.0
"""Cases that run twice: in the program of their file for what happens, whatever it takes, and in one with the label timed for how long
it takes, too (tests/README.md)."""
import pytest

TIMED = [pytest.param(False, id="does"), pytest.param(True, id="in time", marks=pytest.mark.timed)]
and_timed = pytest.mark.parametrize("timed", TIMED)
