// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "copy/route/route_stage.h"
#include "file/load/load_job.h"
#include "os/file/read_parts.h"

// One thread's way from a file into host memory, be it the target or what is sent to a device. Parts that stay as they are are read straight
// to where they belong, many in one call. Parts that change their dtype, and all parts of direct reads, come through a scratch that stays in
// the cache. Where the file can be held still, large parts are converted straight from its pages: then nothing is copied on the way.
namespace berth::internal::file::load {

class HostStage {
 public:
  explicit HostStage(LoadJob& job) noexcept : job_(job) {}

  // Brings a piece: part i of it to targets[i], in its tensor's dtype from_host. Throws as run_load does.
  void bring(const Piece& piece, std::span<std::byte* const> targets);

 private:
  // A piece being brought, and where its next byte comes from.
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
  bool convert_in_place(Cursor& at);                                   // from the file's own pages; false: nothing was done
  std::size_t take_slices(Cursor& at, std::size_t most);               // what comes next, up to so many bytes; how many
  void place_slices(const Cursor& at, const std::byte* source) const;  // converted, from where they are now
  // The bytes [offset, offset + bytes) of the file, somewhere in the scratch.
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
