// SPDX-License-Identifier: Apache-2.0
#include "os/process/thread_exit.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace berth::internal::os {
namespace {

std::string g_order;

struct Local {
  bool made = false;
  ~Local() {
    if (made) g_order += "thread_local, ";
  }
};
thread_local Local t_local;

char g_name[] = "hook";

void leave(void* name) noexcept { g_order += static_cast<const char*>(name); }

ThreadExit& hook() {
  static auto* const made = new ThreadExit(leave);
  return *made;
}

TEST(ThreadExit, RunsAfterThreadLocalObjects) {
  g_order.clear();
  std::thread([] {
    hook().arm(g_name);
    t_local.made = true;
  }).join();
  EXPECT_EQ(g_order, "thread_local, hook");
}

TEST(ThreadExit, RunsOnlyInThreadsThatArmedIt) {
  g_order.clear();
  std::thread([] {}).join();
  EXPECT_EQ(g_order, "");
}

}  // namespace
}  // namespace berth::internal::os
