// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <memory_resource>
#include <unordered_map>
#include <utility>

#include "base/allowance.h"
#include "base/text.h"
#include "berth/base/checked.h"
#include "observe/block_name.h"
#include "observe/trace_forms.h"
#include "record/trace_layout.h"

// Reads what record/trace_file.cc writes; record/trace_layout.h draws the format. The input is untrusted: every
// length is checked against what is left, every count against what was found.
namespace berth {

using namespace internal;
using namespace internal::observe;
using namespace internal::record;

namespace {

using namespace trace_layout;

constexpr std::size_t kMostWords = 65'536;  // including the empty one

[[noreturn]] void refuse(std::string_view name, std::size_t offset, std::string why) {
  throw FormatError(ErrorCode::format_error,
                    {text::join("reading ", text::printable(name), " at byte ", offset), std::move(why), "record the trace again"},
                    {{"offset", offset}});
}

// An event, and the index of its tag among the words of the file. A free has no tag.
struct Tagged {
  TraceEvent event;
  std::uint32_t tag = 0;
};
using TaggedEvents = std::vector<Tagged>;

// The records of one chunk.
class ChunkReader {
 public:
  // `words`: the number of words in the file so far, including the empty one; 0 if the version has no tags.
  ChunkReader(std::string_view body, const ChunkHead& head, std::size_t words, std::string_view name, std::size_t offset)
      : body_(body), events_expected_(head.events), time_(head.first_ticks), words_(words), name_(name), offset_(offset) {}

  // Appends its events, with ticks as times.
  void read(TaggedEvents& events) {
    const std::size_t before = events.size();
    base::checkpoint_now();
    if (body_.size() % sizeof(Word) != 0) refuse_here("a chunk is not whole words");
    while (at_ < body_.size()) read_record(events);
    if (events.size() - before != events_expected_) refuse_here("a chunk does not have as many events as its header says");
  }

 private:
  void read_record(TaggedEvents& events) {
    const auto word = next<Word>();
    auto operation = static_cast<Operation>(word & kOperationMask);
    std::uint64_t value = word >> kOperationBits;
    if (operation == Operation::wide) {
      if (value > kOperationMask) refuse_here("this is not a record");
      operation = static_cast<Operation>(value);
      value = next<std::uint64_t>();
    }
    switch (operation) {
      case Operation::allocate: return add_allocation(events, value);
      case Operation::free: base::append(events, {{TraceEvent::Operation::free, serial_ + unfold(value), 0, 0, time_, allocator_}}); return;
      case Operation::serial: serial_ = value; return;
      case Operation::allocator: allocator_ = value; return;
      case Operation::stream: stream_ = value; return;
      case Operation::time: return add_time(value);
      case Operation::tag: return set_tag(value);
      case Operation::wide: break;
    }
    refuse_here("this is not a record");
  }

  void add_allocation(TaggedEvents& events, std::uint64_t bytes) {
    if (bytes > kMaxBytes) refuse_here("no address space holds that many bytes");
    base::append(events, {{TraceEvent::Operation::allocate, ++serial_, bytes, stream_, time_, allocator_}, tag_});
  }

  void set_tag(std::uint64_t number) {
    if (words_ == 0) refuse_here("this is not a record");  // not in this version
    if (number >= words_) refuse_here("a tag's number is out of range");
    tag_ = static_cast<std::uint32_t>(number);
  }

  void add_time(std::uint64_t ticks) {
    const auto sum = try_add(time_, ticks);
    if (!sum) refuse_here("a time does not fit in 64 bits");
    time_ = *sum;
  }

