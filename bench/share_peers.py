# SPDX-License-Identifier: Apache-2.0
"""The same round trip as bench_share by Python's multiprocessing.shared_memory and by PyTorch's queues: a storage of some megabytes goes to
a running process, which looks at it and answers. Prints one JSON object, in microseconds.

    share_peers.py [rounds] [megabytes] [device]

`again` hands over a storage that is there already; `fresh` makes and writes one each round. What is not installed is left out. With a
device (cuda) PyTorch's queue alone: `again` sends one tensor on it, whose memory the other process has open already, `fresh` one in new memory.
"""
import json
import multiprocessing as mp
import sys
import time
from multiprocessing import shared_memory


def figures(times):
    times = sorted(times)
    return {"median_us": round(times[len(times) // 2], 2), "p99_us": round(times[len(times) * 99 // 100], 2), "least_us": round(times[0], 2)}


def measure(rounds, one):
    times = []
    for i in range(rounds + 10):
        start = time.perf_counter()
        one(i)
        if i >= 10:
            times.append((time.perf_counter() - start) * 1e6)
    return figures(times)


def answer_names(requests, answers):
    while (name := requests.get()) is not None:
        block = shared_memory.SharedMemory(name=name)
        answers.put(block.buf[block.size - 1])
        block.close()


def answer_tensors(requests, answers):
    while (tensor := requests.get()) is not None:
        answers.put(int(tensor[-1]))
        del tensor


def by_names(context, rounds, size):
    requests, answers = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=answer_names, args=(requests, answers))
    process.start()
    kept = shared_memory.SharedMemory(create=True, size=size)

    def again(_):
        requests.put(kept.name)
        answers.get()

    def fresh(i):
        block = shared_memory.SharedMemory(create=True, size=size)
        block.buf[:] = bytes([i % 100]) * size
        requests.put(block.name)
        answers.get()
        block.close()
        block.unlink()

    found = {"again": measure(rounds, again), "fresh": measure(rounds // 4 + 1, fresh)}
    requests.put(None)
    process.join()
    kept.close()
    kept.unlink()
    return found


def answer_sizes(requests, answers):
    while (tensor := requests.get()) is not None:
        answers.put(tensor.numel())
        del tensor


def by_device_tensors(rounds, size, device):
    import torch
    import torch.multiprocessing as tmp

    context = tmp.get_context("spawn")
    requests, answers = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=answer_sizes, args=(requests, answers))
    process.start()
    kept = torch.ones(size, dtype=torch.uint8, device=device)

    def again(_):
        requests.put(kept)
        answers.get()

    def fresh(_):
        torch.cuda.empty_cache()
        tensor = torch.ones(size, dtype=torch.uint8, device=device)
        torch.cuda.synchronize()
        start = time.perf_counter()
        requests.put(tensor)
        answers.get()
        times.append((time.perf_counter() - start) * 1e6)

    times = []
    found = {"again": measure(rounds, again)}
    measure(rounds // 10 + 1, fresh)
    found["fresh"] = figures(times[10:])
    requests.put(None)
    process.join()
    return found


def by_tensors(rounds, size):
    import torch
    import torch.multiprocessing as tmp

    context = tmp.get_context("spawn")
    requests, answers = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=answer_tensors, args=(requests, answers))
    process.start()
    kept = torch.ones(size, dtype=torch.uint8).share_memory_()

    def again(_):
        requests.put(kept)
        answers.get()

    def fresh(i):
        tensor = torch.full((size,), i % 100, dtype=torch.uint8)
        requests.put(tensor)
        answers.get()

    found = {"again": measure(rounds, again), "fresh": measure(rounds // 4 + 1, fresh)}
    requests.put(None)
    process.join()
    return found


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    size = (int(sys.argv[2]) if len(sys.argv) > 2 else 4) << 20
    if len(sys.argv) > 3:
        print(json.dumps({"rounds": rounds, "bytes": size, "pytorch_queue": by_device_tensors(rounds, size, sys.argv[3])}, indent=2))
        return
    out = {"rounds": rounds, "bytes": size, "python_shared_memory": by_names(mp.get_context("spawn"), rounds, size)}
    try:
        out["pytorch_queue"] = by_tensors(rounds, size)
    except ImportError:
        pass
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
