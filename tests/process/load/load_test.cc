// SPDX-License-Identifier: Apache-2.0
// libberth.so in programs that load it with dlopen: plugins, and every Python.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "support/process.h"

namespace berth::testing {
namespace {

constexpr const char* kLoaded = "loaded, used, closed, and once more\n";

TEST(Load, ByDlopenFromCOnSeveralThreadsAndOnceMore) {
  const Ran ran = run_command(BERTH_LOAD_PROGRAM " " BERTH_LIBRARY " " BERTH_LOAD_PLUGIN);
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.output, kLoaded);
}

TEST(Load, AfterOthersTookStaticTls) {
  const Ran ran = run_command(BERTH_LOAD_PROGRAM " " BERTH_TLS_TAKER " " BERTH_LIBRARY " " BERTH_LOAD_PLUGIN);
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.output, kLoaded);
}

TEST(Load, ByPythonOnSeveralThreadsAndOnceMore) {
  const char* const python = std::getenv("BERTH_PYTHON");
  const Ran ran = run_command(std::string(python != nullptr ? python : "python3") + R"( -c '
import ctypes, _ctypes, threading
for round in range(2):
    berth, plugin = ctypes.CDLL(")" BERTH_LIBRARY R"("), ctypes.CDLL(")" BERTH_LOAD_PLUGIN R"(")
    answers = []
    threads = [threading.Thread(target=lambda i=i: answers.append(plugin.use_berth(i))) for i in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert answers == [0] * 4, answers
    for library in (plugin, berth): _ctypes.dlclose(library._handle)
print("loaded, used, closed, and once more")
')");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.output, kLoaded);
}

// glibc keeps 512 bytes for all libraries that are loaded later, beyond what it was told at the start.
TEST(Load, TakesAtMost512BytesOfStaticTls) {
  for (const char* const library : {BERTH_LIBRARY, BERTH_PLAN_LIBRARY}) {
    std::istringstream segments(run_command("readelf -lW " + std::string(library)).output);
    for (std::string line; std::getline(segments, line);) {
      std::istringstream words(line);
      std::string kind, offset, address, physical, file_bytes, bytes, access, alignment;
      words >> kind >> offset >> address >> physical >> file_bytes >> bytes >> access >> alignment;
      if (kind != "TLS") continue;
      EXPECT_LE(std::stoul(bytes, nullptr, 16), 512U) << library;
      EXPECT_LE(std::stoul(alignment, nullptr, 16), 64U) << library;
    }
  }
}

}  // namespace
}  // namespace berth::testing
