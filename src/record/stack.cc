// SPDX-License-Identifier: Apache-2.0
#include "berth/record/stack.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/text.h"
#include "os/process/stack.h"
#include "record/interner.h"

namespace berth {

using namespace internal;
using namespace internal::record;

namespace {

constexpr std::size_t kOwnFrames = 1;  // capture_stack's own
constexpr std::size_t kSlack = 8;      // at most this many of berth's frames are innermost

// The interned key: the frames that were asked for, and some more, because berth's own innermost frames are
// identified only when the stack is printed.
struct Frames {
  const void* frames[CallSite::kMostFrames + kSlack] = {};
  std::size_t depth = 0;
};

struct StackTraits {
  static std::size_t hash(const Frames& stack) noexcept {
    std::uint64_t sum = stack.depth;
    for (const void* const frame : stack.frames) sum = (sum ^ reinterpret_cast<std::uintptr_t>(frame)) * 0x9e3779b97f4a7c15ULL;
    return static_cast<std::size_t>(sum >> 32);
  }
  static bool equal(const Frames& a, const Frames& b) noexcept { return a.depth == b.depth && std::ranges::equal(a.frames, b.frames); }
};

using Stacks = Interner<Frames, StackTraits>;

// nullptr when the heap is exhausted. Never destroyed.
Stacks* stacks() noexcept { return made_once<Stacks>(); }

bool is_own(const void* frame) noexcept {
  const os::CodeName name = os::name_of_caller(frame);
  return name.module.starts_with("libberth.so") || name.function.starts_with("_ZN5berth") || name.function.starts_with("_ZNK5berth");
}

// The frames to print: without berth's own where these can be identified. A program that was linked without
// dynamic symbols shows a few of them.
std::span<const void* const> told(const Frames& stack) noexcept {
  const std::span<const void* const> all(stack.frames);
  const std::size_t count = static_cast<std::size_t>(std::ranges::find(all, nullptr) - all.begin());
  std::size_t own = 0;
  while (own < std::min(count, kSlack) && is_own(all[own])) ++own;
  return all.subspan(own, std::min(count - own, own == 0 ? count : stack.depth));
}

std::string name_of(const void* frame) {
  const os::CodeName name = os::name_of_caller(frame);
  if (name.module.empty()) return text::pointer(frame);
  const std::string place = text::join(text::printable(name.module), '+', text::pointer(reinterpret_cast<const void*>(name.offset)));
  return name.function.empty() ? place : text::join(place, " (", text::printable(name.function), ')');
}

}  // namespace

[[gnu::noinline]] StackId capture_stack(std::size_t depth) noexcept {
  Frames stack;
  stack.depth = std::min(depth, CallSite::kMostFrames);
  if (depth == 0 || os::capture_stack(std::span(stack.frames).first(stack.depth + kSlack), kOwnFrames) == 0) return {};
  Stacks* const table = stacks();
  return table == nullptr ? StackId{} : StackId{table->intern(stack)};
}

CallSite call_site_of(StackId id) noexcept {
  CallSite made;
  // an id comes from the table, so it exists
  const Frames* const stack = id.value == 0 ? nullptr : stacks()->key(id.value);
  if (stack == nullptr) return made;
  const std::span<const void* const> frames = told(*stack);
  std::ranges::copy(frames.first(std::min(frames.size(), CallSite::kMostFrames)), made.frames);
  return made;
}

std::string to_string(StackId id) {
  std::string out;
  const Frames* const stack = id.value == 0 ? nullptr : stacks()->key(id.value);
  if (stack == nullptr) return out;
  for (const void* const frame : told(*stack)) out += text::join(out.empty() ? "" : " < ", name_of(frame));
  return out;
}

}  // namespace berth
