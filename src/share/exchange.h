// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "berth/storage/storage.h"
#include "share/segment.h"
#include "share/ticket_bytes.h"
#include "storage/make.h"

// Between storages and segments: which slot a storage's buffer has, and a storage over an imported slot. For tickets and channels.
namespace berth::sharing {

// A storage's bytes, in a segment that this process has a handle on for as long as the storage lives.
struct Exported {
  std::shared_ptr<Segment> segment;
  std::uint32_t slot = 0;
};

// Makes the buffer known to other processes, if it is not yet. `wrong_device` unless it lies in shared memory.
Result<Exported> exported(const Storage& storage);

// The layout of a storage in its buffer.
StorageLayout layout_of(const Storage& storage);

// Uses the ticket up, on success only.
Result<Storage> import_content(const TicketContent& content, const std::shared_ptr<Segment>& segment, bool read_only);

// A storage without bytes.
Storage storage_without_bytes(const StorageLayout& layout);

Device shared_device();

}  // namespace berth::sharing
