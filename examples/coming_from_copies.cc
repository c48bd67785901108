// SPDX-License-Identifier: Apache-2.0
// For users of PyTorch's copy_, to and _foreach_copy_: copies between storages, blocking and non-blocking,
// conversion, and batches. Each part shows PyTorch's call in a comment and berth's below it.
#include <cstdio>
#include <future>
#include <numeric>
#include <vector>

#include "berth/berth.h"
#include "berth/extend.h"
#include "expect.h"

using namespace berth;

namespace {

// 0, 1, 2, … in the given shape, on the host.
Storage counting(const Shape& shape) {
  std::vector<float> values(shape.num_elements());
  std::iota(values.begin(), values.end(), 0.0F);
  return from_data(values, shape, "cpu");
}

// a.copy_(b)
void blocking() {
  const Storage b = counting({3, 4});
  const Storage a = empty({3, 4}, DType::f32, "sim:0");
  a.copy_from(b);
  expect(equal(a, b), "copy_from: done when it returns");

  const Storage turned = empty({4, 3}, DType::f16, "cpu");
  turned.copy_from(b.transpose(0, 1));
  expect(equal(turned, b.to(DType::f16).transpose(0, 1)), "transposed and converted, in one pass");

  a.copy_from(b.select(0, 2).expand({3, 4}));
  expect(a.item<float>({0, 1}) == 9, "broadcasting is asked for, with expand");

  const Storage row = counting({8});
  row.slice(0, 1, 8).copy_from(row.slice(0, 0, 7));
  expect(row.item<float>({7}) == 6, "sides that overlap: as through a temporary");
}

// a.copy_(b, non_blocking=True)
void non_blocking() {
  const Stream stream = make_stream("cpu");
  std::promise<void> gate;
  stream.enqueue([opened = gate.get_future().share()] { opened.wait(); });  // earlier work that takes long

  const Storage a = zeros({1000}, DType::f32, "sim:0");
  Storage b = counting({1000});
  const Event done = a.copy_from(b, {.stream = stream, .non_blocking = true});
  b = Storage();  // the copy keeps the bytes alive
  expect(!done.query() && a.item<float>({999}) == 0, "it returns at once, and waits for its turn");
  gate.set_value();
  done.wait();
  expect(a.item<float>({999}) == 999, "the event tells when it is done");

  const Storage there = a.to("cpu", {.stream = stream, .non_blocking = true});
  stream.synchronize();
  expect(there.item<float>({1}) == 1, "to() in a stream");
}

// x.to(dtype)   x.half()
void conversion() {
  const Storage x = from_data(std::vector<float>{1.5F, -300.0F, 3e9F, 65519.0F}, {4}, "cpu");
  expect(x.to(DType::i8).item<std::int8_t>({1}) == -128, "out of range becomes the nearest value");
  expect(x.to(DType::i32).item<std::int32_t>({2}) == 2147483647, "on every machine");
  expect(x.to(DType::f16).to(DType::f32).item<float>({3}) == 65504, "rounded to nearest, ties to even");
  expect(x.to("sim:0", DType::bf16).size_bytes() == 8, "device and dtype at once: converted where fewer bytes then move");
  expect(x.to(DType::f32).is_view_of(x), "nothing to do: no copy");
}

// torch._foreach_copy_(targets, sources)
void batches() {
  std::vector<Storage> sources;
  std::vector<Storage> targets;
  for (int i = 0; i < 1000; ++i) {
    sources.push_back(full({16}, i, DType::f32, i % 3 == 0 ? "sim:0" : "cpu"));
    targets.push_back(empty({16}, DType::f64, i % 5 == 0 ? "sim:0" : "cpu"));
  }
  copy_batch(sources, targets);
  bool right = true;
  for (int i = 0; i < 1000; ++i) right = right && targets[static_cast<std::size_t>(i)].item<double>({15}) == i;
  expect(right, "copy_batch: a thousand copies, one call, devices mixed");

  targets.back() = empty({17}, DType::f64, "cpu");
  targets.front().fill(-1);
  bool refused = false;
  try {
    copy_batch(sources, targets);
  } catch (const ArgumentError& error) {
    refused = error.code() == ErrorCode::size_mismatch;
  }
  expect(refused && targets.front().item<double>({0}) == -1, "one bad pair: refused before a byte moves");

  const Stream stream = make_stream("cpu");
  targets.back() = empty({16}, DType::f64, "cpu");
  copy_batch(sources, targets, {.stream = stream, .non_blocking = true}).wait();
  expect(targets.back().item<double>({0}) == 999, "in a stream: one event for all");
}

// The route of a copy can be inspected before it runs.
void routes() {
  const Storage x = counting({3, 4});
  const Storage y = empty({4, 3}, DType::bf16, "sim:0");
  const Route way = plan_route(x.transpose(0, 1).span(), y.span());
  expect(way.steps.size() == 2 && way.steps[0].walk == Walk::tiles, "the host transposes and converts, then one transfer");
  std::printf("%s\n", way.to_string().c_str());
}

}  // namespace

int main() {
  blocking();
  non_blocking();
  conversion();
  batches();
  routes();
  return g_right ? 0 : 1;
}
