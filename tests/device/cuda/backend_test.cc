// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <thread>

#include "device/cuda/device.h"
#include "support/errors.h"
#include "support/scale.h"

// The CUDA backend beyond what every backend must do.
namespace berth::testing {
namespace {

TEST(CudaBackend, SaysWhatItIs) {
  BERTH_NEEDS_DEVICE();
  const Backend& gpu = backend("cuda:0");
  EXPECT_FALSE(gpu.properties().abilities.host_access);
  EXPECT_TRUE(gpu.properties().abilities.wants_pinned);
  EXPECT_EQ(gpu.properties().alignment, 512U);
  EXPECT_GT(gpu.memory_info().total_bytes, 1_GiB);
  did(gpu.properties().description + ", units of " + std::to_string(gpu.properties().unit_bytes));
}

TEST(CudaBackend, LeavesTheCurrentDeviceAndTheLastErrorAlone) {
  BERTH_NEEDS_CUDA();
  (void)cudaGetLastError();
  ASSERT_NE(cudaMemset(nullptr, 0, 16), cudaSuccess);
  const cudaError_t before = cudaPeekAtLastError();
  int device_before = -1;
  ASSERT_EQ(cudaGetDevice(&device_before), cudaSuccess);
  const Storage x = full({1024}, 3, DType::f32, "cuda:0");
  (void)x.to("cpu");
  EXPECT_EQ(cudaPeekAtLastError(), before);
  int device_after = -1;
  EXPECT_EQ(cudaGetDevice(&device_after), cudaSuccess);
  EXPECT_EQ(device_after, device_before);
  (void)cudaGetLastError();
}

TEST(CudaBackend, RunsOutOfMemoryAndGoesOn) {
  BERTH_NEEDS_DEVICE();
  Backend& gpu = backend("cuda:0");
  const auto memory = pool("cuda:0");
  EXPECT_THROW((void)memory->allocate({.bytes = 2 * gpu.memory_info().total_bytes}), OutOfMemory);
  EXPECT_TRUE(gpu.is_alive());
  const Block block = memory->allocate({.bytes = 1_MiB});
  memory->deallocate(block);
}

// A commit makes few pieces; a part of one that was decommitted is committed again without the device.
TEST(CudaBackend, KeepsAPieceUntilAllOfItIsDecommitted) {
  BERTH_NEEDS_DEVICE();
  Backend& gpu = backend("cuda:0");
  const std::size_t unit = gpu.properties().unit_bytes;
  const Result<void*> range = gpu.reserve(64 * unit, unit);
  ASSERT_TRUE(range.ok());
  auto* const base = static_cast<std::byte*>(*range);
  const std::size_t free = gpu.memory_info().free_bytes;
  ASSERT_TRUE(gpu.commit(base, 8 * unit).ok());
  EXPECT_LE(gpu.memory_info().free_bytes, free - 8 * unit);
  EXPECT_TRUE(gpu.decommit(base + unit, unit).ok());
  EXPECT_LE(gpu.memory_info().free_bytes, free - 8 * unit) << "a part of a piece stays";
  EXPECT_FALSE(gpu.move(base, base + 32 * unit, unit).ok()) << "nor does it move";
  EXPECT_TRUE(gpu.commit(base + unit, unit).ok());
  EXPECT_TRUE(gpu.move(base, base + 32 * unit, 8 * unit).ok());
  EXPECT_TRUE(gpu.decommit(base + 32 * unit, 8 * unit).ok());
  EXPECT_GE(gpu.memory_info().free_bytes + unit, free);
  EXPECT_TRUE(gpu.release(base, 64 * unit).ok());
}

// The driver refuses a copy across two registrations. Memory of `pinned` spans several where it is longer than
// a piece, or was committed in parts.
TEST(CudaBackend, CopiesFromAndToMemoryThatWasLockedInSeveralPieces) {
  BERTH_NEEDS_DEVICE();
  Backend& gpu = backend("cuda:0");
  Backend& pinned = backend("pinned");
  if (!pinned.properties().abilities.pinned) GTEST_SKIP() << "memory is not page-locked here";
  const std::size_t unit = pinned.properties().unit_bytes;
  const std::size_t bytes = 3 * unit;
  const Result<void*> range = pinned.reserve(bytes, unit);
  ASSERT_TRUE(range.ok());
  auto* const host = static_cast<std::byte*>(*range);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(pinned.commit(host + i * unit, unit).ok());
  const Storage there = empty({bytes}, DType::u8, "cuda:0");
  const Stream stream = make_stream("cuda:0");
  for (const StreamRef in : {StreamRef(), StreamRef(stream)}) {
    for (std::size_t i = 0; i < bytes; ++i) host[i] = static_cast<std::byte>(i * 7 + i / 251);
    const std::size_t odd = 4099;  // starts past the beginning, and stops before the end
    ASSERT_TRUE(gpu.copy({there.data_ptr(), "cuda:0", host + odd, "pinned", bytes - 2 * odd}, in).ok());
    stream.synchronize();
    for (std::size_t i = 0; i < bytes; ++i) host[i] = std::byte{0};
    ASSERT_TRUE(gpu.copy({host + odd, "pinned", there.data_ptr(), "cuda:0", bytes - 2 * odd}, in).ok());
    stream.synchronize();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      wrong += host[i] == (i < odd || i >= bytes - odd ? std::byte{0} : static_cast<std::byte>(i * 7 + i / 251)) ? 0 : 1;
    EXPECT_EQ(wrong, 0U);
  }
  EXPECT_TRUE(pinned.decommit(host, bytes).ok());
  EXPECT_TRUE(pinned.release(host, bytes).ok());
}

TEST(CudaStreams, AreThoseOfTheProgramWhenWrapped) {
  BERTH_NEEDS_CUDA();
  cudaStream_t made = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), cudaSuccess);
  {
    const Stream stream = cuda::wrap_stream("cuda:0", made);
    EXPECT_EQ(cuda::native_stream(stream), made);
    EXPECT_EQ(cuda::wrap_stream("cuda:0", made).id(), stream.id()) << "one handle is one stream";
    const auto memory = pool("cuda:0");
    const Block block = memory->allocate({.bytes = 4_MiB, .stream = stream});
    HostWord go;
    const Wrongs wrongs;
    ASSERT_TRUE(launch_spin(go.get(), made));
    ASSERT_TRUE(launch_write(block.data, block.bytes, 7, made));
    const Event after = stream.record();
    EXPECT_FALSE(after.query());
    go.set(1);
    after.wait();
    ASSERT_TRUE(launch_check(block.data, block.bytes, 7, wrongs.get(), made));
    stream.synchronize();
    EXPECT_EQ(wrongs.count(), 0U);
    memory->deallocate(block);
    cuda::end_stream(stream);
  }
  EXPECT_EQ(cudaStreamDestroy(made), cudaSuccess);
}

