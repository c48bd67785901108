// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/torch_peer.h"

namespace berth::internal::cli {

const char* const kTorchScript = R"python(
import sys, time

def say(*words):
    print(*' '.join(str(word) for word in words).split(), flush=True)

try:
    import torch
except BaseException as error:
    say('none', type(error).__name__, error)
    sys.exit(0)

torch.set_num_threads(int(sys.argv[1]))
torch.set_grad_enabled(False)
dtypes = {'f32': 'float32', 'f64': 'float64', 'f16': 'float16', 'bf16': 'bfloat16', 'f8e4m3': 'float8_e4m3fn', 'f8e5m2': 'float8_e5m2',
          'i8': 'int8', 'u8': 'uint8', 'i32': 'int32', 'i64': 'int64', 'bool': 'bool'}
views = {'contiguous': lambda x: x, 'inner_stride': lambda x: x[::2], 'transposed': lambda x: x.t(),
         'nhwc': lambda x: x.permute(0, 2, 3, 1), 'nchw': lambda x: x.permute(0, 3, 1, 2)}

def memory_at(place, shape, dtype):
    kind = place.split(':')[0]
    if kind == 'pinned':
        return torch.empty(shape, dtype=dtype, pin_memory=True)
    return torch.empty(shape, dtype=dtype, device='cpu' if kind == 'cpu' else place)

def source(shape, dtype, place):
    values = ((torch.arange(65521) * 40503 % 509 - 254) / 2)
    values = (values.abs() if dtype in (torch.uint8, torch.bool) else values).to(dtype)
    memory = torch.empty(shape, dtype=dtype)
    flat = memory.view(-1)
    for at in range(0, flat.numel(), values.numel()):
        piece = flat[at:at + values.numel()]
        piece.copy_(values[:piece.numel()])
    return memory if place == 'cpu:0' else memory_at(place, shape, dtype).copy_(memory)

def target(shape, dtype, place):
    memory = memory_at(place, shape, dtype)
    memory.view(-1).view(torch.uint8).fill_(0)
    return memory

def prepare(kind, layout, given, wanted, dims, calls, source_place='cpu:0', target_place='cpu:0'):
    given, wanted = (getattr(torch, dtypes[name]) for name in (given, wanted))
    shape, calls = [int(dim) for dim in dims.split(',')], int(calls)
    if kind == 'batch':
        sources = [source(shape[1:], given, source_place) for _ in range(shape[0])]
        targets = [target(shape[1:], wanted, target_place) for _ in range(shape[0])]
        if target_place != 'cpu:0':
            def loop():
                for to, given_one in zip(targets, sources):
                    to.copy_(given_one, non_blocking=True)
                torch.cuda.synchronize()
            return loop
        return lambda: torch._foreach_copy_(targets, sources)
    seen = views[layout](source(shape, given, source_place))
    copy = target(seen.shape, wanted, target_place).copy_
    if source_place + target_place != 'cpu:0cpu:0':
        def on_device():
            copy(seen)
            torch.cuda.synchronize()
        return on_device
    if calls == 1:
        return lambda: copy(seen)
    def many():
        for _ in range(calls):
            copy(seen)
    return many

def least(run, runs, enough):
    best, begin = None, time.perf_counter()
    while runs > 0 and (best is None or time.perf_counter() - begin < enough):
        start = time.perf_counter()
        run()
        took = time.perf_counter() - start
        best, runs = took if best is None else min(best, took), runs - 1
    return best

say('ready', torch.__version__)
run, calls = None, 1
for line in sys.stdin:
    words = line.split()
    try:
        if words[0] == 'prepare':
            run = None  # releases the last case first
            run, calls = prepare(*words[1:]), int(words[6])
            run()
            say('ok')
        else:
            seconds = least(run, int(words[1]), float(words[2])) / calls
            time.sleep(0.02)  # its threads go on spinning for a while: not while others are measured
            say('seconds', repr(seconds))
    except Exception as error:
        say('cannot', type(error).__name__, error)
)python";

}  // namespace berth::internal::cli
