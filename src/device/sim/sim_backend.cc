// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <deque>
#include <vector>

#include "base/axes.h"
#include "base/float_mode.h"
#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/device/backend.h"
#include "berth/device/element_copy.h"
#include "berth/device/registry.h"
#include "berth/device/sim.h"
#include "device/builtin.h"
#include "device/cuda/kernels/lanes.h"
#include "device/host_bytes.h"
#include "device/sim/sim_memory.h"
#include "device/sim/sim_scheduler.h"
#include "os/process/fork.h"
#include "os/system.h"

namespace berth {

using namespace internal;
using namespace internal::device;

SimControl::~SimControl() = default;

namespace {

constexpr std::size_t kOperations = static_cast<std::size_t>(SimOperation::make_stream) + 1;

class SimBackend : public Backend, public SimControl {
 public:
  SimBackend(Device device, const SimOptions& options)
      : Backend(device),
        scheduler_(std::make_shared<SimScheduler>(device, options.seed, options.background)),
        memory_(options.capacity_bytes, options.page_bytes, options.piece_bytes) {
    properties_ = {
        .description = text::join("simulated, ", text::bytes(options.capacity_bytes), " in pages of ", text::bytes(options.page_bytes)),
        .unit_bytes = options.page_bytes,
        .alignment = options.alignment,
        .max_alignment = std::size_t{1} << 40,
        .abilities = {.host_access = false,
                      .move = true,
                      .streams = true,
                      .pinned = false,
                      .fork_safe = false,
                      .kernels = options.kernels,
                      .wants_pinned = options.wants_pinned,
                      .move_in_use = true},
        .piece_bytes = options.piece_bytes};
  }

  const BackendProperties& properties() const noexcept override { return properties_; }
  bool is_alive() const noexcept override {
    const os::Lock lock(mutex_);
    return !lost_ && !origin_.is_inherited();
  }

  MemoryInfo memory_info() const override {
    const os::Lock lock(mutex_);
    return {memory_.capacity_bytes(), lost_ ? 0 : memory_.capacity_bytes() - memory_.committed_bytes(), false};
  }

  Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept override {
    const os::Lock lock(mutex_);
    if (const Status fault = check(SimOperation::reserve); !fault) return fault.failure();
    return memory_.reserve(bytes, alignment);
  }
  Status commit(void* address, std::size_t bytes) noexcept override {
    return guarded(SimOperation::commit, [&](SimMemory& memory) { return memory.commit(address, bytes); });
  }
  Status decommit(void* address, std::size_t bytes) noexcept override {
    return guarded(SimOperation::decommit, [&](SimMemory& memory) { return memory.decommit(address, bytes); });
  }
  Status move(void* from, void* to, std::size_t bytes) noexcept override {
    return guarded(SimOperation::move, [&](SimMemory& memory) { return memory.move(from, to, bytes); });
  }
  Status begin_move(void* from, void* to, std::size_t bytes) noexcept override {
    return guarded(SimOperation::begin_move, [&](SimMemory& memory) { return memory.begin_move(from, to, bytes); });
  }
  Status end_move(void* from, std::size_t bytes) noexcept override {
    return guarded(SimOperation::end_move, [&](SimMemory& memory) { return memory.end_move(from, bytes); });
  }
  Status release(void* address, std::size_t bytes) noexcept override {
    return guarded(SimOperation::release, [&](SimMemory& memory) { return memory.release(address, bytes); });
  }

  Status copy(const Transfer& transfer, StreamRef stream) noexcept override {
    return run(stream,
               [this, transfer] { return guarded(SimOperation::copy, [&](SimMemory& memory) { return transfer_now(memory, transfer); }); });
  }

  // One submission, which counts as one copy and fails as a whole.
  Status copy_batch(std::span<const Transfer> transfers, StreamRef stream) noexcept override {
    if (transfers.empty()) return {};
    if (!stream) return guarded(SimOperation::copy, [&](SimMemory& memory) { return transfer_all(memory, transfers); });
    try {
      return run(stream, [this, kept = std::make_shared<const std::vector<Transfer>>(transfers.begin(), transfers.end())] {
        return guarded(SimOperation::copy, [&](SimMemory& memory) { return transfer_all(memory, *kept); });
      });
    } catch (const std::bad_alloc&) {
      return Failure{ErrorCode::out_of_memory, 0, "no heap to queue the work"};
    }
  }

  Status fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamRef stream) noexcept override {
    if (!is_pattern(bytes, pattern))
      return Failure{ErrorCode::invalid_argument, 0, "a pattern has 1, 2, 4, 8 or 16 bytes and divides the target"};
    return run(stream, [this, target, bytes, kept = KeptPattern(pattern)] {
      return guarded(SimOperation::fill, [&](SimMemory& memory) { return memory.fill(target, bytes, kept.span()); });
    });
  }