TEST(CudaStreams, RefuseWhatIsNotTheirs) {
  BERTH_NEEDS_DEVICE();
  EXPECT_THROW((void)cuda::wrap_stream("cpu", nullptr), DeviceError);
  EXPECT_THROW((void)cuda::wrap_stream("cuda:0", cudaStreamPerThread), DeviceError);
  EXPECT_NO_THROW((void)cuda::wrap_stream("cuda:0", nullptr).record());
  EXPECT_THROW((void)cuda::native_stream(make_stream("cpu")), DeviceError);
}

TEST(CudaStreams, AreNamedByTheRulesOfDlpack) {
  BERTH_NEEDS_DEVICE();
  EXPECT_FALSE(cuda::dlpack_stream("cuda:0", -1));
  const Stream legacy = cuda::wrap_stream("cuda:0", nullptr);
  EXPECT_EQ(cuda::dlpack_stream("cuda:0", 1).id(), legacy.id());
  EXPECT_THROW((void)cuda::dlpack_stream("cuda:0", 0), ArgumentError);
  EXPECT_THROW((void)cuda::dlpack_stream("cuda:0", 2), DeviceError);
  const Stream made = make_stream("cuda:0");
  const auto number = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(cuda::native_stream(made)));
  EXPECT_EQ(cuda::native_stream(cuda::dlpack_stream("cuda:0", number)), cuda::native_stream(made));
  const Storage storage = full({4}, 2, DType::f32, "cuda:0");
  EXPECT_EQ(to_dlpack(storage).get()->dl_tensor.device.type, dlpack::kCuda);
  EXPECT_EQ(to_dlpack(empty({4}, DType::f32, "pinned")).get()->dl_tensor.device.type, dlpack::kCudaHost);
}

// Host functions may use the device, and block, without blocking other streams.
TEST(CudaStreams, RunHostFunctionsThatUseTheDevice) {
  BERTH_NEEDS_DEVICE();
  const Stream a = make_stream("cuda:0");
  const Stream b = make_stream("cuda:0");
  float seen = 0;
  a.enqueue([&] { b.enqueue([&] { seen = full({8}, 5, DType::f32, "cuda:0").to("cpu").item<float>({3}); }); });
  a.synchronize();
  b.synchronize();
  EXPECT_EQ(seen, 5.0F);
}

