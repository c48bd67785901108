// SPDX-License-Identifier: Apache-2.0
#include "berth/record/misuse.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "record/check_words.h"

namespace berth {

namespace {

std::atomic<MisuseHandler> g_handler{nullptr};
std::atomic<std::uint64_t> g_count{0};

// Text for one line of a terminal, without allocating: a program that frees twice may be in any state.
class Line {
 public:
  void add(std::string_view text) noexcept {
    for (const char c : text) put(c);
  }
  // Of a name from outside only what is plain is shown as it is.
  void add_name(std::string_view name) noexcept {
    for (const char c : name) put(c >= 0x20 && c < 0x7f ? c : '?');
  }
  template <class... Arguments>
  void add_number(const char* format, Arguments... arguments) noexcept {
    char digits[64];
    std::snprintf(digits, sizeof digits, format, arguments...);
    add(digits);
  }
  void print() noexcept {
    text_[size_] = '\n';
    std::fwrite(text_, 1, size_ + 1, stderr);
  }

 private:
  void put(char c) noexcept {
    if (size_ + 1 < sizeof text_) text_[size_++] = c;
  }

  char text_[1024];
  std::size_t size_ = 0;
};

void print(const Misuse& misuse) noexcept {
  Line line;
  line.add("berth: ");
  line.add(to_string(misuse.kind));
  line.add_number(" of %p", misuse.address);
  line.add_number(" (%zu bytes) at allocator ", misuse.bytes);
  line.add_name(misuse.allocator);
  if (misuse.kind == MisuseKind::unordered_streams) {
    line.add_number("; nothing orders stream %llu", static_cast<unsigned long long>(misuse.stream_id));
    line.add_number(" after stream %llu, which touched it", static_cast<unsigned long long>(misuse.other_stream_id));
  } else {
    line.add("; nothing was changed");
  }
  if (misuse.tag) {
    line.add("; tag ");
    line.add_name(misuse.tag.word());
  }
  line.print();
}

bool must_abort() noexcept {
  const char* const check = std::getenv("BERTH_CHECK");
  return check != nullptr && has_word(check, "abort");
}

}  // namespace

std::string_view to_string(MisuseKind kind) noexcept {
  constexpr std::string_view kNames[] = {"double_free", "foreign_free", "size_mismatch", "unordered_streams"};
  return kNames[static_cast<std::size_t>(kind)];
}

MisuseHandler set_misuse_handler(MisuseHandler handler) noexcept { return g_handler.exchange(handler, std::memory_order_acq_rel); }
std::uint64_t misuse_count() noexcept { return g_count.load(std::memory_order_relaxed); }

void report_misuse(const Misuse& misuse) noexcept {
  g_count.fetch_add(1, std::memory_order_relaxed);
  const MisuseHandler handler = g_handler.load(std::memory_order_acquire);
  handler != nullptr ? handler(misuse) : print(misuse);
  if (must_abort()) std::abort();
}

}  // namespace berth
