// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/span_ref.h"
#include "copy/validate.h"
#include "os/system.h"
#include "record/emit.h"

// What copies and fills report to observers: to race detection before the work, to sinks after it. Testing
// whether there are any costs one load each. Any thread.
namespace berth::internal::copy {

// Called before the work can have run and released the memory it touches.
void note_copy(const SpanRef& source, const SpanRef& target, StreamRef stream);
void note_fill(const SpanRef& target, StreamRef stream);

// Times one call that copies or fills, for sinks: constructed before the work, and called when it is done.
class CopyWatch {
 public:
  CopyWatch() noexcept : begin_ns_(record::has_copy_sinks() ? os::steady_time_ns() : 0) {}

  // `waited`: the bytes are there by now.
  void copied(const SpanRef& source, const SpanRef& target, const ValidatedPair& pair, const CopyOptions& options, const Site& site) const {
    if (begin_ns_ != 0) [[unlikely]]
      record_copy(source, target, &pair, options, site);
  }
  void filled(const SpanRef& target, const CopyOptions& options, const Site& site) const {
    if (begin_ns_ != 0) [[unlikely]]
      record_fill(target, options, site);
  }
  // One copy of a batch of `count`: the time of the batch is divided equally.
  void copied_in_batch(const SpanRef& source, const SpanRef& target, std::size_t count, const CopyOptions& options,
                       const Site& site) const {
    if (begin_ns_ != 0) [[unlikely]]
      record_copy(source, target, nullptr, options, site, count);
  }

 private:
  void record_copy(const SpanRef& source, const SpanRef& target, const ValidatedPair* pair, const CopyOptions& options, const Site& site,
                   std::size_t count = 1) const;
  void record_fill(const SpanRef& target, const CopyOptions& options, const Site& site) const;
  std::uint64_t took_ns(const CopyOptions& options) const noexcept;

  const std::uint64_t begin_ns_;  // 0: there are no sinks
};

}  // namespace berth::internal::copy
