// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "os/inject.h"
#include "share/share_support.h"
#include "support/everything.h"
#include "support/failing_calls.h"
#include "support/heap_faults.h"
#include "support/scale.h"

// Every system call of sharing fails in turn, with every error that full tables and exhausted memory produce.
// The result is a typed error, or the call is retried; nothing leaks either way.
namespace berth::testing {
namespace {

class ShareFault : public ::testing::Test {
 protected:
  ShareFault() {
    folder_ = "/dev/shm/berth-fault-" + std::to_string(getpid());
    setenv("BERTH_SHM_DIR", folder_.c_str(), 1);
    (void)new_shared(100);
    { const Storage made = create_shared("warm", {1}, DType::u8); }
  }
  ~ShareFault() override {
    std::filesystem::remove_all(folder_);
    unsetenv("BERTH_SHM_DIR");
  }

  void sweep(const char* what, const std::function<void()>& scenario) {
    scenario();  // makes what stays allocated for good
    const std::size_t descriptors = open_descriptors();
    const std::size_t mappings = shared_mappings();
    int calls = 0;
    int refused = 0;
    int went_on = 0;  // after a signal
    for (const int error : {ENOSPC, EMFILE, ENOMEM, EINTR, EACCES}) {
      for (int call = 0;; ++call) {
        bool threw = false;
        {
          const FailingCall failing(call, error);
          try {
            scenario();
          } catch (const Error& failed) {
            threw = true;
            EXPECT_FALSE(failed.why().empty() || failed.help().empty()) << failed.what();
            EXPECT_NE(to_string(failed.code()), "unknown_error");
          }
        }
        if (!FailingCall::was_hit()) break;
        ++calls;
        refused += threw ? 1 : 0;
        went_on += !threw && error == EINTR ? 1 : 0;
        (void)reap_named();
        reap_shared();
        ASSERT_EQ(open_descriptors(), descriptors) << what << ", call " << call << ", error " << error;
        ASSERT_EQ(shared_mappings(), mappings) << what << ", call " << call << ", error " << error;
        ASSERT_TRUE(list_shared().empty()) << what << ", call " << call << ", error " << error;
      }
    }
    EXPECT_GT(refused, 0);
    EXPECT_GT(went_on, 0) << "what a signal interrupts is done again";
    did(std::string(what) + ": " + std::to_string(calls) + " calls failed, " + std::to_string(refused) + " of them with an error");
  }

  std::string folder_;
};

TEST_F(ShareFault, EveryCallOfAnExchange) {
  sweep("an exchange through a channel", [] {
    const auto memory = pool("shared");
    const Storage x = full({10'000}, 3, DType::i32, memory);
    auto [one, other] = Channel::make_pair();
    one.send(x, 1);
    const Storage y = *other.receive(std::chrono::milliseconds(1000)).storage;
    if (y.item<std::int32_t>({9'999}) != 3) std::abort();
    other.send(y, 2);
    (void)one.receive(std::chrono::milliseconds(1000));
  });
}

TEST_F(ShareFault, EveryCallOfATicketByDescriptor) {
  sweep("a ticket", [] {
    const auto memory = pool("shared");
    const Storage x = full({10'000}, 3, DType::i32, memory);
    const Storage y = import_ticket(export_ticket(x));
    if (y.item<std::int32_t>({9'999}) != 3) std::abort();
  });
}

TEST_F(ShareFault, EveryCallOfANamedStorage) {
  sweep("a named storage", [] {
    Storage w = create_shared("faulty", {10'000}, DType::i32);
    w.fill(3);
    const Storage v = open_shared("faulty");
    if (v.item<std::int32_t>({9'999}) != 3) std::abort();
    (void)list_shared();
    w.close();
  });
}

TEST_F(ShareFault, EveryCallOfAListener) {
  sweep("a listener", [] {
    Listener listener("fault-" + std::to_string(getpid()));
    Channel one = Channel::connect("fault-" + std::to_string(getpid()));
    Channel other = listener.accept(std::chrono::milliseconds(1000));
    one.send_bytes({}, 5);
    if (other.receive(std::chrono::milliseconds(1000)).tag != 5) std::abort();
  });
}

TEST_F(ShareFault, EveryUseOfTheHeap) {
  const auto exchange = [] {
    const auto memory = pool("shared");
    const Storage x = full({10'000}, 3, DType::i32, memory);
    auto [one, other] = Channel::make_pair();
    one.send(x, 1);
    const Storage y = *other.receive(std::chrono::milliseconds(1000)).storage;
    other.send(y, 2);
    (void)one.receive(std::chrono::milliseconds(1000));
  };
  const auto named = [] {
    Storage w = create_shared("hungry", {10'000}, DType::i32);
    const Storage v = open_shared("hungry");
    w.close();
  };
  for (const std::function<void()>& scenario : {std::function<void()>(exchange), std::function<void()>(named)}) {
    scenario();
    const std::size_t descriptors = open_descriptors();
    const std::size_t mappings = shared_mappings();
    std::uint64_t nth = 1;
    for (bool happened = true; happened; ++nth) {
      {
        const FailNthNew fault(nth);
        try {
          scenario();
        } catch (const std::bad_alloc&) {
        } catch (const Error&) {  // where exhausted heap is a refusal
        }
        happened = fault.happened();
      }
      (void)reap_named();
      reap_shared();
      ASSERT_EQ(open_descriptors(), descriptors) << "use " << nth;
      ASSERT_EQ(shared_mappings(), mappings) << "use " << nth;
      ASSERT_TRUE(list_shared().empty()) << "use " << nth;
    }
    did("failed each of " + std::to_string(nth - 2) + " uses of the heap");
  }
}

TEST_F(ShareFault, AFailedShareLeavesTheStorageAsItWas) {
  for (int call = 0;; ++call) {
    const Storage x = full({3 << 20}, 7, DType::u8, "cpu");
    const void* const before = x.data_ptr();
    bool threw = false;
    {
      const FailingCall failing(call, ENOMEM);
      try {
        share(x);
      } catch (const Error&) {
        threw = true;
      }
    }
    if (!FailingCall::was_hit()) break;
    EXPECT_EQ(x.item<std::uint8_t>({(3 << 20) - 1}), 7);
    if (threw) {
      EXPECT_EQ(x.data_ptr(), before);
      EXPECT_EQ(x.device(), Device("cpu"));
    }
    default_allocator("shared")->release_cached();
  }
}

}  // namespace
}  // namespace berth::testing
