// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "record/trace_layout.h"
#include "support/errors.h"
#include "support/everything.h"

// Hand-made files: every inconsistent one is rejected.
namespace berth::testing {

using namespace internal::record;
namespace {

using namespace internal::record::trace_layout;

class FileMaker {
 public:
  FileMaker() { add(header); }

  template <class T>
  FileMaker& add(const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }

  FileMaker& add_chunk(std::vector<Word> words, std::uint32_t events) {
    ChunkHead head{kChunkMagic, kEventsChunk, static_cast<std::uint32_t>(words.size() * sizeof(Word)), events, 1, 1000, 2000, 1'001'000};
    add(head);
    for (const Word word : words) add(word);
    return *this;
  }

  FileMaker& add_words(std::string body, std::uint32_t words) {
    add(ChunkHead{kChunkMagic, kWordsChunk, static_cast<std::uint32_t>(body.size()), words, 0, 0, 2000, 1'001'000});
    bytes += body;
    return *this;
  }

  FileMaker& add_end(std::uint64_t events, std::uint64_t dropped = 0) {
    return add(ChunkHead{kChunkMagic, kEndChunk, sizeof(EndBody), 0, 0, 0, 3000, 1'002'000}).add(EndBody{events, dropped});
  }

  template <class T>
  std::string with(std::size_t offset, T value) const {
    std::string changed = bytes;
    std::memcpy(changed.data() + offset, &value, sizeof value);
    return changed;
  }

