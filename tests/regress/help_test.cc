// SPDX-License-Identifier: Apache-2.0
// What an error says would help, does.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/errors.h"
#include "support/everything.h"
#include "support/hooked_backend.h"

namespace berth::testing {
namespace {

// Runs `check` in a forked child, and returns whether it was true there.
bool in_child(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(RegressHelp, AForkedChildSharesACopyOfWhatItsParentShared) {
  const Storage shared = zeros({4}, DType::f32, "cpu");
  share(shared);
  EXPECT_TRUE(in_child([&] {
    const std::string expected = "in the child, copy it with to(\"cpu\") and share the copy";
    if (help_of([&] { (void)export_ticket(shared); }) != expected || help_of([&] { (void)shared_location(shared); }) != expected)
      return false;
    const Storage copy = shared.to("cpu");
    share(copy);
    return !export_ticket(copy).bytes().empty() && shared_location(copy).descriptor >= 0;
  }));
}

TEST(RegressHelp, ANamedStorageIsOpenedByItsNameOrItsCopyIsShared) {
  const std::string name = "berth-help-" + std::to_string(getpid());
  const Storage named = create_shared(name, {4}, DType::f32);
  EXPECT_EQ(help_of([&] { (void)export_ticket(named); }),
            "share a clone() of it, or of a storage on another device a copy made with to(\"cpu\")");
  for (const Storage& copy : {named.clone(), named.to("cpu")}) {
    share(copy);
    EXPECT_FALSE(export_ticket(copy).bytes().empty());
  }
  EXPECT_EQ(open_shared(name).num_elements(), 4U);
  unlink_shared(name);
}

TEST(RegressHelp, AForkedChildMakesStreamsAndDevicesOfItsOwn) {
  const Device device = make_sim({});
  const Storage on_device = zeros({4}, DType::f32, device);
  const Stream stream = make_stream("cpu");
  EXPECT_TRUE(in_child([&] {
    if (help_of([&] { stream.enqueue([] {}); }) != "make streams in the process that uses them") return false;
    make_stream("cpu").enqueue([] {});
    if (help_of([&] { (void)on_device.to("cpu"); }) != "use the device in the process that opened it, or open it after the fork")
      return false;
    return help_of([] { (void)zeros({4}, DType::f32, make_sim({})).to("cpu"); }) == "no error";
  }));
  EXPECT_EQ(on_device.to("cpu").item<float>({0}), 0) << "in the process that opened it";
}

TEST(RegressHelp, AForkedChildConnectsOrListensItself) {
  const std::string name = "berth-help-" + std::to_string(getpid());
  Listener listener(name);
  auto [near, far] = Channel::make_pair();
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
  const Channel parents_end = Channel::adopt(sockets[0]);
  EXPECT_TRUE(in_child([&, &inherited = near] {
    if (help_of([&] { inherited.send_bytes({}); }) != "connect in the child, or adopt a socket there that is the child's alone")
      return false;
    if (help_of([&] { (void)listener.accept(); }) != "make a listener in this process") return false;
    return help_of([&] {
             Channel::connect(name).send_bytes({});
             Channel::adopt(sockets[1]).send_bytes({});
             Listener own(name + "-child");
             Channel one = Channel::connect(name + "-child");
             Channel other = own.accept();
             one.send_bytes({});
             (void)other.receive();
           }) == "no error";
  }));
  close(sockets[1]);
  (void)listener.accept().receive();
}

class NothingThere : public BackendFactory {
 public:
  int count() override { return 0; }
  std::string unavailable_reason() override { return "it is made up"; }
  std::unique_ptr<Backend> make(Device) override { return nullptr; }
};

TEST(RegressHelp, AKindOfDeviceIsRegisteredOnce) {
  EXPECT_TRUE(in_child([] {
    for (int i = 0; i < 100'000; ++i) {
      const std::string help = help_of([&] { register_backend("again" + std::to_string(i), std::make_unique<NothingThere>()); });
      if (help != "no error") return help == "register each kind once";
    }
    return false;
  }));
  register_backend("once", std::make_unique<NothingThere>());
  EXPECT_EQ(help_of([] { (void)backend("once:0"); }), "berth doctor shows what this machine has");
}

// It said that the limit refused, which was not reached, and that a device with more memory would help.
TEST(RegressHelp, APoolThatHasNoAddressesLeftSaysSo) {
  const auto memory = pool(hooked_backend().device());
  std::vector<Block> blocks;
  try {
    for (;;) blocks.push_back(memory->allocate({.bytes = 256_MiB}));
  } catch (const OutOfMemory& refused) {
    EXPECT_NE(refused.report().refused_by.find("of addresses, where no free run is so long"), std::string::npos) << refused.what();
    EXPECT_EQ(refused.help().find("free 256 MiB more"), 0U) << refused.what();
  }
  ASSERT_FALSE(blocks.empty());
  memory->deallocate(blocks.back());
  blocks.back() = memory->allocate({.bytes = 256_MiB});
  for (const Block& block : blocks) memory->deallocate(block);
}

TEST(RegressHelp, AnImpossibleRequestIsNotToldToFreeMore) {
  for (const std::size_t bytes : {std::size_t{1} << 50, std::size_t{1} << 60, SIZE_MAX / 2, SIZE_MAX - 5}) {
    for (const auto& allocator : {pool("cpu"), direct("cpu"), rounded("cpu"), exact("cpu")}) {
      const std::string help = help_of([&] { (void)allocator->allocate({.bytes = bytes}); });
      EXPECT_EQ(help.find("free "), std::string::npos) << allocator->name() << ": " << help;
      EXPECT_NE(help.find("ask for less"), std::string::npos) << allocator->name() << ": " << help;
    }
  }
  const std::string help = help_of([] { (void)pool("cpu", {.limit_bytes = 1_MiB})->allocate({.bytes = 3_MiB}); });
  EXPECT_EQ(help, "raise the limit by 2 MiB, or ask for less");
  const auto raised = pool("cpu", {.limit_bytes = 3_MiB});
  raised->deallocate(raised->allocate({.bytes = 3_MiB}));
}

TEST(RegressHelp, ALostDeviceIsSaidToBeLost) {
  for (const std::size_t piece : {0, 1 << 16}) {
    const Device device = make_sim({.capacity_bytes = 1_MiB, .page_bytes = 4096, .piece_bytes = piece});
    const std::shared_ptr<Allocator> all[] = {
        pool(device), direct(device), rounded(device), exact(device), limit(pool(device), 1_MiB), arena(device, 1_MiB)};
    for (const auto& allocator : all) (void)allocator->allocate({.bytes = 1000});  // lost with the device
    sim_control(device).lose();
    for (const auto& allocator : all) {
      for (const std::size_t bytes : {100, 200'000}) {
        try {
          (void)allocator->allocate({.bytes = bytes});
          if (bytes == 200'000) ADD_FAILURE() << allocator->name() << " allocates on a lost device";
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::device_lost) << allocator->name() << ": " << error.what();
        }
      }
    }
  }
}

}  // namespace
}  // namespace berth::testing
