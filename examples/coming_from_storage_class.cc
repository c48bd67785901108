// SPDX-License-Identifier: Apache-2.0
// For users of a storage class with views: Storage(shape, dtype, device), to, copy_, clone, fill_, slice,
// transpose, reshape, expand, contiguous, data_ptr, pinned and aligned storages. Each part shows their call in
// a comment and berth's below it.
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"
#include "expect.h"

using namespace berth;

namespace {

// 0, 1, 2, … in the given shape, on the host.
Storage counting(const Shape& shape) {
  std::vector<float> values(shape.num_elements());
  std::iota(values.begin(), values.end(), 0.0F);
  return from_data(values, shape, "cpu");
}

// Storage(shape, dtype, device)
void make() {
  const Storage x = empty({2, 3}, DType::f32, "cpu");
  expect(x.shape() == Shape{2, 3} && x.dtype() == DType::f32 && x.device() == "cpu", "shape, dtype and device");
  expect(x.num_elements() == 6 && x.size_bytes() == 24 && x.strides() == Strides{3, 1}, "size, and strides in elements");
  expect(zeros({2}, DType::i64, "sim:0").item<std::int64_t>({1}) == 0, "zeros, on any device; item() reads one element from there");
  expect(full({2}, 1.5, DType::bf16, "cpu").to(DType::f32).item<float>({0}) == 1.5F, "full, in any dtype");

  float theirs[6] = {0, 1, 2, 3, 4, 5};
  const Storage borrowed = from_blob(theirs, {2, 3}, DType::f32, "cpu");
  expect(borrowed.data_ptr() == theirs && borrowed.item<float>({1, 2}) == 5, "from_blob: memory that is there already");
}

// x.to(device)   x.to(dtype)
void move_and_convert() {
  const Storage x = counting({2, 3});
  const Storage there = x.to("sim:0");
  const Storage half = x.to(DType::f16);
  expect(there.device() == "sim:0" && equal(there.to("cpu"), x), "to(device) copies, and back again");
  expect(half.dtype() == DType::f16 && equal(half.to(DType::f32), x), "to(dtype) converts");
  expect(x.to("cpu").is_view_of(x) && x.to(DType::f32).is_view_of(x), "nothing to do: the same storage, no copy");
  expect(x.to("sim:0", DType::bf16).size_bytes() == 12, "both at once");
}

// a.copy_(b)   a.clone()   a.fill_(v)
void bytes() {
  const Storage x = counting({2, 3});
  const Storage y = empty({2, 3}, DType::f64, "sim:0");
  y.copy_from(x);
  expect(equal(y.to("cpu").to(DType::f32), x), "copy_from: another device, another dtype, one call");

  const Storage copy = x.clone();
  copy.fill(0);
  expect(!copy.is_view_of(x) && copy.item<float>({1, 1}) == 0 && x.item<float>({1, 1}) == 4, "clone has bytes of its own");

  const Storage sources[] = {x.select(0, 0), x.select(0, 1)};
  const Storage targets[] = {empty({3}, DType::f32, "sim:0"), empty({3}, DType::f32, "cpu")};
  copy_batch(sources, targets);
  expect(targets[0].item<float>({2}) == 2 && targets[1].item<float>({0}) == 3, "copy_batch: many copies, one call");
}

// x.slice(...)   x.transpose(a, b)   x.reshape(...)   x.expand(...)
void views() {
  const Storage x = counting({2, 3, 4});
  expect(x.slice(2, 1, 3).item<float>({0, 0, 0}) == 1, "slice(axis, begin, end)");
  expect(x.slice(2, -1, -9, -2).item<float>({0, 0, 1}) == 1, "a negative step walks backwards, as in Python");
  expect(x.select(0, 1).shape() == Shape{3, 4}, "select drops the axis");
  expect(x.transpose(0, 2).item<float>({3, 1, 0}) == x.item<float>({0, 1, 3}), "transpose");
  expect(x.permute({1, 2, 0}).shape() == Shape{3, 4, 2}, "permute");
  expect(x.reshape({6, -1}).shape() == Shape{6, 4}, "reshape, one dimension worked out");
  expect(x.slice(0, 0, 1).expand({5, -1, -1}).strides() == Strides{0, 4, 1}, "expand repeats with stride 0");
  expect(x.unsqueeze(0).squeeze(0).shape() == x.shape(), "unsqueeze and squeeze");
  expect(x.reinterpret(DType::u8).shape() == Shape{2, 3, 16}, "reinterpret: the same bytes as another dtype");
  expect(x.transpose(0, 1).is_view_of(x), "all of them share the buffer");

  x.slice(1, 0, 1).fill(-1);  // writing through a view
  expect(x.item<float>({1, 0, 3}) == -1 && x.item<float>({1, 1, 3}) == 19, "a view writes to the storage it is of");
}

// StorageView(base, offset, shape, stride)   a.resize_(n)
void any_layout_and_size() {
  const Storage x = counting({4, 6});
  const Storage rows = x.slice(0, 1);
  expect(rows.as_strided({2, 2}, {6, 1}, 3).item<float>({1, 0}) == 9, "as_strided: the offset counts from the buffer");
  expect(rows.strided_view({2, 2}, {6, 1}, 3).item<float>({1, 0}) == 15, "strided_view: from the view's first element");
  bool refused = false;
  try {
    (void)x.as_strided({4, 6}, {6, 1}, 1);
  } catch (const ArgumentError& error) {
    refused = error.code() == ErrorCode::out_of_bounds;
  }
  expect(refused, "both are checked against the buffer");

  Storage growing = counting({3});
  const Storage view = growing.slice(0, 1);
  growing.resize({100'000});
  growing.slice(0, 2, 3).fill(-1);
  expect(growing.shape() == Shape{100'000} && view.item<float>({1}) == -1, "resize: the elements stay, and so do the views");
}

// create_storage(data, device, dtype)   numpy(), from_numpy(a), torch.from_dlpack(x)
void other_libraries() {
  const Storage x = from_data({{1, 2, 3}, {4, 5, 6}}, "cpu", DType::f32);
  expect(x.shape() == Shape{2, 3} && x.item<float>({1, 0}) == 4, "from_data takes nested lists");
  DlpackTensor out = to_dlpack(x.transpose(0, 1));
  expect(out.get()->dl_tensor.ndim == 2 && out.get()->dl_tensor.shape[0] == 3, "to_dlpack: what NumPy and PyTorch read");
  const Storage back = from_dlpack(std::move(out));
  expect(back.data_ptr() == x.data_ptr() && back.item<float>({0, 1}) == 4, "from_dlpack: no byte is copied");
}

// x.is_contiguous()   x.contiguous()   x.data_ptr()
void layout_and_pointers() {
  const Storage x = counting({2, 3});
  const Storage t = x.transpose(0, 1);
  expect(x.is_contiguous() && !t.is_contiguous(), "is_contiguous");
  expect(!t.can_reshape({6}) && t.contiguous().reshape({6}).item<float>({1}) == 3, "reshape never copies by itself; contiguous() does");
  expect(x.contiguous().is_view_of(x), "contiguous() of a contiguous storage is the storage");

  float* const p = x.data<float>();  // checks the dtype, and that the host can access it
  expect(p == x.data_ptr() && p[5] == 5, "data<T>() is checked, data_ptr() is not");
  bool refused = false;
  try {
    x.to("sim:0").data<float>();
  } catch (const AccessError& error) {
    refused = error.code() == ErrorCode::wrong_device;
  }
  expect(refused, "a host pointer into a device's memory is refused");
}

// aligned and pinned storages, read-only ones, inspection, leak tracking
void kinds_of_memory() {
  const Storage aligned = empty({100}, DType::f32, "cpu", {.alignment = 4096, .tag = "kv"});
  expect(reinterpret_cast<std::uintptr_t>(aligned.data_ptr()) % 4096 == 0, "any power of two as alignment");
  const Storage pinned = empty({100}, DType::f32, "pinned");
  expect(pinned.is_pinned() == backend("pinned").properties().abilities.pinned, "is_pinned() tells the truth about the memory");

  const Storage constant = aligned.read_only();
  bool refused = false;
  try {
    constant.fill(1);
  } catch (const AccessError& error) {
    refused = error.code() == ErrorCode::read_only;
  }
  expect(refused, "writing to a read-only storage is an error, not a signal");

  const Inspection facts = inspect(aligned);
  expect(facts.tag == "kv" && facts.allocator == default_allocator("cpu")->name() && facts.use_count == 2,
         "inspect gives the facts, as text and as JSON");
  std::printf("       %s\n       %s\n", facts.to_string().c_str(), to_json(facts).c_str());

  const auto tracked = track(direct("cpu"));
  const Storage kept = empty({8}, DType::u8, tracked);
  expect(tracked->live().size() == 1, "track lists what lives, with tag and call site");
  std::printf("       %s\n", tracked->live().front().to_string().c_str());

  const Tracker tracker;  // StorageTracker, check_leaks()
  const Storage left = empty({8}, DType::u8, "cpu");
  expect(tracker.leaks().size() == 1 && tracker.leaks()[0].handles == 1, "a Tracker finds what was made since, in every allocator");
  expect(facts.allocator_stats->in_use_bytes >= 400, "inspect has the pool's figures: pool_info()");
  expect(!try_empty({1LL << 50}, DType::u8, "cpu"), "try_empty does not throw when there is not enough memory");
}

}  // namespace

int main() {
  make();
  move_and_convert();
  bytes();
  views();
  any_layout_and_size();
  other_libraries();
  layout_and_pointers();
  kinds_of_memory();
  return g_right ? 0 : 1;
}
