// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The adaptor that injects allocation failures, to test how a program behaves when memory runs out:
//
//     for (std::uint64_t n = 1;; ++n) {
//       auto failing = fail(direct("cpu"), {.nth = n});
//       run_scenario(failing);                       // must survive a refusal of its n-th request
//       if (failing->refused() == 0) break;          // the scenario made fewer than n requests
//     }
namespace berth {

// A request is refused when any of the rules that are set matches. Requests are counted from 1.
struct FailPlan {
  std::uint64_t nth = 0;           // the request with this number
  std::uint64_t every = 0;         // requests whose number is a multiple of this
  std::size_t at_least_bytes = 0;  // requests of this size or larger
};

class BERTH_EXPORT FailAdaptor : public Allocator {
 public:
  using Allocator::Allocator;

  virtual std::uint64_t requests() const = 0;
  virtual std::uint64_t refused() const = 0;
};

BERTH_EXPORT std::shared_ptr<FailAdaptor> fail(std::shared_ptr<Allocator> upstream, FailPlan plan);

}  // namespace berth
