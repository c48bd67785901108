# SPDX-License-Identifier: Apache-2.0
"""Traces in which something is planted, and what the pages must say of them."""
import random

MIB = 1 << 20
HOSTILE = "</script><img src=x onerror=\"document.title='stolen'\">"


class Trace:
    """Events as `berth replay` reads them, and what they mean, the slow way."""

    def __init__(self):
        self.lines = ["op,id,bytes,stream,tag"]
        self.live = {}  # id: (bytes, tag, event)
        self.event = 0
        self.peak = (0, 0, {})  # bytes, event, live blocks

    def allocate(self, block, size, tag=""):
        self.lines.append(f"a,{block},{size},0,{tag}")
        self.live[block] = (size, tag, self.event)
        total = sum(one[0] for one in self.live.values())
        if total > self.peak[0]:
            self.peak = (total, self.event, dict(self.live))
        self.event += 1

    def free(self, block):
        self.lines.append(f"f,{block},0,0")
        del self.live[block]
        self.event += 1

    def write(self, path):
        with open(path, "w") as file:
            file.write("\n".join(self.lines) + "\n")


PLANTED = 4242


def planted_trace(odd_tag=HOSTILE):
    """A few steps of training, in the fourth of which one block is larger than all others."""
    trace, chance, block = Trace(), random.Random(9), 10_000
    for i in range(40):
        trace.allocate(100 + i, (4 + i % 5) * MIB, "weights")
        trace.allocate(200 + i, (6 + i % 3) * MIB, "optimizer")
    for i in range(30):
        trace.allocate(300 + i, 40_000 + 1000 * i, odd_tag)
    for step in range(6):
        made = []
        for layer in range(120):
            block += 1
            made.append(block)
            trace.allocate(block, int(MIB * (1.5 + chance.random() * 2)), "activations")
            trace.allocate(block + 500_000, int(MIB * 8 * chance.random()) + 1, "workspace")
            trace.free(block + 500_000)
            if step == 3 and layer == 119:
                trace.allocate(PLANTED, 192 * MIB, "planted")
        for layer, one in enumerate(reversed(made)):
            if layer < 60:
                trace.allocate(one + 700_000, 3 * MIB, "gradients")
            if step == 3 and layer == 12:
                trace.free(PLANTED)
            trace.free(one)
        for layer, one in enumerate(reversed(made)):
            if layer < 60:
                trace.free(one + 700_000)
    return trace


def large_trace(events):
    trace, chance = Trace(), random.Random(10)
    lines, live, block = trace.lines, [], 0
    while len(lines) <= events:
        if len(live) < 200 or (chance.random() < 0.5 and len(live) < 2000):
            block += 1
            lines.append(f"a,{block},{chance.choice((512, 4096, 65536, 1 << 20, 3 << 20, block % 100_000 + 1))},0,t{block % 11}")
            live.append(block)
        else:
            at = chance.randrange(len(live))
            live[at], live[-1] = live[-1], live[at]
            lines.append(f"f,{live.pop()},0,0")
    return trace


def bytes_text(count):
    """As text::bytes and the script have it."""
    value, unit = float(count), 0
    while value >= (1024 if unit == 0 else 1023.5):
        value, unit = value / 1024, unit + 1
    decimals = 0 if unit == 0 or value >= 99.95 else 1 if value >= 9.995 else 2
    digits = f"{value:.{decimals}f}"
    return (digits.rstrip("0").rstrip(".") if decimals else digits) + " " + ("B", "KiB", "MiB", "GiB", "TiB")[unit]


def live_bytes(lines):
    """What lives after each event."""
    sizes, total, after = {}, 0, []
    for line in lines[1:]:
        operation, block, size = line.split(",")[:3]
        if operation == "a":
            sizes[block] = int(size)
        total += sizes[block] if operation == "a" else -sizes.pop(block)
        after.append(total)
    return after
