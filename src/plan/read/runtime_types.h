// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "berth/base/dtype.h"

// The types of elements in files of graph runtimes, which give each element whole bytes.
namespace berth::internal::plan::read {

struct RuntimeType {
  std::size_t bytes;
  std::optional<DType> dtype;  // where berth has it too
};

// TVM's names: "float32", "int4", "float8_e4m3fn", "float32x4" for four lanes, "bool", "handle". Nothing for what is none.
std::optional<RuntimeType> type_named(std::string_view name);

// MXNet's numbers. Nothing for -1, which is a type that is not known, and for others than MXNet's.
std::optional<RuntimeType> type_numbered(std::int64_t number);

}  // namespace berth::internal::plan::read
