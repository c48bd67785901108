// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/base/dtype.h"
#include "berth/export.h"

// The rules that convert an element of one dtype to another. Every copy of berth, on any device, follows them
// bit for bit.
//
// | from          | to            | rule                                                                                       |
// |---------------|---------------|--------------------------------------------------------------------------------------------|
// | any           | the same      | the bits are copied                                                                        |
// | integer, bool | integer       | modulo 2^bits, as in C++: 300 → u8 44, -1 → u16 65535                                      |
// | integer, bool | floating      | rounded once, to nearest, ties to even; too large becomes infinity (f8e4m3: NaN)           |
// | floating      | floating      | the same; a NaN stays a quiet NaN with its sign and the top bits of its payload            |
// | floating      | integer       | toward zero; what does not fit becomes the nearest value that does; NaN becomes 0          |
// | any           | bool          | true unless it is zero; a NaN is true                                                      |
// | real          | complex       | the imaginary part is 0                                                                    |
// | complex       | real          | the real part, by the rules above; for bool, true unless both parts are zero               |
//
// A stored bool counts as true when its byte is not 0. Subnormal values are kept.
namespace berth {

// Converts one element. Neither address needs to be aligned; source and target may be the same address.
BERTH_EXPORT void convert_element(const void* source, DType source_dtype, void* target, DType target_dtype) noexcept;

}  // namespace berth
