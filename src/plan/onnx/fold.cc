// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/fold.h"

#include <algorithm>

#include "plan/onnx/element_type.h"
#include "plan/onnx/fold_arithmetic.h"
#include "plan/onnx/slice_range.h"

// Constant folding of operators that select and move elements. Those that select along an axis support lists
// only.
namespace berth::internal::plan::onnx {

namespace {

bool is_list(const TensorType& type) { return type.ranked && type.dims.size() == 1; }

// The elements of a list at some indices; an index out of range gives an unknown element.
template <class Locations>
Contents pick(const Contents& from, const Locations& locations) {
  Contents out;
  const bool floats = !from.floats.empty();
  for (const std::int64_t at : locations) {
    const auto size = static_cast<std::int64_t>(floats ? from.floats.size() : from.ints.size());
    const std::int64_t location = at < 0 ? at + size : at;
    const bool inside = at != kUnknownInt && location >= 0 && location < size;
    if (floats)
      out.floats.push_back(inside ? from.floats[static_cast<std::size_t>(location)] : kUnknownFloat);
    else
      out.ints.push_back(inside ? from.ints[static_cast<std::size_t>(location)] : kUnknownInt);
  }
  return out;
}

void copy(Call& call) {
  if (const Contents* const from = call.contents(0)) call.set_contents(0, *from);
}

void gather(Call& call) {
  const Contents* const from = call.contents(0);
  const auto* const at = call.ints(1);
  if (from != nullptr && at != nullptr && is_list(call.in(0))) call.set_contents(0, pick(*from, *at));
}

void concat(Call& call) {
  Contents all;
  for (std::size_t i = 0; i < call.inputs(); ++i) {
    const Contents* const part = call.contents(i);
    if (part == nullptr || !is_list(call.in(i))) return;
    all.ints.insert(all.ints.end(), part->ints.begin(), part->ints.end());
    all.floats.insert(all.floats.end(), part->floats.begin(), part->floats.end());
  }
  if (all.ints.empty() || all.floats.empty()) call.set_contents(0, std::move(all));
}

void slice(Call& call) {
  const Contents* const from = call.contents(0);
  const auto ranges = slice_ranges(call);
  if (from == nullptr || !is_list(call.in(0)) || !ranges || ranges->front().count == kUnknownDim) return;
  std::vector<std::int64_t> locations;
  const AxisRange& range = ranges->front();
  for (std::int64_t i = 0; i < range.count; ++i) locations.push_back(range.start + i * range.step);
  call.set_contents(0, pick(*from, locations));
}

void split(Call& call) {
  const Contents* const from = call.contents(0);
  if (from == nullptr || !is_list(call.in(0))) return;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < call.outputs(); ++i) {
    const TensorType& part = call.out(i);
    if (!is_list(part) || part.dims[0] == kUnknownDim || part.dims[0] > static_cast<std::int64_t>(kMostContents)) return;
    std::vector<std::int64_t> locations;
    for (const std::int64_t end = at + part.dims[0]; at < end; ++at) locations.push_back(at);
    call.set_contents(i, pick(*from, locations));
  }
}

// REQUIRES, here and below: the output is small.
std::size_t output_count(Call& call) { return *count_of(call.out(0).dims); }

void expand(Call& call) {
  const Contents* const from = call.contents(0);
  const std::size_t count = output_count(call);
  if (from == nullptr) return;
  if (from->ints.size() + from->floats.size() == count) return copy(call);
  if (from->ints.size() + from->floats.size() == 1) call.set_contents(0, pick(*from, std::vector<std::int64_t>(count, 0)));
}

void constant_of_shape(Call& call) {
  const Attribute* const value = call.node().find("value");
  const std::size_t count = output_count(call);
  if (value == nullptr || value->tensor == nullptr) return call.set_contents(0, {.ints = {}, .floats = std::vector<float>(count, 0.0F)});
  const auto one = read_contents(*value->tensor);
  if (one && one->ints.size() + one->floats.size() == 1) call.set_contents(0, pick(*one, std::vector<std::int64_t>(count, 0)));
}

void range(Call& call) {
  const auto* const start = call.known_ints(0);
  const auto* const delta = call.known_ints(2);
  if (start == nullptr || delta == nullptr || start->size() != 1 || delta->size() != 1) return;
  Contents out;
  for (std::size_t i = 0; i < output_count(call); ++i)
    // Between start and limit, so it cannot overflow.
    out.ints.push_back(start->front() + static_cast<std::int64_t>(i) * delta->front());
  call.set_contents(0, std::move(out));
}

void non_zero(Call& call) {
  const auto* const from = call.known_ints(0);
  if (from == nullptr || !is_list(call.in(0))) return;
  Contents out;
  for (std::size_t i = 0; i < from->size(); ++i) {
    if ((*from)[i] != 0) out.ints.push_back(static_cast<std::int64_t>(i));
  }
  call.set_contents(0, std::move(out));
}

void where(Call& call) {
  const auto* const condition = call.ints(0);
  const auto* const yes = call.ints(1);
  const auto* const no = call.ints(2);
  const std::size_t count = output_count(call);
  if (condition == nullptr || yes == nullptr || no == nullptr) return;
  const auto spread = [&](const auto& list) { return list.size() == count || list.size() == 1; };
  if (!spread(*condition) || !spread(*yes) || !spread(*no)) return;
  const auto at = [](const auto& list, std::size_t i) { return list[list.size() == 1 ? 0 : i]; };
  Contents out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t choice = at(*condition, i);
    out.ints.push_back(choice == kUnknownInt ? kUnknownInt : choice != 0 ? at(*yes, i) : at(*no, i));
  }
  call.set_contents(0, std::move(out));
}

