// SPDX-License-Identifier: Apache-2.0
#include "cli/bindings.h"

#include <charconv>

#include "base/refuse.h"
#include "base/text.h"
#include "berth/base/error.h"

namespace berth::internal::cli {

Bindings parse_bindings(const std::vector<std::string>& texts) {
  Bindings bindings;
  for (const std::string& one : texts) {
    const std::size_t equals = one.rfind('=');
    std::int64_t size = 0;
    const char* const begin = one.data() + (equals == std::string::npos ? 0 : equals + 1);
    const char* const end = one.data() + one.size();
    const auto [stop, error] = std::from_chars(begin, end, size);
    if (equals == std::string::npos || equals == 0 || error != std::errc() || stop != end || size < 0)
      base::refuse(text::join("--bind ", text::quoted(one)), "it does not say which dimension has which size", "write batch=8,seq=128");
    const auto [at, added] = bindings.try_emplace(one.substr(0, equals), size);
    if (!added && at->second != size)
      throw ArgumentError(ErrorCode::binding_conflict, {text::join("--bind ", text::quoted(one)),
                                                        text::join("it was bound to ", at->second, " before"), "bind each dimension once"});
  }
  return bindings;
}

}  // namespace berth::internal::cli
