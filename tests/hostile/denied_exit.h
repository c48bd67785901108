// SPDX-License-Identifier: Apache-2.0
#pragma once

// How denied_helper ends: what it and the tests that start it agree on.
namespace berth::testing {

inline constexpr int kDone = 0;
inline constexpr int kWrong = 1;    // berth did something that it should not
inline constexpr int kRefused = 3;  // berth threw an error: it is printed as "refused CODE: what()"
inline constexpr int kNoHeap = 4;   // bad_alloc
inline constexpr int kOwn = 5;      // the system refused a call of the program itself

}  // namespace berth::testing
