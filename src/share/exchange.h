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

// Between storages and segments: which slot a storage's buffer has, and a storage over an imported slot. For tickets and channels.
namespace berth::internal::share {

// A storage in the words of a segment: a slot that this process has a handle on for as long as the storage, and this, live.
struct Exported {
  std::shared_ptr<Segment> segment = {};
  std::uint32_t slot = 0;
  TicketContent::Kind kind = TicketContent::Kind::host_segment;
  std::optional<Storage> stub = {};  // of memory of a device of this process: it has the slot, and stands for
  std::shared_ptr<const DeviceMemory> memory = {};
};

// Makes the buffer known to other processes, if it is not yet. `wrong_device` unless it lies in shared memory, or on a device that shares.
Result<Exported> exported(const Storage& storage);

// The layout of a storage in its buffer.
StorageLayout layout_of(const Storage& storage);

// Uses the ticket up, on success only. The files are descriptors of a device's memory that came with the ticket, and are taken.
Result<Storage> import_content(const TicketContent& content, const std::shared_ptr<Segment>& segment, bool read_only,
                               std::span<os::Descriptor> files = {}, const Site& site = {});

// A storage without bytes.
Storage storage_without_bytes(const StorageLayout& layout);

Device shared_device();

// The default allocator of `shared`: this process's own, also in a forked child.
const std::shared_ptr<Allocator>& shared_allocator();

}  // namespace berth::internal::share
