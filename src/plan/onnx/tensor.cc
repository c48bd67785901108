// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/tensor.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "plan/onnx/element_type.h"

namespace berth::internal::plan::onnx {

namespace {

std::string asked(const ModelTensor& tensor, std::string_view model) {
  return text::join("the tensor ", text::quoted(tensor.name), " in ", text::printable(model));
}

[[noreturn]] void refuse(ErrorCode code, const ModelTensor& tensor, std::string_view model, std::string why) {
  throw FormatError(code, {asked(tensor, model), std::move(why), "the model is damaged: write it again with the tool it came from"},
                    {{"value", text::printable(tensor.name)}});
}

std::string shape_text(const std::vector<std::int64_t>& dims) {
  std::string out = "[";
  for (const std::int64_t dim : dims) out += text::join(out.size() > 1 ? ", " : "", dim);
  return out + "]";
}

std::size_t count_elements(const ModelTensor& tensor, const std::vector<std::int64_t>& dims, std::string_view model) {
  const auto count = count_of(dims);
  if (!count || *count > kMaxBytes)
    refuse(ErrorCode::size_overflow, tensor, model, text::join("its shape ", shape_text(dims), " has more elements than 64 bits count"));
  return *count;
}

std::uint64_t in_field(const ModelTensor& tensor, TypedField field) {
  switch (field) {
    case TypedField::floats: return tensor.float_count;
    case TypedField::int32s: return tensor.int32_count;
    case TypedField::int64s: return tensor.int64_count;
    case TypedField::uint64s: return tensor.uint64_count;
    case TypedField::doubles: return tensor.double_count;
    case TypedField::strings: return tensor.string_count;
    case TypedField::none: break;
  }
  return 0;
}

std::uint64_t in_all_fields(const ModelTensor& tensor) {
  return tensor.float_count + tensor.int32_count + tensor.int64_count + tensor.uint64_count + tensor.double_count + tensor.string_count;
}

// The number of field entries that the elements take: two for a complex number, and one for each byte of packed
// ones.
std::optional<std::uint64_t> entries(const ElementType& type, std::size_t count) {
  if (type.complex) return try_multiply(count, std::size_t{2});
  return type.bits != 0 && type.bits < 8 ? bytes_of(type.number, count) : count;
}

void check_raw(const ModelTensor& tensor, std::optional<std::size_t> bytes, std::string_view model) {
  if (in_all_fields(tensor) != 0) refuse(ErrorCode::size_mismatch, tensor, model, "its data are given both raw and in a typed field");
  if (bytes && tensor.raw.size() != *bytes)
    refuse(ErrorCode::size_mismatch, tensor, model,
           text::join("it has ", tensor.raw.size(), " bytes of data, and its shape ", shape_text(tensor.dims), " asks for ", *bytes));
}

void check_typed(const ModelTensor& tensor, const ElementType& type, std::size_t count, std::string_view model) {
  const std::uint64_t there = in_field(tensor, type.field);
  if (there != in_all_fields(tensor)) refuse(ErrorCode::size_mismatch, tensor, model, "its data are in a field for other types");
  if (there != entries(type, count))
    refuse(
        ErrorCode::size_mismatch, tensor, model,
        text::join("it has ", there, " data, and its shape ", shape_text(tensor.dims), " asks for ", entries(type, count).value_or(count)));
}

template <class T>
void take(std::string_view raw, auto& out) {
  for (std::size_t at = 0; at + sizeof(T) <= raw.size(); at += sizeof(T)) {
    std::array<char, sizeof(T)> bytes;  // raw data may be unaligned
    std::copy_n(raw.begin() + static_cast<std::ptrdiff_t>(at), sizeof(T), bytes.begin());
    out.push_back(static_cast<typename std::remove_reference_t<decltype(out)>::value_type>(std::bit_cast<T>(bytes)));
  }
}

std::optional<Contents> take_raw(std::int64_t elem, std::string_view raw) {
  Contents contents;
  switch (elem) {
    case kFloat: take<float>(raw, contents.floats); return contents;
    case kBool:
    case kUint8: take<std::uint8_t>(raw, contents.ints); return contents;
    case kInt8: take<std::int8_t>(raw, contents.ints); return contents;
    case kUint16: take<std::uint16_t>(raw, contents.ints); return contents;
    case kInt16: take<std::int16_t>(raw, contents.ints); return contents;
    case kInt32: take<std::int32_t>(raw, contents.ints); return contents;
    case kUint32: take<std::uint32_t>(raw, contents.ints); return contents;
    case kInt64: take<std::int64_t>(raw, contents.ints); return contents;
    default: return std::nullopt;
  }
}

bool holds_integers(std::int64_t elem) {
  constexpr std::array kIntegers = {kBool, kUint8, kInt8, kUint16, kInt16, kInt32, kUint32, kInt64};
  return std::ranges::find(kIntegers, elem) != kIntegers.end();
}

}  // namespace

void check_tensor(const ModelTensor& tensor, ExternalData& external, std::string_view model) {
  const std::size_t count = count_elements(tensor, tensor.dims, model);
  const ElementType* const type = element_type(tensor.elem);
  const auto bytes = bytes_of(tensor.elem, count);
  if (type != nullptr && type->bits != 0 && !bytes)
    refuse(ErrorCode::size_overflow, tensor, model,
           text::join("its shape ", shape_text(tensor.dims), " has more bytes than 64 bits count"));
  if (tensor.external) {
    if (tensor.has_raw || in_all_fields(tensor) != 0)
      refuse(ErrorCode::size_mismatch, tensor, model, "its data are given both in the model and in another file");
    external.check(tensor, bytes);
  } else if (tensor.has_raw) {
    check_raw(tensor, bytes, model);
  } else if (type != nullptr) {
    check_typed(tensor, *type, count, model);
  }
}

void check_sparse(const SparseModelTensor& sparse, ExternalData& external, std::string_view model) {
  check_tensor(sparse.values, external, model);
  check_tensor(sparse.indices, external, model);
  const std::size_t dense = count_elements(sparse.values, sparse.dims, model);
  const std::size_t values = count_elements(sparse.values, sparse.values.dims, model);
  const auto& indices = sparse.indices.dims;
  const bool linear = indices.size() == 1;
  const bool coordinates = indices.size() == 2 && indices[1] == static_cast<std::int64_t>(sparse.dims.size());
  if (values > dense || !(linear || coordinates) || indices[0] != static_cast<std::int64_t>(values))
    refuse(ErrorCode::size_mismatch, sparse.values, model,
           text::join("it has ", values, " values for ", dense, " elements, and indices of shape ", shape_text(indices)));
}

std::optional<Contents> read_contents(const ModelTensor& tensor) {
  const auto count = count_of(tensor.dims);
  if (!count || *count > kMostContents || tensor.external) return std::nullopt;
  if (tensor.has_raw) return take_raw(tensor.elem, tensor.raw);
  if (tensor.elem == kFloat) return Contents{.ints = {}, .floats = tensor.floats};
  if (holds_integers(tensor.elem)) return Contents{.ints = tensor.ints, .floats = {}};
  return std::nullopt;
}

}  // namespace berth::internal::plan::onnx
