// SPDX-License-Identifier: Apache-2.0
#include "storage/model.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <optional>

#include "base/random.h"
#include "support/scale.h"

// Random views, copies and conversions, on host, pinned and simulated memory, against the simple model.
namespace berth::testing {

using namespace internal;
namespace {

struct Tracked {
  Storage storage;
  ModelView view;
  std::shared_ptr<ModelBytes> bytes;  // of the whole buffer; common to its views
  bool read_only = false;             // this handle, and the views made from it

  Tracked seen_as(Storage other, ModelView its_view) const { return {std::move(other), std::move(its_view), bytes, read_only}; }
};

// An axis as an index, and as the argument: counted from the front or the back.
struct Axis {
  std::size_t index;
  int given;
};

class StorageModel {
 public:
  explicit StorageModel(std::uint64_t seed) : random_(seed) {}

  void step();
  std::uint64_t copies = 0;
  std::uint64_t views = 0;
  std::uint64_t refusals = 0;

 private:
  std::int64_t small(std::int64_t bound) { return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(bound))); }
  DType any_dtype() { return all_dtypes()[random_.below(kDTypeCount)].dtype; }
  Device any_device() { return random_.one_in(3) ? sim_ : random_.one_in(3) ? Device("pinned") : Device(); }
  template <class Act>
  void refuse(ErrorCode code, Act act);
  bool refuse_write(const Tracked& t, const std::function<void()>& write);
  Tracked& any() { return pool_[random_.below(pool_.size())]; }
  void keep(Tracked made);
  void check_layout(const Tracked& t);
  void check_bytes(const Tracked& t);

  Tracked fresh(const std::vector<std::int64_t>& shape, DType dtype);
  std::vector<std::int64_t> any_shape();
  Tracked slice(const Tracked& t, Axis at);
  Tracked permute(const Tracked& t);
  Tracked transpose(const Tracked& t, Axis at);
  std::optional<Tracked> select(const Tracked& t, Axis at);
  std::optional<Tracked> squeeze(const Tracked& t, Axis at);
  Tracked unsqueeze(const Tracked& t);
  Tracked expand(const Tracked& t);
  std::optional<Tracked> any_view(const Tracked& t);
  void make_view(const Tracked& t);
  void reshape(const Tracked& t);
  void stride(const Tracked& t);
  void reinterpret(const Tracked& t);
  void copy(const Tracked& t);
  void copy_beside(const Tracked& t);
  void change_place(const Tracked& t);
  void fill(const Tracked& t);

  Random random_;
  std::vector<Tracked> pool_;
  Device sim_ = make_sim({.capacity_bytes = 64_MiB, .page_bytes = 4096, .background = false});
};

std::vector<std::int64_t> StorageModel::any_shape() {
  std::vector<std::int64_t> shape;
  const std::int64_t rank = small(5);
  for (std::int64_t i = 0; i < rank; ++i) shape.push_back(random_.one_in(20) ? 0 : 1 + small(4));
  return shape;
}

Tracked StorageModel::fresh(const std::vector<std::int64_t>& shape, DType dtype) {
  const std::size_t size = size_bytes(dtype);
  const auto count = static_cast<std::size_t>(product(shape));
  Tracked made;
  made.bytes = std::make_shared<ModelBytes>(count * size);
  for (std::byte& b : *made.bytes) b = static_cast<std::byte>(random_.below(256));
  made.view = {shape, {}, dtype};
  for (std::size_t i = 0; i < count; ++i) made.view.at.push_back(static_cast<std::int64_t>(i * size));
  const Device device = any_device();
  made.storage = empty(Shape(shape), dtype, device);
  copy_bytes(made.storage.data_ptr(), device, made.bytes->data(), "cpu", made.bytes->size());
  return made;
}

// `act` must throw an error with that code.
template <class Act>
void StorageModel::refuse(ErrorCode code, Act act) {
  ++refusals;
  try {
    act();
    ADD_FAILURE() << "not refused with " << to_string(code);
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
  }
}

