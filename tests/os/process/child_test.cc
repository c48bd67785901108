// SPDX-License-Identifier: Apache-2.0
#include "os/process/child.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "os/inject.h"
#include "os/system.h"
#include "support/descriptors.h"

namespace berth::internal::os {
namespace {

using namespace std::chrono_literals;

constexpr auto kLong = 60s;  // longer than anything here takes

class OsChild : public ::testing::Test {
 protected:
  void TearDown() override { set_injector(nullptr); }

  static Result<Child> shell(const std::string& script, const std::vector<std::string>& variables = {}) {
    return Child::start({"sh", "-c", script}, variables);
  }
  static std::string why(const Status& status) { return status.ok() ? "" : status.failure().why; }
  static std::string why(const Result<std::string>& result) { return result.ok() ? "" : result.failure().why; }
};

TEST_F(OsChild, AnswersLineByLine) {
  Result<Child> child = shell("while read -r line; do echo \"got $line\"; done");
  ASSERT_TRUE(child.ok());
  for (const char* line : {"one", "", "two words"}) {
    ASSERT_TRUE(child->send_line(line).ok());
    const Result<std::string> answer = child->read_line(kLong);
    ASSERT_TRUE(answer.ok()) << answer.failure().why;
    EXPECT_EQ(*answer, std::string("got ") + line);
  }
}

TEST_F(OsChild, SeveralLinesThatArriveTogetherAreReadOneAtATime) {
  Result<Child> child = shell("printf 'a\\nbb\\n\\nccc'");
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(*child->read_line(kLong), "a");
  EXPECT_EQ(*child->read_line(kLong), "bb");
  EXPECT_EQ(*child->read_line(kLong), "");
  EXPECT_EQ(why(child->read_line(kLong)), "the program has ended") << "the last line has no end";
}

TEST_F(OsChild, InheritsTheEnvironmentWithWhatIsPutIn) {
  ASSERT_EQ(setenv("CHILD_TEST_OLD", "old", 1), 0);
  ASSERT_EQ(setenv("CHILD_TEST_KEPT", "kept", 1), 0);
  Result<Child> child = shell("echo $CHILD_TEST_OLD $CHILD_TEST_KEPT $CHILD_TEST_NEW; env | grep -c ^CHILD_TEST_",
                              {"CHILD_TEST_OLD=replaced", "CHILD_TEST_NEW=new"});
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(*child->read_line(kLong), "replaced kept new");
  EXPECT_EQ(*child->read_line(kLong), "3");
  unsetenv("CHILD_TEST_OLD");
  unsetenv("CHILD_TEST_KEPT");
}

TEST_F(OsChild, DoesNotInheritTheConversationsOfOthers) {
  const std::string list = "for n in 3 4 5 6 7 8 9 10 11 12 13 14 15; do [ -e /proc/$$/fd/$n ] && printf '%s ' $n; done; echo";
  const std::string alone = *shell(list)->read_line(kLong);
  const Result<Child> one = shell("read -r line");
  const Result<Child> two = shell("read -r line");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(*shell(list)->read_line(kLong), alone);
}

TEST_F(OsChild, WhatDoesNotAnswerIsGivenUpInTime) {
  Result<Child> child = shell("printf 'half a line'; sleep 1000");
  ASSERT_TRUE(child.ok());
  const Result<std::string> line = child->read_line(50ms);
  EXPECT_EQ(why(line), "the program does not answer");
  EXPECT_EQ(line.failure().os_error, ETIMEDOUT);
}

TEST_F(OsChild, WhatHasEndedIsSaidAndRaisesNoSignal) {
  Result<Child> child = shell("exit 3");
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(why(child->read_line(kLong)), "the program has ended");
  EXPECT_EQ(why(child->send_line("hello?")), "the program has ended");
}

TEST_F(OsChild, ALineWithoutAnEndIsRefused) {
  Result<Child> child = shell("while :; do printf 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'; done");
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(why(child->read_line(kLong)), "the program sends a line without an end");
}

TEST_F(OsChild, WhatDoesNotReadCannotBlock) {
  Result<Child> child = shell("sleep 1000");
  ASSERT_TRUE(child.ok());
  const std::string line(60'000, 'x');
  Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) status = child->send_line(line);
  EXPECT_EQ(why(status), "the program does not read what it is sent");
}

TEST_F(OsChild, IsKilledAndReapedWithWhatItStarted) {
  int process = -1;
  int grandchild = -1;
  {
    Result<Child> child = shell("sleep 1000 & echo $!; trap '' TERM HUP INT; wait; sleep 1000");
    ASSERT_TRUE(child.ok());
    process = child->process();
    grandchild = std::atoi(child->read_line(kLong)->c_str());
    ASSERT_GT(grandchild, 1);
    const Child moved = std::move(*child);
    EXPECT_EQ(moved.process(), process);
  }
  EXPECT_EQ(waitpid(process, nullptr, WNOHANG), -1) << "it is reaped";
  EXPECT_EQ(errno, ECHILD);
  EXPECT_EQ(kill(process, 0), -1);
  // The process that adopts the orphan reaps it soon after.
  const std::uint64_t give_up = steady_time_ns() + 60'000'000'000;
  const auto state = [&] {  // a letter; empty after the process was reaped
    const std::string stat = "/proc/" + std::to_string(grandchild) + "/stat";
    FILE* const file = std::fopen(stat.c_str(), "r");
    char letter = 0;
    if (file != nullptr && std::fscanf(file, "%*d %*s %c", &letter) != 1) letter = 0;
    if (file != nullptr) std::fclose(file);
    return letter;
  };
  while (state() != 0 && state() != 'Z' && steady_time_ns() < give_up) sched_yield();
  EXPECT_TRUE(state() == 0 || state() == 'Z') << state();
}

TEST_F(OsChild, SaysWhyItCannotBeStarted) {
  const Result<Child> child = Child::start({"/nowhere/at/all"});
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.failure().os_error, ENOENT);
  EXPECT_STREQ(child.failure().why, "the program cannot be started");
}

TEST_F(OsChild, EveryCallCanBeMadeToFailAndNothingLeaks) {
  const std::size_t before = berth::testing::open_descriptors();
  set_injector([](std::string_view call) noexcept { return call == "socketpair" ? EMFILE : 0; });
  EXPECT_EQ(shell("exit 0").failure().os_error, EMFILE);
  set_injector([](std::string_view call) noexcept { return call == "posix_spawn" ? EAGAIN : 0; });
  EXPECT_EQ(shell("exit 0").failure().os_error, EAGAIN);
  set_injector(nullptr);
  {
    Result<Child> child = shell("echo hello; read -r line");
    ASSERT_TRUE(child.ok());
    set_injector([](std::string_view call) noexcept { return call == "poll" ? ENOMEM : 0; });
    EXPECT_EQ(child->read_line(kLong).failure().os_error, ENOMEM);
    set_injector([](std::string_view call) noexcept { return call == "recv" ? EIO : 0; });
    EXPECT_EQ(child->read_line(kLong).failure().os_error, EIO);
    set_injector([](std::string_view call) noexcept { return call == "send" ? ENOBUFS : 0; });
    EXPECT_EQ(child->send_line("x").failure().os_error, ENOBUFS);
    set_injector(nullptr);
    EXPECT_EQ(*child->read_line(kLong), "hello") << "nothing was lost";
  }
  EXPECT_EQ(berth::testing::open_descriptors(), before);
}

}  // namespace
}  // namespace berth::internal::os
