// SPDX-License-Identifier: Apache-2.0
#include "berth/file/map.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "copy/mapped_bytes.h"
#include "file/errors.h"
#include "file/open_file.h"
#include "file/tensors.h"
#include "os/file/shared_file.h"
#include "os/memory/memory.h"
#include "os/system.h"
#include "storage/make.h"

namespace berth {

using namespace internal;
using namespace internal::storage;

using namespace internal::file;

namespace {

struct Unmap {
  std::size_t bytes = 0;
  void operator()(void* base) const noexcept { os::unmap(base, bytes); }
};

// A mapped range of a file.
class MappedRange final : public copy::MappedBytes {
 public:
  // Maps nothing for 0 bytes: the kernel has no empty mappings.
  MappedRange(std::shared_ptr<const OpenFile> file, std::uint64_t offset, std::size_t bytes, FileMode mode, bool expect_changes)
      : file_(std::move(file)), offset_(align_down(offset, os::page_bytes())), mode_(mode), expect_changes_(expect_changes) {
    if (bytes == 0) return;
    lead_ = static_cast<std::size_t>(offset - offset_);
    bytes_ = checked_add(lead_, bytes, "the bytes to map");
    base_ = value_or_throw(os::map_data(file_->descriptor(), offset_, bytes_, mapping_of(mode)), "mapping", file_->path());
    mapping_ = {base_, Unmap{bytes_}};
    enter(base_, bytes_);
  }
  ~MappedRange() {
    if (base_ != nullptr) leave(base_);
  }

  const OpenFile& file() const noexcept { return *file_; }
  FileMode mode() const noexcept { return mode_; }
  bool writes_reach_the_file() const noexcept { return mode_ == FileMode::read_write || mode_ == FileMode::create; }
  char* data() const noexcept { return base_ == nullptr ? nullptr : static_cast<char*>(base_) + lead_; }
  std::uint64_t offset_of(const void* address) const noexcept {
    return offset_ + static_cast<std::uint64_t>(static_cast<const char*>(address) - static_cast<const char*>(base_));
  }

  // Truncation is always an error; another modification time only where nobody is known to write.
  void require_there(const void* at, std::size_t bytes) const override {
    if (expect_changes_ || writes_reach_the_file())
      file_->require_bytes(offset_of(at) + bytes);
    else
      file_->require_unchanged();
  }

  [[noreturn]] void throw_lost(const void* at) const override {
    require_there(at, 1);
    constexpr Failure kLost{ErrorCode::io_error, 0,
                            "bytes that were there were gone when they were touched: the disk failed, or the file was "
                            "truncated and has grown again"};
    throw_file_failure(kLost, "touching", file_->path());
  }

  void write_back(std::size_t offset, std::size_t bytes) const {
    if (writes_reach_the_file() && bytes != 0) require_done(os::write_back(data() + offset, bytes), "flushing", file_->path());
  }

 private:
  static os::Mapping mapping_of(FileMode mode) noexcept {
    if (mode == FileMode::read) return os::Mapping::read;
    return mode == FileMode::private_copy ? os::Mapping::private_write : os::Mapping::write;
  }

  const std::shared_ptr<const OpenFile> file_;
  const std::uint64_t offset_;  // of base_ in the file
  const FileMode mode_;
  const bool expect_changes_;
  std::size_t lead_ = 0;   // from base_ to the first requested byte
  std::size_t bytes_ = 0;  // size of the mapping
  void* base_ = nullptr;
  std::unique_ptr<void, Unmap> mapping_;
};

// Whether touching that much at once would evict everything else from memory.
bool is_most_of_memory(std::size_t bytes) {
  constexpr std::size_t kAlwaysFits = std::size_t{64} << 20;
  return bytes > kAlwaysFits && bytes > os::host_memory().total_bytes / 4;
}

// Holds the mapping for a buffer, and checks the file before its bytes are touched.
class MapGuard : public BufferGuard {
 public:
  explicit MapGuard(std::unique_ptr<MappedRange> range) : range_(std::move(range)) {}

  void release_block(const Block&, Allocator*, std::shared_ptr<Allocator>) noexcept override { range_.reset(); }

