// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "copy/route/route_stage.h"
#include "file/load/load_job.h"
#include "os/file/read_parts.h"

// Reads a file into host memory, either the target or the staging buffer of a device. Parts without conversion
// are read directly to their target, many in one call. Parts that are converted, and all parts of direct reads,
// go through a scratch buffer that stays in the cache. If the file can be leased (os/file/leased_file.h), large
// parts are converted directly from its mapped pages, without a copy. Each thread has its own stage.
namespace berth::internal::file::load {

class HostStage {
 public:
  explicit HostStage(LoadJob& job) noexcept : job_(job) {}

  // Loads a piece: part i of it to targets[i], in its tensor's dtype from_host. Throws as run_load does.
  void bring(const Piece& piece, std::span<std::byte* const> targets);

 private:
  // A piece being loaded, and the position of its next byte.
  struct Cursor {
    const Piece& piece;
    std::span<const Part> parts;
    std::span<std::byte* const> targets;
    std::uint64_t offset;   // in the file
    std::size_t part = 0;   // of the piece
    std::size_t first = 0;  // element of the part

    bool done() const noexcept { return part == parts.size(); }
  };
  // Elements of a part that are converted together with others.
  struct Slice {
    std::size_t part;
    std::size_t first;
    std::size_t count;
  };

  const FileTensor& tensor_of(const Part& part) const noexcept { return job_.tensors[part.tensor]; }
  bool is_straight(const Part& part) const noexcept;
  void read_straight(Cursor& at);
  void read_through_scratch(Cursor& at);
  bool convert_in_place(Cursor& at);                                   // from the mapped file; false: nothing
                                                                       // was done
  std::size_t take_slices(Cursor& at, std::size_t most);               // the next slices, up to `most` bytes;
                                                                       // returns the bytes
  void place_slices(const Cursor& at, const std::byte* source) const;  // converts them to their targets
  // Reads the bytes [offset, offset + bytes) of the file into the scratch buffer; returns their address.
  const std::byte* fill_scratch(const Piece& piece, std::uint64_t offset, std::size_t bytes);
  const std::byte* fill_scratch_direct(const Piece& piece, std::uint64_t offset, std::size_t bytes);
  // Throws unless that many bytes were read.
  void require_read(const Piece& piece, std::uint64_t offset, std::size_t bytes, const Result<std::size_t>& read) const;

  LoadJob& job_;
  std::unique_ptr<copy::Scratch> scratch_;  // made when first needed
  std::vector<os::ReadTarget> ranges_;
  std::vector<Slice> slices_;
};

}  // namespace berth::internal::file::load
