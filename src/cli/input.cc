// SPDX-License-Identifier: Apache-2.0
#include "cli/input.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/base/units.h"
#include "os/file/file.h"

namespace berth::internal::cli {

namespace {

constexpr std::size_t kMostInput = 4_GiB;  // a small file can decompress to any size
constexpr unsigned kPiece = 1U << 20;

struct Close {
  void operator()(gzFile_s* file) const noexcept { gzclose_r(file); }
};

[[noreturn]] void refuse_file(const std::string& path, std::string why, std::string help) {
  throw FormatError(ErrorCode::format_error, {text::join("reading ", text::quoted(path)), std::move(why), std::move(help)},
                    {{"path", text::printable(path)}});
}

// The file cannot be read: a usage error, unlike an error in its content.
[[noreturn]] void refuse_to_read(std::string_view doing, const std::string& path) {
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join(doing, text::quoted(path)), std::strerror(errno), "name a file that can be read"},
                      {{"path", text::printable(path)}});
}

[[noreturn]] void refuse_piece(gzFile_s* file, const std::string& path) {
  int code = Z_OK;
  const char* const message = gzerror(file, &code);
  if (code == Z_ERRNO) refuse_to_read("reading ", path);
  refuse_file(path, text::printable(message), "check that the file is whole");
}

}  // namespace

std::string read_input(const std::string& path) {
  errno = 0;
  const std::unique_ptr<gzFile_s, Close> file(gzopen(path.c_str(), "rbe"));  // or plain
  if (file == nullptr) refuse_to_read("opening ", path);
  gzbuffer(file.get(), kPiece);
  std::string bytes;
  for (std::size_t size = 0;;) {
    bytes.resize(size + kPiece);
    const int got = gzread(file.get(), bytes.data() + size, kPiece);
    if (got < 0) refuse_piece(file.get(), path);
    size += static_cast<std::size_t>(got);
    bytes.resize(size);
    if (got == 0) break;
    if (size > kMostInput) refuse_file(path, "it holds more than 4 GiB", "split it");
  }
  // A truncated gzip file reads like a complete one; only gzerror tells.
  if (int code = Z_OK; gzerror(file.get(), &code), code != Z_OK) refuse_file(path, "the gzip data is truncated", "copy the file again");
  return bytes;
}

Input::Input(const std::string& path) {
  Result<os::MappedFile> mapped = os::map_file(path.c_str());
  if (mapped.ok() && !mapped->bytes().starts_with("\x1f\x8b"))
    mapped_ = std::move(*mapped);
  else
    copied_ = read_input(path);  // or throws
}

void write_output(const std::string& path, std::string_view bytes) {
  const auto require = [&](const Status& done) {
    if (!done.ok())
      throw ArgumentError(
          ErrorCode::invalid_argument,
          {text::join("writing ", text::quoted(path)), std::strerror(done.failure().os_error), "name a file that can be written"},
          {{"path", text::printable(path)}});
  };
  const Result<int> file = os::create_file(path.c_str());
  require(file.ok() ? Status() : Status(file.failure()));
  const Status written = os::write_file(*file, bytes.data(), bytes.size());
  os::close_file(*file);
  require(written);
}

}  // namespace berth::internal::cli
