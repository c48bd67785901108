// SPDX-License-Identifier: Apache-2.0
#include "berth/record/trace_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/record/tag.h"
#include "os/file/file.h"
#include "os/file/shared_file.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"
#include "os/process/no_cancel.h"
#include "os/process/thread_exit.h"
#include "os/system.h"
#include "record/emit.h"
#include "record/trace_buffer.h"
#include "record/trace_tap.h"

namespace berth {

using namespace internal;
using namespace internal::record;

namespace {

using namespace trace_layout;

constexpr std::size_t kEndBytes = sizeof(ChunkHead) + sizeof(EndBody);
constexpr std::size_t kLeastLimit = 128_KiB;
static_assert(kLeastLimit >= sizeof(FileHeader) + kChunkBytes + kEndBytes);

// In static TLS, as t_current_tag is.
constinit thread_local TraceBuffer* t_buffer [[gnu::tls_model("initial-exec")]] = nullptr;

void leave_thread(void* buffer) noexcept;

std::string with_process_id(std::string path) {
  for (std::size_t at = 0; (at = path.find("%p", at)) != std::string::npos;) path.replace(at, 2, std::to_string(os::process_id()));
  return path;
}

// For a process whose parent writes to the file of that path, or did.
Result<int> create_beside(const std::string& path) noexcept {
  try {
    const std::string own = with_process_id(path);
    return os::create_own_file((own == path ? with_process_id(path + ".%p") : own).c_str());
  } catch (const std::bad_alloc&) {
    return Failure{ErrorCode::out_of_memory, ENOMEM, "no heap for a path"};
  }
}

// The trace of the process, running or not. Its lock is acquired once per chunk and held during the write: only
// threads that have a chunk to write wait for it.
class TraceWriter final : private os::ForkListener {
 public:
  TraceWriter() noexcept { listen(); }

  bool is_running() noexcept {
    const os::Lock lock(mutex_);
    return session_ != 0;
  }

  // False, without any effect, when a trace is running already.
  bool begin(int descriptor, std::string path, std::size_t limit_bytes) noexcept {
    const os::Lock lock(mutex_);
    if (session_ != 0) return false;
    path_ = std::move(path);
    limit_bytes_ = limit_bytes;
    begin_file(descriptor);
    return true;
  }

  TraceSummary end() noexcept {
    const os::Lock lock(mutex_);
    if (!is_ours()) {
      abandon();
      return {};
    }
    for (TraceBuffer* buffer = first_; buffer != nullptr; buffer = buffer->next) write_chunk(*buffer);
    write_end();
    abandon();
    return summary_;
  }

  // This thread's buffer, with room for an event of the session; nullptr when the event is lost.
  TraceBuffer* make_room(std::uint64_t session) noexcept {
    if (t_buffer == nullptr) {
      t_buffer = new (std::nothrow) TraceBuffer;
      thread_exit_.arm(t_buffer);
    }
    const os::Lock lock(mutex_);
    if (session_ != session) return nullptr;  // the trace has ended
    if (!is_ours()) go_on_in_child();
    if (session_ == 0) return nullptr;
    if (t_buffer == nullptr) {
      ++summary_.dropped;
      return nullptr;
    }
    enlist(*t_buffer);
    write_chunk(*t_buffer);
    t_buffer->restart(session_, std::max(start_ticks_, g_trace_time.ticks.load(std::memory_order_relaxed)));
    t_buffer->refresh();
    return t_buffer;
  }

  void leave(TraceBuffer& buffer) noexcept {
    const os::Lock lock(mutex_);
    if (is_ours()) write_chunk(buffer);
    if (buffer.thread == 0) return;
    (buffer.previous != nullptr ? buffer.previous->next : first_) = buffer.next;
    if (buffer.next != nullptr) buffer.next->previous = buffer.previous;
  }

 private:
  // A forked child inherits a copy of the trace that it must not touch: the file is its parent's.
  bool is_ours() const noexcept BERTH_REQUIRES(mutex_) { return session_ != 0 && !origin_.is_inherited(); }

