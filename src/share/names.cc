// SPDX-License-Identifier: Apache-2.0
#include "share/names.h"

#include <cstdint>

#include "base/text.h"
#include "os/file/shared_file.h"
#include "os/system.h"
#include "share/errors.h"

namespace berth::internal::share {

bool is_name(std::string_view name) noexcept {
  constexpr std::size_t kLongest = 200;
  if (name.empty() || name.size() > kLongest || name.front() == '.') return false;
  while (!name.empty()) {
    const std::size_t length = text::utf8_length(name);
    const auto first = static_cast<unsigned char>(name.front());
    if (length == 0 || first < 0x20 || first == 0x7f || first == '/') return false;
    name.remove_prefix(length);
  }
  return true;
}

void require_name(std::string_view name, const char* asked) {
  if (is_name(name)) return;
  throw_share_failure({ErrorCode::invalid_name, 0, "the name is not valid"}, text::join(std::string_view(asked), ' ', text::quoted(name)),
                      {{"name", text::printable(name)}});
}

std::string fresh_name() {
  std::uint64_t random[2];
  os::random_bytes(random, sizeof random);
  return text::join("berth-", text::hex(random[0]).substr(2), "-", text::hex(random[1]).substr(2));
}

std::string socket_name(std::string_view name) {
  // Socket names have at most 107 bytes: a long name is cut, and a hash of it appended.
  std::string out = text::join("berth/", os::user_id(), '/', name);
  if (out.size() <= 100) return out;
  std::uint64_t sum = 14695981039346656037ULL;
  for (const char c : name) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  out.resize(80);
  return text::join(out, '#', text::hex(sum));
}

std::string names_folder() {
  if (const auto chosen = os::environment("BERTH_SHM_DIR")) return *chosen;
  return text::join("/dev/shm/berth-", os::user_id());
}

}  // namespace berth::internal::share
