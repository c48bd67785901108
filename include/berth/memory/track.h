// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The adaptor that tracks every live block, with its tag, the call site of its request, and the time of its
// allocation.
//
//     auto tracked = track(direct("cpu"));
//     ...
//     for (const LiveBlock& b : tracked->live()) std::puts(b.to_string().c_str());
namespace berth {

struct LiveBlock {
  Block block;
  SiteId site;
  std::uint64_t since_ns = 0;  // steady clock

  BERTH_EXPORT std::string to_string() const;  // "1 MiB, tag kv, at decoder.cc:118 (grow)"
};

class BERTH_EXPORT TrackAdaptor : public Allocator {
 public:
  using Allocator::Allocator;

  // In the order they were allocated.
  virtual std::vector<LiveBlock> live() const = 0;
};

BERTH_EXPORT std::shared_ptr<TrackAdaptor> track(std::shared_ptr<Allocator> upstream);

}  // namespace berth
