# SPDX-License-Identifier: Apache-2.0
"""What each launch of the soak does and how it must end, all drawn from one seed."""
import random
from dataclasses import dataclass, field

SIZES = [32, 64]
HANG = "hang"
SIGNALS = {"SIGABRT": 6, "SIGSEGV": 11, "SIGTERM": 15}


@dataclass
class Plan:
    """statuses: one of them must be the launcher's. complete: every rank's line must arrive. lines: of
    each rank, beside its first. kill: (who, ms) of phase 2, or the rank that we SIGKILL once it has said
    its pid. signal: (number, ms), sent to the launcher."""
    number: int
    kind: str
    ranks: int
    workers: int
    pmix: bool
    words: list
    statuses: set
    complete: bool = False
    lines: int = 0
    kill_rank: int = -1
    kill: tuple = ()
    signal: tuple = ()
    names_rank: list = field(default_factory=list)

    def __str__(self):
        more = "".join(f" {k}={v}" for k, v in (("kill_rank", self.kill_rank), ("kill", self.kill),
                                                ("signal", self.signal)) if v not in (-1, ()))
        return (f"#{self.number} {self.kind}: --workers {self.workers} -n {self.ranks} "
                f"{'soak-rank-pmix' if self.pmix else 'soak-rank'} {' '.join(self.words)}{more}")


def end(rng):
    """What the ranks do that are not to fail: end soon, or only when they are ended."""
    return rng.choice([HANG, HANG, "exit=0", f"sleep={rng.randrange(10)}", "child,hang"])


def clean(rng, ranks):
    lines = rng.choice([0, 0, 1, 50])
    steps = rng.choice(["exit=0", f"sleep={rng.randrange(20)}", "child", f"lines={lines}"])
    lines = lines if steps.startswith("lines") else 0
    return dict(words=[f"*:{steps}"], statuses={0}, complete=True, lines=lines)


def one_fails(rng, ranks):
    status, who = rng.randrange(1, 256), rng.randrange(ranks)
    return dict(words=[f"{who}:sleep={rng.randrange(20)},exit={status}", f"*:{end(rng)}"], statuses={status},
                names_rank=[who])


def several_fail(rng, ranks):
    chosen = {who: rng.randrange(1, 256) for who in rng.sample(range(ranks), rng.randrange(2, 6))}
    return dict(words=[*(f"{who}:exit={status}" for who, status in chosen.items()), f"*:{end(rng)}"],
                statuses=set(chosen.values()), names_rank=list(chosen))


def signalled(rng, ranks):
    number, who = rng.choice(list(SIGNALS.values())), rng.randrange(ranks)
    return dict(words=[f"{who}:sleep={rng.randrange(20)},kill={number}", f"*:{end(rng)}"],
                statuses={128 + number}, names_rank=[who])


def killed(rng, ranks):
    """A random rank is SIGKILLed: by itself, or by us."""
    who = rng.randrange(ranks)
    if rng.random() < 0.5:
        return dict(words=[f"{who}:sleep={rng.randrange(30)},kill=9", f"*:{end(rng)}"], statuses={137},
                    names_rank=[who])
    return dict(words=["*:child,hang" if rng.random() < 0.3 else "*:hang"], statuses={137}, kill_rank=who,
                names_rank=[who])


def ended_by_us(rng, ranks):
    number = rng.choice([2, 15])
    return dict(words=["*:hang"], statuses={128 + number, -number}, signal=(number, 60 * rng.random() ** 2))


KINDS = [("clean", clean, 50), ("one fails", one_fails, 25), ("several fail", several_fail, 5),
         ("dies of a signal", signalled, 5), ("SIGKILL of a rank", killed, 10), ("signal to us", ended_by_us, 5)]
PMIX_SHARE = 1 / 16


def pmix_words(rng, ranks, plain):
    """The same ends for PMIx clients, at some step of theirs."""
    whole = "init,fence,finalize"
    words = []
    for word in plain["words"]:
        who, steps = word.split(":", 1)
        if plain["complete"]:
            words.append(f"*:{whole}")
        elif who == "*":  # in the second fence they wait for the one that dies
            waiting = "fence" if len(plain["words"]) > 1 and rng.random() < 0.5 else "hang"
            words.append(f"*:init,fence,{waiting}")
        else:
            words.append(f"{who}:{rng.choice(['', 'init,', 'init,fence,'])}{steps}")
    return words


def launches(seed, count):
    """Phase 1."""
    rng = random.Random(seed)
    for number in range(count):
        kind, make, _ = rng.choices(KINDS, weights=[weight for *_, weight in KINDS])[0]
        ranks = rng.choice(SIZES)
        fields = make(rng, ranks)
        pmix = rng.random() < PMIX_SHARE
        if pmix:
            fields["words"] = pmix_words(rng, ranks, {"complete": False, **fields})
            fields["lines"] = 0
        yield Plan(number=number, kind=kind, ranks=ranks, workers=rng.choice([1, 1, 1, 2, 4]), pmix=pmix, **fields)


def kills(seed, count):
    """Phase 2: the launcher or an agent dies at a random moment."""
    rng = random.Random(seed + 1)
    for number in range(count):
        who = rng.choice(["launcher", "agent"])
        pmix = rng.random() < 0.4
        hangs = rng.random() < 0.8
        word = "*:" + ("init,fence" if pmix else "lines=20") + (
            rng.choice([",hang", ",child,hang"]) if hangs else ",finalize" if pmix else "")
        statuses = {-9} if who == "launcher" else {70}
        yield Plan(number=number, kind=f"SIGKILL of the {who}", ranks=rng.choice([2, 8, 32]),
                   workers=rng.choice([1, 1, 2, 3]), pmix=pmix, words=[word],
                   statuses=statuses if hangs else statuses | {0},
                   kill=(who, (600 if pmix else 120) * rng.random() ** 2))


def peers(seed, count):
    """Phase 3: what every launcher understands; in one of ten a rank is SIGKILLed."""
    rng = random.Random(seed + 2)
    for number in range(count):
        ranks = rng.choice(SIZES)
        who = rng.randrange(ranks)
        dies = number % 10 == 9
        words = [f"{who}:sleep=10,kill=9", "*:hang"] if dies else ["*:exit=0"]
        yield Plan(number=number, kind="SIGKILL of a rank" if dies else "clean", ranks=ranks, workers=1, pmix=False,
                   words=words, statuses={9, 137} if dies else {0}, complete=not dies)
