// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "os/ticks.h"
#include "record/trace_layout.h"
#include "record/trace_tap.h"

// A thread's buffer of the trace: one chunk, filled by its thread without a lock. The trace's lock is held to
// write it to the file.
namespace berth::internal::record {

// The latest time that any thread has read, in ticks. Alone on its cache line, to avoid false sharing.
struct alignas(64) SharedTime {
  std::atomic<std::uint64_t> ticks{0};
};
inline constinit SharedTime g_trace_time;

class TraceBuffer {
 public:
  // A consistent snapshot of a chunk: its bytes and events, and the greatest id of the tags that they name.
  struct Content {
    std::uint32_t body_bytes;
    std::uint32_t events;
    std::uint16_t last_tag;
  };

  // The number of the trace that the content belongs to.
  std::uint64_t session() const noexcept { return session_; }

  // Whether refresh() is due. The buffer's thread tests this before every event.
  bool is_stale() const noexcept { return at_ >= stale_at_; }

  // Reads the clock for all threads. False when the buffer is full, and must be written first.
  bool refresh() noexcept {
    const std::ptrdiff_t left = words_.data() + kMostStart - at_;
    if (left <= 0) return false;
    stale_at_ = at_ + std::min(kTimeEvery, left);
    // relaxed, here and below: times are approximate and order nothing.
    g_trace_time.ticks.store(os::ticks(), std::memory_order_relaxed);
    return true;
  }

  // REQUIRES, of both: called by the buffer's thread; not stale.
  void add_allocation(std::uint64_t allocator_id, std::uint64_t serial, std::size_t bytes, std::uint64_t stream_id, Tag tag) noexcept {
    trace_layout::Word* at = put_context(at_, allocator_id);
    if (stream_id != stream_) [[unlikely]]
      at = trace_layout::put_record(at, trace_layout::Operation::stream, stream_ = stream_id);
    if (tag.id() != tag_) [[unlikely]] {
      at = trace_layout::put_record(at, trace_layout::Operation::tag, tag_ = tag.id());
      last_tag_ = std::max(last_tag_, tag_);
    }
    if (serial != serial_ + 1) [[unlikely]]
      at = put_serial(at, serial - 1);
    end_event(trace_layout::put_record(at, trace_layout::Operation::allocate, bytes));
    serial_ = serial;
  }
  void add_free(std::uint64_t allocator_id, std::uint64_t serial) noexcept {
    trace_layout::Word* at = put_context(at_, allocator_id);
    std::uint64_t distance = trace_layout::fold(serial - serial_);
    if (distance > trace_layout::kMostNarrow) [[unlikely]] {
      at = put_serial(at, serial);
      distance = 0;
    }
    end_event(trace_layout::put_record(at, trace_layout::Operation::free, distance));
  }

  // Clears the buffer for a session. Called by the buffer's thread.
  void restart(std::uint64_t session, std::uint64_t now_ticks) noexcept {
    session_ = session;
    first_ticks_ = time_ = now_ticks;
    allocator_ = stream_ = serial_ = 0;
    tag_ = last_tag_ = 0;
    events_ = 0;
    at_ = stale_at_ = words_.data();
    content_.store(0, std::memory_order_relaxed);  // relaxed: other readers hold the lock
  }

  Content content() const noexcept {
    const std::uint64_t both = content_.load(std::memory_order_acquire);
    return {static_cast<std::uint16_t>(both) * static_cast<std::uint32_t>(sizeof(trace_layout::Word)),
            static_cast<std::uint32_t>(both >> 32), static_cast<std::uint16_t>(both >> 16)};
  }
  std::uint64_t first_ticks() const noexcept { return first_ticks_; }

  // The chunk as it is written to the file.
  const void* finish(const trace_layout::ChunkHead& head) noexcept {
    head_ = head;
    return &head_;
  }

  // Links in the list of all buffers.
  TraceBuffer* next = nullptr;
  TraceBuffer* previous = nullptr;
  std::uint64_t thread = 0;  // 0: not in the list

 private:
  static constexpr std::size_t kBytes = 4096;  // what a process that is killed loses of each thread, at most
  static constexpr std::size_t kWords = (kBytes - sizeof(trace_layout::ChunkHead)) / sizeof(trace_layout::Word);
  static_assert(kBytes <= trace_layout::kChunkBytes);
  static_assert(kWords <= 0xffff, "content_ has 16 bits for them");
  static constexpr std::size_t kMostEventWords = 6 * trace_layout::kMostRecordWords;
  static constexpr std::size_t kMostStart = kWords - kMostEventWords;
  static constexpr std::ptrdiff_t kTimeEvery = 64;  // words, which approximates events

  trace_layout::Word* put_context(trace_layout::Word* at, std::uint64_t allocator_id) noexcept {
    using enum trace_layout::Operation;
    const std::uint64_t now = g_trace_time.ticks.load(std::memory_order_relaxed);
    if (now > time_) [[unlikely]] {
      at = trace_layout::put_record(at, time, now - time_);
      time_ = now;
    }
    if (allocator_id != allocator_) [[unlikely]]
      at = trace_layout::put_record(at, allocator, allocator_ = allocator_id);
    return at;
  }

  void end_event(trace_layout::Word* at) noexcept {
    at_ = at;
    ++events_;
    // release: a thread that reads this to write the buffer sees the records it covers.
    const auto words = static_cast<std::uint32_t>(at - words_.data());
    content_.store(std::uint64_t{events_} << 32 | std::uint32_t{last_tag_} << 16 | words, std::memory_order_release);
  }

  trace_layout::Word* put_serial(trace_layout::Word* at, std::uint64_t last) noexcept {
    return trace_layout::put_record(at, trace_layout::Operation::serial, serial_ = last);
  }

  // For the buffer's thread alone, except that session_ and first_ticks_ change only under the lock.
  trace_layout::Word* at_ = nullptr;        // address of the next record
  trace_layout::Word* stale_at_ = nullptr;  // refresh() is due once at_ reaches it; <= words_ + kMostStart
  std::uint64_t session_ = 0;
  std::uint64_t first_ticks_ = 0;
  std::uint64_t time_ = 0;
  std::uint64_t allocator_ = 0;
  std::uint64_t stream_ = 0;
  std::uint64_t serial_ = 0;  // the last serial: of an allocation, or set by put_serial
  std::uint32_t events_ = 0;
  std::uint16_t tag_ = 0;
  std::uint16_t last_tag_ = 0;  // the greatest tag_ of the chunk

  std::atomic<std::uint64_t> content_{0};  // events_, last_tag_ and the words before at_, for other threads

  // The chunk: these two are contiguous.
  trace_layout::ChunkHead head_;
  std::array<trace_layout::Word, kWords> words_;
};

}  // namespace berth::internal::record
