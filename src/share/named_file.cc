// SPDX-License-Identifier: Apache-2.0
#include "share/named_file.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "berth/base/checked.h"
#include "os/file/named_files.h"
#include "os/memory/memory.h"
#include "os/process/wait_ready.h"
#include "os/system.h"
#include "share/names.h"

namespace berth::internal::share {

namespace {

constexpr Layout kNamedLayout{.entries = 1, .tickets = 1, .masks = 4};

std::size_t data_offset() noexcept { return *try_align_up(control_bytes(kNamedLayout), os::page_bytes()); }

// A file without a name, and the directory that it was made in.
struct UnnamedFile {
  os::Descriptor folder;
  os::Descriptor file;
};

Result<UnnamedFile> make_unnamed(const NamesFolder& folder) {
  for (int retries = 0;; ++retries) {
    Result<os::Descriptor> where = folder.open(true);
    if (!where) return where.failure();
    Result<os::Descriptor> file = os::make_unnamed_file(where->number());
    if (file) return UnnamedFile{std::move(*where), std::move(*file)};
    // not_found: another process removed the empty directory.
    if (file.failure().code != ErrorCode::not_found || retries == kNameTries) return file.failure();
  }
}

// Sizes the file for the header, the words and that many bytes of storage, and allocates its memory.
Status allocate_file(int file, std::uint64_t bytes) noexcept {
  const auto total = try_add<std::uint64_t>(data_offset(), bytes);
  if (!total || !try_align_up(*total, os::page_bytes())) return Failure{ErrorCode::out_of_memory, 0, "no file can be that long"};
  if (const Status sized = os::set_file_size(file, *total); !sized) return sized;
  return os::allocate_range(file, 0, *total);
}

Status check_file(const os::FileFacts& facts) noexcept {
  if (!facts.is_regular) return Failure{ErrorCode::untrusted, 0, "it is not a file"};
  if (facts.user != os::user_id()) return Failure{ErrorCode::untrusted, 0, "it belongs to another user"};
  if ((facts.mode & 077) != 0) return Failure{ErrorCode::untrusted, 0, "other users have access to it"};
  if (facts.links > 1) return Failure{ErrorCode::untrusted, 0, "it has a second hard link"};
  if (facts.links == 0) return Failure{ErrorCode::not_found, 0, "the name was just removed"};
  return {};
}

}  // namespace

NamedFile::NamedFile(std::string name) : name_(std::move(name)) {}

std::uint64_t NamedFile::bytes() const noexcept { return header_.file_bytes - header_.data_offset; }

// Takes the file, maps its header and words, and validates the header.
Status NamedFile::attach(os::Descriptor file) {
  const Result<os::FileFacts> facts = os::facts_of(file.number());
  if (!facts) return facts.failure();
  if (const Status good = check_file(*facts); !good) return good;
  file_.set(std::move(file));
  if (facts->bytes < data_offset()) return Failure{ErrorCode::format_error, 0, "it is too short for a storage"};
  if (const Status mapped = map_control(); !mapped) return mapped;
  std::memcpy(static_cast<void*>(&header_), control_, sizeof header_);
  if (const Status good = check_header(header_, facts->bytes); !good) return good;
  if (header_.layout != kNamedLayout || header_.data_offset != data_offset())
    return Failure{ErrorCode::version_mismatch, 0, "it was made by another version of berth, or with another page size"};
  Result<StorageLayout> layout = read_layout(std::span(header_.description).first(header_.description_bytes));
  if (!layout) return layout.failure();
  if (!lies_inside(*layout, bytes())) return Failure{ErrorCode::format_error, 0, "its elements do not fit in it"};
  layout_ = std::move(*layout);
  return {};
}

// Maps the header and the words.
Status NamedFile::map_control() {
  const Result<void*> mapped = os::map_file_range(file_.number(), 0, data_offset(), os::Access::write);
  if (!mapped) return mapped.failure();
  control_ = *mapped;
  control_bytes_ = data_offset();
  words_ = Words(static_cast<std::byte*>(control_) + kWordsOffset);
  return {};
}

Status NamedFile::map_data(bool read_only) {
  if (bytes() == 0) return {};
  const Result<void*> mapped =
      os::map_file_range(file_.number(), header_.data_offset, bytes(), read_only ? os::Access::read : os::Access::write);
  if (!mapped) return mapped.failure();
  data_ = *mapped;
  return {};
}

// The gate is held for a few steps only. A holder that was stopped in the middle is waited for at most
// `patience`.
Status NamedFile::lock_gate(std::chrono::milliseconds patience) noexcept {
  const std::uint64_t until = os::deadline_after(patience);
  for (;;) {
    const Result<bool> locked = os::try_lock_byte(file_.number(), kGateLock);
    if (!locked) return locked.failure();
    if (*locked) return {};
    if (os::steady_time_ns() >= until)
      return Failure{ErrorCode::timeout, 0, "another process is opening or closing it, and does not finish"};
    os::sleep_us(200);
  }
}

// Drops the claims of dead processes, and returns whether any claim is left. REQUIRES: the gate is locked.
NamedFile::Liveness NamedFile::reap() noexcept {
  const Word rows = std::min<Word>(words_.load(Layout::kRowsUsed), kNamedLayout.rows());
  for (std::uint32_t row = 0; row < rows; ++row) {
    if (row == row_ || words_.load(kNamedLayout.row_label(row)) == kVacant) continue;
    const Result<bool> locked = os::try_lock_byte(file_.number(), lock_of(row));
    if (!locked || !*locked) continue;
    (void)run(Reap{.holder = row}, words_, kNamedLayout);
    words_.store(kNamedLayout.row_label(row), kVacant);
    os::unlock_byte(file_.number(), lock_of(row));
  }
  (void)run(Retire{.entry = 0}, words_, kNamedLayout);
  return is_live(words_.load(kNamedLayout.entry(0))) ? Liveness::alive : Liveness::dead;
}

// REQUIRES: the gate is locked.
Status NamedFile::take_row() {
  for (std::uint32_t row = kOwnerRow + 1; row < kNamedLayout.rows(); ++row) {
    const Result<bool> locked = os::try_lock_byte(file_.number(), lock_of(row));
    if (!locked) return locked.failure();
    if (!*locked) continue;
    row_ = row;
    raise_to(words_, Layout::kRowsUsed, row + 1);
    // Before the claim: a reaper looks for the label.
    words_.store(kNamedLayout.row_label(row), static_cast<Word>(os::process_id()));
    words_.set_bits(kNamedLayout.mask(0, row), bit_of(row));
    return {};
  }
  return Failure{ErrorCode::limit_exceeded, 0, "every row is taken: too many processes have it open"};
}

// Whether the name still refers to this file.
Status NamedFile::still_named(int folder_descriptor) const noexcept {
  const Result<os::FileFacts> here = os::facts_of(file_.number());
  if (!here) return here.failure();
  const Result<os::FileFacts> there = os::facts_of_name(folder_descriptor, name_.c_str());
  if (!there) return there.failure();
  return here->same_file(*there) ? Status() : Failure{ErrorCode::not_found, 0, "the name refers to another file now"};
}

// A name that was removed and given to another file in the meantime is not touched: removing a name requires
// the gate of the file that it refers to. REQUIRES: the gate is locked.
void NamedFile::remove_name_if_same(int folder_descriptor) noexcept {
  if (!still_named(folder_descriptor) || !os::remove_name(folder_descriptor, name_.c_str())) return;
  folder_.remove_if_empty();
}

Result<bool> NamedFile::unlink(const std::string& name) {
  const Result<os::Descriptor> where = NamesFolder().open(false);
  if (!where && where.failure().code == ErrorCode::not_found) return false;
  if (!where) return where.failure();
  for (int i = 0; i < kNameTries; ++i) {
    Result<os::Descriptor> file = os::open_named(where->number(), name.c_str());
    if (!file && file.failure().code == ErrorCode::not_found) return false;
    if (!file) return file.failure();
    NamedFile seen(name);
    Status ready = seen.attach(std::move(*file));
    if (ready) ready = seen.lock_gate(kGatePatience);
    if (ready) ready = seen.still_named(where->number());
    if (ready) ready = os::remove_name(where->number(), name.c_str());
    if (ready) seen.folder_.remove_if_empty();
    if (ready) return true;
    if (ready.failure().code != ErrorCode::not_found) return ready.failure();
  }
  return false;
}

Result<std::unique_ptr<NamedFile>> NamedFile::create(const std::string& name, const StorageLayout& layout, std::uint64_t bytes) {
  std::unique_ptr<NamedFile> made(new NamedFile(name));
  if (const Status done = made->create_in_folder(layout, bytes); !done) {
    made->folder_.remove_if_empty();  // it was made for this
    return done.failure();
  }
  return made;
}

Status NamedFile::create_in_folder(const StorageLayout& layout, std::uint64_t bytes) {
  Result<UnnamedFile> unnamed = make_unnamed(folder_);
  if (!unnamed) return unnamed.failure();
  if (const Status given = allocate_file(unnamed->file.number(), bytes); !given) return given;
  if (const Status ready = initialize(std::move(unnamed->file), layout, bytes); !ready) return ready;
  return give_name(std::move(unnamed->folder));
}

// Takes the file and makes it a complete storage of this process, with everything but a name. No other process
// can see it, so the order of the stores does not matter.
Status NamedFile::initialize(os::Descriptor file, const StorageLayout& layout, std::uint64_t bytes) {
  file_.set(std::move(file));
  if (const Status mapped = map_control(); !mapped) return mapped;
  if (const Status written = write_header(layout, bytes); !written) return written;
  publish();
  if (const Status mapped = map_data(false); !mapped) return mapped;
  const Result<bool> locked = os::try_lock_byte(file_.number(), lock_of(kOwnerRow));
  return locked ? Status() : locked.failure();
}

Status NamedFile::write_header(const StorageLayout& layout, std::uint64_t bytes) {
  std::vector<std::byte> description;
  append_layout(description, layout);
  const Result<SegmentHeader> header = make_header(kNamedLayout, data_offset() + bytes, data_offset());
  if (!header) return header.failure();
  header_ = *header;
  header_.description_bytes = static_cast<std::uint32_t>(description.size());
  std::ranges::copy(description, header_.description.begin());
  std::memcpy(control_, &header_, sizeof header_);
  layout_ = layout;
  return {};
}

// Makes the one entry live, with the owner's claim on it.
void NamedFile::publish() noexcept {
  raise_to(words_, Layout::kRowsUsed, kOwnerRow + 1);
  words_.store(kNamedLayout.row_label(kOwnerRow), static_cast<Word>(os::process_id()));
  run(Publish{.entry = 0, .offset = header_.data_offset, .bytes = bytes()}, words_, kNamedLayout);
}

// Links the file under its name. From then on it is the owner's, whose destructor removes the name.
Status NamedFile::give_name(os::Descriptor folder_descriptor) {
  for (int i = 0; i < kNameTries; ++i) {
    const Status named = os::give_name(file_.number(), folder_descriptor.number(), name_.c_str());
    if (named) {
      row_ = kOwnerRow;
      return {};
    }
    if (named.failure().code == ErrorCode::not_found) {  // another process removed the empty directory
      Result<os::Descriptor> again = folder_.open(true);
      if (!again) return again.failure();
      folder_descriptor = std::move(*again);
      continue;
    }
    if (named.failure().code != ErrorCode::already_exists) return named.failure();
    // A file of dead processes is removed; one that is in use, or not ours, is a conflict.
    const Result<Found> found = look(folder_descriptor.number(), name_, true);
    if (found && !found->removed) return Failure{ErrorCode::already_exists, 0, "a storage of that name is there already"};
    if (!found && found.failure().code != ErrorCode::not_found) return Failure{ErrorCode::already_exists, 0, found.failure().why};
  }
  return Failure{ErrorCode::already_exists, 0, "other processes keep creating storages of that name"};
}

Result<std::unique_ptr<NamedFile>> NamedFile::open(const std::string& name, bool read_only) {
  const Result<os::Descriptor> where = NamesFolder().open(false);
  if (!where) return where.failure();
  for (int i = 0; i < kNameTries; ++i) {
    Result<os::Descriptor> file = os::open_named(where->number(), name.c_str());
    if (!file) return file.failure();
    std::unique_ptr<NamedFile> made(new NamedFile(name));
    if (const Status attached = made->attach(std::move(*file)); !attached) {
      if (attached.failure().code == ErrorCode::not_found) continue;
      return attached.failure();
    }
    if (const Status locked = made->lock_gate(kGatePatience); !locked) return locked.failure();
    if (!made->still_named(where->number())) continue;
    if (made->reap() == Liveness::dead) {
      made->remove_name_if_same(where->number());
      return Failure{ErrorCode::not_found, 0, "the process that created it is dead, and no other has it open: it was removed"};
    }
    if (const Status mapped = made->map_data(read_only); !mapped) return mapped.failure();
    if (const Status taken = made->take_row(); !taken) return taken.failure();
    os::unlock_byte(made->file_.number(), kGateLock);
    return made;
  }
  return Failure{ErrorCode::not_found, 0, "the name is created and removed too quickly"};
}

// Closing the descriptor releases the locks.
NamedFile::~NamedFile() {
  if (!origin_.is_inherited() && row_ != kNoHolder && lock_gate(kGatePatience).ok()) {
    const Result<os::Descriptor> where = folder_.open(false);
    Release release;
    release.entry = 0;
    release.row = row_;
    (void)run(release, words_, kNamedLayout);
    words_.store(kNamedLayout.row_label(row_), kVacant);
    const bool last = reap() == Liveness::dead;
    if (where && (last || row_ == kOwnerRow)) remove_name_if_same(where->number());
  }
  if (data_ != nullptr) os::unmap(data_, bytes());
  if (control_ != nullptr) os::unmap(control_, control_bytes_);
}

Result<NamedFile::Found> NamedFile::look(int folder_descriptor, const std::string& name, bool collect) {
  Result<os::Descriptor> file = os::open_named(folder_descriptor, name.c_str());
  if (!file) return file.failure();
  NamedFile seen(name);
  if (const Status attached = seen.attach(std::move(*file)); !attached) return attached.failure();
  bool dead = false;
  if (collect) {
    // A name that is being opened or closed is not dead.
    if (const Status locked = seen.lock_gate(std::chrono::milliseconds(100)); !locked) return locked.failure();
    if (const Status there = seen.still_named(folder_descriptor); !there) return there.failure();
    dead = seen.reap() == Liveness::dead;
  }
  Found found{.facts = seen.describe(), .removed = dead};
  if (dead) seen.remove_name_if_same(folder_descriptor);
  return found;
}

NamedShared NamedFile::describe() const {
  NamedShared facts;
  facts.name = name_;
  facts.dtype = layout_.dtype;
  facts.shape = layout_.shape;
  facts.size_bytes = bytes();
  if (const Result<os::FileFacts> now = os::facts_of(file_.number())) facts.memory_bytes = now->used_bytes;
  const std::uint64_t now_ns = os::wall_time_ns();
  facts.age_ns = now_ns > header_.made_ns ? now_ns - header_.made_ns : 0;
  for (std::uint32_t row = 0; row < kNamedLayout.rows(); ++row) {
    if (!holds_bit(words_.load(kNamedLayout.mask(0, row)), row)) continue;
    const Result<bool> alive = os::is_byte_locked(file_.number(), lock_of(row));
    facts.holders.push_back({static_cast<int>(words_.load(kNamedLayout.row_label(row))), alive && *alive});
  }
  return facts;
}

}  // namespace berth::internal::share
