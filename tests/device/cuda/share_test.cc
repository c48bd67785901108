// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <poll.h>

#include <numeric>

#include "device/cuda/device.h"
#include "share/share_support.h"
#include "share/traced.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

// Storages on a GPU in several processes. The tests need no kernel, so that they also run on the driver without
// a GPU.
namespace berth::testing {
namespace {

class CudaSharing : public ::testing::Test {
 protected:
  void SetUp() override {
    BERTH_NEEDS_DEVICE();
    default_allocator("cuda:0")->release_cached();
  }

  static Storage pattern(std::int64_t count) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), 17);
    return from_data(values, {count}, "cuda:0");
  }
  static bool is_pattern(const Storage& x) {
    std::int32_t expected = 17;
    const Storage here = x.to("cpu");
    for (const std::int32_t value : here.elements<const std::int32_t>()) {
      if (value != expected++) return false;
    }
    return true;
  }
  static bool is_full_of(const Storage& x, std::int32_t value) {
    const Storage here = x.to("cpu");
    const auto elements = here.elements<const std::int32_t>();
    return std::ranges::all_of(elements, [&](std::int32_t element) { return element == value; });
  }
  static std::uint64_t live() { return default_allocator("cuda:0")->stats().live_blocks; }
  static bool none_is_left() {
    return comes_true([] {
      reap_shared();
      return live() == 0 && default_allocator("shared")->stats().live_blocks == 0;
    });
  }
};

TEST_F(CudaSharing, AnotherProcessHasTheSameBytesAndWritesThem) {
  Helper peer("device-peer");
  for (const std::int64_t count : {1LL, 1000LL, 1'000'000LL, 9'000'001LL}) {
    const Storage x = pattern(count);
    peer.channel().send(x);
    (void)peer.channel().receive();
    EXPECT_TRUE(is_full_of(x, 5)) << count;
  }
  const Storage large = pattern(600'000);
  peer.channel().send(large.slice(0, 0, 200'000));
  (void)peer.channel().receive();
  EXPECT_TRUE(is_full_of(large.slice(0, 0, 200'000), 5));
  EXPECT_EQ(large.slice(0, 200'000, 200'001).to("cpu").item<std::int32_t>({0}), 200'017) << "what lies beside a view is as it was";
  peer.channel().send_bytes({});
  EXPECT_EQ(peer.wait_for_end(), 0);
}

TEST_F(CudaSharing, MemoryIsKeptWhileAnotherProcessHoldsIt) {
  const std::uint64_t before = live();
  Helper peer("device-peer");
  peer.channel().send(pattern(1'000'000));
  (void)peer.channel().receive();
  reap_shared();
  EXPECT_EQ(live(), before + 1) << "the peer has it";
  peer.channel().send(pattern(1000));  // makes the peer release the first
  (void)peer.channel().receive();
  EXPECT_TRUE(comes_true([&] {
    reap_shared();
    return live() == before + 1;
  }));
  peer.kill();
  EXPECT_TRUE(none_is_left());
}

TEST_F(CudaSharing, MemoryOutlivesTheProcessThatMadeIt) {
  Helper owner("device-owner");
  const Storage large = *owner.channel().receive().storage;
  EXPECT_TRUE(is_pattern(large));
  pollfd more{.fd = owner.channel().descriptor(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&more, 1, 10'000), 1) << "the second is on its way";
  owner.kill();
  const Storage small = *owner.channel().receive().storage;  // it was in flight
  EXPECT_TRUE(is_pattern(large));
  EXPECT_TRUE(is_pattern(small));
  small.fill(3);
  EXPECT_TRUE(is_full_of(small, 3));
  // And is sent on to a third process, which never had contact with the first.
  Helper third("device-peer");
  third.channel().send(large);
  (void)third.channel().receive();
  EXPECT_TRUE(is_full_of(large, 5));
}

TEST_F(CudaSharing, TicketsAreGoodForOneImport) {
  const Storage x = pattern(700'000);
  const Ticket ticket = export_ticket(x);
  {
    const Storage same = import_ticket(Ticket::from_bytes(ticket.bytes()));
    EXPECT_TRUE(is_pattern(same));
    EXPECT_NE(same.data_ptr(), x.data_ptr()) << "it is mapped a second time";
    same.fill(9);
    EXPECT_TRUE(is_full_of(x, 9));
  }
  EXPECT_ERROR((void)import_ticket(ticket), AccessError, ErrorCode::already_consumed);
  const Ticket refused = export_ticket(x);
  EXPECT_TRUE(refuse_ticket(refused));
  EXPECT_ERROR((void)import_ticket(refused), AccessError, ErrorCode::already_consumed);
}

TEST_F(CudaSharing, MemoryThatIsInNoPoolIsRefused) {
  const Storage x = empty({1000}, DType::f32, direct("cuda:0"));
  EXPECT_ERROR((void)export_ticket(x), DeviceError, ErrorCode::unsupported);
}

TEST_F(CudaSharing, DescriptorsGoWithTheMemory) {
  Helper peer("device-peer");
  const Storage x = pattern(1'000'000);
  std::size_t before = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    if (i == 1) before = open_descriptors();
    x.copy_from(pattern(1'000'000));
    peer.channel().send(x);
    (void)peer.channel().receive();
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(CudaSharing, NothingIsLeftOfPeersThatAreKilled) {
  const std::uint64_t rounds = scaled(40, 4);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    Helper peer("device-peer");
    peer.channel().send(pattern(static_cast<std::int64_t>(1000 * (i + 1))));
    if (i % 3 != 0) (void)peer.channel().receive();
    peer.channel().send(pattern(500'000));
    peer.kill();
    if (i % 2 == 0) peer.channel().close();
  }
  EXPECT_TRUE(none_is_left());
  EXPECT_EQ(default_allocator("cuda:0")->audit(), "");
  RecordProperty("killed", static_cast<int>(rounds));
}

}  // namespace
}  // namespace berth::testing
