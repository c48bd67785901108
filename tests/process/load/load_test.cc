// SPDX-License-Identifier: Apache-2.0
// libberth.so in programs that load it with dlopen: plugins, and every Python.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "berth/observe/trace_reader.h"
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

TEST(Load, APythonProgramThatStartsOthersHasATraceOfEach) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("berth_load_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "program.py") << R"(import ctypes, subprocess, sys
plugin = ctypes.CDLL(")" BERTH_LOAD_PLUGIN R"(")
assert plugin.use_berth(1) == 0
if len(sys.argv) == 1:
    for child in range(2): subprocess.run([sys.executable, sys.argv[0], "child"], check=True)
    assert plugin.use_berth(2) == 0
)";
  const char* const python = std::getenv("BERTH_PYTHON");
  const Ran ran = run_command("BERTH_TRACE=" + (folder / "trace").string() + " " + (python != nullptr ? python : "python3") + " " +
                              (folder / "program.py").string());
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  std::vector<std::size_t> events;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().filename() == "program.py") continue;
    std::ostringstream bytes;
    bytes << std::ifstream(file.path(), std::ios::binary).rdbuf();
    const Trace trace = read_trace(bytes.str(), file.path().string());
    EXPECT_TRUE(trace.complete) << file.path();
    events.push_back(trace.events.size());
  }
  std::sort(events.begin(), events.end());
  ASSERT_EQ(events.size(), 3U);
  EXPECT_GT(events[0], 0U);
  EXPECT_GT(events[2], events[1]) << "the parent worked twice";
  std::filesystem::remove_all(folder);
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
