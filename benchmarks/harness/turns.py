# SPDX-License-Identifier: Apache-2.0
"""The order in which contenders are measured: in turns, so that what else the machine does meets all of them."""


def in_turns(contenders, rounds, warm_up=1):
    """(round, contender) in the order ABBA: reversed every other round. Rounds below 0 warm up."""
    contenders = list(contenders)
    for number in range(-warm_up, rounds):
        for contender in contenders if number % 2 == 0 else contenders[::-1]:
            yield number, contender


def sampled(actions, rounds, warm_up=1):
    """{name: values} of {name: action}, each called once a round; what warms up is not kept."""
    values = {name: [] for name in actions}
    for number, name in in_turns(actions, rounds, warm_up):
        value = actions[name]()
        if number >= 0:
            values[name].append(value)
    return values
