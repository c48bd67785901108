// SPDX-License-Identifier: Apache-2.0
#include "device/kinds.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "berth/base/error.h"
#include "device/builtin.h"

namespace berth::internal::device {

namespace {

constexpr std::size_t kMostKinds = 256;

struct Table {
  os::Mutex mutex;
  std::array<std::atomic<Kind*>, kMostKinds> kinds{};
  std::atomic<std::uint16_t> count{0};

  int find(std::string_view name) const noexcept {
    const std::uint16_t known = count.load(std::memory_order_acquire);
    for (std::uint16_t i = 0; i < known; ++i) {
      if (kinds[i].load(std::memory_order_relaxed)->name == name) return i;
    }
    return -1;
  }

  // Returns the new number; -1 when the name is taken, -2 when the table is full. `kind` is consumed on success
  // only.
  int add(std::unique_ptr<Kind>& kind) {
    const os::Lock lock(mutex);
    if (find(kind->name) >= 0) return -1;
    const std::uint16_t number = count.load(std::memory_order_relaxed);
    if (number == kMostKinds) return -2;
    kinds[number].store(kind.release(), std::memory_order_relaxed);
    // release: a thread that sees the new count sees the kind.
    count.store(static_cast<std::uint16_t>(number + 1), std::memory_order_release);
    return number;
  }
};

std::unique_ptr<Kind> make_kind(std::string_view name, std::unique_ptr<BackendFactory> factory) {
  auto kind = std::make_unique<Kind>();
  kind->name = name;
  kind->factory = std::move(factory);
  return kind;
}

// Never destroyed. "cpu" must be number 0: a default-constructed Device names it without a lookup.
Table& table() {
  static Table* const made = [] {
    auto* const built_in = new Table;
    auto add = [&](std::string_view name, std::unique_ptr<BackendFactory> factory) {
      std::unique_ptr<Kind> kind = make_kind(name, std::move(factory));
      built_in->add(kind);
    };
    add("cpu", make_cpu_factory());
    add("pinned", make_pinned_factory());
    add("sim", make_sim_factory());
    add("cuda", make_cuda_factory());
    add("shared", make_shared_factory());
    return built_in;
  }();
  return *made;
}

// Made when the library is loaded, so that no later use can fail for lack of heap, or fork during the
// initialization.
[[maybe_unused]] const Table& g_kind_table_at_load = table();

bool is_well_formed(std::string_view name) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_allowed = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= 32 && is_letter(name.front()) && std::ranges::all_of(name, is_allowed);
}

[[noreturn]] void throw_refused(std::string_view name, std::string why, std::string help) {
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join("registering the device kind ", text::quoted(name)), std::move(why), std::move(help)},
                      {{"kind", text::printable(name)}});
}

}  // namespace

std::uint16_t add_kind(std::string_view name, std::unique_ptr<BackendFactory> factory) {
  if (!is_well_formed(name))
    throw_refused(name, "the name is not well formed", "use up to 32 lower-case letters, digits and '_', a letter first");
  if (factory == nullptr) throw_refused(name, "there is no factory", "pass a BackendFactory");
  std::unique_ptr<Kind> kind = make_kind(name, std::move(factory));
  const int number = table().add(kind);
  if (number == -1) throw_refused(name, "the name is taken", text::join("choose a name other than ", known_kinds()));
  if (number < 0) throw_refused(name, text::join("there are ", kMostKinds, " kinds already"), "register each kind once");
  return static_cast<std::uint16_t>(number);
}

Kind* kind_at(std::uint16_t number) noexcept {
  Table& all = table();
  return number < all.count.load(std::memory_order_acquire) ? all.kinds[number].load(std::memory_order_relaxed) : nullptr;
}

Kind* find_kind(std::string_view name) {
  const int number = table().find(name);
  return number < 0 ? nullptr : kind_at(static_cast<std::uint16_t>(number));
}

std::uint16_t kind_number(std::string_view name) { return static_cast<std::uint16_t>(table().find(name)); }
std::uint16_t kind_count() noexcept { return table().count.load(std::memory_order_acquire); }

std::string known_kinds() {
  std::vector<std::string> names;
  for (std::uint16_t i = 0; i < kind_count(); ++i) names.push_back(kind_at(i)->name);
  std::ranges::sort(names);
  std::string out;
  for (const std::string& name : names) out += text::join(out.empty() ? "" : ", ", name);
  return out;
}

}  // namespace berth::internal::device
