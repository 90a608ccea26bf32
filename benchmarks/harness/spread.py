# SPDX-License-Identifier: Apache-2.0
"""Numbers in place of samples: median with its interval, quartiles, ratios."""
import math
import random
import statistics


class Spread:
    """median with its 95 % interval low to high, min, p25, p75, max of some numbers. The interval is of order
    statistics and supposes no distribution (J.-Y. Le Boudec, Performance Evaluation, 2010, theorem 2.1, for many
    values); of fewer than six it is all of them."""

    def __init__(self, values):
        self.count = len(values)
        ordered = sorted(values)
        self.median = statistics.median(ordered)
        self.min, self.max = ordered[0], ordered[-1]
        self.p25, self.p75 = quantile(ordered, 0.25), quantile(ordered, 0.75)
        around = 0.98 * math.sqrt(self.count)
        self.low = ordered[max(0, math.floor(self.count / 2 - around))]
        self.high = ordered[min(self.count - 1, math.ceil(self.count / 2 + around))]


def quantile(ordered, part):
    position = (len(ordered) - 1) * part
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def midmean(values):
    """The mean of the middle half."""
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return statistics.mean(ordered[quarter:len(ordered) - quarter])


def ratio(ours, theirs, draws=1000):
    """The ratio of the medians and its 95 % interval by bootstrap, from a fixed seed."""
    rng = random.Random(1)
    drawn = sorted(statistics.median(rng.choices(ours, k=len(ours))) /
                   statistics.median(rng.choices(theirs, k=len(theirs))) for _ in range(draws))
    return (statistics.median(ours) / statistics.median(theirs),
            quantile(drawn, 0.025), quantile(drawn, 0.975))
