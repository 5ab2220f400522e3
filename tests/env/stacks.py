# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cases: small stacks."""


def first_call_on_the_smallest_stack(h):
    for setting in h.rungs():
        setting.preload = ""
        h.run(setting, [h.program("small_stack"), h.preload], TERRACE_DECAY_MS="1")


def stack_use(h):
    """Of all calls, also while a tick is always due and while the budget is spent; and on a small signal stack."""
    for setting in h.rungs():
        for environment in [{}, {"TERRACE_DECAY_MS": "1", "TERRACE_BUDGET": "65536"}]:
            h.run(setting, [h.program("stack_use"), "1024"], **environment)


ALL = [first_call_on_the_smallest_stack, stack_use]
