# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cases: small stacks."""

import os


def first_call_on_the_smallest_stack(h):
    for setting in h.rungs():
        setting.preload = ""
        h.run(setting, [h.program("small_stack"), h.preload], TERRACE_DECAY_MS="1")


def stack_use(h):
    """Of all calls, also while a tick is always due and while the budget is spent; and on a small signal stack."""
    for setting in h.rungs():
        for environment in [{}, {"TERRACE_DECAY_MS": "1", "TERRACE_BUDGET": "65536"}]:
            h.run(setting, [h.program("stack_use"), "1024"], **environment)


def umem_stack_use(h):
    """Of libumem's calls, beside libc's malloc and with malloc on the same heap. With other threads a call that finds an update due
    starts a thread, and pthread_create needs more and allocates."""
    options = {"UMEM_OPTIONS": "reap_interval=0", "LD_BIND_NOW": "1"}
    for setting in h.rungs():
        for preload in ["", os.path.join(os.path.dirname(h.preload), "libumem_malloc.so")]:
            setting.preload = preload
            for environment in [{}, {"TERRACE_DECAY_MS": "1", "TERRACE_BUDGET": "65536"}]:
                for words in [["1024"], ["1792", "threads"]]:
                    h.run(setting, [h.program("umem_stack_use"), *words], **options, **environment)


ALL = [first_call_on_the_smallest_stack, stack_use, umem_stack_use]
