// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/storage/storage.h"
#include "storage/make.h"

// The views of a storage: arithmetic on shape, strides and offset.
namespace berth {

using namespace internal;
using namespace internal::storage;

inline Storage Storage::view(Shape shape, Strides strides, std::int64_t offset, std::size_t num_elements) const {
  if (is_watching_storages()) [[unlikely]]
    return StorageMaker::make(buffer_, dtype_, shape, std::move(strides), offset, num_elements);
  return Storage(buffer_, dtype_, std::move(shape), std::move(strides), offset, num_elements);
}

namespace {

// Runs what throws, and never returns. Not inlined: the strings of an error would be in the frame of the function that
// works, which would then be checked on every return (berth_harden in cmake/compile.cmake).
template <class Throw>
[[noreturn, gnu::noinline, gnu::cold]] void out_of_line(Throw raise) {
  raise();
  __builtin_unreachable();
}

[[noreturn]] void throw_argument(ErrorCode code, std::string asked, std::string why, std::string help, std::vector<Fact> facts = {}) {
  throw ArgumentError(code, {std::move(asked), std::move(why), std::move(help)}, std::move(facts));
}

// The elements that [begin, end) with a step selects on an axis of `size` elements, as in Python.
struct AxisRange {
  std::int64_t begin;
  std::int64_t count;
};

using Bound = std::optional<std::int64_t>;

AxisRange resolve(Bound begin, Bound end, std::int64_t step, std::int64_t size) {
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? size : size - 1;
  const auto clip = [&](std::int64_t i) { return std::clamp(i < 0 ? i + size : i, low, high); };
  const std::int64_t first = begin ? clip(*begin) : step > 0 ? low : high;
  const std::int64_t last = end ? clip(*end) : step > 0 ? high : low;
  const std::int64_t distance = step > 0 ? last - first : first - last;
  if (distance <= 0) return {first, 0};
  // |step| of INT64_MIN does not fit; any step beyond the axis takes one element.
  const std::int64_t stride = step > 0 ? step : step == INT64_MIN ? INT64_MAX : -step;
  return {first, (distance - 1) / stride + 1};
}

// Computes the dimension that may be -1. Throws unless the result has `num_elements` elements.
Shape resolve_shape(const Dims& wanted, const Shape& have, std::size_t num_elements) {
  const auto refuse = [&](ErrorCode code, std::string why, std::string help, std::vector<Fact> facts = {}) {
    throw_argument(code, text::join("reshaping ", have.to_string(), " to ", wanted.to_string()), std::move(why), std::move(help),
                   std::move(facts));
  };
  std::size_t unknown = wanted.rank();
  Shape shape;
  for (std::size_t i = 0; i < wanted.rank(); ++i) {
    const bool asks = wanted[i] == -1;
    if (asks && unknown < wanted.rank()) {
      out_of_line([&] {
        refuse(ErrorCode::invalid_shape, text::join("axes ", unknown, " and ", i, " are both -1, and only one can be inferred"),
               "write the others out", {{"axis", i}});
      });
    }
    if (wanted[i] < -1) {
      out_of_line([&] {
        refuse(ErrorCode::invalid_shape, text::join("axis ", i, " is ", wanted[i]), "use sizes of 0 or more, and at most one -1",
               {{"axis", i}, {"value", wanted[i]}});
      });
    }
    if (asks) unknown = i;
    shape.insert(i, asks ? 1 : wanted[i]);
  }
  const std::size_t rest = shape.num_elements();
  if (unknown < wanted.rank()) {
    if (rest == 0 || num_elements % rest != 0) {
      out_of_line([&] {
        refuse(ErrorCode::size_mismatch,
               rest == 0 ? "with a dimension of 0, any size could stand for -1"
                         : text::join(num_elements, " elements do not divide by ", rest),
               "write the dimension out");
      });
    }
    shape.set(unknown, static_cast<std::int64_t>(num_elements / rest));
    return shape;
  }
  if (rest != num_elements) {
    out_of_line([&] {
      refuse(ErrorCode::size_mismatch, text::join("that is ", rest, " elements, and there are ", num_elements),
             "leave one dimension at -1 to have it inferred", {{"need", num_elements}, {"have", rest}});
    });
  }
  return shape;
}

// The strides with which `to` walks the elements of (from, strides) in the same order, or nullopt when there
// are none.
//
// The old axes form groups that are contiguous inside ([2, 3] with strides [3, 1] is one group of 6). From the
// innermost group out, each must be made up of whole new axes.
std::optional<Strides> view_strides(const Shape& from, const Strides& strides, const Shape& to) {
  Strides result = Strides::contiguous(to);
  if (std::ranges::find(to, 0) != to.end()) return result;
  std::size_t next = to.rank();  // new axes below this one have no stride yet
  for (std::size_t axis = from.rank(); axis-- > 0;) {
    if (from[axis] == 1) continue;
    const std::int64_t base = strides[axis];
    std::int64_t group = from[axis];
    while (axis > 0 && (from[axis - 1] == 1 || try_multiply(base, group) == strides[axis - 1])) group *= from[--axis];
    std::int64_t placed = 1;
    while (next > 0 && placed < group) {
      result.set(next - 1, base * placed);
      placed *= to[--next];
    }
    if (placed != group) return std::nullopt;
  }
  return result;  // only axes of size 1 remain, and their strides do not matter
}

}  // namespace

std::size_t Storage::axis(int given, const char* what) const {
  const auto count = static_cast<int>(rank());
  const int found = given < 0 ? given + count : given;
  if (found < 0 || found >= count) {
    out_of_line([&] {
      throw_argument(ErrorCode::out_of_bounds,
                     text::join(std::string_view(what), " along axis ", given, " of a storage of shape ", shape_.to_string()),
                     text::join("it has ", count, " axes"),
                     count == 0 ? std::string("a scalar has no axis") : text::join("use ", -count, " to ", count - 1),
                     {{"axis", given}, {"rank", count}});
    });
  }
  return static_cast<std::size_t>(found);
}

Storage Storage::slice(int given, Bound begin, Bound end, std::int64_t step) const {
  const std::size_t at = axis(given, "slicing");
  if (step == 0)
    out_of_line([&] {
      throw_argument(ErrorCode::invalid_argument, text::join("slicing ", shape_.to_string(), " with step 0"), "it would never advance",
                     "use a step of 1 or more, or a negative one");
    });
  const AxisRange range = resolve(begin, end, step, shape_[at]);
  Shape shape = shape_;
  Strides strides = strides_;
  shape.set(at, range.count);
  const bool moves = num_elements_ != 0 && range.count != 0;           // without elements offsets and strides
                                                                       // may overflow
  if (moves && range.count > 1) strides.set(at, strides_[at] * step);  // in bounds, so it fits
  return view(std::move(shape), std::move(strides), moves ? offset_ + range.begin * strides_[at] : offset_,
              shape_[at] == 0 ? 0 : num_elements_ / static_cast<std::size_t>(shape_[at]) * static_cast<std::size_t>(range.count));
}

Storage Storage::select(int given, std::int64_t index) const {
  const std::size_t at = axis(given, "selecting");
  const std::int64_t found = index < 0 ? index + shape_[at] : index;
  if (found < 0 || found >= shape_[at]) {
    out_of_line([&] {
      throw_argument(
          ErrorCode::out_of_bounds, text::join("element ", index, " along axis ", given, " of a storage of shape ", shape_.to_string()),
          text::join("the axis has ", shape_[at], " elements"), "use an index within it", {{"index", index}, {"have", shape_[at]}});
    });
  }
  Shape shape = shape_;
  Strides strides = strides_;
  shape.erase(at);
  strides.erase(at);
  return view(std::move(shape), std::move(strides), num_elements_ == 0 ? offset_ : offset_ + found * strides_[at],
              num_elements_ / static_cast<std::size_t>(shape_[at]));
}

Storage Storage::transpose(int axis_a, int axis_b) const {
  const std::size_t a = axis(axis_a, "transposing");
  const std::size_t b = axis(axis_b, "transposing");
  Shape shape = shape_;
  Strides strides = strides_;
  shape.set(a, shape_[b]);
  shape.set(b, shape_[a]);
  strides.set(a, strides_[b]);
  strides.set(b, strides_[a]);
  return view(std::move(shape), std::move(strides), offset_, num_elements_);
}

Storage Storage::permute(const Dims& order) const {
  Shape shape = shape_;
  Strides strides = strides_;
  std::uint64_t used = 0;  // a bit for each axis
  static_assert(kMaxRank <= 64);
  bool complete = order.rank() == rank();
  for (std::size_t i = 0; complete && i < rank(); ++i) {
    const std::int64_t from = order[i] < 0 ? order[i] + static_cast<std::int64_t>(rank()) : order[i];
    complete = from >= 0 && from < static_cast<std::int64_t>(rank()) && (used >> from & 1) == 0;
    if (!complete) break;
    used |= std::uint64_t{1} << from;
    shape.set(i, shape_[static_cast<std::size_t>(from)]);
    strides.set(i, strides_[static_cast<std::size_t>(from)]);
  }
  if (!complete) {
    out_of_line([&] {
      throw_argument(ErrorCode::invalid_argument, text::join("permuting ", shape_.to_string(), " by ", order.to_string()),
                     order.rank() == rank() ? std::string("it does not name each axis once")
                                            : text::join("it has ", rank(), " axes, and the order names ", order.rank()),
                     rank() == 0 ? std::string("a scalar has no axes: only permute({}) works")
                                 : text::join("name each axis from 0 to ", rank() - 1, " once, in the new order"));
    });
  }
  return view(std::move(shape), std::move(strides), offset_, num_elements_);
}

Storage Storage::flip(int given) const { return slice(given, {}, {}, -1); }

Storage Storage::expand(const Dims& wanted) const {
  const auto refuse = [&](std::string why) {
    throw_argument(ErrorCode::size_mismatch, text::join("expanding ", shape_.to_string(), " to ", wanted.to_string()), std::move(why),
                   "only axes of size 1, and new ones in front, can be expanded");
  };
  if (wanted.rank() < rank()) refuse("it has fewer axes");
  const std::size_t added = wanted.rank() - rank();
  std::vector<std::int64_t> dims(wanted.begin(), wanted.end());
  Strides strides(wanted.rank(), 0);
  for (std::size_t i = 0; i < wanted.rank(); ++i) {
    if (i < added) {
      if (dims[i] == -1) refuse("a new axis has no size to keep");
      continue;
    }
    const std::int64_t have = shape_[i - added];
    if (dims[i] == -1) dims[i] = have;
    if (dims[i] != have && have != 1) refuse(text::join("axis ", i - added, " has size ", have));
    strides.set(i, dims[i] == have ? strides_[i - added] : 0);
  }
  Shape shape(dims);
  const std::size_t count = shape.size_bytes(dtype_) / berth::size_bytes(dtype_);
  return view(std::move(shape), std::move(strides), offset_, count);
}

Storage Storage::squeeze(int given) const {
  const std::size_t at = axis(given, "squeezing");
  if (shape_[at] != 1)
    throw_argument(ErrorCode::invalid_argument, text::join("squeezing axis ", given, " of ", shape_.to_string()),
                   text::join("it has size ", shape_[at]), "only an axis of size 1 can be removed");
  return select(given, 0);
}

Storage Storage::unsqueeze(int given) const {
  const auto count = static_cast<int>(rank());
  const int at = given < 0 ? given + count + 1 : given;
  if (at < 0 || at > count)
    throw_argument(ErrorCode::out_of_bounds, text::join("a new axis at ", given, " of ", shape_.to_string()),
                   text::join("it has ", count, " axes"), text::join("use ", -count - 1, " to ", count),
                   {{"axis", given}, {"rank", count}});
  Shape shape = shape_;
  Strides strides = strides_;
  shape.insert(static_cast<std::size_t>(at), 1);
  strides.insert(static_cast<std::size_t>(at), 1);
  return view(std::move(shape), std::move(strides), offset_, num_elements_);
}

bool Storage::can_reshape(const Dims& wanted) const {
  return view_strides(shape_, strides_, resolve_shape(wanted, shape_, num_elements_)).has_value();
}

Storage Storage::reshape(const Dims& wanted) const {
  Shape shape = resolve_shape(wanted, shape_, num_elements_);
  std::optional<Strides> strides = view_strides(shape_, strides_, shape);
  if (!strides) {
    out_of_line([&] {
      throw_argument(ErrorCode::not_viewable,
                     text::join("reshaping ", shape_.to_string(), " with strides ", strides_.to_string(), " to ", shape.to_string()),
                     "its strides do not allow a view of that shape", "use clone().reshape(...), which copies");
    });
  }
  return view(std::move(shape), *std::move(strides), offset_, num_elements_);
}

Storage Storage::as_strided(const Shape& shape, const Strides& strides, std::int64_t offset) const {
  return Storage(buffer_, dtype_, shape, strides, offset);
}

Storage Storage::strided_view(const Shape& shape, const Strides& strides, std::int64_t offset) const {
  // A sum that does not fit is outside of every buffer, as is the greatest offset.
  return as_strided(shape, strides, try_add(offset_, offset).value_or(INT64_MAX));
}

Storage Storage::reinterpret(DType target) const {
  const auto from = static_cast<std::int64_t>(berth::size_bytes(dtype_));
  const auto to = static_cast<std::int64_t>(berth::size_bytes(target));
  Storage made = *this;
  made.dtype_ = target;
  if (from == to) return made;
  const auto refuse = [&](std::string why) {
    throw_argument(ErrorCode::size_mismatch,
                   text::join("reinterpreting ", to_string(dtype_), ' ', shape_.to_string(), " as ", to_string(target)), std::move(why),
                   "clone() first, or choose a dtype of the same size", {{"need", to}, {"have", from}});
  };
  if (rank() == 0) refuse("a scalar has no axis to change");
  const std::size_t last = rank() - 1;
  if (shape_[last] != 1 && strides_[last] != 1) refuse("its last axis is not contiguous");
  // Everything, in bytes, must be a whole number of new elements.
  const auto rescale = [&](std::int64_t elements, const char* what) {
    const auto bytes = try_multiply(elements, from);
    if (!bytes || *bytes % to != 0) refuse(text::join(std::string_view(what), " is not a whole number of new elements"));
    return *bytes / to;
  };
  made.offset_ = rescale(offset_, "its offset");
  for (std::size_t i = 0; i < last; ++i) {
    if (shape_[i] > 1) made.strides_.set(i, rescale(strides_[i], "a stride"));
  }
  made.shape_.set(last, rescale(shape_[last], "its last axis"));
  made.strides_.set(last, 1);
  made.num_elements_ = made.shape_.num_elements();
  return made;
}

Storage Storage::read_only() const {
  Storage made = *this;
  made.buffer_ = buffer_.read_only();
  return made;
}

}  // namespace berth
