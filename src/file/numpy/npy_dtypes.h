// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "berth/base/dtype.h"

// Constants common to the reader and the writer of .npy files: the magic, and the names of dtypes.
namespace berth::internal::file {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

struct NpyDType {
  std::string_view descr;
  DType dtype;
};
inline constexpr std::array<NpyDType, 14> kNpyDTypes{{{"|b1", DType::boolean},
                                                      {"|u1", DType::u8},
                                                      {"<u2", DType::u16},
                                                      {"<u4", DType::u32},
                                                      {"<u8", DType::u64},
                                                      {"|i1", DType::i8},
                                                      {"<i2", DType::i16},
                                                      {"<i4", DType::i32},
                                                      {"<i8", DType::i64},
                                                      {"<f2", DType::f16},
                                                      {"<f4", DType::f32},
                                                      {"<f8", DType::f64},
                                                      {"<c8", DType::c64},
                                                      {"<c16", DType::c128}}};

}  // namespace berth::internal::file