  Status copy_elements(const ElementCopy& copy, StreamRef stream) noexcept override {
    if (!properties_.abilities.kernels) return Backend::copy_elements(copy, stream);
    const auto elements = [this](const ElementCopy& asked) {
      return guarded(SimOperation::copy, [&](SimMemory& memory) { return convert_now(memory, asked); });
    };
    if (!stream) return elements(copy);
    try {
      return run(stream, [elements, kept = std::make_shared<const ElementCopy>(copy)] { return elements(*kept); });
    } catch (const std::bad_alloc&) {
      return Failure{ErrorCode::out_of_memory, 0, "no heap to queue the work"};
    }
  }

  Result<Stream> make_stream() noexcept override {
    if (const Status fault = guarded(SimOperation::make_stream, [](SimMemory&) { return Status(); }); !fault) return fault.failure();
    try {
      return Stream(std::make_shared<SimStream>(device(), scheduler_));
    } catch (const std::bad_alloc&) {
      return Failure{ErrorCode::out_of_memory, 0, "no heap for a stream"};
    }
  }

  void fail_after(SimOperation operation, std::uint64_t nth, ErrorCode code) override {
    const os::Lock lock(mutex_);
    Fault& fault = faults_[static_cast<std::size_t>(operation)];
    fault = {.count = fault.count, .fail_at = fault.count + nth, .always = false, .code = code};
  }
  void fail_always(SimOperation operation, ErrorCode code) override {
    const os::Lock lock(mutex_);
    Fault& fault = faults_[static_cast<std::size_t>(operation)];
    fault = {.count = fault.count, .fail_at = 0, .always = true, .code = code};
  }
  void clear_faults() override {
    const os::Lock lock(mutex_);
    for (Fault& fault : faults_) fault = {.count = fault.count};
  }
  void lose() override {
    const os::Lock lock(mutex_);
    lost_ = true;
    memory_.clear();
  }
  std::uint64_t count(SimOperation operation) const override {
    const os::Lock lock(mutex_);
    return faults_[static_cast<std::size_t>(operation)].count;
  }
  std::size_t committed_bytes() const override {
    const os::Lock lock(mutex_);
    return memory_.committed_bytes();
  }
  std::size_t reserved_bytes() const override {
    const os::Lock lock(mutex_);
    return memory_.reserved_bytes();
  }
  std::size_t pending_work() const override { return scheduler_->pending(); }

 private:
  struct Fault {
    std::uint64_t count = 0;
    std::uint64_t fail_at = 0;  // the call with this count fails; 0: none
    bool always = false;
    ErrorCode code = ErrorCode::out_of_memory;
  };

  Status check(SimOperation operation) BERTH_REQUIRES(mutex_) {
    Fault& fault = faults_[static_cast<std::size_t>(operation)];
    ++fault.count;
    if (origin_.is_inherited()) return Failure{ErrorCode::fork_unsafe, 0, "the device was opened before fork"};
    if (lost_) return Failure{ErrorCode::device_lost, 0, "the device was lost"};
    if (fault.always || fault.count == fault.fail_at) return Failure{fault.code, 0, "an injected fault"};
    return {};
  }

  template <class Operation>
  Status guarded(SimOperation operation, Operation run_operation) {
    const os::Lock lock(mutex_);
    const Status fault = check(operation);
    return fault ? run_operation(memory_) : fault;
  }

  // Runs synchronously, or as work of one of this device's streams, where a failure is thrown at a wait.
  template <class Operation>
  Status run(StreamRef stream, Operation operation) noexcept {
    if (!stream) return operation();
    const auto work = [operation, where = device()] {
      if (const Status done = operation(); !done) throw_failure(done.failure(), where, "work in a stream");
    };
    if (stream->device() != device()) return run_on(stream, work);
    try {
      static_cast<SimStream*>(stream.operator->())->enqueue_device_work(work);
      return {};
    } catch (const std::bad_alloc&) {
      return Failure{ErrorCode::out_of_memory, 0, "no heap to queue the work"};
    } catch (const Error& error) {
      return Failure{error.code(), 0, "the stream refused the work"};
    }
  }

  Status transfer_now(SimMemory& memory, const Transfer& transfer) const {
    const bool to_here = transfer.target_device == device();
    const bool from_here = transfer.source_device == device();
    if (to_here && from_here) return memory.copy(transfer.target, transfer.source, transfer.bytes);
    if (to_here) return memory.write(transfer.target, transfer.source, transfer.bytes);
    if (from_here) return memory.read(transfer.target, transfer.source, transfer.bytes);
    return Failure{ErrorCode::unsupported, 0, "neither end is on this device"};
  }

  Status transfer_all(SimMemory& memory, std::span<const Transfer> transfers) const {
    for (const Transfer& transfer : transfers) {
      if (const Status done = transfer_now(memory, transfer); !done) return done;
    }
    return {};
  }

