// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/reuse.h"

#include <algorithm>

#include "berth/base/checked.h"
#include "plan/onnx/element_type.h"
#include "plan/onnx/slice_range.h"

namespace berth::internal::plan::onnx {

namespace {

class Offer {
 public:
  Offer(const Call& of, const std::vector<TensorType>& types, GraphNode& node) : call(of), outputs(types), node_(node) {}

  const Call& call;
  const std::vector<TensorType>& outputs;

  // Offers in-place reuse if shape and element width are equal.
  void in_place(std::uint32_t input) {
    if (there(0, input) && call.in(input).dims == outputs[0].dims && width(call.in(input)) == width(outputs[0]))
      node_.inplace.push_back({.output = 0, .input = input});
  }

  void identity() {
    if (there(0, 0) && call.in(0).elem == outputs[0].elem && call.in(0).bytes() == outputs[0].bytes())
      node_.inplace.push_back({.output = 0, .input = 0, .identity = true});
  }

  void range_of_input(std::uint32_t output, std::int64_t first_element) {
    if (!there(output, 0)) return;
    const auto offset = offset_in(call.in(0), outputs[output], first_element);
    if (offset) node_.views.push_back({.output = output, .input = 0, .offset_bytes = *offset});
  }

  void range_of_output(std::uint32_t input, std::int64_t first_element) {
    if (!there(0, input)) return;
    const auto offset = offset_in(outputs[0], call.in(input), first_element);
    if (offset) node_.views.push_back({.output = 0, .input = input, .offset_bytes = *offset, .of_input = false});
  }

 private:
  bool there(std::uint32_t output, std::uint32_t input) const {
    return output < node_.outputs.size() && node_.outputs[output] != kNoValue && outputs[output].bytes().has_value() && call.has(input) &&
           call.in(input).bytes().has_value();
  }

  // Bytes of an element; 0 for packed ones, of which a range may begin in the middle of a byte.
  static std::size_t width(const TensorType& type) { return element_type(type.elem)->bits / 8; }

  // Nothing when the part is not inside the whole, which a damaged model may claim, or does not begin at a
  // byte.
  static std::optional<std::size_t> offset_in(const TensorType& whole, const TensorType& part, std::int64_t first_element) {
    const auto offset = try_multiply(static_cast<std::size_t>(first_element), width(whole));
    if (whole.elem != part.elem || width(whole) == 0 || !offset || !fits(*offset, *part.bytes(), *whole.bytes())) return std::nullopt;
    return offset;
  }

