// SPDX-License-Identifier: Apache-2.0
#include "storage/model.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/scale.h"

// Random views, copies and conversions, on host and simulated memory, against the plain model.
namespace berth::testing {
namespace {

struct Tracked {
  Storage storage;
  ModelView view;
  std::shared_ptr<ModelBytes> bytes;  // of the whole buffer; shared by its views
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
  Tracked& any() { return pool_[random_.below(pool_.size())]; }
  void keep(Tracked made);
  void check_layout(const Tracked& t);
  void check_bytes(const Tracked& t);

  Tracked fresh(const std::vector<std::int64_t>& shape, DType dtype);
  std::vector<std::int64_t> any_shape();
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
  const Device device = random_.one_in(4) ? sim_ : Device();
  made.storage = empty(Shape(shape), dtype, device);
  copy_bytes(made.storage.data_ptr(), device, made.bytes->data(), "cpu", made.bytes->size());
  return made;
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

void StorageModel::make_view(const Tracked& t) {
  ++views;
  const ModelView& v = t.view;
  const auto rank = static_cast<std::int64_t>(v.shape.size());
  Tracked made = t;
  const std::int64_t kind = rank == 0 ? 5 : small(7);
  const auto axis = static_cast<std::size_t>(rank == 0 ? 0 : small(rank));
  const int given = static_cast<int>(axis) - (random_.one_in(2) ? static_cast<int>(rank) : 0);
  if (kind == 0 || kind == 1) {
    const std::int64_t begin = small(13) - 6;
    const std::int64_t end = small(13) - 6;
    const std::int64_t step = kind == 0 ? 1 + small(3) : -1 - small(3);
    const std::vector<std::int64_t> taken = python_range(begin, end, step, v.shape[axis]);
    std::vector<std::int64_t> shape = v.shape;
    shape[axis] = static_cast<std::int64_t>(taken.size());
    made.view = remap(v, shape, [&](std::vector<std::int64_t> index) {
      index[axis] = taken[static_cast<std::size_t>(index[axis])];
      return index;
    });
    made.storage = t.storage.slice(given, begin, end, step);
  } else if (kind == 2) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
    std::vector<std::int64_t> shape;
    for (const std::int64_t o : order) shape.push_back(v.shape[static_cast<std::size_t>(o)]);
    made.view = remap(v, shape, [&](const std::vector<std::int64_t>& index) {
      std::vector<std::int64_t> from(index.size());
      for (std::size_t i = 0; i < index.size(); ++i) from[static_cast<std::size_t>(order[i])] = index[i];
      return from;
    });
    made.storage = t.storage.permute(Dims(std::span<const std::int64_t>(order)));
  } else if (kind == 3) {
    const auto other = static_cast<std::size_t>(small(rank));
    std::vector<std::int64_t> shape = v.shape;
    std::swap(shape[axis], shape[other]);
    made.view = remap(v, shape, [&](std::vector<std::int64_t> index) {
      std::swap(index[axis], index[other]);
      return index;
    });
    made.storage = t.storage.transpose(given, static_cast<int>(other));
  } else if (kind == 4 && v.shape[axis] > 0) {
    const std::int64_t chosen = small(v.shape[axis]);
    std::vector<std::int64_t> shape = v.shape;
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    made.view = remap(v, shape, [&](std::vector<std::int64_t> index) {
      index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis), chosen);
      return index;
    });
    made.storage = t.storage.select(given, random_.one_in(2) ? chosen : chosen - v.shape[axis]);
  } else if (kind == 5) {
    std::vector<std::int64_t> shape = v.shape;
    const auto at = static_cast<std::size_t>(small(rank + 1));
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), 1);
    made.view.shape = shape;
    made.storage = t.storage.unsqueeze(static_cast<int>(at));
  } else {
    if (rank >= 5) return;
    std::vector<std::int64_t> shape = v.shape;
    for (std::int64_t& dim : shape) dim = dim == 1 ? small(4) : dim;
    const bool longer = random_.one_in(2);
    if (longer) shape.insert(shape.begin(), small(3));
    made.view = remap(v, shape, [&](std::vector<std::int64_t> index) {
      if (longer) index.erase(index.begin());
      for (std::size_t i = 0; i < index.size(); ++i) index[i] = v.shape[i] == 1 ? 0 : index[i];
      return index;
    });
    made.storage = t.storage.expand(Dims(std::span<const std::int64_t>(shape)));
  }
  if (made.view.shape.size() <= 5 && made.view.count() <= 400) keep(std::move(made));
}

void StorageModel::reshape(const Tracked& t) {
  // Split the count into random factors.
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
    ++refusals;
    EXPECT_THROW(t.storage.reshape(dims), ArgumentError);
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
    ++refusals;
    EXPECT_THROW(make(), ArgumentError);
    return;
  }
  ++views;
  keep({make(), view, t.bytes});
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
      // The bytes of each row, cut anew.
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
  // Into a fresh storage of the same shape, or into another view that happens to have it: often of the same buffer.
  Tracked* target = nullptr;
  for (Tracked& candidate : pool_) {
    if (candidate.view.shape == t.view.shape && &candidate != &t && random_.one_in(2)) target = &candidate;
  }
  Tracked made;
  if (target == nullptr) {
    made = fresh(t.view.shape, random_.one_in(2) ? t.view.dtype : any_dtype());
    target = &made;
  }
  if (reaches_twice(target->view)) {
    ++refusals;
    EXPECT_THROW(target->storage.copy_from(t.storage), ArgumentError);
    return;
  }
  ++copies;
  target->storage.copy_from(t.storage);
  model_copy(t.view, *t.bytes, target->view, *target->bytes);
  check_bytes(*target);
}

// A flipped or shifted view of the same elements copied over them: source and target overlap.
void StorageModel::copy_beside(const Tracked& t) {
  if (t.view.shape.empty() || t.view.shape[0] < 2 || reaches_twice(t.view)) return;
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
  const Device device = random_.one_in(3) ? sim_ : Device();
  const bool same = device == t.storage.device() && made.view.dtype == t.view.dtype;
  made.storage = t.storage.to(device, made.view.dtype);
  ASSERT_EQ(made.storage.is_view_of(t.storage), same && t.storage.buffer());
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
