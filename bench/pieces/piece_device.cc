// SPDX-License-Identifier: Apache-2.0
#include "piece_device.h"

#include <algorithm>
#include <memory>

#include "berth/base/units.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "berth/device/stream.h"
#include "device/piece_memory.h"

namespace berth::bench {

namespace {

using internal::device::PieceMemory;

constexpr std::size_t kUnit = 2_MiB;
constexpr std::size_t kTotal = std::size_t{141} << 30;  // an H200's, of which four times as many addresses are reserved

struct State {
  PieceDeviceOptions options;
  DriverCalls calls{};
  std::uint64_t now = 0;
  std::uint64_t waited = 0;  // until the work before this moment was done
  std::uint64_t waits = 0;

  std::uint64_t done() const noexcept { return std::max(waited, now - std::min(now, options.lag)); }
  std::size_t held = 0;
};
State state;

class PieceEvent final : public EventState {
 public:
  bool query() override { return state.done() >= recorded_; }
  void wait() override {
    state.waits += query() ? 0 : 1;
    state.waited = std::max(state.waited, recorded_);
  }

 private:
  std::uint64_t recorded_ = state.now;
};

class PieceStream final : public StreamState {
 public:
  using StreamState::StreamState;

 protected:
  Event do_record() override { return Event(std::make_shared<PieceEvent>()); }
  Event do_enqueue(std::function<void()> work) override {
    work();
    return do_record();
  }
  void do_wait(const Event&) override {}
  void do_synchronize() override {}
};

class Pieces final : public PieceMemory {
 public:
  explicit Pieces(std::size_t longest) : PieceMemory(kUnit, longest) {}

 private:
  Result<Addresses> reserve_addresses(std::size_t bytes, std::size_t alignment) noexcept override {
    const std::uintptr_t first = (next_ + alignment - 1) / alignment * alignment;
    next_ = first + bytes;
    return Addresses{first, bytes};
  }
  void give_addresses_back(const Addresses&) noexcept override {}

  Status make_piece(Piece& piece) noexcept override {
    if (piece.bytes > state.options.capacity - std::min(state.held, state.options.capacity))
      return Failure{ErrorCode::out_of_memory, 0, "the device is full"};
    state.held += piece.bytes;
    state.calls.make(piece.bytes);
    return {};
  }
  Status drop_piece(const Piece& piece) noexcept override {
    state.held -= piece.bytes;
    state.calls.give_back(piece.bytes);
    return {};
  }
  Status map_pieces_again(std::span<const Piece> pieces, std::uintptr_t, std::size_t) noexcept override {
    for (const Piece& piece : pieces) state.calls.map_again(piece.bytes);
    return {};
  }
  Status unmap_echo(std::uintptr_t, std::size_t bytes) noexcept override {
    state.calls.unmap_echo(bytes);
    return {};
  }

  std::uintptr_t next_ = std::uintptr_t{1} << 44;
};

class PieceBackend final : public Backend {
 public:
  explicit PieceBackend(Device device) : Backend(device) {}

  void restart() {
    pieces_ = std::make_unique<Pieces>(state.options.longest_piece);
    properties_ = {.description = "pieces that are counted",
                   .unit_bytes = kUnit,
                   .alignment = 512,
                   .max_alignment = 1_GiB,
                   .abilities = {.move = true, .streams = true, .move_in_use = true},
                   .piece_bytes = state.options.longest_piece,
                   .commit_us_per_mib = 2};
  }

  const BackendProperties& properties() const noexcept override { return properties_; }
  MemoryInfo memory_info() const override { return {kTotal, kTotal - std::min(state.held, kTotal), false}; }
  Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept override { return pieces_->reserve(bytes, alignment); }
  Status commit(void* address, std::size_t bytes) noexcept override { return pieces_->commit(address, bytes); }
  Status decommit(void* address, std::size_t bytes) noexcept override { return pieces_->decommit(address, bytes); }
  Status move(void* from, void* to, std::size_t bytes) noexcept override { return pieces_->move(from, to, bytes); }
  Status begin_move(void* from, void* to, std::size_t bytes) noexcept override { return pieces_->begin_move(from, to, bytes); }
  Status end_move(void* from, std::size_t bytes) noexcept override { return pieces_->end_move(from, bytes); }
  Status release(void* address, std::size_t bytes) noexcept override { return pieces_->release(address, bytes); }
  Status copy(const Transfer&, StreamRef) noexcept override { return kNoBytes; }
  Status fill(void*, std::size_t, std::span<const std::byte>, StreamRef) noexcept override { return kNoBytes; }
  Result<Stream> make_stream() noexcept override {
    try {
      return Stream(std::make_shared<PieceStream>(device()));
    } catch (const std::bad_alloc&) {
      return Failure{ErrorCode::out_of_memory, 0, "no heap for a stream"};
    }
  }

 private:
  static constexpr Failure kNoBytes{ErrorCode::unsupported, 0, "the device counts calls, and has no memory"};

  BackendProperties properties_;
  std::unique_ptr<Pieces> pieces_;
};

class Factory final : public BackendFactory {
 public:
  int count() override { return 1; }
  std::string unavailable_reason() override { return {}; }
  std::unique_ptr<Backend> make(Device device) override { return std::make_unique<PieceBackend>(device); }
};

}  // namespace

Device piece_device(const PieceDeviceOptions& options) {
  static const Device device = [] {
    register_backend("pieces", std::make_unique<Factory>());
    return Device("pieces:0");
  }();
  state = {.options = options};
  dynamic_cast<PieceBackend&>(backend(device)).restart();
  return device;
}

void pass_event() noexcept { ++state.now; }
const DriverCalls& driver_calls() noexcept { return state.calls; }
std::uint64_t driver_waits() noexcept { return state.waits; }

}  // namespace berth::bench