  // Begins the file of a trace, of which path_ and limit_bytes_ are known.
  void begin_file(int descriptor) noexcept BERTH_REQUIRES(mutex_) {
    summary_ = {};
    words_written_ = 0;
    descriptor_ = descriptor;
    const Result<os::FileFacts> file = os::facts_of(descriptor);
    file_ = file ? *file : os::FileFacts{};
    origin_ = {};
    FileHeader header{.magic = {}, .version = kVersion, .reserved = 0, .start_ticks = os::ticks(), .start_ns = os::steady_time_ns()};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    write(&header, sizeof header);
    start_ticks_ = header.start_ticks;
    g_trace_time.ticks.store(start_ticks_, std::memory_order_relaxed);
    session_ = ++last_session_;
    g_trace_session.store(session_, std::memory_order_relaxed);
    g_watchers.add(1);
  }

  // A forked child has a trace of its own, from its first event on.
  void go_on_in_child() noexcept BERTH_REQUIRES(mutex_) {
    abandon();
    const os::NoCancel no_cancel;
    const Result<int> descriptor = create_beside(path_);
    if (descriptor)
      begin_file(*descriptor);
    else
      std::fprintf(stderr, "berth: this forked child is not traced: %s: %s\n", path_.c_str(), std::strerror(descriptor.failure().os_error));
  }

  void before_fork() noexcept override {}
  // What the threads' buffers hold is the parent's: from now on no buffer fits the session.
  void after_fork(bool in_child) noexcept override BERTH_NO_THREAD_ANALYSIS {
    if (!in_child || session_ == 0) return;
    session_ = ++last_session_;
    g_trace_session.store(session_, std::memory_order_relaxed);
    first_ = nullptr;
    if (t_buffer != nullptr) t_buffer->thread = 0;
  }

  void abandon() noexcept BERTH_REQUIRES(mutex_) {
    if (session_ == 0) return;
    session_ = 0;
    g_trace_session.store(0, std::memory_order_relaxed);
    g_watchers.add(-1);
    if (has_file()) os::close_file(descriptor_);
  }

  // Whether the descriptor still refers to the trace. A program that closes all descriptors may have reused the
  // number for its own file.
  bool has_file() const noexcept BERTH_REQUIRES(mutex_) {
    const Result<os::FileFacts> now = os::facts_of(descriptor_);
    return now && now->same_file(file_);
  }

  void enlist(TraceBuffer& buffer) noexcept BERTH_REQUIRES(mutex_) {
    if (buffer.thread != 0) return;
    buffer.thread = ++last_thread_;
    buffer.previous = nullptr;
    buffer.next = first_;
    if (first_ != nullptr) first_->previous = &buffer;
    first_ = &buffer;
  }

  void write_chunk(TraceBuffer& buffer) noexcept BERTH_REQUIRES(mutex_) {
    if (buffer.session() != session_) return;
    const TraceBuffer::Content content = buffer.content();
    if (content.events == 0) return;
    const ChunkHead head{.magic = kChunkMagic,
                         .kind = kEventsChunk,
                         .body_bytes = content.body_bytes,
                         .events = content.events,
                         .thread = buffer.thread,
                         .first_ticks = buffer.first_ticks(),
                         .written_ticks = os::ticks(),
                         .written_ns = os::steady_time_ns()};
    if (write_words(content.last_tag) && write_within(buffer.finish(head), sizeof head + content.body_bytes))
      summary_.events += content.events;
    else
      summary_.dropped += content.events;
  }

  // Writes the words of the tags up to this one that are not in the file yet. Tag ids are assigned in order of
  // first use, which is the order in the file.
  bool write_words(std::uint16_t last_tag) noexcept BERTH_REQUIRES(mutex_) {
    while (words_written_ < last_tag) {
      ChunkHead& head = words_.head;
      head = {.magic = kChunkMagic,
              .kind = kWordsChunk,
              .body_bytes = 0,
              .events = 0,
              .thread = 0,
              .first_ticks = 0,
              .written_ticks = os::ticks(),
              .written_ns = os::steady_time_ns()};
      for (unsigned tag = words_written_ + 1U; tag <= last_tag; ++tag) {
        const std::string_view word = Tag::from_id(static_cast<std::uint16_t>(tag)).word();
        if (word.size() + 1 > sizeof words_.body - head.body_bytes) break;
        char* const at = words_.body + head.body_bytes;
        *at = static_cast<char>(static_cast<unsigned char>(word.size()));
        std::memcpy(at + 1, word.data(), word.size());
        head.body_bytes += static_cast<std::uint32_t>(word.size() + 1);
        ++head.events;
      }
      if (!write_within(&words_, sizeof head + head.body_bytes)) return false;
      words_written_ = static_cast<std::uint16_t>(words_written_ + head.events);
    }
    return true;
  }

