// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "berth/export.h"

// A compact encoding of numbers for the script of a report: varints (LEB128) in base64. Small numbers take one
// byte before base64, where JSON takes one for each digit and a comma. `unpack` in assets/view.js decodes them.
// One thread at a time.
//
//     number   | 1 seven bits | 1 seven bits | … | 0 seven bits |     the lowest bits first; the first bit of a byte says that more follow
namespace berth::internal::html {

class BERTH_EXPORT Packed {
 public:
  void add(std::uint64_t number);

  // Zigzag encoding, for numbers near 0 of either sign: 0, -1, 1, -2 are added as 0, 1, 2, 3. Pass the
  // difference of two 64-bit numbers modulo 2^64.
  void add_signed(std::uint64_t number) { add((number << 1) ^ (0 - (number >> 63))); }

  // As base64; empty afterwards.
  std::string take();

 private:
  std::string bytes_;
};

}  // namespace berth::internal::html
