// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The adaptor that keeps the sequence of allocations and frees, for inspection or replay. It is bounded: beyond
// `most_events`, further events are counted but not kept.
namespace berth {

struct TraceEvent {
  enum class Operation : std::uint8_t { allocate, free };
  Operation operation;
  std::uint64_t serial;  // pairs the free with its allocation
  std::size_t bytes;
  std::uint64_t stream_id;
  std::uint64_t time_ns;
  std::uint64_t allocator_id = 0;  // with the serial, identifies a block among those of several allocators

  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

class BERTH_EXPORT TraceAdaptor : public Allocator {
 public:
  using Allocator::Allocator;

  virtual std::vector<TraceEvent> events() const = 0;
  virtual std::uint64_t dropped() const = 0;

  // A header line "op,id,bytes,stream" and a line for each event; op is a or f. If any block has a tag there is
  // a fifth column, "tag".
  virtual std::string to_csv() const = 0;
};

BERTH_EXPORT std::shared_ptr<TraceAdaptor> trace(std::shared_ptr<Allocator> upstream, std::size_t most_events = 1'000'000);

}  // namespace berth