  // The size of the file detects truncation only, and the disk can fail too. So the pages are faulted in, for
  // which the kernel reports errors without a signal. Ranges too large for that are checked by size only.
  void before_touch(std::size_t offset, std::size_t bytes, bool write) const override {
    const char* const at = range_->data() + offset;
    range_->require_there(at, bytes);
    if (is_most_of_memory(bytes)) return;
    const Result<bool> asked = os::populate(at, bytes, write);
    if (asked) return;
    range_->require_there(at, bytes);  // truncated in between
    throw_file_failure(asked.failure(), write ? "writing to" : "reading", range_->file().path());
  }

  void before_close(std::size_t offset, std::size_t bytes) const override { range_->write_back(offset, bytes); }

  const MappedRange& range() const noexcept { return *range_; }

 private:
  std::unique_ptr<MappedRange> range_;
};

Buffer buffer_over(std::unique_ptr<MappedRange> range, std::size_t bytes, const Site& site) {
  Deleter none;
  const Buffer buffer = BufferMaker::wrap(range->data(), bytes, Device(), none, range->mode() == FileMode::read, Owner::file, site);
  BufferMaker::guard(buffer) = std::make_unique<MapGuard>(std::move(range));
  return buffer;
}

const MappedRange& range_of(const Storage& storage, const char* asked) {
  const auto* const guard = storage.is_mapped() ? static_cast<const MapGuard*>(BufferMaker::guard(storage.buffer()).get()) : nullptr;
  if (guard != nullptr) return guard->range();
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join(std::string_view(asked), " a storage of shape ", storage.shape().to_string()),
                       "its buffer is not a mapped file", "pass one that map_file or a file's [] returned"},
                      {{"owner", to_string(storage.buffer().owner())}});
}

// The address range of the elements.
struct Bytes {
  char* begin;
  std::size_t count;
};

Bytes bytes_of(const Storage& storage) {
  const auto extent = try_extent(storage.shape(), storage.strides(), storage.dtype());
  return {static_cast<char*>(storage.data_ptr()) - extent->before_bytes, extent->before_bytes + extent->from_bytes};
}

os::OpenFor open_for(FileMode mode) noexcept {
  return mode == FileMode::read || mode == FileMode::private_copy ? os::OpenFor::read : os::OpenFor::read_write;
}

void require_offset(const std::string& path, DType dtype, const MapOptions& options) {
  if (options.offset > kMaxBytes || options.offset % alignment_of(dtype) != 0) {
    throw ArgumentError(options.offset > kMaxBytes ? ErrorCode::out_of_bounds : ErrorCode::misaligned,
                        {text::join("mapping ", text::quoted(path), " from byte ", options.offset),
                         text::join("an element of ", to_string(dtype), " begins at a multiple of ", alignment_of(dtype)),
                         "map it as u8 and clone the part you need, or move the data in the file"},
                        {{"offset", options.offset}, {"alignment", alignment_of(dtype)}});
  }
}

std::shared_ptr<const OpenFile> open_to_map(const std::string& path, std::uint64_t need, FileMode mode, bool may_grow) {
  if (mode == FileMode::create) return OpenFile::create(path, need, "creating");
  if (!may_grow) return OpenFile::open(path, open_for(mode), "opening");
  if (mode == FileMode::read_write) return OpenFile::open_grown(path, need, "opening");
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join("mapping ", text::quoted(path), " with may_grow as ", to_string(mode)),
                       "only what is written to can grow", "map it as read_write, or leave may_grow out"},
                      {{"mode", to_string(mode)}});
}

}  // namespace

std::string_view to_string(FileMode mode) noexcept {
  constexpr std::string_view kNames[] = {"read", "read_write", "create", "private_copy"};
  return kNames[static_cast<std::size_t>(mode)];
}

std::string_view to_string(FileState state) noexcept {
  constexpr std::string_view kNames[] = {"current", "replaced", "changed", "truncated"};
  return kNames[static_cast<std::size_t>(state)];
}

