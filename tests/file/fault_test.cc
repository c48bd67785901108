// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <functional>

#include "file/file_support.h"
#include "os/inject.h"
#include "support/descriptors.h"
#include "support/everything.h"
#include "support/failing_calls.h"
#include "support/heap_faults.h"
#include "support/scale.h"

// Every system call of reading and writing files fails in turn, with every error that disks produce, and every
// allocation from the heap. The result is a typed error; no descriptor, mapping or file leaks, and the file
// under the name is unchanged.
namespace berth::testing {

using namespace internal;
namespace {

// Which has tests of its own.
const std::initializer_list<std::string_view> kOfMemory = {"munmap", "mprotect", "madvise"};

std::size_t mappings_of(const std::string& folder) {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find(folder) != std::string::npos ? 1 : 0;
  return count;
}

class FileFault : public ::testing::Test {
 protected:
  FileFault() {
    save_safetensors(path("m.safetensors"), {{"x", x_}});
    save_npz(path("a.npz"), {{"x", x_}});
    save_npy(path("a.npy"), x_);
    folder_.write("model.index.json", R"({"weight_map":{"x":"m.safetensors"}})");
    whole_ = folder_.read("m.safetensors");
  }
  std::string path(const std::string& name) const { return folder_ / name; }

  void sweep(const char* what, const std::function<void()>& scenario, bool changes_the_file = false) {
    scenario();
    const std::size_t descriptors = open_descriptors();
    const std::size_t files = folder_.count();
    int calls = 0;
    int refused = 0;
    int went_on = 0;
    for (const int error : {EIO, ENOSPC, ENOMEM, EMFILE, EACCES, EINTR}) {
      for (int call = 0;; ++call) {
        bool threw = false;
        folder_.write("m.safetensors", whole_);
        {
          const FailingCall failing(call, error, kOfMemory);
          try {
            scenario();
          } catch (const Error& failed) {
            threw = true;
            EXPECT_FALSE(failed.why().empty() || failed.help().empty()) << failed.what();
          }
        }
        if (!FailingCall::was_hit()) break;
        ++calls;
        refused += threw ? 1 : 0;
        went_on += !threw && error == EINTR ? 1 : 0;
        ASSERT_EQ(open_descriptors(), descriptors) << what << ", call " << call << ", error " << error;
        ASSERT_EQ(mappings_of(folder_.path()), 0U) << what << ", call " << call << ", error " << error;
        ASSERT_EQ(folder_.count(), files) << what << ", call " << call << ", error " << error;
        ASSERT_TRUE(changes_the_file || folder_.read("m.safetensors") == whole_) << what << ", call " << call << ", error " << error;
      }
    }
    EXPECT_GT(refused, 0);
    EXPECT_GT(went_on, 0) << "what a signal interrupts is done again";
    did(std::string(what) + ": " + std::to_string(calls) + " calls failed, " + std::to_string(refused) + " of them with an error");
  }

  const Folder folder_;
  const Storage x_ = full({3000}, 7, DType::i32, "cpu");
  std::string whole_;
};

TEST_F(FileFault, EveryCallOfReadingSafetensors) {
  sweep("reading safetensors", [&] {
    const SafetensorsFile file = open_safetensors(path("m.safetensors"));
    if (!equal(file["x"], x_) || !equal(file.read("x"), x_) || file.state() != FileState::current) std::abort();
  });
  sweep("reading a model in several files", [&] {
    if (!equal(open_safetensors(path("model.index.json"))["x"], x_)) std::abort();
  });
}

TEST_F(FileFault, EveryCallOfReadingArrays) {
  sweep("reading npy and npz", [&] {
    const NpzFile file = open_npz(path("a.npz"));
    file.verify();
    if (!equal(file["x"], x_) || !equal(map_npy(path("a.npy")), x_)) std::abort();
  });
}

TEST_F(FileFault, EveryCallOfMapping) {
  sweep("mapping", [&] {
    Storage y = map_file(path("new"), {3000}, DType::i32, FileMode::create);
    y.copy_from(x_);
    if (!equal(y, x_) || mapped_state(y) != FileState::current) std::abort();
    y.close();
  });
}

// A save that fails leaves the old file intact; one that succeeds leaves the new one.
TEST_F(FileFault, EveryCallOfSavingLeavesTheOldFileOrTheNew) {
  const Storage two = full({3000}, 2, DType::i32, "cpu");
  save_safetensors(path("other"), {{"x", two}});
  const std::string fresh = folder_.read("other");
  sweep(
      "saving",
      [&] {
        struct Look {
          const Folder& folder;
          const std::string& old;
          const std::string& fresh;
          ~Look() {
            os::set_injector(nullptr);
            const std::string now = folder.read("m.safetensors");
            EXPECT_TRUE(now == old || now == fresh) << now.size() << " bytes of neither";
          }
        } const look{folder_, whole_, fresh};
        save_safetensors(path("m.safetensors"), {{"x", two}});
      },
      true);
  sweep(
      "saving arrays",
      [&] {
        save_npz(path("a.npz"), {{"x", x_}});
        save_npy(path("a.npy"), x_);
      },
      true);
}

// Where the file system cannot make unnamed files.
TEST_F(FileFault, AFileThatMustHaveANameMeanwhileLosesIt) {
  os::set_injector([](std::string_view call) noexcept { return call == "tmpfile" ? EOPNOTSUPP : 0; });
  const std::size_t files = folder_.count();
  save_safetensors(path("m.safetensors"), {{"y", x_}});
  EXPECT_TRUE(equal(open_safetensors(path("m.safetensors"))["y"], x_));
  os::set_injector([](std::string_view call) noexcept { return call == "tmpfile" ? EOPNOTSUPP : call == "pwrite" ? ENOSPC : 0; });
  EXPECT_THROW(save_safetensors(path("m.safetensors"), {{"z", x_}}), DeviceError);
  os::set_injector(nullptr);
  EXPECT_EQ(folder_.count(), files);
  EXPECT_TRUE(open_safetensors(path("m.safetensors")).contains("y"));
}

TEST_F(FileFault, EveryUseOfTheHeap) {
  const auto scenario = [&] {
    (void)open_safetensors(path("model.index.json"))["x"];
    (void)open_npz(path("a.npz"))["x"];
    save_safetensors(path("m.safetensors"), {{"x", x_}});
  };
  scenario();
  const std::size_t descriptors = open_descriptors();
  const std::size_t files = folder_.count();
  std::uint64_t nth = 1;
  for (bool happened = true; happened; ++nth) {
    {
      const FailNthNew fault(nth);
      try {
        scenario();
      } catch (const std::bad_alloc&) {
      }
      happened = fault.happened();
    }
    ASSERT_EQ(open_descriptors(), descriptors) << "use " << nth;
    ASSERT_EQ(mappings_of(folder_.path()), 0U) << "use " << nth;
    ASSERT_EQ(folder_.count(), files) << "use " << nth;
    ASSERT_EQ(folder_.read("m.safetensors"), whole_) << "use " << nth;
  }
  did("failed each of " + std::to_string(nth - 2) + " uses of the heap");
}

}  // namespace
}  // namespace berth::testing
