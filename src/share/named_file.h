// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "berth/base/result.h"
#include "berth/share/named.h"
#include "os/file/own_descriptor.h"
#include "os/file/shared_file.h"
#include "os/process/fork.h"
#include "share/claims.h"
#include "share/names.h"
#include "share/segment_header.h"
#include "share/ticket_bytes.h"
#include "share/words.h"

// A named storage that this process has open. It is a segment with one entry, whose claims are rows, as in
// share/segment.h; the creator has row 0. Because a name can be opened by a process that has no claim yet,
// opening and closing exclude each other with a file lock, the *gate*, which the kernel releases when its
// holder dies; a death is possible after each step under it, and the next holder continues from there.
//
//     create:  file without a name → size, memory, header, entry with claim 0 → lock of row 0 → name
//     open:    gate → reap the dead → is there a claim? → lock of a row → claim → gate off
//     close:   gate → reap the dead → claim off → the creator, or the last: name off → gate off
namespace berth::internal::share {

class NamedFile {
 public:
  static Result<std::unique_ptr<NamedFile>> create(const std::string& name, const StorageLayout& layout, std::uint64_t bytes);
  static Result<std::unique_ptr<NamedFile>> open(const std::string& name, bool read_only);
  ~NamedFile();  // closes
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;

  const std::string& name() const noexcept { return name_; }
  void* data() const noexcept { return data_; }
  std::uint64_t bytes() const noexcept;
  const StorageLayout& layout() const noexcept { return layout_; }

  // Removes the name, even while processes have it open. False: there is none.
  static Result<bool> unlink(const std::string& name);

  // Inspects a name without taking a claim. With `collect` dead holders are reaped, and the name is removed
  // when none is left.
  struct Found {
    NamedShared facts;
    bool removed = false;
  };
  static Result<Found> look(int folder, const std::string& name, bool collect);

 private:
  enum class Liveness { alive, dead };

  explicit NamedFile(std::string name);
  Status attach(os::Descriptor file);
  Status create_in_folder(const StorageLayout& layout, std::uint64_t bytes);
  Status map_control();
  Status map_data(bool read_only);
  Status initialize(os::Descriptor file, const StorageLayout& layout, std::uint64_t bytes);
  Status write_header(const StorageLayout& layout, std::uint64_t bytes);
  void publish() noexcept;
  Status give_name(os::Descriptor folder);
  Status lock_gate(std::chrono::milliseconds patience) noexcept;
  Status take_row();
  Liveness reap() noexcept;
  void remove_name_if_same(int folder) noexcept;
  Status still_named(int folder) const noexcept;
  NamedShared describe() const;

  std::string name_;
  NamesFolder folder_;  // kept, since closing must not allocate
  os::OwnDescriptor file_;
  SegmentHeader header_;
  Words words_;
  void* control_ = nullptr;
  std::size_t control_bytes_ = 0;
  void* data_ = nullptr;
  std::uint32_t row_ = kNoHolder;
  const os::Origin origin_;
  StorageLayout layout_;
};

}  // namespace berth::internal::share
