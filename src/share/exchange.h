// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "berth/storage/storage.h"
#include "os/file/descriptor.h"
#include "share/device_memory.h"
#include "share/segment.h"
#include "share/ticket_bytes.h"
#include "storage/make.h"

// Connects storages to segments: finds the entry of a storage's buffer, and makes a storage over an imported
// entry. Used by tickets and channels. Any thread.
namespace berth::internal::share {

// A storage that was published in a segment: an entry that this process has a handle on for as long as both the
// storage and this object live.
struct Exported {
  std::shared_ptr<Segment> segment = {};
  std::uint32_t entry = 0;
  TicketContent::Kind kind = TicketContent::Kind::host_segment;
  std::optional<Storage> stub = {};  // of own device memory: it has the entry, and stands for
  std::shared_ptr<const DeviceMemory> memory = {};
};

// Publishes the buffer, if it is not published yet. `wrong_device` unless it is in shared memory, or on a
// device that can share.
Result<Exported> exported(const Storage& storage);

// The layout of a storage in its buffer.
StorageLayout layout_of(const Storage& storage);

// Consumes the ticket, on success only. `files` are descriptors of device memory that came with the ticket;
// they are consumed.
Result<Storage> import_content(const TicketContent& content, const std::shared_ptr<Segment>& segment, bool read_only,
                               std::span<os::Descriptor> files = {}, const Site& site = {});

// A storage without bytes.
Storage storage_without_bytes(const StorageLayout& layout);

// Why a buffer that is in no shared memory of this process cannot be published.
Failure not_shared(const Buffer& buffer) noexcept;

Device shared_device();

}  // namespace berth::internal::share