  FileHeader header{{'b', 'e', 'r', 't', 'h', 't', 'r', 'c'}, kVersion, 0, 1000, 1'000'000};
  std::string bytes;
};

constexpr Word word(Operation operation, Word value) { return value << kOperationBits | static_cast<Word>(operation); }

// Two blocks of one allocator, the first freed.
const std::vector<Word> kWords = {word(Operation::time, 500),     word(Operation::allocator, 3), word(Operation::stream, 4),
                                  word(Operation::allocate, 100), word(Operation::allocate, 7),  word(Operation::free, 1)};

FileMaker good() { return FileMaker().add_chunk(kWords, 3).add_end(3, 9); }

TEST(BinaryTrace, ReadsWhatTheLayoutSays) {
  const Trace trace = read_trace(good().bytes);
  const std::vector<TraceEvent> expected = {{TraceEvent::Operation::allocate, 1, 100, 4, 1'000'500, 3},
                                            {TraceEvent::Operation::allocate, 2, 7, 4, 1'000'500, 3},
                                            {TraceEvent::Operation::free, 1, 0, 0, 1'000'500, 3}};
  EXPECT_EQ(trace.events, expected);
  EXPECT_EQ(trace.dropped, 9U);
  EXPECT_TRUE(trace.complete);
}

TEST(BinaryTrace, ReadsTheTagsOfAllocations) {
  FileMaker file;
  file.add_words("\x07(other)\x06unused\x02kv", 3);
  file.add_chunk({word(Operation::allocate, 1), word(Operation::tag, 3), word(Operation::allocate, 2), word(Operation::free, 0)}, 3);
  file.add_words(std::string("\x04w\0,\n\x02kv", 8), 2);  // any bytes; and one name twice, as "(other)" can be
  file.add_chunk({word(Operation::allocator, 9), word(Operation::tag, 4), word(Operation::allocate, 3), word(Operation::tag, 5),
                  word(Operation::allocate, 4), word(Operation::tag, 0), word(Operation::allocate, 5)},
                 3);
  const Trace trace = read_trace(file.add_end(6).bytes);
  EXPECT_EQ(trace.words, (std::vector<std::string>{"", "kv", std::string("w\0,\n", 4)}));
  EXPECT_EQ(trace.tags, (std::vector<std::uint16_t>{0, 1, 0, 2, 1, 0}));
  EXPECT_EQ(trace.events.size(), 6U);
}

TEST(BinaryTrace, OfTheFirstVersionIsReadToo) {
  FileMaker file = good();
  file.bytes = file.with<std::uint32_t>(offsetof(FileHeader, version), 1);
  const Trace trace = read_trace(file.bytes);
  EXPECT_EQ(trace.events, read_trace(good().bytes).events);
  EXPECT_TRUE(trace.tags.empty());
  EXPECT_TRUE(trace.words.empty());
}

TEST(BinaryTrace, IsReadUpToTheLastWholeChunk) {
  const FileMaker one = FileMaker().add_chunk(kWords, 3);
  const std::string whole = FileMaker(one).add_chunk({word(Operation::allocator, 3), word(Operation::free, 4)}, 1).add_end(4).bytes;
  for (std::size_t length = sizeof(FileHeader); length < whole.size(); ++length) {
    const Trace trace = read_trace(whole.substr(0, length));
    EXPECT_FALSE(trace.complete) << length;
    const std::size_t chunks = (length >= one.bytes.size() ? 1U : 0U) + (length >= one.bytes.size() + 56 ? 1U : 0U);
    EXPECT_EQ(trace.events.size(), chunks == 0 ? 0U : chunks + 2) << length;
  }
  for (std::size_t length = 8; length < sizeof(FileHeader); ++length)
    EXPECT_ERROR(read_trace(whole.substr(0, length)), FormatError, ErrorCode::format_error);
}

TEST(BinaryTrace, RefusesEveryLie) {
  const FileMaker file = good();
  constexpr std::size_t kChunk = sizeof(FileHeader);
  const std::size_t end = kChunk + sizeof(ChunkHead) + kWords.size() * sizeof(Word);
  const auto of_version_1 = [](FileMaker maker) { return maker.with<std::uint32_t>(offsetof(FileHeader, version), 1); };
  const auto chunk_of = [](std::vector<Word> words, std::uint32_t events) { return FileMaker().add_chunk(std::move(words), events).bytes; };
  const std::pair<const char*, std::string> lies[] = {
      {"version", file.with<std::uint32_t>(offsetof(FileHeader, version), kVersion + 1)},
      {"no version", file.with<std::uint32_t>(offsetof(FileHeader, version), 0)},
      {"reserved", file.with<std::uint32_t>(offsetof(FileHeader, reserved), 1)},
      {"chunk magic", file.with<std::uint32_t>(kChunk, 1)},
      {"chunk kind", file.with<std::uint32_t>(kChunk + offsetof(ChunkHead, kind), 4)},
      {"body past any chunk", file.with<std::uint32_t>(kChunk + offsetof(ChunkHead, body_bytes), kChunkBytes)},
      {"body of half words", file.with<std::uint32_t>(kChunk + offsetof(ChunkHead, body_bytes), 18)},
      {"body cut", file.with<std::uint32_t>(kChunk + offsetof(ChunkHead, body_bytes), 20)},
      {"event count", file.with<std::uint32_t>(kChunk + offsetof(ChunkHead, events), 4)},
      {"first time", file.with<std::uint64_t>(kChunk + offsetof(ChunkHead, first_ticks), 999)},
      {"written time", file.with<std::uint64_t>(kChunk + offsetof(ChunkHead, written_ticks), 999)},
      {"written clock", file.with<std::uint64_t>(kChunk + offsetof(ChunkHead, written_ns), 999'999)},
      {"end's events", file.with<std::uint64_t>(end + sizeof(ChunkHead), 2)},
      {"end's size", file.with<std::uint32_t>(end + offsetof(ChunkHead, body_bytes), 8)},
      {"end with events", file.with<std::uint32_t>(end + offsetof(ChunkHead, events), 1)},
      {"bytes behind the end", file.bytes + "x"},
      {"tag without a word", chunk_of({word(Operation::tag, 1)}, 0)},
      {"tag whose word comes later", FileMaker().add_chunk({word(Operation::tag, 1)}, 0).add_words("\x01x", 1).bytes},
      {"tag in version 1", of_version_1(FileMaker().add_chunk({word(Operation::tag, 0)}, 0))},
      {"words in version 1", of_version_1(FileMaker().add_words("\x01x", 1))},
      {"count of words", FileMaker().add_words("\x01x", 2).bytes},
      {"word past the end", FileMaker().add_words("\x02x", 1).bytes},
      {"wide wide", chunk_of({word(Operation::wide, 6), 0, 0}, 0)},
      {"wide of nothing", chunk_of({word(Operation::wide, 9), 0, 0}, 0)},
      {"wide past the end", chunk_of({word(Operation::wide, 0), 0}, 0)},
      {"bytes", chunk_of({word(Operation::wide, 0), 0, 0xffffffff}, 1)},
      {"time past the end of time", chunk_of({word(Operation::wide, 5), 0xffffffff, 0xffffffff}, 0)},
      {"allocated twice", chunk_of({word(Operation::allocate, 1), word(Operation::serial, 0), word(Operation::allocate, 1)}, 2)},
  };
  EXPECT_NO_THROW(read_trace(file.bytes));
  for (const auto& [what, bytes] : lies) {
    SCOPED_TRACE(what);
    EXPECT_ERROR(read_trace(bytes, "lie.trace"), FormatError, ErrorCode::format_error);
  }
}

TEST(BinaryTrace, AFreeThatIsWrittenTooEarlyWaitsForItsAllocation) {
  const FileMaker file = FileMaker().add_chunk({word(Operation::free, 2)}, 1).add_chunk({word(Operation::allocate, 8)}, 1).add_end(2);
  const Trace trace = read_trace(file.bytes);
  ASSERT_EQ(trace.events.size(), 2U);
  EXPECT_EQ(trace.events[0].operation, TraceEvent::Operation::allocate);
  EXPECT_EQ(trace.unpaired, 0U);
}

TEST(BinaryTrace, DistancesFoldBothWays) {
  for (const std::uint64_t distance : {0ULL, 1ULL, ~0ULL, 1ULL << 63, ~0ULL >> 1, 77ULL}) EXPECT_EQ(unfold(fold(distance)), distance);
  EXPECT_EQ(fold(~0ULL), 1U);
}

}  // namespace
}  // namespace berth::testing
