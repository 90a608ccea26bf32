# SPDX-License-Identifier: Apache-2.0
"""A few of the cases of a test with several parameters, so that each N of their values meet in one of them."""
import itertools


def chosen(cases, n):
    """cases: {name of a parameter: value} each. Those that stay, in their order."""
    def meetings(case):
        return set(itertools.combinations(sorted(case.items()), min(n, len(case))))

    left, kept = set().union(*map(meetings, cases)), set()
    while left:
        best = max(range(len(cases)), key=lambda i: (len(meetings(cases[i]) & left), -i))
        left -= meetings(cases[best])
        kept.add(best)
    return [case for i, case in enumerate(cases) if i in kept]
