// SPDX-License-Identifier: Apache-2.0
#include "file/output_file.h"

#include <cerrno>
#include <utility>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "file/errors.h"
#include "file/numpy/crc32.h"
#include "file/open_file.h"
#include "os/file/data_file.h"
#include "os/memory/bus_guard.h"
#include "storage/make.h"

namespace berth::internal::file {

namespace {

os::NewFile new_file(const std::string& path) {
  require_path(path, "writing");
  return value_or_throw(os::NewFile::make(path), "writing", path);
}

Storage on_the_host(const Storage& storage) {
  const bool there = backend(storage.device()).properties().abilities.host_access;
  return (there ? storage : storage.to("cpu")).contiguous();
}

}  // namespace

OutputFile::OutputFile(const std::string& path, std::uint64_t bytes) : path_(path), file_(new_file(path)) {
  require_room(file_.descriptor(), bytes, "writing", path_);
  require_done(os::set_data_size(file_.descriptor(), bytes), "writing", path_);
}

void OutputFile::write(std::uint64_t offset, std::string_view bytes) const {
  require_done(os::write_at(file_.descriptor(), offset, bytes.data(), bytes.size()), "writing", path_);
}

void OutputFile::commit() { require_done(file_.put_in_place(), "writing", path_); }

HostBytes::HostBytes(const Storage& storage) : held_(on_the_host(storage)) {
  const auto first = static_cast<std::size_t>(held_.offset()) * size_bytes(held_.dtype());
  storage::BufferMaker::before_touch(held_.buffer(), first, held_.size_bytes(), false);
  if (held_.num_elements() != 0) mapped_.add(held_.span());
}

// The kernel reads the bytes, and where they are gone it says so with EFAULT.
void HostBytes::write_to(const OutputFile& file, std::uint64_t offset) const {
  mapped_.run([&] {
    const Status done = os::write_at(file.file_.descriptor(), offset, span().data(), span().size());
    if (!done && done.failure().os_error == EFAULT && !mapped_.empty()) mapped_.throw_lost(span().data());
    require_done(done, "writing", file.path_);
  });
}

std::uint32_t HostBytes::crc32(std::uint32_t sum) const {
  mapped_.run([&] { os::BusGuard::touch([&] { sum = file::crc32(span(), sum); }); });
  return sum;
}

void require_text_name(std::string_view name, std::string_view asked) {
  std::size_t at = 0;
  while (at < name.size() && name[at] != '\0') {
    const std::size_t length = text::utf8_length(name.substr(at));
    if (length == 0) break;
    at += length;
  }
  if (at == name.size()) return;
  throw ArgumentError(ErrorCode::invalid_name,
                      {text::join(asked, ' ', text::quoted(name)), text::join("byte ", at, " of it is not UTF-8, or is zero"),
                       "use names that are UTF-8 without zero bytes"},
                      {{"name", text::printable(name)}, {"offset", at}});
}

}  // namespace berth::internal::file
