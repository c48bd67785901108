// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/cpu_backend.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/units.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "device/builtin.h"
#include "device/host_access.h"
#include "device/host_bytes.h"
#include "device/host_stream.h"
#include "os/memory/clear.h"
#include "os/memory/heap.h"
#include "os/memory/mappings.h"
#include "os/memory/memory.h"
#include "os/system.h"

namespace berth::internal::device {

namespace {

[[noreturn]] void throw_bad_setting(const char* name, const std::string& value, std::string help) {
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join("the environment variable ", std::string_view(name), '=', text::printable(value)),
                       "it is not a valid value", std::move(help)},
                      {{"name", name}, {"value", text::printable(value)}});
}

std::string node_list(const std::vector<int>& nodes) {
  std::string out;
  for (const int node : nodes) out += text::join(out.empty() ? "" : ", ", node);
  return out;
}

class CpuFactory : public BackendFactory {
 public:
  int count() override { return 1; }
  std::string unavailable_reason() override { return ""; }
  std::unique_ptr<Backend> make(Device device) override {
    const std::string model = os::cpu_model();
    return std::make_unique<CpuBackend>(device, text::join("host memory", model.empty() ? "" : ", ", model),
                                        cpu_options_from_environment());
  }
};

}  // namespace

CpuOptions cpu_options_from_environment() {
  CpuOptions options;
  if (const auto value = os::environment("BERTH_CPU_HUGE_PAGES")) {
    if (*value != "0" && *value != "1") throw_bad_setting("BERTH_CPU_HUGE_PAGES", *value, "use 1 to ask for huge pages, 0 not to");
    options.huge_pages = *value == "1";
  }
  if (const auto value = os::environment("BERTH_CPU_MAPPINGS")) {
    std::size_t most = 0;
    const auto [rest, error] = std::from_chars(value->data(), value->data() + value->size(), most);
    if (error != std::errc() || *rest != '\0' || most == 0)
      throw_bad_setting("BERTH_CPU_MAPPINGS", *value, "write how many mappings the process may have, such as 16000");
    options.mappings = most;
  }
  if (const auto value = os::environment("BERTH_CPU_NODE")) {
    int node = -1;
    const auto [rest, error] = std::from_chars(value->data(), value->data() + value->size(), node);
    const std::vector<int> nodes = os::numa_nodes();
    if (error != std::errc() || *rest != '\0' || std::ranges::find(nodes, node) == nodes.end()) {
      throw_bad_setting("BERTH_CPU_NODE", *value, text::join("the NUMA nodes with memory here are ", node_list(nodes)));
    }
    options.node = node;
  }
  return options;
}

CpuBackend::CpuBackend(Device device, std::string description, CpuOptions options) : Backend(device), options_(options) {
  properties_ = {
      .description = std::move(description),
      .unit_bytes = os::page_bytes(),
      .alignment = 64,
      .max_alignment = std::size_t{1} << 40,
      .abilities = {.host_access = true, .move = os::kernel_at_least(5, 7), .streams = true, .pinned = false, .fork_safe = true}};
  if (options.mappings) os::set_most_mappings(*options.mappings);
}

MemoryInfo CpuBackend::memory_info() const {
  const os::HostMemory machine = os::host_memory();
  const auto group = os::cgroup_memory();
  if (!group) return {machine.total_bytes, machine.available_bytes, false};
  const std::size_t left = group->limit_bytes - std::min(group->used_bytes, group->limit_bytes);
  return {group->limit_bytes, std::min(machine.available_bytes, left), true};
}

Result<void*> CpuBackend::reserve(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t huge = options_.huge_pages ? os::huge_page_bytes() : 0;
  return os::reserve(bytes, huge != 0 && bytes >= huge ? std::max(alignment, huge) : alignment);
}

Status CpuBackend::commit(void* address, std::size_t bytes) noexcept {
  Status committed = os::commit(address, bytes);
  if (!committed) return committed;
  if (options_.node) {
    const Status bound = os::bind_to_node(address, bytes, *options_.node);
    if (!bound) {
      (void)os::decommit(address, bytes).ok();
      return bound;
    }
  }
  const std::size_t huge = os::huge_page_bytes();
  if (options_.huge_pages && huge != 0 && bytes >= huge) os::prefer_huge_pages(address, bytes);
  return {};
}

// A few pages are not worth a mapping of their own: they can still be written, which nobody does.
Status CpuBackend::decommit(void* address, std::size_t bytes) noexcept {
  constexpr std::size_t kLeastMapping = 64_KiB;
  if (bytes < kLeastMapping && !os::is_writing_limited() && os::discard(address, bytes)) return {};
  return os::decommit(address, bytes);
}

Status CpuBackend::move(void* from, void* to, std::size_t bytes) noexcept {
  os::MappingLengths found;
  if (!os::pays_to_move(from, bytes, found)) return Failure{ErrorCode::out_of_memory, 0, "the pages are in too many mappings to be moved"};
  return os::move(from, to, bytes, found);
}
Status CpuBackend::release(void* address, std::size_t bytes) noexcept { return os::release(address, bytes); }

Result<void*> CpuBackend::allocate(std::size_t bytes, std::size_t alignment) noexcept {
  void* const block = os::heap_allocate(bytes, alignment);
  if (block == nullptr) return os::heap_refusal();
  return block;
}

void CpuBackend::free(void* address, std::size_t bytes, std::size_t alignment) noexcept { os::heap_free(address, bytes, alignment); }

Status CpuBackend::copy(const Transfer& transfer, StreamRef stream) noexcept {
  if (!is_host(transfer.source_device) || !is_host(transfer.target_device)) {
    return Failure{ErrorCode::unsupported, 0, "the other end is not host memory: its own backend must do the copy"};
  }
  return run_on(stream, [transfer] {
    if (transfer.bytes != 0) std::memmove(transfer.target, transfer.source, transfer.bytes);
  });
}

Status CpuBackend::fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamRef stream) noexcept {
  if (!is_pattern(bytes, pattern))
    return Failure{ErrorCode::invalid_argument, 0, "a pattern has 1, 2, 4, 8 or 16 bytes and divides the target"};
  return run_on(stream, [target, bytes, kept = KeptPattern(pattern)] { fill_host(target, bytes, kept.span()); });
}

Status CpuBackend::zero(void* target, std::size_t bytes, StreamRef stream) noexcept {
  if (stream) return Backend::zero(target, bytes, stream);
  os::clear(target, bytes);
  return {};
}

Result<Stream> CpuBackend::make_stream() noexcept { return make_host_stream(device()); }

std::unique_ptr<BackendFactory> make_cpu_factory() { return std::make_unique<CpuFactory>(); }

}  // namespace berth::internal::device