// Whether `t` is read-only; then `write` is called, and must change nothing.
bool StorageModel::refuse_write(const Tracked& t, const std::function<void()>& write) {
  if (!t.read_only) return false;
  refuse(ErrorCode::read_only, write);
  check_bytes(t);
  return true;
}

void StorageModel::keep(Tracked made) {
  check_layout(made);
  if (pool_.size() < 24)
    pool_.push_back(std::move(made));
  else
    pool_[random_.below(pool_.size())] = std::move(made);
}

void StorageModel::check_layout(const Tracked& t) {
  ASSERT_EQ(t.storage.shape(), Shape(t.view.shape));
  ASSERT_EQ(t.storage.num_elements(), t.view.count());
  ASSERT_EQ(t.storage.dtype(), t.view.dtype);
  ASSERT_EQ(t.storage.is_read_only(), t.read_only);
  const auto size = static_cast<std::int64_t>(size_bytes(t.view.dtype));
  std::size_t i = 0;
  for_each_index(t.view.shape, [&](const std::vector<std::int64_t>& index) {
    std::int64_t element = t.storage.offset();
    for (std::size_t axis = 0; axis < index.size(); ++axis) element += index[axis] * t.storage.strides()[axis];
    ASSERT_EQ(element * size, t.view.at[i]) << "element " << i << " of " << t.storage.shape().to_string();
    ++i;
  });
}

void StorageModel::check_bytes(const Tracked& t) {
  std::vector<std::byte> bytes(t.bytes->size());
  copy_bytes(bytes.data(), "cpu", t.storage.buffer().data(), t.storage.device(), bytes.size());
  ASSERT_TRUE(bytes == *t.bytes) << "the bytes of the buffer differ from the model's";
}

Tracked StorageModel::slice(const Tracked& t, Axis at) {
  const auto bound = [&] { return random_.one_in(4) ? std::optional<std::int64_t>() : small(13) - 6; };
  const auto begin = bound();
  const auto end = bound();
  const std::int64_t step = random_.one_in(2) ? 1 + small(3) : -1 - small(3);
  const std::vector<std::int64_t> taken = python_range(begin, end, step, t.view.shape[at.index]);
  std::vector<std::int64_t> shape = t.view.shape;
  shape[at.index] = static_cast<std::int64_t>(taken.size());
  const ModelView view = remap(t.view, shape, [&](std::vector<std::int64_t> index) {
    index[at.index] = taken[static_cast<std::size_t>(index[at.index])];
    return index;
  });
  return t.seen_as(t.storage.slice(at.given, begin, end, step), view);
}

