// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>

#include "berth/base/error.h"
#include "berth/base/units.h"
#include "berth/memory/default_allocator.h"
#include "berth/memory/process_limit.h"
#include "device/cpu/cpu_backend.h"
#include "fuzz/target.h"
#include "fuzz/words.h"

// Words of the environment that choose how memory is taken: what is accepted makes an allocator that works.
namespace berth::testing::fuzz {
namespace {

void make(std::string_view text) {
  constexpr std::size_t kSmall = 100;
  set_process_limit("cpu", 1_GiB);  // a granularity is what each block takes
  const std::shared_ptr<Allocator> made = make_allocator(text, "cpu");
  const Block block = made->allocate({.bytes = kSmall});
  static_cast<volatile char*>(block.data)[kSmall - 1] = 1;
  made->deallocate(block);
}

void run(std::string_view bytes) {
  Draw draw(bytes);
  const std::uint8_t kind = draw.below(4);
  const std::string word(draw.rest());
  if (kind == 0) return make(word);
  const char* const variable = kind == 1 ? "BERTH_CPU_HUGE_PAGES" : kind == 2 ? "BERTH_CPU_MAPPINGS" : "BERTH_CPU_NODE";
  setenv(variable, word.c_str(), 1);
  struct Unset {
    const char* variable;
    ~Unset() { unsetenv(variable); }
  } unset{variable};
  const internal::device::CpuOptions options = internal::device::cpu_options_from_environment();
  require(!options.mappings || *options.mappings > 0, "a process may have mappings");
}

const Registered environment(
    {.name = "environment",
     .run = run,
     .words = text_words({"pool",   "direct",  "arena",        "rounded", "exact", ":",   "limit=", "decay=", "ratio=", "small=", "waits=",
                          "least=", "cutoff=", "granularity=", "1.05",    "nan",   "inf", "GiB",    "64MiB",  "never",  "5s",     "="})});

}  // namespace
}  // namespace berth::testing::fuzz
