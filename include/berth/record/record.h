// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "berth/base/device_key.h"
#include "berth/base/dtype.h"
#include "berth/export.h"
#include "berth/record/site.h"
#include "berth/record/tag.h"

// Records: one observed fact each. To observe what berth does, attach a sink:
//
//     struct Counter : Sink { void on_record(const Record& r) noexcept override { bytes += r.bytes; } ... };
//     SinkAttachment attached = attach_sink(std::make_shared<Counter>());
//
// While no sink is attached, a record costs one load and one well-predicted branch.
namespace berth {

enum class RecordKind : std::uint8_t { allocated, freed, allocation_failed, copied, filled };
BERTH_EXPORT std::string_view to_string(RecordKind kind) noexcept;

struct Record {
  RecordKind kind;
  DeviceKey device;              // of the block or the fill; for a copy, of the target
  DeviceKey source_device = {};  // of a copy
  const void* address = nullptr;
  std::size_t bytes = 0;
  // Together these two identify a block, and pair its `allocated` with its `freed`. (Addresses do not: with
  // several threads, the record that an address was allocated again may arrive before the record that it was
  // freed.)
  std::uint64_t allocator_id = 0;
  std::uint64_t serial = 0;
  std::uint64_t stream_id = 0;  // 0: no stream
  Tag tag = {};
  SiteId site = {};
  std::uint64_t time_ns = 0;  // steady clock; filled in when the record is delivered

  // For copies and fills only.
  DType dtype = DType::u8;         // of the target
  DType source_dtype = DType::u8;  // of a copy
  Tag route = {};                  // what ran, in words: "host", "kernel > transfer", "fill". For a batch of
                                   // copies, only the devices
  std::uint64_t took_ns = 0;       // duration of a synchronous call; 0: the bytes are moved in a stream
};

// Which records a sink receives. A sink for blocks slows down every allocation and free; a sink for copies does
// not.
enum class RecordSet : std::uint8_t { everything, blocks, copies };

// Receives records on the thread that caused them, possibly on several threads at once, with no lock of berth
// held. Records that the sink itself causes (it may allocate) are not delivered, so that it is never
// re-entered.
class BERTH_EXPORT Sink {
 public:
  virtual ~Sink();
  virtual void on_record(const Record& record) noexcept = 0;
};

// Keeps a sink attached until it is destroyed or detached. After that no new record is delivered to the sink; a
// record that is being delivered at that moment may still arrive, and the sink is kept alive for it.
class BERTH_EXPORT SinkAttachment {
 public:
  SinkAttachment() noexcept = default;
  SinkAttachment(SinkAttachment&& other) noexcept;
  SinkAttachment& operator=(SinkAttachment&& other) noexcept;
  ~SinkAttachment();

  void detach() noexcept;

 private:
  friend SinkAttachment attach_sink(std::shared_ptr<Sink> sink, RecordSet records);
  void* entry_ = nullptr;  // in the library's list of sinks
};

// Any thread. A sink attached twice receives records twice.
[[nodiscard]] BERTH_EXPORT SinkAttachment attach_sink(std::shared_ptr<Sink> sink, RecordSet records = RecordSet::everything);

}  // namespace berth
