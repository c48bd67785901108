// SPDX-License-Identifier: Apache-2.0
#include "berth/version.h"

#define BERTH_TEXT_OF(x) #x
#define BERTH_TEXT(x) BERTH_TEXT_OF(x)

namespace berth {

const char* version() noexcept {
  return BERTH_TEXT(BERTH_VERSION_MAJOR) "." BERTH_TEXT(BERTH_VERSION_MINOR) "." BERTH_TEXT(BERTH_VERSION_PATCH);
}

}  // namespace berth