Storage map_file(const std::string& path, const Shape& shape, DType dtype, FileMode mode, const MapOptions& options, Site site) {
  require_offset(path, dtype, options);
  const std::size_t bytes = shape.size_bytes(dtype);
  const std::size_t need = checked_add(options.offset, bytes, "the bytes of the file");
  auto file = open_to_map(path, need, mode, options.may_grow);
  if (file->bytes() < need) {
    throw_fault(path, {.rule = "file_truncated",
                       .why = text::join("the file has ", file->bytes(), " bytes, and ", shape.to_string(), " of ", to_string(dtype),
                                         " from byte ", options.offset, " on needs ", need),
                       .help = "leave the shape out to map what is there, create the file, or open it for writing with may_grow",
                       .code = ErrorCode::file_truncated,
                       .facts = {{"have", file->bytes()}, {"need", need}}});
  }
  return map_open(std::move(file), shape, dtype, mode, options, site);
}

Storage map_file(const std::string& path, DType dtype, FileMode mode, const MapOptions& options, Site site) {
  require_offset(path, dtype, options);
  if (mode == FileMode::create) {
    throw ArgumentError(ErrorCode::invalid_shape, {text::join("creating ", text::quoted(path), " without a shape"),
                                                   "a new file has no size to take it from", "give a shape"});
  }
  auto file = OpenFile::open(path, open_for(mode), "opening");
  const std::uint64_t have = file->bytes();
  const std::uint64_t left = have - std::min(have, options.offset);
  if (options.offset > have || left % size_bytes(dtype) != 0) {
    throw_fault(path, {.rule = "size_mismatch",
                       .why = text::join("the file has ", have, " bytes, and from byte ", options.offset,
                                         " on that is not a whole number of elements of ", to_string(dtype)),
                       .help = "give the offset and the dtype that the file was written with, or a shape",
                       .code = ErrorCode::size_mismatch,
                       .facts = {{"have", have}, {"element", size_bytes(dtype)}}});
  }
  return map_open(std::move(file), Shape{left / size_bytes(dtype)}, dtype, mode, options, site);
}

void flush_mapped(const Storage& storage) {
  const MappedRange& range = range_of(storage, "flushing");
  if (!range.writes_reach_the_file() || storage.num_elements() == 0) return;
  const Bytes bytes = bytes_of(storage);
  require_done(os::write_back(bytes.begin, bytes.count), "flushing", range.file().path());
}

void prefetch_mapped(const Storage& storage) {
  (void)range_of(storage, "prefetching");
  if (storage.num_elements() == 0) return;
  const Bytes bytes = bytes_of(storage);
  os::advise(bytes.begin, bytes.count, os::Advice::will_need);
}

void drop_mapped(const Storage& storage) {
  const MappedRange& range = range_of(storage, "dropping the pages of");
  if (storage.num_elements() == 0 || range.mode() == FileMode::private_copy) return;
  const Bytes bytes = bytes_of(storage);
  os::advise(bytes.begin, bytes.count, os::Advice::dont_need);
  os::forget_cached(range.file().descriptor(), range.offset_of(bytes.begin), bytes.count);
}

FileState mapped_state(const Storage& storage) {
  const MappedRange& range = range_of(storage, "asking for the state of the file of");
  const FileState state = range.file().state();
  return state == FileState::changed && range.writes_reach_the_file() ? FileState::current : state;
}

std::string mapped_path(const Storage& storage) {
  return storage.is_mapped() ? range_of(storage, "naming the file of").file().path() : std::string();
}

namespace internal::file {

Buffer map_whole(const std::shared_ptr<const OpenFile>& file) {
  const std::size_t bytes = checked_narrow<std::size_t>(file->bytes(), "the bytes of the file");
  return buffer_over(std::make_unique<MappedRange>(file, 0, bytes, FileMode::read, false), bytes, {});
}

Storage map_open(std::shared_ptr<const OpenFile> file, const Shape& shape, DType dtype, FileMode mode, const MapOptions& options,
                 const Site& site) {
  const std::size_t bytes = shape.size_bytes(dtype);
  auto range = std::make_unique<MappedRange>(std::move(file), options.offset, bytes, mode, options.expect_changes);
  char* const data = range->data();
  const Buffer buffer = buffer_over(std::move(range), bytes, site);
  if (options.huge_pages) os::advise(data, bytes, os::Advice::huge_pages);
  if (options.sequential) os::advise(data, bytes, os::Advice::sequential);
  if (options.prefetch) os::advise(data, bytes, os::Advice::will_need);
  return Storage(buffer, dtype, shape, Strides::contiguous(shape));
}

}  // namespace internal::file

}  // namespace berth
