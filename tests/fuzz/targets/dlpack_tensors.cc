// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/json.h"
#include "berth/storage/dlpack.h"
#include "berth/storage/inspect.h"
#include "fuzz/target.h"

// DLPack tensors whose every field is from outside: each is deleted once, at once if it is refused, and what one reaches
// in the memory that it was given can be read.
namespace berth::testing::fuzz {
namespace {

constexpr int kMostAxes = 8;

std::int64_t number(Draw& draw) {
  constexpr std::array<std::int64_t, 8> kExtremes = {INT64_MAX, INT64_MIN, INT64_MAX / 2, INT64_MAX / 4 + 1,
                                                     1LL << 32, 1LL << 31, 1LL << 62,     -(1LL << 32)};
  const std::uint8_t byte = draw.byte();
  return byte < 248 ? static_cast<std::int64_t>(byte) - 4 : kExtremes[byte - 248U];
}

std::vector<float>& memory() {
  static std::vector<float> all(4096);
  return all;
}

// A versioned tensor, and the axes that it refers to.
struct Made {
  std::array<std::int64_t, kMostAxes> shape{};
  std::array<std::int64_t, kMostAxes> strides{};
  int deleted = 0;
  dlpack::ManagedTensorVersioned managed{};

  explicit Made(Draw& draw) {
    const std::uint8_t form = draw.byte();
    managed.version = {(form & 1) != 0 ? draw.byte() : 1U, draw.byte()};
    managed.manager_ctx = &deleted;
    managed.deleter = [](dlpack::ManagedTensorVersioned* self) { ++*static_cast<int*>(self->manager_ctx); };
    managed.flags = draw.byte();
    dlpack::Tensor& tensor = managed.dl_tensor;
    tensor.data = (form & 2) != 0 ? nullptr : memory().data() + 2048;
    tensor.device = (form & 4) != 0 ? dlpack::DeviceId{draw.byte() % 16, draw.byte() % 3 - 1} : dlpack::DeviceId{dlpack::kCpu, 0};
    tensor.dtype = (form & 8) != 0 ? dlpack::DataType{draw.byte(), draw.byte(), draw.below(3)} : dlpack::DataType{dlpack::kFloat, 32, 1};
    tensor.ndim = draw.below(kMostAxes + 2) - 1;
    if (tensor.ndim == kMostAxes) tensor.ndim = 100;  // refused before its axes are looked at
    for (std::int64_t& dim : shape) dim = number(draw);
    for (std::int64_t& stride : strides) stride = number(draw);
    tensor.shape = (form & 16) != 0 ? nullptr : shape.data();
    tensor.strides = (form & 32) != 0 ? nullptr : strides.data();
    if ((form & 64) != 0) tensor.byte_offset = draw.number<std::uint64_t>();
  }
};

void look_at(const Storage& x) {
  require(x.num_elements() <= static_cast<std::size_t>(INT64_MAX), "a storage counts its elements");
  (void)to_json(inspect(x));
  const auto low = reinterpret_cast<std::uintptr_t>(memory().data());
  const auto begin = reinterpret_cast<std::uintptr_t>(x.buffer().data());
  const std::size_t given = sizeof(float) * memory().size();
  const bool is_inside = begin >= low && x.buffer().size_bytes() <= given && begin - low <= given - x.buffer().size_bytes();
  if (is_inside && x.num_elements() < 10'000 && x.device() == Device()) (void)x.clone();
}

void run(std::string_view bytes) {
  Draw draw(bytes);
  Made made(draw);
  try {
    const Storage x = from_dlpack(DlpackTensor(&made.managed));
    look_at(x);
    require(made.deleted == 0, "a tensor lives as long as its storage");
  } catch (const Error&) {
    require(made.deleted == 1, "a refused tensor is freed at once");
    throw;
  }
  require(made.deleted == 1, "every tensor is freed exactly once");
}

const Registered dlpack_tensors({.name = "dlpack_tensors", .run = run});

}  // namespace
}  // namespace berth::testing::fuzz
