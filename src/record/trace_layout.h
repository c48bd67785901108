// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The binary format of a trace file, for its writer (record/trace_file.cc) and its reader
// (observe/binary_trace.cc). Numbers are little-endian.
//
//     file     | header, 32 bytes | chunk | chunk | ... | end |
//
//     chunk    | head, 48 bytes | body: records, one after another |       of one thread, in its order
//     words    | head, 48 bytes | body: length, 1 byte, and text, for each |   tags, before their first use
//     end      | head, 48 bytes | body: EndBody |                          missing when the process was killed
//
//     record   | word, 4 bytes |  or, where the value has more than 29 bits,  | wide word | value, 8 bytes |
//     word       value in bits 3-31, operation in bits 0-2; a wide word has the value's operation in bits 3-5
//
//     operation      value
//     allocate       bytes of the block; its serial is the last one (0) plus 1, and becomes the last one
//     free           distance of the block's serial from the last serial, folded
//     serial         sets the last serial
//     allocator      the id of the allocator of the records that follow (0)
//     stream         the id of the stream of the allocations that follow (0)
//     time           ticks since the previous time (the chunk's first_ticks)
//     tag            of the allocations that follow: index of its word in the file, from 1, or 0 for none (0)
//
// The value at the start of a chunk is in parentheses: each chunk can be decoded without the others. Not every
// event has a time, as reading a clock costs more than the rest: a thread reads it about every 64th event and
// publishes it, and the others record the latest published time. So events of different threads are ordered to
// within about that many. The length of a tick follows from the two clocks in the header and in each head.
//
// Version 1 has no words and no tags; the rest is the same.
namespace berth::internal::record::trace_layout {

constexpr char kMagic[8] = {'b', 'e', 'r', 't', 'h', 't', 'r', 'c'};
constexpr std::uint32_t kVersion = 2;
constexpr std::uint32_t kOldestVersion = 1;  // that the reader accepts
constexpr std::uint32_t kFirstWithTags = 2;
constexpr std::uint32_t kChunkMagic = 0x6b6e6863;  // "chnk"
constexpr std::uint32_t kChunkBytes = 64 * 1024;   // at most, head and body
constexpr std::uint32_t kEventsChunk = 1;
constexpr std::uint32_t kEndChunk = 2;
constexpr std::uint32_t kWordsChunk = 3;
constexpr std::size_t kMostWordBytes = 255;

struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t reserved;  // 0
  std::uint64_t start_ticks;
  std::uint64_t start_ns;  // steady clock, at the same time
};
static_assert(sizeof(FileHeader) == 32);

struct ChunkHead {
  std::uint32_t magic;
  std::uint32_t kind;
  std::uint32_t body_bytes;
  std::uint32_t events;         // allocations and frees in the body; of a words chunk, words
  std::uint64_t thread;         // thread number, from 1; 0 for the end and for words
  std::uint64_t first_ticks;    // the time of the first record
  std::uint64_t written_ticks;  // when the chunk was written
  std::uint64_t written_ns;     // steady clock, at the same time
};
static_assert(sizeof(ChunkHead) == 48);

struct EndBody {
  std::uint64_t events;   // in all chunks
  std::uint64_t dropped;  // events that were not written
};
static_assert(sizeof(EndBody) == 16);

enum class Operation : std::uint8_t { allocate, free, serial, allocator, stream, time, wide, tag };

using Word = std::uint32_t;
constexpr unsigned kOperationBits = 3;
constexpr Word kOperationMask = 7;
constexpr std::uint64_t kMostNarrow = ~Word{0} >> kOperationBits;
constexpr std::size_t kMostRecordWords = 3;

// Zigzag encoding of signed distances: 0, -1, 1, -2, 2 become 0, 1, 2, 3, 4. Arithmetic is modulo 2^64, so
// nothing overflows.
constexpr std::uint64_t fold(std::uint64_t distance) noexcept { return (distance << 1) ^ (0 - (distance >> 63)); }
constexpr std::uint64_t unfold(std::uint64_t folded) noexcept { return (folded >> 1) ^ (0 - (folded & 1)); }

// Writes a record and returns the address after it.
inline Word* put_record(Word* at, Operation operation, std::uint64_t value) noexcept {
  const auto code = static_cast<Word>(operation);
  if (value > kMostNarrow) [[unlikely]] {
    at[0] = code << kOperationBits | static_cast<Word>(Operation::wide);
    at[1] = static_cast<Word>(value);
    at[2] = static_cast<Word>(value >> 32);
    return at + 3;
  }
  at[0] = static_cast<Word>(value) << kOperationBits | code;
  return at + 1;
}

}  // namespace berth::internal::record::trace_layout
