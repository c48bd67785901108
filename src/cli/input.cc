// SPDX-License-Identifier: Apache-2.0
#include "cli/input.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "base/allowance.h"
#include "base/text.h"
#include "berth/base/error.h"
#include "berth/base/units.h"
#include "cli/byte_count.h"
#include "os/file/new_file.h"
#include "os/file/read_file.h"

namespace berth::internal::cli {

namespace {

constexpr std::size_t kMostInput = 4_GiB;    // on disk
constexpr std::size_t kTimes = 40;           // more than the formats need that people have …
constexpr std::size_t kLeastRoom = 256_MiB;  // … except for small files
constexpr std::size_t kMostPiece = 1_MiB;    // that is decompressed at a time
constexpr const char* kSmaller = "give one of at most 4 GiB, such as a trace of fewer events (BERTH_TRACE_LIMIT)";
constexpr std::chrono::seconds kPatience{5};  // with a FIFO that has no writer

[[noreturn]] void refuse_file(const std::string& path, std::string why, std::string help) {
  throw FormatError(ErrorCode::format_error, {text::join("reading ", text::quoted(path)), std::move(why), std::move(help)},
                    {{"path", text::printable(path)}});
}

// The file cannot be read: a usage error, unlike an error in its content.
[[noreturn]] void refuse_to_read(const std::string& path, const Failure& failure) {
  std::string why = failure.why;
  if (failure.os_error != 0 && failure.code == ErrorCode::device_error) why = std::strerror(failure.os_error);
  if (failure.os_error != 0 && failure.code == ErrorCode::io_error)
    why += text::join(": ", std::string_view(std::strerror(failure.os_error)));
  throw ArgumentError(ErrorCode::invalid_argument, {text::join("reading ", text::quoted(path)), why, "name a file that can be read"},
                      {{"path", text::printable(path)}});
}

[[noreturn]] void refuse_room(const std::string& path, std::size_t room) {
  throw FormatError(ErrorCode::limit_exceeded,
                    {text::join("reading ", text::quoted(path)),
                     text::join("decompressed, it takes more than ", text::bytes(room), " of memory, the limit for a file of its size"),
                     "if you trust it, allow more: --max-memory 4GiB, for example"},
                    {{"path", text::printable(path)}, {"limit", room}});
}

bool is_gzip(std::string_view bytes) noexcept { return bytes.starts_with("\x1f\x8b"); }

// All members of a gzip file. As gzip does, it ignores what follows them.
class Gunzip {
 public:
  Gunzip(const std::string& path, std::string_view from, std::size_t room)
      : path_(path), from_(from), room_(room), piece_(std::clamp(kUsualRatio * from.size(), 4_KiB, kMostPiece)) {
    constexpr int kGzip = 16;  // added to the size of the window
    if (inflateInit2(&state_, MAX_WBITS + kGzip) != Z_OK) throw std::bad_alloc();
  }
  ~Gunzip() { inflateEnd(&state_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  std::string run() {
    base::reached(0);  // what comes has a pace of its own
    while (is_gzip(from_.substr(read_))) {
      inflateReset(&state_);
      member();
    }
    bytes_.resize(size_);
    return std::move(bytes_);
  }

 private:
  static constexpr std::size_t kUsualRatio = 8;  // of what is compressed: text

  void member() {
    for (int done = Z_OK; done != Z_STREAM_END;) {
      base::checkpoint_now();
      make_room();
      const std::size_t in = std::min(from_.size() - read_, kMostPiece);
      // zlib does not write to its input, though it does not say so.
      state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from_.data() + read_));
      state_.avail_in = static_cast<uInt>(in);
      state_.next_out = reinterpret_cast<Bytef*>(bytes_.data() + size_);
      state_.avail_out = static_cast<uInt>(piece_);
      done = inflate(&state_, Z_NO_FLUSH);
      read_ += in - state_.avail_in;
      base::reached(static_cast<double>(read_) / static_cast<double>(from_.size()));
      size_ += piece_ - state_.avail_out;
      if (done == Z_MEM_ERROR) throw std::bad_alloc();
      const bool stuck = done == Z_BUF_ERROR || (done == Z_OK && in == 0 && state_.avail_out != 0);
      if (stuck) refuse_file(path_, "the gzip data is truncated", "copy the file again");
      if (done != Z_OK && done != Z_STREAM_END)
        refuse_file(path_, text::printable(state_.msg == nullptr ? "the gzip data is wrong" : state_.msg), "check that the file is whole");
    }
  }

  // For another piece. While they grow, the bytes are there twice, beside the compressed ones.
  void make_room() {
    if (bytes_.capacity() < size_ + piece_) {
      const std::size_t next = std::max(2 * bytes_.capacity(), 2 * piece_);
      if (next > room_ || next + bytes_.capacity() + from_.size() > room_) refuse_room(path_, room_);
      bytes_.reserve(next);
    }
    bytes_.resize(size_ + piece_);
  }

  const std::string& path_;
  const std::string_view from_;
  const std::size_t room_;
  const std::size_t piece_;
  std::size_t read_ = 0;
  std::string bytes_;
  std::size_t size_ = 0;
  z_stream state_{};
};

const char* help_for(const Failure& unwritten) noexcept {
  if (unwritten.code == ErrorCode::untrusted) return "write to a folder of your own, or remove what is there first";
  if (unwritten.os_error == ENOSPC || unwritten.os_error == EDQUOT) return "free space on the disk, or write to another";
  if (unwritten.os_error == EFBIG) return "raise the limit (ulimit -f), or write several files";
  if (unwritten.code == ErrorCode::device_error && (unwritten.os_error == EPERM || unwritten.os_error == ENOSYS))
    return "let the sandbox allow the call: berth doctor shows what this machine has and lacks";
  return "name a file that can be written";
}

}  // namespace

Input read_input(const std::string& path, std::size_t room_bytes) {
  Result<std::string> bytes = os::read_whole(path.c_str(), kMostInput, kPatience);
  if (!bytes && bytes.failure().os_error == EFBIG) refuse_file(path, "it holds more than 4 GiB", kSmaller);
  if (!bytes) refuse_to_read(path, bytes.failure());
  const std::size_t room = room_bytes != 0 ? room_bytes : std::max(kLeastRoom, kTimes * bytes->size());
  return {is_gzip(*bytes) ? Gunzip(path, *bytes, room).run() : std::move(*bytes), room};
}

std::size_t parse_room(const std::string& text) { return text.empty() ? 0 : parse_byte_count(text, "--max-memory"); }

void write_output(const std::string& path, std::string_view bytes) {
  const Status done = os::write_file_or_device(path, bytes);
  if (done) return;
  const Failure& failure = done.failure();
  const bool said = failure.os_error == 0 || failure.code == ErrorCode::unsupported;  // better than the C library would
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join("writing ", text::quoted(path)), said ? failure.why : std::strerror(failure.os_error), help_for(failure)},
                      {{"path", text::printable(path)}});
}

}  // namespace berth::internal::cli