  // Element by element, with the code of the CUDA kernels.
  static Status convert_now(SimMemory& memory, const ElementCopy& copy) {
    const FloatMode mode;  // a device has its own mode, whichever thread runs its work
    for (const std::int64_t size : copy.shape) {
      if (size == 0) return {};
    }
    const auto from_bytes = static_cast<std::int64_t>(size_bytes(copy.source_dtype));
    const auto to_bytes = static_cast<std::int64_t>(size_bytes(copy.target_dtype));
    Status done;
    for_each_chunk(
        make_loop(copy.shape, copy.source_strides, copy.target_strides), 1, [&](std::int64_t source, std::int64_t target, std::size_t) {
          cuda::Bits element;
          if (done)
            done = memory.read(&element, static_cast<const std::byte*>(copy.source) + source * from_bytes, size_bytes(copy.source_dtype));
          if (copy.source_dtype != copy.target_dtype) element = cuda::convert(copy.source_dtype, copy.target_dtype, element);
          if (done) done = memory.write(static_cast<std::byte*>(copy.target) + target * to_bytes, &element, size_bytes(copy.target_dtype));
        });
    return done;
  }

  BackendProperties properties_;
  const std::shared_ptr<SimScheduler> scheduler_;
  const os::Origin origin_;
  mutable os::Mutex mutex_;
  SimMemory memory_ BERTH_GUARDED_BY(mutex_);
  std::array<Fault, kOperations> faults_ BERTH_GUARDED_BY(mutex_);
  bool lost_ BERTH_GUARDED_BY(mutex_) = false;
};

// The names of the options in their source: the struct or the environment.
struct OptionNames {
  std::string_view capacity;
  std::string_view page;
};
constexpr OptionNames kOptionNames{"capacity_bytes", "page_bytes"};
constexpr OptionNames kVariableNames{"BERTH_SIM_CAPACITY", "BERTH_SIM_PAGE"};

[[noreturn]] void throw_bad_options(std::string_view name, std::size_t value, std::string why) {
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join("a simulated device with ", name, '=', value), std::move(why), text::join("change ", name)},
                      {{name, value}});
}

void validate(const SimOptions& options, const OptionNames& names) {
  if (!is_power_of_two(options.page_bytes) || options.page_bytes < 4096)
    throw_bad_options(names.page, options.page_bytes, "a page is a power of two, at least 4096 bytes");
  if (options.capacity_bytes < options.page_bytes)
    throw_bad_options(names.capacity, options.capacity_bytes,
                      text::join("it must hold at least one page (", names.page, '=', options.page_bytes, ')'));
  if (options.piece_bytes % options.page_bytes != 0)
    throw_bad_options("piece_bytes", options.piece_bytes, text::join("a piece is whole pages of ", options.page_bytes, " bytes"));
  if (!is_power_of_two(options.alignment) || options.alignment > options.page_bytes)
    throw_bad_options("alignment", options.alignment, "it is a power of two, at most a page");
}

std::size_t size_from_environment(const char* name, std::size_t otherwise) {
  const auto value = os::environment(name);
  std::uint64_t bytes = 0;
  if (!value) return otherwise;
  if (text::parse_bytes(*value, bytes)) return bytes;
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join("the environment variable ", std::string_view(name), '=', text::printable(*value)),
                       "it is not a byte count", "write a number, or 64KiB, 2GiB"},
                      {{"name", name}, {"value", text::printable(*value)}});
}

// The options of all simulated devices. sim:0 has no entry: its options are read at its first use.
struct SimList {
  os::Mutex mutex;
  std::deque<SimOptions> added BERTH_GUARDED_BY(mutex);
};

SimList& sim_list() {
  static auto* const list = new SimList;  // never destroyed, like the devices
  return *list;
}

// Made when the library is loaded, so that no fork can occur during the initialization.
[[maybe_unused]] const SimList& g_sim_list_at_load = sim_list();

class SimFactory : public BackendFactory {
 public:
  int count() override {
    SimList& list = sim_list();
    const os::Lock lock(list.mutex);
    return static_cast<int>(1 + list.added.size());
  }
  std::string unavailable_reason() override { return ""; }
  std::unique_ptr<Backend> make(Device device) override { return std::make_unique<SimBackend>(device, options_of(device.index())); }

 private:
  static SimOptions options_of(int index) {
    if (index > 0) {
      SimList& list = sim_list();
      const os::Lock lock(list.mutex);
      return list.added[static_cast<std::size_t>(index - 1)];
    }
    SimOptions options;
    options.capacity_bytes = size_from_environment("BERTH_SIM_CAPACITY", options.capacity_bytes);
    options.page_bytes = size_from_environment("BERTH_SIM_PAGE", options.page_bytes);
    validate(options, kVariableNames);
    return options;
  }
};

}  // namespace

Device make_sim(const SimOptions& options) {
  validate(options, kOptionNames);
  SimList& list = sim_list();
  int index = 0;
  {
    const os::Lock lock(list.mutex);
    list.added.push_back(options);
    index = static_cast<int>(list.added.size());
  }
  return Device("sim", index);
}

SimControl& sim_control(Device device) {
  if (device.kind_name() != "sim") {
    throw DeviceError(ErrorCode::wrong_device,
                      {text::join("sim_control of ", device.to_string()), "it is not a simulated device",
                       "use a device that make_sim returned, or sim:0"},
                      {{"device", device.to_string()}});
  }
  return static_cast<SimBackend&>(backend(device));
}

std::unique_ptr<BackendFactory> internal::device::make_sim_factory() { return std::make_unique<SimFactory>(); }

}  // namespace berth
