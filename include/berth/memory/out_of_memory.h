// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/device.h"
#include "berth/export.h"
#include "berth/record/tag.h"

// The out-of-memory error and its report. When memory is refused, every layer that had a part in it (the
// adaptors, the strategy, the device) adds what it knows to one report, and the exception carries it.
namespace berth {

class JsonWriter;  // base/json.h

// Who holds how much, by tag.
struct Holder {
  Tag tag;
  std::size_t bytes = 0;
  std::uint64_t blocks = 0;
};

// What one allocator has committed of a memory that several use.
struct AllocatorShare {
  std::string allocator;  // its name
  std::uint64_t allocator_id = 0;
  Device device;
  std::size_t committed_bytes = 0;
  std::size_t in_use_bytes = 0;
};

struct OutOfMemoryReport {
  Device device;
  std::string allocator;  // "limit(direct)"
  std::size_t requested_bytes = 0;
  std::size_t alignment = 0;
  Tag tag;

  std::string refused_by;                  // "limit of 64 MiB", "the device", …
  std::size_t limit_bytes = 0;             // the limit that refused it; 0 when none did
  std::size_t in_use_bytes = 0;            // of this allocator, or under the limit when that refused it
  std::size_t cached_bytes = 0;            // held for reuse
  std::size_t pinned_bytes = 0;            // of that, in pieces of a GPU's memory that are partly live: serves only what fits there
  std::size_t largest_free_run_bytes = 0;  // the largest block that the cache can serve
  std::size_t device_total_bytes = 0;
  std::size_t device_free_bytes = 0;
  bool process_limited = false;  // ulimit may be what refused it: refused_by says which limit

  std::vector<Holder> top_holders;     // largest first, at most 8
  std::vector<AllocatorShare> shares;  // when the process's limit refused it, largest first
  std::vector<std::string> tried;      // the attempts to find memory before the refusal, and what each brought

  // Free this much more, or raise the limit by this much, and the same request would succeed; 0 when unknown.
  std::size_t would_be_enough_bytes = 0;

  // The fraction of cached memory that is not in the largest free run: 0 if it is all contiguous, near 1 if it
  // is all small fragments.
  double fragmentation() const noexcept;

  // A few lines of text for people; one JSON object for programs.
  BERTH_EXPORT std::string to_string() const;
  BERTH_EXPORT void write_json(JsonWriter& json) const;
};

inline double OutOfMemoryReport::fragmentation() const noexcept {
  return cached_bytes == 0 ? 0 : 1 - static_cast<double>(largest_free_run_bytes) / static_cast<double>(cached_bytes);
}

class BERTH_EXPORT OutOfMemory : public Error {
 public:
  explicit OutOfMemory(OutOfMemoryReport report);
  ~OutOfMemory() override;

  const OutOfMemoryReport& report() const noexcept { return *report_; }

 private:
  std::shared_ptr<const OutOfMemoryReport> report_;
};

}  // namespace berth
