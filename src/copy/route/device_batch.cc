// SPDX-License-Identifier: Apache-2.0
#include "copy/route/device_batch.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "berth/copy/threads.h"
#include "berth/device/backend.h"
#include "copy/route/pipeline.h"
#include "copy/route/route_stage.h"
#include "os/memory/bus_guard.h"

namespace berth::internal::copy {

namespace {

constexpr std::size_t kPackBytes = std::size_t{1} << 20;  // size of a staging buffer; the largest copy that is
                                                          // packed
constexpr std::size_t kPackAlignment = 64;                // of each copy in it

const Abilities& abilities(const Backend& backend) noexcept { return backend.properties().abilities; }

// The device that runs the transfers: at most one end is the host's.
Backend& runner(const ValidatedPair& pair) noexcept { return abilities(*pair.source).host_access ? *pair.target : *pair.source; }

std::size_t padded(std::size_t bytes) noexcept { return (bytes + kPackAlignment - 1) / kPackAlignment * kPackAlignment; }

// The transfers that go through one staging buffer together: [begin, end).
struct Pack {
  std::size_t begin;
  std::size_t end;
};

std::vector<Pack> make_packs(std::span<const Transfer> transfers) {
  std::vector<Pack> packs;
  std::size_t bytes = kPackBytes;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const std::size_t more = padded(transfers[i].bytes);
    if (more > kPackBytes - std::min(bytes, kPackBytes)) {
      packs.push_back({i, i});
      bytes = 0;
    }
    bytes += more;
    packs.back().end = i + 1;
  }
  return packs;
}

class PackRoom final : public PipelineRoom {
 public:
  PackRoom(std::span<const Transfer> transfers, const std::vector<Pack>& packs, Backend& device)
      : transfers_(transfers), packs_(packs), device_(device), staging_(kStaging, kPackBytes) {}

  static constexpr const char* kStaging = "pinned";

  void start(std::size_t piece, StreamRef stream) override {
    pack_ = transfers_.subspan(packs_[piece].begin, packs_[piece].end - packs_[piece].begin);
    moves_.clear();
    const Device between(kStaging);
    std::byte* at = staging_.data();
    for (const Transfer& transfer : pack_) {
      if (from_host(transfer)) {
        os::BusGuard::touch([&] { std::memcpy(at, transfer.source, transfer.bytes); });
        moves_.push_back({transfer.target, transfer.target_device, at, between, transfer.bytes});
      } else {
        moves_.push_back({at, between, transfer.source, transfer.source_device, transfer.bytes});
      }
      at += padded(transfer.bytes);
    }
    require_done(device_.copy_batch(moves_, stream), device_.device(), "copying");
  }

  void finish() override {
    for (std::size_t i = 0; i < pack_.size(); ++i) {
      if (from_host(pack_[i])) continue;
      os::BusGuard::touch([&] { std::memcpy(pack_[i].target, moves_[i].target, pack_[i].bytes); });
    }
  }

 private:
  bool from_host(const Transfer& transfer) const noexcept { return transfer.target_device == device_.device(); }

  const std::span<const Transfer> transfers_;
  const std::vector<Pack>& packs_;
  Backend& device_;
  const Scratch staging_;
  std::span<const Transfer> pack_;
  std::vector<Transfer> moves_;  // parallel to pack_
};

class PackWork final : public PipelineWork {
 public:
  PackWork(std::span<const Transfer> transfers, Backend& device) : transfers_(transfers), packs_(make_packs(transfers)), device_(device) {}

  std::size_t size() const noexcept { return packs_.size(); }
  std::unique_ptr<PipelineRoom> make_room() override { return std::make_unique<PackRoom>(transfers_, packs_, device_); }

 private:
  const std::span<const Transfer> transfers_;
  const std::vector<Pack> packs_;
  Backend& device_;
};

}  // namespace

BatchWay batch_way(const ValidatedPair& pair) noexcept {
  const Abilities& from = abilities(*pair.source);
  const Abilities& to = abilities(*pair.target);
  const bool between_devices = !from.host_access && !to.host_access && pair.source != pair.target;
  if (pair.kind != PairKind::other || between_devices || pair.run_bytes == 0) return BatchWay::alone;
  const bool other_memory = pair.source_mapped || pair.target_mapped || (from.host_access && !from.pinned && to.wants_pinned) ||
                            (to.host_access && !to.pinned && from.wants_pinned);
  if (!other_memory) return BatchWay::direct;
  const bool can_pack = abilities(runner(pair)).streams && pair.run_bytes <= kPackBytes;
  return can_pack ? BatchWay::packed : BatchWay::alone;
}

void run_direct(std::span<const Transfer> transfers, const ValidatedPair& pair) {
  Backend& device = runner(pair);
  require_done(device.copy_batch(transfers, {}), device.device(), "copying a batch");
}

void run_packed(std::span<const Transfer> transfers, const ValidatedPair& pair) {
  Backend& device = runner(pair);
  PackWork work(transfers, device);
  run_pipeline(device.device(), work.size(), copy_threads(), work);
}

}  // namespace berth::internal::copy
