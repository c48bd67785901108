// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <span>
#include <vector>

#include "berth/base/error.h"
#include "fuzz/target.h"
#include "share/device_memory.h"

// Stubs, which describe memory of a GPU. Whatever is accepted is inside its pieces, and is written again as it was.
namespace berth::testing::fuzz {
namespace {

using namespace internal;

void run(std::string_view bytes) {
  const Result<device::cuda::PieceRun> run = share::read_stub(std::as_bytes(std::span(bytes)));
  if (!run) throw FormatError(run.failure().code, {"reading a stub", std::string(run.failure().why), "nothing"});
  std::uint64_t total = 0;
  for (const device::cuda::PieceRun::Piece& piece : run->pieces)
    require(!__builtin_add_overflow(total, piece.bytes, &total), "pieces have a total");
  require(run->bytes > 0 && run->offset <= total && run->bytes <= total - run->offset, "what is accepted is inside its pieces");
  const std::vector<std::uint64_t> words = share::stub_words(*run);
  const std::size_t size = words.size() * sizeof words[0];
  require(size <= bytes.size() && std::memcmp(words.data(), bytes.data(), size) == 0, "a stub is written in one way");
}

const Registered stubs({.name = "stubs", .run = run, .words = {"berthgpu"}});

}  // namespace
}  // namespace berth::testing::fuzz
