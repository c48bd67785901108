// SPDX-License-Identifier: Apache-2.0
#include "share/device_memory.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "os/lock/mutex.h"

namespace berth::internal::share {

namespace {

constexpr std::uint64_t kStubMagic = 0x7570'6768'7472'6562;  // "berthgpu"
constexpr std::size_t kHeadWords = 6;
constexpr std::size_t kMostWords = kHeadWords + 2 * device::cuda::PieceRun::kMostPieces;
constexpr Failure kGone{ErrorCode::already_consumed, 0, "the ticket was imported or refused before"};
constexpr Failure kUnknown{ErrorCode::not_found, 0,
                           "this process has no descriptor of the memory: it comes with a storage through a Channel"};
constexpr Failure kNoStub{ErrorCode::format_error, 0, "the ticket's entry does not describe memory of a device"};

// Other processes' device memory that is mapped here, by owner and pieces. Never destroyed.
struct RunKey {
  SegmentId owner;
  std::vector<device::cuda::PieceRun::Piece> pieces;
  friend auto operator<=>(const RunKey&, const RunKey&) = default;
};
struct Mapped {
  os::Mutex mutex;
  std::map<RunKey, std::weak_ptr<device::cuda::ImportedPieces>> runs BERTH_GUARDED_BY(mutex);
};

Mapped& mapped() {
  static auto* const made = new Mapped;
  return *made;
}
[[maybe_unused]] const Mapped& g_mapped_memory_at_load = mapped();

std::shared_ptr<device::cuda::ImportedPieces> find_mapped(const RunKey& key) {
  Mapped& all = mapped();
  const os::Lock lock(all.mutex);
  const auto found = all.runs.find(key);
  return found == all.runs.end() ? nullptr : found->second.lock();
}

void enter(RunKey key, const std::shared_ptr<device::cuda::ImportedPieces>& pieces) {
  Mapped& all = mapped();
  const os::Lock lock(all.mutex);
  std::erase_if(all.runs, [](const auto& run) { return run.second.expired(); });
  all.runs.insert_or_assign(std::move(key), pieces);
}

}  // namespace

std::vector<std::uint64_t> stub_words(const device::cuda::PieceRun& run) {
  std::vector<std::uint64_t> words{kStubMagic, run.device[0], run.device[1], run.offset, run.bytes, run.pieces.size()};
  for (const device::cuda::PieceRun::Piece& piece : run.pieces) words.insert(words.end(), {piece.id, piece.bytes});
  return words;
}

Result<device::cuda::PieceRun> read_stub(std::span<const std::byte> bytes) {
  std::vector<std::uint64_t> words(std::min(bytes.size() / sizeof(std::uint64_t), kMostWords));
  if (words.size() < kHeadWords) return kNoStub;
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint64_t));
  const std::uint64_t pieces = words[5];
  if (words[0] != kStubMagic || pieces == 0 || pieces > (words.size() - kHeadWords) / 2) return kNoStub;
  device::cuda::PieceRun run{.device = {words[1], words[2]}, .offset = words[3], .bytes = words[4]};
  run.pieces.reserve(pieces);
  for (std::size_t i = kHeadWords; run.pieces.size() < pieces; i += 2) run.pieces.push_back({words[i], words[i + 1]});
  if (!run.can_be()) return kNoStub;
  return run;
}

Result<device::cuda::PieceRun> look_at_stub(Segment& segment, const TicketName& name) {
  const Result<EntryBytes> seen = segment.look(name);
  if (!seen) return seen.failure();
  const Result<void*> address = segment.address_of(seen->offset, seen->bytes, os::Access::write);
  if (!address) return address.failure();
  return read_stub({static_cast<const std::byte*>(*address), static_cast<std::size_t>(seen->bytes)});
}

std::shared_ptr<const DeviceMemory> own_memory(const Segment& segment, const TicketName& name) {
  return std::static_pointer_cast<const DeviceMemory>(segment.companion_of(name));
}

Result<std::vector<os::Descriptor>> files_of(const DeviceMemory& memory) {
  return device::cuda::export_pieces(memory.buffer.device(), memory.run);
}

Result<std::vector<os::Descriptor>> files_for(Segment& segment, const TicketName& name) {
  if (segment.is_own()) {
    const std::shared_ptr<const DeviceMemory> memory = own_memory(segment, name);
    return memory == nullptr ? Result<std::vector<os::Descriptor>>(kGone) : files_of(*memory);
  }
  const Result<device::cuda::PieceRun> run = look_at_stub(segment, name);
  if (!run) return run.failure();
  const std::shared_ptr<device::cuda::ImportedPieces> imported = find_mapped({segment.id(), run->pieces});
  return imported == nullptr ? Result<std::vector<os::Descriptor>>(kUnknown) : imported->export_again();
}

Result<std::shared_ptr<device::cuda::ImportedPieces>> pieces_here(const Segment& segment, const device::cuda::PieceRun& run,
                                                                  std::span<os::Descriptor> files) {
  RunKey key{segment.id(), run.pieces};
  if (std::shared_ptr<device::cuda::ImportedPieces> there = find_mapped(key)) return there;
  if (files.empty()) return kUnknown;
  Result<std::shared_ptr<device::cuda::ImportedPieces>> made = device::cuda::import_pieces(run, files);
  if (made) enter(std::move(key), *made);
  return made;
}

}  // namespace berth::internal::share