TEST(CudaStreams, WaitForEachOtherThroughTheHost) {
  BERTH_NEEDS_CUDA();
  const Stream a = make_stream("cuda:0");
  const Stream b = make_stream("cuda:0");
  const Stream host = make_stream("cpu");
  HostWord go;
  const Wrongs wrongs;
  const auto memory = pool("cuda:0");
  const Block block = memory->allocate({.bytes = 1_MiB, .stream = a});
  ASSERT_TRUE(launch_spin(go.get(), cuda::native_stream(a)));
  ASSERT_TRUE(launch_write(block.data, block.bytes, 3, cuda::native_stream(a)));
  host.wait(a.record());
  b.wait(host.record());
  ASSERT_TRUE(launch_check(block.data, block.bytes, 3, wrongs.get(), cuda::native_stream(b)));
  EXPECT_FALSE(b.record().query());
  go.set(1);
  b.synchronize();
  EXPECT_EQ(wrongs.count(), 0U);
  memory->deallocate(block);
}

TEST(CudaSegments, HaveTheSameBytesWhereTheyAreImported) {
  BERTH_NEEDS_CUDA();
  const cuda::SharedMemory made = cuda::SharedMemory::make("cuda:0", 5_MiB);
  EXPECT_GE(made.size_bytes(), 5_MiB);
  const int descriptor = made.export_descriptor();
  ASSERT_GE(descriptor, 0);
  const cuda::SharedMemory same = cuda::SharedMemory::import_descriptor("cuda:0", descriptor, made.size_bytes());
  ::close(descriptor);
  EXPECT_NE(same.data(), made.data());
  const Wrongs wrongs;
  const Stream stream = make_stream("cuda:0");
  ASSERT_TRUE(launch_write(made.data(), made.size_bytes(), 11, cuda::native_stream(stream)));
  ASSERT_TRUE(launch_check(same.data(), same.size_bytes(), 11, wrongs.get(), cuda::native_stream(stream)));
  stream.synchronize();
  EXPECT_EQ(wrongs.count(), 0U);
}

// Each test runs in a new process, because what it does to the device cannot be undone.
class CudaProcess : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

[[noreturn]] void leave(bool right, const char* what) {
  if (!right) std::fprintf(stderr, "wrong: %s\n", what);
  std::_Exit(right ? 0 : 1);
}

[[noreturn]] void lose_the_device() {
  const Storage host = full({16}, 2, DType::f32, "cpu");
  const Storage there = full({16}, 2, DType::f32, "cuda:0");
  const Stream stream = make_stream("cuda:0");
  (void)launch_illegal(cuda::native_stream(stream));
  ErrorCode code = ErrorCode::invalid_argument;
  try {
    stream.synchronize();
  } catch (const DeviceError& error) {
    code = error.code();
  }
  if (code != ErrorCode::device_lost) leave(false, "the stream does not say that the device is lost");
  if (backend("cuda:0").is_alive()) leave(false, "the device is alive");
  try {
    (void)there.to("cpu");
    leave(false, "a lost device gives bytes");
  } catch (const DeviceError&) {
  }
  leave(host.item<float>({3}) == 2.0F, "a storage of the host lives on");
}

TEST_F(CudaProcess, LosesTheDeviceAndSaysSo) {
  BERTH_NEEDS_CUDA();
  EXPECT_EXIT(lose_the_device(), ::testing::ExitedWithCode(0), "");
}

[[noreturn]] void fork_with_a_device() {
  const auto memory = default_allocator("cuda:0");
  const Block block = memory->allocate({.bytes = 1_MiB});
  const Stream stream = make_stream("cuda:0");
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a failure instead of a hang
    int right = 0;
    try {
      (void)memory->allocate({.bytes = 64_MiB});
    } catch (const Error& error) {
      right += error.code() == ErrorCode::fork_unsafe ? 1 : 0;
    }
    try {
      (void)stream.record();
    } catch (const DeviceError& error) {
      right += error.code() == ErrorCode::fork_unsafe ? 1 : 0;
    }
    memory->deallocate(block);
    memory->release_cached();
    // The driver's own shutdown is not under test.
    std::_Exit(right == 2 && full({4}, 1, DType::f32, "cpu").item<float>({0}) == 1.0F ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  memory->deallocate(block);
  const bool parent_works = full({4}, 1, DType::f32, "cuda:0").to("cpu").item<float>({0}) == 1.0F;
  leave(WIFEXITED(status) && WEXITSTATUS(status) == 0 && parent_works, "the child, or the parent after it");
}

TEST_F(CudaProcess, GivesAForkedChildAnError) {
  BERTH_NEEDS_DEVICE();
  EXPECT_EXIT(fork_with_a_device(), ::testing::ExitedWithCode(0), "");
}

[[noreturn]] void end_with_live_storages() {
  static Storage kept = full({1024}, 1, DType::f32, "cuda:0");
  static Stream stream = make_stream("cuda:0");
  stream.enqueue([] {});
  std::exit(0);
}

TEST_F(CudaProcess, EndsWithLiveStoragesAndStreams) {
  BERTH_NEEDS_DEVICE();
  EXPECT_EXIT(end_with_live_storages(), ::testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace berth::testing
