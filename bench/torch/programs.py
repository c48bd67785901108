#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs under PyTorch, on its caching allocator, with expandable segments, and on berth's pool.

    programs.py --shim build/gpu/bench/libtorch_shim.so [--rounds 3] [--limit 1.02] [PROGRAM...]

Each run is a process of its own; the three allocators take turns. Prints, for each program and allocator, the most
memory held over the most live (medians), and the median time of a step. With --limit each program runs once more, with
so much memory over what was live, and its losses are compared with those of the run without a limit.
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time


def gpt(torch, steps):
    """Trains GPT-2 small on batches of 2 to 8 sequences of 128 to 1024 words."""
    nn, functional = torch.nn, torch.nn.functional

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.before, self.behind = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, length, width = x.shape
            q, k, v = self.mixed(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            scores = (q @ k.transpose(-1, -2)) / (width // self.heads) ** 0.5
            mask = torch.ones(length, length, dtype=torch.bool, device="cuda").tril()
            seen = functional.softmax(scores.masked_fill(~mask, float("-inf")), -1) @ v
            x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.behind(x))))

    words, width = 50304, 768
    model = nn.Sequential(nn.Embedding(words, width), *(Layer(width, 12) for _ in range(12)), nn.LayerNorm(width), nn.Linear(width, words)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    draw = torch.Generator().manual_seed(1)
    for _ in range(steps):
        batch = int(torch.randint(2, 9, (1,), generator=draw))
        length = int(torch.randint(16, 129, (1,), generator=draw)) * 8
        text = torch.randint(0, words, (batch, length), generator=draw).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            loss = functional.cross_entropy(model(text).flatten(0, 1), text.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.detach()


def unet(torch, steps):
    """Trains a U-Net of three scales on images of seven resolutions."""
    nn, functional = torch.nn, torch.nn.functional

    def block(inner, outer):
        return nn.Sequential(nn.Conv2d(inner, outer, 3, padding=1), nn.GroupNorm(8, outer), nn.SiLU(),
                             nn.Conv2d(outer, outer, 3, padding=1), nn.GroupNorm(8, outer), nn.SiLU())

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([block(3, 96), block(96, 192), block(192, 384)])
            self.up = nn.ModuleList([block(384 + 192, 192), block(192 + 96, 96)])
            self.last = nn.Conv2d(96, 3, 1)

        def forward(self, x):
            a = self.down[0](x)
            b = self.down[1](functional.avg_pool2d(a, 2))
            c = self.down[2](functional.avg_pool2d(b, 2))
            b = self.up[0](torch.cat([c.repeat_interleave(2, -1).repeat_interleave(2, -2), b], 1))
            return self.last(self.up[1](torch.cat([b.repeat_interleave(2, -1).repeat_interleave(2, -2), a], 1)))

    sizes = [(128, 128), (192, 192), (256, 256), (320, 192), (256, 320), (384, 256), (96, 384)]
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    draw = torch.Generator().manual_seed(2)
    for _ in range(steps):
        height, width = sizes[int(torch.randint(0, len(sizes), (1,), generator=draw))]
        images = torch.randn(8, 3, height, width, generator=draw).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            loss = (model(images) - images).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.detach()


def generate(torch, steps):
    """Generates with a cache of keys and values that grows by concatenation."""
    functional = torch.nn.functional
    layers, width, heads, words = 12, 1024, 16, 32000
    draw = torch.Generator().manual_seed(3)
    weights = [[(torch.randn(width, n * width, generator=draw) * 0.02).cuda().bfloat16() for n in (3, 1, 4)] + [
        (torch.randn(4 * width, width, generator=draw) * 0.02).cuda().bfloat16()] for _ in range(layers)]
    table = (torch.randn(words, width, generator=draw) * 0.02).cuda().bfloat16()
    cache, left = [], 0
    for _ in range(steps):
        if left == 0:
            batch = int(torch.randint(1, 17, (1,), generator=draw))
            text = torch.randint(0, words, (batch, int(torch.randint(32, 1025, (1,), generator=draw))), generator=draw).cuda()
            cache, left = [None] * layers, int(torch.randint(40, 200, (1,), generator=draw))
        left -= 1
        x = table[text]
        for i, (mixed, out, up, down) in enumerate(weights):
            q, k, v = (functional.layer_norm(x, (width,)) @ mixed).view(*x.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
            if cache[i] is not None:
                k, v = torch.cat([cache[i][0], k], 2), torch.cat([cache[i][1], v], 2)
            cache[i] = (k.contiguous(), v.contiguous())
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1)
            x = x + seen.transpose(1, 2).reshape(*x.shape[:2], width) @ out
            x = x + functional.gelu(functional.layer_norm(x, (width,)) @ up) @ down
        scores = functional.layer_norm(x[:, -1:], (width,)) @ table.T
        text = scores.argmax(-1)
        yield scores.float().mean()


def two_streams(torch, steps):
    """A linear layer whose results a second stream reads."""
    draw = torch.Generator().manual_seed(4)
    weight = torch.randn(4096, 4096, generator=draw).cuda()
    side = torch.cuda.Stream()
    for _ in range(steps):
        rows = int(torch.randint(256, 16001, (1,), generator=draw))
        x = torch.rand(rows, 4096, device="cuda")
        y = x @ weight
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y.record_stream(side)
            total = (torch.cat([y, y]) * 0.5).relu().sum()
        torch.cuda.current_stream().synchronize()  # the other stream may lag
        yield total


PROGRAMS = {"gpt": (gpt, 40), "unet": (unet, 100), "generate": (generate, 500), "two_streams": (two_streams, 400)}


def open_berth(torch, path, limit):
    shim = ctypes.CDLL(path)
    shim.berth_shim_open.argtypes = [ctypes.c_size_t]
    for name in ("berth_shim_peak_held", "berth_shim_peak_live"):
        getattr(shim, name).restype = ctypes.c_size_t
    shim.berth_shim_open(limit)
    allocator = torch.cuda.memory.CUDAPluggableAllocator(path, "berth_shim_allocate", "berth_shim_free")
    record = ctypes.cast(shim.berth_shim_record_stream, ctypes.c_void_p).value
    allocator.allocator().set_record_stream_fn(record)
    torch.cuda.memory.change_current_allocator(allocator)
    return shim


def run(options):
    """One program in this process; prints a line of JSON."""
    import torch

    if options.run_on == "berth":
        shim = open_berth(torch, os.path.abspath(options.shim), options.bytes)
    elif options.bytes:
        torch.cuda.set_per_process_memory_fraction(options.bytes / torch.cuda.get_device_properties(0).total_memory)
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    program, steps = PROGRAMS[options.programs[0]]
    times, losses, error = [], [], None
    try:
        begin = time.perf_counter()
        for loss in program(torch, steps):
            losses.append(loss)
            if options.programs[0] != "two_streams":
                torch.cuda.synchronize()
            now = time.perf_counter()
            times.append(now - begin)
            begin = now
        torch.cuda.synchronize()
    except RuntimeError as refused:
        error = str(refused).splitlines()[0]
    if options.run_on == "berth":
        held, live = shim.berth_shim_peak_held(), shim.berth_shim_peak_live()
    else:
        held, live = torch.cuda.max_memory_reserved(), torch.cuda.max_memory_allocated()
    values = [loss.item() for loss in losses] if error is None else []
    print(json.dumps({"held": held, "live": live, "ms": 1e3 * statistics.median(times) if times else 0, "steps": len(times),
                      "losses": values, "error": error}))
    sys.stdout.flush()
    os._exit(0)  # without the end of a process whose allocator was replaced


def start(options, program, allocator, limit=0):
    settings = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8")
    if allocator == "expandable":
        settings["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    command = [sys.executable, __file__, "--shim", options.shim, "--run-on", allocator, "--bytes", str(limit), program]
    done = subprocess.run(command, env=settings, capture_output=True, text=True)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        sys.exit(f"programs.py: {program} on {allocator} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def compare(options):
    allocators = ("default", "expandable", "berth")
    for program in options.programs:
        runs = {allocator: [] for allocator in allocators}
        for _ in range(options.rounds):
            for allocator in allocators:
                runs[allocator].append(start(options, program, allocator))
        live = statistics.median(one["live"] for one in runs["default"])
        for allocator in allocators:
            held = statistics.median(one["held"] for one in runs[allocator])
            step = statistics.median(one["ms"] for one in runs[allocator])
            print(f"{program:12} {allocator:10} held {held / 2**20:8.0f} MiB, over live {held / live:6.3f}, step {step:8.3f} ms", flush=True)
            if options.limit:
                limit = int(options.limit * statistics.median(one["live"] for one in runs[allocator]))
                limited = start(options, program, allocator, limit)
                same = limited["losses"] == runs[allocator][0]["losses"]
                end = limited["error"] or ("the same losses" if same else "OTHER LOSSES")
                print(f"{'':23} limit {options.limit}: {limited['steps']} steps, {limited['ms']:.3f} ms: {end}", flush=True)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    words.add_argument("--shim", required=True)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--limit", type=float, default=0)
    words.add_argument("--run-on", help=argparse.SUPPRESS)
    words.add_argument("--bytes", type=int, default=0, help=argparse.SUPPRESS)
    options = words.parse_args()
    options.programs = options.programs or list(PROGRAMS)
    if unknown := set(options.programs) - set(PROGRAMS):
        words.error(f"no such program: {', '.join(sorted(unknown))}; there are {', '.join(PROGRAMS)}")
    run(options) if options.run_on else compare(options)


if __name__ == "__main__":
    main()
