// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <algorithm>

#include "berth/base/error.h"
#include "cli/input.h"
#include "fuzz/file.h"
#include "fuzz/target.h"

// Input files of the command line, plain or gzip: what is accepted is what zlib decompresses in one call.
namespace berth::testing::fuzz {
namespace {

constexpr int kGzip = MAX_WBITS + 16;   // what zlib adds for the format gzip
constexpr std::size_t kMost = 1 << 16;  // larger results are not compared

struct Inflated {
  std::string bytes = {};
  std::size_t read = 0;  // of the input: the member's end
  bool whole = false;
};

Inflated inflated(std::string_view from, int format) {
  Inflated made{.bytes = std::string(kMost, '\0')};
  z_stream state{};
  if (inflateInit2(&state, format) != Z_OK) return made;
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data()));  // zlib does not write there
  state.avail_in = static_cast<uInt>(from.size());
  state.next_out = reinterpret_cast<Bytef*>(made.bytes.data());
  state.avail_out = kMost;
  made.whole = inflate(&state, Z_FINISH) == Z_STREAM_END;
  made.read = from.size() - state.avail_in;
  made.bytes.resize(kMost - state.avail_out);
  inflateEnd(&state);
  return made;
}

void run(std::string_view bytes) {
  static File file;
  file.hold(bytes);
  const std::string read = internal::cli::read_input(file.path()).bytes;
  std::string expected;
  for (std::string_view left = bytes; left.starts_with("\x1f\x8b");) {
    const Inflated member = inflated(left, kGzip);
    if (expected.size() + member.bytes.size() >= kMost) return;
    require(member.whole, "a member that was accepted is whole");
    expected += member.bytes;
    left.remove_prefix(member.read);
  }
  require(read == (bytes.starts_with("\x1f\x8b") ? std::string_view(expected) : bytes), "what was read is what is in the file");
}

// Corrects the checksum and the length of the first member, behind a header without options.
std::string mutate(Random&, std::string bytes, const Change& change) {
  constexpr std::size_t kHeader = 10;
  bytes = change(std::move(bytes));
  if (bytes.size() < kHeader) return bytes;
  bytes[3] = 0;
  const Inflated data = inflated(std::string_view(bytes).substr(kHeader), -MAX_WBITS);
  if (!data.whole) return bytes;
  const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(data.bytes.data()), static_cast<uInt>(data.bytes.size()));
  std::string tail;
  for (const uLong number : {sum, static_cast<uLong>(data.bytes.size())}) {
    for (int i = 0; i < 4; ++i) tail += static_cast<char>(number >> (8 * i));
  }
  return bytes.replace(kHeader + data.read, tail.size(), tail);
}

const Registered gzip({.name = "gzip", .run = run, .mutate = mutate, .words = {"\x1f\x8b\x08"}});

}  // namespace
}  // namespace berth::testing::fuzz