Tracked StorageModel::permute(const Tracked& t) {
  std::vector<std::int64_t> order(t.view.shape.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
  std::vector<std::int64_t> shape;
  for (const std::int64_t o : order) shape.push_back(t.view.shape[static_cast<std::size_t>(o)]);
  const ModelView view = remap(t.view, shape, [&](const std::vector<std::int64_t>& index) {
    std::vector<std::int64_t> from(index.size());
    for (std::size_t i = 0; i < index.size(); ++i) from[static_cast<std::size_t>(order[i])] = index[i];
    return from;
  });
  return t.seen_as(t.storage.permute(Dims(std::span<const std::int64_t>(order))), view);
}

Tracked StorageModel::transpose(const Tracked& t, Axis at) {
  const auto other = static_cast<std::size_t>(random_.below(t.view.shape.size()));
  std::vector<std::int64_t> shape = t.view.shape;
  std::swap(shape[at.index], shape[other]);
  const ModelView view = remap(t.view, shape, [&](std::vector<std::int64_t> index) {
    std::swap(index[at.index], index[other]);
    return index;
  });
  return t.seen_as(t.storage.transpose(at.given, static_cast<int>(other)), view);
}

std::optional<Tracked> StorageModel::select(const Tracked& t, Axis at) {
  const std::int64_t size = t.view.shape[at.index];
  if (size == 0) {
    refuse(ErrorCode::out_of_bounds, [&] { (void)t.storage.select(at.given, 0); });
    return std::nullopt;
  }
  const std::int64_t chosen = small(size);
  const auto position = static_cast<std::ptrdiff_t>(at.index);
  std::vector<std::int64_t> shape = t.view.shape;
  shape.erase(shape.begin() + position);
  const ModelView view = remap(t.view, shape, [&](std::vector<std::int64_t> index) {
    index.insert(index.begin() + position, chosen);
    return index;
  });
  return t.seen_as(t.storage.select(at.given, random_.one_in(2) ? chosen : chosen - size), view);
}

std::optional<Tracked> StorageModel::squeeze(const Tracked& t, Axis at) {
  if (t.view.shape[at.index] != 1) {
    refuse(ErrorCode::invalid_argument, [&] { (void)t.storage.squeeze(at.given); });
    return std::nullopt;
  }
  ModelView view = t.view;
  view.shape.erase(view.shape.begin() + static_cast<std::ptrdiff_t>(at.index));
  return t.seen_as(t.storage.squeeze(at.given), view);
}

Tracked StorageModel::unsqueeze(const Tracked& t) {
  const auto rank = static_cast<int>(t.view.shape.size());
  const auto at = static_cast<int>(small(rank + 1));
  ModelView view = t.view;
  view.shape.insert(view.shape.begin() + at, 1);
  return t.seen_as(t.storage.unsqueeze(random_.one_in(2) ? at : at - rank - 1), view);
}

Tracked StorageModel::expand(const Tracked& t) {
  std::vector<std::int64_t> shape = t.view.shape;
  for (std::int64_t& dim : shape) dim = dim == 1 ? small(4) : dim;
  std::vector<std::int64_t> asked = shape;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (shape[i] == t.view.shape[i] && random_.one_in(2)) asked[i] = -1;
  }
  const bool longer = random_.one_in(2);
  if (longer) asked.insert(asked.begin(), *shape.insert(shape.begin(), small(3)));
  const ModelView view = remap(t.view, shape, [&](std::vector<std::int64_t> index) {
    if (longer) index.erase(index.begin());
    for (std::size_t i = 0; i < index.size(); ++i) index[i] = t.view.shape[i] == 1 ? 0 : index[i];
    return index;
  });
  return t.seen_as(t.storage.expand(Dims(std::span<const std::int64_t>(asked))), view);
}

std::optional<Tracked> StorageModel::any_view(const Tracked& t) {
  if (random_.one_in(40)) {
    Tracked made = t.seen_as(t.storage.read_only(), t.view);
    made.read_only = true;
    return made;
  }
  const std::size_t rank = t.view.shape.size();
  if (rank == 0) return random_.one_in(2) ? unsqueeze(t) : expand(t);
  const auto index = static_cast<std::size_t>(random_.below(rank));
  const Axis at{index, static_cast<int>(index) - (random_.one_in(2) ? static_cast<int>(rank) : 0)};
  switch (small(8)) {
    case 0:
    case 1: return slice(t, at);
    case 2: return permute(t);
    case 3: return transpose(t, at);
    case 4: return select(t, at);
    case 5: return squeeze(t, at);
    case 6: return unsqueeze(t);
    default: return expand(t);
  }
}

void StorageModel::make_view(const Tracked& t) {
  std::optional<Tracked> made = any_view(t);
  if (!made) return;
  ++views;
  if (made->view.shape.size() <= 5 && made->view.count() <= 400) keep(*std::move(made));
}