struct FoldEntry {
  std::string_view op;
  void (*fold)(Call& call);
};

// Sorted by name.
constexpr FoldEntry kFolds[] = {
    {"Abs", fold_unary},
    {"Add", fold_binary},
    {"And", fold_binary},
    {"Cast", fold_cast},
    {"Ceil", fold_unary},
    {"Concat", concat},
    {"ConstantOfShape", constant_of_shape},
    {"Div", fold_binary},
    {"Equal", fold_binary},
    {"Expand", expand},
    {"Flatten", copy},
    {"Floor", fold_unary},
    {"Gather", gather},
    {"Greater", fold_binary},
    {"GreaterOrEqual", fold_binary},
    {"Identity", copy},
    {"Less", fold_binary},
    {"LessOrEqual", fold_binary},
    {"Max", fold_binary},
    {"Min", fold_binary},
    {"Mod", fold_binary},
    {"Mul", fold_binary},
    {"Neg", fold_unary},
    {"NonZero", non_zero},
    {"Not", fold_unary},
    {"Or", fold_binary},
    {"Range", range},
    {"ReduceMax", fold_reduce},
    {"ReduceMin", fold_reduce},
    {"ReduceProd", fold_reduce},
    {"ReduceSum", fold_reduce},
    {"Reshape", copy},
    {"Slice", slice},
    {"Split", split},
    {"Squeeze", copy},
    {"Sub", fold_binary},
    {"Unsqueeze", copy},
    {"Where", where},
};

static_assert(std::ranges::is_sorted(kFolds, {}, &FoldEntry::op), "the table is searched by halves");

bool is_small(const TensorType& type) {
  if (!type.complete()) return false;
  const auto count = count_of(type.dims);
  return count && *count <= kMostContents;
}

// Drops contents whose count does not match the shape: a damaged model may contradict itself.
void drop_misfits(Call& call) {
  for (std::size_t i = 0; i < call.outputs(); ++i) {
    auto& contents = call.out_contents(i);
    const auto count = count_of(call.out(i).dims);
    if (contents && (!is_small(call.out(i)) || contents->ints.size() + contents->floats.size() != count)) contents.reset();
  }
}

}  // namespace

void fold(Call& call) {
  const auto* const found = std::ranges::lower_bound(kFolds, call.node().op, {}, &FoldEntry::op);
  if (found != std::end(kFolds) && found->op == call.node().op && call.outputs() != 0 && is_small(call.out(0))) found->fold(call);
  drop_misfits(call);
}

}  // namespace berth::internal::plan::onnx
