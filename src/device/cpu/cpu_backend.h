// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "berth/device/backend.h"

// Host memory: mapped ranges for the pools, the C library's heap for single blocks, worker threads for streams.
// Any thread.
namespace berth::internal::device {

struct CpuOptions {
  bool huge_pages = true;                    // request them for large ranges
  std::optional<int> node = {};              // allocate pages from one NUMA node
  std::optional<std::size_t> mappings = {};  // os::set_most_mappings, for the whole process
};

// From BERTH_CPU_HUGE_PAGES, BERTH_CPU_NODE and BERTH_CPU_MAPPINGS. Throws ArgumentError for values that are
// invalid on this machine.
CpuOptions cpu_options_from_environment();

class CpuBackend : public Backend {
 public:
  CpuBackend(Device device, std::string description, CpuOptions options);

  const BackendProperties& properties() const noexcept override { return properties_; }
  MemoryInfo memory_info() const override;

  Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept override;
  Status commit(void* address, std::size_t bytes) noexcept override;
  Status decommit(void* address, std::size_t bytes) noexcept override;
  Status move(void* from, void* to, std::size_t bytes) noexcept override;
  Status release(void* address, std::size_t bytes) noexcept override;

  Result<void*> allocate(std::size_t bytes, std::size_t alignment) noexcept override;
  void free(void* address, std::size_t bytes, std::size_t alignment) noexcept override;

  Status copy(const Transfer& transfer, StreamRef stream) noexcept override;
  Status fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamRef stream) noexcept override;
  Status zero(void* target, std::size_t bytes, StreamRef stream) noexcept override;
  Result<Stream> make_stream() noexcept override;

 protected:
  BackendProperties properties_;
  const CpuOptions options_;
};

}  // namespace berth::internal::device