  // Writes unless that, with the end, would pass the limit.
  bool write_within(const void* bytes, std::size_t count) noexcept BERTH_REQUIRES(mutex_) {
    return count <= limit_bytes_ - kEndBytes - summary_.bytes && write(bytes, count);
  }

  void write_end() noexcept BERTH_REQUIRES(mutex_) {
    struct {
      ChunkHead head;
      EndBody body;
    } end{{.magic = kChunkMagic,
           .kind = kEndChunk,
           .body_bytes = sizeof(EndBody),
           .events = 0,
           .thread = 0,
           .first_ticks = 0,
           .written_ticks = os::ticks(),
           .written_ns = os::steady_time_ns()},
          {.events = summary_.events, .dropped = summary_.dropped}};
    static_assert(sizeof end == kEndBytes);
    write(&end, sizeof end);
  }

  // After a failure the file is truncated to its last complete chunk, and nothing more is written.
  bool write(const void* bytes, std::size_t count) noexcept BERTH_REQUIRES(mutex_) {
    if (summary_.os_error != 0) return false;
    if (!has_file()) {
      summary_.os_error = EBADF;
      return false;
    }
    if (const Status done = os::write_file(descriptor_, bytes, count); !done) {
      summary_.os_error = done.failure().os_error;
      (void)os::cut_file(descriptor_, summary_.bytes).ok();
      return false;
    }
    summary_.bytes += count;
    return true;
  }

  os::ThreadExit thread_exit_{leave_thread};
  os::Mutex mutex_;
  std::uint64_t session_ BERTH_GUARDED_BY(mutex_) = 0;  // == g_trace_session
  std::uint64_t last_session_ BERTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_thread_ BERTH_GUARDED_BY(mutex_) = 0;
  os::Origin origin_ BERTH_GUARDED_BY(mutex_);  // of the trace that is running
  std::uint64_t start_ticks_ BERTH_GUARDED_BY(mutex_) = 0;
  // summary_.bytes + kEndBytes <= limit_bytes_ until the end is written.
  std::size_t limit_bytes_ BERTH_GUARDED_BY(mutex_) = 0;
  std::string path_ BERTH_GUARDED_BY(mutex_);  // as it was given, but absolute: a child may be in another folder
  int descriptor_ BERTH_GUARDED_BY(mutex_) = -1;
  os::FileFacts file_ BERTH_GUARDED_BY(mutex_);  // identity of the trace's file
  TraceSummary summary_ BERTH_GUARDED_BY(mutex_);
  std::uint16_t words_written_ BERTH_GUARDED_BY(mutex_) = 0;  // tags from 1 to this one are in the file
  struct {
    ChunkHead head;
    char body[4096];
  } words_ BERTH_GUARDED_BY(mutex_);  // a chunk under construction
  TraceBuffer* first_ BERTH_GUARDED_BY(mutex_) = nullptr;
};

// Never destroyed: events occur after main.
TraceWriter& writer() {
  static auto* const made = new TraceWriter;
  return *made;
}

void leave_thread(void* buffer) noexcept {
  auto* const mine = static_cast<TraceBuffer*>(buffer);
  t_buffer = nullptr;
  writer().leave(*mine);
  delete mine;
}

std::size_t limit_from_environment() {
  const auto value = os::environment("BERTH_TRACE_LIMIT");
  std::uint64_t bytes = TraceFileOptions{}.limit_bytes;
  if (value && !text::parse_bytes(*value, bytes)) {
    throw ArgumentError(ErrorCode::invalid_argument,
                        {text::join("BERTH_TRACE_LIMIT=", text::printable(*value)), "it is not a byte count", "write one, such as 256MiB"});
  }
  return bytes;
}

// An error here cannot be thrown: it is printed, and the program runs untraced.
[[gnu::constructor]] void start_at_load() noexcept {
  try {
    writer();  // so that no later use can fail for lack of heap, or fork during the initialization
    if (const auto path = os::environment("BERTH_TRACE")) start_trace(*path, {.limit_bytes = limit_from_environment()});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "berth: BERTH_TRACE has no effect: %s\n", error.what());
  }
}

// Runs after the destructors of static objects, whose frees belong to the trace.
[[gnu::destructor]] void stop_at_exit() noexcept {
  const TraceSummary summary = stop_trace();
  if (summary.os_error != 0) std::fprintf(stderr, "berth: the trace is cut short: %s\n", std::strerror(summary.os_error));
}

}  // namespace

