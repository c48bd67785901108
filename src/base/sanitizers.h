// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/namespace.h"

// Which sanitizers this build has: gcc defines a macro for each, clang reports a feature.
namespace berth::internal::base {

#if defined(__has_feature)
#define BERTH_HAS_FEATURE(name) __has_feature(name)
#else
#define BERTH_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || BERTH_HAS_FEATURE(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || BERTH_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#undef BERTH_HAS_FEATURE

}  // namespace berth::internal::base
