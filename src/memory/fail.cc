// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/fail.h"

#include <atomic>

#include "memory/adaptor.h"

namespace berth {

using namespace internal::memory;

namespace {

class Failing : public Adaptor<FailAdaptor> {
 public:
  Failing(std::shared_ptr<Allocator> upstream, FailPlan plan) : Adaptor("fail", std::move(upstream)), plan_(plan) {}

  Status obtain(const Request& request, Block& block) noexcept override {
    const std::uint64_t number = requests_.fetch_add(1, std::memory_order_relaxed) + 1;
    const bool by_number = number == plan_.nth || (plan_.every != 0 && number % plan_.every == 0);
    const bool by_size = plan_.at_least_bytes != 0 && request.bytes >= plan_.at_least_bytes;
    if (!by_number && !by_size) return upstream_->obtain(request, block);
    refused_.fetch_add(1, std::memory_order_relaxed);
    return Failure{ErrorCode::out_of_memory, 0, kRefused, Refusal::injected};
  }

  Stats stats() const override {
    Stats all = upstream_->stats();
    all.failures += refused();
    return all;
  }

  void explain(const Failure& failure, OutOfMemoryReport& report) const override {
    upstream_->explain(failure, report);
    if (failure.cause != Refusal::injected) return;
    report.refused_by = kRefused;
    report.would_be_enough_bytes = 0;
    report.tried = {"nothing: the failure was injected"};
  }

  std::uint64_t requests() const override { return requests_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const override { return refused_.load(std::memory_order_relaxed); }

 private:
  static constexpr char kRefused[] = "the fail adaptor";

  const FailPlan plan_;
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace

std::shared_ptr<FailAdaptor> fail(std::shared_ptr<Allocator> upstream, FailPlan plan) {
  return std::make_shared<Failing>(std::move(upstream), plan);
}

}  // namespace berth