  template <class T>
  T next() {
    T value{};
    if (!fits(at_, sizeof value, body_.size())) refuse_here("a record reaches past the end of its chunk");
    std::memcpy(&value, body_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  [[noreturn]] void refuse_here(const char* why) const { refuse(name_, offset_ + at_, why); }

  std::string_view body_;
  std::size_t at_ = 0;
  std::uint32_t events_expected_;
  std::uint64_t time_;
  std::uint64_t allocator_ = 0;
  std::uint64_t stream_ = 0;
  std::uint64_t serial_ = 0;  // the last one
  std::uint32_t tag_ = 0;     // < words_, or 0
  std::size_t words_;
  std::string_view name_;
  std::size_t offset_;  // of the body in the file
};

// The content of a file, ordered by time, not paired yet.
struct FileContent {
  TaggedEvents events;
  std::vector<std::string_view> words;  // by index; the first is "". Views of the file
  std::uint64_t dropped = 0;
  bool complete = false;
};

class FileReader {
 public:
  FileReader(std::string_view bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  FileContent read() {
    read_header();
    base::reserve(found_.events, most_events());
    while (!found_.complete && read_chunk()) {
    }
    if (found_.complete && at_ != bytes_.size()) refuse(name_, at_, "there are bytes after the end");
    sort_by_time();
    set_times();
    return std::move(found_);
  }

 private:
  template <class T>
  bool take(T& value) {
    if (!fits(at_, sizeof value, bytes_.size())) return false;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return true;
  }

  void read_header() {
    if (!take(header_)) refuse(name_, 0, "the file is shorter than its header");
    if (header_.version < kOldestVersion || header_.version > kVersion) {
      throw FormatError(ErrorCode::format_error,
                        {text::join("reading ", text::printable(name_)),
                         text::join("it is of version ", header_.version, ", and this library reads ", kOldestVersion, " to ", kVersion),
                         "use the version of berth that wrote it"},
                        {{"version", header_.version}});
    }
    if (header_.reserved != 0) refuse(name_, offsetof(FileHeader, reserved), "a reserved field is in use");
    last_ticks_ = header_.start_ticks;
    last_ns_ = header_.start_ns;
    if (has_tags()) found_.words.emplace_back();
  }

  // By the heads of the chunks, which are not to be trusted: an event takes a word at least.
  std::size_t most_events() const {
    std::size_t count = 0;
    ChunkHead head{};
    for (std::size_t at = at_; fits(at, sizeof head, bytes_.size()); at += head.body_bytes) {
      std::memcpy(&head, bytes_.data() + at, sizeof head);
      at += sizeof head;
      if (!fits(at, head.body_bytes, bytes_.size())) break;
      if (head.kind == kEventsChunk) count += std::min<std::size_t>(head.events, head.body_bytes / sizeof(Word));
    }
    return count;
  }

  // A program of one thread wrote them in order.
  void sort_by_time() {
    const auto time_of = [](const Tagged& one) { return one.event.time_ns; };
    if (std::ranges::is_sorted(found_.events, {}, time_of)) return;
    const std::size_t half = (found_.events.size() + 1) / 2 * sizeof(Tagged);  // that a stable sort copies
    base::take(half);
    std::ranges::stable_sort(found_.events, {}, time_of);
    base::give(half);
  }

  bool has_tags() const noexcept { return header_.version >= kFirstWithTags; }

  bool is_kind(std::uint32_t kind) const noexcept {
    return kind == kEventsChunk || kind == kEndChunk || (kind == kWordsChunk && has_tags());
  }

  // False when the file is truncated, for example because the process that wrote it was killed.
  bool read_chunk() {
    const std::size_t start = at_;
    ChunkHead head{};
    if (!take(head)) return false;
    if (head.magic != kChunkMagic || !is_kind(head.kind)) refuse(name_, start, "this is not a chunk");
    if (head.body_bytes > kChunkBytes - sizeof head) refuse(name_, start, "a chunk is longer than the format allows");
    if (head.written_ticks < header_.start_ticks || head.written_ns < header_.start_ns) refuse(name_, start, "a clock went backwards");
    if (!fits(at_, head.body_bytes, bytes_.size())) return false;
    last_ticks_ = std::max(last_ticks_, head.written_ticks);
    last_ns_ = std::max(last_ns_, head.written_ns);
    if (head.kind == kEndChunk) {
      read_end(head, start);
      return true;
    }
    const std::string_view body = bytes_.substr(at_, head.body_bytes);
    head.kind == kWordsChunk ? read_words(body, head) : read_events(body, head, start);
    at_ += head.body_bytes;
    return true;
  }

  void read_events(std::string_view body, const ChunkHead& head, std::size_t start) {
    if (head.first_ticks < header_.start_ticks) refuse(name_, start, "a clock went backwards");
    ChunkReader(body, head, found_.words.size(), name_, at_).read(found_.events);
  }

  void read_words(std::string_view body, const ChunkHead& head) {
    std::uint32_t count = 0;
    for (; !body.empty(); ++count) {
      const std::size_t length = static_cast<unsigned char>(body.front());
      if (length > body.size() - 1) refuse(name_, at_, "a word reaches past the end of its chunk");
      base::append(found_.words, body.substr(1, length));
      body.remove_prefix(length + 1);
    }
    if (count != head.events) refuse(name_, at_, "a chunk does not have as many words as its header says");
    if (found_.words.size() > kMostWords) refuse(name_, at_, "there are more than 65,535 different tags");
  }

  void read_end(const ChunkHead& head, std::size_t start) {
    EndBody end{};
    if (head.body_bytes != sizeof end || head.events != 0 || !take(end)) refuse(name_, start, "this is not the end of a trace");
    if (end.events != found_.events.size()) refuse(name_, start, "the trace does not have as many events as its end says");
    found_.dropped = end.dropped;
    found_.complete = true;
  }

  // Converts ticks to nanoseconds of the steady clock, by linear interpolation between the first and the last
  // point in time at which both are known.
  void set_times() {
    const std::uint64_t ticks = last_ticks_ - header_.start_ticks;
    const double length_ns = ticks == 0 ? 0 : static_cast<double>(last_ns_ - header_.start_ns) / static_cast<double>(ticks);
    for (auto& [event, tag] : found_.events) {
      // No event is later than the last chunk.
      const std::uint64_t since = std::min(event.time_ns - header_.start_ticks, ticks);
      event.time_ns = header_.start_ns + static_cast<std::uint64_t>(static_cast<double>(since) * length_ns);
    }
  }

  std::string_view bytes_;
  std::string_view name_;
  std::size_t at_ = 0;
  FileHeader header_{};
  std::uint64_t last_ticks_ = 0;
  std::uint64_t last_ns_ = 0;
  FileContent found_;
};

// Puts every free after its allocation. Events of different threads are ordered only approximately by time, so
// a free may come first: then it waits for its allocation. If that never comes (it was before the trace began,
// or was dropped) the free is left out.
class Pairing {
 public:
  explicit Pairing(std::string_view name) : name_(name) { base::take(kTablePieceBytes); }
  ~Pairing() { base::give(blocks_.size() * base::kHashEntry + kTablePieceBytes); }
  Pairing(const Pairing&) = delete;
  Pairing& operator=(const Pairing&) = delete;

  // In place: what comes out for an event replaces that event, or a free before it that waited. Returns how many frees
  // were left out.
  std::uint64_t pair(TaggedEvents& events) {
    paired_ = events.begin();
    for (const Tagged one : events) {  // a copy: it may be replaced
      base::checkpoint();
      const BlockName block{one.event.allocator_id, one.event.serial};
      one.event.operation == TraceEvent::Operation::allocate ? allocate(one, block) : free(one, block);
    }
    events.erase(paired_, events.end());
    return unpaired_;
  }

 private:
  enum class State : std::uint8_t { live, free_waits };

  void allocate(const Tagged& one, const BlockName& block) {
    const auto [found, fresh] = base::emplace(blocks_, block, State::live);
    if (!fresh && found->second == State::live) {
      throw FormatError(
          ErrorCode::format_error,
          {text::join("reading ", text::printable(name_)),
           text::join("block ", block.serial, " of allocator ", block.allocator_id, " is allocated twice"), "record the trace again"},
          {{"serial", block.serial}, {"allocator", block.allocator_id}});
    }
    *paired_++ = one;
    if (fresh) return;
    base::erase(blocks_, found);
    --unpaired_;
    *paired_ = {one.event};
    paired_++->event.operation = TraceEvent::Operation::free;
  }

  void free(const Tagged& one, const BlockName& block) {
    const auto [found, fresh] = base::emplace(blocks_, block, State::free_waits);
    if (!fresh && found->second == State::live) {
      base::erase(blocks_, found);
      *paired_++ = one;
      return;
    }
    ++unpaired_;
  }

  std::string_view name_;
  TaggedEvents::iterator paired_;  // where the next one goes
  // In pieces that go back to the system at the end: malloc would keep what lies between others, beside the events that come.
  std::pmr::unsynchronized_pool_resource pieces_{kTablePieces};
  std::pmr::unordered_map<BlockName, State, BlockNameHash> blocks_{&pieces_};
  std::uint64_t unpaired_ = 0;
};

// Collects the words that events use, in order of first use: a program may intern many that no event has.
class UsedWords {
 public:
  UsedWords(const std::vector<std::string_view>& words, Trace& trace) : words_(words), trace_(trace) {
    base::reserve(numbers_, words.size());
    numbers_.resize(words.size());
    trace_.words.emplace_back();
  }

  void add(std::uint32_t tag) { base::append(trace_.tags, tag == 0 ? std::uint16_t{0} : number_of(tag)); }

 private:
  std::uint16_t number_of(std::uint32_t tag) {
    std::uint16_t& number = numbers_[tag];
    if (number != 0 || words_[tag].empty()) return number;
    const auto [found, fresh] = base::emplace(known_, words_[tag], static_cast<std::uint16_t>(trace_.words.size()));
    if (fresh) {
      base::take_text(words_[tag].size());
      base::append(trace_.words, std::string(words_[tag]));
    }
    return number = found->second;
  }

  const std::vector<std::string_view>& words_;
  std::vector<std::uint16_t> numbers_;  // by index in words_, the index in Trace::words; 0: none yet
  std::unordered_map<std::string_view, std::uint16_t> known_;
  Trace& trace_;
};

}  // namespace

bool internal::observe::is_binary_trace(std::string_view bytes) noexcept {
  return bytes.starts_with(std::string_view(kMagic, sizeof kMagic));
}

Trace internal::observe::read_binary_trace(std::string_view bytes, std::string_view name) {
  FileContent content = FileReader(bytes, name).read();
  TaggedEvents& events = content.events;
  const std::uint64_t unpaired = Pairing(name).pair(events);  // whose table is freed before more is built
  Trace trace{.events = {}, .dropped = content.dropped, .unpaired = unpaired, .complete = content.complete};
  base::reserve(trace.events, events.size());
  for (const Tagged& one : events) trace.events.push_back(one.event);
  if (std::ranges::none_of(events, [](const Tagged& one) { return one.tag != 0; })) return trace;
  UsedWords used(content.words, trace);
  base::reserve(trace.tags, events.size());
  for (const Tagged& one : events) used.add(one.tag);
  return trace;
}

}  // namespace berth