namespace {

// The thread's buffer when it can take an event as it is; else nullptr.
inline TraceBuffer* ready_buffer() noexcept {
  TraceBuffer* const buffer = t_buffer;
  if (buffer == nullptr || buffer->session() != g_trace_session.load(std::memory_order_relaxed) || buffer->is_stale()) [[unlikely]]
    return nullptr;
  return buffer;
}

TraceBuffer* refreshed_buffer() noexcept {
  const std::uint64_t session = g_trace_session.load(std::memory_order_relaxed);  // relaxed: see there
  if (session == 0) return nullptr;
  if (TraceBuffer* const buffer = t_buffer; buffer != nullptr && buffer->session() == session && buffer->refresh()) return buffer;
  return writer().make_room(session);
}

// Out of line, to keep the fast path short.
[[gnu::noinline]] void trace_allocation_slowly(std::uint64_t allocator_id, std::uint64_t serial, std::size_t bytes, std::uint64_t stream_id,
                                               Tag tag) noexcept {
  if (TraceBuffer* const buffer = refreshed_buffer()) buffer->add_allocation(allocator_id, serial, bytes, stream_id, tag);
}
[[gnu::noinline]] void trace_free_slowly(std::uint64_t allocator_id, std::uint64_t serial) noexcept {
  if (TraceBuffer* const buffer = refreshed_buffer()) buffer->add_free(allocator_id, serial);
}

}  // namespace

void internal::record::trace_allocation(std::uint64_t allocator_id, std::uint64_t serial, std::size_t bytes, std::uint64_t stream_id,
                                        Tag tag) noexcept {
  if (TraceBuffer* const buffer = ready_buffer()) [[likely]]
    buffer->add_allocation(allocator_id, serial, bytes, stream_id, tag);
  else
    trace_allocation_slowly(allocator_id, serial, bytes, stream_id, tag);
}

void internal::record::trace_free(std::uint64_t allocator_id, std::uint64_t serial) noexcept {
  if (TraceBuffer* const buffer = ready_buffer()) [[likely]]
    buffer->add_free(allocator_id, serial);
  else
    trace_free_slowly(allocator_id, serial);
}

void start_trace(const std::string& path, const TraceFileOptions& options) {
  const std::string asked = text::join("tracing to ", text::quoted(path));
  if (options.limit_bytes < kLeastLimit) {
    throw ArgumentError(ErrorCode::invalid_argument,
                        {asked, text::join("a limit of ", options.limit_bytes, " bytes has no room for a trace"),
                         text::join("use ", text::bytes(kLeastLimit), " or more")},
                        {{"limit", options.limit_bytes}, {"least", kLeastLimit}});
  }
  const auto throw_busy = [&] {
    throw AccessError(ErrorCode::busy, {asked, "the process is being traced already", "stop that trace first, or unset BERTH_TRACE"});
  };
  if (writer().is_running()) throw_busy();  // before the file is replaced
  std::error_code no_folder;
  const std::string absolute = std::filesystem::absolute(path, no_folder).string();
  Result<int> descriptor = os::create_own_file(with_process_id(path).c_str());
  if (!descriptor && descriptor.failure().code == ErrorCode::busy) descriptor = create_beside(path);
  if (!descriptor) {
    const Failure& failure = descriptor.failure();
    throw ArgumentError(
        ErrorCode::invalid_argument,
        {asked, failure.code == ErrorCode::untrusted ? failure.why : std::strerror(failure.os_error), "name a file that can be created"},
        {{"path", text::printable(path)}, {"errno", failure.os_error}});
  }
  if (writer().begin(*descriptor, no_folder ? path : absolute, options.limit_bytes)) return;
  os::close_file(*descriptor);
  throw_busy();
}

TraceSummary stop_trace() noexcept { return writer().end(); }

bool is_tracing() noexcept { return writer().is_running(); }

}  // namespace berth
