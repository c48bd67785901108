// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>

#include "device/cuda/kernels.h"
#include "support/everything.h"

// Common code of the tests on a real device. Without one they are skipped, with the reason.
namespace berth::testing {

inline std::string why_no_cuda() {
  for (const KindInfo& kind : device_kinds()) {
    if (kind.name == "cuda") return kind.unavailable_reason;
  }
  return "there is no such kind";
}

#define BERTH_NEEDS_DEVICE() \
  if (find_backend("cuda:0") == nullptr) GTEST_SKIP() << "no CUDA device: " << why_no_cuda()

// For tests with kernels.
#define BERTH_NEEDS_CUDA() \
  BERTH_NEEDS_DEVICE();    \
  ASSERT_TRUE(load_kernels()) << "the CUDA runtime does not load the tests' kernels"

// A word that the host sets and a kernel polls.
class HostWord {
 public:
  HostWord() {
    void* made = nullptr;
    EXPECT_EQ(cudaHostAlloc(&made, sizeof(std::uint32_t), cudaHostAllocMapped), cudaSuccess);
    word_ = new (made) std::atomic<std::uint32_t>(0);
  }
  ~HostWord() { cudaFreeHost(word_); }
  HostWord(const HostWord&) = delete;
  HostWord& operator=(const HostWord&) = delete;

  void set(std::uint32_t value) { word_->store(value, std::memory_order_seq_cst); }
  const volatile std::uint32_t* get() const { return reinterpret_cast<const volatile std::uint32_t*>(word_); }

 private:
  std::atomic<std::uint32_t>* word_;
};

// A counter on the device, of the errors that kernels found.
class Wrongs {
 public:
  Wrongs() {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&count_), sizeof(std::uint32_t)), cudaSuccess);
    EXPECT_EQ(cudaMemset(count_, 0, sizeof(std::uint32_t)), cudaSuccess);
  }
  ~Wrongs() { cudaFree(count_); }
  Wrongs(const Wrongs&) = delete;
  Wrongs& operator=(const Wrongs&) = delete;

  std::uint32_t* get() const { return count_; }
  std::uint32_t count() const {
    std::uint32_t value = ~0U;
    EXPECT_EQ(cudaMemcpy(&value, count_, sizeof(value), cudaMemcpyDeviceToHost), cudaSuccess);
    return value;
  }

 private:
  std::uint32_t* count_ = nullptr;
};

}  // namespace berth::testing
