// SPDX-License-Identifier: Apache-2.0
// Which calls of the device the steps of a plan become, and what is known after one has failed.
#include "memory/space/page_run.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "support/everything.h"
#include "support/hooked_backend.h"

namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

using Kind = FillStep::Kind;

constexpr std::size_t kUnit = 4096;

// Addresses, of which nothing is read or written.
std::array<std::byte, 40 * kUnit> g_range;

// Writes down its calls, in units from the start of the range, and fails one of them.
class WrittenCalls final : public HookedBackend {
 public:
  explicit WrittenCalls(int failing = -1) : HookedBackend(Device("cpu")), failing_(failing), properties_(HookedBackend::properties()) {
    properties_.abilities.move = true;
  }

  const BackendProperties& properties() const noexcept override { return properties_; }
  Status commit(void* address, std::size_t bytes) noexcept override { return note("commit", address, bytes); }
  Status decommit(void* address, std::size_t bytes) noexcept override { return note("decommit", address, bytes); }
  Status move(void* from, void*, std::size_t bytes) noexcept override { return note("move", from, bytes); }

  const std::vector<std::string>& calls() const { return calls_; }

 private:
  Status note(const char* name, void* address, std::size_t bytes) {
    const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(address) - g_range.data());
    calls_.push_back(std::string(name) + ' ' + std::to_string(offset / kUnit) + '+' + std::to_string(bytes / kUnit));
    if (static_cast<int>(calls_.size()) - 1 != failing_) return {};
    return Failure{ErrorCode::out_of_memory, 0, "the test's failure"};
  }

  int failing_;
  BackendProperties properties_;
  std::vector<std::string> calls_;
};

PageSpan units(std::size_t begin, std::size_t end) { return {begin * kUnit, end * kUnit}; }

// Three exchanges with targets in a row, one apart, and a move.
std::vector<FillStep> sample() {
  return {{.kind = Kind::exchange, .source = units(1, 2), .target = units(20, 21)},
          {.kind = Kind::exchange, .source = units(4, 6), .target = units(21, 23)},
          {.kind = Kind::exchange, .source = units(8, 9), .target = units(23, 24)},
          {.kind = Kind::exchange, .source = units(10, 11), .target = units(30, 31)},
          {.kind = Kind::move, .source = units(12, 14), .target = units(31, 33)}};
}

RunResult run(WrittenCalls& device, const std::vector<FillStep>& steps) { return run_steps(device, g_range.data(), steps, {}); }

TEST(PageRun, CommitsTheTargetsOfExchangesAtOnce) {
  WrittenCalls device;
  const RunResult result = run(device, sample());
  EXPECT_EQ(device.calls(), (std::vector<std::string>{"decommit 1+1", "decommit 4+2", "decommit 8+1", "commit 20+4", "decommit 10+1",
                                                      "commit 30+1", "move 12+2"}));
  EXPECT_TRUE(result.status);
  EXPECT_EQ(result.done, 5U);
  EXPECT_EQ(result.lost, 0U);
}

// What each call leaves behind when it fails: exchanges that are done, and those whose source is gone.
TEST(PageRun, KnowsWhatAFailureLeaves) {
  struct Left {
    std::size_t done;
    std::size_t lost;
    std::size_t calls;
  };
  const std::vector<Left> expected = {{0, 0, 1}, {1, 0, 3}, {2, 0, 4}, {0, 3, 4}, {3, 0, 5}, {3, 1, 6}};
  for (std::size_t failing = 0; failing < expected.size(); ++failing) {
    WrittenCalls device(static_cast<int>(failing));
    const RunResult result = run(device, sample());
    EXPECT_FALSE(result.status) << failing;
    EXPECT_EQ(result.done, expected[failing].done) << failing;
    EXPECT_EQ(result.lost, expected[failing].lost) << failing;
    EXPECT_EQ(device.calls().size(), expected[failing].calls) << "nothing more is begun, but what was decommitted is used";
  }
}

TEST(PageRun, PagesThatDoNotMoveAreDecommittedAndCommitted) {
  WrittenCalls device(6);
  const RunResult result = run(device, sample());
  EXPECT_EQ(std::vector(device.calls().end() - 3, device.calls().end()),
            (std::vector<std::string>{"move 12+2", "decommit 12+2", "commit 31+2"}));
  EXPECT_TRUE(result.status);
  EXPECT_EQ(result.done, 5U);
}

}  // namespace
}  // namespace berth::testing
