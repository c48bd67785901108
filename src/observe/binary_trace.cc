// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/text.h"
#include "berth/base/checked.h"
#include "observe/block_name.h"
#include "observe/trace_forms.h"
#include "record/trace_layout.h"

// Reads what record/trace_file.cc writes; the bytes are drawn in record/trace_layout.h. Nothing in them is believed: every length is
// checked against what is left, every count against what was found.
namespace berth {

namespace {

using namespace trace_layout;

[[noreturn]] void refuse(std::string_view name, std::size_t offset, std::string why) {
  throw FormatError(ErrorCode::format_error,
                    {text::join("reading ", text::printable(name), " at byte ", offset), std::move(why), "record the trace again"},
                    {{"offset", offset}});
}

// The records of one chunk.
class ChunkReader {
 public:
  ChunkReader(std::string_view body, const ChunkHead& head, std::string_view name, std::size_t offset)
      : body_(body), events_expected_(head.events), time_(head.first_ticks), name_(name), offset_(offset) {}

  // Appends its events, with ticks for times.
  void read(std::vector<TraceEvent>& events) {
    const std::size_t before = events.size();
    if (body_.size() % sizeof(Word) != 0) refuse_here("a chunk is not whole words");
    while (at_ < body_.size()) read_record(events);
    if (events.size() - before != events_expected_) refuse_here("a chunk has not as many events as it says");
  }

 private:
  void read_record(std::vector<TraceEvent>& events) {
    const auto word = next<Word>();
    auto operation = static_cast<Operation>(word & kOperationMask);
    std::uint64_t value = word >> kOperationBits;
    if (operation == Operation::wide) {
      if (value > kOperationMask) refuse_here("this is no record");
      operation = static_cast<Operation>(value);
      value = next<std::uint64_t>();
    }
    switch (operation) {
      case Operation::allocate: return add_allocation(events, value);
      case Operation::free: events.push_back({TraceEvent::Operation::free, serial_ + unfold(value), 0, 0, time_, allocator_}); return;
      case Operation::serial: serial_ = value; return;
      case Operation::allocator: allocator_ = value; return;
      case Operation::stream: stream_ = value; return;
      case Operation::time: return add_time(value);
      case Operation::wide: break;
    }
    refuse_here("this is no record");
  }

  void add_allocation(std::vector<TraceEvent>& events, std::uint64_t bytes) {
    if (bytes > kMaxBytes) refuse_here("no address space holds that many bytes");
    events.push_back({TraceEvent::Operation::allocate, ++serial_, bytes, stream_, time_, allocator_});
  }

