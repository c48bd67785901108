// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "support/descriptors.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

// The names of listeners: who may be reached by one, when it appears, and when it goes.
namespace berth::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Listening : public ::testing::Test {
 protected:
  Listening() { use("/dev/shm/berth-listen-" + std::to_string(getpid())); }
  ~Listening() override {
    fs::remove_all(folder_);
    unsetenv("BERTH_SHM_DIR");
  }
  void use(const std::string& folder) {
    folder_ = folder;
    setenv("BERTH_SHM_DIR", folder_.c_str(), 1);
  }
  std::string path(const std::string& file) const { return folder_ + "/" + file; }

  // What a process that was killed leaves: a name with no socket behind it.
  void leave(const std::string& file) const {
    fs::create_directories(folder_);
    chmod(folder_.c_str(), 0700);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path(file).c_str(), sizeof address.sun_path - 1);
    const int socket_made = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    ASSERT_EQ(bind(socket_made, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    close(socket_made);
  }

  std::string folder_;
};

TEST_F(Listening, HasANameThatNobodyElseReachesAndThatGoesWithIt) {
  for (const mode_t mask : {mode_t{0}, mode_t{0777}}) {
    const mode_t before = umask(mask);
    Listener listener("one");
    umask(before);
    struct stat found;
    ASSERT_EQ(stat(path(".listen-one").c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600U);
    ASSERT_EQ(stat(folder_.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0700U);
    Channel one = Channel::connect("one");
    Channel other = listener.accept();
    one.send_bytes({}, 3);
    EXPECT_EQ(other.receive().tag, 3U);
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Listening, MayHaveTheLongestNameInAFolderWithALongPath) {
  std::string folder = folder_;
  for (int i = 0; i < 4; ++i) folder += "/" + std::string(100, 'f');
  fs::create_directories(folder);
  chmod(folder.c_str(), 0700);
  use(folder);
  const std::string name(200, 'n');
  Listener listener(name);
  Channel one = Channel::connect(name);
  EXPECT_GE(listener.accept().descriptor(), 0);
  EXPECT_EQ(list_listeners().at(0).name, name);
  use("/dev/shm/berth-listen-" + std::to_string(getpid()));
}

TEST_F(Listening, ANameOfADeadProcessIsTakenOverAndRemoved) {
  for (const char* dead : {".listen-a", ".listen-b", ".listen-c", ".listen"}) leave(dead);
  Listener taken("a");
  EXPECT_GE(Channel::connect("a").descriptor(), 0);
  EXPECT_ERROR((void)Channel::connect("b"), AccessError, ErrorCode::not_found);
  EXPECT_FALSE(fs::exists(path(".listen-b"))) << "who found nobody there has removed it";
  leave(".listen");
  const std::vector<NamedListener> all = list_listeners();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(all[0].name == "a" && all[0].is_alive && all[1].name == "c" && !all[1].is_alive);
  EXPECT_EQ(reap_listeners(), std::vector<std::string>{"c"});
  EXPECT_FALSE(fs::exists(path(".listen")));
  EXPECT_GE(Channel::connect("a").descriptor(), 0) << "and who lives was not disturbed";
  EXPECT_EQ(taken.accept().peer_process(), getpid());
}

TEST_F(Listening, WhoLooksForTheLivingLeavesNoTraceInTheirQueue) {
  Listener listener("busy");
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(list_listeners().at(0).is_alive);
  EXPECT_ERROR(Listener{"busy"}, AccessError, ErrorCode::already_exists);
  EXPECT_ERROR((void)listener.accept(1ms), DeviceError, ErrorCode::timeout);
}

TEST_F(Listening, WhatIsNoSocketOfThisUserIsRefusedAndLeftAlone) {
  { const Listener makes_the_folder("x"); }
  std::ofstream(path(".listen-file")) << "no socket";
  fs::create_symlink(path(".listen-file"), path(".listen-link"));
  for (const char* name : {"file", "link"}) {
    EXPECT_ERROR((void)Channel::connect(name), AccessError, ErrorCode::untrusted);
    EXPECT_ERROR(Listener{name}, AccessError, ErrorCode::already_exists);
  }
  if (geteuid() == 0) {
    leave(".listen-foreign");
    ASSERT_EQ(lchown(path(".listen-foreign").c_str(), 65534, 65534), 0);
    EXPECT_ERROR((void)Channel::connect("foreign"), AccessError, ErrorCode::untrusted);
    EXPECT_ERROR(Listener{"foreign"}, AccessError, ErrorCode::already_exists);
  }
  EXPECT_TRUE(reap_listeners().empty());
  EXPECT_TRUE(list_listeners().empty());
  EXPECT_TRUE(fs::exists(path(".listen-file")) && fs::is_symlink(path(".listen-link")));
}

TEST_F(Listening, AFolderThatOthersReachIsRefusedWithHelpThatWorks) {
  fs::create_directory(folder_);
  chmod(folder_.c_str(), 0755);
  EXPECT_ERROR(Listener{"x"}, AccessError, ErrorCode::untrusted);
  EXPECT_ERROR((void)Channel::connect("x"), AccessError, ErrorCode::untrusted);
  const std::string help = help_of([] { Listener("x"); });
  EXPECT_NE(help.find("BERTH_SHM_DIR"), std::string::npos) << help;
  EXPECT_EQ(help, help_of([] { (void)create_shared("x", {1}, DType::u8); }));
  EXPECT_EQ(help, help_of([] { (void)open_shared("x"); }));
  fs::remove(folder_);
  use(folder_ + "-own");
  EXPECT_NO_THROW(Listener{"x"});
}

TEST_F(Listening, AStoppedProcessHoldsNobodyThatConnectsToAnother) {
  Listener listener("there");
  // Like a process that was stopped while it makes or removes a name.
  const int stopped = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(stopped, LOCK_EX | LOCK_NB), 0);
  EXPECT_GE(Channel::connect("there").descriptor(), 0);
  EXPECT_ERROR(Listener{"new"}, DeviceError, ErrorCode::timeout);
  close(stopped);
  EXPECT_NO_THROW(Listener{"new"});
}

TEST_F(Listening, ThousandsThatConnectAreHeldNoLongerThanTheyAllow) {
  Listener listener("many");
  std::vector<Channel> all;
  std::uint64_t refused = 0;
  const std::uint64_t count = scaled(5'000, 400);
  for (std::uint64_t i = 0; i < count && refused < 3; ++i) {
    try {
      all.push_back(Channel::connect("many", 5ms));
    } catch (const DeviceError& error) {
      ASSERT_TRUE(error.code() == ErrorCode::timeout || error.code() == ErrorCode::too_many_descriptors) << error.what();
      ++refused;
    }
  }
  did(std::to_string(all.size()) + " connected, " + std::to_string(refused) + " refused");
  EXPECT_GE(listener.accept().descriptor(), 0);
  { const Listener gone = std::move(listener); }
  EXPECT_ERROR((void)all.back().receive(), DeviceError, ErrorCode::peer_dead);
}

TEST_F(Listening, NamesOfListenersAreNoStorages) {
  const Listener listener("same");
  const Storage w = create_shared("same", {1}, DType::u8);
  EXPECT_EQ(list_shared().size(), 1U);
  EXPECT_EQ(list_listeners().size(), 1U);
  EXPECT_TRUE(reap_named().empty());
}

}  // namespace
}  // namespace berth::testing
