// SPDX-License-Identifier: Apache-2.0
// The bug: a child forked while another thread's request was inside a limit waited for ever for that request to
// settle, since that thread does not exist in the child.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "memory/adaptor.h"
#include "support/everything.h"

namespace berth::testing {

using namespace internal::memory;
namespace {

class HeldUp : public Adaptor<Allocator> {
 public:
  HeldUp() : Adaptor("held_up", direct("cpu")) {}
  Status obtain(const Request& request, Block& block) noexcept override {
    if (request.tag == Tag("slow")) {
      entered.set_value();
      go_on.get_future().wait();
    }
    return upstream_->obtain(request, block);
  }
  std::promise<void> entered;
  std::promise<void> go_on;
};

TEST(Regress, AChildForkedDuringAnotherThreadsRequestIsServed) {
  const auto held_up = std::make_shared<HeldUp>();
  const auto limited = limit(held_up, 100);
  std::thread slow([&] { limited->deallocate(limited->allocate({.bytes = 80, .tag = "slow"})); });
  held_up->entered.get_future().wait();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    _exit(limited->try_allocate({.bytes = 60}).has_value() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child hung or was refused";
  held_up->go_on.set_value();
  slow.join();
}

}  // namespace
}  // namespace berth::testing