void StorageModel::reshape(const Tracked& t) {
  // Splits the count into random factors.
  std::vector<std::int64_t> shape;
  std::int64_t left = product(t.view.shape);
  for (int i = 0; i < 3 && left > 1; ++i) {
    std::int64_t factor = 1 + small(4);
    while (left % factor != 0) --factor;
    shape.push_back(factor);
    left /= factor;
  }
  shape.push_back(left);
  std::vector<std::int64_t> asked = shape;
  if (left > 0 && random_.one_in(2)) asked.back() = -1;
  const bool possible = is_strided(t.view, shape);
  const Dims dims{std::span<const std::int64_t>(asked)};
  ASSERT_EQ(t.storage.can_reshape(dims), possible)
      << t.storage.shape().to_string() << t.storage.strides().to_string() << " to " << dims.to_string();
  if (!possible) {
    refuse(ErrorCode::not_viewable, [&] { (void)t.storage.reshape(dims); });
    return;
  }
  ++views;
  Tracked made = t;
  made.view.shape = shape;
  made.storage = t.storage.reshape(dims);
  keep(std::move(made));
}

void StorageModel::stride(const Tracked& t) {
  const std::vector<std::int64_t> shape = any_shape();
  std::vector<std::int64_t> strides;
  for (std::size_t i = 0; i < shape.size(); ++i) strides.push_back(small(9) - 4);
  const std::int64_t offset = small(12) - 1;
  const auto size = static_cast<std::int64_t>(size_bytes(t.view.dtype));
  const auto elements = static_cast<std::int64_t>(t.bytes->size()) / size;
  ModelView view{shape, {}, t.view.dtype};
  bool inside = product(shape) != 0 || (offset >= 0 && offset <= elements);
  for_each_index(shape, [&](const std::vector<std::int64_t>& index) {
    std::int64_t element = offset;
    for (std::size_t i = 0; i < index.size(); ++i) element += index[i] * strides[i];
    inside = inside && element >= 0 && element < elements;
    view.at.push_back(element * size);
  });
  const auto make = [&] { return t.storage.as_strided(Shape(shape), Strides(std::span<const std::int64_t>(strides)), offset); };
  if (!inside) {
    refuse(ErrorCode::out_of_bounds, make);
    return;
  }
  ++views;
  keep(t.seen_as(make(), view));
}

void StorageModel::reinterpret(const Tracked& t) {
  const DType dtype = any_dtype();
  const auto from = static_cast<std::int64_t>(size_bytes(t.view.dtype));
  const auto to = static_cast<std::int64_t>(size_bytes(dtype));
  try {
    Tracked made = t;
    made.storage = t.storage.reinterpret(dtype);
    made.view.dtype = dtype;
    if (from != to) {
      // The bytes of each row, with a new element size.
      std::vector<std::int64_t> bytes;
      for (const std::int64_t at : t.view.at) {
        for (std::int64_t b = 0; b < from; ++b) bytes.push_back(at + b);
      }
      made.view.shape.back() = t.view.shape.back() * from / to;
      made.view.at.clear();
      for (std::size_t i = 0; i < bytes.size(); i += static_cast<std::size_t>(to)) {
        for (std::size_t b = 0; b < static_cast<std::size_t>(to); ++b)
          ASSERT_EQ(bytes[i + b], bytes[i] + static_cast<std::int64_t>(b)) << "an element is torn apart";
        made.view.at.push_back(bytes[i]);
      }
    }
    ++views;
    if (made.view.count() <= 400) keep(std::move(made));
  } catch (const ArgumentError& error) {
    ++refusals;
    ASSERT_EQ(error.code(), ErrorCode::size_mismatch);
    ASSERT_NE(from, to);
  }
}

void StorageModel::copy(const Tracked& t) {
  // Into a new storage of the same shape, or into another view that happens to have it: often of the same
  // buffer.
  Tracked* target = nullptr;
  for (Tracked& candidate : pool_) {
    if (candidate.view.shape == t.view.shape && &candidate != &t && random_.one_in(2)) target = &candidate;
  }
  Tracked made;
  if (target == nullptr) {
    made = fresh(t.view.shape, random_.one_in(2) ? t.view.dtype : any_dtype());
    target = &made;
  }
  const auto write = [&] { target->storage.copy_from(t.storage); };
  if (refuse_write(*target, write)) return;
  if (reaches_twice(target->view)) {
    refuse(ErrorCode::overlapping_view, write);
    return;
  }
  ++copies;
  write();
  model_copy(t.view, *t.bytes, target->view, *target->bytes);
  check_bytes(*target);
}

