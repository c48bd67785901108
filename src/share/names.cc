// SPDX-License-Identifier: Apache-2.0
#include "share/names.h"

#include <cstdint>
#include <utility>

#include "base/text.h"
#include "os/file/named_files.h"
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
  if (const Status drawn = os::random_bytes(random, sizeof random); !drawn) throw_share_failure(drawn.failure(), "choosing a fresh name");
  return text::join("berth-", text::hex(random[0]).substr(2), "-", text::hex(random[1]).substr(2));
}

NamesFolder::NamesFolder() {
  if (const auto chosen = os::environment("BERTH_SHM_DIR")) {
    path_ = *chosen;
    was_given_ = true;
  } else {
    path_ = text::join("/dev/shm/berth-", os::user_id());
  }
}

Result<os::Descriptor> NamesFolder::open(bool make) const noexcept { return os::open_own_folder(path_.c_str(), make); }

void NamesFolder::remove_if_empty() const noexcept {
  if (!was_given_) os::remove_empty_folder(path_.c_str());
}

void throw_name_failure(const Failure& failure, const char* asked, std::string_view name, std::vector<Fact> facts, std::string help) {
  facts.insert(facts.begin(), {"name", text::printable(name)});
  const std::string whole = text::join(std::string_view(asked), ' ', text::quoted(name));
  const NamesFolder folder;
  const Result<os::Descriptor> opened = folder.open(false);
  if (opened || opened.failure().code != failure.code || failure.code != ErrorCode::untrusted)
    throw_share_failure(failure, whole, std::move(facts), std::move(help));
  facts.emplace_back("folder", text::printable(folder.path()));
  throw_share_failure(
      failure, whole, std::move(facts),
      text::join("name a folder of your own with BERTH_SHM_DIR, such as $XDG_RUNTIME_DIR/berth, for all programs that share, or "
                 "have ",
                 text::printable(folder.path()), " removed"));
}

}  // namespace berth::internal::share
