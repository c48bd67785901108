// SPDX-License-Identifier: Apache-2.0
#include "berth/record/misuse.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "os/process/stack.h"
#include "os/system.h"
#include "record/check_words.h"

namespace berth {

using namespace internal;
using namespace internal::record;

namespace {

std::atomic<MisuseHandler> g_handler{nullptr};
std::atomic<std::uint64_t> g_count{0};

// Builds the report text without allocating: a program that frees twice may be in any state.
class Report {
 public:
  void add(std::string_view text) noexcept {
    for (const char c : text) put(c);
  }
  // An untrusted name: only printable ASCII is shown as it is.
  void add_name(std::string_view name) noexcept {
    for (const char c : name) put(c >= 0x20 && c < 0x7f ? c : '?');
  }
  template <class... Arguments>
  void add_number(const char* format, Arguments... arguments) noexcept {
    char digits[64];
    std::snprintf(digits, sizeof digits, format, arguments...);
    add(digits);
  }
  void end_line() noexcept { put('\n'); }
  // In one write, so that reports of several threads do not interleave.
  void print() noexcept {
    text_[size_] = '\n';
    std::fwrite(text_, 1, size_ + 1, stderr);
  }

 private:
  void put(char c) noexcept {
    if (size_ + 1 < sizeof text_) text_[size_++] = c;
  }

  char text_[4096];
  std::size_t size_ = 0;
};

void add_site(Report& report, const Site& site) noexcept {
  const std::string_view path = site.file;
  const std::size_t slash = path.find_last_of('/');
  report.add_name(slash == std::string_view::npos ? path : path.substr(slash + 1));
  report.add_number(":%u", site.line);
  if (site.function == nullptr) return;
  report.add(" (");
  report.add_name(site.function);
  report.add(")");
}

void add_frame(Report& report, const void* frame) noexcept {
  const os::CodeName name = os::name_of_caller(frame);
  if (name.module.empty()) return report.add_number("%p", frame);
  report.add_name(name.module);
  report.add_number("+0x%zx", static_cast<std::size_t>(name.offset));
  if (name.function.empty()) return;
  report.add(" (");
  report.add_name(name.function);
  report.add(")");
}

// A separate line: "berth:   allocated at decoder.cc:118 (grow) < a.out+0x4c1d (main)".
void add_call(Report& report, std::string_view what, const CallSite& call) noexcept {
  if (!call) return;
  report.end_line();
  report.add("berth:   ");
  report.add(what);
  report.add(" at ");
  if (call.site.file != nullptr) add_site(report, call.site);
  bool first = call.site.file == nullptr;
  for (const void* const frame : call.frames) {
    if (frame == nullptr) break;
    if (!first) report.add(" < ");
    add_frame(report, frame);
    first = false;
  }
}

void print(const Misuse& misuse) noexcept {
  const bool late = misuse.kind == MisuseKind::overflow || misuse.kind == MisuseKind::use_after_free;
  Report report;
  report.add("berth: ");
  report.add(to_string(misuse.kind));
  report.add_number(" of %p", misuse.address);
  report.add_number(" (%zu bytes) at allocator ", misuse.bytes);
  report.add_name(misuse.allocator);
  if (misuse.kind == MisuseKind::unordered_streams) {
    report.add_number("; nothing orders stream %llu", static_cast<unsigned long long>(misuse.stream_id));
    report.add_number(" after stream %llu, which touched it", static_cast<unsigned long long>(misuse.other_stream_id));
  } else if (late) {
    report.add_number("; byte %zu was written", misuse.offset);
  } else {
    report.add("; nothing was changed");
  }
  if (misuse.tag) {
    report.add("; tag ");
    report.add_name(misuse.tag.word());
  }
  add_call(report, "allocated", misuse.allocated);
  add_call(report, misuse.kind == MisuseKind::double_free ? "first freed" : "freed", misuse.freed);
  add_call(report, "called", misuse.here);
  report.print();
}

bool must_abort() noexcept {
  const char* const check = os::environment_text("BERTH_CHECK");
  return check != nullptr && has_word(check, "abort");
}

}  // namespace

std::string_view to_string(MisuseKind kind) noexcept {
  constexpr std::string_view kNames[] = {"double_free", "foreign_free",   "size_mismatch", "unordered_streams",
                                         "overflow",    "use_after_free", "reentrancy"};
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
