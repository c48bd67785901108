// SPDX-License-Identifier: Apache-2.0
#include "file/load/load_errors.h"

#include <cstring>

#include "base/text.h"

namespace berth::internal::file::load {

namespace {

// The tensor that a byte of the file belongs to.
std::string_view name_at(const LoadJob& job, const Piece& piece, std::uint64_t offset) {
  std::uint64_t end = piece.offset;
  for (const Part& part : job.plan.parts_of(piece)) {
    end += part.count * size_bytes(job.tensors[part.tensor].in_file);
    if (offset < end) return job.targets[part.tensor].name;
  }
  return {};
}

std::string asked(const LoadJob& job, const Piece& piece, std::uint64_t offset) {
  return text::join("loading tensor ", text::quoted(name_at(job, piece, offset)), " from ", text::quoted(job.files[piece.file].path),
                    " at byte ", offset);
}

std::vector<Fact> facts(const LoadJob& job, const Piece& piece, std::uint64_t offset) {
  return {{"path", text::printable(job.files[piece.file].path, 4096)},
          {"tensor", text::printable(name_at(job, piece, offset))},
          {"offset", offset}};
}

}  // namespace

void throw_unreadable(const LoadJob& job, const Piece& piece, std::uint64_t offset, const Failure& failure) {
  char reason[128];
  std::vector<Fact> known = facts(job, piece, offset);
  known.emplace_back("os_error", failure.os_error);
  throw DeviceError(failure.code,
                    {asked(job, piece, offset),
                     text::join(std::string_view(failure.why), ": ", std::string_view(strerror_r(failure.os_error, reason, sizeof reason))),
                     "the disk or the network under the file has failed: look at the kernel's log, and load it from a copy"},
                    std::move(known));
}

void throw_too_short(const LoadJob& job, const Piece& piece, std::uint64_t file_end) {
  std::vector<Fact> known = facts(job, piece, file_end);
  known.emplace_back("have", file_end);
  known.emplace_back("need", piece.offset + piece.bytes);
  throw FormatError(ErrorCode::file_truncated,
                    {asked(job, piece, file_end), text::join("the file ends at byte ", file_end, ": it was truncated after it was opened"),
                     "do not write to the file while it is loaded; to replace it, write another and rename it"},
                    std::move(known));
}

}  // namespace berth::internal::file::load
