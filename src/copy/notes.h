// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/span_ref.h"
#include "copy/validate.h"
#include "os/system.h"
#include "record/emit.h"

// What copies and fills tell those who watch: the check of streams beforehand, sinks afterwards. Asking costs a load each.
namespace berth::internal::copy {

// Before the work can have run and let go of what it touches.
void note_copy(const SpanRef& source, const SpanRef& target, StreamRef stream);
void note_fill(const SpanRef& target, StreamRef stream);

// One call that copies or fills, for sinks: made before the work, and told of it afterwards.
class CopyWatch {
 public:
  CopyWatch() noexcept : begin_ns_(record::has_copy_sinks() ? os::steady_time_ns() : 0) {}

  // `waited`: the bytes are there by now.
  void copied(const SpanRef& source, const SpanRef& target, const CheckedPair& pair, const CopyOptions& options, const Site& site) const {
    if (begin_ns_ != 0) [[unlikely]]
      record_copy(source, target, &pair, options, site);
  }
  void filled(const SpanRef& target, const CopyOptions& options, const Site& site) const {
    if (begin_ns_ != 0) [[unlikely]]
      record_fill(target, options, site);
  }
  // One of a batch, of so many: its part of the time is as large as those of the others.
  void copied_in_batch(const SpanRef& source, const SpanRef& target, std::size_t count, const CopyOptions& options,
                       const Site& site) const {
    if (begin_ns_ != 0) [[unlikely]]
      record_copy(source, target, nullptr, options, site, count);
  }

 private:
  void record_copy(const SpanRef& source, const SpanRef& target, const CheckedPair* pair, const CopyOptions& options, const Site& site,
                   std::size_t count = 1) const;
  void record_fill(const SpanRef& target, const CopyOptions& options, const Site& site) const;
  std::uint64_t took_ns(const CopyOptions& options) const noexcept;

  const std::uint64_t begin_ns_;  // 0: nobody wants to know
};

}  // namespace berth::internal::copy