  void add_time(std::uint64_t ticks) {
    const auto sum = try_add(time_, ticks);
    if (!sum) refuse_here("a time is past the end of time");
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
  std::string_view name_;
  std::size_t offset_;  // of the body in the file
};

class FileReader {
 public:
  FileReader(std::string_view bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  RecordedTrace read() {
    read_header();
    trace_.complete = false;
    while (!trace_.complete && read_chunk()) {
    }
    if (trace_.complete && at_ != bytes_.size()) refuse(name_, at_, "there are bytes behind the end");
    std::ranges::stable_sort(trace_.events, {}, &TraceEvent::time_ns);
    set_times();
    return std::move(trace_);
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
    if (header_.version != kVersion) {
      throw FormatError(ErrorCode::format_error,
                        {text::join("reading ", text::printable(name_)),
                         text::join("it is of version ", header_.version, ", and this library reads ", kVersion),
                         "use the version of berth that wrote it"},
                        {{"version", header_.version}});
    }
    if (header_.reserved != 0) refuse(name_, offsetof(FileHeader, reserved), "a reserved field is in use");
    last_ticks_ = header_.start_ticks;
    last_ns_ = header_.start_ns;
  }

  // False when the file ends in the middle, as when the process that wrote it was killed.
  bool read_chunk() {
    const std::size_t start = at_;
    ChunkHead head{};
    if (!take(head)) return false;
    if (head.magic != kChunkMagic || (head.kind != kEventsChunk && head.kind != kEndChunk)) refuse(name_, start, "this is no chunk");
    if (head.body_bytes > kChunkBytes - sizeof head) refuse(name_, start, "a chunk is longer than any is");
    if (head.written_ticks < header_.start_ticks || head.written_ns < header_.start_ns) refuse(name_, start, "a clock went backwards");
    if (!fits(at_, head.body_bytes, bytes_.size())) return false;
    last_ticks_ = std::max(last_ticks_, head.written_ticks);
    last_ns_ = std::max(last_ns_, head.written_ns);
    if (head.kind == kEndChunk) {
      read_end(head, start);
      return true;
    }
    if (head.first_ticks < header_.start_ticks) refuse(name_, start, "a clock went backwards");
    ChunkReader(bytes_.substr(at_, head.body_bytes), head, name_, at_).read(trace_.events);
    at_ += head.body_bytes;
    return true;
  }

  void read_end(const ChunkHead& head, std::size_t start) {
    EndBody end{};
    if (head.body_bytes != sizeof end || head.events != 0 || !take(end)) refuse(name_, start, "this is no end of a trace");
    if (end.events != trace_.events.size()) refuse(name_, start, "the trace has not as many events as its end says");
    trace_.dropped = end.dropped;
    trace_.complete = true;
  }

  // From ticks to nanoseconds of the steady clock, by the first and the last moment at which both are known.
  void set_times() {
    const std::uint64_t ticks = last_ticks_ - header_.start_ticks;
    const double length_ns = ticks == 0 ? 0 : static_cast<double>(last_ns_ - header_.start_ns) / static_cast<double>(ticks);
    for (TraceEvent& event : trace_.events) {
      const std::uint64_t since = std::min(event.time_ns - header_.start_ticks, ticks);  // nothing is later than the last chunk
      event.time_ns = header_.start_ns + static_cast<std::uint64_t>(static_cast<double>(since) * length_ns);
    }
  }

  std::string_view bytes_;
  std::string_view name_;
  std::size_t at_ = 0;
  FileHeader header_{};
  std::uint64_t last_ticks_ = 0;
  std::uint64_t last_ns_ = 0;
  RecordedTrace trace_;
};

// Puts every free behind its allocation. Threads are ordered only roughly by time, so a free may come first: it waits for its
// allocation. Where that never comes (it was before the trace began, or was dropped) the free is left out.
class Pairing {
 public:
  explicit Pairing(std::string_view name) : name_(name) {}

  std::vector<TraceEvent> pair(const std::vector<TraceEvent>& events) {
    paired_.reserve(events.size());
    for (const TraceEvent& event : events) {
      const BlockName block{event.allocator_id, event.serial};
      event.operation == TraceEvent::Operation::allocate ? allocate(event, block) : free(event, block);
    }
    return std::move(paired_);
  }

  std::uint64_t unpaired() const noexcept { return unpaired_; }

 private:
  enum class State : std::uint8_t { live, free_waits };

  void allocate(const TraceEvent& event, const BlockName& block) {
    const auto [found, fresh] = blocks_.emplace(block, State::live);
    if (!fresh && found->second == State::live) {
      throw FormatError(
          ErrorCode::format_error,
          {text::join("reading ", text::printable(name_)),
           text::join("block ", block.serial, " of allocator ", block.allocator_id, " is allocated twice"), "record the trace again"},
          {{"serial", block.serial}, {"allocator", block.allocator_id}});
    }
    paired_.push_back(event);
    if (fresh) return;
    blocks_.erase(found);
    --unpaired_;
    paired_.push_back(event);
    paired_.back().operation = TraceEvent::Operation::free;
  }

  void free(const TraceEvent& event, const BlockName& block) {
    const auto [found, fresh] = blocks_.emplace(block, State::free_waits);
    if (!fresh && found->second == State::live) {
      blocks_.erase(found);
      paired_.push_back(event);
      return;
    }
    ++unpaired_;
  }

  std::string_view name_;
  std::vector<TraceEvent> paired_;
  std::unordered_map<BlockName, State, BlockNameHash> blocks_;
  std::uint64_t unpaired_ = 0;
};

}  // namespace

bool is_binary_trace(std::string_view bytes) noexcept { return bytes.starts_with(std::string_view(kMagic, sizeof kMagic)); }

RecordedTrace read_binary_trace(std::string_view bytes, std::string_view name) {
  RecordedTrace trace = FileReader(bytes, name).read();
  Pairing pairing(name);
  trace.events = pairing.pair(trace.events);
  trace.unpaired = pairing.unpaired();
  return trace;
}

}  // namespace berth