// Copies a flipped or shifted view of the same elements over them: source and target overlap.
void StorageModel::copy_beside(const Tracked& t) {
  if (t.view.shape.empty() || t.view.shape[0] < 2 || reaches_twice(t.view)) return;
  if (refuse_write(t, [&] { t.storage.copy_from(t.storage.flip(0)); })) return;
  ++copies;
  ModelView source = remap(t.view, t.view.shape, [&](std::vector<std::int64_t> index) {
    index[0] = t.view.shape[0] - 1 - index[0];
    return index;
  });
  t.storage.copy_from(t.storage.flip(0));
  model_copy(source, *t.bytes, t.view, *t.bytes);
  check_bytes(t);
}

void StorageModel::change_place(const Tracked& t) {
  ++copies;
  Tracked made;
  made.view.dtype = random_.one_in(2) ? t.view.dtype : any_dtype();
  const Device device = any_device();
  const bool same = device == t.storage.device() && made.view.dtype == t.view.dtype;
  made.storage = t.storage.to(device, made.view.dtype);
  ASSERT_EQ(made.storage.is_view_of(t.storage), same && t.storage.buffer());
  ASSERT_EQ(made.storage.is_read_only(), same && t.read_only) << "a copy can be written";
  if (same) made.storage = t.storage.clone();
  made.view.shape = t.view.shape;
  const std::size_t size = size_bytes(made.view.dtype);
  made.bytes = std::make_shared<ModelBytes>(t.view.count() * size);
  for (std::size_t i = 0; i < t.view.count(); ++i) made.view.at.push_back(static_cast<std::int64_t>(i * size));
  model_copy(t.view, *t.bytes, made.view, *made.bytes);
  check_bytes(made);
  ASSERT_TRUE(equal(made.storage, made.storage.contiguous()));
  keep(std::move(made));
}

void StorageModel::fill(const Tracked& t) {
  const auto value = static_cast<double>(small(2000) - 1000) / 8;
  if (refuse_write(t, [&] { t.storage.fill(value); })) return;
  t.storage.fill(value);
  const auto element = Scalar(value).as(t.view.dtype);
  for (const std::int64_t at : t.view.at) std::memcpy(&(*t.bytes)[static_cast<std::size_t>(at)], element.data(), size_bytes(t.view.dtype));
  check_bytes(t);
}

void StorageModel::step() {
  if (pool_.size() < 8 || random_.one_in(50)) {
    keep(fresh(any_shape(), any_dtype()));
    return;
  }
  const Tracked& chosen = any();
  const Tracked t = chosen;  // a copy of the handle: the pool may change
  switch (small(12)) {
    case 0:
    case 1:
    case 2:
    case 3: return make_view(t);
    case 4: return reshape(t);
    case 5: return stride(t);
    case 6: return reinterpret(t);
    case 7:
    case 8: return copy(t);
    case 9: return copy_beside(t);
    case 10: return change_place(t);
    default: return fill(t);
  }
}

TEST(StorageModel, AMillionRandomOperationsMatchThePlainModel) {
  const std::uint64_t steps = scaled(1'000'000);
  StorageModel model(seed());
  for (std::uint64_t i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) {
    model.step();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "at step " << i << ", seed " << seed();
  }
  did(std::to_string(steps) + " operations: " + std::to_string(model.views) + " views, " + std::to_string(model.copies) +
      " copies and conversions, " + std::to_string(model.refusals) + " refusals; seed " + std::to_string(seed()));
}

}  // namespace
}  // namespace berth::testing