  GraphNode& node_;
};

// Each output element depends on the input elements at the same index, and is written after they are read.
void unary(Offer& offer) { offer.in_place(0); }

void binary(Offer& offer) {
  offer.in_place(0);
  offer.in_place(1);
}

// The condition is not offered: its elements have the right width only by chance.
void choice(Offer& offer) {
  offer.in_place(1);
  offer.in_place(2);
}

// Runtimes accumulate the inputs one after another into the output: it may overwrite the first, not a later
// one.
void first_of_many(Offer& offer) { offer.in_place(0); }

// The output is the first input with some elements replaced.
void overwrite(Offer& offer) { offer.in_place(0); }

// The same bytes, perhaps in another shape.
void identity(Offer& offer) { offer.identity(); }

// With given statistics, each element is scaled independently. In training they are computed from the input
// first.
void batch_normalization(Offer& offer) {
  if (offer.call.integer("training_mode", 0) == 0 && offer.call.outputs() == 1) offer.in_place(0);
}

// An identity except in training mode, which an input may select since opset 12, and which is unknown before 7.
void dropout(Offer& offer) {
  const auto* const training = offer.call.known_ints(2);
  const bool never = !offer.call.has(2) || (training != nullptr && training->size() == 1 && training->front() == 0);
  const bool told = offer.call.opset() >= 7 || offer.call.integer("is_test", 0) != 0;
  if (never && told) offer.identity();
}

bool all_one(const DimList& dims, std::size_t count) {
  return std::all_of(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(count), [](std::int64_t dim) { return dim == 1; });
}

// Where all axes before have size 1, the parts along an axis are contiguous.
void split(Offer& offer) {
  const TensorType& x = offer.call.in(0);
  const auto axis = axis_of(offer.call.integer("axis", 0), x.dims.size());
  if (!x.ranked || !axis || !all_one(x.dims, *axis)) return;
  std::int64_t first = 0;
  for (std::uint32_t i = 0; i < offer.outputs.size(); ++i) {
    const TensorType& part = offer.outputs[i];
    const std::int64_t count = part.ranked ? dim_product(part.dims, 0, part.dims.size()) : kUnknownDim;
    if (count == kUnknownDim) return;
    offer.range_of_input(i, first);
    first = dim_sum(first, count);
    if (first == kUnknownDim) return;
  }
}

void concat(Offer& offer) {
  const TensorType& y = offer.outputs[0];
  const auto axis = axis_of(offer.call.integer("axis", 1), y.dims.size());
  if (!y.complete() || !axis || !all_one(y.dims, *axis)) return;
  std::int64_t first = 0;
  for (std::uint32_t i = 0; i < offer.call.inputs(); ++i) {
    const TensorType& part = offer.call.in(i);
    if (!part.complete() || part.elem != y.elem) return;
    offer.range_of_output(i, first);
    first = dim_sum(first, dim_product(part.dims, 0, part.dims.size()));
    if (first == kUnknownDim) return;
  }
}

// A contiguous range: single elements along the first axes, an interval along one, and all of the axes behind
// it.
void slice(Offer& offer) {
  const TensorType& x = offer.call.in(0);
  const auto ranges = slice_ranges(offer.call);
  if (!ranges || !x.complete() || !offer.outputs[0].bytes()) return;
  std::size_t whole_from = x.dims.size();
  while (whole_from > 0 && (*ranges)[whole_from - 1].count == x.dims[whole_from - 1] && (*ranges)[whole_from - 1].step == 1) --whole_from;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < whole_from; ++i) {
    const AxisRange& range = (*ranges)[i];
    const bool stretch = i + 1 == whole_from && range.step == 1 && range.count > 0;
    if (range.count != 1 && !stretch) return;
    first = dim_sum(first, dim_product(range.start, dim_product(x.dims, i + 1, x.dims.size())));
  }
  if (first != kUnknownDim) offer.range_of_input(0, first);
}

// One known index selects one part of the whole.
void gather(Offer& offer) {
  const TensorType& x = offer.call.in(0);
  const auto axis = axis_of(offer.call.integer("axis", 0), x.dims.size());
  const auto* const index = offer.call.known_ints(1);
  if (!x.complete() || !axis || !all_one(x.dims, *axis) || index == nullptr || index->size() != 1) return;
  const std::int64_t at = index->front() < 0 ? index->front() + x.dims[*axis] : index->front();
  if (at < 0 || at >= x.dims[*axis]) return;
  const std::int64_t first = dim_product(at, dim_product(x.dims, *axis + 1, x.dims.size()));
  if (first != kUnknownDim) offer.range_of_input(0, first);
}

struct ReuseEntry {
  std::string_view op;
  void (*offer)(Offer& offer);
};

// Sorted by name. Not here, since an output element depends on many input elements: products, convolutions,
// pools, Softmax and the other norms.
constexpr ReuseEntry kReuse[] = {
    {"Abs", unary},
    {"Acos", unary},
    {"Acosh", unary},
    {"Add", binary},
    {"And", binary},
    {"Asin", unary},
    {"Asinh", unary},
    {"Atan", unary},
    {"Atanh", unary},
    {"BatchNormalization", batch_normalization},
    {"BitShift", binary},
    {"BitwiseAnd", binary},
    {"BitwiseNot", unary},
    {"BitwiseOr", binary},
    {"BitwiseXor", binary},
    {"Cast", unary},
    {"CastLike", unary},
    {"Ceil", unary},
    {"Celu", unary},
    {"Clip", unary},
    {"Concat", concat},
    {"Cos", unary},
    {"Cosh", unary},
    {"Div", binary},
    {"Dropout", dropout},
    {"Elu", unary},
    {"Equal", binary},
    {"Erf", unary},
    {"Exp", unary},
    {"Flatten", identity},
    {"Floor", unary},
    {"Gather", gather},
    {"Gelu", unary},
    {"Greater", binary},
    {"GreaterOrEqual", binary},
    {"HardSigmoid", unary},
    {"HardSwish", unary},
    {"Identity", identity},
    {"IsInf", unary},
    {"IsNaN", unary},
    {"LeakyRelu", unary},
    {"Less", binary},
    {"LessOrEqual", binary},
    {"Log", unary},
    {"Max", first_of_many},
    {"Mean", first_of_many},
    {"Min", first_of_many},
    {"Mish", unary},
    {"Mod", binary},
    {"Mul", binary},
    {"Neg", unary},
    {"Not", unary},
    {"Or", binary},
    {"PRelu", unary},
    {"Pow", binary},
    {"Reciprocal", unary},
    {"Relu", unary},
    {"Reshape", identity},
    {"Round", unary},
    {"Scatter", overwrite},
    {"ScatterElements", overwrite},
    {"ScatterND", overwrite},
    {"Selu", unary},
    {"Shrink", unary},
    {"Sigmoid", unary},
    {"Sign", unary},
    {"Sin", unary},
    {"Sinh", unary},
    {"Slice", slice},
    {"Softplus", unary},
    {"Softsign", unary},
    {"Split", split},
    {"Sqrt", unary},
    {"Squeeze", identity},
    {"Sub", binary},
    {"Sum", first_of_many},
    {"Swish", unary},
    {"Tan", unary},
    {"Tanh", unary},
    {"ThresholdedRelu", unary},
    {"Trilu", unary},
    {"Unsqueeze", identity},
    {"Where", choice},
    {"Xor", binary},
};

static_assert(std::ranges::is_sorted(kReuse, {}, &ReuseEntry::op), "the table is searched by halves");

struct IgnoredInput {
  std::string_view op;
  std::uint32_t input;
};

// Only the shape or the type of these inputs matters, and both are known at planning time.
constexpr IgnoredInput kIgnored[] = {
    {"CastLike", 1}, {"EyeLike", 0}, {"RandomNormalLike", 0}, {"RandomUniformLike", 0}, {"Shape", 0}, {"Size", 0},
};

}  // namespace

void add_reuse(const Call& call, const std::vector<TensorType>& outputs, GraphNode& node) {
  for (const IgnoredInput& ignored : kIgnored) {
    if (ignored.op == call.node().op && call.has(ignored.input)) node.ignored_inputs.push_back(ignored.input);
  }
  if (outputs.empty()) return;
  const auto* const found = std::ranges::lower_bound(kReuse, call.node().op, {}, &ReuseEntry::op);
  if (found == std::end(kReuse) || found->op != call.node().op) return;
  Offer offer(call, outputs, node);
  found->offer(offer);
}

}  // namespace berth::internal::plan::onnx
